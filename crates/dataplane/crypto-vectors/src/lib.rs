//! Published vectors and random jobs for every crypto backend: one test, all processors.
//!
//! [`check_all`] carries each published vector of the suites a processor declares through the
//! `Processor` contract, in both directions; [`check_random`] compares random jobs of every shape
//! with an independent implementation (RustCrypto). Both panic on the first difference, naming the
//! vector or job, and return how much they did, for a backend's test to hold against a minimum:
//!
//! ```ignore
//! let report = forebay_crypto_vectors::check_all(&mut || Box::new(MyProcessor::new()));
//! assert!(report.run("NIST CAVP gcm") >= 6_750, "{report}");
//! forebay_crypto_vectors::check_random(&mut || Box::new(MyProcessor::new()), 1, 10_000);
//! ```
//!
//! A vector needs no shape of ESP, because a job's parts may be anywhere in its buffer. AEAD: the
//! first 3 (CCM) or 4 bytes of the nonce are the session's salt, the rest is the packet's IV. A chained
//! cipher: sealing starts the chain with the block that the cipher turns into the vector's IV. A MAC
//! alone: a job without cipher text.

mod case;
mod published;
mod random;
mod reference;
mod report;
mod rig;
mod shape;

pub use published::check_all;
pub use random::check_random;
pub use reference::seal;
pub use report::{Report, Row};
