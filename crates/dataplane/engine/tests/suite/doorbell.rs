//! Who is woken by a bell, step by step; `tests/doorbell_model.rs` goes through every interleaving of two threads.

use std::cell::Cell;

use forebay_engine::{Doorbell, Until, Wake};

#[derive(Default)]
struct Wakes(Cell<u32>);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A bell whose sleeper sleeps until then.
fn asleep(until: Until) -> Doorbell<Wakes> {
    let bell = Doorbell::new(Wakes::default());
    assert!(bell.falls_asleep(until, || false));
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
    bell.ring_for_room();
    assert_eq!((woken(&bell), bell.is_asleep()), (0, false));
    bell.wake();
    assert_eq!(woken(&bell), 1, "what it does not look for wakes it whatever it does");
}

#[test]
fn a_sleeper_is_woken_once_by_what_it_waits_for() {
    for until in [Until::Work, Until::WorkOrRoom] {
        let bell = asleep(until);
        bell.ring();
        bell.ring();
        assert_eq!((woken(&bell), bell.is_asleep()), (1, false), "{until:?}");
        let bell = asleep(until);
        bell.ring_for_room();
        let for_room = until == Until::WorkOrRoom;
        assert_eq!((woken(&bell), bell.is_asleep()), (u32::from(for_room), !for_room), "{until:?}");
        bell.ring();
        assert_eq!((woken(&bell), bell.is_asleep()), (1, false), "{until:?}");
    }
}

#[test]
fn one_with_work_does_not_fall_asleep() {
    let bell = Doorbell::new(Wakes::default());
    assert!(!bell.falls_asleep(Until::Work, || true));
    assert!(!bell.is_asleep());
    let bell = asleep(Until::Work);
    bell.wakes();
    bell.ring();
    assert_eq!((woken(&bell), bell.is_asleep()), (0, false));
}
