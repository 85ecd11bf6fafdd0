//! AES-GCM by the library's direct call: packet after packet of an SA.

use std::arch::x86_64::{
    __m128i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_or_si128, _mm_slli_si128, _mm_store_si128,
};

use forebay_crypto::{Job, JobSpec, Layout, Verdict};

use crate::manager::Manager;
use crate::session::Gcm;

/// Length of the IV field of AES-GCM in ESP, in bytes (RFC 4106 3.1).
const IV_LEN: usize = 8;
/// Room for the longest AAD with the sequence number's high half.
pub const ESN_AAD: usize = Layout::ESN_AAD_MAX + JobSpec::SEQ_HI_LEN;

/// What the call reads and writes beside the packet; used anew by every job.
#[repr(C, align(64))]
pub struct Scratch {
    iv: [u8; 16],
    tag: [u8; 16],
    aad: [u8; ESN_AAD],
}

impl Scratch {
    pub const fn new() -> Scratch {
        Scratch { iv: [0; 16], tag: [0; 16], aad: [0; ESN_AAD] }
    }
}

/// Does the jobs of `session` at the front of `jobs`, whose first is one of them; how many.
pub fn run(manager: &mut Manager, session: &Gcm, jobs: &mut [Job], scratch: &mut Scratch) -> usize {
    let Some(first) = jobs.first() else { return 0 };
    match (session.open, first.spec.seq_hi.is_some()) {
        (false, false) => run_train::<false, false>(manager, session, jobs, scratch),
        (false, true) => run_train::<false, true>(manager, session, jobs, scratch),
        (true, false) => run_train::<true, false>(manager, session, jobs, scratch),
        (true, true) => run_train::<true, true>(manager, session, jobs, scratch),
    }
}

/// A loop of its own, so that what all its jobs share stays in registers: a call of the cipher takes ten
/// of them.
#[inline(never)]
fn run_train<const OPEN: bool, const ESN: bool>(
    manager: &mut Manager,
    session: &Gcm,
    jobs: &mut [Job],
    scratch: &mut Scratch,
) -> usize {
    let Some(id) = jobs.first().map(|job| job.spec.session) else { return 0 };
    let (all, mut rest) = (jobs.len(), jobs.iter_mut());
    while let Some(job) = rest.next() {
        if job.spec.session != id || job.spec.seq_hi.is_some() != ESN {
            return all - rest.len() - 1;
        }
        job.verdict = run_one::<OPEN, ESN>(manager, session, job, scratch);
    }
    all
}

#[inline]
fn run_one<const OPEN: bool, const ESN: bool>(
    manager: &mut Manager,
    session: &Gcm,
    job: &mut Job,
    scratch: &mut Scratch,
) -> Verdict {
    let spec = &job.spec;
    let buffer = job.packet.buffer_mut();
    // ESP's order first: nearly every job has it, and the long way costs a packet of 64 bytes dearly.
    if !Layout::aead_in_esp_order(spec, IV_LEN, session.icv_len, buffer.len())
        && !is_good_in_any_order(session, spec, buffer.len())
    {
        return Verdict::Failed;
    }
    let base = buffer.as_mut_ptr();
    let (mut aad, mut aad_len) =
        (base.wrapping_add(spec.auth.start as usize).cast_const(), spec.auth.len as usize);
    if ESN && let Some(high) = spec.seq_hi {
        insert_high(&mut scratch.aad, &buffer[spec.auth.range()], high);
        (aad, aad_len) = (scratch.aad.as_ptr(), aad_len + JobSpec::SEQ_HI_LEN);
    }
    // SAFETY: the checks have seen to it that AAD, IV, text and ICV lie inside the packet's buffer, the
    // text apart from the others; the scratch is aligned and has sixteen bytes for IV and tag.
    unsafe {
        let iv = _mm_loadl_epi64(base.add(spec.iv as usize).cast::<__m128i>());
        let salt = _mm_cvtsi32_si128(i32::from_le_bytes(session.salt));
        // One store, because the library reads the IV in one piece at once: two would make it wait.
        let block = _mm_or_si128(salt, _mm_slli_si128::<4>(iv));
        _mm_store_si128(scratch.iv.as_mut_ptr().cast::<__m128i>(), block);

        let text = base.add(spec.cipher.start as usize);
        let icv = base.add(spec.icv as usize);
        let tag = if OPEN { scratch.tag.as_mut_ptr() } else { icv };
        manager.gcm(session, text, spec.cipher.len as usize, scratch.iv.as_ptr(), aad, aad_len, tag);
    }
    if !OPEN {
        return Verdict::Done;
    }
    // SAFETY: the checks have seen to it that the ICV lies inside the packet's buffer; the scratch is longer than any.
    let icv = unsafe { std::slice::from_raw_parts(base.add(spec.icv as usize), session.icv_len) };
    if crate::processor::same_tag(&scratch.tag[..session.icv_len], icv) {
        Verdict::Done
    } else {
        Verdict::AuthFailed
    }
}

#[cold]
fn is_good_in_any_order(session: &Gcm, spec: &JobSpec, size: usize) -> bool {
    Layout::check(spec, session.suite, session.direction(), size).is_some()
}

/// The AAD with the sequence number's high half between SPI and low half (RFC 4106 5).
pub fn insert_high(room: &mut [u8; ESN_AAD], auth: &[u8], high: u32) {
    room[..4].copy_from_slice(&auth[..4]);
    room[4..8].copy_from_slice(&high.to_be_bytes());
    room[8..auth.len() + 4].copy_from_slice(&auth[4..]);
}
