//! Security associations, replay windows, ESP and AH as prepare, job, complete.
//!
//! No I/O, no clock, no threads, no randomness, no crypto: a packet is *prepared* (everything that
//! needs order: SA, sequence number, IV, headers, padding), which leaves a crypto job for any
//! processor; the job's verdict *completes* it (replay window, trailer, tunnel headers off, selector
//! check). [`Ipsec`] is where both live:
//!
//! ```text
//! plain packet --prepare(Seal)--> job --(a processor)--> verdict --complete--> ESP packet
//! ESP packet   --prepare(Open)--> job --(a processor)--> verdict --complete--> plain packet
//! ```
//!
//! AH goes the same way. A packet that is to go through another SA is prepared again
//! ([`Next::Again`], [`Ipsec::again`]).

mod aggregation;
mod ah;
mod esp;
mod find;
mod ipsec;
mod iv;
mod lifetime;
mod mtu;
mod outbound_numbers;
mod overhead;
mod path_limit;
mod path_mtu;
mod paths;
mod sa;
mod sad;
mod step;
mod watch;

pub use find::esp_spi;
pub use forebay_drops::{DropCounts, DropReason};
pub use forebay_iptfs::{self as iptfs, Iptfs};
pub use forebay_reassembly::{self as reassembly, Reassembler, Reassembly};
pub use forebay_replay::{GUESSES, MAX_WINDOW, Received, Replay, ReplayWindow, TRIGGER};
pub use forebay_spd::{
    Action, DscpError, DscpSet, Policy, PolicyError, PolicyId, PolicyPlace, PortRange, Rule, SelectorError,
    TrafficSelector, UsualSas,
};
pub use forebay_tunnel::{
    DontFragment, Dscp, Ecn, FlowLabel, HopLimit, InnerDscp, TunnelRules, TunnelRulesError,
};
pub use forebay_wire::nat::Originals;
pub use ipsec::Ipsec;
pub use iv::{IvRange, IvRefill};
pub use lifetime::{Lifetime, LifetimeError, Limits, Lived};
pub use mtu::{LEARNED_FOR, MIN_PATH_MTU_V4};
pub use overhead::Overhead;
pub use path_mtu::PathMtuCounters;
pub use sa::{Encapsulation, Ends, Mode, Protocol, SaConfig, SaConfigError, Spi, Tfc, UdpPorts};
pub use sad::entry::SaCounters;
pub use sad::error::SadError;
pub use step::{NEST_MAX, Next, Path, Prepared, Stop};
pub use watch::{Event, EventKind};
