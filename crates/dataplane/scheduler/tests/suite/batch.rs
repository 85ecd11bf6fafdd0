//! Batches: bursts are shared out so that the last of their jobs is done first.

use forebay_scheduler::{
    ClassConfig, Config, Cost, Decision, Item, Kind, Policy, ProcessorConfig, Progress, Scheduler, Service,
    Transfer, Work,
};
use forebay_time::{Duration, Time};
use proptest::prelude::*;

fn cost(init: u64, lanes: u32) -> Cost {
    Cost { init: Duration(init), block: Duration::ZERO, lanes, ..Cost::default() }
}

fn core(cost: Cost) -> ProcessorConfig {
    ProcessorConfig { progress: Progress::InOrder, ..ProcessorConfig::cpu(cost) }
}

fn scheduler(processors: Vec<ProcessorConfig>, batch: usize) -> Scheduler {
    Scheduler::new(Config { batch, ..Config::new(processors) }).unwrap()
}

fn item(id: u64, bytes: u32) -> Item {
    Item { id, sa: 1, class: 0, suite: 0, bytes }
}

/// Pushes packets and places them; processor, packets and predicted end of each share.
fn place(s: &mut Scheduler, now: Time, sizes: &[u32]) -> Vec<(usize, Vec<u64>, Time)> {
    for (id, &bytes) in sizes.iter().enumerate() {
        s.push(now, item(id as u64, bytes)).unwrap();
    }
    let mut shares = Vec::new();
    loop {
        match s.next(now) {
            Decision::Dispatch { processor, job, prediction, .. } => {
                assert_eq!(job.parts().len(), job.items().len());
                assert_eq!(job.parts().iter().map(|part| part.bytes).sum::<u64>(), job.head.work.bytes);
                shares.push((processor, job.items().to_vec(), prediction.finish()));
            }
            Decision::Idle => return shares,
            other => panic!("{other:?}"),
        }
    }
}

fn jobs_of(shares: &[(usize, Vec<u64>, Time)], processor: usize) -> usize {
    shares.iter().filter(|(one, ..)| *one == processor).map(|(_, items, _)| items.len()).sum()
}

#[test]
fn two_equal_cores_share_a_burst_by_whole_groups() {
    let mut s = scheduler(vec![core(cost(179_000, 16)), core(cost(179_000, 16))], 64);
    let shares = place(&mut s, Time::ZERO, &[1_400; 32]);
    assert_eq!((jobs_of(&shares, 0), jobs_of(&shares, 1)), (16, 16));
    assert_eq!(shares.iter().map(|(.., finish)| *finish).max(), Some(Time(179_000)));
    // Order within the burst is that of arrival.
    let all: Vec<u64> = shares.iter().flat_map(|(_, items, _)| items.iter().copied()).collect();
    assert_eq!(all, (0..32).collect::<Vec<u64>>());
}

#[test]
fn a_burst_that_fits_one_group_is_not_divided() {
    let mut s = scheduler(vec![core(cost(179_000, 16)), core(cost(179_000, 16))], 64);
    let shares = place(&mut s, Time::ZERO, &[1_400; 12]);
    assert_eq!(shares.len(), 1);
}

#[test]
fn what_opens_a_batch_and_wakes_a_processor_counts_once() {
    let slow = Cost { submit: Duration(5_000), wake: Duration(20_000), ..cost(1_000, 1) };
    let mut s = scheduler(vec![core(cost(1_000, 1)), core(slow)], 64);
    // 16 jobs: the core alone takes 16 us, the other cannot have one before 26.
    assert_eq!(jobs_of(&place(&mut s, Time::ZERO, &[64; 16]), 1), 0);
    let mut s = scheduler(vec![core(cost(1_000, 1)), core(slow)], 64);
    let shares = place(&mut s, Time::ZERO, &[64; 64]);
    let theirs = jobs_of(&shares, 1);
    // 64 - n and 25 + n: n = 19.5.
    assert!((16..=22).contains(&theirs), "{theirs}");
    let last = shares.iter().filter(|(one, ..)| *one == 1).map(|(.., finish)| *finish).max();
    assert_eq!(last, Some(Time(25_000 + theirs as u64 * 1_000)));
}

