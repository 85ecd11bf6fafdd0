//! Two gateways as one, as configured by `[pair]`: one is active; the standby has the same SAs and
//! takes over. Linux only; docs/pair.md has the protocol and its guarantees.
//!
//! [`Serving`](crate::gateway::Serving) does the whole work of such a gateway: it [claims](claim) the state directory for [`Role::Pair`], starts
//! the [`Pair`], starts a [`Service`](crate::gateway::Service) on the pair's store when the pair makes this gateway active, with the [shared
//! addresses](SharedAddresses), and ends it when the other gateway is active. [`Pair`] neither opens TUN nor moves packets.

pub use forebay_gateway::service::{SharedAddresses, claim};
pub use forebay_pair::{Key, KeyError, Pair, PairError, PairStatus, Verdict};
pub use forebay_state::{Files, IvStore, IvStoreError, Role};
