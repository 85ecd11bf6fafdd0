//! Crypto suites by the words of swanctl's proposals, and their sizes.

use std::fmt;
use std::str::FromStr;

/// A cipher with its key size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cipher {
    /// AES in Galois/Counter Mode, key of the given bytes (RFC 4106).
    AesGcm(u8),
    /// AES in Cipher Block Chaining mode, key of the given bytes (RFC 3602).
    AesCbc(u8),
    /// AES in Counter mode, key of the given bytes (RFC 3686).
    AesCtr(u8),
    /// ChaCha20 with Poly1305 (RFC 7634).
    ChaCha20Poly1305,
}

/// A separate integrity algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Integrity {
    /// The cipher authenticates (combined mode, AEAD).
    Combined,
    /// HMAC-SHA-1-96 (RFC 2404).
    HmacSha1,
    /// HMAC-SHA-256-128 (RFC 4868).
    HmacSha256,
    /// HMAC-SHA-384-192 (RFC 4868).
    HmacSha384,
    /// HMAC-SHA-512-256 (RFC 4868).
    HmacSha512,
}

/// A cipher, an integrity algorithm and an ICV length that belong together: what an SA negotiates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Suite {
    cipher: Cipher,
    integrity: Integrity,
    icv_len: u8,
}

/// A proposal that names no suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError {
    /// The word that was not understood.
    pub found: String,
    /// The nearest known proposal.
    pub nearest: String,
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown proposal `{}`", self.found)
    }
}

impl std::error::Error for SuiteError {}

const KEY_BITS: [u16; 3] = [128, 192, 256];
const ICV_LENGTHS: [u8; 3] = [8, 12, 16];
const INTEGRITIES: [(Integrity, &str, u8); 4] = [
    (Integrity::HmacSha1, "sha1", 12),
    (Integrity::HmacSha256, "sha256", 16),
    (Integrity::HmacSha384, "sha384", 24),
    (Integrity::HmacSha512, "sha512", 32),
];

impl Suite {
    /// Every suite, in a fixed order.
    pub fn all() -> impl Iterator<Item = Suite> {
        let gcm = KEY_BITS.into_iter().flat_map(|bits| {
            ICV_LENGTHS.into_iter().map(move |icv_len| Suite {
                cipher: Cipher::AesGcm((bits / 8) as u8),
                integrity: Integrity::Combined,
                icv_len,
            })
        });
        let chacha =
            [Suite { cipher: Cipher::ChaCha20Poly1305, integrity: Integrity::Combined, icv_len: 16 }];
        let separate = [Cipher::AesCbc as fn(u8) -> Cipher, Cipher::AesCtr].into_iter().flat_map(|cipher| {
            KEY_BITS.into_iter().flat_map(move |bits| {
                INTEGRITIES.into_iter().map(move |(integrity, _, icv_len)| Suite {
                    cipher: cipher((bits / 8) as u8),
                    integrity,
                    icv_len,
                })
            })
        });
        gcm.chain(chacha).chain(separate)
    }

    /// The cipher.
    #[inline]
    pub fn cipher(self) -> Cipher {
        self.cipher
    }

    /// The integrity algorithm, [`Integrity::Combined`] for an AEAD.
    #[inline]
    pub fn integrity(self) -> Integrity {
        self.integrity
    }

    /// Whether cipher and integrity are one algorithm.
    #[inline]
    pub fn is_aead(self) -> bool {
        self.integrity == Integrity::Combined
    }

    /// Whether a repeated IV under one key breaks the cipher (counter modes).
    pub fn iv_repeat_is_fatal(self) -> bool {
        !matches!(self.cipher, Cipher::AesCbc(_))
    }

    /// Length of the cipher key without salt, in bytes.
    pub fn cipher_key_len(self) -> usize {
        match self.cipher {
            Cipher::AesGcm(n) | Cipher::AesCbc(n) | Cipher::AesCtr(n) => n as usize,
            Cipher::ChaCha20Poly1305 => 32,
        }
    }

