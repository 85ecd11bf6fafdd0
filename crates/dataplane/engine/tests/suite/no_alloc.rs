//! No memory is taken or given per packet once the buffers are there.
//!
//! Allocations are counted on the thread that drives the data path, which is where packets wait for
//! them.

use crate::pair;

use allocation_counter::measure;
use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{BURST, Clock, Engine, Limits, ProcessorSetup, Scheduling, Settings};
use forebay_ipsec::DropReason;
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::Duration;

/// Number of allocations allowed to an engine after the warm-up, however many packets follow. They are lists for jobs
/// in flight, made when more are in flight than ever before, which depends on how busy the machine is. There are at
/// most as many as packets in flight (here 256). Usually there are none.
const ENGINE_MAX: u64 = 256;

/// An engine with one processor, which does all in place.
fn lone(direction: Direction, processor: Box<dyn Processor>) -> Engine {
    let (sad, keys) = pair::sas(direction);
    let limits = Limits { in_flight: 256, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    Engine::new(
        sad,
        &keys,
        vec![pair::setup(processor, Kind::Cpu, Cost::default())],
        settings,
        Clock::start(),
    )
    .expect("an engine")
}

/// Takes a burst through an engine, and hands what comes out to `each`.
fn through(
    engine: &mut Engine,
    direction: Direction,
    burst: &mut Vec<Job>,
    bytes: impl Iterator<Item = impl AsRef<[u8]>>,
    mut each: impl FnMut(usize, Result<(), DropReason>, &Packet),
) {
    for bytes in bytes {
        let mut packet = engine.buffer();
        assert!(packet.fill(bytes.as_ref()));
        burst.push(Job::new(packet, JobSpec::default(), 0));
    }
    engine.admit_burst(direction, burst);
    while engine.puts_off() {
        engine.poll();
    }
    assert_eq!(engine.in_flight(), 0);
    let mut free: [Option<Packet>; BURST] = [const { None }; BURST];
    for (place, output) in free.iter_mut().zip(engine.outputs()) {
        *place = Some(output.packet);
        each(0, output.result, place.as_ref().expect("just put there"));
    }
    free.into_iter().flatten().for_each(|packet| engine.recycle(packet));
    let mut free: [Option<Packet>; BURST] = [const { None }; BURST];
    free.iter_mut().zip(engine.refusals()).for_each(|(place, refusal)| *place = Some(refusal.packet));
    free.into_iter().flatten().for_each(|packet| engine.recycle(packet));
}

fn backends() -> Vec<fn() -> Box<dyn Processor>> {
    let mut all: Vec<fn() -> Box<dyn Processor>> = vec![|| Box::new(AwsLc::new())];
    match forebay_crypto_ipsec_mb::new() {
        Ok(_) => all.push(|| forebay_crypto_ipsec_mb::new().expect("it was there a moment ago")),
        Err(reason) => eprintln!("not run on ipsec-mb: {reason}"),
    }
    all
}

#[test]
fn a_lone_core_takes_no_memory() {
    for backend in backends() {
        let (mut seal, mut open) = (lone(Direction::Seal, backend()), lone(Direction::Open, backend()));
        let mut bursts = vec![Vec::new(); 64];
        for (number, burst) in bursts.iter_mut().enumerate() {
            *burst = vec![Vec::new(); BURST];
            let numbers = (number * BURST) as u64..;
            burst.iter_mut().zip(numbers).for_each(|(bytes, number)| pair::plain(number, bytes));
        }
        let mut sealed: Vec<Vec<u8>> = (0..BURST).map(|_| Vec::with_capacity(2_048)).collect();
        let mut jobs: Vec<Job> = Vec::with_capacity(BURST);
        let mut run = |bursts: &[Vec<Vec<u8>>]| {
            for burst in bursts {
                for forge in [0, 0, 1] {
                    let mut at = 0;
                    through(&mut seal, Direction::Seal, &mut jobs, burst.iter(), |_, result, packet| {
                        assert_eq!(result, Ok(()));
                        sealed[at].clear();
                        sealed[at].extend_from_slice(packet.bytes());
                        let last = sealed[at].len() - 1;
                        sealed[at][last] ^= forge;
                        at += 1;
                    });
                    assert_eq!(at, BURST);
                    let mut passed = 0;
                    // A second time, which the replay window refuses: drops take no memory either.
                    for _ in 0..2 {
                        through(&mut open, Direction::Open, &mut jobs, sealed.iter(), |_, result, packet| {
                            assert_eq!(result.is_ok(), forge == 0);
                            assert!(result.is_err() || burst.iter().any(|bytes| packet.bytes() == bytes));
                            passed += usize::from(result.is_ok());
                        });
                    }
                    assert_eq!(passed, if forge == 0 { BURST } else { 0 });
                }
            }
        };
        run(&bursts[..8]);
        let info = measure(|| run(&bursts));
        assert_eq!(info.count_total, 0, "{info:?}");
    }
}

/// A core, a second library and two cards, with bundles and audits.
fn engine(scheduling: Scheduling) -> Engine {
    let clock = Clock::start();
    let cost = Cost { init: Duration::from_micros(1), block: Duration::from_nanos(10), ..Cost::default() };
    let mut setups = vec![
        pair::setup(Box::new(AwsLc::new()), Kind::Cpu, cost),
        pair::setup(Box::new(AwsLc::new()), Kind::Cpu, cost),
    ];
    let bus = Bus::new(BusConfig::pci_66());
    for _ in 0..2 {
        let config =
            CardConfig { block: Duration::from_nanos(20), queue: 16, ..CardConfig::paper_230_mbit() };
        let card = Card::new(config, &bus, Box::new(AwsLc::new()));
        let card = pair::setup(Box::new(card), Kind::Accelerator, cost);
        setups.push(ProcessorSetup { queue: 16, ..card });
    }
    let (sad, keys) = pair::sas(Direction::Seal);
    // Audits often; and no removals because the machine is busy.
    let (slack, hold) = (Duration::from_millis(5_000), Duration::from_millis(10_000));
    let limits = Limits { in_flight: 256, audit_every: 4, slack, hold, ..Limits::default() };
    let settings = Settings { scheduling, limits, ..Settings::default() };
    Engine::new(sad, &keys, setups, settings, clock).expect("an engine")
}

fn pass(engine: &mut Engine, plain: &[Vec<u8>], packets: u64) {
    let (mut sent, mut passed) = (0, 0);
    while passed < packets {
        while sent < packets && engine.room() > 0 {
            let mut packet = engine.buffer();
            assert!(packet.fill(&plain[sent as usize % plain.len()]));
            assert!(engine.admit(Direction::Seal, packet, sent).is_ok());
            sent += 1;
        }
        engine.poll();
        if sent == packets {
            engine.flush();
        }
        // One at a time, because a drain borrows the engine: the list of them is the test's.
        let mut free: [Option<Packet>; 256] = [const { None }; 256];
        for (place, output) in free.iter_mut().zip(engine.outputs()) {
            assert_eq!(output.result, Ok(()));
            passed += 1;
            *place = Some(output.packet);
        }
        free.into_iter().flatten().for_each(|packet| engine.recycle(packet));
    }
}

#[test]
fn the_engine_takes_no_memory_per_packet() {
    let mut plain = vec![Vec::new(); 1_024];
    plain.iter_mut().enumerate().for_each(|(number, bytes)| pair::plain(number as u64, bytes));
    for scheduling in [
        Scheduling { policy: Policy::RoundRobin, ..Scheduling::default() },
        Scheduling { window: 16, timeout: Some(Duration::from_micros(50)), ..Scheduling::default() },
    ] {
        let mut engine = engine(scheduling);
        pass(&mut engine, &plain, 10_000);
        let once = measure(|| pass(&mut engine, &plain, 10_000));
        let twice = measure(|| pass(&mut engine, &plain, 20_000));
        println!("10,000 packets: {once:?}; 20,000: {twice:?}");
        assert!(once.count_total <= ENGINE_MAX && twice.count_total <= ENGINE_MAX, "{once:?}, {twice:?}");
        assert!(
            engine.processors().all(|one| one.packets > 0),
            "{:?}",
            engine.processors().collect::<Vec<_>>()
        );
        assert!(engine.stats().audits > 0);
    }
}
