//! Fingerprints of keys, which do not reveal the keys.

use std::fmt;

use forebay_crypto::{Cipher, SaKeys};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::sequences::fingerprint;

/// Sets these fingerprints apart from any other hash of the key.
const DOMAIN: &[u8] = b"forebay iv reservation v1\0";

/// A fingerprint of a cipher key. An attacker who sees it can confirm a guess of the key and learns nothing else.
///
/// It covers the block cipher and the key, and neither the mode nor the salt: AES-GCM with ICVs of 8 and 16 bytes,
/// AES-GMAC and AES-CTR make the same key stream out of the same key, salt and IV (RFC 4106 4, RFC 4543 3, RFC 3686
/// 4), so SAs of all of them share one sequence of IVs. So does AES-CCM, whose counter blocks another salt could make
/// equal to theirs. A suite without encryption has no key, and its fingerprint is never used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId([u8; 16]);

impl KeyId {
    /// The fingerprint of an SA's cipher key.
    pub fn of(keys: &SaKeys) -> KeyId {
        let cipher: &[u8] = match keys.suite().cipher() {
            Cipher::ChaCha20Poly1305 => b"chacha20\0",
            Cipher::TripleDesCbc => b"3des\0",
            Cipher::Null => b"null\0",
            _ => b"aes\0",
        };
        // The hash function keeps the key in its buffer and, on the stack, does not wipe it.
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(cipher).chain_update(keys.cipher());
        let mut id = [0; 16];
        id.copy_from_slice(&digest.finalize()[..16]);
        KeyId(id)
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for KeyId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<KeyId, &'static str> {
        fingerprint(&text).map(KeyId)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_crypto::SecretBytes;

    fn id(suite: &str, key: u8, salt: u8) -> KeyId {
        let suite: forebay_crypto::Suite = suite.parse().unwrap();
        let mut bytes = vec![key; suite.cipher_key_len()];
        bytes.resize(suite.cipher_key_len() + suite.salt_len(), salt);
        let auth_key = SecretBytes::new(vec![1; suite.integrity_key_len()]);
        KeyId::of(&SaKeys::new(suite, &SecretBytes::new(bytes), &auth_key).unwrap())
    }

    #[test]
    fn suites_with_one_key_stream_have_one_name() {
        assert_eq!(id("aes128gcm16", 1, 2), id("aes128gcm8", 1, 2));
        assert_eq!(id("aes128gcm16", 1, 2), id("aes128ctr-sha256", 1, 2));
        assert_eq!(id("aes128gcm16", 1, 2), id("aes128gcm16", 1, 3));
        assert_eq!(id("aes192gcm16", 1, 2), id("aes192gmac", 1, 2));
        assert_eq!(id("aes192gcm16", 1, 2), id("aes192ccm8", 1, 2));
    }

    #[test]
    fn other_keys_have_other_names() {
        assert_ne!(id("aes128gcm16", 1, 2), id("aes128gcm16", 2, 2));
        assert_ne!(id("aes128gcm16", 1, 1), id("aes256gcm16", 1, 1));
        assert_ne!(id("aes256gcm16", 1, 1), id("chacha20poly1305", 1, 1));
        assert_ne!(id("aes192-sha1", 1, 1), id("3des-sha1", 1, 1));
    }

    #[test]
    fn the_name_stays_the_same_for_good() {
        // (printf 'forebay iv reservation v1\0aes\0'; printf '\1%.0s' {1..16}) | sha256sum | cut -c1-32
        assert_eq!(id("aes128gcm16", 1, 1).to_string(), "ec3158ebb226f9f16dae6d490108cc23");
    }
}
