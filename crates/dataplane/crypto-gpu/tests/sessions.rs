//! Sessions that are replaced while the device has jobs of them, queues that are full, and thousands of SAs one after the other.

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId, Span, Verdict,
};
use forebay_crypto_gpu::{Config, Runtime, Unavailable, open};
use forebay_time::Time;

const SEAL: SessionId = SessionId(7);
const TEXT: u32 = 100;

fn keys(byte: u8) -> SaKeys {
    let suite = "aes128gcm16".parse().expect("a proposal");
    SaKeys::new(suite, &SecretBytes::new(vec![byte; 20]), &SecretBytes::new(vec![])).expect("a key")
}

/// A packet of ESP: SPI and sequence number, IV, text, room for the ICV.
fn job(session: SessionId, number: u64) -> Job {
    let mut packet = Packet::with_capacity(200);
    assert!(packet.fill(&vec![number as u8; (8 + 8 + TEXT + 16) as usize]));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session,
        cipher: Span { start: start + 16, len: TEXT },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 16 + TEXT,
        seq_hi: None,
    };
    Job::new(packet, spec, number)
}

fn all(processor: &mut dyn Processor, count: usize) -> Vec<Job> {
    let mut done = Vec::new();
    while done.len() < count {
        processor.poll(Time::ZERO, &mut done);
        std::thread::yield_now();
    }
    assert_eq!(done.len(), count);
    done.sort_by_key(|job| job.token);
    done
}

fn device(config: Config) -> Option<Box<dyn Processor>> {
    open(&config).map_err(|why| println!("skipped: {why}")).ok()
}

/// The runtime of these tests: `GPU_RUNTIME`, such as `opencl` where CUDA has the device too.
fn runtime() -> Runtime {
    std::env::var("GPU_RUNTIME").ok().and_then(|word| Runtime::named(&word)).unwrap_or_default()
}

fn small() -> Config {
    Config { runtime: runtime(), batch: 8, queue: 64, sessions: 64, ..Config::default() }
}

#[test]
fn a_session_may_be_replaced_while_its_jobs_are_in_flight() {
    let Some(mut processor) = device(small()) else { return };
    let mut done = Vec::new();
    for key in 0..20 {
        processor.open_session(SEAL, &keys(key), Direction::Seal).expect("room");
        let mut jobs = vec![job(SEAL, key.into())];
        while !jobs.is_empty() {
            processor.submit(Time::ZERO, &mut jobs);
            processor.poll(Time::ZERO, &mut done);
        }
        if key % 5 == 4 {
            processor.close_session(SEAL);
        }
    }
    done.extend(all(&mut *processor, 20 - done.len()));
    done.sort_by_key(|job| job.token);
    for (key, job) in done.iter_mut().enumerate() {
        assert_eq!(job.verdict, Verdict::Done);
        let opens = SessionId(key as u32);
        processor.open_session(opens, &keys(key as u8), Direction::Open).expect("room");
        (job.spec.session, job.verdict) = (opens, Verdict::Pending);
    }
    processor.submit(Time::ZERO, &mut done);
    for opened in all(&mut *processor, 20) {
        assert_eq!(opened.verdict, Verdict::Done);
        assert_eq!(opened.packet.bytes()[16..16 + TEXT as usize], [opened.token as u8; TEXT as usize]);
    }
}

#[test]
fn what_has_no_room_is_left_and_goes_later() {
    let Some(mut processor) = device(small()) else { return };
    processor.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
    let mut jobs: Vec<Job> = (0..200).map(|number| job(SEAL, number)).collect();
    // Unknown sessions in between are answered without the device.
    jobs.iter_mut().step_by(10).for_each(|job| job.spec.session = SessionId(8));
    let (mut done, mut rounds) = (Vec::new(), 0);
    while done.len() < 200 {
        processor.submit(Time::ZERO, &mut jobs);
        assert!(rounds > 0 || jobs.len() >= 200 - 64 - 8, "more than the queue holds was taken");
        processor.poll(Time::ZERO, &mut done);
        rounds += 1;
    }
    done.sort_by_key(|job| job.token);
    for (number, job) in done.iter().enumerate() {
        let expected = if number % 10 == 0 { Verdict::Failed } else { Verdict::Done };
        assert_eq!((job.token, job.verdict), (number as u64, expected));
    }
}

