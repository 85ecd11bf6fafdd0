//! Schedules worked by hand, in microseconds.

use forebay_pipeline::{
    Arrival, Arrivals, Discipline, Grant, Law, Outcome, Overflow, Pipeline, RunEnds, Server, Stage, simulate,
};
use forebay_time::{Duration, Time};

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn stage(name: &str, time_us: u64, buffer: u32) -> Stage {
    Stage::new(name, Law::Constant(us(time_us)), buffer)
}

/// Packets that come at these times, until the last has left.
fn trace(times_us: &[u64], stages: Vec<Stage>) -> Pipeline {
    let arrival = |&t: &u64| Arrival { at: Time::ZERO + us(t), bytes: 100 };
    let arrivals = Arrivals::Trace(times_us.iter().map(arrival).collect());
    Pipeline { duration: None, arrivals, stages, ..Pipeline::default() }
}

/// Two stages of one place: a serves in 10, b in 30.
#[test]
fn both_rules_of_blocking_by_hand() {
    let stages = || vec![stage("a", 10, 1), stage("b", 30, 1)];
    let blocks = |overflow| run(&Pipeline { overflow, ..trace(&[0, 12, 20, 63], stages()) });
    // Before service: the second enters a at 12 and is served there from 40, when b is empty, to 50, and in b to 80; the
    // third finds a full; the fourth enters a at 63 and is served from 80 to 90, in b to 120. Delays 40, 68, 57.
    let before = blocks(Overflow::Block);
    near(times(&before), (55.0, 120.0));
    // After service: the second is served in a from 12 to 22, holds it until 40, and leaves b at 70; the third finds a
    // full; the fourth is served in a from 63 to 73, in b to 103. Delays 40, 58, 40.
    let after = blocks(Overflow::BlockAfterService);
    near(times(&after), (46.0, 103.0));
    assert_eq!((before.lost, after.lost), (1, 1));
    let blocked = |outcome: &Outcome| outcome.stages[0].blocked * outcome.elapsed_s * 1e6;
    // 28 and 17 before service, 18 after it.
    assert!((blocked(&before) - 45.0).abs() < 1e-6 && (blocked(&after) - 18.0).abs() < 1e-6);
}

/// A 30 and B 20 on the core, C 10 in between; packets at 0 and 5.
fn core(discipline: Discipline, cores: u32) -> Pipeline {
    let stages = vec![stage("A", 30, 9).on(0), stage("C", 10, 9), stage("B", 20, 9).on(0)];
    let servers = vec![Server { name: "core".into(), cores, discipline, breakdowns: None, power: None }];
    Pipeline { servers, ..trace(&[0, 5], stages) }
}

fn turns(run_us: u64, switch_us: u64, run_ends: RunEnds, grant: Grant) -> Discipline {
    let [run_length, switch_delay] = [run_us, switch_us].map(|t| Law::Constant(us(t)));
    Discipline::InterruptDriven { run_length, switch_delay, run_ends, grant }
}

fn run(pipeline: &Pipeline) -> Outcome {
    let outcome = simulate(pipeline).unwrap();
    assert_eq!(outcome.generated, outcome.processed + outcome.lost + outcome.in_flight);
    outcome
}

/// Mean delay and end of the run in microseconds.
fn times(outcome: &Outcome) -> (f64, f64) {
    (outcome.delay.mean_s * 1e6, outcome.elapsed_s * 1e6)
}

fn near(ours: (f64, f64), by_hand: (f64, f64)) {
    assert!(
        (ours.0 - by_hand.0).abs() < 1e-9 && (ours.1 - by_hand.1).abs() < 1e-9,
        "{ours:?} is not {by_hand:?}"
    );
}

#[test]
fn one_stage_with_two_places() {
    // At 0, 10, 20, ..; served 0-25, 25-50, 50-75, 75-100; 20, 40, 60, 70, 90 find it full. The one
    // that ends at 50 leaves before the one that comes at 50. The run is [0, 100).
    let outcome = run(&Pipeline {
        duration: Some(us(100)),
        arrivals: Arrivals::Constant(us(10)),
        stages: vec![stage("only", 25, 2)],
        ..Pipeline::default()
    });
    assert_eq!((outcome.generated, outcome.processed, outcome.lost, outcome.in_flight), (10, 3, 5, 2));
    assert_eq!(outcome.stages[0].utilisation, 1.0);
    assert_eq!(outcome.stages[0].max_queue, 1);
    // One waits 10-25, 30-50, 50-75, 80-100.
    assert!((outcome.stages[0].mean_queue - 0.8).abs() < 1e-12);
    assert!((outcome.delay.mean_s * 1e6 - (25.0 + 40.0 + 45.0) / 3.0).abs() < 1e-9);
}

