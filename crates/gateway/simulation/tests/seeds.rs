//! Seeds that must break no rule: the first ones, and those that have found a fault.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay_gateway_sim::{Plan, run};

/// Draws the plan of a seed with about so many events.
type Draw = fn(u64, u64) -> Plan;
/// A seed that has found something: with how many events, and what it was.
type Kept = (u64, u64, &'static str);

/// Seeds of every day; `SEEDS` changes it.
const SEEDS: u64 = 500;
/// Events of one, about: packets bring four times as many.
const EVENTS: u64 = 400;

/// The same of runs in which a gateway is a pair or a cluster; `SEEDS` changes it to a fifth of that.
const TWO_SEEDS: u64 = 100;

/// Seeds of pairs that have found something: with how many events, and what it was.
const KEPT_OF_PAIRS: &[Kept] = &[
    (
        39,
        2_000,
        "two packets of a burst counted as thousands a second, and after both machines had failed all were refused",
    ),
    (334, 2_000, "the same after a partition"),
    (
        65,
        2_000,
        "records that a full disk did not take were not sent again, and both machines waited for each other",
    ),
    (
        87,
        2_000,
        "a process that was killed before it had synced its last line, and a power failure behind the next start",
    ),
    (225, 2_000, "finds a data plane that is not told what the other machine did meanwhile"),
];

/// The same of clusters.
const KEPT_OF_CLUSTERS: &[Kept] = &[
    (1, 2_000, "a machine without the share had no route that discards what the file protects"),
    (373, 2_000, "after a reload that failed, a share that came back went on with the window of before"),
];

/// The same of pairs whose roles change.
const KEPT_OF_ROLES: &[Kept] = &[
    (15, 2_000, "an acceptance that was not needed had a machine leave its pair without another one"),
    (
        100_428,
        2_000,
        "a machine that was killed while it took an operator's acceptance had lost it, and none served",
    ),
];

/// The same of clusters with several shares.
const KEPT_OF_SHARES: &[Kept] = &[
    (
        24,
        2_000,
        "a machine that had started with a file which moved an SA never served that share again, whatever the file said later",
    ),
    (
        477,
        2_000,
        "an operator took a move back that no machine had refused; and a peer that was back by a new SA was not followed",
    ),
    (
        108_846,
        2_000,
        "a limit of a replay window that was taken back without an answer was granted again, and the record of it was late",
    ),
];

/// Seeds that have found something: with how many events, and what it was.
const KEPT: &[Kept] = &[
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

fn seeds() -> Option<u64> {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok())
}

/// Runs the plans of the first seeds, on all cores.
fn all_break_no_rule(seeds: u64, draw: Draw, word: &str) {
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            if let Err(violation) = run(&draw(seed, EVENTS)) {
                panic!(
                    "seed {seed}: {violation}\nforebay-gateway-sim {word} 1 {seed} {EVENTS} makes it short"
                );
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn seeds_break_no_rule() {
    all_break_no_rule(seeds().unwrap_or(SEEDS), Plan::draw, "");
}

#[test]
fn seeds_of_pairs_break_no_rule() {
    all_break_no_rule(seeds().map_or(TWO_SEEDS, |seeds| seeds / 5), Plan::draw_pair, "pairs");
}

#[test]
fn seeds_of_clusters_break_no_rule() {
    all_break_no_rule(seeds().map_or(TWO_SEEDS, |seeds| seeds / 5), Plan::draw_cluster, "clusters");
}

#[test]
fn seeds_of_pairs_whose_roles_change_break_no_rule() {
    all_break_no_rule(seeds().map_or(TWO_SEEDS, |seeds| seeds / 5), Plan::draw_roles, "roles");
}

#[test]
fn seeds_of_clusters_with_shares_break_no_rule() {
    all_break_no_rule(seeds().map_or(TWO_SEEDS, |seeds| seeds / 5), Plan::draw_shares, "shares");
}

#[test]
fn seeds_that_found_a_fault_break_no_rule() {
    let draws: [(&[Kept], Draw); 5] = [
        (KEPT, Plan::draw),
        (KEPT_OF_PAIRS, Plan::draw_pair),
        (KEPT_OF_ROLES, Plan::draw_roles),
        (KEPT_OF_CLUSTERS, Plan::draw_cluster),
        (KEPT_OF_SHARES, Plan::draw_shares),
    ];
    for (kept, draw) in draws {
        for &(seed, events, what) in kept {
            if let Err(violation) = run(&draw(seed, events)) {
                panic!("seed {seed}, {events} events, once: {what}: {violation}");
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..12 {
        let draws = [Plan::draw, Plan::draw_pair, Plan::draw_roles, Plan::draw_cluster, Plan::draw_shares];
        for plan in draws.map(|draw| draw(seed, 1_000)) {
            assert_eq!(run(&plan), run(&plan), "seed {seed}");
        }
    }
}
