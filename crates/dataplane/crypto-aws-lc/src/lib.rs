//! The portable crypto backend, on AWS-LC.
//!
//! [`AwsLc`] does every suite on the core that calls it. It uses `aws-lc-sys` and not
//! `aws-lc-rs`, because the latter offers neither GCM with a truncated tag nor CBC without
//! padding. The C calls are in one module behind safe types; everything else here is safe code
//! that checks each span before it is used.

mod ffi;
mod session;

use std::mem;

use forebay_crypto::{
    Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Suite, Verdict,
};
use forebay_time::Time;

use session::Session;

/// How many sessions there can be, and above which no [`SessionId`] is taken. The table is indexed
/// by id, so this bounds its memory to a few MB however sparse the ids are.
pub const SESSIONS_MAX: usize = 65_536;

/// How many jobs are held between submit and poll; 64 bursts of 64 packets, more than a caller
/// that polls after each submit ever leaves here.
pub const QUEUE: usize = 4_096;

/// Fills `bytes` with random bytes that are fit for keys.
pub fn random(bytes: &mut [u8]) {
    ffi::random(bytes);
}

/// Jobs are done one by one; some at a time spare only the calls and keep the code cached.
const BEST_BURST: usize = 32;

/// A processor that does its jobs inside [`Processor::submit`], on the calling core.
pub struct AwsLc {
    capabilities: Capabilities,
    /// By [`SessionId`], with gaps.
    sessions: Vec<Option<Session>>,
    finished: Vec<Job>,
}

impl AwsLc {
    /// A processor without sessions.
    pub fn new() -> AwsLc {
        let capabilities =
            Capabilities { suites: Suite::all().collect(), best_burst: BEST_BURST, queue: QUEUE };
        AwsLc { capabilities, sessions: Vec::new(), finished: Vec::new() }
    }

    #[inline]
    fn run(&mut self, job: &mut Job) {
        job.verdict = match self.sessions.get_mut(job.spec.session.0 as usize) {
            Some(Some(session)) => session.run(&job.spec, job.packet.buffer_mut()),
            _ => Verdict::Failed,
        };
    }
}

impl Default for AwsLc {
    fn default() -> AwsLc {
        AwsLc::new()
    }
}

impl Processor for AwsLc {
    fn name(&self) -> &str {
        "aws-lc"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        let index = id.0 as usize;
        if index >= SESSIONS_MAX {
            return Err(SessionError::TableFull);
        }
        if !self.capabilities.has(keys.suite()) {
            return Err(SessionError::Unsupported(keys.suite()));
        }
        let session = Session::new(keys, direction)
            .ok_or_else(|| SessionError::Backend(format!("AWS-LC refuses the keys of {}", keys.suite())))?;
        if index >= self.sessions.len() {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some(session);
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        if let Some(slot) = self.sessions.get_mut(id.0 as usize) {
            *slot = None;
        }
    }

    fn submit(&mut self, _now: Time, jobs: &mut Vec<Job>) {
        let taken = jobs.len().min(QUEUE.saturating_sub(self.finished.len()));
        for job in &mut jobs[..taken] {
            self.run(job);
        }
        // Steady state: everything was polled, so the two lists change places and no job moves.
        if self.finished.is_empty() && taken == jobs.len() {
            mem::swap(jobs, &mut self.finished);
        } else {
            self.finished.extend(jobs.drain(..taken));
        }
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        if done.is_empty() {
            mem::swap(done, &mut self.finished);
        } else {
            done.append(&mut self.finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_crypto::{JobSpec, Packet, SecretBytes, Span};

    fn keys(suite: &str) -> SaKeys {
        let suite: Suite = suite.parse().expect("a proposal");
        let key = SecretBytes::new(vec![7; suite.cipher_key_len() + suite.salt_len()]);
        let auth_key = SecretBytes::new(vec![9; suite.integrity_key_len()]);
        SaKeys::new(suite, &key, &auth_key).expect("keys of the suite's lengths")
    }

    fn job(session: u32, token: u64) -> Job {
        let spec = JobSpec {
            session: SessionId(session),
            cipher: Span { start: 16, len: 64 },
            iv: 8,
            auth: Span { start: 0, len: 8 },
            icv: 80,
            seq_hi: None,
        };
        Job::new(Packet::with_capacity(128), spec, token)
    }

    #[test]
    fn it_can_be_sent_to_another_thread() {
        fn sendable<T: Send>() {}
        sendable::<AwsLc>();
    }

    #[test]
    fn session_ids_may_be_sparse_up_to_the_limit() {
        let mut processor = AwsLc::new();
        let (keys, last) = (keys("aes128gcm16"), SESSIONS_MAX as u32 - 1);
        assert_eq!(processor.open_session(SessionId(last), &keys, Direction::Seal), Ok(()));
        for id in [last + 1, u32::MAX] {
            let full = processor.open_session(SessionId(id), &keys, Direction::Seal);
            assert_eq!(full, Err(SessionError::TableFull));
        }
        processor.close_session(SessionId(u32::MAX));
        let (mut jobs, mut done) = (vec![job(last, 0), job(0, 1)], Vec::new());
        processor.submit(Time::ZERO, &mut jobs);
        processor.poll(Time::ZERO, &mut done);
        assert_eq!(done.iter().map(|job| job.verdict).collect::<Vec<_>>(), [Verdict::Done, Verdict::Failed]);
    }

    #[test]
    fn jobs_beyond_the_queue_are_left_with_the_caller() {
        let mut processor = AwsLc::new();
        let mut jobs: Vec<Job> = (0..QUEUE as u64 + 3).map(|token| job(0, token)).collect();
        processor.submit(Time::ZERO, &mut jobs);
        assert_eq!(
            jobs.iter().map(|job| job.token as usize).collect::<Vec<_>>(),
            [QUEUE, QUEUE + 1, QUEUE + 2]
        );
        let mut done = vec![job(0, u64::MAX)];
        processor.poll(Time::ZERO, &mut done);
        assert_eq!(done.len(), QUEUE + 1);
        processor.submit(Time::ZERO, &mut jobs);
        assert!(jobs.is_empty());
    }

    #[test]
    fn the_steady_state_moves_no_list_and_allocates_nothing() {
        let mut processor = AwsLc::new();
        processor.open_session(SessionId(0), &keys("aes128gcm16"), Direction::Seal).expect("a session");
        let (mut jobs, mut done) = (Vec::with_capacity(64), Vec::with_capacity(64));
        jobs.extend((0..64).map(|token| job(0, token)));
        let first = jobs.as_ptr();
        processor.submit(Time::ZERO, &mut jobs);
        processor.poll(Time::ZERO, &mut done);
        assert_eq!(done.as_ptr(), first);
        assert!(done.iter().all(|job| job.verdict == Verdict::Done));
    }
}
