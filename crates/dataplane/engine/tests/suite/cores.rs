//! Several cores that share SAs: each carries bursts of its own, and what leaves is in the order of each SA.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::pair;
use forebay_crypto::{
    Capabilities, Direction, Job, JobSpec, Packet, Processor, SaKeys, SessionError, SessionId,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, Limits, Order, Output, ProcessorSetup, Settings};
use forebay_ipsec::{Action, DropReason, Policy, PolicyPlace};
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};

fn core() -> ProcessorSetup {
    ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default())
}

fn settings(order: Order) -> Settings {
    Settings { order, ..Settings::default() }
}

/// So many engines that share the SAs of [`pair::sas`].
fn cores(direction: Direction, count: u32, settings: &Settings) -> Vec<Engine> {
    let clock = Clock::start();
    let (sad, keys) = pair::sas(direction);
    let first = Engine::new(sad, &keys, vec![core()], settings.clone(), clock).expect("an engine");
    let others: Vec<_> = (1..count)
        .map(|cpu| first.beside(cpu, vec![core()], settings.clone(), clock).expect("an engine"))
        .collect();
    std::iter::once(first).chain(others).collect()
}

fn burst(engine: &mut Engine, numbers: std::ops::Range<u64>) -> Vec<Job> {
    let mut bytes = Vec::new();
    let job = |number| {
        pair::plain(number, &mut bytes);
        let mut packet = engine.buffer();
        assert!(packet.fill(&bytes));
        Job::new(packet, JobSpec::default(), number)
    };
    numbers.map(job).collect()
}

/// Carries a burst on, with what is put off of it.
fn carry(engine: &mut Engine, burst: &mut Vec<Job>) {
    engine.carry(burst);
    while engine.puts_off() {
        engine.poll();
    }
}

fn admit(engine: &mut Engine, direction: Direction, burst: &mut Vec<Job>) {
    engine.prepare_burst(direction, burst);
    carry(engine, burst);
}

fn tags(engine: &mut Engine) -> Vec<u64> {
    engine.outputs().inspect(|output| assert_eq!(output.result, Ok(()))).map(|output| output.tag).collect()
}

#[test]
fn a_burst_that_is_done_first_waits_for_those_before_it_and_leaves_with_them() {
    for order in [Order::PerSa, Order::Total] {
        let mut engines = cores(Direction::Seal, 3, &settings(order));
        let mut bursts = Vec::new();
        for (place, engine) in engines.iter_mut().enumerate() {
            let mut burst = burst(engine, 32 * place as u64..32 * (place as u64 + 1));
            engine.prepare_burst(Direction::Seal, &mut burst);
            bursts.push(burst);
        }
        carry(&mut engines[2], &mut bursts[2]);
        assert_eq!((tags(&mut engines[2]), engines[2].in_flight()), (vec![], 32));
        carry(&mut engines[0], &mut bursts[0]);
        let mut first = tags(&mut engines[1]);
        if order == Order::PerSa {
            // The burst is of several suites.
            first.sort_unstable();
        }
        assert_eq!(first, (0..32).collect::<Vec<_>>(), "whoever asks gets them");
        carry(&mut engines[1], &mut bursts[1]);
        let rest: Vec<_> =
            engines[1].outputs().map(|output| (output.session.expect("no policies"), output.tag)).collect();
        let mut sorted: Vec<u64> = rest.iter().map(|(_, tag)| *tag).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, (32..96).collect::<Vec<_>>());
        for sa in (0..4).map(SessionId) {
            assert!(rest.iter().filter(|one| one.0 == sa).is_sorted(), "{rest:?}");
        }
        if order == Order::Total {
            assert!(rest.iter().map(|(_, tag)| tag).is_sorted(), "{rest:?}");
        }
        let released: u64 = engines.iter().map(|engine| engine.stats().released).sum();
        assert_eq!(released, 32, "those of the third core were parked");
    }
}

/// AWS-LC, with which the jobs of one SA take long.
struct Slow {
    library: AwsLc,
    sa: Arc<AtomicU32>,
    takes: std::time::Duration,
    /// The SAs of each submission.
    given: Arc<Mutex<Vec<Vec<SessionId>>>>,
}

