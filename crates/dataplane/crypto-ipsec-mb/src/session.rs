//! Key sessions: keys expanded once per SA.

use forebay_crypto::{Cipher, Direction, Integrity, SaKeys, Suite};
use ipsec_mb_sys as sys;
use zeroize::Zeroize;

use crate::manager::{HmacState, MacKeys, Manager, RoundKeys};

/// One SA's expanded keys.
pub enum Session {
    Gcm(Gcm),
    Gmac(Gmac),
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

/// A session of AES-GMAC.
pub struct Gmac {
    pub key: Box<sys::GcmKey>,
    pub key_len: usize,
    pub salt: [u8; 4],
    pub suite: Suite,
    pub direction: Direction,
}

impl Drop for Gmac {
    fn drop(&mut self) {
        self.key.0.zeroize();
        self.salt.zeroize();
    }
}

/// A session of the job manager.
pub struct Chained {
    pub enc: RoundKeys,
    pub dec: RoundKeys,
    pub mac: MacKeys,
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
    TripleDes,
    Ccm,
    Null,
}

impl Chain {
    pub fn code(self) -> u8 {
        match self {
            Chain::Cbc => sys::CIPHER_CBC,
            Chain::Ctr => sys::CIPHER_CTR,
            Chain::ChaCha20Poly1305 => sys::CIPHER_CHACHA20_POLY1305,
            Chain::TripleDes => sys::CIPHER_3DES,
            Chain::Ccm => sys::CIPHER_CCM,
            Chain::Null => sys::CIPHER_NULL,
        }
    }

    /// Length of the IV as the library takes it, in bytes.
    pub fn iv_len(self) -> u8 {
        match self {
            Chain::Cbc | Chain::Ctr => 16,
            Chain::ChaCha20Poly1305 => 12,
            Chain::Ccm => 11,
            Chain::TripleDes => 8,
            Chain::Null => 0,
        }
    }
}

/// The hashes of the job manager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Xcbc,
    Cmac,
    None,
    /// Those of AEADs.
    Poly1305,
    Ccm,
}

impl Hash {
    pub fn code(self) -> u8 {
        match self {
            Hash::Md5 => sys::HASH_HMAC_MD5,
            Hash::Sha1 => sys::HASH_HMAC_SHA1,
            Hash::Sha256 => sys::HASH_HMAC_SHA256,
            Hash::Sha384 => sys::HASH_HMAC_SHA384,
            Hash::Sha512 => sys::HASH_HMAC_SHA512,
            Hash::Xcbc => sys::HASH_XCBC,
            Hash::Cmac => sys::HASH_CMAC,
            Hash::None => sys::HASH_NULL,
            Hash::Poly1305 => sys::HASH_CHACHA20_POLY1305,
            Hash::Ccm => sys::HASH_CCM,
        }
    }

    /// Length of what an HMAC hashes at a time, in bytes.
    pub fn block_len(self) -> usize {
        if matches!(self, Hash::Sha384 | Hash::Sha512) { 128 } else { 64 }
    }

    /// Whether it is an AEAD's.
    pub fn is_combined(self) -> bool {
        matches!(self, Hash::Poly1305 | Hash::Ccm)
    }
}

/// Whether this backend has `suite`.
pub fn has(suite: Suite) -> bool {
    matches!(suite.cipher(), Cipher::AesGcm(_) | Cipher::AesGmac(_)) || parts(suite).is_some()
}

/// The job manager's cipher and hash for `suite`; `None` where it lacks one.
fn parts(suite: Suite) -> Option<(Chain, Hash)> {
    let chain = match suite.cipher() {
        Cipher::AesCbc(_) => Chain::Cbc,
        Cipher::AesCtr(_) => Chain::Ctr,
        Cipher::ChaCha20Poly1305 => Chain::ChaCha20Poly1305,
        Cipher::TripleDesCbc => Chain::TripleDes,
        Cipher::Null => Chain::Null,
        // There is none for keys of 192 bits.
        Cipher::AesCcm(16 | 32) => Chain::Ccm,
        _ => return None,
    };
    let hash = match suite.integrity() {
        Integrity::Combined if chain == Chain::Ccm => Hash::Ccm,
        Integrity::Combined => Hash::Poly1305,
        Integrity::None => Hash::None,
        Integrity::HmacMd5 => Hash::Md5,
        Integrity::HmacSha1 => Hash::Sha1,
        Integrity::HmacSha256 => Hash::Sha256,
        Integrity::HmacSha384 => Hash::Sha384,
        Integrity::HmacSha512 => Hash::Sha512,
        Integrity::AesXcbc => Hash::Xcbc,
        Integrity::AesCmac => Hash::Cmac,
        _ => return None,
    };
    Some((chain, hash))
}

impl Session {
    /// Expands `keys`; `None` for a suite this backend does not have.
    pub fn open(manager: &Manager, keys: &SaKeys, direction: Direction) -> Option<Session> {
        let suite = keys.suite();
        let mut salt = [0; 4];
        salt[..keys.salt().len()].copy_from_slice(keys.salt());
        if let Cipher::AesGcm(_) | Cipher::AesGmac(_) = suite.cipher() {
            let open = direction == Direction::Open;
            let (key, function) = manager.expand_gcm(keys.cipher(), open);
            let (key_len, icv_len) = (keys.cipher().len(), suite.icv_len());
            return Some(match suite.cipher() {
                Cipher::AesGcm(_) => Session::Gcm(Gcm { key, function, salt, suite, icv_len, open }),
                _ => Session::Gmac(Gmac { key, key_len, salt, suite, direction }),
            });
        }
        let (cipher, hash) = parts(suite)?;
        let mut session = Box::new(Chained {
            enc: RoundKeys::new(),
            dec: RoundKeys::new(),
            mac: MacKeys { first: RoundKeys::new(), second: HmacState([0; 64]), third: HmacState([0; 64]) },
            salt,
            suite,
            key_len: keys.cipher().len() as u8,
            cipher,
            hash,
            direction,
        });
        let Chained { enc, dec, mac, .. } = &mut *session;
        match cipher {
            Chain::ChaCha20Poly1305 => enc.0[..32].copy_from_slice(keys.cipher()),
            Chain::TripleDes => manager.expand_3des(keys.cipher().first_chunk()?, enc),
            Chain::Cbc | Chain::Ctr | Chain::Ccm => manager.expand_aes(keys.cipher(), enc, dec),
            Chain::Null => {}
        }
        match hash {
            Hash::None | Hash::Poly1305 | Hash::Ccm => {}
            Hash::Xcbc => manager.xcbc_keys(keys.integrity().first_chunk()?, mac),
            Hash::Cmac => manager.cmac_keys(keys.integrity().first_chunk()?, mac),
            _ => manager.hmac_states(hash, keys.integrity(), &mut mac.second, &mut mac.third),
        }
        Some(Session::Chained(session))
    }
}
