//! The AEAD cores behind a safe interface.

use std::ffi::{c_int, c_uint};
use std::path::Path;

use crate::handle::{Handle, Opaque, Stuck};

/// Length of an IV: salt and the packet's eight bytes.
const IV_LEN: usize = 12;
/// Length of a whole tag.
const TAG_LEN: usize = 16;

/// A core. Its parameters stand in `build.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Core {
    /// AES-GCM with one round of AES a cycle.
    AesGcm = 0,
    /// ChaCha20-Poly1305 with half a double round a cycle.
    ChaChaPoly = 1,
    /// AES-GCM with all rounds of AES and the multiplication of GHASH in one pipeline: a block a cycle.
    #[cfg(feature = "pipelined")]
    AesGcmPipelined = 2,
}

// SAFETY: these are the functions of engine.h.
unsafe extern "C" {
    fn forebay_rtl_aead(kind: c_uint) -> *mut Opaque;
    fn forebay_rtl_aead_key(core: *mut Opaque, words: *const u32, count: c_uint) -> i64;
    fn forebay_rtl_aead_clear(core: *mut Opaque);
    fn forebay_rtl_aead_packet(
        core: *mut Opaque,
        iv: *const u8,
        decrypt: c_int,
        aad: *const u8,
        aad_len: usize,
        text: *const u8,
        text_len: usize,
        out: *mut u8,
        tag: *mut u8,
    ) -> i64;
}

/// A core in simulation, with its registers and streams.
#[derive(Debug)]
pub struct Engine(Handle);

impl Engine {
    /// The core behind a reset, without a key.
    pub fn new(core: Core) -> Engine {
        // SAFETY: any number may be passed.
        Engine(Handle::new(unsafe { forebay_rtl_aead(core as c_uint) }))
    }

    /// Replaces the key, of 16, 24 or 32 bytes; returns the cycles that took.
    ///
    /// # Errors
    /// If the core does not become ready.
    pub fn set_key(&mut self, key: &[u8]) -> Result<u64, Stuck> {
        assert!(matches!(key.len(), 16 | 24 | 32), "a key of {} bytes", key.len());
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        }
        // SAFETY: as many words as are said.
        let cycles =
            unsafe { forebay_rtl_aead_key(self.0.as_ptr(), words.as_ptr(), key.len() as c_uint / 4) };
        words.fill(0);
        std::hint::black_box(&mut words);
        Stuck::or(cycles)
    }

    /// Clears the key and what was made of it.
    pub fn clear_key(&mut self) {
        // SAFETY: the engine is open.
        unsafe { forebay_rtl_aead_clear(self.0.as_ptr()) }
    }

    /// Enciphers `text`, or deciphers it, into `out`, which is as long; returns the tag of `aad` and the ciphertext, and the
    /// cycles from the command to the last beat.
    ///
    /// # Errors
    /// If a stream sticks; `out` is then of no use, and the core too.
    pub fn packet(
        &mut self,
        iv: &[u8; IV_LEN],
        decrypt: bool,
        aad: &[u8],
        text: &[u8],
        out: &mut [u8],
    ) -> Result<([u8; TAG_LEN], u64), Stuck> {
        assert_eq!(text.len(), out.len(), "text in and out");
        let mut tag = [0; TAG_LEN];
        // SAFETY: lengths and buffers belong together; `out` is as long as `text`, IV and tag have the lengths of engine.h.
        let cycles = unsafe {
            forebay_rtl_aead_packet(
                self.0.as_ptr(),
                iv.as_ptr(),
                decrypt.into(),
                aad.as_ptr(),
                aad.len(),
                text.as_ptr(),
                text.len(),
                out.as_mut_ptr(),
                tag.as_mut_ptr(),
            )
        };
        Ok((tag, Stuck::or(cycles)?))
    }

    /// Records the next packet as a waveform (FST); `false` if this build has none.
    pub fn record(&mut self, path: &Path) -> bool {
        self.0.record(path)
    }

    /// From now on neither side of a stream is ready in so many of a hundred cycles, drawn from `seed`: for tests.
    pub fn stall(&mut self, percent: u32, seed: u32) {
        self.0.stall(percent, seed);
    }

    /// From now on nobody takes what the core gives: for tests of what follows.
    pub fn stick(&mut self) {
        self.0.stick();
    }
}
