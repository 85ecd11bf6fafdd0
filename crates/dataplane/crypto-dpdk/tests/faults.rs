//! Devices that stop, slow down, fail, lie and are unplugged: below is a driver that works, and what it takes and gives back
//! goes wrong on the way. Nothing here asks how long something takes.

#![cfg(dpdk)]

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_crypto::{Direction, Job, Processor, SaKeys, SessionId, Verdict};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_dpdk::fault::{Fault, arm, struck};
use forebay_crypto_dpdk::{Config, open};
use forebay_engine::{Clock, Engine, Limits, ProcessorSetup, Removal, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::{Duration, Time};
use support::{SEAL, TEXT, job, keys};

/// DPDK's software devices; each test takes ones of its own.
const DRIVERS: [&str; 2] = ["crypto_aesni_mb", "crypto_openssl"];
const JOBS: u64 = 500;
const QUEUE: usize = 64;
const ROUNDS: usize = 10_000;

/// One test at a time, which finds the devices as it leaves them.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test on every driver, on packets where they are and on copies; its device's number is `number`, and more.
fn with_devices(number: usize, test: impl Fn(&Config)) {
    let _alone = alone();
    for driver in DRIVERS {
        for copies in [false, true] {
            let name = format!("{driver}{}", 2 * number + usize::from(copies));
            let config = Config { queue: QUEUE, sessions: 32, copies, ..Config::new(&name) };
            match open(&config) {
                Ok(_) => test(&config),
                Err(why) => println!("skipped: {name}: {why}"),
            }
        }
    }
}

fn processor(config: &Config) -> Box<dyn Processor> {
    let mut processor = open(config).expect("as a moment ago");
    processor.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
    processor
}

/// Submits jobs and polls, as long as something comes back; what came back.
fn drive(processor: &mut dyn Processor, jobs: &mut Vec<Job>) -> Vec<Job> {
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        processor.submit(Time::ZERO, jobs);
        processor.poll(Time::ZERO, &mut done);
    }
    done.sort_by_key(|job| job.token);
    assert!(done.windows(2).all(|pair| pair[0].token < pair[1].token), "a job came back twice");
    done
}

fn jobs() -> Vec<Job> {
    (0..JOBS).map(|number| job(SEAL, number)).collect()
}

/// Whether a job is as it was before it was sealed.
fn is_untouched(job: &Job) -> bool {
    job.packet.bytes().iter().all(|byte| *byte == job.token as u8)
}

/// What AWS-LC makes of the same job.
fn expected(number: u64) -> Vec<u8> {
    let mut second = AwsLc::new();
    second.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
    let (mut one, mut done) = (vec![job(SEAL, number)], Vec::new());
    second.submit(Time::ZERO, &mut one);
    second.poll(Time::ZERO, &mut done);
    done.pop().expect("a job").packet.bytes().to_vec()
}

/// Every job comes back once, in spite of the fault, with the verdict and bytes that it should have.
fn all_come_back(config: &Config, fault: Fault) {
    arm(&config.device, fault).expect("a device");
    let mut processor = processor(config);
    let mut jobs = jobs();
    let done = drive(&mut *processor, &mut jobs);
    assert_eq!((done.len() as u64, jobs.len()), (JOBS, 0), "{}: {fault:?}", config.device);
    for job in &done {
        assert_eq!(job.verdict, Verdict::Done, "{}: {fault:?}", config.device);
        assert_eq!(job.packet.bytes(), expected(job.token), "{}: {fault:?}", config.device);
    }
    let met = struck(&config.device).expect("a device");
    assert!(met > 0 || fault == Fault::Few, "{}: {fault:?} met nothing", config.device);
    drop(processor);
    arm(&config.device, Fault::None).expect("a device");
}

#[test]
fn a_device_that_slows_down_gives_every_job_back_once() {
    with_devices(10, |config| all_come_back(config, Fault::Slow(10)));
}

#[test]
fn a_device_that_takes_half_of_what_it_is_offered_gets_all_in_the_end() {
    with_devices(11, |config| all_come_back(config, Fault::Few));
}

#[test]
fn a_job_given_back_twice_counts_once() {
    with_devices(12, |config| {
        all_come_back(config, Fault::Twice(1));
        all_come_back(config, Fault::Twice(3));
    });
}

