//! The guard: nftables rules of the host by which nothing that SAs protect passes beside the gateway in the clear
//! (RFC 4301 5.1, 5.2).
//!
//! The engine sees only the packets of its own links. A packet that arrives at another interface with a source that only
//! comes out of the tunnel would be forwarded by the host, and one to a protected network would leave by whatever route
//! there is while there is no gateway. So a table of the host drops both, on every interface but the gateway's:
//!
//! - **remote**: addresses of the peers' networks. As a source they arrive by the gateway's interface only, as a
//!   destination they leave by it only.
//! - **wide**: `remote_ts` that are wider than the networks of a peer can be, such as 0.0.0.0/0: most of those addresses
//!   are met in the clear too. They are guarded together with **local**, the `local_ts` of the same policies.
//!
//! What has to pass in the clear, though its addresses are protected, is let through behind the look-up, by a chain that
//! only such packets get to: the sealed packets themselves, IKE, what bypass policies say, and what a host cannot do
//! without (Neighbour Discovery, DHCP, ICMP errors). `rules.rs` has the list.

mod plan;
mod ranges;
mod rules;

pub use plan::{Entry, Exempt, Guarded, Plan};
pub use ranges::{Range, Ranges};
pub use rules::{FORGED, Host, LEAKED};

#[cfg(test)]
mod tests;
