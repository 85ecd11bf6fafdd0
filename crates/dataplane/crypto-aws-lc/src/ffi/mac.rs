//! Integrity algorithms of their own.

use std::ptr::{self, NonNull};

use aws_lc_sys as sys;

use forebay_crypto::Integrity;

use super::block::AesKey;
use super::{BLOCK, DIGEST_MAX, SeqHi};

/// Bytes that a CBC-MAC gives AES at a time: what comes out but the last block goes to scratch.
const PIECE: usize = 16 * BLOCK;

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
            Integrity::HmacMd5 => unsafe { sys::EVP_md5() },
            // SAFETY: as above.
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

    /// The whole digest of `message` with `high` behind it, of which callers take the begin
    /// (RFC 4868 2.1.2); `None` only if AWS-LC fails.
    #[inline]
    pub fn digest(&mut self, message: &[u8], high: SeqHi) -> Option<[u8; DIGEST_MAX]> {
        let ctx = self.ctx.as_ptr();
        let tail = high.as_ref().map_or(&[][..], |high| high);
        let mut digest = [0; DIGEST_MAX];
        // SAFETY: a keyed context; no key and no digest mean the same key again (HMAC_Init_ex in
        // openssl/hmac.h), so nothing is read through the null pointers. Both parts are readable
        // for their lengths, the output has room for the longest digest, and its length may be null.
        let ok = unsafe {
            sys::HMAC_Init_ex(ctx, ptr::null(), 0, ptr::null(), ptr::null_mut()) == 1
                && sys::HMAC_Update(ctx, message.as_ptr(), message.len()) == 1
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

/// The last block of an AES-CBC chain over the message, with another key mixed into the last block of
/// input: AES-XCBC-MAC and AES-CMAC, which differ in how they make the keys.
pub struct CbcMac {
    key: AesKey,
    /// Mixed into a last block that is whole, and into one that was filled up.
    whole: [u8; BLOCK],
    filled: [u8; BLOCK],
}

impl CbcMac {
    /// AES-XCBC-MAC (RFC 3566 4): three keys, each a constant enciphered by the one that is given.
    pub fn xcbc(key: &[u8]) -> Option<CbcMac> {
        let key = AesKey::encryptor(key)?;
        let [mut first, whole, filled] = [1, 2, 3].map(|byte| {
            let mut block = [byte; BLOCK];
            key.encrypt(&mut block);
            block
        });
        let chain = AesKey::encryptor(&first);
        wipe(&mut first);
        Some(CbcMac { key: chain?, whole, filled })
    }

    /// AES-CMAC (RFC 4493 2.3): zeros enciphered, doubled once and twice.
    pub fn cmac(key: &[u8]) -> Option<CbcMac> {
        let key = AesKey::encryptor(key)?;
        let mut zeros = [0; BLOCK];
        key.encrypt(&mut zeros);
        let whole = double(zeros);
        Some(CbcMac { key, whole, filled: double(whole) })
    }

    /// The MAC of `message`, which is not empty, with `high` behind it.
    pub fn digest(&self, message: &[u8], high: SeqHi) -> Option<[u8; DIGEST_MAX]> {
        let high = high.as_ref().map_or(&[][..], |high| high);
        // All but the last block, which may be whole, and which the high half may have a part in.
        let total = message.len().checked_add(high.len())?;
        let before_last = total.checked_sub(1)? / BLOCK * BLOCK;
        let (chained, rest) = message.split_at(before_last.min(message.len() / BLOCK * BLOCK));
        let mut state = [0; BLOCK];
        let mut scratch = [0; PIECE];
        chained.chunks(PIECE).for_each(|piece| self.key.chain(&mut state, piece, &mut scratch));

        let mut last = [0; 2 * BLOCK];
        let end = rest.len() + high.len();
        last[..rest.len()].copy_from_slice(rest);
        last.get_mut(rest.len()..end)?.copy_from_slice(high);
        let mut last: &mut [u8] = &mut last;
        if chained.len() < before_last {
            let (block, behind) = last.split_at_mut(BLOCK);
            self.key.chain(&mut state, block, &mut scratch);
            last = behind;
        }
        let len = total - before_last;
        let mixed = if len == BLOCK { &self.whole } else { &self.filled };
        if len < BLOCK {
            last[len] = 0x80;
        }
        last.iter_mut().zip(mixed).for_each(|(byte, key)| *byte ^= key);
        self.key.chain(&mut state, &last[..BLOCK], &mut scratch);
        let mut digest = [0; DIGEST_MAX];
        digest[..BLOCK].copy_from_slice(&state);
        Some(digest)
    }
}

impl Drop for CbcMac {
    fn drop(&mut self) {
        wipe(&mut self.whole);
        wipe(&mut self.filled);
    }
}

/// Twice `block` in the field of 2^128 elements, without looking at its bits.
fn double(block: [u8; BLOCK]) -> [u8; BLOCK] {
    let number = u128::from_be_bytes(block);
    ((number << 1) ^ ((number >> 127) * 0x87)).to_be_bytes()
}

fn wipe(block: &mut [u8; BLOCK]) {
    // SAFETY: the block's own memory, plain numbers for which all zeros is a value.
    unsafe { sys::OPENSSL_cleanse(block.as_mut_ptr().cast(), BLOCK) }
}
