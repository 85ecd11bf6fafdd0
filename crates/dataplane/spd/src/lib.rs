//! Policies, and what they say of a packet (RFC 4301 4.4.1): selectors, the ordered policies of both directions, and the
//! classifier that finds the first one that a packet matches.
//!
//! No I/O, no clock, no SAs: policies name those by their numbers.

mod dscp;
mod hash;
mod headers;
mod policy;
mod quoted;
mod rule;
mod selector;
mod spd;
mod usual;

pub use dscp::{DscpError, DscpSet};
pub use hash::{Seed, SeededHasher};
pub use headers::{Depth, Headers};
pub use policy::{Action, Policy, PolicyError, PolicyId, PolicyPlace};
pub use quoted::{Refused, may_be_icmp};
pub use rule::{Match, Rule};
pub use selector::parse::SelectorError;
pub use selector::{PortRange, TrafficSelector};
pub use spd::flow_cache::FlowPlace;
pub use spd::{Decision, Spd};
pub use usual::UsualSas;