#[test]
fn what_feeding_costs_the_host_counts() {
    let feed = Cost { init: Duration(900), ..Cost::default() };
    let lane = ProcessorConfig { feed, ..core(cost(1_000, 1)) };
    let config = Config { batch: 64, host: Some(0), ..Config::new(vec![core(cost(1_000, 1)), lane]) };
    let mut s = Scheduler::new(config).unwrap();
    let shares = place(&mut s, Time::ZERO, &[64; 32]);
    // n of 32 cost the host 0.9 n in the place of n: it goes on for 32 - 0.1 n, longer than the other does.
    let last = |one: usize| shares.iter().filter(|share| share.0 == one).map(|share| share.2).max();
    assert!(jobs_of(&shares, 1) >= 14, "{}", jobs_of(&shares, 1));
    assert!(last(1) < Some(Time(32_000)));
    // Where feeding costs more than the job, nothing is given away.
    s.set_feed(1, Cost { init: Duration(1_100), ..Cost::default() });
    s.complete(0, s.unfinished(0), Time(100_000));
    s.complete(1, s.unfinished(1), Time(100_000));
    assert_eq!(jobs_of(&place(&mut s, Time(100_000), &[64; 32]), 1), 0);
}

/// Devices that compute while the host polls them: two of them are no faster than the better one, also where the host has
/// no jobs of its own.
#[test]
fn a_host_without_jobs_feeds_the_others_all_the_same() {
    for does_jobs in [false, true] {
        let of = |init: u64| {
            let feed = Cost { init: Duration(init), ..Cost::default() };
            ProcessorConfig { feed, ..core(cost(init, 1)) }
        };
        let host = ProcessorConfig { suites: u64::from(does_jobs), ..core(cost(2_000, 1)) };
        let config = Config { batch: 64, host: Some(0), ..Config::new(vec![host, of(1_500), of(1_000)]) };
        let mut s = Scheduler::new(config).unwrap();
        let shares = place(&mut s, Time::ZERO, &[64; 32]);
        assert_eq!(jobs_of(&shares, 2), 32, "{shares:?}");
    }
}

/// A processor of large batches: 300 us for up to 64 jobs; the host takes 20 us for one.
#[test]
fn a_class_with_a_latency_bound_does_not_wait_for_a_large_batch() {
    let us = |us: u64| Duration::from_micros(us);
    let host = core(Cost { init: us(20), ..Cost::default() });
    let large = ProcessorConfig {
        kind: Kind::Accelerator,
        ..core(Cost { submit: us(100), init: us(200), lanes: 64, ..Cost::default() })
    };
    let class = |latency_bound| ClassConfig { latency_bound, ..ClassConfig::new(Service::Strict) };
    let run = |bound: Option<Duration>, jobs: usize| {
        let config = Config {
            batch: 64,
            host: Some(0),
            classes: vec![class(bound)],
            ..Config::new(vec![host.clone(), large.clone()])
        };
        place(&mut Scheduler::new(config).unwrap(), Time::ZERO, &vec![64; jobs])
    };
    assert!(jobs_of(&run(None, 32), 1) > 16);
    assert_eq!(
        jobs_of(&run(Some(us(200)), 32), 1),
        0,
        "the host takes 640 us, and the other cannot do one in 200"
    );
    assert!(jobs_of(&run(Some(us(320)), 32), 1) > 16, "300 us keep the bound");
    // What is late everywhere goes where it is done first.
    let suites = 0;
    let away = ProcessorConfig { suites, ..host.clone() };
    let config = Config { batch: 64, classes: vec![class(Some(us(200)))], ..Config::new(vec![away, large]) };
    assert_eq!(jobs_of(&place(&mut Scheduler::new(config).unwrap(), Time::ZERO, &[64; 8]), 1), 8);
}

/// A share elsewhere is cut to what is done within the bound.
#[test]
fn a_share_of_a_burst_ends_within_the_latency_bound() {
    let one = || core(Cost { init: Duration::from_micros(10), ..Cost::default() });
    let class =
        ClassConfig { latency_bound: Some(Duration::from_micros(150)), ..ClassConfig::new(Service::Strict) };
    let config = Config { batch: 64, host: Some(0), classes: vec![class], ..Config::new(vec![one(), one()]) };
    let shares = place(&mut Scheduler::new(config).unwrap(), Time::ZERO, &[64; 40]);
    assert_eq!((jobs_of(&shares, 0), jobs_of(&shares, 1)), (25, 15));
}

