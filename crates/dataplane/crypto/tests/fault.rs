//! Each fault, on a processor whose jobs take a given time.

use std::collections::VecDeque;

use forebay_crypto::fault::{Fault, FaultControl, Faulty};
use forebay_crypto::{
    Capabilities, Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId,
    Span, Suite, Verdict,
};
use forebay_time::{Duration, Time};

const SEAL: SessionId = SessionId(1);
const OPEN: SessionId = SessionId(2);
const ICV: usize = 16;

/// Does one job after the other, each in `takes`, and says so if `says` is set. The bytes stay as they are.
struct Steady {
    capabilities: Capabilities,
    takes: Duration,
    says: bool,
    busy_until: Time,
    jobs: VecDeque<(Time, Job)>,
}

impl Steady {
    fn new(takes: u64) -> Steady {
        let capabilities = Capabilities { suites: vec![suite()], best_burst: 1, queue: 8 };
        let takes = Duration(takes);
        Steady { capabilities, takes, says: true, busy_until: Time::ZERO, jobs: VecDeque::new() }
    }
}

impl Processor for Steady {
    fn name(&self) -> &str {
        "steady"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(&mut self, _: SessionId, _: &SaKeys, _: Direction) -> Result<(), SessionError> {
        Ok(())
    }

    fn close_session(&mut self, _: SessionId) {}

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        let room = self.capabilities.queue - self.jobs.len();
        for job in jobs.drain(..room.min(jobs.len())) {
            self.busy_until = self.busy_until.max(now) + self.takes;
            let took = if self.says { self.takes } else { Duration::ZERO };
            self.jobs.push_back((self.busy_until, Job { verdict: Verdict::Done, took, ..job }));
        }
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        while self.jobs.front().is_some_and(|(due, _)| *due <= now) {
            done.extend(self.jobs.pop_front().map(|(_, job)| job));
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.jobs.front().map(|(due, _)| *due)
    }
}

fn suite() -> Suite {
    "aes128gcm16".parse().unwrap()
}

fn job(session: SessionId, token: u64) -> Job {
    let mut packet = Packet::with_capacity(64);
    assert!(packet.fill(&[0; 64]));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session,
        cipher: Span { start: start + 16, len: 32 },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 48,
        seq_hi: None,
    };
    Job::new(packet, spec, token)
}

/// A processor to break, and its control.
struct Patient {
    processor: Faulty<Box<dyn Processor>>,
    control: FaultControl,
}

impl Patient {
    fn new(inner: Steady) -> Patient {
        let control = FaultControl::new(7);
        let mut processor = Faulty::new(Box::new(inner) as Box<dyn Processor>, control.clone());
        let keys = SaKeys::new(suite(), &SecretBytes::new(vec![0; 20]), &SecretBytes::new(vec![])).unwrap();
        processor.open_session(SEAL, &keys, Direction::Seal).unwrap();
        processor.open_session(OPEN, &keys, Direction::Open).unwrap();
        Patient { processor, control }
    }

    fn armed(inner: Steady, fault: Fault) -> Patient {
        let patient = Patient::new(inner);
        patient.control.arm(fault);
        patient
    }

    /// Submits jobs with these tokens; the tokens of those that were not taken.
    fn submit(&mut self, now: u64, session: SessionId, tokens: std::ops::Range<u64>) -> Vec<u64> {
        let mut jobs = tokens.map(|token| job(session, token)).collect();
        self.processor.submit(Time(now), &mut jobs);
        jobs.iter().map(|job| job.token).collect()
    }

    fn poll(&mut self, now: u64) -> Vec<Job> {
        let mut done = Vec::new();
        self.processor.poll(Time(now), &mut done);
        done
    }

    fn poll_tokens(&mut self, now: u64) -> Vec<u64> {
        self.poll(now).iter().map(|job| job.token).collect()
    }

    /// Goes from due time to due time until nothing is due: (when, token).
    fn follow(&mut self) -> Vec<(u64, u64)> {
        let (mut seen, mut now) = (Vec::new(), 0);
        while let Some(due) = self.processor.next_due() {
            now = due.0.max(now);
            seen.extend(self.poll_tokens(now).into_iter().map(|token| (now, token)));
        }
        seen
    }
}

