//! The wall clock, as the rest of Forebay sees it.

use std::time::Instant;

use forebay_time::{Duration, Time};

/// The machine's monotonic clock, counting from its own start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    #[allow(clippy::disallowed_methods)] // the engine is where time comes from
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The time since the start.
    #[inline]
    pub fn now(&self) -> Time {
        let elapsed = self.origin.elapsed();
        Time::ZERO + Duration::from_nanos(elapsed.as_nanos() as u64)
    }
}
