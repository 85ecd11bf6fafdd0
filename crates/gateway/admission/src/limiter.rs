//! A limit on log lines of one kind, so that unknown peers cannot fill a log.

use forebay_time::{Duration, Time};

/// How often something is said.
#[derive(Debug)]
pub struct Limiter {
    /// How often it may be said now.
    tokens: u32,
    /// Most of them.
    burst: u32,
    /// Between two new ones.
    every: Duration,
    since: Time,
    /// What was not said since.
    unsaid: u64,
}

impl Limiter {
    /// At most `per_second` times a second, never for 0, and `burst` times at once after a quiet time.
    pub fn new(per_second: u32, burst: u32) -> Limiter {
        let burst = if per_second == 0 { 0 } else { burst };
        Limiter::every(Duration::from_micros(1_000_000 / u64::from(per_second.max(1))), burst)
    }

    /// Once in such a time, and `burst` times at once after a quiet time.
    pub fn every(every: Duration, burst: u32) -> Limiter {
        Limiter { tokens: burst, burst, every, since: Time::ZERO, unsaid: 0 }
    }

    /// Whether it is to be said; if so, how much was not said before.
    pub fn admit(&mut self, now: Time) -> Option<u64> {
        let new = (now.since(self.since).0 / self.every.0.max(1)).min(u64::from(self.burst)) as u32;
        if new > 0 {
            self.tokens = self.tokens.saturating_add(new).min(self.burst);
            self.since = now;
        }
        if self.tokens == 0 {
            self.unsaid += 1;
            return None;
        }
        self.tokens -= 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_counted() {
        let mut limiter = Limiter::new(10, 3);
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let said: Vec<_> = (0..5).map(|_| limiter.admit(at(0))).collect();
        assert_eq!(said, [Some(0), Some(0), Some(0), None, None]);
        assert_eq!(
            [limiter.admit(at(50)), limiter.admit(at(100)), limiter.admit(at(100))],
            [None, Some(3), None]
        );
        assert_eq!((0..9).filter_map(|_| limiter.admit(at(10_000))).collect::<Vec<_>>(), [1, 0, 0]);
        assert_eq!(Limiter::new(0, 100).admit(at(0)), None);
    }
}
