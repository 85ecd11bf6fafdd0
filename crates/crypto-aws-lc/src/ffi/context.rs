//! AWS-LC's general cipher context, for what has no interface of its own.

use std::ffi::{c_int, c_void};
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
    /// A context for `cipher`, one of AWS-LC's static tables, without key; `None` if there is no memory.
    pub fn new(cipher: *const sys::EVP_CIPHER, direction: Direction) -> Option<Context> {
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
        key.len() == self.key_len && self.begin(key.as_ptr(), ptr::null())
    }

    /// Begins a message with `iv`, which is as long as the cipher's or as it was told.
    pub fn set_iv(&mut self, iv: &[u8]) -> bool {
        // SAFETY: a context with its cipher.
        let expected = unsafe { sys::EVP_CIPHER_CTX_iv_length(self.ctx.as_ptr()) };
        iv.len() == expected as usize && self.begin(ptr::null(), iv.as_ptr())
    }

    fn begin(&mut self, key: *const u8, iv: *const u8) -> bool {
        // SAFETY: a context with its cipher, which stays; key and IV are null, for leaving them as they
        // are, or readable for the lengths that the callers have checked.
        let ok = unsafe {
            sys::EVP_CipherInit_ex(self.ctx.as_ptr(), ptr::null(), ptr::null_mut(), key, iv, self.encrypt)
        };
        ok == 1
    }

    /// Sets or gets what `command` says; `place` is as long as `len` states, or null.
    pub fn control(&mut self, command: c_int, len: c_int, place: *mut c_void) -> bool {
        // SAFETY: a context with its cipher; the commands in use read or write `len` bytes at most.
        unsafe { sys::EVP_CIPHER_CTX_ctrl(self.ctx.as_ptr(), command, len, place) == 1 }
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
