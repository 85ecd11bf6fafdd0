//! The library's manager behind a safe face: everything that calls C is here.

use std::ptr::NonNull;

use ipsec_mb_sys as sys;
use zeroize::Zeroize;

use crate::Instructions;
use crate::session::{Gcm, Hash};

/// Owns one manager of the library and the scratch memory its calls need.
pub struct Manager {
    raw: NonNull<sys::Manager>,
    context: Box<sys::GcmContext>,
}

// SAFETY: the manager is heap memory without thread affinity; the library only asks that no two
// threads use it at once, which `&mut self` on every method that changes it sees to.
unsafe impl Send for Manager {}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: `raw` came from fb_mgr_new, is freed once, and is not used afterwards.
        unsafe { sys::fb_mgr_free(self.raw.as_ptr()) }
        self.context.0.zeroize();
    }
}

impl Manager {
    /// A manager for `instructions`; `None` if this processor lacks them, the library refuses, or
    /// its structures are larger than the room kept for them.
    pub fn new(instructions: Instructions) -> Option<Manager> {
        let instructions = match instructions {
            Instructions::Best => sys::INSTRUCTIONS_BEST,
            Instructions::Sse => sys::INSTRUCTIONS_SSE,
            Instructions::Avx => sys::INSTRUCTIONS_AVX,
            Instructions::Avx2 => sys::INSTRUCTIONS_AVX2,
            Instructions::Avx512 => sys::INSTRUCTIONS_AVX512,
        };
        // SAFETY: the three calls take no pointers and have no preconditions.
        let (raw, key_size, context_size) =
            unsafe { (sys::fb_mgr_new(instructions), sys::fb_gcm_key_size(), sys::fb_gcm_context_size()) };
        let manager = Manager { raw: NonNull::new(raw)?, context: Box::new(sys::GcmContext([0; 128])) };
        let fits = key_size <= size_of::<sys::GcmKey>() && context_size <= size_of::<sys::GcmContext>();
        fits.then_some(manager)
    }

    /// Expands a GCM key of 16, 24 or 32 bytes.
    pub fn expand_gcm(&self, key: &[u8], open: bool) -> (Box<sys::GcmKey>, sys::GcmFn) {
        assert!(matches!(key.len(), 16 | 24 | 32), "GCM key of {} bytes", key.len());
        let mut expanded = Box::new(sys::GcmKey([0; 1024]));
        // SAFETY: the key has the length that is passed, and `expanded` is at least as large and as
        // aligned as the library's structure (checked in `new`).
        let function = unsafe {
            sys::fb_gcm_expand(self.raw.as_ptr(), key.as_ptr(), key.len() as u32, &mut *expanded);
            sys::fb_gcm(self.raw.as_ptr(), key.len() as u32, i32::from(open))
        };
        (expanded, function)
    }

    /// Expands an AES key of 16, 24 or 32 bytes into encryption and decryption round keys.
    pub fn expand_aes(&self, key: &[u8], enc: &mut RoundKeys, dec: &mut RoundKeys) {
        assert!(matches!(key.len(), 16 | 24 | 32), "AES key of {} bytes", key.len());
        // SAFETY: both outputs hold the 15 round keys of the longest key and are 16-byte aligned.
        unsafe {
            sys::fb_aes_expand(
                self.raw.as_ptr(),
                key.as_ptr(),
                key.len() as u32,
                enc.0.as_mut_ptr(),
                dec.0.as_mut_ptr(),
            );
        }
    }

    /// The inner and outer HMAC states for a key of at most one block (RFC 2104 2).
    pub fn hmac_states(&self, hash: Hash, key: &[u8], inner: &mut HmacState, outer: &mut HmacState) {
        let mut block = [[0u8; 128]; 2];
        assert!(key.len() <= hash.block_len(), "HMAC key of {} bytes", key.len());
        for (pad, byte) in block.iter_mut().zip([0x36, 0x5c]) {
            pad[..key.len()].copy_from_slice(key);
            pad.iter_mut().for_each(|b| *b ^= byte);
        }
        // SAFETY: each pad holds a block of the longest hash, each state the longest state.
        unsafe {
            sys::fb_hmac_states(
                self.raw.as_ptr(),
                i32::from(hash.code()),
                block[0].as_ptr(),
                block[1].as_ptr(),
                inner.0.as_mut_ptr(),
                outer.0.as_mut_ptr(),
            );
        }
        block.zeroize();
    }

    /// The keys of AES-XCBC-MAC: the expanded first one, and the two for the last block.
    pub fn xcbc_keys(&self, key: &[u8; 16], mac: &mut MacKeys) {
        let MacKeys { first, second, third } = mac;
        // SAFETY: a key of 16 bytes; the outputs have room for the round keys and a block each, and
        // are aligned.
        unsafe {
            sys::fb_xcbc_keys(
                self.raw.as_ptr(),
                key.as_ptr(),
                first.0.as_mut_ptr(),
                second.0.as_mut_ptr(),
                third.0.as_mut_ptr(),
            );
        }
    }

    /// The keys of AES-CMAC: the expanded one, and the two for the last block.
    pub fn cmac_keys(&self, key: &[u8; 16], mac: &mut MacKeys) {
        let MacKeys { first, second, third } = mac;
        self.expand_aes(key, first, &mut RoundKeys::new());
        // SAFETY: `first` was expanded a moment ago; the outputs have room for a block each, and are aligned.
        unsafe {
            sys::fb_cmac_keys(
                self.raw.as_ptr(),
                first.0.as_ptr(),
                second.0.as_mut_ptr(),
                third.0.as_mut_ptr(),
            );
        }
    }