impl Processor for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn capabilities(&self) -> &Capabilities {
        self.library.capabilities()
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        self.library.open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        self.library.close_session(id);
    }

    #[allow(clippy::disallowed_methods)] // it is slow
    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        let mut sas: Vec<_> = jobs.iter().map(|job| job.spec.session).collect();
        sas.dedup();
        if sas.contains(&SessionId(self.sa.load(Ordering::Relaxed))) {
            std::thread::sleep(self.takes);
        }
        self.given.lock().expect("no panic").push(sas);
        self.library.submit(now, jobs);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        self.library.poll(now, done);
    }
}

/// An engine with a [`Slow`] core, which SA is slow, and what the core was given.
#[allow(clippy::type_complexity)] // three things of a test
fn slow(
    direction: Direction,
    order: Order,
    takes_ms: u64,
) -> (Engine, Arc<AtomicU32>, Arc<Mutex<Vec<Vec<SessionId>>>>) {
    let (sad, keys) = pair::sas(direction);
    let (sa, given) = (Arc::new(AtomicU32::new(1)), Arc::new(Mutex::new(Vec::new())));
    let slow = Slow {
        library: AwsLc::new(),
        sa: sa.clone(),
        takes: std::time::Duration::from_millis(takes_ms),
        given: given.clone(),
    };
    let processors = vec![ProcessorSetup::new(Box::new(slow), Kind::Cpu, Cost::default())];
    let engine = Engine::new(sad, &keys, processors, settings(order), Clock::start()).expect("an engine");
    (engine, sa, given)
}

const ROUNDS: u64 = 100;

/// Packets of a suite that takes little time do not wait for those of their burst that take long, outbound and inbound; what a
/// suite takes is learnt again when that changes.
#[test]
fn of_a_burst_of_several_suites_what_takes_little_time_leaves_first() {
    for (order, direction) in
        [(Order::PerSa, Direction::Seal), (Order::PerSa, Direction::Open), (Order::Total, Direction::Seal)]
    {
        let (mut engine, sa, given) = slow(direction, order, 5);
        let sealed = sealed(64 * ROUNDS);
        // What is slow goes last as soon as that is known. A busy machine may hold up others, so it is not said when.
        let (mut slow, mut found) = (SessionId(1), 0);
        for round in 0..ROUNDS {
            sa.store(slow.0, Ordering::Relaxed);
            let numbers = 64 * round..64 * (round + 1);
            let mut jobs = burst(&mut engine, numbers.clone());
            if direction == Direction::Open {
                for (job, bytes) in jobs.iter_mut().zip(&sealed[numbers.start as usize..]) {
                    assert!(job.packet.fill(bytes));
                }
            }
            given.lock().expect("no panic").clear();
            engine.admit_burst(direction, &mut jobs);
            let mut left = Vec::new();
            loop {
                let waits = engine.at_work();
                left.extend(engine.outputs().map(|one| (one.session, one.tag, one.released)));
                assert_eq!(
                    (left.len() + waits, engine.puts_off()),
                    (64, waits > 0),
                    "what is done can be taken"
                );
                if !engine.poll() && waits == 0 {
                    break;
                }
            }
            let given = given.lock().expect("no panic");
            if order == Order::Total {
                assert!(given.len() == 1 && left.iter().map(|one| one.1).is_sorted());
                continue;
            }
            for sa in (0..4).map(|sa| Some(SessionId(sa))) {
                assert!(left.iter().filter(|one| one.0 == sa).map(|one| one.1).is_sorted());
            }
            if given.last() == Some(&vec![slow]) {
                let last = left.iter().filter(|one| one.0 != Some(slow)).map(|one| one.2).max();
                let first = left.iter().filter(|one| one.0 == Some(slow)).map(|one| one.2).min();
                assert!(last < first, "{last:?} {first:?}");
                // And when another one is.
                (slow, found) = (SessionId(2), found + 1);
            }
            if found == 2 {
                break;
            }
        }
        assert!(found == 2 || order == Order::Total, "{direction:?}: {found}");
    }
}

