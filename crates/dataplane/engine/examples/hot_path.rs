//! What `scripts/instructions.sh` counts the instructions of: the data path of one core, and the
//! scheduler, for a given number of packets.
//!
//! Everything that is not to be counted stands outside of the functions whose names begin with
//! `measured`; the script has valgrind collect inside of those only.
//!
//! Usage: `hot_path CASE PACKETS`; without arguments it lists the cases.

use std::hint::black_box;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, Suite, forward_processor,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{BURST, Clock, Engine, Limits, ProcessorSetup, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Config, Cost, Decision, Item, Kind, ProcessorConfig, Progress, Scheduler};
use forebay_time::{Duration, Time};

/// The suite everything is sealed with: what it is matters to the cipher's share only.
const SUITE: &str = "aes128gcm16";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            cases().iter().for_each(|case| println!("{case}"));
            Ok(())
        }
        [case, packets] => run(case, packets),
        _ => Err("usage: hot_path [CASE PACKETS]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hot_path: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Every case that this machine can run: direction (6 for IPv6 in IPv6), library and length of the plain packet on a lone
/// core; sealing with a choice among three processors; or the scheduler with its window.
fn cases() -> Vec<String> {
    let mut cases = Vec::new();
    for backend in ["aws-lc", "ipsec-mb"] {
        if processor(backend).is_ok() {
            for direction in ["seal", "open"] {
                cases.extend([64, 1408].map(|size| format!("{direction}-{backend}-{size}")));
                cases.push(format!("{direction}6-{backend}-64"));
            }
            cases.push(format!("three-{backend}-64"));
        }
    }
    cases.extend([1, 8].map(|window| format!("scheduler-{window}")));
    cases
}

fn run(case: &str, packets: &str) -> Result<()> {
    let bursts = packets.parse::<usize>()?.div_ceil(BURST);
    let (what, parameters) = case.split_once('-').ok_or("a case is words with dashes between them")?;
    if what == "scheduler" {
        return schedule(parameters.parse()?, bursts);
    }
    let (backend, size) = parameters.rsplit_once('-').ok_or("no size")?;
    let (backend, size) = (processor(backend)?, size.parse()?);
    match what {
        "seal" => seal(backend, plain(size), bursts),
        "seal6" => seal(backend, plain6(size), bursts),
        "open" => open(backend, plain(size), bursts),
        "open6" => open(backend, plain6(size), bursts),
        "three" => three(backend, plain(size), bursts),
        _ => Err(format!("no case `{case}`").into()),
    }
}

fn processor(name: &str) -> Result<Box<dyn Processor>> {
    match name {
        "aws-lc" => Ok(Box::new(AwsLc::new())),
        "ipsec-mb" => forebay_crypto_ipsec_mb::new().map_err(|reason| reason.to_string().into()),
        _ => Err(format!("no library `{name}`").into()),
    }
}

/// The time of all engines here: it passes only where a processor says so, so that what is chosen does not depend on
/// how fast valgrind is.
static NOW: AtomicU64 = AtomicU64::new(0);

/// A burst through the engine: admission, turns, outputs. What a link does, filling buffers, is not counted.
#[inline(never)]
fn measured_burst(engine: &mut Engine, burst: &mut Vec<Job>, out: &mut Vec<Packet>, direction: Direction) {
    engine.admit_burst(direction, burst);
    while engine.in_flight() > 0 {
        engine.poll();
    }
    out.extend(engine.outputs().map(|output| output.packet));
}

/// Fills a burst with packets, takes it through the engine and hands what comes out to `each`.
fn pass(
    engine: &mut Engine,
    packets: &[Vec<u8>],
    direction: Direction,
    lists: &mut (Vec<Job>, Vec<Packet>),
    measured: bool,
    mut each: impl FnMut(&[u8]),
) {
    let (burst, out) = lists;
    for bytes in packets {
        let mut packet = engine.buffer();
        assert!(packet.fill(bytes));
        burst.push(Job::new(packet, JobSpec::default(), 0));
    }
    if measured {
        measured_burst(engine, burst, out, direction);
    } else {
        engine.admit_burst(direction, burst);
        out.extend(engine.outputs().map(|output| output.packet));
    }
    assert_eq!(out.len(), packets.len());
    for packet in out.drain(..) {
        each(packet.bytes());
        engine.recycle(packet);
    }
}

/// Lists for bursts of so many packets.
fn lists(packets: usize) -> (Vec<Job>, Vec<Packet>) {
    (Vec::with_capacity(packets), Vec::with_capacity(packets))
}

fn seal(processor: Box<dyn Processor>, plain: Vec<u8>, bursts: usize) -> Result<()> {
    let mut engine = engine(vec![setup(processor, 0)], &plain)?;
    let (plain, mut lists) = (vec![plain; BURST], lists(BURST));
    (0..bursts).for_each(|_| pass(&mut engine, &plain, Direction::Seal, &mut lists, true, |_| {}));
    assert!(engine.drops().total() == 0, "{:?}", engine.drops());
    Ok(())
}

fn open(processor: Box<dyn Processor>, plain: Vec<u8>, bursts: usize) -> Result<()> {
    let mut engine = engine(vec![setup(processor, 0)], &plain)?;
    let (plain, mut lists) = (vec![plain; BURST], lists(BURST));
    for _ in 0..bursts {
        let mut sealed = Vec::with_capacity(BURST);
        pass(&mut engine, &plain, Direction::Seal, &mut lists, false, |bytes| sealed.push(bytes.to_vec()));
        pass(&mut engine, &sealed, Direction::Open, &mut lists, true, |_| {});
    }
    assert!(engine.drops().total() == 0, "{:?}", engine.drops());
    Ok(())
}

/// A burst that is not measured through an engine with several processors.
fn drain(engine: &mut Engine, packets: &[Vec<u8>], (burst, out): &mut (Vec<Job>, Vec<Packet>)) {
    for bytes in packets {
        let mut packet = engine.buffer();
        assert!(packet.fill(bytes));
        burst.push(Job::new(packet, JobSpec::default(), 0));
    }
    engine.admit_burst(Direction::Seal, burst);
    while engine.in_flight() > 0 {
        engine.poll();
    }
    out.extend(engine.outputs().map(|output| output.packet));
    out.drain(..).for_each(|packet| engine.recycle(packet));
}

/// Three equal processors: each packet goes through a slot and the scheduler, two in three through a copy.
fn three(processor: Box<dyn Processor>, plain: Vec<u8>, bursts: usize) -> Result<()> {
    let mut all = vec![processor];
    all.extend((0..2).map(|_| Box::new(AwsLc::new()) as Box<dyn Processor>));
    let all = all.into_iter().enumerate().map(|(at, inner)| {
        let picoseconds = 10_000_000;
        let timed = Timed { inner, picoseconds, passes_time: at == 0 };
        setup(Box::new(timed), picoseconds)
    });
    let mut engine = engine(all.collect(), &plain)?;
    let (plain, mut lists) = (vec![plain; 2 * BURST], lists(2 * BURST));
    // Until costs are settled every submission is measured.
    (0..256).for_each(|_| drain(&mut engine, &plain, &mut lists));
    for _ in 0..bursts.div_ceil(2) {
        pass(&mut engine, &plain, Direction::Seal, &mut lists, true, |_| {});
    }
    assert!(engine.drops().total() == 0, "{:?}", engine.drops());
    let shares: Vec<u64> = engine.processors().map(|one| one.packets).collect();
    let all: u64 = shares.iter().sum();
    assert!(shares.iter().all(|&packets| packets > all / 5), "not a choice among three: {shares:?}");
    Ok(())
}

/// A processor whose jobs take `picoseconds` each by the time of all engines, and say so.
struct Timed {
    inner: Box<dyn Processor>,
    picoseconds: u64,
    /// Whether that is the time of all engines: the running core's.
    passes_time: bool,
}

impl Processor for Timed {
    forward_processor!(inner: name, capabilities, open_session, close_session, poll);

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        if self.passes_time {
            NOW.fetch_add(self.picoseconds * jobs.len() as u64, Ordering::Relaxed);
        }
        jobs.iter_mut().for_each(|job| job.took = Duration(self.picoseconds));
        self.inner.submit(now, jobs);
    }
}

