//! How a sleeping lane is woken without a lock on the way of packets.
//!
//! The sleeper says that it sleeps and then looks for work once more; the ringer leaves work and
//! then looks whether anybody sleeps. Both orders are sequentially consistent, so at least one of
//! the two sees the other: work is never left to a sleeping lane. `tests/doorbell_model.rs` runs
//! this file under loom, which is why everything that synchronises comes from `super::sync`.

use super::sync::{AtomicBool, Ordering, Thread, fence};

/// The bell of one lane.
pub struct Doorbell {
    asleep: AtomicBool,
    sleeper: Thread,
}

impl Doorbell {
    /// The bell of the thread `sleeper`.
    pub fn new(sleeper: Thread) -> Doorbell {
        Doorbell { asleep: AtomicBool::new(false), sleeper }
    }

    /// Wakes the sleeper, if it sleeps; to be called after work was left for it.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.sleeper.unpark();
        }
    }

    /// Whether the sleeper sleeps, as far as can be seen.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wakes the sleeper even if it is only about to sleep and looks at nothing more: for what is rare and
    /// not among the work that it looks for.
    pub fn wake(&self) {
        self.sleeper.unpark();
    }

    /// Sleeps by `park` unless `has_work`; may return early, so callers look for work again.
    pub fn sleep_unless(&self, has_work: impl FnOnce() -> bool, park: impl FnOnce()) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_work() {
            park();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }
}
