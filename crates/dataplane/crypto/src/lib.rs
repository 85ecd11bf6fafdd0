//! Suites, keys and the [`Processor`] contract.
//!
//! A crypto job is the part of processing a packet that needs no order: sequence number, IV, headers and padding are in place, and the
//! job has ranges of a buffer, a key session and a direction. A [`Processor`] executes such jobs: the running core, a card, a GPU, an
//! emulated card. Each backend is a crate of its own, and a new one requires no change here.
//!
//! ```
//! use forebay_crypto::{Cipher, Suite};
//!
//! let suite: Suite = "aes128gcm16".parse()?; // the words of swanctl.conf
//! assert_eq!((suite.cipher_key_len(), suite.salt_len(), suite.icv_len()), (16, 4, 16));
//! assert!(matches!(suite.cipher(), Cipher::AesGcm(_)));
//! assert_eq!("aes128gmc16".parse::<Suite>().unwrap_err().nearest, "aes128gcm16");
//! # Ok::<(), forebay_crypto::SuiteError>(())
//! ```

// Counters are 64-bit atomics, sizes of buffers and rings are computed as `usize`, and no test runs on other targets.
#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Forebay's data plane is for 64-bit targets, x86-64 and arm64. The crates of the simulator alone (forebay-sim, \
     forebay-pipeline, forebay-models) also compile for wasm32."
);

mod fallback;
mod job;
mod keys;
mod layout;
mod processor;
mod suite;

pub mod fault;

pub use fallback::Fallback;
pub use forebay_packet::Packet;
pub use job::{Direction, Job, JobSpec, SessionId, Span, Verdict};
pub use keys::{KeyError, SaKeys, SecretBytes};
pub use layout::Layout;
pub use processor::{Capabilities, Processor, SessionError};
pub use suite::{Cipher, Integrity, PROPOSALS, Suite, SuiteError};
