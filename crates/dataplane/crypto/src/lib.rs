//! Suites, keys and the [`Processor`] contract.
//!
//! A crypto job is what is left of a packet once everything that needs order
//! (sequence number, IV, headers, padding) has been done: ranges of a buffer,
//! a key session and a direction. A [`Processor`] is anything that can do such
//! jobs: the running core, another core, a card, an emulated card. Backends
//! live in crates of their own; adding one touches nothing here.

mod fallback;
mod job;
mod keys;
mod layout;
mod packet;
mod processor;
mod suite;

pub mod fault;

pub use fallback::Fallback;
pub use job::{Direction, Job, JobSpec, SessionId, Span, Verdict};
pub use keys::{KeyError, SaKeys, SecretBytes};
pub use layout::Layout;
pub use packet::Packet;
pub use processor::{Capabilities, Processor, SessionError, copy_all};
pub use suite::nearest;
pub use suite::{Cipher, Integrity, Suite, SuiteError};
