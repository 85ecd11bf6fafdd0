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
mod flow;
mod inbound;
mod iv;
mod lifetime;
mod mtu;
mod outbound;
mod replay;
mod resync;
mod sa;
mod sad;
mod select;
mod train;
mod tunnel;

pub use drops::{DropCounts, DropReason};
pub use iv::IvRange;
pub use lifetime::{Event, EventKind, Lifetime, LifetimeError, Limits};
pub use mtu::{LEARNED_FOR, MIN_PATH_MTU_V4, Overhead};
pub use replay::{MAX_WINDOW, Replay, ReplayWindow};
pub use resync::{GUESSES, TRIGGER};
pub use sa::{Encapsulation, Mode, SaConfig, SaConfigError, Spi, Tfc};
pub use sad::{SaCounters, Sad, SadError};
pub use tunnel::{DontFragment, Dscp, Ecn, FlowLabel, HopLimit, InnerDscp, TunnelRules, TunnelRulesError};
