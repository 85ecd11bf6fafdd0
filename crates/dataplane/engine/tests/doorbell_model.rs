//! The doorbell in every interleaving of two threads, by loom, weak memory included: a worker sleeps in poll(2), and
//! another thread leaves work for it.
//!
//! Queues are to the bell an index that one side stores with release and the other loads with
//! acquire, and nothing stronger. A lock there would order everything by itself and hide a bell that does not. loom
//! reports a deadlock if a wake-up is ever lost: then a thread sleeps for ever.
//!
//! For each rule of the protocol there is a fault that breaks it alone, which loom has to find.

// Twice on purpose: once as it is, once without what it stands on.
#![allow(clippy::duplicate_mod)]

/// The doorbell as it is.
#[path = "."]
mod real {
    pub mod sync {
        pub use loom::sync::atomic::{AtomicBool, Ordering, fence};
    }
    #[allow(dead_code)]
    #[path = "../src/doorbell.rs"]
    pub mod doorbell;
}

/// The same without its fences, which has to be found out.
#[path = "."]
mod fenceless {
    pub mod sync {
        pub use loom::sync::atomic::{AtomicBool, Ordering};

        pub fn fence(_: Ordering) {}
    }
    #[allow(dead_code)]
    #[path = "../src/doorbell.rs"]
    pub mod doorbell;
}

// Not loom's, whose drop panics once more while a deadlock that was found unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// Jobs left so far, or taken so far.
type Count = Arc<AtomicUsize>;

/// Only one thread counts, so it knows the count without a read-modify-write.
fn count(counter: &Count) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before + 1, Ordering::Release);
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An eventfd(2) with poll(2): it remembers a wake-up until it is read.
#[derive(Default)]
struct Descriptor {
    is_rung: loom::sync::Mutex<bool>,
    changed: loom::sync::Condvar,
}

impl Descriptor {
    fn set(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Sleeps until it is set, and reads it.
    fn poll(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = self.changed.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }
}

impl real::doorbell::Wake for Descriptor {
    fn wake(&self) {
        self.set();
    }
}

impl fenceless::doorbell::Wake for Descriptor {
    fn wake(&self) {
        self.set();
    }
}

/// A worker takes `$jobs` jobs while another thread leaves them. `$leave` leaves one, by the ring and the bell; `$sleep`
/// sleeps unless there is something, by the bell and a closure that says so.
macro_rules! worker_takes {
    ($model:ident, $jobs:expr, $leave:expr, $sleep:expr) => {{
        use $model::doorbell::Doorbell;
        check(|| {
            let ring: Count = Arc::default();
            let bell = Arc::new(Doorbell::new(Descriptor::default()));
            let (their_ring, their_bell) = (ring.clone(), bell.clone());
            let submitter = thread::spawn(move || {
                let leave: fn(&Count, &Doorbell<Descriptor>) = $leave;
                (0..$jobs).for_each(|_| leave(&their_ring, &their_bell));
            });
            let sleep: fn(&Doorbell<Descriptor>, &dyn Fn() -> bool) = $sleep;
            let mut taken = 0;
            while taken < $jobs {
                let left = ring.load(Ordering::Acquire);
                if left == taken {
                    sleep(&bell, &|| ring.load(Ordering::Acquire) > taken);
                }
                taken = left;
            }
            submitter.join().unwrap();
        });
    }};
    ($model:ident, $jobs:expr, $leave:expr) => {
        worker_takes!($model, $jobs, $leave, |bell, has_work| {
            if bell.falls_asleep(has_work) {
                bell.waker().poll();
                bell.wakes();
            }
        })
    };
}

#[test]
fn no_job_is_left_to_a_sleeping_worker() {
    worker_takes!(real, 2, |ring, bell| {
        count(ring);
        bell.ring();
    });
}

/// A bell that is rung before the work is left.
#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_rung_too_early_is_found() {
    worker_takes!(real, 1, |ring, bell| {
        bell.ring();
        count(ring);
    });
}

/// Both sides look before they have made themselves seen, as store buffers allow.
#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_without_fences_is_found() {
    worker_takes!(fenceless, 1, |ring, bell| {
        count(ring);
        bell.ring();
    });
}

/// A sleeper that looks for work before it announces its sleep.
#[test]
#[should_panic(expected = "deadlock")]
fn a_look_for_work_before_the_announcement_is_found() {
    worker_takes!(
        real,
        1,
        |ring, bell| {
            count(ring);
            bell.ring();
        },
        |bell, has_work| {
            if !has_work() && bell.falls_asleep(|| false) {
                bell.waker().poll();
                bell.wakes();
            }
        }
    );
}

/// A sleeper that does not announce its sleep.
#[test]
#[should_panic(expected = "deadlock")]
fn a_sleep_that_is_not_announced_is_found() {
    worker_takes!(
        real,
        1,
        |ring, bell| {
            count(ring);
            bell.ring();
        },
        |bell, has_work| {
            if !has_work() {
                bell.waker().poll();
            }
        }
    );
}

/// What the worker looks at only between two sleeps, not before it lies down: an order, say.
macro_rules! worker_obeys {
    ($tell:ident) => {
        loom::model(|| {
            use real::doorbell::Doorbell;
            let order: Count = Arc::default();
            let bell = Arc::new(Doorbell::new(Descriptor::default()));
            let (their_order, their_bell) = (order.clone(), bell.clone());
            let submitter = thread::spawn(move || {
                count(&their_order);
                their_bell.$tell();
            });
            while order.load(Ordering::Acquire) == 0 {
                if bell.falls_asleep(|| false) {
                    bell.waker().poll();
                    bell.wakes();
                }
            }
            submitter.join().unwrap();
        })
    };
}

#[test]
fn an_order_wakes_a_worker_that_is_about_to_sleep() {
    worker_obeys!(wake);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_alone_may_miss_a_worker_that_is_about_to_sleep() {
    worker_obeys!(ring);
}
