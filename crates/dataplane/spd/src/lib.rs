//! The security policy database (RFC 4301 4.4.1): selectors, the ordered policies of both directions, and the classifier that finds the
//! first policy that a packet matches.
//!
//! Policies name SAs by number ([`SessionId`](forebay_crypto::SessionId)); this crate holds no SAs, and has no clock and no I/O. Decisions of
//! recent flows are cached; a change of a policy or SA empties the cache.
//!
//! ```
//! use forebay_crypto::{Direction, SessionId};
//! use forebay_spd::{Action, Decision, DscpSet, Policy, PolicyPlace, Rule, Seed, Spd};
//! use forebay_wire::Ip;
//!
//! let mut spd = Spd::new(Seed::new(1)); // a random number in a program: senders must not know it
//! spd.add_sa(SessionId(5), Rule::new(&["10.1.0.0/16".parse()?], &["10.2.0.0/16".parse()?], DscpSet::ALL));
//! let policy = Policy {
//!     remote_ts: vec!["10.2.0.0/16".parse()?],
//!     ..Policy::new("east", Direction::Seal, Action::Protect(vec![SessionId(5)]))
//! };
//! spd.add(policy, PolicyPlace::Last)?;
//!
//! let packet = [69, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 1, 0, 9, 10, 2, 0, 9]; // 10.1.0.9 to 10.2.0.9
//! let Ok(ip) = Ip::parse(&packet) else { unreachable!() };
//! assert_eq!(spd.decide_outbound(&ip), Decision::Protect(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
