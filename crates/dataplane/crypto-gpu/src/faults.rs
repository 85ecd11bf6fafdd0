//! What becomes of jobs when the device is slow, lies, hangs or is lost: each comes back once, with a verdict.

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId, Span, Verdict,
};
use forebay_time::{Duration, Time};

use crate::double::{Double, Fault, Handle, TAG};
use crate::processor::{Gpu, Limits};

const SEAL: SessionId = SessionId(1);
const OPEN: SessionId = SessionId(2);
const TEXT: usize = 96;
const LIMITS: Limits = Limits { batch: 8, queue: 32, sessions: 4, timeout: Duration(2_000_000) };

fn keys(byte: u8) -> SaKeys {
    let suite = "aes128gcm16".parse().expect("a proposal");
    SaKeys::new(suite, &SecretBytes::new(vec![byte; 20]), &SecretBytes::new(vec![])).expect("a key")
}

/// A packet of ESP with its number in the text: SPI and sequence number, IV, text, the ICV that the double makes.
fn job(session: SessionId, number: u64) -> Job {
    let mut packet = Packet::with_capacity(200);
    let bytes = [&[0; 16][..], &[number as u8; TEXT], &TAG].concat();
    assert!(packet.fill(&bytes));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session,
        cipher: Span { start: start + 16, len: TEXT as u32 },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 16 + TEXT as u32,
        seq_hi: None,
    };
    Job::new(packet, spec, number)
}

struct Bench {
    gpu: Gpu,
    device: Handle,
    now: Time,
    given: u64,
    done: Vec<Job>,
}

impl Bench {
    fn new() -> Bench {
        let device = Handle::default();
        let double = Double::new(&LIMITS.sizes(), &device);
        let mut gpu = Gpu::new("gpu", Box::new(double), LIMITS);
        gpu.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
        gpu.open_session(OPEN, &keys(1), Direction::Open).expect("room");
        Bench { gpu, device, now: Time::ZERO, given: 0, done: Vec::new() }
    }

    /// Submits so many; how many were left.
    fn submit(&mut self, session: SessionId, count: u64) -> usize {
        let mut jobs: Vec<Job> =
            (self.given..self.given + count).map(|number| job(session, number)).collect();
        self.gpu.submit(self.now, &mut jobs);
        assert!(jobs.iter().all(|job| job.verdict == Verdict::Pending && job.packet.has_buffer()));
        let left = jobs.len();
        self.given += count - left as u64;
        left
    }

    fn poll(&mut self, times: usize) {
        for _ in 0..times {
            self.now = self.now + Duration(100_000);
            self.gpu.poll(self.now, &mut self.done);
        }
    }

    /// Holds that each job that was taken is back once, all with this verdict; sealed and opened text as the double makes it.
    fn all(&mut self, verdict: Verdict) {
        let mut tokens: Vec<u64> = self.done.iter().map(|job| job.token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, (0..self.given).collect::<Vec<_>>(), "each once");
        for job in &self.done {
            assert_eq!(job.verdict, verdict, "job {}", job.token);
            let text = if verdict == Verdict::Done { !(job.token as u8) } else { job.token as u8 };
            assert_eq!(job.packet.bytes()[16..16 + TEXT], [text; TEXT], "job {}", job.token);
        }
    }
}

#[test]
fn jobs_come_back_in_batches_as_the_device_has_room() {
    let mut bench = Bench::new();
    assert_eq!(bench.submit(SEAL, 3), 0);
    assert_eq!(bench.submit(OPEN, 20), 0);
    // Three of four slots are in flight; what comes now waits in the last one.
    assert_eq!(bench.device.seen().launches, [3, 8, 8]);
    assert_eq!(bench.submit(SEAL, 2), 0);
    assert_eq!(bench.submit(SEAL, 10), 8, "two fill the last slot, which is launched then");
    assert_eq!(bench.device.seen().launches, [3, 8, 8, 8]);
    bench.poll(10);
    bench.all(Verdict::Done);
    assert_eq!(bench.given, 27);
}

#[test]
fn what_waits_in_a_slot_goes_when_a_launch_has_ended() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        assert_eq!(bench.submit(SEAL, 1), 0);
    }
    assert_eq!(bench.device.seen().launches, [1, 1, 1]);
    bench.poll(20);
    assert_eq!(bench.device.seen().launches, [1, 1, 1, 1]);
    bench.all(Verdict::Done);
}

#[test]
fn a_slow_device_loses_nothing() {
    let mut bench = Bench::new();
    bench.device.set(Fault::Slow);
    // 30 polls of 0.1 us are beyond the timeout of 2 us: before it, ten times slower is only slower.
    bench.gpu = Gpu::new(
        "gpu",
        Box::new(Double::new(&LIMITS.sizes(), &bench.device)),
        Limits { timeout: Duration(20_000_000), ..LIMITS },
    );
    bench.gpu.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
    assert_eq!(bench.submit(SEAL, 32), 0);
    bench.poll(29);
    assert!(bench.done.is_empty());
    bench.poll(100);
    bench.all(Verdict::Done);
}

