//! The one way in which a thread that handles packets sleeps and is woken, without a lock on the packets' path.
//!
//! The sleeper announces its sleep and then looks for work once more; the ringer leaves work and then looks whether the
//! other sleeps. A sequentially consistent fence stands between the two steps on both sides, so at least one of the two
//! sees the other, and no work is left to a sleeper. Lanes sleep in park, workers in poll(2): see [`Wake`].
//! `tests/doorbell_model.rs` runs this file under loom, which is why everything that synchronises comes from
//! `super::sync`.

use super::sync::{AtomicU8, Ordering, Thread, fence};

/// Ends a sleep. A wake-up before the sleep begins must end it at once, as with `unpark` and eventfd(2).
pub trait Wake {
    /// Ends the sleep that is going on, or else the next one.
    fn wake(&self);
}

impl Wake for Thread {
    fn wake(&self) {
        self.unpark();
    }
}

/// Events that end a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Work for the sleeper.
    Work,
    /// Work, or room at those to which the sleeper gives work.
    WorkOrRoom,
}

const AWAKE: u8 = 0;
const UNTIL_WORK: u8 = 1;
const UNTIL_WORK_OR_ROOM: u8 = 2;

/// The bell of one thread.
#[derive(Debug)]
pub struct Doorbell<W> {
    sleep: AtomicU8,
    waker: W,
}

impl<W: Wake> Doorbell<W> {
    /// The bell of the thread that `waker` wakes.
    pub fn new(waker: W) -> Doorbell<W> {
        Doorbell { sleep: AtomicU8::new(AWAKE), waker }
    }

    /// Wakes the sleeper, if it sleeps; to be called after work was left for it.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleep.load(Ordering::Relaxed) != AWAKE {
            self.wake_once();
        }
    }

    /// Wakes the sleeper, if it sleeps until there is room; to be called after room was made for what it gives.
    pub fn ring_for_room(&self) {
        fence(Ordering::SeqCst);
        if self.sleep.load(Ordering::Relaxed) == UNTIL_WORK_OR_ROOM {
            self.wake_once();
        }
    }

    /// Whether the sleeper sleeps, as far as can be seen.
    pub fn is_asleep(&self) -> bool {
        self.sleep.load(Ordering::Relaxed) != AWAKE
    }

    /// Wakes the sleeper even if it is only about to sleep and looks at nothing more: for what is rare and
    /// not among the work that it looks for.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Announces a sleep; whether the thread may sleep now, which it may not if `has_work` says so. Behind the sleep
    /// it calls [`Doorbell::wakes`].
    #[must_use]
    pub fn falls_asleep(&self, until: Until, has_work: impl FnOnce() -> bool) -> bool {
        let sleep = match until {
            Until::Work => UNTIL_WORK,
            Until::WorkOrRoom => UNTIL_WORK_OR_ROOM,
        };
        // A store would do; but loom lets a store pass a swap of the ringer's that has read an older value, and
        // reports a deadlock that cannot be.
        self.sleep.swap(sleep, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let may_sleep = !has_work();
        if !may_sleep {
            self.wakes();
        }
        may_sleep
    }

    /// Says that the thread is awake.
    pub fn wakes(&self) {
        self.sleep.store(AWAKE, Ordering::Relaxed);
    }

    /// The object that wakes the sleeper.
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Of several that ring at once, one wakes: the sleeper looks for all work when it is awake.
    fn wake_once(&self) {
        if self.sleep.swap(AWAKE, Ordering::Relaxed) != AWAKE {
            self.waker.wake();
        }
    }
}
