//! A processor that is hardware in simulation: packets go byte by byte through the Verilog cores of `hardware/`, compiled by
//! Verilator, and the cycles that they take are the time that the processor says it took.
//!
//! A core is an AEAD by itself, or an ESP engine that takes header, IV, text and ICV as they stand in the packet.
//!
//! `Rtl` does one packet after the other, as the core does, inside [`Processor::submit`](forebay_crypto::Processor::submit).
//! [`Job::took`](forebay_crypto::Job::took) is the packet's cycles at the given clock, and those of loading another SA's key
//! where the packet before had another one. Behind a bus and a queue it is an emulated card
//! (`forebay_crypto_card::Card::timed_by_inner`).
//!
//! Where Verilator was not installed when this was built, [`open`] says so.

#[cfg(rtl)]
mod aead;
#[cfg(rtl)]
mod esp;
#[cfg(rtl)]
mod processor;
#[cfg(rtl)]
pub use processor::Rtl;

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

use forebay_crypto::{Cipher, Integrity, Suite};

/// A core of `hardware/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Core {
    /// AES-GCM with one round of AES a cycle.
    AesGcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// An ESP engine with AES-CTR and HMAC-SHA-1.
    EspCtrSha1,
    /// An ESP engine with AES-CBC and HMAC-SHA-256.
    EspCbcSha256,
    /// An ESP engine with Triple DES and HMAC-SHA-1.
    Esp3DesSha1,
    /// An ESP engine with AES-GCM.
    EspGcm,
    /// An ESP engine with ChaCha20-Poly1305.
    EspChaCha20Poly1305,
    /// AES-GCM in one pipeline: a block a cycle.
    #[cfg(feature = "pipelined")]
    AesGcmPipelined,
}

impl Core {
    /// All of them with their words.
    pub const ALL: &[(&str, Core)] = &[
        ("aes-gcm", Core::AesGcm),
        ("chacha20poly1305", Core::ChaCha20Poly1305),
        ("esp-ctr-sha1", Core::EspCtrSha1),
        ("esp-cbc-sha256", Core::EspCbcSha256),
        ("esp-3des-sha1", Core::Esp3DesSha1),
        ("esp-gcm", Core::EspGcm),
        ("esp-chacha20poly1305", Core::EspChaCha20Poly1305),
        #[cfg(feature = "pipelined")]
        ("aes-gcm-pipelined", Core::AesGcmPipelined),
    ];

    /// The core of a word.
    pub fn of(word: &str) -> Option<Core> {
        Core::ALL.iter().find(|(one, _)| *one == word).map(|&(_, core)| core)
    }

    /// The suites that it has.
    pub fn suites(self) -> Vec<Suite> {
        Suite::all().filter(|&suite| self.has(suite)).collect()
    }

    /// Whether it has a suite. ESP engines have integrity alone too (NULL encryption, AH).
    pub fn has(self, suite: Suite) -> bool {
        let (cipher, integrity) = (suite.cipher(), suite.integrity());
        let null = cipher == Cipher::Null;
        match self {
            Core::EspCtrSha1 => {
                integrity == Integrity::HmacSha1 && (null || matches!(cipher, Cipher::AesCtr(_)))
            }
            Core::EspCbcSha256 => {
                integrity == Integrity::HmacSha256 && (null || matches!(cipher, Cipher::AesCbc(_)))
            }
            Core::Esp3DesSha1 => integrity == Integrity::HmacSha1 && (null || cipher == Cipher::TripleDesCbc),
            Core::ChaCha20Poly1305 | Core::EspChaCha20Poly1305 => cipher == Cipher::ChaCha20Poly1305,
            _ => matches!(cipher, Cipher::AesGcm(_)),
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

/// Why no core can be opened, or none with a waveform; `None` if this build has what that takes.
pub fn lacks(records: bool) -> Option<Unavailable> {
    match (rtl_sys::AVAILABLE, rtl_sys::WAVEFORMS) {
        (false, _) => Some(Unavailable::NotBuilt),
        (true, false) if records => Some(Unavailable::NoWaveforms),
        _ => None,
    }
}

/// Opens a core.
///
/// # Errors
/// If this build has none.
pub fn open(config: Config) -> Result<Box<dyn forebay_crypto::Processor>, Unavailable> {
    match lacks(config.record.is_some()) {
        Some(why) => Err(why),
        #[cfg(rtl)]
        None => Ok(Box::new(Rtl::new(config))),
        #[cfg(not(rtl))]
        None => Err(Unavailable::NotBuilt),
    }
}