fn setup(processor: Box<dyn Processor>, picoseconds: u64) -> ProcessorSetup {
    let cost = Cost { init: Duration(picoseconds), ..Cost::default() };
    ProcessorSetup { processor, kind: Kind::Cpu, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 }
}

fn plain(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; size];
    bytes[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    bytes
}

fn plain6(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; size];
    bytes[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 17, 64]);
    bytes[4..6].copy_from_slice(&((size - 40) as u16).to_be_bytes());
    bytes[8..40].fill(0xfd);
    bytes
}

/// An engine that seals and opens its own packets, in tunnels of the same version of IP as `plain`.
fn engine(processors: Vec<ProcessorSetup>, plain: &[u8]) -> Result<Engine> {
    let suite: Suite = SUITE.parse()?;
    let key = SecretBytes::new((0..suite.cipher_key_len() + suite.salt_len()).map(|k| k as u8).collect());
    let keys = SaKeys::new(suite, &key, &SecretBytes::new(Vec::new()))?;
    let config = |local: IpAddr, remote: IpAddr| SaConfig {
        replay_window: 1024,
        ..SaConfig::new("measured", Spi::MIN, suite, local, remote)
    };
    let (near, far) = match plain[0] >> 4 {
        4 => ("192.0.2.1".parse()?, "192.0.2.2".parse()?),
        _ => ("2001:db8::1".parse()?, "2001:db8::2".parse()?),
    };
    let mut sad = Ipsec::default();
    sad.add_outbound(config(near, far), IvRange::for_throwaway_key())?;
    sad.add_inbound(config(far, near))?;
    let limits = Limits { in_flight: 256, audit_every: 0, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    Ok(Engine::new(sad, &[keys.clone(), keys], processors, settings, Clock::told(&NOW))?)
}

/// A burst into the scheduler, out of it again, and done: two cores and two cards, eight SAs.
#[inline(never)]
fn measured_schedule(scheduler: &mut Scheduler, items: &[Item], placed: &mut [usize; 4], now: Time) {
    for item in items {
        assert!(scheduler.push(now, *item).is_ok());
    }
    scheduler.end_of_input();
    while let Decision::Dispatch { processor, job, prediction, .. } = scheduler.next(now) {
        black_box((job.items().len(), prediction));
        placed[processor] += 1;
        scheduler.submitted(processor);
    }
    for (processor, placed) in placed.iter_mut().enumerate() {
        (0..std::mem::take(placed)).for_each(|_| scheduler.complete(processor, 1, now));
    }
}

fn schedule(window: usize, bursts: usize) -> Result<()> {
    let cost = |init, block| Cost { init: Duration(init), block: Duration(block), ..Cost::default() };
    let core = ProcessorConfig::cpu(cost(400_000, 8_000));
    let card = ProcessorConfig::accelerator(cost(1_000_000, 4_000));
    let mut processors = vec![core.clone(), core, card.clone(), card];
    processors.iter_mut().for_each(|one| one.progress = Progress::InOrder);
    let mut scheduler = Scheduler::new(Config { window, input: 256, ..Config::new(processors) })?;
    let (mut items, mut placed) = (Vec::with_capacity(BURST), [0; 4]);
    for burst in 0..bursts as u64 {
        items.clear();
        items.extend((0..BURST as u64).map(|k| Item {
            id: burst * BURST as u64 + k,
            sa: (k * 5 % 8) as u32,
            class: 0,
            suite: 0,
            bytes: 64 << (k % 5),
        }));
        measured_schedule(&mut scheduler, &items, &mut placed, Time(burst * 20_000_000));
    }
    Ok(())
}
