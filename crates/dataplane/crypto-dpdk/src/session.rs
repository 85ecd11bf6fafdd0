//! Sessions: an SA's keys with the device, and what of them each job needs.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys as sys;
use forebay_crypto::{Cipher, Direction, Integrity, SaKeys, Suite};
use zeroize::Zeroize;

use crate::device::Device;

/// AAD of ESP: SPI and sequence number, without and with its high half (RFC 4106 5).
const AAD_OF_ESP: [usize; 2] = [8, 12];

/// What a session of DPDK is made for besides suite and keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// An AEAD with so many bytes of AAD.
    Aad(usize),
    /// Separate algorithms, or one.
    Separate,
    /// Of separate algorithms integrity alone, for a job without text: drivers refuse to encipher nothing.
    AuthOnly,
}

/// One direction of an SA.
pub struct Session {
    device: Arc<Device>,
    pub suite: Suite,
    pub direction: Direction,
    pub salt: [u8; 4],
    keys: SaKeys,
    /// DPDK's sessions.
    open: HashMap<Form, NonNull<c_void>>,
}

// SAFETY: sessions belong to the device, and are used by one queue pair's thread.
unsafe impl Send for Session {}

impl Session {
    /// `None` if the device does not have the suite, or no room.
    pub fn open(device: &Arc<Device>, keys: &SaKeys, direction: Direction) -> Option<Session> {
        let mut salt = [0; 4];
        salt.iter_mut().zip(keys.salt()).for_each(|(to, from)| *to = *from);
        let (device, keys, suite) = (device.clone(), keys.clone(), keys.suite());
        let mut session = Session { device, suite, direction, salt, keys, open: HashMap::new() };
        let usual = if suite.is_aead() { &AAD_OF_ESP.map(Form::Aad)[..] } else { &[Form::Separate] };
        usual.iter().try_for_each(|&form| session.of(form).map(drop))?;
        Some(session)
    }

    /// DPDK's session for jobs of this form.
    pub fn of(&mut self, form: Form) -> Option<NonNull<c_void>> {
        if let Some(session) = self.open.get(&form) {
            return Some(*session);
        }
        let algorithms = Algorithms::of(self.suite)?;
        let session = self.device.open(&algorithms.keys(&self.keys, self.direction, form))?;
        self.open.insert(form, session);
        Some(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.salt.zeroize();
        for session in self.open.values() {
            // SAFETY: opened by `of`, and the table is not used again. No job has it: a processor keeps sessions
            // until the device has given back all that it was given before they were closed.
            unsafe { self.device.close(*session) };
        }
    }
}

/// DPDK's numbers of a suite's algorithms; -1: none.
pub struct Algorithms {
    suite: Suite,
    aead: i32,
    cipher: i32,
    auth: i32,
}

impl Algorithms {
    /// Those of a suite; `None` if DPDK has no algorithm for it, or not in IPsec's form.
    pub fn of(suite: Suite) -> Option<Algorithms> {
        let mut all = Algorithms { suite, aead: -1, cipher: -1, auth: -1 };
        // SAFETY: indices into tables of the shim, for this and the following calls.
        let [aead, cipher, auth] = [
            |which| unsafe { sys::fb_dpdk_aead(which) },
            |which| unsafe { sys::fb_dpdk_cipher(which) },
            |which| unsafe { sys::fb_dpdk_auth(which) },
        ];
        match suite.cipher() {
            Cipher::AesGcm(_) => all.aead = aead(sys::AEAD_AES_GCM),
            Cipher::ChaCha20Poly1305 => all.aead = aead(sys::AEAD_CHACHA20_POLY1305),
            Cipher::AesCbc(_) => all.cipher = cipher(sys::CIPHER_AES_CBC),
            Cipher::AesCtr(_) => all.cipher = cipher(sys::CIPHER_AES_CTR),
            Cipher::TripleDesCbc => all.cipher = cipher(sys::CIPHER_3DES_CBC),
            Cipher::Null => {}
            _ => return None,
        }
        match suite.integrity() {
            Integrity::Combined | Integrity::None => {}
            Integrity::HmacMd5 => all.auth = auth(sys::AUTH_MD5),
            Integrity::HmacSha1 => all.auth = auth(sys::AUTH_SHA1),
            Integrity::HmacSha256 => all.auth = auth(sys::AUTH_SHA256),
            Integrity::HmacSha384 => all.auth = auth(sys::AUTH_SHA384),
            Integrity::HmacSha512 => all.auth = auth(sys::AUTH_SHA512),
            Integrity::AesXcbc => all.auth = auth(sys::AUTH_XCBC),
            Integrity::AesCmac => all.auth = auth(sys::AUTH_CMAC),
            _ => return None,
        }
        Some(all)
    }

    /// Length of the IV as DPDK takes it, in bytes.
    fn iv_len(&self) -> u16 {
        match self.suite.cipher() {
            Cipher::AesCbc(_) | Cipher::AesCtr(_) => 16,
            Cipher::TripleDesCbc => 8,
            Cipher::Null => 0,
            _ => 12,
        }
    }

    fn lengths(&self) -> sys::Keys {
        sys::Keys {
            aead: self.aead,
            cipher: self.cipher,
            auth: self.auth,
            cipher_key: std::ptr::null(),
            auth_key: std::ptr::null(),
            cipher_key_len: self.suite.cipher_key_len() as u16,
            auth_key_len: self.suite.integrity_key_len() as u16,
            iv_len: self.iv_len(),
            icv_len: self.suite.icv_len() as u16,
            aad_len: 0,
            decrypt: 0,
        }
    }

    /// Whether a device does them.
    pub fn are_of(&self, device: &Device) -> bool {
        device.has(&self.lengths())
    }

    fn keys(&self, keys: &SaKeys, direction: Direction, form: Form) -> sys::Keys {
        let lengths = self.lengths();
        sys::Keys {
            cipher: if form == Form::AuthOnly { -1 } else { self.cipher },
            cipher_key: keys.cipher().as_ptr(),
            auth_key: keys.integrity().as_ptr(),
            aad_len: if let Form::Aad(len) = form { len as u16 } else { 0 },
            decrypt: u8::from(direction == Direction::Open),
            ..lengths
        }
    }
}
