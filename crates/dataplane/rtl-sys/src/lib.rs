//! The cores of `hardware/`, compiled by Verilator where it was installed when this was built (5.0 or later).
//!
//! `Engine` is an AEAD core and `EspEngine` an ESP engine, with their streams driven cycle by cycle in C++. Without Verilator
//! the crate holds nothing but the two constants.

/// Whether this build has the cores.
pub const AVAILABLE: bool = cfg!(rtl);

/// Whether it can record waveforms, which takes zlib's headers.
pub const WAVEFORMS: bool = cfg!(waveforms);

#[cfg(rtl)]
mod engine;
#[cfg(rtl)]
mod esp;
#[cfg(rtl)]
mod handle;
#[cfg(rtl)]
pub use engine::{Core, Engine};
#[cfg(rtl)]
pub use esp::{EspCore, EspEngine};
#[cfg(rtl)]
pub use handle::Stuck;
