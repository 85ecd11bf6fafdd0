//! The turnstile in every interleaving of two threads, by loom, weak memory included: each passes twice, as a core does with a
//! burst, and what one leaves the next one finds.

/// The turnstile as it is.
#[path = "."]
mod real {
    pub mod sync {
        pub use loom::hint::spin_loop;
        pub use loom::sync::{Mutex, MutexGuard};
        pub use loom::thread::yield_now;
    }
    #[allow(dead_code)]
    #[path = "../src/turnstile.rs"]
    pub mod turnstile;
}

use std::sync::Arc;

use loom::thread;
use real::turnstile::Turnstile;

/// What stands behind it: tickets drawn, and tickets done.
#[derive(Default)]
struct Inside {
    drawn: u32,
    done: Vec<u32>,
}

fn burst(turnstile: &Turnstile<Inside>) {
    let ticket = {
        let mut inside = turnstile.pass();
        inside.drawn += 1;
        inside.drawn
    };
    turnstile.pass().done.push(ticket);
}

fn check(first: fn(&Turnstile<Inside>), second: fn(&Turnstile<Inside>), expected: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let turnstile = Arc::new(Turnstile::new(Inside::default()));
        let theirs = turnstile.clone();
        let other = thread::spawn(move || second(&theirs));
        first(&turnstile);
        other.join().unwrap();
        let mut inside = turnstile.pass();
        inside.done.sort_unstable();
        assert!(inside.done.iter().copied().eq(1..=inside.drawn) && inside.done.len() == expected);
    });
}

#[test]
fn two_cores_that_pass_twice_each_lose_nothing() {
    check(burst, burst, 2);
}

/// Who only tries goes on without having been inside, or has been inside alone.
#[test]
fn one_that_only_tries_disturbs_nobody() {
    let tries = |turnstile: &Turnstile<Inside>| {
        if let Some(mut inside) = turnstile.try_pass() {
            inside.drawn += 1;
            let ticket = inside.drawn;
            inside.done.push(ticket);
            inside.done.pop();
            inside.drawn -= 1;
        }
    };
    check(burst, tries, 1);
}
