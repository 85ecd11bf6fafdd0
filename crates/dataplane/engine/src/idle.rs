//! How a polling loop waits while it has nothing to do.

use std::time::Duration as StdDuration;

/// Idle turns before the first sleep: some tens of microseconds, the usual gap between packets.
const SPINS: u32 = 64;
/// Length of a sleep. The kernel adds its timer slack, so that it is some 70 us in all: less than a
/// card of the papers takes for a packet.
const SLEEP: StdDuration = StdDuration::from_micros(10);

/// Spins for a short gap, sleeps through a long one.
///
/// Sleeping beats yielding: on a machine with other work a thread that yields waits for the others'
/// whole time slices, milliseconds, while one that wakes up goes first.
#[derive(Debug, Default)]
pub struct Idle {
    turns: u32,
}

impl Idle {
    /// Tells how the last poll went, and rests a little if it was one of many with nothing to do.
    #[allow(clippy::disallowed_methods)] // the engine may wait
    pub fn after(&mut self, worked: bool) {
        if worked {
            self.turns = 0;
            return;
        }
        self.turns = self.turns.saturating_add(1);
        if self.turns < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}
