//! AWS-LC behind safe types: each owns one C object, frees and wipes it when dropped, and takes
//! its inputs as slices, so that lengths and aliasing are Rust's business and not the caller's.
//!
//! AWS-LC's own `OPENSSL_free` wipes what it frees (crypto/mem.c), which covers [`Aead`] and
//! [`Hmac`]; the AES key schedules live in Rust's memory and are wiped here.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

use aws_lc_sys as sys;

use forebay_crypto::{Cipher, Integrity};

/// Length of an AES block in bytes.
pub const BLOCK: usize = 16;
/// Length of the longest digest in bytes (SHA-512).
pub const DIGEST_MAX: usize = 64;

/// An authenticated cipher with its key and its length of ICV.
pub struct Aead {
    ctx: NonNull<sys::EVP_AEAD_CTX>,
}

// SAFETY: the context is plain memory that this value owns alone; AWS-LC ties nothing to a thread.
unsafe impl Send for Aead {}

impl Aead {
    /// Expands `key`; `None` if `cipher` is no AEAD, or AWS-LC refuses key or `icv_len`.
    pub fn new(cipher: Cipher, key: &[u8], icv_len: usize) -> Option<Aead> {
        let aead = match cipher {
            // SAFETY: these take nothing and return static tables.
            Cipher::AesGcm(16) => unsafe { sys::EVP_aead_aes_128_gcm() },
            // SAFETY: as above.
            Cipher::AesGcm(24) => unsafe { sys::EVP_aead_aes_192_gcm() },
            // SAFETY: as above.
            Cipher::AesGcm(32) => unsafe { sys::EVP_aead_aes_256_gcm() },
            // SAFETY: as above.
            Cipher::ChaCha20Poly1305 => unsafe { sys::EVP_aead_chacha20_poly1305() },
            _ => return None,
        };
        // SAFETY: `aead` is a static table, `key` is readable for its length; AWS-LC copies the
        // key and checks its length and `icv_len`, returning null if it refuses them.
        let ctx = unsafe { sys::EVP_AEAD_CTX_new(aead, key.as_ptr(), key.len(), icv_len) };
        NonNull::new(ctx).map(|ctx| Aead { ctx })
    }

    /// Encrypts `text` in place and fills `icv`, whose length is the one given to [`Aead::new`].
    #[inline]
    pub fn seal(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8], icv: &mut [u8]) -> bool {
        let mut icv_len = 0;
        let place = text.as_mut_ptr();
        // SAFETY: `ctx` was made by `new` and lives as long as `self`. Nonce and AAD are readable
        // and text and ICV writable for the lengths passed; as slices none of them overlap but
        // for input and output text, which are the same place, as AWS-LC allows. It writes at
        // most `icv.len()` bytes of ICV and refuses to start if that is too little.
        let ok = unsafe {
            sys::EVP_AEAD_CTX_seal_scatter(
                self.ctx.as_ptr(),
                place,
                icv.as_mut_ptr(),
                &mut icv_len,
                icv.len(),
                nonce.as_ptr(),
                nonce.len(),
                place,
                text.len(),
                ptr::null(),
                0,
                aad.as_ptr(),
                aad.len(),
            )
        };
        ok == 1 && icv_len == icv.len()
    }

    /// Verifies `icv` and decrypts `text` in place; if the ICV does not match, `false` and zeros.
    #[inline]
    pub fn open(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8], icv: &[u8]) -> bool {
        let place = text.as_mut_ptr();
        // SAFETY: as in `seal`; the ICV is only read.
        let ok = unsafe {
            sys::EVP_AEAD_CTX_open_gather(
                self.ctx.as_ptr(),
                place,
                nonce.as_ptr(),
                nonce.len(),
                place,
                text.len(),
                icv.as_ptr(),
                icv.len(),
                aad.as_ptr(),
                aad.len(),
            )
        };
        ok == 1
    }
}