/// Feeding a share costs the host what opens a batch if it opens one, what wakes the processor if it is idle, and each job.
#[test]
fn the_host_s_next_share_waits_for_what_it_feeds_to_others() {
    let feed = Cost { submit: Duration(300), wake: Duration(2_000), init: Duration(100), ..Cost::default() };
    let lane = ProcessorConfig { feed, ..core(cost(1_000, 1)) };
    let config = Config { batch: 64, host: Some(0), ..Config::new(vec![core(cost(1_000, 1)), lane]) };
    let mut s = Scheduler::new(config).unwrap();
    // How many jobs the other has been given, and how long the host's share waits.
    let burst = |s: &mut Scheduler, now: Time| {
        (0..32).for_each(|id| s.push(now, item(id, 64)).unwrap());
        let Decision::Dispatch { processor: 1, job, .. } = s.next(now) else { panic!() };
        let fed = job.items().len() as u64;
        let Decision::Dispatch { processor: 0, prediction, .. } = s.next(now) else { panic!() };
        let waited = prediction.wait;
        while let Decision::Dispatch { processor: 0, .. } = s.next(now) {}
        (fed, waited)
    };
    let (fed, waited) = burst(&mut s, Time::ZERO);
    assert!(fed > 8);
    assert_eq!(waited, Duration(2_300 + 100 * fed), "it opens a batch and wakes an idle processor");
    // All should be done, and only the host has said so: the other is not idle, and the batch is still open.
    let later = Time(100_000);
    s.complete(0, s.unfinished(0), later);
    let (fed, waited) = burst(&mut s, later);
    assert!(fed > 8);
    assert_eq!(waited, Duration(100 * fed), "it joins a batch");
    s.submitted(1);
    let later = Time(200_000);
    s.complete(0, s.unfinished(0), later);
    let (fed, waited) = burst(&mut s, later);
    assert_eq!(waited, Duration(300 + 100 * fed), "it opens the next batch");
}

/// Jobs that come between two shares of a burst are divided together with what is left of it.
#[test]
fn a_burst_is_filled_up_between_its_shares() {
    let mut s = scheduler(vec![core(cost(179_000, 16)), core(cost(179_000, 16))], 32);
    (0..32).for_each(|id| s.push(Time::ZERO, item(id, 1_400)).unwrap());
    let share = |s: &mut Scheduler| match s.next(Time::ZERO) {
        Decision::Dispatch { processor, job, .. } => (processor, job.items().to_vec()),
        other => panic!("{other:?}"),
    };
    assert_eq!(share(&mut s), (0, (0..16).collect()));
    (32..48).for_each(|id| s.push(Time::ZERO, item(id, 1_400)).unwrap());
    // Sixteen of them would be done no earlier behind the sixteen that the first has.
    assert_eq!(share(&mut s), (1, (16..48).collect()));
    assert_eq!(s.next(Time::ZERO), Decision::Idle);
}

/// The time of a job is that of its blocks and packets, and a share's also that of its transfers.
#[test]
fn shares_go_by_the_mean_work_of_the_burst_s_jobs() {
    // A packet of 256 bytes has 16 blocks.
    let by_job = cost(1_600, 1);
    let by_block = Cost { block: Duration(100), ..cost(0, 1) };
    let by_packet = Cost { packet: Duration(1_600), ..cost(0, 1) };
    for other in [by_job, by_block, by_packet] {
        let mut s = scheduler(vec![core(by_job), core(other)], 64);
        let shares = place(&mut s, Time::ZERO, &[256; 32]);
        assert_eq!((jobs_of(&shares, 0), jobs_of(&shares, 1)), (16, 16), "{other:?}");
    }
    // 8192 bytes in 1024 cycles of a picosecond, there and back: 1600 n = 2048 + 1600 (32 - n), n = 16.64.
    let bus = Transfer { clock: 1_000_000_000_000, width: 8, address_cycles: 0 };
    let card = ProcessorConfig { transfer: Some(bus), ..core(by_job) };
    let mut s = scheduler(vec![core(by_job), card], 64);
    let shares = place(&mut s, Time::ZERO, &[256; 32]);
    assert_eq!((jobs_of(&shares, 0), jobs_of(&shares, 1)), (17, 15));
}

