//! The lanes' doorbell in every interleaving of two threads, by loom, weak memory included.
//!
//! The queue is what the lanes' rings are to the bell: an index that one side stores with release and
//! the other loads with acquire, and nothing stronger. A lock there would order everything by itself
//! and hide a bell that does not.

// Twice on purpose: once as it is, once without what it stands on.
#![allow(clippy::duplicate_mod)]

/// The doorbell as it is.
#[path = "."]
mod real {
    pub mod sync {
        pub use loom::sync::atomic::{AtomicBool, Ordering, fence};
        pub use loom::thread::Thread;
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
        pub use loom::thread::Thread;

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

/// Jobs left so far.
type Ring = Arc<AtomicUsize>;

/// A lane takes `jobs` jobs while another thread leaves them, each by a call of the expression `leave`,
/// which sees the ring and the bell. loom reports a deadlock if a wake-up is ever lost: then the lane
/// sleeps for ever.
macro_rules! lane_takes {
    ($doorbell:ty, $jobs:expr, $leave:expr) => {{
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let ring: Ring = Arc::default();
            let bell = Arc::new(<$doorbell>::new(thread::current()));
            let (their_ring, their_bell) = (ring.clone(), bell.clone());
            let submitter = thread::spawn(move || {
                let leave: fn(&Ring, &$doorbell) = $leave;
                (0..$jobs).for_each(|_| leave(&their_ring, &their_bell));
            });
            let mut taken = 0;
            while taken < $jobs {
                let left = ring.load(Ordering::Acquire);
                if left == taken {
                    bell.sleep_unless(|| ring.load(Ordering::Acquire) > taken, thread::park);
                }
                taken = left;
            }
            submitter.join().unwrap();
        });
    }};
}

/// Only one thread leaves jobs, so it knows how many there are without a read-modify-write.
fn leave(ring: &Ring) {
    let left = ring.load(Ordering::Relaxed);
    ring.store(left + 1, Ordering::Release);
}

#[test]
fn no_job_is_left_to_a_sleeping_lane() {
    lane_takes!(real::doorbell::Doorbell, 2, |ring, bell| {
        leave(ring);
        bell.ring();
    });
}

/// A bell that is rung before the work is left: loom must find the lost wake-up.
#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_rung_too_early_is_found_out() {
    lane_takes!(real::doorbell::Doorbell, 1, |ring, bell| {
        bell.ring();
        leave(ring);
    });
}

/// Both sides look before they have made themselves seen, as store buffers allow.
#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_without_fences_is_found_out() {
    lane_takes!(fenceless::doorbell::Doorbell, 1, |ring, bell| {
        leave(ring);
        bell.ring();
    });
}

/// What the lane looks at only between two sleeps, not before it lies down: a new session, say.
macro_rules! lane_obeys {
    ($tell:ident) => {
        loom::model(|| {
            let order: Ring = Arc::default();
            let bell = Arc::new(real::doorbell::Doorbell::new(thread::current()));
            let (their_order, their_bell) = (order.clone(), bell.clone());
            let submitter = thread::spawn(move || {
                leave(&their_order);
                their_bell.$tell();
            });
            while order.load(Ordering::Acquire) == 0 {
                bell.sleep_unless(|| false, thread::park);
            }
            submitter.join().unwrap();
        })
    };
}

#[test]
fn an_order_wakes_a_lane_that_is_about_to_sleep() {
    lane_obeys!(wake);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_alone_may_miss_a_lane_that_is_about_to_sleep() {
    lane_obeys!(ring);
}
