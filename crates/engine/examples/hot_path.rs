//! What `scripts/instructions.sh` counts the instructions of: the data path of one core, and the
//! scheduler, for a given number of packets.
//!
//! Everything that is not to be counted stands outside of the functions whose names begin with
//! `measured`; the script has valgrind collect inside of those only.
//!
//! Usage: `hot_path CASE PACKETS`; without arguments it lists the cases.

use std::hint::black_box;
use std::process::ExitCode;

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{BURST, BurstPath};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Progress, Scheduler};
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

/// Every case that this machine can run: direction, library and length of the plain packet; or the
/// scheduler with its window.
fn cases() -> Vec<String> {
    let mut cases = Vec::new();
    for backend in ["aws-lc", "ipsec-mb"] {
        if processor(backend).is_ok() {
            for direction in ["seal", "open"] {
                cases.extend([64, 1408].map(|size| format!("{direction}-{backend}-{size}")));
            }
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
        "seal" => seal(backend, size, bursts),
        "open" => open(backend, size, bursts),
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

#[inline(never)]
fn measured_burst(path: &mut BurstPath, direction: Direction, jobs: &mut Vec<Job>, dropped: &mut Vec<Job>) {
    path.run(direction, jobs, dropped);
}

fn seal(processor: Box<dyn Processor>, size: usize, bursts: usize) -> Result<()> {
    let (mut path, plain) = (path(processor)?, plain(size));
    let (mut jobs, mut dropped) = (jobs(size), Vec::new());
    for _ in 0..bursts {
        jobs.iter_mut().for_each(|job| assert!(job.packet.fill(&plain)));
        measured_burst(&mut path, Direction::Seal, &mut jobs, &mut dropped);
    }
    assert!(dropped.is_empty(), "{:?}", path.drops());
    Ok(())
}

fn open(processor: Box<dyn Processor>, size: usize, bursts: usize) -> Result<()> {
    let (mut path, plain) = (path(processor)?, plain(size));
    let (mut jobs, mut dropped) = (jobs(size), Vec::new());
    for _ in 0..bursts {
        jobs.iter_mut().for_each(|job| assert!(job.packet.fill(&plain)));
        path.run(Direction::Seal, &mut jobs, &mut dropped);
        measured_burst(&mut path, Direction::Open, &mut jobs, &mut dropped);
    }
    assert!(dropped.is_empty(), "{:?}", path.drops());
    Ok(())
}

fn jobs(size: usize) -> Vec<Job> {
    (0..BURST).map(|_| Job::new(Packet::with_capacity(size + 128), JobSpec::default(), 0)).collect()
}

fn plain(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; size];
    bytes[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    bytes
}

/// A path that seals and opens its own packets.
fn path(mut processor: Box<dyn Processor>) -> Result<BurstPath> {
    let suite: Suite = SUITE.parse()?;
    let key = SecretBytes::new((0..suite.cipher_key_len() + suite.salt_len()).map(|k| k as u8).collect());
    let keys = SaKeys::new(suite, &key, &SecretBytes::new(Vec::new()))?;
    let config = |local: [u8; 4], remote: [u8; 4]| SaConfig {
        replay_window: 1024,
        ..SaConfig::new("measured", Spi::MIN, suite, local.into(), remote.into())
    };
    let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let mut sad = Ipsec::default();
    let out = sad.add_outbound(config(near, far), IvRange::for_throwaway_key())?;
    let inbound = sad.add_inbound(config(far, near))?;
    processor.open_session(out, &keys, Direction::Seal)?;
    processor.open_session(inbound, &keys, Direction::Open)?;
    Ok(BurstPath::new(sad, processor))
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
