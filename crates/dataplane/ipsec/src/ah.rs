//! AH as prepare, job, complete (RFC 4302).
//!
//! AH's ICV stands in the midst of what it covers, and covers headers whose fields change on their way:
//! it is computed over an *image* of the packet, with mutable fields and the ICV itself zero and
//! predictable fields as the receiver will see them (RFC 4302 3.3.3). `prepare` makes the packet its own
//! image and keeps what that changes in front of it; processors see one span to authenticate and an
//! ICV that lies outside of it, so AH is a job like any other; `complete` puts the headers back.
//!
//! ```text
//! stash                image
//! +---------+---------+---------+----------------+---------+----------------+
//! | headers | ICV     | headers | AH             | payload | high half      |
//! | as sent |         | masked  | ICV: zeros     |         | of ESN, if any |
//! +---------+---------+---------+----------------+---------+----------------+
//! |         |         |<----------------- auth ---------------------------->|
//! |<---------------------------- bounds ----------------------------------->|
//! ```
//!
//! All else, tunnel headers, lifetimes, path MTUs and resynchronisation, is as in ESP. What routers may change
//! (DSCP, ECN, flow label, DF, TTL) is not covered, so nothing vouches for what the tunnel's end takes from it.
//!
//! The stash is inside the packet's bounds, so a copy of the packet takes it along.

mod image;
mod inbound;
mod layout;
mod outbound;

pub use inbound::InboundAh;
pub use outbound::OutboundAh;
