//! The checks are checked: a processor with a fault must not pass them.

use std::panic;

use forebay_crypto::{Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Verdict};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_vectors::{check_all, check_random};
use forebay_time::Time;

/// AWS-LC with a fault put into each job on its way in, or out.
struct Faulty {
    inner: AwsLc,
    before: fn(&mut Job),
    after: fn(&mut Job),
    closes: bool,
}

impl Processor for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        self.inner.open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        if self.closes {
            self.inner.close_session(id);
        }
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        jobs.iter_mut().for_each(self.before);
        self.inner.submit(now, jobs);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        self.inner.poll(now, done);
        done.iter_mut().for_each(self.after);
    }
}

type Fault = fn(&mut Job);
const NONE: Fault = |_| ();

#[test]
fn each_fault_is_found_out() {
    let faulty = |before, after| {
        move || -> Box<dyn Processor> {
            Box::new(Faulty { inner: AwsLc::new(), before, after, closes: true })
        }
    };
    let keeps_sessions = || -> Box<dyn Processor> {
        Box::new(Faulty { inner: AwsLc::new(), before: NONE, after: NONE, closes: false })
    };
    // The hook is the process's: this file has no other test whose message it could swallow.
    panic::set_hook(Box::new(|_| ()));
    let found = [
        ("none", found_out(faulty(NONE, NONE)), (false, false)),
        ("accepts every ICV", found_out(faulty(NONE, accept_every_icv)), (true, true)),
        ("flips a bit in front of long texts", found_out(faulty(NONE, flip_in_front)), (true, true)),
        ("cuts the ICV short", found_out(faulty(NONE, cut_icv)), (true, true)),
        ("ignores the ESN", found_out(faulty(ignore_esn, NONE)), (false, true)),
        ("calls bad jobs good", found_out(faulty(NONE, accept_bad_jobs)), (false, true)),
        ("keeps closed sessions", found_out(keeps_sessions), (false, true)),
    ];
    let _ = panic::take_hook();
    for (fault, found, expected) in found {
        assert_eq!(found, expected, "{fault}: found out by (vectors, random jobs)");
    }
}

/// Whether the vectors, and whether random jobs, find a fault.
fn found_out(mut make: impl FnMut() -> Box<dyn Processor>) -> (bool, bool) {
    let make: &mut dyn FnMut() -> Box<dyn Processor> = &mut make;
    let vectors = panic::catch_unwind(panic::AssertUnwindSafe(|| check_all(make))).is_err();
    let random = panic::catch_unwind(panic::AssertUnwindSafe(|| check_random(make, 1, 1_000))).is_err();
    (vectors, random)
}

fn accept_every_icv(job: &mut Job) {
    if job.verdict == Verdict::AuthFailed {
        job.verdict = Verdict::Done;
    }
}

fn flip_in_front(job: &mut Job) {
    let before_text = job.spec.cipher.start as usize - 1;
    if job.verdict == Verdict::Done && job.spec.cipher.len > 500 {
        job.packet.buffer_mut()[before_text] ^= 1;
    }
}

fn cut_icv(job: &mut Job) {
    let icv = job.spec.icv as usize;
    if job.verdict == Verdict::Done {
        job.packet.buffer_mut()[icv + 7] = 0xa5;
    }
}

fn ignore_esn(job: &mut Job) {
    job.spec.seq_hi = None;
}

fn accept_bad_jobs(job: &mut Job) {
    if job.verdict == Verdict::Failed {
        job.verdict = Verdict::Done;
    }
}
