//! AWS-LC's general cipher context, for what has no interface of its own.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use aws_lc_sys as sys;

use forebay_crypto::Direction;

/// A cipher that is set up for one direction.
pub struct Context {
    ctx: NonNull<sys::EVP_CIPHER_CTX>,
    key_len: usize,
    encrypt: c_int,
}

// SAFETY: the context is plain memory that this value owns alone; AWS-LC ties nothing to a thread.
unsafe impl Send for Context {}

impl Context {
    /// A context for `cipher` without key; `None` if there is no memory.
    ///
    /// # Safety
    /// `cipher` must be one of AWS-LC's static tables.
    pub unsafe fn new(cipher: *const sys::EVP_CIPHER, direction: Direction) -> Option<Context> {
        // SAFETY: a static table; both calls have no other preconditions.
        let (ctx, key_len) = unsafe { (sys::EVP_CIPHER_CTX_new(), sys::EVP_CIPHER_key_length(cipher)) };
        let encrypt = c_int::from(direction == Direction::Seal);
        let context = Context { ctx: NonNull::new(ctx)?, key_len: key_len as usize, encrypt };
        // SAFETY: a fresh context and a static table, no engine; null says that key and IV come later.
        let ok = unsafe {
            sys::EVP_CipherInit_ex(ctx, cipher, ptr::null_mut(), ptr::null(), ptr::null(), encrypt)
        };
        (ok == 1).then_some(context)
    }

    /// Expands `key`; `false` if it is not as long as the cipher's.
    pub fn set_key(&mut self, key: &[u8]) -> bool {
        // SAFETY: the key is as long as the cipher's; there is no IV.
        key.len() == self.key_len && unsafe { self.begin(key.as_ptr(), ptr::null()) }
    }

    /// Begins a message with `iv`, whose length must be the cipher's own or the one that was set before.
    pub fn set_iv(&mut self, iv: &[u8]) -> bool {
        // SAFETY: a context with its cipher.
        let expected = unsafe { sys::EVP_CIPHER_CTX_iv_length(self.ctx.as_ptr()) };
        // SAFETY: the IV is as long as the context reads; there is no key.
        iv.len() == expected as usize && unsafe { self.begin(ptr::null(), iv.as_ptr()) }
    }

    /// Sets key or IV, or both; null leaves one as it is.
    ///
    /// # Safety
    /// `key` must be null or valid for reads of the cipher's key length, `iv` null or valid for reads of the
    /// context's IV length.
    unsafe fn begin(&mut self, key: *const u8, iv: *const u8) -> bool {
        // SAFETY: a context with its cipher, which stays; key and IV are the caller's promise.
        let ok = unsafe {
            sys::EVP_CipherInit_ex(self.ctx.as_ptr(), ptr::null(), ptr::null_mut(), key, iv, self.encrypt)
        };
        ok == 1
    }

    /// Tells an AEAD the length of its IVs and of its ICVs, in bytes; `false` if it has no such lengths.
    pub fn set_lens(&mut self, iv: usize, icv: usize) -> bool {
        let (Ok(iv), Ok(icv)) = (c_int::try_from(iv), c_int::try_from(icv)) else { return false };
        // SAFETY: a context with its cipher; without a place both commands take the length alone.
        unsafe {
            let ctx = self.ctx.as_ptr();
            sys::EVP_CIPHER_CTX_ctrl(ctx, sys::EVP_CTRL_AEAD_SET_IVLEN, iv, ptr::null_mut()) == 1
                && sys::EVP_CIPHER_CTX_ctrl(ctx, sys::EVP_CTRL_AEAD_SET_TAG, icv, ptr::null_mut()) == 1
        }
    }

    /// Tells an AEAD the ICV that is expected of the message; `false` if it takes none of that length.
    pub fn expect_tag(&mut self, tag: &[u8]) -> bool {
        let Ok(len) = c_int::try_from(tag.len()) else { return false };
        let place = tag.as_ptr().cast_mut().cast();
        // SAFETY: a context with its cipher; the command reads `len` bytes of the tag and writes none.
        unsafe { sys::EVP_CIPHER_CTX_ctrl(self.ctx.as_ptr(), sys::EVP_CTRL_AEAD_SET_TAG, len, place) == 1 }
    }

    /// Gets the ICV of the message that has ended; `false` if there is none of that length.
    pub fn get_tag(&mut self, tag: &mut [u8]) -> bool {
        let Ok(len) = c_int::try_from(tag.len()) else { return false };
        let place = tag.as_mut_ptr().cast();
        // SAFETY: a context with its cipher; the command writes `len` bytes of the tag at most.
        unsafe { sys::EVP_CIPHER_CTX_ctrl(self.ctx.as_ptr(), sys::EVP_CTRL_AEAD_GET_TAG, len, place) == 1 }
    }

    /// The context itself.
    pub fn as_ptr(&self) -> *mut sys::EVP_CIPHER_CTX {
        self.ctx.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_CIPHER_CTX_new`, freed only here.
        unsafe { sys::EVP_CIPHER_CTX_free(self.ctx.as_ptr()) }
    }
}
