//! Many gateways that share SAs: each serves some shares of them, and what has to outlive a gateway is in etcd.
//!
//! Three questions are kept apart, each with an answer that does not need the others:
//!
//! - *Which gateway should serve a share?* Every gateway computes it for itself from the names of those that live
//!   ([`shares`], rendezvous hashing): one that comes or goes moves its own shares only.
//! - *Which one does?* The one whose name the share's key says. The key has a lease: it goes with the gateway (`node`).
//! - *May a number be used twice, or a packet be received twice?* Never, whoever believes to serve the share: nothing is used
//!   that is not recorded, and a record is written by transactions only that compare the share's *claim*, a key
//!   that changes with every new owner and has no lease (`recorder`). A gateway that does not know yet that it was replaced can
//!   use up what it has recorded, and the next one begins behind that.
//!
//! So the clocks of gateways matter for how long a take-over takes, and for nothing else. While etcd cannot be reached, a gateway
//! goes on until its reservations end.

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
