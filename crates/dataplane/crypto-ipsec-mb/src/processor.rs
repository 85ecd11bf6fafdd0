//! The backend as a [`Processor`]: whole bursts done in place during submit.

use forebay_crypto::{
    Capabilities, Direction, Job, JobSpec, Layout, Processor, SaKeys, SessionError, SessionId, Suite, Verdict,
};
use forebay_time::Time;
use ipsec_mb_sys as sys;

use crate::gcm::{self, ESN_AAD, insert_high};
use crate::gmac;
use crate::manager::Manager;
use crate::session::{Chain, Chained, Hash, Session, has};
use crate::{Instructions, Unavailable};

/// Most sessions one processor keeps: bounds the table against a runaway number.
const MAX_SESSIONS: usize = 1 << 20;

/// A core running Intel's multi-buffer library.
pub struct IpsecMb {
    manager: Manager,
    capabilities: Capabilities,
    sessions: Vec<Option<Session>>,
    done: Vec<Job>,
    scratch: Box<Scratch>,
}

/// What the jobs of one burst point at.
struct Scratch {
    gcm: gcm::Scratch,
    jobs: [sys::ChainedJob; sys::MAX_BURST],
    slots: [Slot; sys::MAX_BURST],
}

/// Per chained job: which one it is, its IV and AAD and where the AAD stands, the computed tag, and the
/// bytes that gave way to ESN's high half.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot {
    index: usize,
    aad_in: AadIn,
    iv: [u8; 16],
    aad: [u8; ESN_AAD],
    tag: [u8; 64],
    displaced: Option<[u8; 4]>,
}

/// Where the library reads the AAD of a chained job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AadIn {
    /// The job has no AAD.
    Nowhere,
    /// In the packet, from the begin of what is authenticated.
    Packet,
    /// In the slot, with the high half of the sequence number.
    Slot,
}

const NO_JOB: sys::ChainedJob = sys::ChainedJob {
    enc_keys: std::ptr::null(),
    dec_keys: std::ptr::null(),
    mac_keys: [std::ptr::null(); 3],
    base: std::ptr::null_mut(),
    cipher_start: 0,
    cipher_len: 0,
    auth_start: 0,
    auth_len: 0,
    iv: std::ptr::null(),
    aad: std::ptr::null(),
    aad_len: 0,
    tag: std::ptr::null_mut(),
    tag_len: 0,
    key_len: 0,
    iv_len: 0,
    cipher: 0,
    hash: 0,
    decrypt: 0,
    ok: 0,
};

// SAFETY: the pointers in `scratch` are made and used only inside one call of `submit`.
unsafe impl Send for IpsecMb {}

impl IpsecMb {
    /// A processor for the best instructions of this machine.
    pub fn new() -> Result<IpsecMb, Unavailable> {
        IpsecMb::with_instructions(Instructions::Best)
    }

    /// A processor for the given instructions; an error if this machine lacks them.
    pub fn with_instructions(instructions: Instructions) -> Result<IpsecMb, Unavailable> {
        let slot = Slot {
            index: 0,
            aad_in: AadIn::Nowhere,
            iv: [0; 16],
            aad: [0; ESN_AAD],
            tag: [0; 64],
            displaced: None,
        };
        let scratch = Scratch {
            gcm: gcm::Scratch::new(),
            jobs: [NO_JOB; sys::MAX_BURST],
            slots: [slot; sys::MAX_BURST],
        };
        Ok(IpsecMb {
            manager: Manager::new(instructions).ok_or(Unavailable::NotUsable)?,
            capabilities: Capabilities {
                suites: Suite::all().filter(|&suite| has(suite)).collect(),
                best_burst: 32,
                queue: usize::MAX,
            },
            sessions: Vec::new(),
            done: Vec::new(),
            scratch: Box::new(scratch),
        })
    }

