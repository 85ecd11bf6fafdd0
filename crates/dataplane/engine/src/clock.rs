//! The clock, as the rest of Forebay sees it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration as StdDuration, Instant};

use forebay_time::{Duration, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock that counts from its own start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Machine(Instant),
    Thread(Duration),
    Told(&'static AtomicU64),
    Virtual(&'static AtomicU64, Duration),
}

impl Clock {
    /// The machine's monotonic clock, which reads zero now.
    #[allow(clippy::disallowed_methods)] // the engine is where time comes from
    pub fn start() -> Clock {
        Clock { origin: Origin::Machine(Instant::now()) }
    }

    /// A clock that reads zero now and stands still while the thread that reads it does not run: what a
    /// thread measures by it is the same however busy the machine is with others. Each thread has its own
    /// time, so this is none for an engine with lanes.
    pub fn of_this_thread() -> Clock {
        Clock { origin: Origin::Thread(thread_time()) }
    }

    /// A clock that reads the value of `picoseconds`: for measurements and tests whose time must not depend on the
    /// machine.
    pub fn told(picoseconds: &'static AtomicU64) -> Clock {
        Clock { origin: Origin::Told(picoseconds) }
    }

    /// A clock of virtual time, in picoseconds, which the simulation advances. Each reading advances it by `look`, so
    /// that a loop that reads it until a given time terminates.
    pub fn simulated(picoseconds: &'static AtomicU64, look: Duration) -> Clock {
        Clock { origin: Origin::Virtual(picoseconds, look) }
    }

    /// How long the calling thread has been running, from an origin of its own.
    pub fn running(&self) -> Duration {
        match self.origin {
            Origin::Machine(_) | Origin::Thread(_) => cpu_time(),
            Origin::Told(_) | Origin::Virtual(..) => self.now().since(Time::ZERO),
        }
    }

    /// The time since the start.
    #[inline]
    pub fn now(&self) -> Time {
        match self.origin {
            Origin::Machine(origin) => Time::ZERO + Duration::from_nanos(origin.elapsed().as_nanos() as u64),
            Origin::Thread(origin) => Time::ZERO + (thread_time() - origin),
            Origin::Told(time) => Time(time.load(Ordering::Relaxed)),
            Origin::Virtual(time, look) => Time(time.fetch_add(look.0, Ordering::Relaxed)),
        }
    }
}

/// A longer step between two looks at the machine's clock may mean that the thread was not running: the
/// kernel does not switch to another and back in less.
const STEP: StdDuration = StdDuration::from_micros(4);

/// Where a thread's time stood when it was last looked at.
#[derive(Clone, Copy)]
struct Pace {
    seen: Instant,
    time: Duration,
}

thread_local! {
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
}

/// How long the calling thread has been running, as the kernel knows it.
fn cpu_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(tv_sec as u64 * 1_000_000_000 + tv_nsec as u64)
}

/// The same. To ask the kernel takes longer than much of what is timed; so it is asked only where the machine's
/// clock has made a step.
#[allow(clippy::disallowed_methods)] // the engine is where time comes from
fn thread_time() -> Duration {
    let seen = Instant::now();
    let before = PACE.get();
    let time = match before.map(|pace| (pace, seen - pace.seen)) {
        Some((pace, step)) if step < STEP => pace.time + Duration::from_nanos(step.as_nanos() as u64),
        _ => {
            let told = cpu_time();
            // Never back: interruptions too short to be a step have counted as running.
            before.map_or(told, |pace| told.max(pace.time))
        }
    };
    PACE.set(Some(Pace { seen, time }));
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods)] // what is to be seen is that sleeping does not count
    fn a_thread_that_sleeps_has_no_time() {
        let (machine, thread) = (Clock::start(), Clock::of_this_thread());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (machine, thread) = (machine.now().since(Time::ZERO), thread.now().since(Time::ZERO));
        assert!(thread.times(2) < machine, "{thread:?} of {machine:?}: the thread has not been running");
    }
}
