//! A limit on ICMP messages.

use forebay_time::{PS_PER_S, Time};

/// ICMP messages about packets that were too big are sent, and believed, at most this often per second and this
/// many at once: each a bound that RFC 4443 2.4 f and RFC 1812 4.3.2.8 ask for.
const MESSAGES_PER_S: u64 = 1_000;
const MESSAGES_AT_ONCE: u64 = 50;

/// How many more messages there may be: a bucket that fills with the time.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    left: u64,
    filled: Time,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { left: MESSAGES_AT_ONCE, filled: Time::ZERO }
    }
}

impl Rate {
    /// Takes one, if there is one.
    pub fn take(&mut self, now: Time) -> bool {
        const EVERY: u64 = PS_PER_S / MESSAGES_PER_S;
        let more = now.since(self.filled).0 / EVERY;
        if more > 0 {
            self.left = self.left.saturating_add(more).min(MESSAGES_AT_ONCE);
            self.filled = now;
        }
        let some = self.left > 0;
        self.left -= u64::from(some);
        some
    }
}
