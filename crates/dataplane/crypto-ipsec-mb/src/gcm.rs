//! AES-GCM by the library's direct call: packet after packet of an SA.

use std::arch::x86_64::{__m128i, _mm_set_epi64x, _mm_store_si128};

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
    if session.open {
        run_train::<true>(manager, session, jobs, scratch)
    } else {
        run_train::<false>(manager, session, jobs, scratch)
    }
}

/// A loop of its own, so that what all its jobs share stays in registers: a call of the cipher takes ten
/// of them.
#[inline(never)]
fn run_train<const OPEN: bool>(
    manager: &mut Manager,
    session: &Gcm,
    jobs: &mut [Job],
    scratch: &mut Scratch,
) -> usize {
    let Some(id) = jobs.first().map(|job| job.spec.session) else { return 0 };
    let mut done = 0;
    for job in jobs.iter_mut().take_while(|job| job.spec.session == id) {
        job.verdict = run_one::<OPEN>(manager, session, job, scratch);
        done += 1;
    }
    done
}

#[inline]
fn run_one<const OPEN: bool>(
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
    if let Some(high) = spec.seq_hi {
        insert_high(&mut scratch.aad, &buffer[spec.auth.range()], high);
        (aad, aad_len) = (scratch.aad.as_ptr(), aad_len + JobSpec::SEQ_HI_LEN);
    }
    // SAFETY: the checks have seen to it that AAD, IV, text and ICV lie inside the packet's buffer, the
    // text apart from the others; the scratch is aligned and has sixteen bytes for IV and tag.
    unsafe {
        let iv = u64::from_le(base.add(spec.iv as usize).cast::<u64>().read_unaligned());
        let low = u64::from(u32::from_le_bytes(session.salt)) | iv << 32;
        // One store, because the library reads the IV in one piece at once: two would make it wait.
        let block = _mm_set_epi64x((iv >> 32) as i64, low as i64);
        _mm_store_si128(scratch.iv.as_mut_ptr().cast::<__m128i>(), block);

        let text = base.add(spec.cipher.start as usize);
        let icv = base.add(spec.icv as usize);
        let tag = if OPEN { scratch.tag.as_mut_ptr() } else { icv };
        manager.gcm(session, text, spec.cipher.len as usize, scratch.iv.as_ptr(), aad, aad_len, tag);
    }
    if !OPEN {
        return Verdict::Done;
    }
    let icv = &buffer[spec.icv as usize..][..session.icv_len];
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
