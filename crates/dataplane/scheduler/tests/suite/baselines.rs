//! The policies that are there to be compared with, on bursts: who gets which jobs.

use forebay_scheduler::{Config, Cost, Decision, Item, Policy, ProcessorConfig, Scheduler};
use forebay_time::{Duration, Time};

const NOW: Time = Time(1_000);

/// A scheduler of bursts with three cores, each of which computes `lanes` jobs side by side.
fn scheduler(policy: Policy, lanes: u32, queue: usize) -> Scheduler {
    let cost = Cost { init: Duration(1_000), lanes, ..Cost::default() };
    let core = ProcessorConfig { queue, ..ProcessorConfig::cpu(cost) };
    Scheduler::new(Config { policy, batch: 64, ..Config::new(vec![core; 3]) }).unwrap()
}

/// Adds a burst of these sizes, and gives who gets which packets of it.
fn placed(s: &mut Scheduler, sizes: &[u32]) -> Vec<(usize, Vec<u64>)> {
    for (id, &bytes) in sizes.iter().enumerate() {
        s.push(NOW, Item { id: id as u64, sa: 1, class: 0, suite: 0, bytes }).unwrap();
    }
    let mut shares = Vec::new();
    while let Decision::Dispatch { processor, job, .. } = s.next(NOW) {
        shares.push((processor, job.items().to_vec()));
    }
    shares
}

#[test]
fn single_gives_all_to_one_while_it_has_room() {
    let mut s = scheduler(Policy::Single { processor: 2 }, 1, 2);
    assert_eq!(placed(&mut s, &[64; 5]), [(2, vec![0, 1, 2, 3, 4])]);
    assert_eq!(placed(&mut s, &[64; 2]), [(2, vec![0, 1])]);
    assert_eq!(placed(&mut s, &[64; 1]), []);
    assert!(matches!(s.next(NOW), Decision::Blocked { .. }));
    s.complete(2, 1, NOW);
    assert_eq!(placed(&mut s, &[]), [(2, vec![0])]);
}

#[test]
fn round_robin_divides_a_burst_in_equal_parts_and_goes_on_where_it_was() {
    let mut s = scheduler(Policy::RoundRobin, 1, 9);
    let parts = [(0, vec![0, 1, 2, 3]), (1, vec![4, 5, 6, 7]), (2, vec![8, 9])];
    assert_eq!(placed(&mut s, &[64; 10]), parts);
    assert_eq!(placed(&mut s, &[64; 2]), [(0, vec![0]), (1, vec![1])]);
    assert_eq!(placed(&mut s, &[64; 2]), [(2, vec![0]), (0, vec![1])]);
    // Whole groups of those that compute four side by side.
    let mut s = scheduler(Policy::RoundRobin, 4, 9);
    assert_eq!(placed(&mut s, &[64; 6]), [(0, vec![0, 1, 2, 3]), (1, vec![4, 5])]);
}

#[test]
fn shortest_queue_counts_what_is_not_finished() {
    let mut s = scheduler(Policy::ShortestQueue, 1, 2);
    assert_eq!(placed(&mut s, &[64]), [(0, vec![0])]);
    assert_eq!(placed(&mut s, &[64; 3]), [(1, vec![0]), (2, vec![1]), (0, vec![2])]);
    s.complete(2, 1, NOW);
    // The first has no room: what is left is divided between two, and begins where nothing is.
    assert_eq!(placed(&mut s, &[64; 4]), [(2, vec![0, 1]), (1, vec![2, 3])]);
    assert_eq!(placed(&mut s, &[64; 2]), [(2, vec![0, 1])]);
    assert_eq!(placed(&mut s, &[64; 2]), []);
}

#[test]
fn a_threshold_gives_runs_of_small_and_of_large_packets() {
    let mut s = scheduler(Policy::SizeThreshold { bytes: 256, small: 1, large: 2 }, 1, 9);
    let sizes = [255, 40, 256, 1_400, 64];
    assert_eq!(placed(&mut s, &sizes), [(1, vec![0, 1]), (2, vec![2, 3]), (1, vec![4])]);
}
