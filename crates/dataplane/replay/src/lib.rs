//! Replay windows (RFC 4303 3.4.3 and appendix A): the sequence numbers that an inbound SA has received, and the high half of
//! extended sequence numbers.
//!
//! The caller looks at each number twice: [`ReplayWindow::check`] before the ICV is verified, so that replayed packets cost no
//! crypto, and [`ReplayWindow::settle`] after it, which moves the window. Nothing here allocates after [`ReplayWindow::new`], and there is no
//! clock and no I/O.
//!
//! ```
//! use forebay_replay::{Replay, ReplayWindow};
//!
//! let mut window = ReplayWindow::new(64);
//! assert_eq!(window.check(7), Replay::New); // worth the crypto
//! assert_eq!(window.settle(7), Replay::New); // its ICV is right: deliver it
//! assert_eq!(window.settle(7), Replay::Duplicate);
//! assert_eq!(window.settle(100), Replay::New); // the window is 37 to 100 now
//! assert_eq!(window.check(36), Replay::TooOld);
//! ```
//!
//! [`Received`] is the part of a window that is kept across restarts. [`Resync`] finds the high half again after a receiver has lost more than
//! 2^32 packets.

mod received;
mod replay;
mod resync;

pub use received::Received;
pub use replay::{MAX_WINDOW, Replay, ReplayWindow, Settling};
pub use resync::{GUESSES, Resync, TRIGGER};
