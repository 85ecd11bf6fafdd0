//! Suites, keys and the [`Processor`] contract.
//!
//! A crypto job is what is left of a packet once everything that needs order
//! (sequence number, IV, headers, padding) has been done: ranges of a buffer,
//! a key session and a direction. A [`Processor`] is anything that can do such
//! jobs: the running core, another core, a card, an emulated card. Backends
//! live in crates of their own; adding one touches nothing here.

// Counters are 64-bit atomics, sizes of buffers and rings are computed as `usize`, and no test runs on other targets.
#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Forebay's data plane is for 64-bit targets, x86-64 and arm64. The crates of the simulator alone (forebay-sim, \
     forebay-pipeline, forebay-models) also compile for wasm32."
);

mod fallback;
mod job;
mod keys;
mod layout;
mod processor;
mod suite;

pub mod fault;

pub use fallback::Fallback;
pub use forebay_packet::Packet;
pub use job::{Direction, Job, JobSpec, SessionId, Span, Verdict};
pub use keys::{KeyError, SaKeys, SecretBytes};
pub use layout::Layout;
pub use processor::{Capabilities, Processor, SessionError};
pub use suite::nearest;
pub use suite::{Cipher, Integrity, Suite, SuiteError};