    /// Length of the salt that follows the cipher key, in bytes.
    pub fn salt_len(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) => 0,
            Cipher::AesGcm(_) | Cipher::AesCtr(_) | Cipher::ChaCha20Poly1305 => 4,
        }
    }

    /// Length of the integrity key, in bytes; 0 for an AEAD (RFC 4868 2.1.1, RFC 2404).
    pub fn integrity_key_len(self) -> usize {
        match self.integrity {
            Integrity::Combined => 0,
            Integrity::HmacSha1 => 20,
            Integrity::HmacSha256 => 32,
            Integrity::HmacSha384 => 48,
            Integrity::HmacSha512 => 64,
        }
    }

    /// Length of the IV field in the packet, in bytes.
    #[inline]
    pub fn iv_len(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) => 16,
            Cipher::AesGcm(_) | Cipher::AesCtr(_) | Cipher::ChaCha20Poly1305 => 8,
        }
    }

    /// What the plaintext with trailer is padded to, in bytes: the cipher's block, at least 4 (RFC 4303 2.4).
    #[inline]
    pub fn align(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) => 16,
            Cipher::AesGcm(_) | Cipher::AesCtr(_) | Cipher::ChaCha20Poly1305 => 4,
        }
    }

    /// Length of the ICV in the packet, in bytes.
    #[inline]
    pub fn icv_len(self) -> usize {
        self.icv_len as usize
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.cipher_key_len() * 8;
        match self.cipher {
            Cipher::AesGcm(_) => return write!(f, "aes{bits}gcm{}", self.icv_len),
            Cipher::ChaCha20Poly1305 => return f.write_str("chacha20poly1305"),
            Cipher::AesCbc(_) => write!(f, "aes{bits}")?,
            Cipher::AesCtr(_) => write!(f, "aes{bits}ctr")?,
        }
        let word = INTEGRITIES.iter().find(|row| row.0 == self.integrity).map_or("", |row| row.1);
        write!(f, "-{word}")
    }
}

impl FromStr for Suite {
    type Err = SuiteError;

    /// Reads a proposal in swanctl's words, its spelled-out forms included
    /// (`aes128gcm128` is `aes128gcm16`, `sha2_256` is `sha256`).
    fn from_str(text: &str) -> Result<Suite, SuiteError> {
        let mut word = text.trim().to_ascii_lowercase().replace("sha2_", "sha");
        for (bits, bytes) in [("gcm128", "gcm16"), ("gcm96", "gcm12"), ("gcm64", "gcm8")] {
            if let Some(stem) = word.strip_suffix(bits) {
                word = format!("{stem}{bytes}");
            }
        }
        Suite::all().find(|suite| suite.to_string() == word).ok_or_else(|| SuiteError {
            found: text.to_owned(),
            nearest: nearest(&word, Suite::all().map(|suite| suite.to_string())).unwrap_or_default(),
        })
    }
}

/// The candidate with the smallest edit distance to `word`, for hints in error messages.
pub fn nearest(word: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    candidates.into_iter().min_by_key(|candidate| edit_distance(word, candidate))
}

fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_reads_back_from_its_own_name() {
        assert_eq!(Suite::all().count(), 9 + 1 + 24);
        for suite in Suite::all() {
            assert_eq!(suite.to_string().parse(), Ok(suite));
        }
    }

    #[test]
    fn spelled_out_forms_are_read() {
        assert_eq!("aes256gcm128".parse::<Suite>(), "aes256gcm16".parse());
        assert_eq!("AES128-SHA2_256".parse::<Suite>(), "aes128-sha256".parse());
    }

    #[test]
    fn an_unknown_proposal_names_the_nearest() {
        let error = "aes128gmc16".parse::<Suite>().unwrap_err();
        assert_eq!(error.nearest, "aes128gcm16");
    }
}