#[test]
fn operations_of_nobody_are_passed_over() {
    with_devices(13, |config| all_come_back(config, Fault::Stranger(2)));
}

#[test]
fn jobs_may_come_back_in_any_order() {
    with_devices(14, |config| all_come_back(config, Fault::Reversed));
}

#[test]
fn a_job_that_the_device_fails_at_comes_back_as_failed() {
    with_devices(15, |config| {
        arm(&config.device, Fault::Fails(5)).expect("a device");
        let mut processor = processor(config);
        let done = drive(&mut *processor, &mut jobs());
        assert_eq!(done.len() as u64, JOBS, "{}", config.device);
        let failed = done.iter().filter(|job| job.verdict == Verdict::Failed);
        assert_eq!(failed.count() as u64, JOBS / 5, "{}", config.device);
        // A copy is thrown away; the driver did work where the packet is, which a real failure does not.
        let mut failed = done.iter().filter(|job| job.verdict == Verdict::Failed);
        assert!(!config.copies || failed.all(is_untouched), "{}", config.device);
        arm(&config.device, Fault::None).expect("a device");
    });
}

#[test]
fn a_flipped_bit_reaches_the_packet_and_no_other() {
    with_devices(16, |config| {
        arm(&config.device, Fault::Flips(7)).expect("a device");
        let mut processor = processor(config);
        let done = drive(&mut *processor, &mut jobs());
        assert_eq!(done.len() as u64, JOBS, "{}", config.device);
        let wrong: Vec<&Job> = done.iter().filter(|job| job.packet.bytes() != expected(job.token)).collect();
        assert_eq!(wrong.len() as u64, JOBS / 7, "{}", config.device);
        for job in wrong {
            let (text, icv) = job.packet.bytes().split_at(16 + TEXT as usize);
            let expected = expected(job.token);
            assert_eq!(text, &expected[..text.len()]);
            assert_eq!((icv[0] ^ 1, &icv[1..]), (expected[text.len()], &expected[text.len() + 1..]));
        }
        arm(&config.device, Fault::None).expect("a device");
    });
}

/// What it was given is gone with it, and what it was not given comes back to the submitter.
#[test]
fn a_device_that_stops_keeps_no_more_than_its_queue() {
    with_devices(17, |config| {
        arm(&config.device, Fault::Stops).expect("a device");
        let mut stopped = processor(config);
        let mut left = jobs();
        assert!(drive(&mut *stopped, &mut left).is_empty());
        assert_eq!(left.len() as u64, JOBS - QUEUE as u64, "{}", config.device);
        assert!(left.iter().all(is_untouched), "{}", config.device);
        // It resumes: what it had comes back.
        arm(&config.device, Fault::None).expect("a device");
        let done = drive(&mut *stopped, &mut left);
        assert_eq!(done.len() as u64, JOBS, "{}", config.device);
        assert!(done.iter().all(|job| job.verdict == Verdict::Done));
    });
}

/// Sessions may be closed and replaced while it is silent.
#[test]
fn a_queue_is_dropped_while_its_device_is_silent() {
    with_devices(18, |config| {
        arm(&config.device, Fault::Stops).expect("a device");
        let mut stopped = processor(config);
        let mut left = jobs();
        drive(&mut *stopped, &mut left);
        stopped.close_session(SEAL);
        stopped.open_session(SEAL, &keys(2), Direction::Seal).expect("room");
        drop(stopped);
        arm(&config.device, Fault::None).expect("a device");
        // Its queue pair may still write to what it has, and is not used again; another one works.
        let mut next = processor(config);
        assert_eq!(drive(&mut *next, &mut jobs()).len() as u64, JOBS, "{}", config.device);
    });
}

#[test]
fn an_unplugged_device_takes_nothing() {
    with_devices(19, |config| {
        arm(&config.device, Fault::Unplugged).expect("a device");
        let mut gone = processor(config);
        let mut left = jobs();
        assert!(drive(&mut *gone, &mut left).is_empty());
        assert_eq!(left.len() as u64, JOBS, "{}", config.device);
        assert!(left.iter().enumerate().all(|(at, job)| is_untouched(job) && job.token == at as u64));
        drop(gone);
        arm(&config.device, Fault::None).expect("a device");
    });
}

