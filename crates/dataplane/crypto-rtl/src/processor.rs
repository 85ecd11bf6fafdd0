//! The core as a processor.

use std::collections::HashMap;
use std::path::Path;

use forebay_crypto::{
    Capabilities, Direction, Job, Processor, SaKeys, SecretBytes, SessionError, SessionId, Suite, Verdict,
};
use forebay_time::{Duration, Time};
use rtl_sys::Stuck;

use crate::Config;
use crate::aead::Aead;
use crate::esp::Esp;

/// Most sessions: keys wait in the host's memory, and the core has few at a time.
const SESSIONS_MAX: usize = 65_536;
/// Jobs between submit and poll.
const QUEUE: usize = 4_096;
/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// A core and its driver.
pub(crate) trait Hardware: Send {
    /// Does a job of a session; its outcome, and how many cycles that took.
    fn run(&mut self, session: &Session, job: &mut Job) -> Result<(Verdict, u64), Stuck>;

    /// Clears what the core has of a session.
    fn forget(&mut self, id: SessionId);

    /// Records the next packet as a waveform.
    fn record(&mut self, path: &Path);

    /// From now on neither side of a stream is ready in so many of a hundred cycles.
    fn stall(&mut self, percent: u32, seed: u32);

    /// From now on nobody takes what the core gives.
    fn stick(&mut self);
}

/// What a session has been opened with.
pub(crate) struct Session {
    pub suite: Suite,
    pub direction: Direction,
    pub key: SecretBytes,
    pub salt: [u8; 4],
    /// HMAC's key.
    pub integrity: SecretBytes,
}

/// A core in simulation.
pub struct Rtl {
    capabilities: Capabilities,
    config: Config,
    core: Box<dyn Hardware>,
    sessions: HashMap<SessionId, Session>,
    /// Whether a stream stuck: then the core takes nothing more.
    is_stuck: bool,
    packets: u64,
    finished: Vec<Job>,
}

impl Rtl {
    /// The core behind a reset.
    pub fn new(config: Config) -> Rtl {
        let aead = Aead::new(config.core).map(|core| Box::new(core) as Box<dyn Hardware>);
        let core = aead.or_else(|| Some(Box::new(Esp::new(config.core)?)));
        Rtl {
            capabilities: Capabilities { suites: config.core.suites(), best_burst: 1, queue: QUEUE },
            core: core.expect("every core is one of the two kinds"),
            sessions: HashMap::new(),
            is_stuck: false,
            packets: 0,
            finished: Vec::new(),
            config,
        }
    }

    /// From now on the core's stream is stuck: for tests of what follows.
    pub fn stick(&mut self) {
        self.core.stick();
    }

    /// From now on neither side of the core's streams is ready in so many of a hundred cycles: for tests.
    pub fn stall(&mut self, percent: u32, seed: u32) {
        self.core.stall(percent, seed);
    }

    /// Does a job; its outcome, and how many cycles that took.
    fn run(&mut self, job: &mut Job) -> Result<(Verdict, u64), Stuck> {
        let session = self.sessions.get(&job.spec.session).filter(|_| !self.is_stuck);
        let Some(session) = session else { return Ok((Verdict::Failed, 0)) };
        if let Some((_, path)) = self.config.record.as_ref().filter(|(packet, _)| *packet == self.packets) {
            self.core.record(path);
        }
        self.packets += 1;
        self.core.run(session, job)
    }

    fn time(&self, cycles: u64) -> Duration {
        let picoseconds = u128::from(cycles) * SECOND / u128::from(self.config.clock_hz.get());
        Duration(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }
}

impl Processor for Rtl {
    fn name(&self) -> &str {
        &self.config.name
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
        let suite = keys.suite();
        if !self.capabilities.has(suite) {
            return Err(SessionError::Unsupported(suite));
        }
        self.close_session(id);
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(SessionError::TableFull);
        }
        let mut salt = [0; 4];
        salt[..keys.salt().len()].copy_from_slice(keys.salt());
        let [key, integrity] = [keys.cipher(), keys.integrity()].map(|key| SecretBytes::new(key.to_vec()));
        self.sessions.insert(id, Session { suite, direction, key, salt, integrity });
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        self.core.forget(id);
    }

    fn submit(&mut self, _now: Time, jobs: &mut Vec<Job>) {
        let room = QUEUE.saturating_sub(self.finished.len()).min(jobs.len());
        for mut job in jobs.drain(..room) {
            let (verdict, cycles) = self.run(&mut job).unwrap_or_else(|Stuck| {
                self.is_stuck = true;
                (Verdict::Failed, 0)
            });
            (job.verdict, job.took) = (verdict, self.time(cycles));
            self.finished.push(job);
        }
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        done.append(&mut self.finished);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::Core;

    #[test]
    fn cycles_are_time_at_the_clock() {
        let clock_hz = NonZeroU64::new(200_000_000).expect("not zero");
        let config = Config { name: "rtl".to_owned(), core: Core::AesGcm, clock_hz, record: None };
        let rtl = Rtl::new(config);
        assert_eq!(rtl.time(0), Duration::ZERO);
        assert_eq!(rtl.time(3), Duration::from_nanos(15));
        assert_eq!(rtl.time(200_000_000), Duration::from_millis(1_000));
    }
}
