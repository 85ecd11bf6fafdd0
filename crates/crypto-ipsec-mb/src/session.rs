//! Key sessions: keys expanded once per SA.

use forebay_crypto::{Cipher, Direction, Integrity, SaKeys, Suite};
use ipsec_mb_sys as sys;
use zeroize::Zeroize;

use crate::manager::{HmacState, Manager, RoundKeys};

/// One SA's expanded keys.
pub enum Session {
    Gcm(Gcm),
    Chained(Box<Chained>),
}

/// A session of the direct calls.
pub struct Gcm {
    pub key: Box<sys::GcmKey>,
    pub function: sys::GcmFn,
    pub salt: [u8; 4],
    pub suite: Suite,
    pub icv_len: usize,
    pub open: bool,
}

impl Gcm {
    pub fn direction(&self) -> Direction {
        if self.open { Direction::Open } else { Direction::Seal }
    }
}

impl Drop for Gcm {
    fn drop(&mut self) {
        self.key.0.zeroize();
        self.salt.zeroize();
    }
}

/// A session of the job manager.
pub struct Chained {
    pub enc: RoundKeys,
    pub dec: RoundKeys,
    pub inner: HmacState,
    pub outer: HmacState,
    pub salt: [u8; 4],
    pub suite: Suite,
    pub key_len: u8,
    pub cipher: Chain,
    pub hash: Hash,
    pub direction: Direction,
}

impl Drop for Chained {
    fn drop(&mut self) {
        self.salt.zeroize();
    }
}

/// The ciphers of the job manager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    Cbc,
    Ctr,
    ChaCha20Poly1305,
}

impl Chain {
    pub fn code(self) -> u8 {
        match self {
            Chain::Cbc => sys::CIPHER_CBC,
            Chain::Ctr => sys::CIPHER_CTR,
            Chain::ChaCha20Poly1305 => sys::CIPHER_CHACHA20_POLY1305,
        }
    }
}

/// The hashes of the job manager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Poly1305,
}

impl Hash {
    pub fn code(self) -> u8 {
        match self {
            Hash::Sha1 => sys::HASH_HMAC_SHA1,
            Hash::Sha256 => sys::HASH_HMAC_SHA256,
            Hash::Sha384 => sys::HASH_HMAC_SHA384,
            Hash::Sha512 => sys::HASH_HMAC_SHA512,
            Hash::Poly1305 => sys::HASH_CHACHA20_POLY1305,
        }
    }

    pub fn block_len(self) -> usize {
        match self {
            Hash::Sha1 | Hash::Sha256 => 64,
            Hash::Sha384 | Hash::Sha512 | Hash::Poly1305 => 128,
        }
    }
}

impl Session {
    /// Expands `keys`; `None` for a suite this backend does not have.
    pub fn open(manager: &Manager, keys: &SaKeys, direction: Direction) -> Option<Session> {
        let suite = keys.suite();
        let mut salt = [0; 4];
        if !keys.salt().is_empty() {
            salt.copy_from_slice(keys.salt());
        }
        let hash = match suite.integrity() {
            Integrity::Combined => Hash::Poly1305,
            Integrity::HmacSha1 => Hash::Sha1,
            Integrity::HmacSha256 => Hash::Sha256,
            Integrity::HmacSha384 => Hash::Sha384,
            Integrity::HmacSha512 => Hash::Sha512,
            _ => return None,
        };
        let cipher = match suite.cipher() {
            Cipher::AesGcm(_) => {
                let open = direction == Direction::Open;
                let (key, function) = manager.expand_gcm(keys.cipher(), open);
                let icv_len = suite.icv_len();
                return Some(Session::Gcm(Gcm { key, function, salt, suite, icv_len, open }));
            }
            Cipher::AesCbc(_) => Chain::Cbc,
            Cipher::AesCtr(_) => Chain::Ctr,
            Cipher::ChaCha20Poly1305 => Chain::ChaCha20Poly1305,
            _ => return None,
        };
        let mut session = Box::new(Chained {
            enc: RoundKeys([0; 240]),
            dec: RoundKeys([0; 240]),
            inner: HmacState([0; 64]),
            outer: HmacState([0; 64]),
            salt,
            suite,
            key_len: keys.cipher().len() as u8,
            cipher,
            hash,
            direction,
        });
        if cipher == Chain::ChaCha20Poly1305 {
            session.enc.0[..32].copy_from_slice(keys.cipher());
        } else {
            let Chained { enc, dec, inner, outer, .. } = &mut *session;
            manager.expand_aes(keys.cipher(), enc, dec);
            manager.hmac_states(hash, keys.integrity(), inner, outer);
        }
        Some(Session::Chained(session))
    }
}
