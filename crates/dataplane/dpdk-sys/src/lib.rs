//! DPDK (22.11 and later), where its headers were installed when this was built: its start, bindings to its crypto devices, and
//! its network devices.
//!
//! Much of DPDK's interface is macros and inline functions, so `src/shim.c` has the few functions that
//! `forebay-crypto-dpdk` needs, and `src/port.c` those of `port`, which `forebay-links-dpdk` uses. Without the headers the crate
//! holds nothing but [`AVAILABLE`] and [`pci`].

#[cfg(dpdk)]
pub mod eal;
pub mod pci;
#[cfg(dpdk)]
pub mod port;

/// Whether this build has DPDK.
pub const AVAILABLE: bool = cfg!(dpdk);

#[cfg(dpdk)]
mod bindings {
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr::null_mut;

    /// Longest AAD of a job, in bytes.
    pub const AAD_MAX: usize = 1024;

    /// A queue pair of a device with the operations and buffers that it owns.
    #[repr(C)]
    pub struct Queue {
        _opaque: [u8; 0],
    }

    /// What a session does and by which keys. Algorithms are DPDK's numbers; -1: none.
    #[repr(C)]
    #[allow(missing_docs)]
    pub struct Keys {
        pub aead: i32,
        pub cipher: i32,
        pub auth: i32,
        pub cipher_key: *const u8,
        pub auth_key: *const u8,
        pub cipher_key_len: u16,
        pub auth_key_len: u16,
        pub iv_len: u16,
        pub icv_len: u16,
        pub aad_len: u16,
        pub decrypt: u8,
    }

    /// A job: all positions are in the buffer. `len` bytes from `start` are what the device gets.
    #[repr(C)]
    #[derive(Clone, Copy)]
    #[allow(missing_docs)]
    pub struct Job {
        pub session: *mut c_void,
        pub buffer: *mut u8,
        pub start: u32,
        pub len: u32,
        pub cipher_start: u32,
        pub cipher_len: u32,
        pub auth_start: u32,
        pub auth_len: u32,
        pub icv_start: u32,
        pub iv: [u8; 16],
        /// The high half of the sequence number, if [`HAS_SEQ_HI`].
        pub seq_hi: [u8; 4],
        /// The shim's: what stood where it put the high half.
        pub behind: [u8; 4],
        pub icv_len: u8,
        /// [`AEAD`] and so on.
        pub flags: u8,
        /// The shim's: whether the device has it.
        pub is_held: u8,
    }

    impl Job {
        /// What a slot without a job has.
        pub const NONE: Job = Job {
            session: null_mut(),
            buffer: null_mut(),
            start: 0,
            len: 0,
            cipher_start: 0,
            cipher_len: 0,
            auth_start: 0,
            auth_len: 0,
            icv_start: 0,
            iv: [0; 16],
            seq_hi: [0; 4],
            behind: [0; 4],
            icv_len: 0,
            flags: 0,
            is_held: 0,
        };
    }

    /// Flag: an AEAD, whose AAD is what is authenticated.
    pub const AEAD: u8 = 1;
    /// Flag: sealed rather than opened.
    pub const SEALS: u8 = 2;
    /// Flag: the high half of the sequence number is authenticated too.
    pub const HAS_SEQ_HI: u8 = 4;
    /// Flag: the text changes.
    pub const HAS_TEXT: u8 = 8;

    /// A job that the device has given back.
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Done {
        /// The job's slot.
        pub slot: u32,
        /// [`DONE`], [`AUTH_FAILED`], [`NOT_HELD`] or anything else.
        pub status: u32,
    }

    /// Status: sealed, or opened with a matching ICV.
    pub const DONE: u32 = 0;
    /// Status: the ICV does not match.
    pub const AUTH_FAILED: u32 = 1;
    /// Status: the device did not have this job.
    pub const NOT_HELD: u32 = 3;

    // Indices into the tables of shim.c.
    /// AES-GCM.
    pub const AEAD_AES_GCM: c_int = 0;
    /// ChaCha20-Poly1305.
    pub const AEAD_CHACHA20_POLY1305: c_int = 1;
    /// AES-CBC.
    pub const CIPHER_AES_CBC: c_int = 0;
    /// AES-CTR.
    pub const CIPHER_AES_CTR: c_int = 1;
    /// Triple DES in CBC mode.
    pub const CIPHER_3DES_CBC: c_int = 2;
    /// HMAC-MD5.
    pub const AUTH_MD5: c_int = 0;
    /// HMAC-SHA-1.
    pub const AUTH_SHA1: c_int = 1;
    /// HMAC-SHA-256.
    pub const AUTH_SHA256: c_int = 2;
    /// HMAC-SHA-384.
    pub const AUTH_SHA384: c_int = 3;
    /// HMAC-SHA-512.
    pub const AUTH_SHA512: c_int = 4;
    /// AES-XCBC-MAC.
    pub const AUTH_XCBC: c_int = 5;
    /// AES-CMAC.
    pub const AUTH_CMAC: c_int = 6;

    #[allow(missing_docs)] // explained in shim.c
    unsafe extern "C" {
        pub fn fb_dpdk_version() -> *const c_char;
        pub fn fb_dpdk_start(argc: c_int, argv: *mut *mut c_char) -> c_int;
        pub fn fb_dpdk_find(name: *const c_char, arguments: *const c_char) -> c_int;
        pub fn fb_dpdk_names(out: *mut c_char, size: usize);
        pub fn fb_dpdk_drivers(out: *mut c_char, size: usize);
        pub fn fb_dpdk_queue_pairs(device: u8) -> u32;
        pub fn fb_dpdk_has(device: u8, keys: *const Keys) -> c_int;
        pub fn fb_dpdk_ready(device: u8, pairs: u16, descriptors: u32, sessions: u32) -> *mut c_void;
        pub fn fb_dpdk_session(device: u8, pool: *mut c_void, keys: *const Keys) -> *mut c_void;
        pub fn fb_dpdk_session_free(device: u8, pool: *mut c_void, session: *mut c_void);
        pub fn fb_dpdk_queue(device: u8, pair: u16, slots: u32, longest: u32, copies: c_int) -> *mut Queue;
        pub fn fb_dpdk_queue_free(queue: *mut Queue);
        pub fn fb_dpdk_enqueue(queue: *mut Queue, jobs: *mut Job, slots: *const u32, n: u32) -> u32;
        pub fn fb_dpdk_dequeue(queue: *mut Queue, jobs: *mut Job, done: *mut Done, n: u32) -> u32;
        pub fn fb_dpdk_is_software(device: u8) -> c_int;
        pub fn fb_dpdk_aead(which: c_int) -> c_int;
        pub fn fb_dpdk_cipher(which: c_int) -> c_int;
        pub fn fb_dpdk_auth(which: c_int) -> c_int;
        pub fn fb_dpdk_in_use(pool: *const c_void) -> u32;
        #[cfg(feature = "faults")]
        pub fn fb_dpdk_fault(device: u8, fault: c_int, every: u32);
        #[cfg(feature = "faults")]
        pub fn fb_dpdk_struck(device: u8) -> u64;
    }
}

#[cfg(dpdk)]
pub use bindings::*;
