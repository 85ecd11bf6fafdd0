//! Keys: checked against their suite once, zeroised when dropped, never printed.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Suite;

/// Secret bytes that are wiped when dropped and whose `Debug` shows only their length.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SecretBytes(Box<[u8]>);

impl SecretBytes {
    /// Takes over `bytes`; the caller's copies are the caller's to wipe.
    pub fn new(bytes: Vec<u8>) -> SecretBytes {
        SecretBytes(bytes.into_boxed_slice())
    }

    /// The secret itself.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} secret bytes]", self.0.len())
    }
}

/// The keys of one SA, of the lengths its suite asks for.
#[derive(Clone, Debug, PartialEq, Eq, ZeroizeOnDrop)]
pub struct SaKeys {
    #[zeroize(skip)]
    suite: Suite,
    cipher: SecretBytes,
    salt: SecretBytes,
    integrity: SecretBytes,
}

/// A key of the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Which key: `key` or `auth_key`, as in the SAs file.
    pub which: &'static str,
    /// Its length in bytes.
    pub found: usize,
    /// The length the suite asks for, in bytes.
    pub expected: usize,
    /// How many of them are the salt.
    pub salt: usize,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {} bytes, expected {}", self.which, self.found, self.expected)?;
        if self.salt > 0 {
            write!(f, " ({} of key, then {} of salt)", self.expected - self.salt, self.salt)?;
        }
        Ok(())
    }
}

impl std::error::Error for KeyError {}

impl SaKeys {
    /// Checks both keys against `suite`; `key` is the cipher key with the salt behind it where
    /// the suite has one (RFC 4106 8.1, RFC 3686 5.1, RFC 7634 2).
    pub fn new(suite: Suite, key: &SecretBytes, auth_key: &SecretBytes) -> Result<SaKeys, KeyError> {
        let (salt, expected) = (suite.salt_len(), suite.cipher_key_len() + suite.salt_len());
        let check = |which, bytes: &SecretBytes, expected, salt| match bytes.expose().len() {
            found if found == expected => Ok(()),
            found => Err(KeyError { which, found, expected, salt }),
        };
        check("key", key, expected, salt)?;
        check("auth_key", auth_key, suite.integrity_key_len(), 0)?;
        let (cipher, salt) = key.expose().split_at(suite.cipher_key_len());
        Ok(SaKeys {
            suite,
            cipher: SecretBytes::new(cipher.to_vec()),
            salt: SecretBytes::new(salt.to_vec()),
            integrity: auth_key.clone(),
        })
    }

    /// The suite the keys are for.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The cipher key without salt.
    pub fn cipher(&self) -> &[u8] {
        self.cipher.expose()
    }

    /// The salt, empty where the suite has none.
    pub fn salt(&self) -> &[u8] {
        self.salt.expose()
    }

    /// The integrity key, empty for an AEAD.
    pub fn integrity(&self) -> &[u8] {
        self.integrity.expose()
    }
}
