//! The clocks of a simulated host: monotonic time since its process began, and the time of day.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as StdDuration;

use forebay_engine::Clock;
use forebay_time::{Duration, Time};

/// What one look at the clock takes.
const LOOK: Duration = Duration::from_nanos(20);
/// The time of day at the begin of a run, in nanoseconds since the Unix epoch: some moment in 2026.
const EPOCH_NS: i128 = 1_780_000_000_000_000_000;

thread_local! {
    /// Cells of clocks that are no longer used: a clock's cell lives as long as the program.
    static SPARE: RefCell<Vec<&'static AtomicU64>> = const { RefCell::new(Vec::new()) };
    /// The host that runs at present: its cell, and the time of day at which that was zero.
    static RUNS: Cell<Option<(&'static AtomicU64, i128)>> = const { Cell::new(None) };
}

/// The clocks of one process on a simulated host.
#[derive(Debug)]
pub struct HostClock {
    cell: &'static AtomicU64,
    /// The time of the simulation at which the process began.
    began: Time,
    /// By how much the host's time of day is wrong, in nanoseconds.
    skew_ns: i128,
}

impl HostClock {
    /// The clocks of a process that begins at `now`.
    pub fn new(now: Time, skew_ns: i128) -> HostClock {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let cell = spare.unwrap_or_else(|| Box::leak(Box::new(AtomicU64::new(0))));
        cell.store(0, Ordering::Relaxed);
        HostClock { cell, began: now, skew_ns }
    }

    /// The clock for the engine.
    pub fn clock(&self) -> Clock {
        Clock::simulated(self.cell, LOOK)
    }

    /// The cell, for what takes time by itself.
    pub fn cell(&self) -> &'static AtomicU64 {
        self.cell
    }

    /// Steps the time of day.
    pub fn step(&mut self, by_ns: i128) {
        self.skew_ns += by_ns;
    }

    /// By how much the time of day is wrong, in nanoseconds.
    pub fn skew_ns(&self) -> i128 {
        self.skew_ns
    }

    /// Lets the process run at `now`, or later if it is still busy with something earlier.
    pub fn enter(&self, now: Time) {
        self.cell.fetch_max(now.since(self.began).0, Ordering::Relaxed);
        let zero = EPOCH_NS + i128::from(self.began.0 / 1_000) + self.skew_ns;
        RUNS.set(Some((self.cell, zero)));
    }

    /// The time of the simulation until which the process was busy.
    pub fn now(&self) -> Time {
        self.began + Duration(self.cell.load(Ordering::Relaxed))
    }

    /// For a part of the process that runs by itself.
    pub fn turn(&self) -> Turn {
        Turn { cell: self.cell, began: self.began, zero: EPOCH_NS + i128::from(self.began.0 / 1_000) }
    }
}

/// A host whose turn it is to run: for code that knows nothing of the simulation's hosts.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    cell: &'static AtomicU64,
    began: Time,
    zero: i128,
}

impl Turn {
    /// The time of the simulation until which the process was busy.
    pub fn now(&self) -> Time {
        self.began + Duration(self.cell.load(Ordering::Relaxed))
    }

    /// Lets the process run at `now` while `work` is done; then whoever ran before runs again.
    pub fn run<T>(&self, now: Time, work: impl FnOnce() -> T) -> T {
        self.cell.fetch_max(now.since(self.began).0, Ordering::Relaxed);
        let before = RUNS.replace(Some((self.cell, self.zero)));
        let done = work();
        RUNS.set(before);
        done
    }
}

impl Drop for HostClock {
    fn drop(&mut self) {
        SPARE.with_borrow_mut(|spare| spare.push(self.cell));
    }
}

/// Time since the process that runs at present began, which nobody sets.
pub fn monotonic() -> StdDuration {
    RUNS.get()
        .map_or(StdDuration::ZERO, |(cell, _)| StdDuration::from_nanos(cell.load(Ordering::Relaxed) / 1_000))
}

/// The time of day of the host that runs at present, since the Unix epoch.
pub fn unix_time() -> StdDuration {
    let Some((cell, zero)) = RUNS.get() else { return StdDuration::ZERO };
    let now = zero + i128::from(cell.load(Ordering::Relaxed) / 1_000);
    StdDuration::from_nanos(u64::try_from(now).unwrap_or(0))
}
