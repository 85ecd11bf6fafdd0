//! The cores of `hardware/`, compiled by Verilator where it was installed when this was built (5.0 or later).
//!
//! [`Engine`] is one core with its streams, driven cycle by cycle in C++ (`engine.cc`). Without Verilator the crate holds
//! nothing but the two constants.

/// Whether this build has the cores.
pub const AVAILABLE: bool = cfg!(rtl);

/// Whether it can record waveforms, which takes zlib's headers.
pub const WAVEFORMS: bool = cfg!(waveforms);

#[cfg(rtl)]
mod engine;
#[cfg(rtl)]
pub use engine::{Core, Engine, Stuck};
