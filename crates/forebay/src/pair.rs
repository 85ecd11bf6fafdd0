//! Two gateways as one, as `[pair]` of the gateway's file makes them: one is active, the other stands by with the same SAs and
//! takes over. Linux only; docs/pair.md has the protocol and its promises.
//!
//! The program does four things, in this order: it [claims](claim) the state directory for [`Role::Pair`], starts the [`Pair`], waits
//! until [`Pair`] says that this gateway is active, and then starts a [`Service`](crate::gateway::Service) on the pair's
//! store, with the [shared addresses](SharedAddresses). When the pair says that another gateway is active, it ends the service
//! and stands by again. `crates/cli/src/gateway/paired.rs` is such a program. [`Pair`] neither opens TUN nor moves packets.

pub use forebay_gateway::service::{SharedAddresses, claim};
pub use forebay_pair::{Key, KeyError, Pair, PairError, PairStatus, Verdict};
pub use forebay_state::{Files, IvStore, IvStoreError, Role};
