//! Crypto suites by the words of swanctl's proposals, and their sizes.

use std::fmt;
use std::str::FromStr;

/// A cipher with its key size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cipher {
    /// AES in Galois/Counter Mode, key of the given bytes (RFC 4106).
    AesGcm(u8),
    /// AES in Counter with CBC-MAC mode, key of the given bytes (RFC 4309).
    AesCcm(u8),
    /// No encryption, integrity by AES-GMAC, key of the given bytes (RFC 4543).
    AesGmac(u8),
    /// AES in Cipher Block Chaining mode, key of the given bytes (RFC 3602).
    AesCbc(u8),
    /// AES in Counter mode, key of the given bytes (RFC 3686).
    AesCtr(u8),
    /// ChaCha20 with Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// Triple DES in Cipher Block Chaining mode with three keys (RFC 2451).
    TripleDesCbc,
    /// No encryption (RFC 2410): the text stays as it is. AH has nothing else.
    Null,
}

/// A separate integrity algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Integrity {
    /// The cipher authenticates (combined mode, AEAD).
    Combined,
    /// Nothing authenticates: [weak](Suite::is_weak).
    None,
    /// HMAC-MD5-96 (RFC 2403): [weak](Suite::is_weak).
    HmacMd5,
    /// HMAC-SHA-1-96 (RFC 2404).
    HmacSha1,
    /// HMAC-SHA-256-128 (RFC 4868).
    HmacSha256,
    /// HMAC-SHA-384-192 (RFC 4868).
    HmacSha384,
    /// HMAC-SHA-512-256 (RFC 4868).
    HmacSha512,
    /// AES-XCBC-MAC-96 (RFC 3566).
    AesXcbc,
    /// AES-CMAC-96 (RFC 4494).
    AesCmac,
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
    /// The nearest known proposal; empty if none is near.
    pub nearest: String,
}

impl SuiteError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self.nearest.as_str() {
            "" => format!("there are {PROPOSALS}"),
            nearest => format!("did you mean `{nearest}`? There are {PROPOSALS}"),
        }
    }
}

/// All proposals, for hints.
pub const PROPOSALS: &str = "aes{128,192,256}{gcm,ccm}{8,12,16}, aes{128,192,256}gmac, chacha20poly1305, \
    {aes{128,192,256}[ctr],3des,null}-{sha1,sha256,sha384,sha512,aesxcbc,aescmac}, and the weak ones with \
    md5 or without integrity";

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown proposal `{}`", self.found)
    }
}

impl std::error::Error for SuiteError {}

const KEY_LENGTHS: [u8; 3] = [16, 24, 32];
const ICV_LENGTHS: [u8; 3] = [8, 12, 16];
/// Separate integrity algorithms: the word of a proposal, the length of the key, that of the ICV, both in bytes.
const INTEGRITIES: [(Integrity, &str, u8, u8); 7] = [
    (Integrity::HmacSha1, "sha1", 20, 12),
    (Integrity::HmacSha256, "sha256", 32, 16),
    (Integrity::HmacSha384, "sha384", 48, 24),
    (Integrity::HmacSha512, "sha512", 64, 32),
    (Integrity::AesXcbc, "aesxcbc", 16, 12),
    (Integrity::AesCmac, "aescmac", 16, 12),
    (Integrity::HmacMd5, "md5", 16, 12),
];

