//! Replay windows (RFC 4303 3.4.3 and appendix A): which sequence numbers an inbound SA has received, what of a window outlives
//! the SA, and how a receiver finds the high half of extended sequence numbers again.

mod received;
mod replay;
mod resync;

pub use received::Received;
pub use replay::{MAX_WINDOW, Replay, ReplayWindow, Settling};
pub use resync::{GUESSES, Resync, TRIGGER};
