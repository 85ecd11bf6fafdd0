//! Many gateways that share SAs by etcd, as configured by `[cluster]`. Linux only; docs/many-gateways.md has
//! the protocol and its guarantees.
//!
//! [`Serving`](crate::gateway::Serving) does the whole work of such a gateway: it [claims](claim) the state directory for [`Role::Cluster`],
//! starts the [`Cluster`], and lets a [`Service`](crate::gateway::Service) serve the SAs of the shares that the cluster assigns to this
//! gateway ([`Config::of_shares`](crate::gateway::Config)); when a share leaves or joins, the service reloads. [`Shares`] computes the gateway that should serve a share, without any connection.

pub use forebay_cluster::{Cluster, ClusterError, ClusterStatus, Served, Shares, Trouble, check};
pub use forebay_gateway::service::{SharedAddresses, claim};
pub use forebay_state::{Files, IvStore, IvStoreError, Role};