impl Suite {
    /// Every suite, in a fixed order; the AEADs come first.
    pub fn all() -> impl Iterator<Item = Suite> {
        let combined = |cipher, icv_len| Suite { cipher, integrity: Integrity::Combined, icv_len };
        let sized = |cipher: fn(u8) -> Cipher| KEY_LENGTHS.into_iter().map(cipher);
        let aeads = [Cipher::AesGcm as fn(u8) -> Cipher, Cipher::AesCcm]
            .into_iter()
            .flat_map(sized)
            .flat_map(move |cipher| ICV_LENGTHS.into_iter().map(move |icv_len| combined(cipher, icv_len)));
        let full = [Cipher::ChaCha20Poly1305].into_iter().chain(sized(Cipher::AesGmac));
        let aeads = aeads.chain(full.map(move |cipher| combined(cipher, 16)));
        let ciphers =
            sized(Cipher::AesCbc).chain(sized(Cipher::AesCtr)).chain([Cipher::TripleDesCbc, Cipher::Null]);
        let separate = ciphers.flat_map(|cipher| {
            let with = move |(integrity, _, _, icv_len)| Suite { cipher, integrity, icv_len };
            let bare = Suite { cipher, integrity: Integrity::None, icv_len: 0 };
            INTEGRITIES.into_iter().map(with).chain((cipher != Cipher::Null).then_some(bare))
        });
        aeads.chain(separate)
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

    /// Whether integrity covers everything from the SPI to the end of the text, IV included: all but
    /// the AEADs that encipher, which take SPI and sequence number as AAD (RFC 4303 3.2.3, RFC 4543 3).
    #[inline]
    pub fn covers_text(self) -> bool {
        !self.is_aead() || matches!(self.cipher, Cipher::AesGmac(_))
    }

    /// Whether each block of cipher text depends on the one before, the first on the IV.
    #[inline]
    pub fn is_chained(self) -> bool {
        matches!(self.cipher, Cipher::AesCbc(_) | Cipher::TripleDesCbc)
    }

    /// Whether RFC 8221 says MUST NOT: HMAC-MD5, and encryption without integrity.
    pub fn is_weak(self) -> bool {
        matches!(self.integrity, Integrity::HmacMd5 | Integrity::None)
    }

    /// Whether AH can use it: it enciphers nothing (RFC 4302 1).
    pub fn suits_ah(self) -> bool {
        matches!(self.cipher, Cipher::Null | Cipher::AesGmac(_))
    }

    /// Whether a repeated IV under one key breaks the cipher (counter modes).
    pub fn iv_repeat_is_fatal(self) -> bool {
        !self.is_chained() && self.cipher != Cipher::Null
    }

    /// Length of the cipher key without salt, in bytes.
    pub fn cipher_key_len(self) -> usize {
        match self.cipher {
            Cipher::AesGcm(n)
            | Cipher::AesCcm(n)
            | Cipher::AesGmac(n)
            | Cipher::AesCbc(n)
            | Cipher::AesCtr(n) => n as usize,
            Cipher::ChaCha20Poly1305 => 32,
            Cipher::TripleDesCbc => 24,
            Cipher::Null => 0,
        }
    }

    /// Length of the salt that follows the cipher key, in bytes.
    pub fn salt_len(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) | Cipher::TripleDesCbc | Cipher::Null => 0,
            Cipher::AesCcm(_) => 3,
            Cipher::AesGcm(_) | Cipher::AesGmac(_) | Cipher::AesCtr(_) | Cipher::ChaCha20Poly1305 => 4,
        }
    }

    /// Length of the integrity key, in bytes; 0 for an AEAD (RFC 4868 2.1.1, RFC 2403, RFC 2404,
    /// RFC 3566, RFC 4494).
    pub fn integrity_key_len(self) -> usize {
        self.integrity_row().map_or(0, |row| row.2.into())
    }

    fn integrity_row(self) -> Option<&'static (Integrity, &'static str, u8, u8)> {
        INTEGRITIES.iter().find(|row| row.0 == self.integrity)
    }

    /// Length of the IV field in the packet, in bytes.
    #[inline]
    pub fn iv_len(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) => 16,
            Cipher::Null => 0,
            _ => 8,
        }
    }

    /// What the plaintext with trailer is padded to, in bytes: the cipher's block, at least 4 (RFC 4303 2.4).
    #[inline]
    pub fn align(self) -> usize {
        match self.cipher {
            Cipher::AesCbc(_) => 16,
            Cipher::TripleDesCbc => 8,
            _ => 4,
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
            Cipher::AesGcm(_) => write!(f, "aes{bits}gcm{}", self.icv_len)?,
            Cipher::AesCcm(_) => write!(f, "aes{bits}ccm{}", self.icv_len)?,
            Cipher::AesGmac(_) => write!(f, "aes{bits}gmac")?,
            Cipher::ChaCha20Poly1305 => f.write_str("chacha20poly1305")?,
            Cipher::AesCbc(_) => write!(f, "aes{bits}")?,
            Cipher::AesCtr(_) => write!(f, "aes{bits}ctr")?,
            Cipher::TripleDesCbc => f.write_str("3des")?,
            Cipher::Null => f.write_str("null")?,
        }
        self.integrity_row().map_or(Ok(()), |row| write!(f, "-{}", row.1))
    }
}

