//! Many gateways that share SAs: each serves some shares of them, and etcd holds the state that has to survive a gateway.
//!
//! Three questions have separate answers, none of which depends on the others:
//!
//! - *Which gateway should serve a share?* Every gateway computes it from the names of the live gateways
//!   ([`shares`], rendezvous hashing). If a gateway joins or leaves, only its own shares move.
//! - *Which one does?* The one named in the share's key. The key has a lease and disappears with the gateway (`node`).
//! - *May a number be used twice, or a packet be received twice?* Never, whichever gateway considers itself the server of the share. Only
//!   recorded numbers are used, and only transactions that compare the share's *claim* write a record. The claim is a key
//!   without a lease that changes with every new owner (`recorder`). A gateway that does not know yet that it was replaced can
//!   use up its recorded numbers, and its successor begins after those.
//!
//! The clocks of gateways therefore affect only the duration of a take-over. While etcd cannot be reached, a gateway
//! continues until its reservations end.

mod client;
pub mod etcd;
mod layout;
mod node;
mod places;
mod recorder;
pub mod shares;
mod threads;

pub use client::{Client, ClientError};
pub use node::{ClusterError, Served, Trouble};
pub use shares::Shares;
pub use threads::{Cluster, ClusterStatus, check};

#[cfg(any(test, feature = "fake"))]
pub mod fake;
#[cfg(test)]
mod tests;