#[test]
fn a_host_that_moves_packets_gives_more_away() {
    let share = |moving| {
        let two = vec![core(cost(1_000, 1)), core(cost(1_000, 1))];
        let mut s = Scheduler::new(Config { batch: 64, host: Some(0), ..Config::new(two) }).unwrap();
        s.set_moving(Duration(moving));
        jobs_of(&place(&mut s, Time::ZERO, &[64; 32]), 1)
    };
    assert_eq!(share(0), 16);
    // Half a job's time each: 16 us besides, and (32 - n) + 16 = n.
    assert!((23..=25).contains(&share(500)), "{}", share(500));
    assert_eq!(share(1_000), 32);
}

#[test]
fn a_burst_is_of_one_suite() {
    let mut s = scheduler(vec![core(cost(1_000, 1)); 2], 64);
    for id in 0..30u64 {
        s.push(Time::ZERO, Item { suite: (id / 10) as u8, ..item(id, 64) }).unwrap();
    }
    let mut seen = Vec::new();
    while let Decision::Dispatch { job, .. } = s.next(Time::ZERO) {
        assert!(job.items().iter().all(|id| (id / 10) as u8 == job.head.suite));
        seen.extend_from_slice(job.items());
    }
    assert_eq!(seen, (0..30).collect::<Vec<u64>>());
}

#[test]
fn a_full_queue_does_not_hold_up_a_processor_that_has_room() {
    let small = ProcessorConfig { queue: 1, ..core(cost(10, 1)) };
    let mut s = scheduler(vec![core(cost(1_000, 1)), small], 8);
    let shares = place(&mut s, Time::ZERO, &[64; 64]);
    assert!(jobs_of(&shares, 0) > 0 && jobs_of(&shares, 1) > 0);
    assert_eq!(jobs_of(&shares, 0) + jobs_of(&shares, 1), 64);
}

#[test]
fn a_suite_that_nobody_has_goes_nowhere_as_a_whole() {
    let other = ProcessorConfig { suites: 2, ..core(cost(1_000, 1)) };
    let mut s = scheduler(vec![other], 8);
    (0..4).for_each(|id| s.push(Time::ZERO, item(id, 64)).unwrap());
    let Decision::Nowhere { job } = s.next(Time::ZERO) else { panic!() };
    assert_eq!(job.items(), [0, 1, 2, 3]);
    assert_eq!(s.next(Time::ZERO), Decision::Idle);
}

#[test]
fn the_host_keeps_what_nobody_would_do_earlier() {
    let two = vec![core(cost(1_000, 16)), core(cost(1_000, 16))];
    let mut s = Scheduler::new(Config { batch: 64, host: Some(0), ..Config::new(two) }).unwrap();
    let work = |jobs: u32| Work { packets: jobs, blocks: jobs * 4, bytes: u64::from(jobs) * 64 };
    assert!(s.keeps(Time::ZERO, 0, 16, &work(16)));
    assert!(!s.keeps(Time::ZERO, 0, 32, &work(32)));
    s.set_feed(1, Cost { init: Duration(1_000), ..Cost::default() });
    assert!(s.keeps(Time::ZERO, 0, 32, &work(32)));
    let single = Policy::Single { processor: 0 };
    let two = vec![core(cost(1_000, 1)), core(cost(1_000, 1))];
    let mut s =
        Scheduler::new(Config { batch: 64, host: Some(0), policy: single, ..Config::new(two) }).unwrap();
    assert!(s.keeps(Time::ZERO, 0, 32, &work(32)));
}

/// Rules other than finish time may give any job away, unless they give all to the host.
#[test]
fn by_another_policy_the_host_keeps_only_what_is_all_its_own() {
    let work = Work { packets: 4, blocks: 16, bytes: 256 };
    let keeps = |policy, host| {
        let two = vec![core(cost(1_000, 16)), core(cost(1_000, 16))];
        let config = Config { batch: 64, host, policy, ..Config::new(two) };
        Scheduler::new(config).unwrap().keeps(Time::ZERO, 0, 4, &work)
    };
    assert!(keeps(Policy::FinishTime, Some(0)) && !keeps(Policy::FinishTime, None));
    for (policy, expected) in [
        (Policy::Single { processor: 0 }, true),
        (Policy::Single { processor: 1 }, false),
        (Policy::RoundRobin, false),
        (Policy::ShortestQueue, false),
        (Policy::Split { weights: [1; 8] }, false),
    ] {
        assert_eq!(keeps(policy, Some(0)), expected, "{policy}");
    }
}

