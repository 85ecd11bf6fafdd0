//! Security associations, replay windows and ESP as prepare, job, complete.
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

mod drops;
mod dscp;
mod headers;
mod inbound;
mod iv;
mod outbound;
mod policy;
mod replay;
mod rule;
mod sa;
mod sad;
mod selector;
mod spd;
mod train;

pub use drops::{DropCounts, DropReason};
pub use dscp::{DscpError, DscpSet};
pub use iv::IvRange;
pub use policy::{Action, Policy, PolicyError, PolicyId, PolicyPlace};
pub use replay::{MAX_WINDOW, Replay, ReplayWindow};
pub use sa::{Encapsulation, Mode, SaConfig, SaConfigError, Spi};
pub use sad::{Prepared, SaCounters, Sad, SadError, Stop};
pub use selector::{PortRange, SelectorError, TrafficSelector};
