//! The kinds of processors that a gateway's file, the benchmarks and the demonstration can name.
//!
//! [`KINDS`] is the registry, to which a program may add kinds of its own ([`register`]). A kind is one module: its word,
//! the keys of its `[[processor]]` and a [`Device`] that opens it. The reader of the gateway's file, `check`, the
//! reference in `docs/reference/gateway.md`, the running service and the
//! benchmarks take all kinds from there. The cores of this machine are no kind: the gateway itself runs on them.
//!
//! The crate reads and opens; it does not choose. What a processor costs is measured, or read from a file ([`Costs`]).

mod absent;
mod backend;
mod card;
mod costs;
mod dpdk;
mod gpu;
mod known_answers;
mod registry;
mod rtl;

pub use absent::Absent;
pub use backend::Backend;
pub use card::EmulatedCard;
#[cfg(feature = "libraries")]
pub use card::open_alone;
#[cfg(feature = "libraries")]
pub use costs::core;
pub use costs::{Costs, MeasuredBatch, MeasuredCost, set_up};
pub use known_answers::test as test_known_answers;
pub use registry::{Device, Kind, Surroundings, Taken, Values, device, kinds, register};

/// Every kind of processor of this crate besides cores. A new one is a module and a line here.
pub static KINDS: &[Kind] = &[card::KIND, dpdk::KIND, gpu::KIND, rtl::KIND];

/// The word of cores, which every file may have.
pub const CORE: &str = "core";