#[test]
fn a_processor_that_is_not_chosen_is_tried() {
    let two = vec![core(cost(1_000, 1)), core(cost(300_000, 1))];
    let mut s = Scheduler::new(Config { batch: 32, trials: true, ..Config::new(two) }).unwrap();
    let mut sizes = Vec::new();
    for round in 0..100_000u64 {
        let now = Time(round * 1_000_000_000);
        let shares = place(&mut s, now, &[64; 32]);
        sizes.extend(shares.iter().filter(|share| share.0 == 1).map(|share| share.1.len()));
        for one in 0..2 {
            let unfinished = s.unfinished(one);
            s.complete(one, unfinished, now);
            s.submitted(one);
        }
    }
    assert!(sizes.starts_with(&[1, 4, 2]) || sizes.starts_with(&[1, 16, 4]), "{sizes:?}");
    assert!(sizes.len() < 16, "{sizes:?}");
}

#[test]
fn other_policies_deal_parts_of_the_burst() {
    let three = || vec![core(cost(1_000, 1)); 3];
    let share = |policy| {
        let mut s = Scheduler::new(Config { batch: 64, policy, ..Config::new(three()) }).unwrap();
        let sizes: Vec<u32> = (0..30).map(|k| if k < 10 { 64 } else { 1_400 }).collect();
        let shares = place(&mut s, Time::ZERO, &sizes);
        [0, 1, 2].map(|one| jobs_of(&shares, one))
    };
    assert_eq!(share(Policy::RoundRobin), [10, 10, 10]);
    assert_eq!(share(Policy::ShortestQueue), [10, 10, 10]);
    assert_eq!(share(Policy::Single { processor: 2 }), [0, 0, 30]);
    assert_eq!(share(Policy::SizeThreshold { bytes: 256, small: 0, large: 1 }), [10, 20, 0]);
    assert_eq!(share(Policy::Split { weights: [3, 0, 2, 0, 0, 0, 0, 0] }), [18, 0, 12]);
}

#[test]
fn a_split_of_bursts_deals_whole_groups_and_keeps_its_shares() {
    let policy = Policy::Split { weights: [3, 1, 0, 0, 0, 0, 0, 0] };
    let processors = vec![core(cost(1_000, 16)), core(cost(1_000, 16))];
    let mut s = Scheduler::new(Config { batch: 32, policy, ..Config::new(processors) }).unwrap();
    let mut burst = || {
        let shares = place(&mut s, Time::ZERO, &[1_400; 32]);
        for (processor, ..) in &shares {
            s.complete(*processor, 1, Time::ZERO);
        }
        [0, 1].map(|one| jobs_of(&shares, one))
    };
    // 24 and 8 are one and a half groups and half of one.
    assert_eq!([burst(), burst(), burst(), burst()], [[32, 0], [16, 16], [32, 0], [16, 16]]);
}

/// The earliest end of the last of `jobs` equal jobs over all splits.
fn best_split(jobs: usize, costs: &[Cost]) -> u64 {
    let time = |cost: &Cost, jobs: usize| match jobs {
        0 => 0,
        _ => cost.wake.0 + cost.of_batch((0..jobs).map(|_| Work::packet(64))).0,
    };
    match costs {
        [] => u64::MAX,
        [last] => time(last, jobs),
        [first, rest @ ..] => {
            (0..=jobs).map(|mine| time(first, mine).max(best_split(jobs - mine, rest))).min().unwrap()
        }
    }
}

fn any_cost() -> impl Strategy<Value = Cost> {
    (100u64..20_000, 0u64..5_000, 0u64..20_000, prop::sample::select(vec![1u32, 1, 2, 4, 8, 16])).prop_map(
        |(init, submit, wake, lanes)| {
            // A group takes as long as its jobs would on one lane or two.
            let init = init * u64::from(lanes.div_ceil(2));
            Cost { submit: Duration(submit), wake: Duration(wake), ..cost(init, lanes) }
        },
    )
}

