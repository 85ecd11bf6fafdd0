//! The guard: nftables rules of the host that keep protected traffic from bypassing the gateway in the clear (RFC 4301
//! 5.1, 5.2).
//!
//! The engine processes only the packets of its own links. The host would forward a packet that arrives on another
//! interface with a source in a peer's network, and would route a packet to such a network by its default route while no
//! gateway runs. A table of the host drops both, on every interface but the gateway's:
//!
//! - **remote**: addresses of the peers' networks. Packets with such a source may arrive, and packets with such a destination leave,
//!   through the gateway's interface only.
//! - **wide**: each `remote_ts` that is wider than a peer's networks can be, such as 0.0.0.0/0. Most of those addresses
//!   also occur in the clear, so they are guarded together with **local**, the `local_ts` of the same policies.
//! - **own**: each `local_ts` that is not wide. Decrypted packets for it are not forwarded to an interface that leads to
//!   peers or to the default route, where they would go while the route to the inside is missing.
//!
//! Packets that have to pass in the clear although their addresses are protected go through a second chain: protected packets themselves,
//! IKE, packets of bypass policies, and what a host needs (Neighbour Discovery, DHCP, ICMP errors). `rules.rs` has the list.

mod plan;
mod ranges;
mod rules;
mod saved;

pub use plan::{Entry, Exempt, Guarded, Plan};
pub use ranges::{Range, Ranges};
pub use rules::{FORGED, Host, LEAKED, Ways};
pub use saved::{Saved, SavedError};

#[cfg(test)]
mod tests;