#[test]
fn runs_that_end_with_the_packet() {
    // A 0-30, 30-60 without a switch; B asks at 40: switch 60-65, B 65-85, 85-105.
    let outcome = run(&core(turns(1000, 5, RunEnds::Packet, Grant::FirstAsked), 1));
    near(times(&outcome), ((85.0 + 100.0) / 2.0, 105.0));
    assert_eq!(outcome.servers[0].switches, 1);
    assert!((outcome.servers[0].utilisation - 100.0 / 105.0).abs() < 1e-12);
    assert!((outcome.servers[0].switching - 5.0 / 105.0).abs() < 1e-12);
    assert_eq!(outcome.stages[2].max_queue, 1);
}

#[test]
fn runs_cut_off_at_their_length_resume() {
    // A 0-30, 30-40 | B 45-55 | A 60-70 | B 75-85 ends with the packet | A 90-100 | C -110 | B 115-135.
    let outcome = run(&core(turns(10, 5, RunEnds::Packet, Grant::FirstAsked), 1));
    near(times(&outcome), ((85.0 + 130.0) / 2.0, 135.0));
    assert_eq!(outcome.servers[0].switches, 5);
}

#[test]
fn slices_go_on_over_packets() {
    // At 0, 1, 2. Slices of 50: A 0-30, 30-50 although B asks at 40 | B 50-70, nothing more to do
    // | A 70-80, 80-110 (B asks at 90, the run began at 70) | B 110-130, 130-150 (A has nothing).
    let mut pipeline = core(turns(50, 0, RunEnds::Slice, Grant::FirstAsked), 1);
    pipeline.arrivals = trace(&[0, 1, 2], vec![]).arrivals;
    let outcome = run(&pipeline);
    near(times(&outcome), ((70.0 + 129.0 + 148.0) / 3.0, 150.0));
    assert_eq!(outcome.servers[0].switches, 3);
    // By the packet instead: A 0-30, 30-60 | B 60-80 | A 80-110 | B 110-130, 130-150.
    let outcome = run(&Pipeline {
        servers: vec![Server {
            name: "core".into(),
            cores: 1,
            discipline: turns(1000, 0, RunEnds::Packet, Grant::FirstAsked),
            breakdowns: None,
            power: None,
        }],
        ..pipeline
    });
    near(times(&outcome), ((80.0 + 129.0 + 148.0) / 3.0, 150.0));
}

