//! The one way in which a thread that handles packets sleeps and is woken, without a lock on the packets' path.
//!
//! The sleeper announces its sleep and then looks for work once more; the ringer leaves work and then looks whether the
//! other sleeps. A sequentially consistent fence stands between the two steps on both sides, so at least one of the two
//! sees the other, and no work is left to a sleeper. Workers sleep in poll(2): see [`Wake`].
//! `tests/doorbell_model.rs` runs this file under loom, which is why everything that synchronises comes from
//! `super::sync`.

use super::sync::{AtomicBool, Ordering, fence};

/// Ends a sleep. A wake-up before the sleep begins must end it at once, as with `unpark` and eventfd(2).
pub trait Wake {
    /// Ends the sleep that is going on, or else the next one.
    fn wake(&self);
}

/// The bell of one thread.
#[derive(Debug)]
pub struct Doorbell<W> {
    asleep: AtomicBool,
    waker: W,
}

impl<W: Wake> Doorbell<W> {
    /// The bell of the thread that `waker` wakes.
    pub fn new(waker: W) -> Doorbell<W> {
        Doorbell { asleep: AtomicBool::new(false), waker }
    }

    /// Wakes the sleeper, if it sleeps; to be called after work was left for it.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_once();
        }
    }

    /// Whether the sleeper sleeps, as far as can be seen.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wakes the sleeper even if it is only about to sleep and looks at nothing more: for what is rare and
    /// not among the work that it looks for.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Announces a sleep; whether the thread may sleep now, which it may not if `has_work` says so. Behind the sleep
    /// it calls [`Doorbell::wakes`].
    #[must_use]
    pub fn falls_asleep(&self, has_work: impl FnOnce() -> bool) -> bool {
        // A store would do; but loom lets a store pass a swap of the ringer's that has read an older value, and
        // reports a deadlock that cannot be.
        self.asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let may_sleep = !has_work();
        if !may_sleep {
            self.wakes();
        }
        may_sleep
    }

    /// Says that the thread is awake.
    pub fn wakes(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// The object that wakes the sleeper.
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Of several that ring at once, one wakes: the sleeper looks for all work when it is awake.
    fn wake_once(&self) {
        if self.asleep.swap(false, Ordering::Relaxed) {
            self.waker.wake();
        }
    }
}