proptest! {
    #[test]
    fn one_packet_at_a_time_is_the_papers_rule(
        costs in prop::collection::vec((1u64..2_000, 0u64..100), 1..5),
        steps in prop::collection::vec((1u64..400_000, 20u32..1_500, any::<bool>()), 1..60),
    ) {
        let processors = || costs.iter().enumerate().map(|(at, &(init, block))| {
            let cost = Cost { init: Duration(init), block: Duration(block), ..Cost::default() };
            let kind = if at == 0 { ProcessorConfig::cpu(cost) } else { ProcessorConfig::accelerator(cost) };
            ProcessorConfig { progress: Progress::InOrder, ..kind }
        }).collect::<Vec<_>>();
        let (mut one, mut many) = (scheduler(processors(), 1), scheduler(processors(), 32));
        let mut now = Time::ZERO;
        for (id, (gap, bytes, done)) in steps.into_iter().enumerate() {
            now = now + Duration(gap);
            let packet = item(id as u64, bytes);
            one.push(now, packet).unwrap();
            many.push(now, packet).unwrap();
            let (Decision::Dispatch { processor: a, prediction: p, .. },
                 Decision::Dispatch { processor: b, prediction: q, .. }) = (one.next(now), many.next(now))
            else { panic!() };
            prop_assert_eq!((a, p), (b, q));
            if done {
                one.complete(a, 1, now);
                many.complete(a, 1, now);
            }
        }
    }

    #[test]
    fn the_last_job_is_done_nearly_as_early_as_by_the_best_split(
        costs in prop::collection::vec(any_cost(), 2..4),
        jobs in 1usize..48,
    ) {
        let mut s = scheduler(costs.iter().map(|&cost| core(cost)).collect(), 64);
        let shares = place(&mut s, Time::ZERO, &vec![64; jobs]);
        let found = shares.iter().map(|(.., finish)| finish.0).max().unwrap();
        let best = best_split(jobs, &costs);
        prop_assert!(found as f64 <= 1.6 * best as f64, "{} against {}", found, best);
    }
}

/// How far the rule is from the best split found by search; `cargo test -- --nocapture` prints it.
#[test]
fn on_average_the_rule_is_within_a_few_percent_of_the_best_split() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let any = (prop::collection::vec(any_cost(), 2..4), 1usize..64);
    let mut divided = 0;
    let mut ratios: Vec<f64> = (0..1_000)
        .map(|_| {
            let (costs, jobs) = any.new_tree(&mut runner).unwrap().current();
            let mut s = scheduler(costs.iter().map(|&cost| core(cost)).collect(), 64);
            let shares = place(&mut s, Time::ZERO, &vec![64; jobs]);
            let found = shares.iter().map(|(.., finish)| finish.0).max().unwrap();
            divided += usize::from(shares.iter().any(|share| share.0 != shares[0].0));
            found as f64 / best_split(jobs, &costs) as f64
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!(
        "{divided} divided; mean {mean:.4}, median {:.4}, p95 {:.4}, worst {:.4}",
        ratios[500], ratios[950], ratios[999]
    );
    assert!(divided > 500, "{divided}");
    assert!(mean < 1.05, "{mean}");
}

#[test]
fn a_share_begins_when_the_one_before_should_have_ended_although_that_was_seen_later() {
    let end_of_the_next = |asked: u64| {
        let mut s = scheduler(vec![core(cost(1_000, 1)), core(cost(u64::from(u32::MAX), 1))], 64);
        let first = place(&mut s, Time::ZERO, &[100; 8]);
        let second = place(&mut s, Time::ZERO, &[100; 8]);
        assert_eq!((jobs_of(&first, 0), jobs_of(&second, 0)), (8, 8));
        // The first share ends at 8,000 and is collected at 12,000.
        s.complete_since(0, 1, Time(asked), Time(12_000));
        place(&mut s, Time(12_000), &[100])[0].2
    };
    assert_eq!(end_of_the_next(7_000), Time(8_000 + 8_000 + 1_000));
    assert_eq!(end_of_the_next(9_000), Time(9_000 + 8_000 + 1_000));
    assert_eq!(end_of_the_next(12_000), Time(12_000 + 8_000 + 1_000));
}
