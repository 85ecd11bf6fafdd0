//! An ESP engine: key slots, and a descriptor in front of each packet (`hardware/engine/README.md`).
//!
//! It works on whole words in the order of ESP: header, IV, text, ICV. Jobs of another form fail, and a library does them.

use std::ops::Range;
use std::path::Path;

use forebay_crypto::{Cipher, Direction, Integrity, Job, Layout, SessionId, Verdict};
use rtl_sys::{EspCore, EspEngine, Stuck};
use zeroize::Zeroizing;

use crate::Core;
use crate::processor::{Hardware, Session};

/// Words of a descriptor.
const DESCRIPTOR: usize = 8;
/// Words behind a packet: its token and its status.
const BEHIND: usize = 2;
/// Most bytes of additional data of an AEAD, the high half of the sequence number included.
const AAD_MAX: usize = 16;

pub(crate) struct Esp {
    engine: EspEngine,
    /// Whose keys each slot has, and the packet that used them last.
    slots: [Option<(SessionId, u64)>; EspEngine::SLOTS],
    packets: u64,
    /// Descriptor and packet.
    words: Vec<u32>,
    answer: Vec<u32>,
}

impl Esp {
    /// The engine behind a reset; `None` for an AEAD core.
    pub fn new(core: Core) -> Option<Esp> {
        let core = match core {
            Core::EspCtrSha1 => EspCore::CtrSha1,
            Core::EspCbcSha256 => EspCore::CbcSha256,
            Core::Esp3DesSha1 => EspCore::TripleDesSha1,
            Core::EspGcm => EspCore::Gcm,
            Core::EspChaCha20Poly1305 => EspCore::ChaCha,
            _ => return None,
        };
        let (words, answer) = (Vec::new(), Vec::new());
        Some(Esp { engine: EspEngine::new(core), slots: [None; EspEngine::SLOTS], packets: 0, words, answer })
    }

    /// The slot with a session's keys, which may be written for it in the place of those used longest ago; and the cycles.
    fn slot(&mut self, id: SessionId, session: &Session) -> (usize, u64) {
        let has = |slot: &Option<(SessionId, u64)>| slot.is_some_and(|(owner, _)| owner == id);
        let (slot, cycles) = match self.slots.iter().position(has) {
            Some(slot) => (slot, 0),
            None => {
                let used = |slot: &usize| self.slots[*slot].map_or(0, |(_, packet)| packet + 1);
                let slot = (0..EspEngine::SLOTS).min_by_key(used).unwrap_or(0);
                (slot, self.engine.set_slot(slot, &slot_words(session)))
            }
        };
        self.slots[slot] = Some((id, self.packets));
        (slot, cycles)
    }
}

