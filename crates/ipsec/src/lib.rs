//! Security associations, replay windows, ESP and AH as prepare, job, complete.
//!
//! No I/O, no clock, no threads, no randomness, no crypto: a packet is *prepared* (everything that
//! needs order: SA, sequence number, IV, headers, padding), which leaves a crypto job for any
//! processor; the job's verdict *completes* it (replay window, trailer, tunnel headers off, selector
//! check). [`Sad`] is where both live:
//!
//! ```text
//! plain packet --prepare(Seal)--> job --(a processor)--> verdict --complete--> ESP packet
//! ESP packet   --prepare(Open)--> job --(a processor)--> verdict --complete--> plain packet
//! ```
//!
//! AH goes the same way. A packet that is to go through another SA is prepared again
//! ([`Next::Again`], [`Sad::again`]).

mod ah;
mod drops;
mod inbound;
pub mod iptfs;
mod iv;
mod outbound;
pub mod reassembly;
mod replay;
mod sa;
mod sad;
mod select;
mod train;

pub use drops::{DropCounts, DropReason};
pub use iptfs::Iptfs;
pub use iv::IvRange;
pub use reassembly::{Reassembler, Reassembly};
pub use replay::{MAX_WINDOW, Replay, ReplayWindow};
pub use sa::{Encapsulation, Mode, Protocol, SaConfig, SaConfigError, Spi};
pub use sad::{NEST_MAX, Next, Path, SaCounters, Sad, SadError, Stop};
