//! Many gateways that share SAs by etcd, as `[cluster]` of the gateway's file makes them. Linux only; docs/many-gateways.md has
//! the protocol and its promises.
//!
//! [`Serving`](crate::gateway::Serving) does all that such a gateway does: it [claims](claim) the state directory for [`Role::Cluster`],
//! starts the [`Cluster`], and lets a [`Service`](crate::gateway::Service) serve the SAs of the shares that the cluster assigns to this
//! gateway ([`Config::of_shares`](crate::gateway::Config)); a share that comes or goes is a reload. [`Shares`] computes which gateway should serve a share, without any connection.

pub use forebay_cluster::{Cluster, ClusterError, ClusterStatus, Served, Shares, Trouble, check};
pub use forebay_gateway::service::{SharedAddresses, claim};
pub use forebay_state::{Files, IvStore, IvStoreError, Role};
