//! An AEAD core: one key at a time, a command for each packet.

use std::path::Path;

use forebay_crypto::{Direction, Job, JobSpec, Layout, SessionId, Verdict};
use rtl_sys::{Engine, Stuck};

use crate::Core;
use crate::processor::{Hardware, Session};

pub(crate) struct Aead {
    engine: Engine,
    /// Whose key the core has.
    loaded: Option<SessionId>,
    /// Text that comes out, before it replaces what went in.
    out: Vec<u8>,
}

impl Aead {
    /// The core behind a reset; `None` for an ESP engine.
    pub fn new(core: Core) -> Option<Aead> {
        let core = match core {
            Core::AesGcm => rtl_sys::Core::AesGcm,
            Core::ChaCha20Poly1305 => rtl_sys::Core::ChaChaPoly,
            #[cfg(feature = "pipelined")]
            Core::AesGcmPipelined => rtl_sys::Core::AesGcmPipelined,
            _ => return None,
        };
        Some(Aead { engine: Engine::new(core), loaded: None, out: Vec::new() })
    }
}

impl Hardware for Aead {
    fn run(&mut self, session: &Session, job: &mut Job) -> Result<(Verdict, u64), Stuck> {
        let buffer = job.packet.buffer_mut();
        let Some(at) = Layout::check(&job.spec, session.suite, session.direction, buffer.len()) else {
            return Ok((Verdict::Failed, 0));
        };
        let mut cycles = 0;
        if self.loaded != Some(job.spec.session) {
            self.loaded = None;
            cycles += self.engine.set_key(session.key.expose())?;
            self.loaded = Some(job.spec.session);
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

    fn forget(&mut self, id: SessionId) {
        if self.loaded == Some(id) {
            self.engine.clear_key();
            self.loaded = None;
        }
    }

    fn record(&mut self, path: &Path) {
        self.engine.record(path);
    }

    fn stall(&mut self, percent: u32, seed: u32) {
        self.engine.stall(percent, seed);
    }

    fn stick(&mut self) {
        self.engine.stick();
    }
}
