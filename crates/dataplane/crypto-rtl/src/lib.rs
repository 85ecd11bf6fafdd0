//! A processor that is hardware in simulation: packets go byte by byte through the Verilog cores of `hardware/`, compiled by
//! Verilator, and the cycles that they take are the time that the processor says it took.
//!
//! [`Rtl`] does one packet after the other, as the core does, inside [`Processor::submit`](forebay_crypto::Processor::submit).
//! [`Job::took`](forebay_crypto::Job::took) is the packet's cycles at the given clock, and those of loading another SA's key
//! where the packet before had another one. Behind a bus and a queue it is an emulated card
//! (`forebay_crypto_card::Card::timed_by_inner`).
//!
//! Where Verilator was not installed when this was built, [`open`] says so.

#[cfg(rtl)]
mod processor;
#[cfg(rtl)]
pub use processor::Rtl;

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

use forebay_crypto::{Cipher, Suite};

/// A core of `hardware/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Core {
    /// AES-GCM with one round of AES a cycle.
    AesGcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// AES-GCM in one pipeline: a block a cycle.
    #[cfg(feature = "pipelined")]
    AesGcmPipelined,
}

impl Core {
    /// All of them with their words.
    pub const ALL: &[(&str, Core)] = &[
        ("aes-gcm", Core::AesGcm),
        ("chacha20poly1305", Core::ChaCha20Poly1305),
        #[cfg(feature = "pipelined")]
        ("aes-gcm-pipelined", Core::AesGcmPipelined),
    ];

    /// Whether it has a suite.
    pub fn has(self, suite: Suite) -> bool {
        match self {
            Core::ChaCha20Poly1305 => suite.cipher() == Cipher::ChaCha20Poly1305,
            _ => matches!(suite.cipher(), Cipher::AesGcm(_)),
        }
    }
}

/// A core to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name in figures and logs.
    pub name: String,
    /// Which one.
    pub core: Core,
    /// Its clock in Hz.
    pub clock_hz: NonZeroU64,
    /// A packet, by its number from 0, that is recorded as a waveform (FST), and the file.
    pub record: Option<(u64, PathBuf)>,
}

/// Why a core cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// Verilator was not installed when this was built.
    NotBuilt,
    /// A waveform is wanted, and zlib's headers were not installed when this was built.
    NoWaveforms,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::NotBuilt => "this program was built without Verilator, which compiles the cores",
            Unavailable::NoWaveforms => "this program was built without zlib, and cannot record waveforms",
        })
    }
}

impl Unavailable {
    /// What mends it.
    pub fn help(&self) -> &'static str {
        "install verilator (5.0 or later) and zlib1g-dev, and build again"
    }
}

impl std::error::Error for Unavailable {}

/// Opens a core.
///
/// # Errors
/// If this build has none.
pub fn open(config: Config) -> Result<Box<dyn forebay_crypto::Processor>, Unavailable> {
    #[cfg(rtl)]
    {
        if config.record.is_some() && !rtl_sys::WAVEFORMS {
            return Err(Unavailable::NoWaveforms);
        }
        Ok(Box::new(Rtl::new(config)))
    }
    #[cfg(not(rtl))]
    {
        drop(config);
        Err(Unavailable::NotBuilt)
    }
}
