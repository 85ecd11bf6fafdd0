//! The ESP engines behind a safe interface.

use std::ffi::c_uint;
use std::path::Path;

use crate::handle::{Handle, Opaque, Stuck};

/// An inline ESP engine: a cipher and an authenticator in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EspCore {
    /// AES-CTR with HMAC-SHA-1.
    CtrSha1 = 0,
    /// AES-CBC with HMAC-SHA-256.
    CbcSha256 = 1,
    /// Triple DES in CBC with HMAC-SHA-1.
    TripleDesSha1 = 2,
    /// AES-GCM.
    Gcm = 3,
    /// ChaCha20-Poly1305.
    ChaCha = 4,
}

// SAFETY: these are the functions of engine.h.
unsafe extern "C" {
    fn forebay_rtl_esp(kind: c_uint) -> *mut Opaque;
    fn forebay_rtl_esp_slot(core: *mut Opaque, slot: c_uint, words: *const u32) -> i64;
    fn forebay_rtl_esp_clear(core: *mut Opaque) -> i64;
    fn forebay_rtl_esp_packet(
        core: *mut Opaque,
        words: *const u32,
        len: usize,
        out: *mut u32,
        room: usize,
        out_len: *mut usize,
    ) -> i64;
}

/// An ESP engine in simulation. Descriptors, key slots and the order of words are those of `hardware/engine/README.md`; the first
/// byte of a packet's word is the lowest.
#[derive(Debug)]
pub struct EspEngine(Handle);

impl EspEngine {
    /// Key slots.
    pub const SLOTS: usize = 16;
    /// Words of a key slot.
    pub const SLOT_WORDS: usize = 32;

    /// The engine behind a reset, with all slots zero.
    pub fn new(core: EspCore) -> EspEngine {
        // SAFETY: any number may be passed.
        EspEngine(Handle::new(unsafe { forebay_rtl_esp(core as c_uint) }))
    }

    /// Writes a key slot; returns the cycles that took.
    pub fn set_slot(&mut self, slot: usize, words: &[u32; EspEngine::SLOT_WORDS]) -> u64 {
        assert!(slot < EspEngine::SLOTS, "slot {slot}");
        // SAFETY: as many words as a slot has.
        let cycles = unsafe { forebay_rtl_esp_slot(self.0.as_ptr(), slot as c_uint, words.as_ptr()) };
        cycles.unsigned_abs()
    }

    /// Zeroes all key slots.
    ///
    /// # Errors
    /// If the engine does not become ready.
    pub fn clear(&mut self) -> Result<u64, Stuck> {
        // SAFETY: the engine is open.
        Stuck::or(unsafe { forebay_rtl_esp_clear(self.0.as_ptr()) })
    }

    /// Does a packet with its descriptor in front; the answer, with token and status behind it, replaces what is in `out`.
    /// Returns the cycles from the first word to the status.
    ///
    /// # Errors
    /// If a stream sticks; `out` is then of no use, and the engine too.
    pub fn packet(&mut self, words: &[u32], out: &mut Vec<u32>) -> Result<u64, Stuck> {
        // An answer has at most an ICV more than a packet, and two words for eight of the descriptor.
        out.clear();
        out.resize(words.len() + 4, 0);
        let mut len = 0;
        // SAFETY: lengths and buffers belong together.
        let cycles = unsafe {
            forebay_rtl_esp_packet(
                self.0.as_ptr(),
                words.as_ptr(),
                words.len(),
                out.as_mut_ptr(),
                out.len(),
                &raw mut len,
            )
        };
        out.truncate(len);
        Stuck::or(cycles)
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