/// What was put off is done before new packets, so that it never starves; and if its SA goes meanwhile, it is dropped.
#[test]
fn packets_that_are_put_off_are_done_with_the_next_burst_or_dropped_with_their_sa() {
    let (mut engine, ..) = slow(Direction::Seal, Order::PerSa, 200);
    let mut first = burst(&mut engine, 0..64);
    admit(&mut engine, Direction::Seal, &mut first);
    assert_eq!(tags(&mut engine).len(), 64);
    let mut second = burst(&mut engine, 64..128);
    engine.admit_burst(Direction::Seal, &mut second);
    assert!(engine.puts_off() && engine.in_flight() > 0);
    let mut third = burst(&mut engine, 128..192);
    engine.admit_burst(Direction::Seal, &mut third);
    assert_eq!((engine.puts_off(), engine.in_flight()), (false, 0));
    let left: Vec<_> = engine.outputs().map(|one| (one.session, one.tag)).collect();
    assert_eq!(left.len(), 128);
    for sa in (0..4).map(|sa| Some(SessionId(sa))) {
        assert!(left.iter().filter(|one| one.0 == sa).map(|one| one.1).is_sorted());
    }
    let mut fourth = burst(&mut engine, 192..256);
    engine.admit_burst(Direction::Seal, &mut fourth);
    assert!(engine.puts_off());
    engine.remove_sa(SessionId(1)).expect("it was there");
    while engine.poll() {}
    let left: Vec<Output> = engine.outputs().collect();
    assert_eq!(left.len(), 64);
    for output in left {
        let is_gone = output.session == Some(SessionId(1));
        assert_eq!(output.result, if is_gone { Err(DropReason::OutStateInvalid) } else { Ok(()) });
    }
}

/// Packets of one SA that come apart leave side by side, in order, once the engine has seen their addresses; where all packets
/// keep their order they never do. What is changed meanwhile holds for the next burst.
#[test]
fn packets_of_an_sa_that_come_apart_are_put_side_by_side() {
    for direction in [Direction::Seal, Direction::Open] {
        for order in [Order::PerSa, Order::Total] {
            let mut engines = cores(direction, 2, &settings(order));
            let sealed = sealed(128 * 12);
            let mut runs = Vec::new();
            for round in 0..12 {
                let numbers = 128 * round..128 * (round + 1);
                for engine in &mut engines {
                    let mut jobs = burst(engine, numbers.clone());
                    if direction == Direction::Open {
                        for (job, bytes) in jobs.iter_mut().zip(&sealed[numbers.start as usize..]) {
                            assert!(job.packet.fill(bytes));
                        }
                    }
                    admit(engine, direction, &mut jobs);
                    let sas: Vec<_> = engine.outputs().map(|output| (output.session, output.tag)).collect();
                    for sa in (0..4).map(|sa| Some(SessionId(sa))) {
                        assert!(sas.iter().filter(|one| one.0 == sa).is_sorted());
                    }
                    runs.push(sas.chunk_by(|a, b| a.0 == b.0).count());
                    if direction == Direction::Open {
                        break; // the other would see each packet for the second time
                    }
                }
            }
            let last = runs.pop().expect("rounds");
            assert_eq!(last == 4, order == Order::PerSa, "{direction:?} {order:?} {runs:?} {last}");
        }
    }
}

/// What a policy lets through inbound is no ESP, whatever stands where an SPI would: its packets stay where they are.
#[test]
fn packets_that_no_sa_is_for_keep_their_order() {
    let mut engine = cores(Direction::Open, 1, &settings(Order::PerSa)).remove(0);
    let policy = Policy::new("all", Direction::Open, Action::Bypass);
    engine.add_policy(policy, PolicyPlace::Last).expect("a policy");
    for _ in 0..40 {
        let mut jobs = burst(&mut engine, 0..64);
        for (number, job) in (0..).zip(&mut jobs) {
            let len = (job.packet.len() - 20) as u16;
            let udp = &mut job.packet.bytes_mut()[20..32];
            udp[..4].copy_from_slice(&[4, 0, 0, 53]);
            udp[4..6].copy_from_slice(&len.to_be_bytes());
            // One flow, with two values where ESP in UDP would have an SPI.
            udp[8..].copy_from_slice(&[0, 0, 1, number % 2]);
        }
        engine.admit_burst(Direction::Open, &mut jobs);
        assert_eq!(tags(&mut engine), (0..64).collect::<Vec<_>>());
    }
}

