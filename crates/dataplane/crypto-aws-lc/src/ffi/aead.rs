//! Ciphers that authenticate.

use std::ptr::{self, NonNull};

use aws_lc_sys as sys;

use forebay_crypto::{Cipher, Direction};

use super::BLOCK;
use super::context::Context;

/// An authenticated cipher with its key and its length of ICV.
pub struct Aead {
    ctx: NonNull<sys::EVP_AEAD_CTX>,
    icv_len: usize,
}

// SAFETY: the context is plain memory that this value owns alone; AWS-LC ties nothing to a thread.
unsafe impl Send for Aead {}

impl Aead {
    /// Length of the IV field in bytes (RFC 4106 3.1, RFC 7634 2).
    pub const IV: usize = 8;

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
        NonNull::new(ctx).map(|ctx| Aead { ctx, icv_len })
    }

    /// Length of the ICV in bytes.
    #[inline]
    pub fn icv_len(&self) -> usize {
        self.icv_len
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

/// AES-CCM with its key and its length of ICV, in one direction.
pub struct Ccm {
    context: Context,
    direction: Direction,
}

impl Ccm {
    /// Length of the nonce in bytes: 3 of salt and 8 of IV (RFC 4309 4), which leaves 4 for the counter.
    pub const NONCE: usize = 11;

    /// Expands `key`; `None` unless it has 16, 24 or 32 bytes, or if AWS-LC refuses `icv_len`.
    pub fn new(key: &[u8], icv_len: usize, direction: Direction) -> Option<Ccm> {
        let cipher = match key.len() {
            // SAFETY: these take nothing and return static tables.
            16 => unsafe { sys::EVP_aes_128_ccm() },
            // SAFETY: as above.
            24 => unsafe { sys::EVP_aes_192_ccm() },
            // SAFETY: as above.
            32 => unsafe { sys::EVP_aes_256_ccm() },
            _ => return None,
        };
        // SAFETY: one of the static tables above.
        let mut context = unsafe { Context::new(cipher, direction) }?;
        let is_set = context.set_lens(Ccm::NONCE, icv_len) && context.set_key(key);
        is_set.then_some(Ccm { context, direction })
    }

    /// Encrypts `text` in place and fills `icv`, whose length is the one given to [`Ccm::new`].
    pub fn seal(&mut self, nonce: &[u8; Ccm::NONCE], aad: &[u8], text: &mut [u8], icv: &mut [u8]) -> bool {
        self.direction == Direction::Seal
            && self.context.set_iv(nonce)
            && self.work(aad, text)
            && self.context.get_tag(icv)
    }

    /// Decrypts `text` in place and verifies `icv`; if it does not match, `false` and zeros.
    pub fn open(&mut self, nonce: &[u8; Ccm::NONCE], aad: &[u8], text: &mut [u8], icv: &[u8]) -> bool {
        self.direction == Direction::Open
            && self.context.set_iv(nonce)
            && self.context.expect_tag(icv)
            && self.work(aad, text)
    }

    /// The length of the text goes first, then the AAD in one piece, even an empty one: it begins the
    /// message anew, whatever became of the one before.
    fn work(&mut self, aad: &[u8], text: &mut [u8]) -> bool {
        let (place, len) = (text.as_mut_ptr(), text.len());
        let ctx = self.context.as_ptr();
        // SAFETY: a keyed context with its nonce. Without an output AWS-LC takes the length, then the
        // AAD, readable for its length and never null; then it works on the text, which is writable for
        // its length and the same place in and out, as it allows.
        unsafe {
            sys::EVP_Cipher(ctx, ptr::null_mut(), ptr::null(), len) >= 0
                && sys::EVP_Cipher(ctx, ptr::null_mut(), aad.as_ptr(), aad.len()) >= 0
                && sys::EVP_Cipher(ctx, place, place, len) >= 0
        }
    }
}

/// AES-GMAC: AES-GCM without text, whose AAD may come in pieces.
pub struct Gmac {
    context: Context,
}

impl Gmac {
    /// Expands `key`; `None` unless it has 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Gmac> {
        let cipher = match key.len() {
            // SAFETY: these take nothing and return static tables.
            16 => unsafe { sys::EVP_aes_128_gcm() },
            // SAFETY: as above.
            24 => unsafe { sys::EVP_aes_192_gcm() },
            // SAFETY: as above.
            32 => unsafe { sys::EVP_aes_256_gcm() },
            _ => return None,
        };
        // Opening, too: the tag is computed and compared by the caller.
        // SAFETY: one of the static tables above.
        let mut context = unsafe { Context::new(cipher, Direction::Seal) }?;
        context.set_key(key).then_some(Gmac { context })
    }

    /// The tag of `parts` as one message; `None` only if AWS-LC fails.
    pub fn tag(&mut self, nonce: &[u8; 12], parts: [&[u8]; 3]) -> Option<[u8; BLOCK]> {
        if !self.context.set_iv(nonce) {
            return None;
        }
        let ctx = self.context.as_ptr();
        // SAFETY: a keyed context with its nonce; without an output AWS-LC takes AAD, readable for its
        // length, in any number of pieces.
        let taken = parts.iter().all(|part| unsafe {
            part.is_empty() || sys::EVP_Cipher(ctx, ptr::null_mut(), part.as_ptr(), part.len()) >= 0
        });
        // SAFETY: as above; without an input it ends the message.
        let ended = taken && unsafe { sys::EVP_Cipher(ctx, ptr::null_mut(), ptr::null(), 0) } >= 0;
        let mut tag = [0; BLOCK];
        (ended && self.context.get_tag(&mut tag)).then_some(tag)
    }
}
