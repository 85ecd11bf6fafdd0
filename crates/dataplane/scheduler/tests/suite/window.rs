//! The sliding window: by hand, and against a plain list of packets.

use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Scheduler};
use forebay_time::{Duration, Time};
use proptest::prelude::*;

fn scheduler(window: usize, timeout: Option<u64>, max_bytes: Option<u64>, input: usize) -> Scheduler {
    let card = ProcessorConfig { queue: 100_000, ..ProcessorConfig::accelerator(Cost::default()) };
    let timeout = timeout.map(Duration);
    Scheduler::new(Config { window, timeout, max_bytes, input, ..Config::new(vec![card]) }).unwrap()
}

fn item(id: u64, sa: u32, bytes: u32) -> Item {
    Item { id, sa, class: 0, suite: 0, bytes }
}

/// Places all that can leave now; the ids by job, and how it ended.
fn drain(scheduler: &mut Scheduler, now: u64) -> (Vec<Vec<u64>>, Option<u64>) {
    let mut jobs = Vec::new();
    loop {
        match scheduler.next(Time(now)) {
            Decision::Dispatch { job, .. } => jobs.push(job.items().to_vec()),
            Decision::Wait { until } => return (jobs, Some(until.0)),
            Decision::Idle => return (jobs, None),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_full_window_sends_the_packets_of_the_first_sa() {
    let mut s = scheduler(3, None, None, 100);
    for (id, sa) in [(0, 7), (1, 8)] {
        s.push(Time(0), item(id, sa, 100)).unwrap();
    }
    assert_eq!(drain(&mut s, 0), (vec![], Some(u64::MAX)));
    for (id, sa) in [(2, 7), (3, 7), (4, 9), (5, 8)] {
        s.push(Time(0), item(id, sa, 100)).unwrap();
    }
    // 7 8 7 | 7 9 8: 0 and 2 leave; 8 7 9 | 8: 1 leaves, 5 is outside; 7 9 8: 3 leaves.
    assert_eq!(drain(&mut s, 0), (vec![vec![0, 2], vec![1], vec![3]], Some(u64::MAX)));
    s.end_of_input();
    assert_eq!(drain(&mut s, 0), (vec![vec![4], vec![5]], None));
    // A push opens the input again.
    s.push(Time(0), item(6, 9, 100)).unwrap();
    assert_eq!(drain(&mut s, 0), (vec![], Some(u64::MAX)));
}

#[test]
fn the_timeout_counts_from_the_arrival_of_each_reference() {
    let mut s = scheduler(4, Some(50), None, 100);
    s.push(Time(0), item(0, 1, 100)).unwrap();
    s.push(Time(10), item(1, 2, 100)).unwrap();
    s.push(Time(49), item(2, 1, 100)).unwrap();
    assert_eq!(drain(&mut s, 49), (vec![], Some(50)));
    assert_eq!(drain(&mut s, 50), (vec![vec![0, 2]], Some(60)));
    s.push(Time(55), item(3, 1, 100)).unwrap();
    // The reference has been there since 10, not since it became the reference.
    assert_eq!(drain(&mut s, 60), (vec![vec![1]], Some(105)));
    assert_eq!(drain(&mut s, 200), (vec![vec![3]], None));
}

#[test]
fn a_bundle_of_max_bytes_leaves_before_the_window_is_full() {
    let mut s = scheduler(10, None, Some(250), 100);
    s.push(Time(0), item(0, 1, 100)).unwrap();
    s.push(Time(0), item(1, 1, 100)).unwrap();
    assert_eq!(drain(&mut s, 0), (vec![], Some(u64::MAX)));
    // The third would make 300: it closes the job and begins the next; a smaller one behind it
    // does not overtake it.
    s.push(Time(0), item(2, 1, 100)).unwrap();
    s.push(Time(0), item(3, 1, 10)).unwrap();
    assert_eq!(drain(&mut s, 0), (vec![vec![0, 1]], Some(u64::MAX)));
    s.push(Time(0), item(4, 1, 140)).unwrap();
    assert_eq!(drain(&mut s, 0), (vec![vec![2, 3, 4]], None), "exactly 250");
    s.push(Time(0), item(5, 1, 9_000)).unwrap();
    assert_eq!(drain(&mut s, 0), (vec![vec![5]], None), "alone, as large as it is");
}

#[test]
fn a_full_input_gives_the_packet_back() {
    let mut s = scheduler(2, None, None, 3);
    for id in 0..3 {
        s.push(Time(0), item(id, id as u32, 1)).unwrap();
    }
    assert_eq!((s.input_len(), s.input_room()), (3, 0));
    assert_eq!(s.push(Time(0), item(3, 3, 1)), Err(item(3, 3, 1)));
    assert_eq!(drain(&mut s, 0), (vec![vec![0], vec![1]], Some(u64::MAX)));
    assert_eq!(s.push(Time(0), item(3, 3, 1)), Ok(()));
}

/// The rule word by word, over a list that is searched from the front.
struct Oracle {
    window: usize,
    timeout: Option<u64>,
    max_bytes: u64,
    ended: bool,
    input: Vec<(Item, u64)>,
}

impl Oracle {
    /// The ids of the next job, or until when to wait; `None` if there is nothing.
    fn take(&mut self, now: u64) -> Option<Result<Vec<u64>, u64>> {
        let (reference, arrived) = *self.input.first()?;
        let window = &self.input[..self.window.min(self.input.len())];
        let same: Vec<Item> = window.iter().map(|p| p.0).filter(|p| p.sa == reference.sa).collect();
        let bytes = |packets: &[Item]| packets.iter().map(|p| u64::from(p.bytes)).sum::<u64>();
        let due = self.timeout.map_or(u64::MAX, |timeout| arrived + timeout);
        let full = self.input.len() >= self.window;
        if !(full || self.ended || now >= due || bytes(&same) >= self.max_bytes) {
            return Some(Err(due));
        }
        let fit = (2..=same.len()).take_while(|&n| bytes(&same[..n]) <= self.max_bytes).last().unwrap_or(1);
        let ids: Vec<u64> = same[..fit].iter().map(|p| p.id).collect();
        self.input.retain(|p| !ids.contains(&p.0.id));
        Some(Ok(ids))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { sa: u32, bytes: u32 },
    Pass(u64),
    Take(usize),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u32..5, 0u32..300).prop_map(|(sa, bytes)| Step::Push { sa, bytes }),
        2 => (0u64..40).prop_map(Step::Pass),
        3 => (1usize..6).prop_map(Step::Take),
        1 => Just(Step::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_rule_word_by_word(
        window in 1usize..9,
        timeout in prop::option::of(0u64..100),
        max_bytes in prop::option::of(0u64..700),
        beyond in 0usize..20,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let limit = window + beyond;
        let mut s = scheduler(window, timeout, max_bytes, limit);
        let max = max_bytes.unwrap_or(u64::MAX);
        let mut oracle = Oracle { window, timeout, max_bytes: max, ended: false, input: vec![] };
        let mut now = 0;
        let mut left: Vec<Item> = vec![];
        let mut pushed: Vec<Item> = vec![];
        for (id, step) in steps.into_iter().chain([Step::End, Step::Take(1_000)]).enumerate() {
            match step {
                Step::Push { sa, bytes } => {
                    let item = item(id as u64, sa, bytes);
                    let taken = s.push(Time(now), item).is_ok();
                    prop_assert_eq!(taken, oracle.input.len() < limit);
                    if taken {
                        oracle.input.push((item, now));
                        oracle.ended = false;
                        pushed.push(item);
                    }
                }
                Step::Pass(time) => now += time,
                Step::End => {
                    s.end_of_input();
                    oracle.ended = true;
                }
                Step::Take(count) => for _ in 0..count {
                    let found = match s.next(Time(now)) {
                        Decision::Dispatch { job, .. } => {
                            let of_job: Vec<Item> = job.items().iter()
                                .map(|id| *pushed.iter().find(|p| p.id == *id).unwrap()).collect();
                            prop_assert!(of_job.len() <= window);
                            prop_assert!(job.head.work.bytes <= max || of_job.len() == 1);
                            prop_assert!(of_job.iter().all(|p| p.sa == job.head.sa));
                            left.extend(of_job);
                            Some(Ok(job.items().to_vec()))
                        }
                        Decision::Wait { until } => Some(Err(until.0)),
                        Decision::Idle => None,
                        other => panic!("{other:?}"),
                    };
                    prop_assert_eq!(found, oracle.take(now));
                    prop_assert_eq!(s.input_len(), oracle.input.len());
                },
            }
        }
        // Each once, and in order within its SA.
        pushed.sort_by_key(|p| (p.sa, p.id));
        left.sort_by_key(|p| p.sa);
        prop_assert_eq!(left, pushed);
    }
}