#[test]
fn an_sa_that_is_removed_while_another_core_has_its_packets_drops_them_and_nobody_waits() {
    let mut engines = cores(Direction::Seal, 2, &settings(Order::PerSa));
    let mut first = burst(&mut engines[0], 0..16);
    engines[0].prepare_burst(Direction::Seal, &mut first);
    let mut second = burst(&mut engines[1], 16..32);
    engines[1].prepare_burst(Direction::Seal, &mut second);
    engines[1].remove_sa(SessionId(1)).expect("it was there");
    carry(&mut engines[1], &mut second);
    carry(&mut engines[0], &mut first);
    let outputs: Vec<Output> = engines[0].outputs().collect();
    assert_eq!(outputs.len(), 32);
    for output in outputs {
        let is_gone = output.session == Some(SessionId(1));
        let expected = if is_gone { Err(DropReason::OutStateInvalid) } else { Ok(()) };
        assert_eq!(output.result, expected, "packet {}", output.tag);
    }
}

#[test]
fn a_core_that_hangs_is_overtaken_after_the_stated_time_and_what_it_brings_then_is_dropped() {
    let ms = Duration::from_millis;
    let limits = Limits { hold: ms(10), overtake: ms(40), ..Limits::default() };
    let mut engines = cores(Direction::Seal, 2, &Settings { limits, ..Settings::default() });
    let mut first = burst(&mut engines[0], 0..16);
    engines[0].prepare_burst(Direction::Seal, &mut first);
    let begun = engines[1].clock().now();
    let mut second = burst(&mut engines[1], 16..32);
    engines[1].admit_burst(Direction::Seal, &mut second);
    while engines[1].in_flight() > 0 {
        engines[1].poll();
        assert!(engines[1].clock().now().since(begun) < ms(20_000), "nobody overtakes");
    }
    assert!(engines[1].clock().now().since(begun) >= ms(40));
    let mut passed = tags(&mut engines[1]);
    passed.sort_unstable();
    assert_eq!((passed, engines[1].stats().overtaken), ((16..32).collect(), 16));
    carry(&mut engines[0], &mut first);
    let late: Vec<_> = engines[0].outputs().map(|output| output.result).collect();
    assert_eq!(late, vec![Err(DropReason::Overtaken); 16]);
    assert_eq!(
        (engines[0].drops().get(DropReason::Overtaken), engines[0].sad().in_flight(SessionId(0))),
        (16, 0)
    );
    // And all goes on.
    let mut third = burst(&mut engines[0], 32..48);
    admit(&mut engines[0], Direction::Seal, &mut third);
    let mut passed = tags(&mut engines[1]);
    passed.sort_unstable();
    assert_eq!(passed, (32..48).collect::<Vec<_>>());
}

