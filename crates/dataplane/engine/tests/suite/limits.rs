//! Limits and back-pressure: what is refused, what waits, and that nothing waits for ever.

use crate::pair;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SessionId, Verdict, forward_processor};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{
    Clock, Engine, EngineError, Limits, Order, ProcessorSetup, Removal, Scheduling, Settings,
};
use forebay_ipsec::DropReason;
use forebay_scheduler::{ConfigError, Cost, Kind, Policy};
use forebay_time::{Duration, Time};

const WORKING: u8 = 0;
const FAILING: u8 = 1;

/// A core that goes wrong in ways that `Faulty` does not have.
struct Unwell {
    inner: AwsLc,
    how: Arc<AtomicU8>,
}

impl Unwell {
    fn new() -> (Unwell, Arc<AtomicU8>) {
        let how = Arc::new(AtomicU8::new(WORKING));
        (Unwell { inner: AwsLc::new(), how: how.clone() }, how)
    }
}

impl Processor for Unwell {
    forward_processor!(inner: capabilities, open_session, close_session, submit);

    fn name(&self) -> &str {
        "unwell"
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        let before = done.len();
        self.inner.poll(now, done);
        if self.how.load(Ordering::Relaxed) == FAILING {
            done[before..].iter_mut().for_each(|job| job.verdict = Verdict::Failed);
        }
    }
}

fn cost() -> Cost {
    Cost { init: Duration::from_micros(1), block: Duration::from_nanos(10), ..Cost::default() }
}

fn core() -> ProcessorSetup {
    pair::setup(Box::new(AwsLc::new()), Kind::Cpu, cost())
}

/// An engine that seals, on a core and a device.
fn with_device(processor: impl Processor + 'static, settings: Settings) -> Engine {
    let clock = Clock::start();
    let device = pair::setup(Box::new(processor), Kind::Accelerator, cost());
    engine(vec![core(), ProcessorSetup { queue: 16, ..device }], settings, clock).expect("an engine")
}

fn engine(setups: Vec<ProcessorSetup>, settings: Settings, clock: Clock) -> Result<Engine, EngineError> {
    let (sad, keys) = pair::sas(Direction::Seal);
    Engine::new(sad, &keys, setups, settings, clock)
}

fn settings(in_flight: usize) -> Settings {
    // Long enough for a busy machine: what is late here is so because it never comes.
    let (slack, hold) = (Duration::from_millis(500), Duration::from_millis(1_000));
    Settings { limits: Limits { in_flight, slack, hold, ..Limits::default() }, ..Settings::default() }
}

fn admit(engine: &mut Engine, number: u64) -> Result<(), DropReason> {
    let mut bytes = Vec::new();
    pair::plain(number, &mut bytes);
    let mut packet = engine.buffer();
    assert!(packet.fill(&bytes));
    engine.admit(Direction::Seal, packet, number).map_err(|(packet, reason)| {
        engine.recycle(packet);
        reason
    })
}

/// Takes outputs out and counts them; all must have passed.
fn take(engine: &mut Engine) -> u64 {
    let outputs: Vec<_> = engine.outputs().collect();
    for output in &outputs {
        assert_eq!(output.result, Ok(()), "packet {}", output.tag);
    }
    let count = outputs.len() as u64;
    outputs.into_iter().for_each(|output| engine.recycle(output.packet));
    count
}

/// Sends `count` packets as room allows, never flushing before the end; panics where nothing goes on.
fn pass(engine: &mut Engine, count: u64) {
    let (mut sent, mut passed, mut last) = (0, 0, engine.clock().now());
    while passed < count {
        while sent < count && engine.room() > 0 {
            admit(engine, sent).expect("there was room");
            sent += 1;
        }
        if sent == count {
            engine.flush();
        }
        engine.poll();
        let out = take(engine);
        passed += out;
        let now = engine.clock().now();
        last = if out > 0 { now } else { last };
        assert!(now.since(last) < Duration::from_millis(3_000), "stuck after {passed} of {sent} sent");
    }
    assert_eq!(engine.in_flight(), 0);
    assert_eq!(engine.drops().total(), 0);
}

#[test]
fn without_room_a_packet_is_refused_and_counted() {
    let mut engine = engine(vec![core()], settings(4), Clock::start()).expect("an engine");
    for number in 0..4 {
        assert_eq!(admit(&mut engine, number), Ok(()));
    }
    assert_eq!(engine.room(), 0);
    assert_eq!(admit(&mut engine, 4), Err(DropReason::QueueFull));
    assert_eq!(engine.drops().get(DropReason::QueueFull), 1);
    assert!(engine.drain(Duration::from_millis(3_000)));
    // What has come out and was not taken still takes up room: memory has a limit.
    assert_eq!((engine.in_flight(), engine.room()), (0, 0));
    assert_eq!(admit(&mut engine, 5), Err(DropReason::QueueFull));
    assert_eq!(take(&mut engine), 4);
    assert_eq!(engine.room(), 4);
}

