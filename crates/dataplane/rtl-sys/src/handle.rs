//! What all cores have: they are closed, recorded and disturbed alike.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::fmt;
use std::path::Path;
use std::ptr::NonNull;

/// A stream did not move for 100,000 cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

impl Stuck {
    /// A number of cycles, below zero for this.
    pub(crate) fn or(cycles: i64) -> Result<u64, Stuck> {
        u64::try_from(cycles).map_err(|_| Stuck)
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the core's stream is stuck")
    }
}

impl std::error::Error for Stuck {}

#[repr(C)]
pub(crate) struct Opaque {
    _opaque: [u8; 0],
}

// SAFETY: these are the functions of engine.h.
unsafe extern "C" {
    fn forebay_rtl_close(core: *mut Opaque);
    fn forebay_rtl_record(core: *mut Opaque, path: *const c_char) -> c_int;
    fn forebay_rtl_stall(core: *mut Opaque, percent: c_uint, seed: u32);
    fn forebay_rtl_stick(core: *mut Opaque);
}

/// A core in simulation; it is closed with this.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Opaque>);

// SAFETY: a model has no thread and no state outside of itself (a context of its own); `Handle` is not shared.
unsafe impl Send for Handle {}

impl Handle {
    /// Of what opening a core returned.
    pub fn new(core: *mut Opaque) -> Handle {
        Handle(NonNull::new(core).expect("every core is compiled in"))
    }

    /// The core, for the functions of its kind.
    pub fn as_ptr(&self) -> *mut Opaque {
        self.0.as_ptr()
    }

    /// Records the next packet as a waveform (FST); `false` if this build has no waveforms (zlib's headers were missing), or
    /// the path cannot be passed to C.
    pub fn record(&mut self, path: &Path) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
        // SAFETY: a string that ends with 0, which is copied.
        unsafe { forebay_rtl_record(self.as_ptr(), path.as_ptr()) != 0 }
    }

    /// From now on neither side of a stream is ready in so many of a hundred cycles, drawn from `seed`: for tests.
    pub fn stall(&mut self, percent: u32, seed: u32) {
        // SAFETY: the core is open.
        unsafe { forebay_rtl_stall(self.as_ptr(), percent.min(99), seed) }
    }

    /// From now on nobody takes what the core gives: for tests of what follows.
    pub fn stick(&mut self) {
        // SAFETY: the core is open.
        unsafe { forebay_rtl_stick(self.as_ptr()) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened before `new`, closed once.
        unsafe { forebay_rtl_close(self.as_ptr()) }
    }
}
