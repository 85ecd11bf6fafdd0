//! ESP as prepare, job, complete (RFC 4303).

mod front;
mod inbound;
mod inbound_run;
mod outbound;
mod outbound_run;
mod version;

pub use inbound::{InboundSa, check_selectors, want_note};
pub use outbound::OutboundSa;