#[test]
fn without_a_fault_it_is_the_processor_inside() {
    let mut patient = Patient::new(Steady::new(10));
    assert_eq!(patient.processor.name(), "steady");
    assert_eq!(patient.submit(0, SEAL, 0..10), [8, 9]);
    assert_eq!(patient.follow(), (0..8).map(|token| (10 * (token + 1), token)).collect::<Vec<_>>());
    assert_eq!(patient.control.struck(), 0);
}

#[test]
fn a_stopped_processor_gives_nothing_back_and_its_queue_fills() {
    let mut patient = Patient::new(Steady::new(10));
    patient.submit(0, SEAL, 0..2);
    assert_eq!(patient.poll_tokens(10), [0]);
    patient.control.arm(Fault::Stop);
    for token in 2..10 {
        assert_eq!(patient.submit(20, SEAL, token..token + 1), []);
    }
    assert_eq!(patient.submit(30, SEAL, 10..13), [10, 11, 12]);
    assert!(patient.poll(1_000_000).is_empty());
    assert_eq!(patient.processor.next_due(), None);
    assert_eq!(patient.control.struck(), 8);
}

#[test]
fn a_processor_that_recovers_gives_stale_answers() {
    let mut patient = Patient::new(Steady::new(10));
    patient.submit(0, SEAL, 0..1);
    patient.control.arm(Fault::Stop);
    patient.submit(5, SEAL, 1..3);
    assert!(patient.poll(1_000).is_empty());
    patient.control.disarm();
    assert_eq!(patient.poll_tokens(2_000), [0]);
    assert_eq!(patient.submit(2_005, SEAL, 3..4), []);
    assert_eq!(patient.poll_tokens(2_020), [1, 2]);
    assert_eq!(patient.poll_tokens(2_030), [3]);
}

#[test]
fn after_a_stop_new_jobs_wait_for_those_swallowed() {
    let mut patient = Patient::new(Steady::new(10));
    patient.submit(0, SEAL, 0..8);
    patient.control.arm(Fault::Stop);
    patient.submit(0, SEAL, 8..16);
    patient.control.disarm();
    assert_eq!(patient.submit(1, SEAL, 16..17), [16], "the inner queue is full of what came first");
    let tokens: Vec<u64> = patient.follow().into_iter().map(|(_, token)| token).collect();
    assert_eq!(tokens, (0..16).collect::<Vec<_>>());
}

#[test]
fn a_slow_processor_delays_answers_and_does_less() {
    let mut patient = Patient::armed(Steady::new(10), Fault::Slow { factor: 3 });
    patient.submit(0, SEAL, 0..3);
    assert_eq!(patient.follow(), [(30, 0), (60, 1), (90, 2)]);
    patient.submit(100, SEAL, 3..4);
    assert!(patient.poll(110).is_empty());
    assert!(patient.poll(129).is_empty());
    assert_eq!(patient.poll(130)[0].took, Duration(30));
    assert_eq!(patient.control.struck(), 4);
}

#[test]
fn a_slow_processor_that_does_not_tell_its_time_is_judged_by_its_latency() {
    let mut patient = Patient::armed(Steady { says: false, ..Steady::new(10) }, Fault::Slow { factor: 3 });
    patient.submit(100, SEAL, 0..2);
    assert_eq!(patient.follow(), [(130, 0), (160, 1)]);
}

#[test]
fn what_a_slow_processor_holds_fills_its_queue() {
    let mut patient = Patient::armed(Steady::new(10), Fault::Slow { factor: 1_000 });
    patient.submit(0, SEAL, 0..8);
    assert!(patient.poll(80).is_empty());
    assert_eq!(patient.submit(80, SEAL, 8..9), [8]);
    patient.control.disarm();
    assert_eq!(patient.follow().last(), Some(&(80_000, 7)), "what is held stays held");
}

#[test]
fn late_answers_are_late_and_no_fewer() {
    let mut patient = Patient::armed(Steady::new(10), Fault::Late { by: Duration(500) });
    patient.submit(0, SEAL, 0..3);
    assert_eq!(patient.follow(), [(510, 0), (520, 1), (530, 2)]);
}

