//! The rule by hand: finish times to the picosecond, ties, full queues, removed processors.

use forebay_scheduler::{Config, Cost, Decision, Item, Policy, ProcessorConfig, Scheduler, Transfer};
use forebay_time::{Duration, Time};

/// CPU: 3 us and 920 ns a block; card: 1 us and 440 ns a block.
fn cpu() -> ProcessorConfig {
    ProcessorConfig::cpu(cost(3_000, 920))
}

fn card() -> ProcessorConfig {
    ProcessorConfig::accelerator(cost(1_000, 440))
}

fn cost(init_ns: u64, block_ns: u64) -> Cost {
    Cost { init: Duration::from_nanos(init_ns), block: Duration::from_nanos(block_ns), ..Cost::default() }
}

fn scheduler(processors: Vec<ProcessorConfig>) -> Scheduler {
    Scheduler::new(Config::new(processors)).unwrap()
}

/// A packet of 10 blocks: 12.2 us on the CPU, 5.4 us on the card.
fn item(id: u64) -> Item {
    Item { id, sa: 1, class: 0, suite: 0, bytes: 160 }
}

/// Pushes one packet and places it; returns where and the predicted w and p in picoseconds.
fn place(scheduler: &mut Scheduler, now: Time, item: Item) -> (usize, u64, u64) {
    scheduler.push(now, item).unwrap();
    match scheduler.next(now) {
        Decision::Dispatch { processor, job, chosen, prediction } => {
            assert_eq!((job.items(), chosen, prediction.at), (&[item.id][..], now, now));
            (processor, prediction.wait.0, prediction.service.0)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn finishing_times_decide() {
    let mut s = scheduler(vec![cpu(), card()]);
    let t = Time::ZERO;
    // f_0 = 12.2, f_1 = 5.4 us
    assert_eq!(place(&mut s, t, item(1)), (1, 0, 5_400_000));
    s.taken(1, t);
    // f_0 = 12.2, f_1 = 5.4 (residual, eq 3) + 5.4
    assert_eq!(place(&mut s, t, item(2)), (1, 5_400_000, 5_400_000));
    // f_0 = 12.2, f_1 = 5.4 (residual) + 5.4 (queue) + 5.4
    assert_eq!(place(&mut s, t, item(3)), (0, 0, 12_200_000));
    s.taken(0, t);
    // f_0 = 24.4, f_1 = 16.2
    assert_eq!(place(&mut s, t, item(4)), (1, 10_800_000, 5_400_000));
    // 2 us later: w_0 = 12.2 - 2, w_1 = (5.4 - 2) + 2 * 5.4; f_0 = 22.4, f_1 = 19.6
    let t = Time(2_000_000);
    assert_eq!(s.wait(0, t), Duration(10_200_000));
    assert_eq!(place(&mut s, t, item(5)), (1, 14_200_000, 5_400_000));
    // The residual time never goes below zero, even if the card is late.
    assert_eq!(s.wait(1, Time(9_000_000)), Duration(3 * 5_400_000));
    s.finished(1);
    s.taken(1, Time(9_000_000));
    assert_eq!(s.wait(1, Time(9_000_001)), Duration(3 * 5_400_000 - 1));
    assert_eq!((s.waiting(1), s.unfinished(1)), (2, 3));
}

#[test]
fn alpha_and_beta_hold_jobs_off_the_cpu_but_not_out_of_the_prediction() {
    let beta = Duration(17_600_000);
    let mut s = scheduler(vec![ProcessorConfig { alpha: 2.5, beta, ..cpu() }, card()]);
    // f_0 = 2.5 * (0 + 12.2 + 17.6) = 74.5 us; f_1 = 13 * 5.4 = 70.2 us, then 75.6 us
    for id in 0..13 {
        assert_eq!(place(&mut s, Time::ZERO, item(id)).0, 1);
    }
    assert_eq!(place(&mut s, Time::ZERO, item(13)), (0, 0, 12_200_000));
    s.set_bias(0, 1.0, Duration::ZERO).unwrap();
    assert_eq!(place(&mut s, Time::ZERO, item(14)).0, 0);
    assert!(s.set_bias(0, 0.5, Duration::ZERO).is_err());
}

#[test]
fn an_accelerator_wins_a_tie_against_the_cpu() {
    let mut s = scheduler(vec![ProcessorConfig::cpu(cost(1_000, 440)), card()]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 1);
    assert_eq!(place(&mut s, Time::ZERO, item(1)).0, 0);
}

#[test]
fn the_faster_wins_a_tie_then_the_lower_index() {
    // A packet of 10 blocks: 6 us, 4 us, 4 us.
    let accelerator = |block_ns| ProcessorConfig::accelerator(cost(0, block_ns));
    let mut s = scheduler(vec![accelerator(600), accelerator(400), accelerator(400)]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 1, "f = 6, 4, 4 us");
    assert_eq!(place(&mut s, Time::ZERO, item(1)).0, 2, "f = 6, 8, 4 us");
    s.taken(1, Time::ZERO);
    s.taken(2, Time::ZERO);
    let t = Time(2_000_000);
    assert_eq!(place(&mut s, t, item(2)).0, 1, "f = 6, 2 + 4, 2 + 4 us");
    assert_eq!(place(&mut s, t, item(3)).0, 2, "f = 6, 6 + 4, 2 + 4 us");
    assert_eq!(place(&mut s, t, item(4)).0, 0, "f = 6, 6 + 4, 6 + 4 us");
}

#[test]
fn a_factored_finishing_time_is_rounded_halves_up_before_it_is_compared() {
    let one = |init| Cost { init: Duration(init), ..Cost::default() };
    let cpu = ProcessorConfig { alpha: 2.5, ..ProcessorConfig::cpu(one(1)) };
    // 2.5 ps is 3 ps, a tie that the accelerator wins; 4 ps is none.
    let mut s = scheduler(vec![cpu.clone(), ProcessorConfig::accelerator(one(3))]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 1);
    let mut s = scheduler(vec![cpu, ProcessorConfig::accelerator(one(4))]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 0);
}

#[test]
fn a_full_queue_holds_back_everything_behind_its_job() {
    let mut s = scheduler(vec![cpu(), ProcessorConfig { queue: 1, ..card() }]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 1);
    s.taken(1, Time::ZERO);
    assert_eq!(place(&mut s, Time::ZERO, item(1)).0, 1);
    let t = Time(5_000_000);
    // f_1 = 0.4 + 5.4 + 5.4 = 11.2 < 12.2
    s.push(t, item(2)).unwrap();
    s.push(t, Item { bytes: 16, ..item(3) }).unwrap();
    assert_eq!(s.next(t), Decision::Blocked { processor: 1 });
    // The choice stands, even if the card has become the worse one, and what the CPU could do waits too.
    s.set_cost(1, cost(1_000_000, 440));
    assert_eq!(s.next(Time(5_200_000)), Decision::Blocked { processor: 1 });
    assert_eq!(s.input_len(), 1);
    s.set_cost(1, cost(1_000, 440));
    s.finished(1);
    s.taken(1, Time(5_400_000));
    match s.next(Time(5_400_000)) {
        Decision::Dispatch { processor: 1, job, chosen, prediction } => {
            assert_eq!((job.items(), chosen), (&[2][..], t));
            assert_eq!(prediction.finish(), Time(5_400_000 + 2 * 5_400_000));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(s.next(Time(5_400_000)), Decision::Dispatch { processor: 0, .. }));
    assert_eq!(s.next(Time(5_400_000)), Decision::Idle);
}

#[test]
fn fetched_jobs_wait_where_the_scheduler_is_aware_of_them() {
    for (aware, at_3_us, at_6_us) in [(false, 8_800_000, 5_800_000), (true, 14_200_000, 5_800_000)] {
        let config = Config { prefetch_aware: aware, ..Config::new(vec![card()]) };
        let mut s = Scheduler::new(config).unwrap();
        for id in 0..3 {
            place(&mut s, Time::ZERO, item(id));
        }
        s.taken(0, Time::ZERO);
        s.fetched(0);
        s.started(0);
        s.taken(0, Time(1_000_000));
        assert_eq!(s.wait(0, Time(1_000_000)), Duration(10_800_000));
        s.fetched(0);
        // One waits (5.4), the one last taken has 5.4 - 2 left and, fetched, counts once more.
        assert_eq!(s.wait(0, Time(3_000_000)), Duration(at_3_us));
        s.finished(0);
        s.started(0);
        // 5.4 waits, 5.4 - 5 left.
        assert_eq!(s.wait(0, Time(6_000_000)), Duration(at_6_us));
        assert_eq!((s.waiting(0), s.unfinished(0)), (1, 2));
    }
}

#[test]
fn transfers_and_submit_count_where_they_are_configured() {
    let bus = Transfer { clock: 66_000_000, width: 4, address_cycles: 1 };
    let submit = Duration::from_nanos(300);
    let with_bus = ProcessorConfig { transfer: Some(bus), cost: Cost { submit, ..card().cost }, ..card() };
    let mut s = scheduler(vec![with_bus]);
    // 41 cycles: 621212.12 ps, twice; the first of a submission rings.
    assert_eq!(place(&mut s, Time::ZERO, item(0)).2, 5_400_000 + 2 * 621_212 + 300_000);
    assert_eq!(place(&mut s, Time::ZERO, item(1)).2, 5_400_000 + 2 * 621_212);
    s.submitted(0);
    assert_eq!(place(&mut s, Time::ZERO, item(2)).2, 5_400_000 + 2 * 621_212 + 300_000);
}

#[test]
fn predicted_transfers_count_both_ways_once_per_job_in_p_and_in_w() {
    let bus = Transfer { clock: 66_000_000, width: 4, address_cycles: 1 };
    let with_bus = ProcessorConfig { transfer: Some(bus), ..card() };
    let config = Config { window: 2, ..Config::new(vec![with_bus]) };
    let mut s = Scheduler::new(config).unwrap();
    // 30 and 21 bytes: 1 us + 4 * 440 ns; one address and ceil(51 / 4) = 13 cycles, 212121.21 ps, in and out.
    // Two jobs would take 9 and 7 cycles each way, two addresses more.
    s.push(Time::ZERO, Item { bytes: 30, ..item(0) }).unwrap();
    s.push(Time::ZERO, Item { bytes: 21, ..item(1) }).unwrap();
    let Decision::Dispatch { prediction, job, .. } = s.next(Time::ZERO) else { panic!() };
    assert_eq!((job.items().len(), prediction.service), (2, Duration(2_760_000 + 2 * 212_121)));
    // It waits with its transfers (w), and what is left of it counts down with them.
    assert_eq!(s.wait(0, Time::ZERO), Duration(2_760_000 + 2 * 212_121));
    s.taken(0, Time::ZERO);
    assert_eq!(s.wait(0, Time(3_000_000)), Duration(184_242));
}

#[test]
fn predicted_transfers_leave_small_packets_to_the_cpu() {
    // [H] 4.3: for small packets the transfer outweighs the processing. One block: 1 us on the CPU, 0.8 us and
    // a slow bus's two transfers of 5 cycles at 10 MHz on the card; ten times
    // the clock makes it a tie, which the card wins.
    let bus = Transfer { clock: 10_000_000, width: 4, address_cycles: 1 };
    let cpu = ProcessorConfig::cpu(cost(800, 200));
    let card = |transfer| ProcessorConfig { transfer, ..ProcessorConfig::accelerator(cost(700, 100)) };
    let of = |bytes, transfer| {
        let mut s = scheduler(vec![cpu.clone(), card(transfer)]);
        place(&mut s, Time::ZERO, Item { bytes, ..item(0) })
    };
    assert_eq!(of(16, None), (1, 0, 800_000));
    assert_eq!(of(16, Some(bus)), (0, 0, 1_000_000));
    assert_eq!(of(16, Some(Transfer { clock: 100_000_000, ..bus })), (1, 0, 800_000 + 2 * 50_000), "a tie");
}

#[test]
fn only_capable_processors_are_chosen_and_costs_may_differ_by_suite() {
    let mut s = scheduler(vec![cpu(), ProcessorConfig { suites: 0b10, ..card() }]);
    assert_eq!(place(&mut s, Time::ZERO, item(0)).0, 0);
    let other = Item { suite: 1, ..item(1) };
    assert_eq!(place(&mut s, Time::ZERO, other).0, 1);
    s.set_suite_cost(1, 1, cost(100_000, 440));
    assert_eq!(place(&mut s, Time::ZERO, other).0, 0);
}

#[test]
fn a_removed_processor_gets_nothing_and_its_jobs_are_the_drivers() {
    let mut s = scheduler(vec![cpu(), ProcessorConfig { queue: 1, ..card() }]);
    s.push(Time::ZERO, item(0)).unwrap();
    let Decision::Dispatch { processor: 1, job, .. } = s.next(Time::ZERO) else { panic!() };
    assert_eq!(job.items(), [0]);
    s.push(Time::ZERO, item(1)).unwrap();
    s.push(Time::ZERO, item(2)).unwrap();
    assert_eq!(s.next(Time::ZERO), Decision::Blocked { processor: 1 });

    s.remove_processor(1);
    s.push(Time::ZERO, item(0)).unwrap();
    // The blocked job is still in front; the one that came back is behind what has come since.
    for expected in [1, 2, 0] {
        let Decision::Dispatch { processor, job, .. } = s.next(Time::ZERO) else { panic!() };
        assert_eq!((processor, job.items()), (0, &[expected][..]));
    }
    // Late reports change nothing.
    s.taken(1, Time::ZERO);
    s.fetched(1);
    s.started(1);
    s.finished(1);
    s.complete(1, 1, Time::ZERO);
    assert_eq!((s.unfinished(1), s.wait(1, Time::ZERO)), (0, Duration::ZERO));

    s.remove_processor(0);
    s.push(Time::ZERO, item(3)).unwrap();
    let Decision::Nowhere { job } = s.next(Time::ZERO) else { panic!() };
    assert_eq!(job.items(), &[3]);
    assert_eq!(s.next(Time::ZERO), Decision::Idle);
    s.restore_processor(1);
    assert_eq!(place(&mut s, Time::ZERO, item(4)), (1, 0, 5_400_000));
}

#[test]
fn other_policies_choose_by_their_own_rule_among_the_capable() {
    let three = || vec![cpu(), card(), ProcessorConfig { suites: 0b1, ..card() }];
    let with = |policy| Scheduler::new(Config { policy, ..Config::new(three()) }).unwrap();
    let places = |s: &mut Scheduler, suite, count| -> Vec<usize> {
        (0..count).map(|id| place(s, Time::ZERO, Item { suite, ..item(id) }).0).collect()
    };

    let mut s = with(Policy::Single { processor: 2 });
    assert_eq!(places(&mut s, 0, 3), [2, 2, 2]);
    assert_eq!(places(&mut s, 1, 2), [1, 1], "by finish time instead");

    let mut s = with(Policy::RoundRobin);
    assert_eq!(places(&mut s, 0, 4), [0, 1, 2, 0]);
    assert_eq!(places(&mut s, 1, 3), [1, 0, 1]);

    let mut s = with(Policy::ShortestQueue);
    assert_eq!(places(&mut s, 0, 5), [1, 2, 0, 1, 2]);

    let mut s = with(Policy::SizeThreshold { bytes: 160, small: 0, large: 2 });
    assert_eq!(place(&mut s, Time::ZERO, Item { bytes: 159, ..item(0) }).0, 0);
    assert_eq!(place(&mut s, Time::ZERO, item(1)).0, 2);
    s.remove_processor(2);
    assert_eq!(place(&mut s, Time::ZERO, item(2)).0, 0);
    s.remove_processor(0);
    assert_eq!(place(&mut s, Time::ZERO, item(3)).0, 1);
}

#[test]
fn a_split_deals_packets_out_by_its_weights() {
    let with = |weights| {
        let processors = vec![cpu(), card(), ProcessorConfig { suites: 0b1, ..card() }];
        Scheduler::new(Config { policy: Policy::Split { weights }, ..Config::new(processors) }).unwrap()
    };
    let places = |s: &mut Scheduler, suite, count| -> Vec<usize> {
        (0..count).map(|id| place(s, Time::ZERO, Item { suite, ..item(id) }).0).collect()
    };
    // Not four to the one and then two to the other: dealt out evenly.
    let mut s = with([4, 2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(places(&mut s, 0, 14), [0, 1, 0, 2, 0, 1, 0, 0, 1, 0, 2, 0, 1, 0]);
    // A processor that does not support the suite gets no share of the jobs.
    assert_eq!(places(&mut s, 1, 6), [0, 1, 0, 0, 1, 0]);
    s.remove_processor(0);
    assert_eq!(places(&mut s, 1, 2), [1, 1]);

    let mut s = with([0, 1, 0, 0, 0, 0, 0, 9]);
    assert_eq!(
        places(&mut s, 0, 3),
        [1, 1, 1],
        "a weight of 0 is no share, one beyond the processors nothing"
    );
    s.remove_processor(1);
    assert_eq!(places(&mut s, 0, 1), [2], "by finish time where nobody has a share");
}

#[test]
fn a_split_counts_the_packets_of_bundles() {
    let policy = Policy::Split { weights: [3, 1, 0, 0, 0, 0, 0, 0] };
    let mut s = Scheduler::new(Config { policy, window: 4, ..Config::new(vec![cpu(), card()]) }).unwrap();
    let (mut packets, mut id) = ([0; 2], 0);
    for round in 0..400u64 {
        // Bundles of 1 to 4 packets of one SA.
        for _ in 0..=round * 7 % 4 {
            s.push(Time::ZERO, item(id)).unwrap();
            id += 1;
        }
        s.end_of_input();
        while let Decision::Dispatch { processor, job, .. } = s.next(Time::ZERO) {
            packets[processor] += job.items().len() as u64;
            s.taken(processor, Time::ZERO);
            s.complete(processor, 1, Time::ZERO);
        }
        let owed = id as f64 / 4.0 - packets[1] as f64;
        assert!(owed.abs() <= 4.0, "{packets:?}");
    }
    assert_eq!(packets[0] + packets[1], id);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_its_reason() {
    let said = |config: Config| Scheduler::new(config).unwrap_err().to_string();
    let config = || Config::new(vec![cpu(), card()]);
    assert_eq!(said(Config::new(vec![])), "there is no processor");
    assert_eq!(said(Config { window: 0, ..config() }), "the window is 0 packets; 1 is none");
    assert_eq!(
        said(Config { window: 30, input: 29, ..config() }),
        "an input of 29 packets never fills a window of 30"
    );
    assert_eq!(
        said(Config { policy: Policy::Single { processor: 2 }, ..config() }),
        "processor 2 is named, but there are 2, counted from 0"
    );
    let with = |one: ProcessorConfig| Config::new(vec![cpu(), one]);
    assert_eq!(
        said(with(ProcessorConfig { alpha: 0.9, ..card() })),
        "alpha of processor 1 is 0.9; it is at least 1 and below 2^53"
    );
    assert_eq!(
        said(with(ProcessorConfig { queue: 0, ..card() })),
        "the queue of processor 1 has no place; it needs at least 1"
    );
    let transfer = Some(Transfer { clock: 0, width: 4, address_cycles: 1 });
    assert_eq!(
        said(with(ProcessorConfig { transfer, ..card() })),
        "the bus of processor 1 has a clock or a width of 0"
    );
}
