//! AWS-LC behind safe types: each owns one C object, frees and wipes it when dropped, and takes
//! its inputs as slices, so that lengths and aliasing are Rust's business and not the caller's.
//!
//! AWS-LC's own `OPENSSL_free` wipes what it frees (crypto/mem.c), which covers all but the AES key
//! schedules of [`block`]: those live in Rust's memory and are wiped there.

mod aead;
mod block;
mod context;
mod mac;

use aws_lc_sys as sys;

pub use aead::{Aead, Ccm, Gmac};
pub use block::{Cbc, Ctr, TripleDes};
pub use mac::{CbcMac, Hmac};

/// Length of an AES block in bytes.
pub const BLOCK: usize = 16;
/// Length of the longest digest in bytes (SHA-512).
pub const DIGEST_MAX: usize = 64;

/// The high half of a sequence number that is hashed behind the message.
pub type SeqHi = Option<[u8; 4]>;

/// Whether `a` and `b` are equal, in a time that depends on their length alone.
#[inline]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    // SAFETY: both are readable for the length compared.
    a.len() == b.len() && unsafe { sys::CRYPTO_memcmp(a.as_ptr().cast(), b.as_ptr().cast(), a.len()) } == 0
}

/// Fills `bytes` by AWS-LC's random generator, which the operating system seeds.
pub fn random(bytes: &mut [u8]) {
    // SAFETY: `bytes` is writable for its length.
    let done = unsafe { sys::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) };
    // It aborts the process rather than fail; zeros for keys would be worse than a panic.
    assert_eq!(done, 1, "cannot get random bytes");
}
