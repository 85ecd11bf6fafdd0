//! The core as a processor.

use std::collections::HashMap;

use forebay_crypto::{
    Capabilities, Direction, Job, JobSpec, Layout, Processor, SaKeys, SecretBytes, SessionError, SessionId,
    Suite, Verdict,
};
use forebay_time::{Duration, Time};
use rtl_sys::{Engine, Stuck};

use crate::{Config, Core};

/// Most sessions: keys wait in the host's memory, and the core has one at a time.
const SESSIONS_MAX: usize = 65_536;
/// Jobs between submit and poll.
const QUEUE: usize = 4_096;
/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// A core in simulation.
pub struct Rtl {
    capabilities: Capabilities,
    config: Config,
    engine: Engine,
    sessions: HashMap<SessionId, Session>,
    /// Whose key the core has.
    loaded: Option<SessionId>,
    /// Whether a stream stuck: then the core takes nothing more.
    is_stuck: bool,
    packets: u64,
    finished: Vec<Job>,
    /// Text that comes out, before it replaces what went in.
    out: Vec<u8>,
}

struct Session {
    suite: Suite,
    direction: Direction,
    key: SecretBytes,
    salt: [u8; 4],
}

impl Rtl {
    /// The core behind a reset.
    pub fn new(config: Config) -> Rtl {
        let suites = Suite::all().filter(|&suite| config.core.has(suite)).collect();
        let core = match config.core {
            Core::AesGcm => rtl_sys::Core::AesGcm,
            Core::ChaCha20Poly1305 => rtl_sys::Core::ChaChaPoly,
            #[cfg(feature = "pipelined")]
            Core::AesGcmPipelined => rtl_sys::Core::AesGcmPipelined,
        };
        Rtl {
            capabilities: Capabilities { suites, best_burst: 1, queue: QUEUE },
            engine: Engine::new(core),
            sessions: HashMap::new(),
            loaded: None,
            is_stuck: false,
            packets: 0,
            finished: Vec::new(),
            out: Vec::new(),
            config,
        }
    }

    /// From now on the core's stream is stuck: for tests of what follows.
    pub fn stick(&mut self) {
        self.engine.stick();
    }

    /// From now on neither side of the core's streams is ready in so many of a hundred cycles: for tests.
    pub fn stall(&mut self, percent: u32, seed: u32) {
        self.engine.stall(percent, seed);
    }

    /// Does a job; its outcome, and how many cycles that took.
    fn run(&mut self, job: &mut Job) -> Result<(Verdict, u64), Stuck> {
        let (id, failed) = (job.spec.session, Ok((Verdict::Failed, 0)));
        let Some(session) = self.sessions.get(&id).filter(|_| !self.is_stuck) else { return failed };
        let buffer = job.packet.buffer_mut();
        let Some(at) = Layout::check(&job.spec, session.suite, session.direction, buffer.len()) else {
            return failed;
        };
        let mut cycles = 0;
        if self.loaded != Some(id) {
            self.loaded = None;
            cycles += self.engine.set_key(session.key.expose())?;
            self.loaded = Some(id);
        }
        let mut iv = [0; 12];
        iv[..4].copy_from_slice(&session.salt);
        iv[4..].copy_from_slice(&buffer[at.iv]);
        // The high half of the sequence number stands behind the SPI (RFC 4106 5).
        let mut aad = [0; Layout::ESN_AAD_MAX + JobSpec::SEQ_HI_LEN];
        let auth = &buffer[at.auth];
        let aad: &[u8] = match job.spec.seq_hi {
            None => auth,
            Some(seq_hi) => {
                let whole = auth.len() + JobSpec::SEQ_HI_LEN;
                aad[..4].copy_from_slice(&auth[..4]);
                aad[4..8].copy_from_slice(&seq_hi.to_be_bytes());
                aad[8..whole].copy_from_slice(&auth[4..]);
                &aad[..whole]
            }
        };
        if let Some((_, path)) = self.config.record.as_ref().filter(|(packet, _)| *packet == self.packets) {
            self.engine.record(path);
        }
        self.packets += 1;
        self.out.resize(at.cipher.len(), 0);
        let decrypts = session.direction == Direction::Open;
        let (tag, took) =
            self.engine.packet(&iv, decrypts, aad, &buffer[at.cipher.clone()], &mut self.out)?;
        buffer[at.cipher].copy_from_slice(&self.out);
        let (icv, tag) = (&mut buffer[at.icv.clone()], &tag[..at.icv.len()]);
        let verdict = match session.direction {
            Direction::Seal => {
                icv.copy_from_slice(tag);
                Verdict::Done
            }
            // All bytes are looked at, whatever the first ones are.
            Direction::Open if icv.iter().zip(tag).fold(0, |all, (one, other)| all | (one ^ other)) == 0 => {
                Verdict::Done
            }
            Direction::Open => Verdict::AuthFailed,
        };
        Ok((verdict, cycles + took))
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
        salt.copy_from_slice(keys.salt());
        let key = SecretBytes::new(keys.cipher().to_vec());
        self.sessions.insert(id, Session { suite, direction, key, salt });
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        if self.loaded == Some(id) {
            self.engine.clear_key();
            self.loaded = None;
        }
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
