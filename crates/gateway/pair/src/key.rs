//! The key that both gateways share.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Its length in bytes.
const LEN: usize = 32;

/// A secret of 32 bytes. It is never printed and wiped when it is dropped.
pub struct Key(Zeroizing<[u8; LEN]>);

/// Errors of reading the key.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Other users can read it: its permissions.
    Open(PathBuf, u32),
    /// It does not contain a key.
    Malformed(PathBuf),
}

impl Key {
    /// The key in a file: 64 hex digits, for its owner only.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn read(path: &Path) -> Result<Key, KeyError> {
        let unreadable = |error| KeyError::Unreadable(path.to_owned(), error);
        // Opening a FIFO blocks until a process opens it for writing.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Open(path.to_owned(), mode & 0o777));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(4 * LEN));
        file.by_ref().take(4 * LEN as u64).read_to_end(&mut text).map_err(unreadable)?;
        Key::parse(text.trim_ascii()).ok_or_else(|| KeyError::Malformed(path.to_owned()))
    }

    /// The key of 64 hex digits.
    pub fn parse(digits: &[u8]) -> Option<Key> {
        if digits.len() != 2 * LEN {
            return None;
        }
        let mut key = Zeroizing::new([0; LEN]);
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Some(Key(key))
    }

    pub(crate) fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Unreadable(path, error) => {
                write!(f, "cannot read the pair's key {}: {error}", path.display())
            }
            KeyError::Open(path, mode) => {
                write!(f, "other users can read the pair's key {} (mode {mode:04o})", path.display())
            }
            KeyError::Malformed(path) => {
                write!(f, "{} holds no key of a pair: expected 64 hex digits", path.display())
            }
        }
    }
}

impl std::error::Error for KeyError {}

impl KeyError {
    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            KeyError::Unreadable(..) => {
                "write the same key on both gateways: openssl rand -hex 32 > pair.key"
            }
            KeyError::Open(..) => "allow only its owner to read it: chmod 600",
            KeyError::Malformed(..) => {
                "make one with `openssl rand -hex 32` and copy it to the other gateway"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_64_hex_digits_that_only_their_owner_can_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pair.key");
        assert!(matches!(Key::read(&path), Err(KeyError::Unreadable(..))));
        fs::write(&path, "0f".repeat(32) + "\n").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(Key::read(&path), Err(KeyError::Open(_, 0o640))));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let key = Key::read(&path).unwrap();
        assert_eq!((key.bytes(), format!("{key:?}").as_str()), (&[15; 32], "Key(..)"));
        let folder = Key::read(directory.path()).unwrap_err();
        assert!(folder.to_string().contains("not a regular file"), "{folder}");
        for text in ["", "0f", &"0g".repeat(32), &"0f".repeat(33)] {
            fs::write(&path, text).unwrap();
            assert!(matches!(Key::read(&path), Err(KeyError::Malformed(_))), "{text}");
        }
    }
}
