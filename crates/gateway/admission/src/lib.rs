//! Whom a listener of the gateway lets in, for how long, and how often the log says so: one way for the control socket, metrics
//! and the link of a pair, all of which unknown hosts can reach.
//!
//! - [`Places`]: so many connections at a time that have not shown yet what they want. Where all are taken, the oldest of the
//!   source with the most gives way, so that silent connections keep nobody out; sources that are expected never do.
//! - [`Within`]: a deadline for a whole handshake or request, however it is cut into reads and writes.
//! - [`Limiter`]: how often something is said.
//!
//! It accepts no connections and knows no protocol.

mod limiter;
mod places;
mod within;

pub use limiter::Limiter;
pub use places::{Place, Places, Source};
pub use within::Within;
