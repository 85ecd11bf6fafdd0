//! Bindings to Intel's multi-buffer library (libipsec-mb), where it is installed.
//!
//! The crate compiles everywhere. With the library's header found at build time (`cfg(ipsec_mb)`,
//! see `build.rs`) it holds a few functions of `src/shim.c`; without it only [`AVAILABLE`].

/// Whether this build has the library.
pub const AVAILABLE: bool = cfg!(ipsec_mb);

#[cfg(ipsec_mb)]
mod bindings {
    #[cfg(not(miri))]
    use std::ffi::{c_char, c_int};

    /// The library's manager: one per thread, it is not thread-safe.
    #[repr(C)]
    pub struct Manager {
        _opaque: [u8; 0],
    }

    /// Room for the library's expanded GCM key with its powers of H; checked against
    /// [`fb_gcm_key_size`] by users.
    #[repr(C, align(64))]
    pub struct GcmKey(pub [u8; 1024]);

    /// Room for the library's GCM context; checked against [`fb_gcm_context_size`] by users.
    #[repr(C, align(64))]
    pub struct GcmContext(pub [u8; 128]);

    /// One whole GCM operation: key, context, out, in, length, 12-byte IV, AAD, its length, tag, its length.
    pub type GcmFn = unsafe extern "C" fn(
        *const GcmKey,
        *mut GcmContext,
        *mut u8,
        *const u8,
        u64,
        *const u8,
        *const u8,
        u64,
        *mut u8,
        u64,
    );

    /// Some bytes of a message.
    #[repr(C)]
    #[derive(Clone, Copy)]
    #[allow(missing_docs)]
    pub struct Piece {
        pub start: *const u8,
        pub len: u64,
    }

    /// One chained job; the fields are explained in `shim.c`.
    #[repr(C)]
    #[derive(Clone, Copy)]
    #[allow(missing_docs)]
    pub struct ChainedJob {
        pub enc_keys: *const u8,
        pub dec_keys: *const u8,
        pub mac_keys: [*const u8; 3],
        pub base: *mut u8,
        pub cipher_start: u32,
        pub cipher_len: u32,
        pub auth_start: u32,
        pub auth_len: u32,
        pub iv: *const u8,
        pub aad: *const u8,
        pub aad_len: u32,
        pub tag: *mut u8,
        pub tag_len: u8,
        pub key_len: u8,
        pub iv_len: u8,
        pub cipher: u8,
        pub hash: u8,
        pub decrypt: u8,
        pub ok: u8,
    }

    include!("max_burst.rs");

    // What `fb_mgr_new` takes.
    /// The best instructions of the processor.
    pub const INSTRUCTIONS_BEST: u32 = 0;
    /// SSE and AES-NI.
    pub const INSTRUCTIONS_SSE: u32 = 1;
    /// AVX; not with versions of the library from 2.0 on.
    pub const INSTRUCTIONS_AVX: u32 = 2;
    /// AVX2.
    pub const INSTRUCTIONS_AVX2: u32 = 3;
    /// AVX-512.
    pub const INSTRUCTIONS_AVX512: u32 = 4;

    // Indices into the tables of shim.c.
    /// AES-CBC.
    pub const CIPHER_CBC: u8 = 0;
    /// AES-CTR.
    pub const CIPHER_CTR: u8 = 1;
    /// ChaCha20-Poly1305.
    pub const CIPHER_CHACHA20_POLY1305: u8 = 2;
    /// Triple DES in CBC mode.
    pub const CIPHER_3DES: u8 = 3;
    /// AES-CCM.
    pub const CIPHER_CCM: u8 = 4;
    /// No cipher.
    pub const CIPHER_NULL: u8 = 5;
    /// HMAC-SHA-1.
    pub const HASH_HMAC_SHA1: u8 = 0;
    /// HMAC-SHA-256.
    pub const HASH_HMAC_SHA256: u8 = 1;
    /// HMAC-SHA-384.
    pub const HASH_HMAC_SHA384: u8 = 2;
    /// HMAC-SHA-512.
    pub const HASH_HMAC_SHA512: u8 = 3;
    /// The tag of ChaCha20-Poly1305.
    pub const HASH_CHACHA20_POLY1305: u8 = 4;
    /// HMAC-MD5.
    pub const HASH_HMAC_MD5: u8 = 5;
    /// AES-XCBC-MAC.
    pub const HASH_XCBC: u8 = 6;
    /// AES-CMAC.
    pub const HASH_CMAC: u8 = 7;
    /// No hash.
    pub const HASH_NULL: u8 = 8;
    /// The tag of AES-CCM.
    pub const HASH_CCM: u8 = 9;
    /// Length of one of the three schedules of a Triple DES key, in bytes.
    pub const DES_SCHEDULE: usize = 128;

    #[cfg(not(miri))]
    #[allow(missing_docs)] // explained in shim.c
    unsafe extern "C" {
        pub fn fb_mgr_new(instructions: u32) -> *mut Manager;
        pub fn fb_mgr_free(manager: *mut Manager);
        pub fn fb_version() -> *const c_char;
        pub fn fb_arch(manager: *const Manager) -> u32;
        pub fn fb_features(manager: *const Manager) -> u64;
        pub fn fb_gcm_key_size() -> usize;
        pub fn fb_gcm_context_size() -> usize;
        pub fn fb_gcm_expand(manager: *const Manager, key: *const u8, key_len: u32, out: *mut GcmKey);
        pub fn fb_gcm(manager: *const Manager, key_len: u32, decrypt: c_int) -> GcmFn;
        pub fn fb_aes_expand(
            manager: *const Manager,
            key: *const u8,
            key_len: u32,
            enc: *mut u8,
            dec: *mut u8,
        );
        pub fn fb_hmac_states(
            manager: *const Manager,
            hash: c_int,
            ipad: *const u8,
            opad: *const u8,
            istate: *mut u8,
            ostate: *mut u8,
        );
        pub fn fb_xcbc_keys(manager: *const Manager, key: *const u8, k1: *mut u8, k2: *mut u8, k3: *mut u8);
        pub fn fb_cmac_keys(manager: *const Manager, expanded: *const u8, k1: *mut u8, k2: *mut u8);
        pub fn fb_3des_expand(manager: *const Manager, key: *const u8, out: *mut u8);
        pub fn fb_gmac(
            manager: *const Manager,
            key: *const GcmKey,
            key_len: u32,
            context: *mut GcmContext,
            iv: *const u8,
            pieces: *const Piece,
            n: u32,
            tag: *mut u8,
            tag_len: u64,
        );
        pub fn fb_run(manager: *mut Manager, jobs: *mut ChainedJob, n: u32);
        pub fn fb_bare_gcm(
            manager: *const Manager,
            key: *const GcmKey,
            key_len: u32,
            decrypt: c_int,
            buffers: *const *mut u8,
            n: u32,
            len: u64,
            tag_len: u32,
            rounds: u64,
        );
    }
}

#[cfg(all(ipsec_mb, miri))]
mod stand_in;

#[cfg(ipsec_mb)]
pub use bindings::*;
#[cfg(all(ipsec_mb, miri))]
pub use stand_in::*;
