//! The guard: nftables rules of the host that keep protected traffic from bypassing the gateway in the clear (RFC 4301
//! 5.1, 5.2).
//!
//! The engine processes only the packets of its own links. The host would forward a packet that arrives on another
//! interface with a source in a peer's network, and would route a packet to such a network by its default route while no
//! gateway runs. A table of the host drops both, on every interface but the gateway's:
//!
//! - **remote**: addresses of the peers' networks. As a source they arrive by the gateway's interface only, as a
//!   destination they leave by it only.
//! - **wide**: `remote_ts` that are wider than the networks of a peer can be, such as 0.0.0.0/0: most of those addresses
//!   also occur in the clear. They are guarded together with **local**, the `local_ts` of the same policies.
//! - **own**: the narrow ones among all `local_ts`. What the gateway has opened for them is not forwarded to an interface by which
//!   peers or the default route are reached, where it would go while the route to the inside is gone.
//!
//! What has to pass in the clear, though its addresses are protected, is let through behind the look-up, by a chain that
//! only such packets get to: the sealed packets themselves, IKE, what bypass policies say, and what a host cannot do
//! without (Neighbour Discovery, DHCP, ICMP errors). `rules.rs` has the list.

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