#[test]
fn jumbo_frames_go_to_the_device_and_what_is_longer_does_not() {
    let Some(mut processor) = device(small()) else { return };
    processor.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
    let long = |number: u64, text: u32| {
        let mut packet = Packet::with_capacity(text as usize + 32);
        assert!(packet.fill(&vec![3; text as usize + 32]));
        let start = packet.offset() as u32;
        let (cipher, auth) = (Span { start: start + 16, len: text }, Span { start, len: 8 });
        let spec =
            JobSpec { session: SEAL, cipher, iv: start + 8, auth, icv: start + 16 + text, seq_hi: None };
        Job::new(packet, spec, number)
    };
    let mut jobs: Vec<Job> =
        (0..24).map(|number| long(number, if number % 6 == 5 { 20_000 } else { 9_000 })).collect();
    let mut done = Vec::new();
    while done.len() < 24 {
        processor.submit(Time::ZERO, &mut jobs);
        processor.poll(Time::ZERO, &mut done);
    }
    for job in done {
        let expected = if job.token % 6 == 5 { Verdict::Failed } else { Verdict::Done };
        assert_eq!(job.verdict, expected, "job {}", job.token);
    }
}

/// Resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

#[test]
fn ten_thousand_sas_come_and_go_without_growth() {
    let Some(mut processor) = device(Config { sessions: 16, ..small() }) else { return };
    let mut after_first_thousand = 0;
    for number in 0..10_000_u64 {
        // Two at a time, each with a packet, in a table of 16.
        let (one, other) = (SessionId(number as u32 % 8), SessionId(100 + number as u32 % 8));
        processor
            .open_session(one, &keys(number as u8), Direction::Seal)
            .expect("closed ones leave their room");
        processor
            .open_session(other, &keys(number as u8), Direction::Open)
            .expect("closed ones leave their room");
        let mut jobs = vec![job(one, number)];
        processor.submit(Time::ZERO, &mut jobs);
        let mut sealed = all(&mut *processor, 1);
        assert_eq!(sealed[0].verdict, Verdict::Done);
        (sealed[0].spec.session, sealed[0].verdict) = (other, Verdict::Pending);
        processor.submit(Time::ZERO, &mut sealed);
        let opened = all(&mut *processor, 1);
        assert_eq!(opened[0].verdict, Verdict::Done);
        assert_eq!(opened[0].packet.bytes()[16], number as u8);
        processor.close_session(one);
        processor.close_session(other);
        if number == 1_000 {
            after_first_thousand = resident_kib();
        }
    }
    let grown = resident_kib().saturating_sub(after_first_thousand);
    println!("resident: {after_first_thousand} KiB after 1,000 SAs, {grown} KiB more after 10,000");
    assert!(grown < 4_096, "{grown} KiB more after 9,000 SAs");
    // All of the table is free.
    for id in 0..16 {
        processor.open_session(SessionId(id), &keys(1), Direction::Seal).expect("room");
    }
    let full = processor.open_session(SessionId(16), &keys(1), Direction::Seal);
    assert_eq!(full, Err(SessionError::TableFull));
}

#[test]
fn a_device_that_is_not_there_is_said_with_those_that_are() {
    match open(&Config { runtime: runtime(), device: 200, ..Config::default() }) {
        Err(Unavailable::NoDevice { index, found }) => assert!(index == 200 && !found.is_empty()),
        Err(other) => println!("skipped: {other}"),
        Ok(_) => panic!("200 devices"),
    }
}