    /// Expands a Triple DES key into its three schedules, the same for both directions.
    pub fn expand_3des(&self, key: &[u8; 24], out: &mut RoundKeys) {
        // SAFETY: a key of 24 bytes; `out` has room for three schedules and is aligned.
        unsafe { sys::fb_3des_expand(self.raw.as_ptr(), key.as_ptr(), out.0.as_mut_ptr()) }
    }

    /// The tag of `pieces` as one message, by AES-GMAC with a key of `key_len` bytes.
    pub fn gmac(&mut self, key: &sys::GcmKey, key_len: usize, iv: &[u8; 12], pieces: [&[u8]; 3]) -> [u8; 16] {
        let pieces = pieces.map(|piece| sys::Piece { start: piece.as_ptr(), len: piece.len() as u64 });
        let mut tag = [0; 16];
        // SAFETY: the key was expanded by this library for `key_len`, the IV has the twelve bytes that it
        // reads, every piece is a slice, and the tag has room for the sixteen bytes asked for.
        unsafe {
            sys::fb_gmac(
                self.raw.as_ptr(),
                key,
                key_len as u32,
                &mut *self.context,
                iv.as_ptr(),
                pieces.as_ptr(),
                pieces.len() as u32,
                tag.as_mut_ptr(),
                tag.len() as u64,
            );
        }
        tag
    }

    /// One GCM operation on `len` bytes at `text`, in place, the tag to `tag`.
    ///
    /// # Safety
    /// `text` must be valid for `len` bytes, `iv` for 12, `aad` for `aad_len`, and `tag` for the
    /// session's ICV length; none of them may overlap `text`.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "they are the library's")]
    pub unsafe fn gcm(
        &mut self,
        session: &Gcm,
        text: *mut u8,
        len: usize,
        iv: *const u8,
        aad: *const u8,
        aad_len: usize,
        tag: *mut u8,
    ) {
        // SAFETY: the key was expanded by this library for this function; the rest is the caller's
        // promise, and in == out is allowed by the library.
        unsafe {
            (session.function)(
                &*session.key,
                &mut *self.context,
                text,
                text,
                len as u64,
                iv,
                aad,
                aad_len as u64,
                tag,
                session.icv_len as u64,
            );
        }
    }

    /// Runs chained jobs to their end; each one's `ok` says whether the library did it.
    ///
    /// # Panics
    /// If there are more than [`sys::MAX_BURST`] jobs: the shim has room for so many on its stack.
    ///
    /// # Safety
    /// Every pointer in `jobs` must be valid for the length its job states until this returns:
    /// `base` for both ranges, `iv` for `iv_len`, `tag` for `tag_len`, the keys for their kind.
    pub unsafe fn run(&mut self, jobs: &mut [sys::ChainedJob]) {
        assert!(jobs.len() <= sys::MAX_BURST, "a burst of {} jobs", jobs.len());
        // SAFETY: their number is checked above; the rest is the caller's promise.
        unsafe { sys::fb_run(self.raw.as_ptr(), jobs.as_mut_ptr(), jobs.len() as u32) }
    }
}

/// See [`crate::BareGcm`].
pub struct BareGcm {
    manager: Manager,
    expanded: Box<sys::GcmKey>,
    key_len: u32,
    icv_len: u32,
    open: bool,
    buffers: Vec<Vec<u8>>,
}

impl BareGcm {
    pub fn new(key: &[u8], icv_len: usize, open: bool, buffers: Vec<Vec<u8>>) -> Option<BareGcm> {
        let len = buffers.first().map_or(0, Vec::len);
        if !matches!(key.len(), 16 | 24 | 32) || icv_len > 16 || buffers.iter().any(|b| b.len() != len) {
            return None;
        }
        let manager = Manager::new(Instructions::Best)?;
        let (expanded, _) = manager.expand_gcm(key, open);
        Some(BareGcm { manager, expanded, key_len: key.len() as u32, icv_len: icv_len as u32, open, buffers })
    }

    pub fn run(&mut self, rounds: u64) {
        let len = self.buffers.first().map_or(0, Vec::len);
        let pointers: Vec<*mut u8> = self.buffers.iter_mut().map(|b| b.as_mut_ptr()).collect();
        // SAFETY: every pointer is to `len` bytes that `buffers` keeps alive; the tag length is at
        // most the sixteen bytes that the function has for it.
        unsafe {
            sys::fb_bare_gcm(
                self.manager.raw.as_ptr(),
                &*self.expanded,
                self.key_len,
                i32::from(self.open),
                pointers.as_ptr(),
                pointers.len() as u32,
                len as u64,
                self.icv_len,
                rounds,
            );
        }
    }
}

/// The round keys of AES for keys of any length, or the three schedules of Triple DES.
#[repr(align(64))]
#[derive(zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct RoundKeys(pub [u8; 3 * sys::DES_SCHEDULE]);

impl RoundKeys {
    /// Without keys.
    pub const fn new() -> RoundKeys {
        RoundKeys([0; 3 * sys::DES_SCHEDULE])
    }
}

/// What an integrity algorithm needs of its key. HMAC: nothing, inner and outer state; AES-XCBC-MAC
/// and AES-CMAC: the expanded key, and the two for the last block.
pub struct MacKeys {
    pub first: RoundKeys,
    pub second: HmacState,
    pub third: HmacState,
}

/// The state of a hash after one block, for any of the hashes.
#[repr(align(64))]
#[derive(zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct HmacState(pub [u8; 64]);