/// Eight threads on however many CPUs there are, which take numbers in turn and lose their CPUs wherever it hurts: each
/// packet leaves once, in the order of its SA, and opens.
#[test]
fn eight_cores_lose_nothing_repeat_nothing_and_keep_the_order() {
    const PACKETS: u64 = 40_000;
    for direction in [Direction::Seal, Direction::Open] {
        let engines = cores(direction, 8, &settings(Order::PerSa));
        let sealed = (direction == Direction::Open).then(|| sealed(PACKETS));
        // The link: who takes from it prepares before the next may.
        let link = Mutex::new(0_u64);
        let out = Mutex::new(Vec::new());
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for (core, mut engine) in engines.into_iter().enumerate() {
                let (link, out, taken, sealed) = (&link, &out, &taken, &sealed);
                scope.spawn(move || {
                    let mut jobs = Vec::new();
                    loop {
                        let mut next = link.lock().expect("nobody panics");
                        let end = (*next + 1 + (*next * 7 + core as u64) % 64).min(PACKETS);
                        let mut bytes = Vec::new();
                        for number in *next..end.min(*next + engine.room() as u64) {
                            let mut packet = engine.buffer();
                            match sealed {
                                Some(sealed) => bytes.clone_from(&sealed[number as usize]),
                                None => pair::plain(number, &mut bytes),
                            }
                            assert!(packet.fill(&bytes));
                            jobs.push(Job::new(packet, JobSpec::default(), number));
                        }
                        *next += jobs.len() as u64;
                        engine.prepare_burst(direction, &mut jobs);
                        drop(next);
                        if (core + jobs.len()).is_multiple_of(3) {
                            std::thread::yield_now();
                        }
                        engine.carry(&mut jobs);
                        engine.poll();
                        let mut out = out.lock().expect("nobody panics");
                        let outputs: Vec<_> = engine.outputs().collect();
                        taken.fetch_add(outputs.len() as u64, Ordering::Relaxed);
                        for Output { packet, tag, session, result, .. } in outputs {
                            assert_eq!(result, Ok(()), "packet {tag}");
                            out.push((tag, session, packet.bytes().to_vec()));
                            engine.recycle(packet);
                        }
                        drop(out);
                        if taken.load(Ordering::Relaxed) == PACKETS {
                            return;
                        }
                    }
                });
            }
        });
        let out = out.into_inner().expect("nobody panics");
        assert_eq!(out.len() as u64, PACKETS);
        let mut last = HashMap::new();
        let mut plain = Vec::new();
        for (tag, session, bytes) in &out {
            let before = last.insert(*session, *tag);
            assert!(before.is_none_or(|before| before < *tag), "{before:?} and then {tag}");
            if direction == Direction::Open {
                pair::plain(*tag, &mut plain);
                assert_eq!(*bytes, plain, "packet {tag}");
            }
        }
        if direction == Direction::Seal {
            // With the smallest window that there is, every one of them is accepted.
            let mut opener = cores(Direction::Open, 1, &settings(Order::PerSa)).remove(0);
            for (tag, _, bytes) in out {
                let mut packet = opener.buffer();
                assert!(packet.fill(&bytes));
                opener.admit_burst(Direction::Open, &mut vec![Job::new(packet, JobSpec::default(), tag)]);
                assert_eq!(tags(&mut opener), [tag]);
            }
        }
    }
}

fn sealed(count: u64) -> Vec<Vec<u8>> {
    let mut engine = cores(Direction::Seal, 1, &settings(Order::PerSa)).remove(0);
    let mut all = vec![vec![]; count as usize];
    for number in 0..count {
        let mut burst = burst(&mut engine, number..number + 1);
        engine.admit_burst(Direction::Seal, &mut burst);
        for Output { packet, tag, .. } in engine.outputs().collect::<Vec<_>>() {
            all[tag as usize] = packet.bytes().to_vec();
            engine.recycle(packet);
        }
    }
    all
}

/// One core takes all packets in and the other takes all out: buffers come back, so that no memory is taken for each packet.
#[test]
fn buffers_come_back_to_the_core_that_needs_them() {
    let mut cores = cores(Direction::Seal, 2, &Settings::default());
    let (mut bytes, mut most) = (Vec::new(), 0);
    for round in 0..400 {
        let mut burst = vec![];
        for number in 0..32 {
            pair::plain(number, &mut bytes);
            let mut packet = cores[0].buffer();
            assert!(packet.fill(&bytes));
            burst.push(Job::new(packet, JobSpec::default(), number));
        }
        admit(&mut cores[0], Direction::Seal, &mut burst);
        let free: Vec<Packet> = cores[1].outputs().map(|output| output.packet).collect();
        assert_eq!(free.len(), 32);
        free.into_iter().for_each(|packet| cores[1].recycle(packet));
        if round > 200 {
            most = most.max(cores[0].free_buffers());
        }
    }
    assert!(most > 0, "the first core has none, and makes a buffer for each packet");
}