impl Hardware for Esp {
    fn run(&mut self, session: &Session, job: &mut Job) -> Result<(Verdict, u64), Stuck> {
        let failed = Ok((Verdict::Failed, 0));
        let buffer = job.packet.buffer_mut();
        let layout = Layout::check(&job.spec, session.suite, session.direction, buffer.len());
        let Some(parts) = layout.and_then(|at| Parts::new(&at, session, job.spec.seq_hi)) else {
            return failed;
        };
        self.packets += 1;
        let (slot, cycles) = self.slot(job.spec.session, session);
        self.words.clear();
        self.words.extend(parts.descriptor(session, slot));
        let given = if session.direction == Direction::Open { &parts.icv } else { &(0..0) };
        for range in [&parts.head, &parts.iv, &parts.text, given] {
            let words = buffer[range.clone()].chunks_exact(4);
            self.words.extend(words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
        }
        let took = self.engine.packet(&self.words, &mut self.answer)?;
        let icv = if session.direction == Direction::Seal { parts.icv.clone() } else { 0..0 };
        let text = parts.head.len() / 4 + parts.iv.len() / 4;
        let sealed = text + parts.text.len() / 4;
        let end = sealed + icv.len() / 4;
        let verdict = match self.answer.get(end + 1) {
            Some(0) if self.answer.len() == end + BEHIND => Verdict::Done,
            Some(1) if self.answer.len() == end + BEHIND => Verdict::AuthFailed,
            _ => Verdict::Failed,
        };
        if verdict == Verdict::Done {
            put(&mut buffer[parts.text], &self.answer[text..sealed]);
            put(&mut buffer[icv], &self.answer[sealed..end]);
        }
        Ok((verdict, cycles + took))
    }

    /// Zeroes all slots, for the engine's cores too may have the keys; those of others are written again when they are needed.
    fn forget(&mut self, id: SessionId) {
        if self.slots.iter().flatten().any(|&(owner, _)| owner == id) {
            // An engine that does not become ready answers no packet.
            let _ = self.engine.clear();
            self.slots = [None; EspEngine::SLOTS];
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

/// A job as the engine takes it, each part of whole words.
struct Parts {
    head: Range<usize>,
    iv: Range<usize>,
    text: Range<usize>,
    icv: Range<usize>,
    seq_hi: Option<u32>,
    /// The chain begins from zero, and the IV field is the first block of the text.
    zero_iv: bool,
}

impl Parts {
    /// `None` if the job has another form.
    fn new(at: &Layout, session: &Session, seq_hi: Option<u32>) -> Option<Parts> {
        let Layout { cipher: text, auth, iv, icv } = at.clone();
        let suite = session.suite;
        let zero_iv = suite.is_chained() && session.direction == Direction::Seal && !text.is_empty();
        let (head, iv) = if suite.is_aead() {
            (auth, iv)
        } else if text.is_empty() || suite.cipher() == Cipher::Null {
            (auth, 0..0)
        } else {
            let begin = if zero_iv { text.start } else { iv.start };
            let in_order = auth.start < begin && auth.end == text.end && (zero_iv || iv.end == text.start);
            in_order.then_some((auth.start..begin, if zero_iv { 0..0 } else { iv }))?
        };
        let text = if suite.cipher() == Cipher::Null { 0..0 } else { text };
        let parts = Parts { head, iv, text, icv, seq_hi, zero_iv };
        let all = [&parts.head, &parts.iv, &parts.text, &parts.icv];
        let whole = all.iter().all(|part| part.len().is_multiple_of(4));
        let fits = all.iter().map(|part| part.len()).sum::<usize>() <= usize::from(u16::MAX);
        let aad = parts.head.len() + if seq_hi.is_some() { 4 } else { 0 };
        let right_aad = !suite.is_aead() || aad <= AAD_MAX;
        (whole && fits && right_aad && !parts.head.is_empty() && !parts.icv.is_empty()).then_some(parts)
    }

    fn descriptor(&self, session: &Session, slot: usize) -> [u32; DESCRIPTOR] {
        let suite = session.suite;
        let ciphers = !self.text.is_empty() || suite.is_aead();
        let cipher = match suite.cipher() {
            Cipher::AesCtr(_) if ciphers => 1,
            Cipher::AesCbc(_) if ciphers => 2,
            Cipher::TripleDesCbc if ciphers => 3,
            Cipher::AesGcm(_) => 4,
            Cipher::ChaCha20Poly1305 => 5,
            _ => 0,
        };
        let integrity = match suite.integrity() {
            Integrity::HmacSha1 => 2,
            Integrity::HmacSha256 => 3,
            _ => 0,
        };
        let opens = session.direction == Direction::Open;
        let icv = if opens { self.icv.len() } else { 0 };
        let len = |part: &Range<usize>| part.len() as u32;
        let whole = len(&self.head) + len(&self.iv) + len(&self.text) + icv as u32;
        let flags =
            u32::from(opens) << 8 | u32::from(self.seq_hi.is_some()) << 9 | u32::from(self.zero_iv) << 10;
        let high = self.seq_hi.map_or(0, |high| u32::from_le_bytes(high.to_be_bytes()));
        let lengths = len(&self.text) | len(&self.iv) << 16 | len(&self.icv) << 24;
        [
            cipher | integrity << 4 | flags | (slot as u32) << 16,
            whole,
            len(&self.head) << 16,
            lengths,
            high,
            0,
            0,
            0,
        ]
    }
}

/// A key slot: the cipher's key, its size, the salt, and HMAC's states.
fn slot_words(session: &Session) -> Zeroizing<[u32; EspEngine::SLOT_WORDS]> {
    let mut words = Zeroizing::new([0; EspEngine::SLOT_WORDS]);
    let key = session.key.expose();
    for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words[8] = (key.len().max(16) / 8 - 2) as u32;
    words[9] = u32::from_be_bytes(session.salt);
    let integrity = session.suite.integrity();
    for (at, pad) in [(16, 0x36), (24, 0x5c)] {
        let mut block = Zeroizing::new([pad; 64]);
        block.iter_mut().zip(session.integrity.expose()).for_each(|(byte, key)| *byte ^= key);
        // HMAC's state behind its pad (RFC 2104 2).
        match integrity {
            Integrity::HmacSha1 => {
                let mut state = Zeroizing::new(SHA1);
                sha1::compress(&mut state, &[(*block).into()]);
                words[at..at + 5].copy_from_slice(&*state);
            }
            Integrity::HmacSha256 => {
                let mut state = Zeroizing::new(SHA256);
                sha2::compress256(&mut state, &[(*block).into()]);
                words[at..at + 8].copy_from_slice(&*state);
            }
            _ => continue,
        }
        words[10] = 1;
    }
    words
}

/// First states of the hashes (FIPS 180-4 5.3).
const SHA1: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
const SHA256: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

fn put(bytes: &mut [u8], words: &[u32]) {
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}
