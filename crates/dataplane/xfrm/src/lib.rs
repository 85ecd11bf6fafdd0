//! A mirror of the kernel's security associations and policies.
//!
//! An IKE daemon (strongSwan, libreswan) installs what it has negotiated into the kernel by XFRM netlink messages.
//! [`Mirror`] follows those messages, takes SAs and policies over in Forebay's words as [`Event`]s, and says back what
//! the daemon wants to know: counters, lifetimes that have ended, packets that want an SA.
//!
//! ```text
//! IKE daemon --NEWSA, NEWPOLICY--> kernel --groups SA, POLICY, EXPIRE--> Mirror --Event--> gateway
//!            <------ EXPIRE, ACQUIRE, counters ------ kernel <-- expire, acquire, report --'
//! ```
//!
//! The kernel must not do the work itself with what is taken over. SAs and policies with a mark that no packet carries
//! (swanctl's `mark_in`, `mark_in_sa`, `mark_out`) are kept and match nothing; [`Filter`] takes over those with the
//! mark and leaves the others alone.
//!
//! [`State`] is the whole of it without the sockets: messages in, events out.

mod abi;
mod decode;
mod direction;
mod event;
mod kernel;
mod mirror;
mod refusal;
mod request;
mod selectors;
mod shared_keys;
mod state;
mod suite;

pub use decode::decode;
pub use event::{Event, Policy, PolicyAction, PolicyIndex, Refused, Sa, Template};
pub use forebay_netlink::{Frame, Frames, Malformed};
pub use kernel::{
    Algorithm, Encap, KernelPolicy, KernelSa, KernelTemplate, LifetimeConfig, Mark, Message, SaId, Selector,
    Sequence, Usage, Way,
};
pub use mirror::{Counts, Mirror};
pub use refusal::Refusal;
pub use request::{Done, Flow};
pub use state::{Filter, State};
