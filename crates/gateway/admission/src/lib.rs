//! Admission to listeners that unknown hosts can reach: the control socket, metrics, the live page and the link of a pair.
//!
//! - [`Places`]: a limit on connections that have not sent their request yet. If all places are in use, the oldest connection of the source
//!   with the most connections is closed, so that silent connections keep nobody out. Connections of expected sources are never closed.
//! - [`Within`]: one deadline for a whole handshake or request, regardless of the number of reads and writes.
//! - [`Limiter`]: a rate limit for log messages.
//!
//! This crate accepts no connections and knows no protocol.
//!
//! ```
//! use forebay_admission::Limiter;
//! use forebay_time::{Duration, Time};
//!
//! let mut limiter = Limiter::every(Duration::from_millis(1_000), 1); // one message per second
//! let at = |ms| Time::ZERO + Duration::from_millis(ms);
//! assert_eq!(limiter.admit(at(0)), Some(0)); // log it
//! assert_eq!(limiter.admit(at(10)), None);
//! assert_eq!(limiter.admit(at(1_000)), Some(1)); // log it, and that one message was left out
//! ```

mod limiter;
mod places;
mod within;

pub use limiter::Limiter;
pub use places::{Place, Places, Source};
pub use within::Within;