#[test]
fn a_corrupt_icv_has_one_bit_flipped_and_nothing_else() {
    let mut patient = Patient::armed(Steady::new(1), Fault::CorruptIcv { every: 3 });
    patient.submit(0, OPEN, 0..2);
    patient.submit(0, SEAL, 2..8);
    for job in patient.poll(1_000) {
        let bits = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let icv = job.spec.icv as usize;
        let flipped = u32::from([4, 7].contains(&job.token));
        assert_eq!(bits(&job.packet.buffer()[icv..icv + ICV]), flipped, "token {}", job.token);
        assert_eq!(bits(job.packet.buffer()), flipped);
        assert_eq!(job.verdict, Verdict::Done);
    }
    assert_eq!(patient.control.struck(), 2);
}

#[test]
fn good_packets_are_rejected_when_opened() {
    let mut patient = Patient::armed(Steady::new(1), Fault::RejectGood { every: 2 });
    patient.submit(0, SEAL, 0..3);
    patient.submit(0, OPEN, 3..8);
    let rejected = |job: &Job| job.verdict == Verdict::AuthFailed;
    let tokens: Vec<u64> =
        patient.poll(1_000).iter().filter(|job| rejected(job)).map(|job| job.token).collect();
    assert_eq!(tokens, [4, 6]);
}

#[test]
fn lost_jobs_do_not_come_back_and_counting_begins_at_the_arming() {
    let mut patient = Patient::new(Steady::new(1));
    patient.submit(0, SEAL, 0..1);
    assert_eq!(patient.poll_tokens(10), [0]);
    patient.control.arm(Fault::DropJobs { every: 3 });
    patient.submit(10, SEAL, 1..8);
    assert_eq!(patient.poll_tokens(1_000), [1, 2, 4, 5, 7]);
    patient.control.arm(Fault::DropJobs { every: 3 });
    patient.submit(1_000, SEAL, 8..12);
    assert_eq!(patient.poll_tokens(2_000), [8, 9, 11]);
    patient.control.arm(Fault::DropJobs { every: 0 });
    patient.submit(2_000, SEAL, 12..16);
    assert_eq!(patient.poll_tokens(3_000), [12, 13, 14, 15]);
    assert_eq!(patient.control.struck(), 3);
}

#[test]
fn reordered_jobs_all_come_back_the_same_way_each_time() {
    let run = || {
        let mut patient = Patient::armed(Steady::new(10), Fault::Reorder { depth: 4 });
        patient.submit(0, SEAL, 0..8);
        patient.follow().into_iter().map(|(_, token)| token).collect::<Vec<u64>>()
    };
    let order = run();
    assert_eq!(order, run());
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(sorted, (0..8).collect::<Vec<_>>());
    assert_ne!(order, sorted);
    // The n-th to come is of the first n + 4.
    assert!(order.iter().enumerate().all(|(place, &token)| token <= place as u64 + 4), "{order:?}");
}

#[test]
fn what_was_kept_to_be_reordered_comes_when_disarmed() {
    let mut patient = Patient::armed(Steady::new(10), Fault::Reorder { depth: 4 });
    patient.submit(0, SEAL, 0..5);
    assert!(patient.poll(40).is_empty());
    patient.control.disarm();
    assert_eq!(patient.poll_tokens(40), [0, 1, 2, 3]);
}

#[test]
fn faults_stack() {
    let (outer, inner) = (FaultControl::new(1), FaultControl::new(2));
    let mut processor = Faulty::new(Faulty::new(Steady::new(10), inner.clone()), outer.clone());
    inner.arm(Fault::Slow { factor: 2 });
    outer.arm(Fault::DropJobs { every: 2 });
    processor.submit(Time(0), &mut (0..4).map(|token| job(SEAL, token)).collect());
    let mut done = Vec::new();
    // What is due is known only when the inner wrapper has seen the job finished.
    (0..=80).for_each(|now| processor.poll(Time(now), &mut done));
    assert_eq!(done.iter().map(|job| job.token).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((inner.struck(), outer.struck()), (4, 2));
}

#[test]
fn a_fault_is_armed_while_another_thread_owns_the_processor() {
    let mut patient = Patient::new(Steady::new(1));
    let control = patient.control.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        patient.submit(0, SEAL, 0..1);
        told.recv().unwrap();
        patient.poll(1_000).len()
    });
    control.arm(Fault::Stop);
    tell.send(()).unwrap();
    assert_eq!(thread.join().unwrap(), 0);
}