#[test]
fn a_packet_longer_than_the_buffers_is_refused_and_counted() {
    let mut engine = engine(vec![core()], settings(4), Clock::start()).expect("an engine");
    let mut bytes = Vec::new();
    pair::plain(0, &mut bytes);
    let mut long = Packet::with_capacity(4_096);
    bytes.resize(4_096, 0);
    bytes[2..4].copy_from_slice(&4_096u16.to_be_bytes());
    assert!(long.fill(&bytes));
    let refused = engine.admit(Direction::Seal, long, 0).expect_err("too long");
    assert_eq!((refused.1, engine.drops().get(DropReason::TooLong)), (DropReason::TooLong, 1));
    // In a burst the others go on.
    let mut short = engine.buffer();
    pair::plain(1, &mut bytes);
    assert!(short.fill(&bytes));
    let mut burst = vec![Job::new(refused.0, JobSpec::default(), 7), Job::new(short, JobSpec::default(), 8)];
    engine.admit_burst(Direction::Seal, &mut burst);
    let refusals: Vec<_> = engine.refusals().map(|one| (one.tag, one.reason)).collect();
    assert_eq!((refusals, take(&mut engine)), (vec![(7, DropReason::TooLong)], 1));
}

/// A short packet far behind in a buffer that is larger than the engine's, which has no copy of it to
/// give away.
#[test]
fn a_packet_that_cannot_be_copied_is_done_by_the_core() {
    let mut settings = settings(16);
    settings.scheduling.policy = Policy::Single { processor: 1 };
    let (device, _) = Unwell::new();
    let mut engine = with_device(device, settings);
    let mut bytes = vec![0; 6_000];
    let mut short = Vec::new();
    pair::plain(1, &mut short);
    bytes.extend_from_slice(&short);
    let mut packet = Packet::with_capacity(8_192);
    assert!(packet.fill(&bytes));
    packet.pull_front(6_000).expect("as many bytes");
    engine.admit(Direction::Seal, packet, 0).map_err(|(_, reason)| reason).expect("it is short enough");
    assert!(engine.drain(Duration::from_millis(3_000)));
    assert_eq!((take(&mut engine), engine.stats().redone), (1, 1));
    assert!(engine.stats().removals.is_empty());
}

/// Room for fewer packets than the window holds: the window would never fill.
#[test]
fn fewer_packets_in_flight_than_the_window_holds_is_an_error() {
    let scheduling = Scheduling { window: 8, ..Scheduling::default() };
    let found = engine(vec![core()], Settings { scheduling, ..settings(7) }, Clock::start());
    let expected = ConfigError::InputBelowWindow { input: 7, window: 8 };
    assert!(matches!(found, Err(EngineError::Scheduler(error)) if error == expected));
}

#[test]
fn keys_must_be_there_for_every_sa() {
    let (sad, keys) = pair::sas(Direction::Seal);
    let found = Engine::new(sad, &keys[1..], vec![core()], settings(8), Clock::start());
    assert!(matches!(found, Err(EngineError::Keys { sas: 4, keys: 3 })));
}

/// Queues of one job, windows with and without a timeout, room for exactly the window, both orders: the
/// caller never says that it has no more until the end, and nothing stands still.
#[test]
fn the_tightest_limits_do_not_lock_up() {
    for (window, timeout, in_flight, order) in [
        (1, None, 1, Order::PerSa),
        (8, None, 8, Order::PerSa),
        (8, None, 8, Order::Total),
        (8, None, 9, Order::Total),
        (8, Some(Duration::from_micros(50)), 8, Order::Total),
        (8, Some(Duration::from_micros(50)), 64, Order::PerSa),
        (8, Some(Duration::ZERO), 12, Order::Total),
    ] {
        let (device, _) = Unwell::new();
        let clock = Clock::start();
        let mut setups = vec![core(), pair::setup(Box::new(device), Kind::Accelerator, cost())];
        setups.iter_mut().for_each(|one| one.queue = 1);
        let scheduling = Scheduling { window, timeout, ..Scheduling::default() };
        let mut engine =
            engine(setups, Settings { scheduling, order, ..settings(in_flight) }, clock).expect("an engine");
        pass(&mut engine, 500);
    }
}

/// A bundle larger than what the running core does at a time, and a burst of none taken as one.
#[test]
fn a_burst_of_any_size_gets_through() {
    for burst in [0, 1, 3, 10_000] {
        let mut settings = settings(6_000);
        settings.limits.burst = burst;
        settings.scheduling = Scheduling { window: 32, ..Scheduling::default() };
        let core = ProcessorSetup { queue: 4_096, ..core() };
        let mut engine = engine(vec![core], settings, Clock::start()).expect("an engine");
        pass(&mut engine, 12_000);
    }
}

