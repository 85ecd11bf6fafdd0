//! Seeds that must break no rule: the first ones, and those that have found a fault.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay_gateway_sim::{Plan, run};

/// Seeds of every day; `SEEDS` changes it.
const SEEDS: u64 = 500;
/// Events of one, about: packets bring four times as many.
const EVENTS: u64 = 400;

/// Seeds that have found something: with how many events, and what it was.
const KEPT: &[(u64, u64, &str)] = &[
    (6, 2_000, "replay windows were empty after a restart: packets were delivered twice"),
    (0, 2_000, "packets that had been received before moved a peer"),
    (33, 2_000, "packets were delivered before their numbers were noted"),
    (45, 2_000, "a new outbound SA sent to where its peer was before it moved"),
    (295, 2_000, "a note was appended behind a torn line, and the gateway did not start again"),
    (
        1_001_660,
        5_600,
        "a reload took a window over before a dead processor's packets were delivered under it",
    ),
];

#[test]
fn seeds_break_no_rule() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            if let Err(violation) = run(&Plan::draw(seed, EVENTS)) {
                panic!("seed {seed}: {violation}\nforebay-gateway-sim 1 {seed} {EVENTS} makes it short");
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn seeds_that_found_a_fault_break_no_rule() {
    for &(seed, events, what) in KEPT {
        if let Err(violation) = run(&Plan::draw(seed, events)) {
            panic!("seed {seed}, {events} events, once: {what}: {violation}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..12 {
        let plan = Plan::draw(seed, 1_000);
        assert_eq!(run(&plan), run(&plan), "seed {seed}");
    }
}