    /// Does at most [`sys::MAX_BURST`] jobs.
    fn run(&mut self, jobs: &mut [Job]) {
        let mut chained = 0;
        let mut index = 0;
        while let Some(job) = jobs.get_mut(index) {
            match self.sessions.get(job.spec.session.0 as usize) {
                Some(Some(Session::Gcm(session))) => {
                    index += gcm::run(&mut self.manager, session, &mut jobs[index..], &mut self.scratch.gcm);
                    continue;
                }
                Some(Some(Session::Gmac(session))) => {
                    job.verdict = gmac::run(&mut self.manager, session, job)
                }
                Some(Some(Session::Chained(session))) => {
                    let slot = &mut self.scratch.slots[chained];
                    slot.index = index;
                    job.verdict = match prepare_chained(session, job, slot) {
                        Some(prepared) => {
                            self.scratch.jobs[chained] = prepared;
                            chained += 1;
                            Verdict::Pending
                        }
                        None => Verdict::Failed,
                    };
                }
                _ => job.verdict = Verdict::Failed,
            }
            index += 1;
        }
        if chained > 0 {
            self.run_chained(jobs, chained);
        }
    }

    /// Has the library do the first `n` prepared jobs.
    ///
    /// All pointers into packets and slots are made here, behind the last reference to them and right before the
    /// call: a reference that is made in between would end what the older pointers may be used for.
    fn run_chained(&mut self, jobs: &mut [Job], n: usize) {
        let Scratch { jobs: prepared, slots, .. } = &mut *self.scratch;
        for (slot, prepared) in slots[..n].iter_mut().zip(&mut prepared[..n]) {
            point(prepared, slot, jobs[slot.index].packet.buffer_mut());
        }
        // SAFETY: `prepare_chained` has checked that every range is inside its packet's buffer, and `point` has made
        // the pointers; buffers, sessions and slots are neither touched nor moved until the call returns.
        unsafe { self.manager.run(&mut prepared[..n]) };
        for (slot, prepared) in slots[..n].iter().zip(&prepared[..n]) {
            let job = &mut jobs[slot.index];
            job.verdict = finish_chained(job, slot, prepared);
        }
    }
}