/// A processor whose every job fails is taken out; until then the core does its jobs, and does not
/// forget its own over them.
#[test]
fn a_processor_that_fails_at_everything_is_taken_out() {
    let (device, how) = Unwell::new();
    let mut engine = with_device(device, settings(256));
    pass(&mut engine, 500);
    how.store(FAILING, Ordering::Relaxed);
    pass(&mut engine, 5_000);
    let removals: Vec<Removal> = engine.stats().removals.iter().map(|&(_, _, why)| why).collect();
    assert_eq!(removals.first(), Some(&Removal::Failing), "{:?}", engine.stats());
    // And back, once it is well.
    how.store(WORKING, Ordering::Relaxed);
    let (before, start) = (engine.processors().nth(1).map(|one| one.packets), engine.clock().now());
    while engine.processors().nth(1).map(|one| one.packets) == before {
        assert!(engine.clock().now().since(start) < Duration::from_millis(5_000), "it did not come back");
        pass(&mut engine, 100);
    }
}

/// Dropped in the middle of everything.
#[test]
fn an_engine_may_be_dropped_while_jobs_are_under_way() {
    let (device, _) = Unwell::new();
    let mut engine = with_device(device, settings(256));
    for number in 0..200 {
        admit(&mut engine, number).expect("there is room");
    }
    engine.poll();
    assert!(engine.in_flight() > 0);
}

/// A core whose jobs take a microsecond for each 64 bytes, wherever they stand in a burst.
struct Spinning(AwsLc, Clock);

impl Processor for Spinning {
    forward_processor!(0: capabilities, open_session, close_session, poll);

    fn name(&self) -> &str {
        "spinning"
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        let bytes: u64 = jobs.iter().map(|job| job.packet.len() as u64).sum();
        let start = self.1.now();
        self.0.submit(now, jobs);
        while self.1.now().since(start) < Duration::from_nanos(bytes * 1_000 / 64) {
            std::hint::spin_loop();
        }
    }
}

/// Only whole bursts can be timed; what a block costs is still found, from bursts of different bytes.
#[test]
fn the_core_s_cost_is_learnt_from_bursts() {
    let clock = Clock::start();
    let prior = Cost { init: Duration::from_micros(8), ..Cost::default() };
    let core = pair::setup(Box::new(Spinning(AwsLc::new(), clock)), Kind::Cpu, prior);
    // A core by itself has nothing to choose, and is not measured; another that is never chosen is enough.
    let slow = Cost { init: Duration::from_millis(100), ..Cost::default() };
    let other = pair::setup(Box::new(AwsLc::new()), Kind::Cpu, slow);
    let mut engine = engine(vec![core, other], settings(64), clock).expect("an engine");
    pass(&mut engine, 20_000);
    let cost = engine.cost(0, SessionId(0)).expect("a cost");
    assert!(engine.costs(0).iter().any(|(_, of_suite)| *of_suite == cost));
    let block = cost.block.as_nanos();
    // 250 ns, give or take what a busy machine adds; by equal shares of a burst it would be a tenth of it.
    assert!((60..=1_000).contains(&block), "{block} ns a block");
}

/// The same where the core keeps whole bursts, which it does at once.
#[test]
fn and_from_bursts_that_it_does_in_place() {
    let clock = Clock::start();
    let prior = Cost { init: Duration::from_micros(8), ..Cost::default() };
    let core = pair::setup(Box::new(Spinning(AwsLc::new(), clock)), Kind::Cpu, prior);
    let slow = Cost { init: Duration::from_millis(100), ..Cost::default() };
    let other = pair::setup(Box::new(AwsLc::new()), Kind::Cpu, slow);
    let mut engine = engine(vec![core, other], settings(64), clock).expect("an engine");
    let (mut burst, mut bytes) = (Vec::new(), Vec::new());
    // Of one SA, and fewer than there are before the first trial of the other.
    let mut numbers = (0..).filter(|&number| {
        let mut bytes = Vec::new();
        pair::plain(number, &mut bytes);
        bytes[17] == 0
    });
    for _ in 0..40 {
        for number in numbers.by_ref().take(20) {
            pair::plain(number, &mut bytes);
            let mut buffer = engine.buffer();
            assert!(buffer.fill(&bytes));
            burst.push(Job::new(buffer, JobSpec::default(), number));
        }
        engine.admit_burst(Direction::Seal, &mut burst);
        assert_eq!(take(&mut engine), 20, "at once");
    }
    assert_ne!(engine.cost(0, SessionId(0)), Some(prior));
}