impl FromStr for Suite {
    type Err = SuiteError;

    /// Reads a proposal in swanctl's words, its spelled-out forms included (`aes128gcm128` is
    /// `aes128gcm16`, `sha2_256` is `sha256`); an integrity algorithm alone, as AH has it, is the one
    /// with `null`.
    fn from_str(text: &str) -> Result<Suite, SuiteError> {
        let mut word = in_bytes(text.trim().to_ascii_lowercase().replace("sha2_", "sha"));
        if INTEGRITIES.iter().any(|row| row.1 == word) {
            word.insert_str(0, "null-");
        }
        Suite::all().find(|suite| suite.to_string() == word).ok_or_else(|| SuiteError {
            found: text.to_owned(),
            nearest: nearest_suite(&word).map_or_else(String::new, |suite| suite.to_string()),
        })
    }
}

/// A proposal whose length of the ICV is in bits, in bytes.
fn in_bytes(word: String) -> String {
    for mode in ["gcm", "ccm"] {
        for (bits, bytes) in [("128", "16"), ("96", "12"), ("64", "8")] {
            if let Some(stem) = word.strip_suffix(bits).filter(|stem| stem.ends_with(mode)) {
                return format!("{stem}{bytes}");
            }
        }
    }
    word
}

/// The suite that a word means that is none, for hints: never a weak one, nor one with a shorter ICV than another that is as
/// near, such as `aes128gcm8` for `AES-128-GCM`.
fn nearest_suite(word: &str) -> Option<Suite> {
    let plain = |word: &str| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let meant = in_bytes(plain(word));
    let distance = |suite: &Suite| {
        let known = plain(&suite.to_string());
        // Only its ending is missing.
        let begun = !known.starts_with(&meant);
        (known != meant, begun, if begun { strsim::levenshtein(&meant, &known) } else { 0 })
    };
    let strong = Suite::all().filter(|suite| !suite.is_weak());
    let found = strong.min_by_key(|suite| (distance(suite), std::cmp::Reverse(suite.icv_len())))?;
    let (differs, _, edits) = distance(&found);
    // As for any other word of a file (forebay_diagnostics::nearest): two edits, or half of the longer one's letters.
    let longer = meant.len().max(plain(&found.to_string()).len());
    (!differs || edits < longer && edits <= (longer / 2).max(2)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_reads_back_from_its_own_name() {
        assert_eq!(Suite::all().count(), 9 + 9 + 1 + 3 + 8 * 8 - 1);
        for suite in Suite::all() {
            assert_eq!(suite.to_string().parse(), Ok(suite));
        }
    }

    #[test]
    fn spelled_out_forms_are_read() {
        assert_eq!("aes256gcm128".parse::<Suite>(), "aes256gcm16".parse());
        assert_eq!("AES128-SHA2_256".parse::<Suite>(), "aes128-sha256".parse());
        assert_eq!("aes192ccm64".parse::<Suite>(), "aes192ccm8".parse());
        assert_eq!("sha1".parse::<Suite>(), "null-sha1".parse());
    }

    #[test]
    fn an_unknown_proposal_names_the_nearest() {
        let error = "aes128gmc16".parse::<Suite>().unwrap_err();
        assert_eq!(error.nearest, "aes128gcm16");
        let nearest = |word: &str| word.parse::<Suite>().unwrap_err().nearest;
        for word in ["AES-128-GCM", "aes128gcm", "aes-128-gcm-128", "aes128-gcm16", "aes_128_gcm_16"] {
            assert_eq!(nearest(word), "aes128gcm16", "{word}");
        }
        assert_eq!(nearest("aes-256-ccm"), "aes256ccm16");
        assert_eq!(nearest("chacha20-poly1305"), "chacha20poly1305");
        assert!(!nearest("md6").contains("md5"));
        for word in ["nonsense", "serpent", "rsa", "default"] {
            assert_eq!(nearest(word), "", "{word}");
        }
        let error = "nonsense".parse::<Suite>().unwrap_err();
        assert!(error.hint().starts_with("there are aes{128"), "{}", error.hint());
    }
}
