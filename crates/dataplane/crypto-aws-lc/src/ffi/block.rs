//! Ciphers that leave integrity to another algorithm.

use std::ffi::{c_int, c_uint, c_void};

use aws_lc_sys as sys;

use forebay_crypto::Direction;

use super::BLOCK;
use super::context::Context;

/// An AES key schedule, for one direction of the block cipher.
pub(super) struct AesKey(Box<sys::AES_KEY>);

impl AesKey {
    /// Expands `key` to encrypt; `None` unless it has 16, 24 or 32 bytes.
    pub(super) fn encryptor(key: &[u8]) -> Option<AesKey> {
        AesKey::new(key, sys::AES_set_encrypt_key)
    }

    /// Encrypts one block in place.
    pub(super) fn encrypt(&self, block: &mut [u8; BLOCK]) {
        let place = block.as_mut_ptr();
        // SAFETY: an encryption schedule, one block, the same place in and out, as AWS-LC allows.
        unsafe { sys::AES_encrypt(place, place, &*self.0) }
    }

    /// Encrypts the whole blocks of `text` as a chain into `out`, which has room for them; `iv` is the
    /// block before the first, and then the last.
    pub(super) fn chain(&self, iv: &mut [u8; BLOCK], text: &[u8], out: &mut [u8]) {
        let len = text.len().min(out.len()) / BLOCK * BLOCK;
        if len > 0 {
            // SAFETY: an encryption schedule; `text` is readable and `out` writable for `len`, which is
            // whole blocks, and as slices they do not overlap; the IV has 16 bytes.
            unsafe {
                sys::AES_cbc_encrypt(text.as_ptr(), out.as_mut_ptr(), len, &*self.0, iv.as_mut_ptr(), 1);
            }
        }
    }

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
        AesKey::encryptor(key).map(|key| Cbc { key, encrypt: true })
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
        AesKey::encryptor(key).map(|key| Ctr { key })
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

/// Triple DES in CBC mode in one direction, without padding.
pub struct TripleDes {
    context: Context,
}

impl TripleDes {
    /// Length of a block in bytes.
    pub const BLOCK: usize = 8;

    /// Expands `key`; `None` unless it has 24 bytes.
    pub fn new(key: &[u8], direction: Direction) -> Option<TripleDes> {
        // SAFETY: takes nothing and returns a static table, which is what `new` asks for.
        let mut context = unsafe { Context::new(sys::EVP_des_ede3_cbc(), direction) }?;
        context.set_key(key).then_some(TripleDes { context })
    }

    /// Works on `text` in place; `false`, and no change, unless it is whole blocks.
    pub fn apply(&mut self, iv: &[u8; TripleDes::BLOCK], text: &mut [u8]) -> bool {
        if !text.len().is_multiple_of(TripleDes::BLOCK) || !self.context.set_iv(iv) {
            return false;
        }
        let place = text.as_mut_ptr();
        // SAFETY: a keyed context with its IV; `text` is writable for its length, which is whole blocks,
        // and the same place in and out, as AWS-LC allows.
        text.is_empty() || unsafe { sys::EVP_Cipher(self.context.as_ptr(), place, place, text.len()) } == 1
    }
}