#[test]
fn busy_waiting_holds_the_core_through() {
    let outcome = run(&core(Discipline::busy_waiting(), 1));
    near(times(&outcome), ((60.0 + 115.0) / 2.0, 120.0));
    assert!((outcome.servers[0].utilisation - 100.0 / 120.0).abs() < 1e-12);
    assert!((outcome.servers[0].waiting - 20.0 / 120.0).abs() < 1e-12);
    assert_eq!(outcome.stages.iter().map(|s| s.max_queue).collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn a_second_context_works_meanwhile() {
    let threads = |switch| Discipline::BusyWaiting { contexts: 2, switch_delay: Law::Constant(us(switch)) };
    // First: A 0-30, C 30-40, B 60-80. Second: A 30-60, C 60-70, B 80-100.
    near(times(&run(&core(threads(0), 1))), ((80.0 + 95.0) / 2.0, 100.0));
    // Each change takes 1: A 0-30 | A 31-61 | B 62-82 | B 83-103.
    near(times(&run(&core(threads(1), 1))), ((82.0 + 98.0) / 2.0, 103.0));
}

#[test]
fn priorities_cut_off() {
    let mut pipeline = core(turns(1000, 0, RunEnds::Packet, Grant::PreemptivePriority), 1);
    pipeline.stages[2].priority = 1;
    // A 0-30, 30-40 | B 40-60 | A 60-80 | C 80-90 | B 90-110.
    near(times(&run(&pipeline)), ((60.0 + 105.0) / 2.0, 110.0));
    // The other way round A's second packet is finished first.
    pipeline.stages[2].priority = 0;
    pipeline.stages[0].priority = 1;
    near(times(&run(&pipeline)), ((80.0 + 95.0) / 2.0, 100.0));
}

#[test]
fn two_cores() {
    // A 0-30 and 5-35; C 30-40, 40-50; B 40-60 and 50-70.
    let outcome = run(&core(turns(1000, 0, RunEnds::Packet, Grant::FirstAsked), 2));
    near(times(&outcome), ((60.0 + 65.0) / 2.0, 70.0));
    assert!((outcome.servers[0].utilisation - 100.0 / 140.0).abs() < 1e-12);
}

#[test]
fn several_units_of_a_stage() {
    let units = Stage { units: 2, ..stage("units", 10, 9) };
    // 0-10, 0-10, 10-20.
    let outcome = run(&trace(&[0, 0, 0], vec![units]));
    near(times(&outcome), (40.0 / 3.0, 20.0));
    assert_eq!(outcome.stages[0].utilisation, 0.75);
}

#[test]
fn batches_share_a_setup() {
    let batch = Stage { batch: 3, setup: us(5), ..stage("batch", 10, 9) };
    // 0-15, then the three that have come together, 15-50.
    let outcome = run(&trace(&[0, 1, 2, 3], vec![batch]));
    near(times(&outcome), ((15.0 + 49.0 + 48.0 + 47.0) / 4.0, 50.0));
}

#[test]
fn blocked_until_there_is_room() {
    let stages = vec![stage("first", 10, 9), stage("second", 30, 1)];
    let block = Pipeline { overflow: Overflow::Block, ..trace(&[0, 0, 0], stages.clone()) };
    // 0-10, 10-40; blocked to 40, 40-50, 50-80; blocked to 80, 80-90, 90-120.
    let outcome = run(&block);
    near(times(&outcome), ((40.0 + 80.0 + 120.0) / 3.0, 120.0));
    assert!((outcome.stages[0].blocked - 60.0 / 120.0).abs() < 1e-12);
    // Dropped, only the first passes; the others leave the first stage at 20 and 30.
    let outcome = run(&trace(&[0, 0, 0], stages));
    assert_eq!((outcome.processed, outcome.lost, outcome.stages[1].lost), (1, 2, 2));
}

#[test]
fn warm_up_is_not_counted() {
    let mut pipeline = Pipeline {
        duration: Some(us(1000)),
        arrivals: Arrivals::Constant(us(10)),
        stages: vec![stage("only", 5, 2)],
        ..Pipeline::default()
    };
    pipeline.warm_up = us(503);
    let outcome = run(&Pipeline { warm_up: us(500), ..pipeline.clone() });
    assert_eq!((outcome.generated, outcome.processed), (50, 50));
    // A packet is inside, from 500 to 505: 2 of its 5 us count.
    let outcome = simulate(&pipeline).unwrap();
    assert_eq!((outcome.generated, outcome.processed, outcome.in_flight_before), (49, 50, 1));
    assert!((outcome.stages[0].utilisation - (49.0 * 5.0 + 2.0) / 497.0).abs() < 1e-12);
}

#[test]
fn laws_by_size() {
    // 100 bytes and 25 more at 1 Gbit/s: 1 us.
    let law = Law::Rate { bits_per_s: 1e9, overhead_bytes: 25 };
    let outcome = run(&trace(&[0], vec![Stage::new("line", law, 1)]));
    assert_eq!(outcome.elapsed_s, 1e-6);
}

/// A service of two packets or more, or after a timeout: 5 for each, and 2 for each packet.
fn gathering(times_us: &[u64], batch: u32, timeout_us: Option<u64>) -> Pipeline {
    let setup = us(5);
    let batch_timeout = timeout_us.map(us);
    let only = Stage { setup, batch, batch_min: 2, batch_timeout, ..stage("only", 2, 10) };
    trace(times_us, vec![only])
}

#[test]
fn a_service_waits_for_its_packets_or_its_timeout() {
    // Those of 0 and 10 are served from 10 to 19; those of 12 and 14 wait for that and are served from 19 to 28; that of 40
    // waits for its timeout and is served from 60 to 67.
    let outcome = run(&gathering(&[0, 10, 12, 14, 40], 2, Some(20)));
    near(times(&outcome), ((19.0 + 9.0 + 16.0 + 14.0 + 27.0) / 5.0, 67.0));
    let only = &outcome.stages[0];
    assert_eq!((only.services, only.processed, only.max_queue), (Some(3), 5, 2));
    // One waits from 0 to 10, from 12 to 19 and from 40 to 60, another from 14 to 19.
    assert!((only.mean_queue - 42.0 / 67.0).abs() < 1e-12, "{only:?}");
    assert!((only.utilisation - 25.0 / 67.0).abs() < 1e-12);
    let late = run(&gathering(&[0, 1, 9], 3, Some(20)));
    // 0 and 1 from 1 to 10; that of 9 waits until 29, to 36.
    near(times(&late), ((10.0 + 9.0 + 27.0) / 3.0, 36.0));
    // A batch takes all that wait up to its size.
    let three = run(&gathering(&[0, 1, 2, 3, 4], 3, Some(20)));
    // 0 and 1 from 1 to 10; 2, 3 and 4 from 10 to 21.
    near(times(&three), ((10.0 + 9.0 + 19.0 + 18.0 + 17.0) / 5.0, 21.0));
}

#[test]
fn a_service_that_waits_for_ever_is_refused() {
    let bad = |pipeline: Pipeline| simulate(&pipeline).unwrap_err().0;
    assert!(bad(gathering(&[0, 1], 2, None)).contains("wait for ever"));
    assert!(bad(gathering(&[0, 1], 1, Some(20))).contains("batch_min"));
    let small = |buffer| {
        let mut pipeline = gathering(&[0, 1], 2, Some(20));
        pipeline.stages[0].buffer = buffer;
        pipeline
    };
    assert!(bad(small(1)).contains("batch_min"));
    assert_eq!(run(&small(2)).processed, 2);
    // With an end the last packets stay.
    let open = Pipeline { duration: Some(us(100)), ..gathering(&[0, 1, 50], 2, None) };
    assert_eq!(run(&open).in_flight, 1);
}
