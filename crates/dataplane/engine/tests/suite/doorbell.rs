//! Who is woken by a bell, step by step; `tests/doorbell_model.rs` goes through every interleaving of two threads.

use std::cell::Cell;

use forebay_engine::{Doorbell, Wake};

#[derive(Default)]
struct Wakes(Cell<u32>);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A bell whose owner sleeps.
fn asleep() -> Doorbell<Wakes> {
    let bell = Doorbell::new(Wakes::default());
    assert!(bell.falls_asleep(|| false));
    assert!(bell.is_asleep());
    bell
}

fn woken(bell: &Doorbell<Wakes>) -> u32 {
    bell.waker().0.get()
}

#[test]
fn one_that_is_awake_is_not_woken_by_work() {
    let bell = Doorbell::new(Wakes::default());
    bell.ring();
    assert_eq!((woken(&bell), bell.is_asleep()), (0, false));
    bell.wake();
    assert_eq!(woken(&bell), 1, "what it does not look for wakes it whatever it does");
}

#[test]
fn a_sleeper_is_woken_once() {
    let bell = asleep();
    bell.ring();
    bell.ring();
    assert_eq!((woken(&bell), bell.is_asleep()), (1, false));
}

#[test]
fn one_with_work_does_not_fall_asleep() {
    let bell = Doorbell::new(Wakes::default());
    assert!(!bell.falls_asleep(|| true));
    assert!(!bell.is_asleep());
    let bell = asleep();
    bell.wakes();
    bell.ring();
    assert_eq!((woken(&bell), bell.is_asleep()), (0, false));
}