#[test]
fn a_device_that_lies_is_believed_only_where_tags_match() {
    let mut bench = Bench::new();
    bench.device.set(Fault::Lies);
    bench.submit(OPEN, 8);
    bench.poll(10);
    // Opened packets are refused, unchanged. Sealed ones show only to the engine's samples.
    bench.all(Verdict::AuthFailed);
    bench.submit(SEAL, 8);
    bench.poll(10);
    assert_eq!(bench.done.len(), 16);
    assert!(bench.done[8..].iter().all(|job| job.verdict == Verdict::Done));
}

#[test]
fn jobs_of_a_refused_launch_fail_once_and_so_do_all_later_ones() {
    let mut bench = Bench::new();
    bench.submit(SEAL, 8);
    bench.device.set(Fault::Refuses);
    assert_eq!(bench.submit(SEAL, 20), 0, "a lost device takes everything, to say that it failed");
    bench.poll(10);
    bench.all(Verdict::Failed);
    bench.device.set(Fault::None);
    bench.submit(SEAL, 5);
    bench.poll(1);
    bench.all(Verdict::Failed);
}

#[test]
fn jobs_of_a_lost_device_fail_once() {
    let mut bench = Bench::new();
    bench.submit(SEAL, 30);
    bench.device.set(Fault::Lost);
    bench.poll(3);
    bench.all(Verdict::Failed);
    let refused = bench.gpu.open_session(SessionId(3), &keys(9), Direction::Seal);
    assert_eq!(refused, Err(SessionError::Backend("a call: the device is lost".to_owned())));
    let device = bench.device.clone();
    drop(bench);
    assert!(!device.seen().is_released, "its buffers may still be written to");
}

#[test]
fn jobs_of_a_hung_launch_fail_at_its_deadline_and_nothing_of_it_is_answered_later() {
    let mut bench = Bench::new();
    bench.device.set(Fault::Hangs);
    assert_eq!(bench.submit(SEAL, 8), 0);
    bench.poll(19);
    assert!(bench.done.is_empty());
    bench.poll(2);
    bench.all(Verdict::Failed);
    // Its slot stays out of use, the others are free.
    assert_eq!(bench.submit(SEAL, 32), 8);
    bench.poll(30);
    bench.all(Verdict::Failed);
    assert_eq!(bench.submit(SEAL, 1), 1, "no slot is free");
    // Late answers are not given, and the slots are used again.
    bench.device.set(Fault::None);
    bench.poll(10);
    bench.all(Verdict::Failed);
    bench.done.clear();
    bench.given = 0;
    assert_eq!(bench.submit(SEAL, 32), 0);
    bench.poll(10);
    bench.all(Verdict::Done);
}

#[test]
fn a_device_that_hangs_is_left_alone_when_it_is_closed() {
    let mut bench = Bench::new();
    bench.device.set(Fault::Hangs);
    bench.submit(SEAL, 1);
    let device = bench.device.clone();
    drop(bench);
    let seen = device.seen();
    assert_eq!((seen.wipes, seen.is_released), (0, false));
}

#[test]
fn a_device_is_wiped_when_it_is_closed() {
    let mut bench = Bench::new();
    bench.submit(SEAL, 20);
    let device = bench.device.clone();
    drop(bench);
    let seen = device.seen();
    assert_eq!((seen.wipes, seen.is_released), (1, true));
}

#[test]
fn a_closed_sessions_record_is_wiped_when_no_launch_has_it_and_is_used_again() {
    let mut bench = Bench::new();
    bench.submit(SEAL, 8);
    bench.gpu.close_session(SEAL);
    assert_eq!(bench.device.seen().written, [(0, false), (1, false)], "a launch may be using it");
    bench.poll(10);
    assert_eq!(bench.device.seen().written[2..], [(0, true)]);
    bench.all(Verdict::Done);
    // Replaced twice without jobs: wiped at once.
    bench.gpu.open_session(OPEN, &keys(2), Direction::Open).expect("room");
    assert_eq!(bench.device.seen().written[3..], [(1, true), (1, false)]);
    // Four records are all there are.
    for id in 10..13 {
        bench.gpu.open_session(SessionId(id), &keys(2), Direction::Open).expect("room");
    }
    let full = bench.gpu.open_session(SessionId(20), &keys(2), Direction::Open);
    assert_eq!(full, Err(SessionError::TableFull));
}

#[test]
fn a_session_that_is_closed_while_its_jobs_wait_in_a_slot_is_wiped_after_them() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.submit(OPEN, 1);
    }
    bench.submit(SEAL, 1);
    assert_eq!(bench.device.seen().launches.len(), 3);
    bench.gpu.close_session(SEAL);
    bench.poll(4);
    assert_eq!(bench.device.seen().launches.len(), 4);
    assert_eq!(bench.device.seen().written.len(), 2, "the fourth launch is in flight");
    bench.poll(10);
    assert_eq!(bench.device.seen().written[2..], [(0, true)]);
    bench.all(Verdict::Done);
}

#[test]
fn no_key_is_shown() {
    let config = format!("{:?}", crate::Config::default());
    assert!(!config.contains("key"), "{config}");
    let shown = format!("{:?}", keys(0xab));
    assert!(!shown.contains("171") && !shown.contains("ab"), "{shown}");
}