impl Processor for IpsecMb {
    fn name(&self) -> &str {
        "ipsec-mb"
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
        if index >= MAX_SESSIONS {
            return Err(SessionError::TableFull);
        }
        let session = Session::open(&self.manager, keys, direction)
            .ok_or_else(|| SessionError::Unsupported(keys.suite()))?;
        if self.sessions.len() <= index {
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
        for burst in jobs.chunks_mut(sys::MAX_BURST) {
            self.run(burst);
        }
        if self.done.is_empty() {
            std::mem::swap(&mut self.done, jobs);
        } else {
            self.done.append(jobs);
        }
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        if done.is_empty() {
            std::mem::swap(&mut self.done, done);
        } else {
            done.append(&mut self.done);
        }
    }
}

/// Compares tags in a time that does not depend on where they differ.
#[inline]
pub fn same_tag(a: &[u8], b: &[u8]) -> bool {
    let difference = match (<&[u8; 16]>::try_from(a), <&[u8; 16]>::try_from(b)) {
        // The usual length, in one piece.
        (Ok(a), Ok(b)) => {
            let folded = u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b);
            folded as u64 | (folded >> 64) as u64
        }
        _ => a.iter().zip(b).fold(0, |difference, (x, y)| difference | u64::from(x ^ y)),
    };
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

/// Points a prepared job at its packet and its slot.
fn point(prepared: &mut sys::ChainedJob, slot: &mut Slot, buffer: &mut [u8]) {
    prepared.base = buffer.as_mut_ptr();
    prepared.iv = slot.iv.as_ptr();
    prepared.tag = slot.tag.as_mut_ptr();
    prepared.aad = match slot.aad_in {
        AadIn::Nowhere => std::ptr::null(),
        AadIn::Packet => prepared.base.wrapping_add(prepared.auth_start as usize),
        AadIn::Slot => slot.aad.as_ptr(),
    };
}

/// Checks the job and writes what the library needs to know, except for pointers to the packet and the slot;
/// `None`, and no change, if the job is bad.
fn prepare_chained(session: &Chained, job: &mut Job, slot: &mut Slot) -> Option<sys::ChainedJob> {
    let spec = job.spec;
    let buffer = job.packet.buffer_mut();
    let at = Layout::check(&spec, session.suite, session.direction, buffer.len())?;
    let open = session.direction == Direction::Open;
    slot.iv = match session.cipher {
        Chain::Null => [0; 16],
        // Sealing, the chain starts from zero and the IV field is the first block (see JobSpec::cipher).
        Chain::Cbc | Chain::TripleDes if !open => [0; 16],
        Chain::Cbc => *buffer[at.iv].first_chunk()?,
        Chain::TripleDes => block_of(&[&buffer[at.iv]]),
        // Three bytes of salt (RFC 4309 4).
        Chain::Ccm => block_of(&[&session.salt[..3], &buffer[at.iv]]),
        Chain::Ctr | Chain::ChaCha20Poly1305 => counter_block(session.salt, &buffer[at.iv]),
    };
    let mut auth_len = at.auth.len();
    (slot.aad_in, slot.displaced) = (AadIn::Nowhere, None);
    match spec.seq_hi {
        None if session.hash.is_combined() => slot.aad_in = AadIn::Packet,
        Some(high) if session.hash.is_combined() => {
            insert_high(&mut slot.aad, &buffer[at.auth.clone()], high);
            auth_len += JobSpec::SEQ_HI_LEN;
            slot.aad_in = AadIn::Slot;
        }
        Some(high) if session.hash != Hash::None => {
            // The high half stands behind everything while the hash runs (RFC 4303 2.2.1); what it
            // displaces, a received ICV mostly, is put back afterwards.
            let behind = buffer[at.auth.end..].first_chunk_mut()?;
            slot.displaced = Some(std::mem::replace(behind, high.to_be_bytes()));
            auth_len += JobSpec::SEQ_HI_LEN;
        }
        _ => {}
    }
    let mac = &session.mac;
    Some(sys::ChainedJob {
        enc_keys: session.enc.0.as_ptr(),
        dec_keys: session.dec.0.as_ptr(),
        mac_keys: [mac.first.0.as_ptr(), mac.second.0.as_ptr(), mac.third.0.as_ptr()],
        cipher_start: at.cipher.start as u32,
        cipher_len: at.cipher.len() as u32,
        auth_start: at.auth.start as u32,
        auth_len: auth_len as u32,
        aad_len: auth_len as u32,
        tag_len: session.suite.icv_len() as u8,
        key_len: session.key_len,
        iv_len: session.cipher.iv_len(),
        cipher: session.cipher.code(),
        hash: session.hash.code(),
        decrypt: u8::from(open),
        ..NO_JOB
    })
}

/// The parts in front, zeros behind.
fn block_of(parts: &[&[u8]]) -> [u8; 16] {
    let mut block = [0; 16];
    block.iter_mut().zip(parts.iter().copied().flatten()).for_each(|(to, from)| *to = *from);
    block
}

/// Nonce, IV, and the block counter, which starts at one (RFC 3686 4); ChaCha20 takes twelve bytes of it.
fn counter_block(salt: [u8; 4], iv: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&salt);
    block[4..12].copy_from_slice(iv);
    block[15] = 1;
    block
}

/// Puts back what gave way to the high half, and settles the ICV.
fn finish_chained(job: &mut Job, slot: &Slot, prepared: &sys::ChainedJob) -> Verdict {
    let spec = job.spec;
    let buffer = job.packet.buffer_mut();
    if let Some(displaced) = slot.displaced {
        buffer[spec.auth.end()..][..JobSpec::SEQ_HI_LEN].copy_from_slice(&displaced);
    }
    let tag = &slot.tag[..prepared.tag_len as usize];
    let icv = &mut buffer[spec.icv as usize..][..tag.len()];
    if prepared.ok == 0 {
        Verdict::Failed
    } else if prepared.decrypt == 0 {
        icv.copy_from_slice(tag);
        Verdict::Done
    } else if same_tag(tag, icv) {
        Verdict::Done
    } else {
        Verdict::AuthFailed
    }
}