impl Drop for Aead {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_AEAD_CTX_new`, freed only here.
        unsafe { sys::EVP_AEAD_CTX_free(self.ctx.as_ptr()) }
    }
}

/// An AES key schedule, for one direction of the block cipher.
struct AesKey(Box<sys::AES_KEY>);

impl AesKey {
    fn new(key: &[u8], expand: ExpandKey) -> Option<AesKey> {
        let mut schedule = AesKey(Box::new(sys::AES_KEY { rd_key: [0; 60], rounds: 0 }));
        let bits = c_uint::try_from(key.len() * 8).ok()?;
        // SAFETY: `key` is readable for `bits`, and the schedule has room for the longest key;
        // AWS-LC refuses, with a value other than 0, bits that are not 128, 192 or 256.
        let refused = unsafe { expand(key.as_ptr(), bits, &mut *schedule.0) };
        (refused == 0).then_some(schedule)
    }
}

type ExpandKey = unsafe extern "C" fn(*const u8, c_uint, *mut sys::AES_KEY) -> c_int;

impl Drop for AesKey {
    fn drop(&mut self) {
        let place: *mut sys::AES_KEY = &mut *self.0;
        // SAFETY: the box's own memory, plain numbers for which all zeros is a value.
        unsafe { sys::OPENSSL_cleanse(place.cast::<c_void>(), size_of::<sys::AES_KEY>()) }
    }
}

/// AES-CBC in one direction, without padding.
pub struct Cbc {
    key: AesKey,
    encrypt: bool,
}

impl Cbc {
    /// Expands `key` to encrypt; `None` unless it has 16, 24 or 32 bytes.
    pub fn encryptor(key: &[u8]) -> Option<Cbc> {
        AesKey::new(key, sys::AES_set_encrypt_key).map(|key| Cbc { key, encrypt: true })
    }

    /// Expands `key` to decrypt; `None` unless it has 16, 24 or 32 bytes.
    pub fn decryptor(key: &[u8]) -> Option<Cbc> {
        AesKey::new(key, sys::AES_set_decrypt_key).map(|key| Cbc { key, encrypt: false })
    }

    /// Works on `text` in place; `false`, and no change, unless it is whole blocks.
    #[inline]
    pub fn apply(&self, mut iv: [u8; BLOCK], text: &mut [u8]) -> bool {
        if !text.len().is_multiple_of(BLOCK) {
            return false;
        }
        if text.is_empty() {
            return true;
        }
        let place = text.as_mut_ptr();
        // SAFETY: the schedule was expanded for this direction, `text` is writable for its length,
        // which is whole blocks (AWS-LC would pad in its own way otherwise), in and out are the
        // same place, as it allows, and the IV is a copy of 16 bytes.
        unsafe {
            sys::AES_cbc_encrypt(
                place,
                place,
                text.len(),
                &*self.key.0,
                iv.as_mut_ptr(),
                c_int::from(self.encrypt),
            );
        }
        true
    }
}

/// AES in counter mode; encrypting and decrypting are the same.
pub struct Ctr {
    key: AesKey,
}

impl Ctr {
    /// Expands `key`; `None` unless it has 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Ctr> {
        AesKey::new(key, sys::AES_set_encrypt_key).map(|key| Ctr { key })
    }

    /// Works on `text` in place, with `counter` as the first counter block.
    #[inline]
    pub fn apply(&self, mut counter: [u8; BLOCK], text: &mut [u8]) {
        let mut key_stream = [0; BLOCK];
        let mut used: c_uint = 0;
        let place = text.as_mut_ptr();
        // SAFETY: an encryption schedule, `text` writable for its length and the same place in and
        // out, as AWS-LC allows; counter and key stream are 16 bytes each, and `used` starts at 0
        // as the interface asks for at the begin of a message.
        unsafe {
            sys::AES_ctr128_encrypt(
                place,
                place,
                text.len(),
                &*self.key.0,
                counter.as_mut_ptr(),
                key_stream.as_mut_ptr(),
                &mut used,
            );
        }
    }
}

/// HMAC with its key absorbed already.
pub struct Hmac {
    ctx: NonNull<sys::HMAC_CTX>,
}

// SAFETY: the context is plain memory that this value owns alone; AWS-LC ties nothing to a thread.
unsafe impl Send for Hmac {}

impl Hmac {
    /// Absorbs `key`; `None` if `integrity` is no HMAC, or AWS-LC has no memory.
    pub fn new(integrity: Integrity, key: &[u8]) -> Option<Hmac> {
        let digest = match integrity {
            // SAFETY: these take nothing and return static tables.
            Integrity::HmacSha1 => unsafe { sys::EVP_sha1() },
            // SAFETY: as above.
            Integrity::HmacSha256 => unsafe { sys::EVP_sha256() },
            // SAFETY: as above.
            Integrity::HmacSha384 => unsafe { sys::EVP_sha384() },
            // SAFETY: as above.
            Integrity::HmacSha512 => unsafe { sys::EVP_sha512() },
            _ => return None,
        };
        // SAFETY: takes nothing; null if there is no memory.
        let hmac = Hmac { ctx: NonNull::new(unsafe { sys::HMAC_CTX_new() })? };
        // SAFETY: a fresh context, a key readable for its length, a static digest, no engine.
        let ok = unsafe {
            sys::HMAC_Init_ex(hmac.ctx.as_ptr(), key.as_ptr().cast(), key.len(), digest, ptr::null_mut())
        };
        (ok == 1).then_some(hmac)
    }

    /// The whole digest of `head` and `tail` as one message, of which callers take the begin
    /// (RFC 4868 2.1.2); `None` only if AWS-LC fails.
    #[inline]
    pub fn digest(&mut self, head: &[u8], tail: &[u8]) -> Option<[u8; DIGEST_MAX]> {
        let ctx = self.ctx.as_ptr();
        let mut digest = [0; DIGEST_MAX];
        // SAFETY: a keyed context; no key and no digest mean the same key again (HMAC_Init_ex in
        // openssl/hmac.h), so nothing is read through the null pointers. Both parts are readable
        // for their lengths, the output has room for the longest digest, and its length may be null.
        let ok = unsafe {
            sys::HMAC_Init_ex(ctx, ptr::null(), 0, ptr::null(), ptr::null_mut()) == 1
                && sys::HMAC_Update(ctx, head.as_ptr(), head.len()) == 1
                && (tail.is_empty() || sys::HMAC_Update(ctx, tail.as_ptr(), tail.len()) == 1)
                && sys::HMAC_Final(ctx, digest.as_mut_ptr(), ptr::null_mut()) == 1
        };
        ok.then_some(digest)
    }
}

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: made by `HMAC_CTX_new`, freed only here.
        unsafe { sys::HMAC_CTX_free(self.ctx.as_ptr()) }
    }
}

/// Whether `a` and `b` are equal, in a time that depends on their length alone.
#[inline]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    // SAFETY: both are readable for the length compared.
    a.len() == b.len() && unsafe { sys::CRYPTO_memcmp(a.as_ptr().cast(), b.as_ptr().cast(), a.len()) } == 0
}