/// An engine of one core and a device, which have jobs in turns, seals 2,000 packets while the fault is armed: every packet
/// comes out once and in order; why the device was taken out.
fn through_an_engine(config: &Config, fault: Fault, limits: Limits) -> Vec<Removal> {
    let suite = "aes128gcm16".parse().expect("a proposal");
    let mut sad = Ipsec::default();
    let spi = Spi::new(0x1000).expect("not zero");
    let selector = |text: &str| vec![text.parse().expect("a selector")];
    let sa = SaConfig {
        local_ts: selector("10.99.0.0/16"),
        remote_ts: selector("10.1.0.0/16"),
        ..SaConfig::new("one", spi, suite, [192, 0, 2, 1].into(), [192, 0, 2, 2].into())
    };
    sad.add_outbound(sa, IvRange::for_throwaway_key()).expect("an SA");
    let setup = |processor, kind| ProcessorSetup {
        processor,
        kind,
        cost: Cost { init: Duration::from_micros(1), ..Cost::default() },
        alpha: 1.0,
        beta: Duration::ZERO,
        queue: 32,
    };
    let device = open(config).expect("as a moment ago");
    let processors = vec![setup(Box::new(AwsLc::new()), Kind::Cpu), setup(device, Kind::Accelerator)];
    let mut settings = Settings { limits, ..Settings::default() };
    settings.scheduling.policy = Policy::RoundRobin;
    let keys: Vec<SaKeys> = vec![keys(1)];
    let mut engine = Engine::new(sad, &keys, processors, settings, Clock::start()).expect("an engine");
    arm(&config.device, fault).expect("a device");
    let mut packet = vec![0x45, 0, 0, 84, 0, 0, 0, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 1, 0, 1];
    packet.resize(84, 7);
    let (mut admitted, mut expected) = (0, 0);
    // A deadline that passes is all the time that there is to be waited for.
    while expected < 2_000 {
        while admitted < 2_000 && engine.room() > 0 {
            let mut buffer = engine.buffer();
            assert!(buffer.fill(&packet));
            assert!(engine.admit(Direction::Seal, buffer, admitted).is_ok(), "there was room");
            admitted += 1;
        }
        engine.poll();
        let outputs: Vec<_> = engine.outputs().collect();
        for output in outputs {
            assert_eq!((output.tag, output.result.is_ok()), (expected, true), "{}: {fault:?}", config.device);
            expected += 1;
            engine.recycle(output.packet);
        }
    }
    arm(&config.device, Fault::None).expect("a device");
    engine.stats().removals.iter().map(|&(_, _, why)| why).collect()
}

#[test]
fn an_engine_takes_out_what_stops_fails_or_lies_and_goes_on_with_its_core() {
    let limits = |audit_every| Limits {
        in_flight: 256,
        hold: Duration::from_millis(100),
        slack: Duration::from_millis(20),
        audit_every,
        ..Limits::default()
    };
    with_devices(20, |config| {
        for (fault, audit_every, why) in [
            (Fault::Stops, 64, Some(Removal::Silent)),
            (Fault::Fails(1), 64, Some(Removal::Failing)),
            (Fault::Flips(1), 1, Some(Removal::WrongResult)),
            (Fault::Twice(1), 64, None),
            (Fault::Stranger(1), 64, None),
            (Fault::Unplugged, 64, None),
        ] {
            let removals = through_an_engine(config, fault, limits(audit_every));
            if why.is_some() {
                assert_eq!(removals.first().copied(), why, "{}: {fault:?}", config.device);
            }
        }
    });
}

#[test]
fn sessions_of_unknown_numbers_are_nothing_to_a_device_that_fails() {
    with_devices(21, |config| {
        arm(&config.device, Fault::Fails(1)).expect("a device");
        let mut processor = processor(config);
        let mut unknown: Vec<Job> = (0..10).map(|number| job(SessionId(99), number)).collect();
        assert_eq!(drive(&mut *processor, &mut unknown).len(), 10);
        drop(processor);
        arm(&config.device, Fault::None).expect("a device");
    });
}
