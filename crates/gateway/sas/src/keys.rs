//! The keys of an SA, from hex in the SAs file or in a file of their own.

use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use forebay_crypto::{KeyError, SaKeys, SecretBytes, Suite};

use super::errors::Findings;
use super::mask::shown;
use super::problem::Problem;
use super::read_secret;
use super::shared_keys::KeyPlace;
use super::table::Table;

/// Longest key file that is read, in bytes; the longest key has 128 hex digits.
const MAX_KEY_FILE_LEN: usize = 4096;

/// Where key files may be.
pub enum KeyFiles {
    /// Nowhere: the SAs come from a text, not from a file.
    None,
    /// Relative to this directory.
    In(PathBuf),
}

/// Bytes that are no hex.
#[derive(Debug, PartialEq, Eq)]
enum HexError {
    /// The first that is no hex digit, counted from 1.
    NotHex { position: usize },
    /// Half a byte is missing.
    Odd { digits: usize },
}

/// Where an SA says its cipher key.
pub(super) fn place(sa: &Table<'_, '_>) -> KeyPlace {
    let key = if sa.has("key_file") { "key_file" } else { "key" };
    KeyPlace { key, span: sa.span(key) }
}

/// Reads both keys and checks them against the suite, as far as that is known.
pub(super) fn read(
    sa: &Table<'_, '_>,
    suite: Option<Suite>,
    files: &KeyFiles,
    findings: &mut Findings,
) -> Option<SaKeys> {
    let key = Source { inline: "key", file: "key_file" };
    let auth_key = Source { inline: "auth_key", file: "auth_key_file" };
    // An unknown suite is assumed to have a cipher.
    let wants_key = suite.is_none_or(|suite| suite.cipher_key_len() > 0);
    let wants_auth = suite.is_some_and(|suite| suite.integrity_key_len() > 0);
    if key.named(sa).is_none() && wants_key {
        sa.missing(key.inline, findings);
    }
    if let Some(suite) = suite {
        for (source, wanted) in [(&key, wants_key), (&auth_key, wants_auth)] {
            if let Some(at) = source.named(sa).filter(|_| !wanted) {
                findings.add(Problem::KeyUnused { key: at, suite }, sa.span(at), "expected no such key");
            }
        }
        if auth_key.named(sa).is_none() && wants_auth {
            let problem = Problem::AuthKeyMissing { sa: shown(&sa.name), suite };
            findings.add(problem, sa.span("proposal"), "asks for a second key");
        }
    }
    let (key, auth_key) = (key.read(sa, files, findings), auth_key.read(sa, files, findings));
    let suite = suite?;
    let (len, salt) = (suite.cipher_key_len() + suite.salt_len(), suite.salt_len());
    let wanted = KeyError { which: "key", found: 0, expected: len, salt };
    let key = of_length(sa, key, wanted, suite, findings);
    let wanted = KeyError { which: "auth_key", found: 0, expected: suite.integrity_key_len(), salt: 0 };
    let auth_key = of_length(sa, auth_key, wanted, suite, findings);
    SaKeys::new(suite, &key?, &auth_key?).ok()
}

/// A key if it is as long as `wanted`; nothing, which is right, where none is wanted.
fn of_length(
    sa: &Table<'_, '_>,
    key: Option<(SecretBytes, &'static str)>,
    wanted: KeyError,
    suite: Suite,
    findings: &mut Findings,
) -> Option<SecretBytes> {
    if wanted.expected == 0 {
        return Some(SecretBytes::new(vec![]));
    }
    let (key, at) = key?;
    has_length(sa, &key, at, wanted, suite, findings).then_some(key)
}

fn has_length(
    sa: &Table<'_, '_>,
    key: &SecretBytes,
    at: &'static str,
    wanted: KeyError,
    suite: Suite,
    findings: &mut Findings,
) -> bool {
    let found = key.expose().len();
    if found != wanted.expected {
        let label = format!("expected {} hex digits", 2 * wanted.expected);
        findings.add(
            Problem::KeyLength { key: at, suite, error: KeyError { found, ..wanted } },
            sa.span(at),
            &label,
        );
    }
    found == wanted.expected
}

/// The two names under which one key may be given.
struct Source {
    inline: &'static str,
    file: &'static str,
}

impl Source {
    fn named(&self, sa: &Table<'_, '_>) -> Option<&'static str> {
        [self.inline, self.file].into_iter().find(|key| sa.has(key))
    }

    /// The key and the name it was given under.
    fn read(
        &self,
        sa: &Table<'_, '_>,
        files: &KeyFiles,
        findings: &mut Findings,
    ) -> Option<(SecretBytes, &'static str)> {
        if sa.has(self.inline) && sa.has(self.file) {
            let problem = Problem::TwoKeys { inline: self.inline, file: self.file };
            findings.add_pair(problem, sa.span(self.file), "and here", sa.span(self.inline), "given here");
            return None;
        }
        if let Some((text, span)) = sa.text(self.inline, findings) {
            return decoded(text.as_bytes(), self.inline, None, span, findings);
        }
        let (path, span) = sa.text(self.file, findings)?;
        match files.read(path) {
            Ok((text, exposed)) => {
                if let Some(mode) = exposed {
                    let problem = Problem::KeyFileExposed { key: self.file, path: shown(path), mode };
                    findings.add(problem, span.clone(), "others may read this file");
                }
                decoded(text.trim_ascii(), self.file, Some(path), span, findings)
            }
            Err(error) => {
                let problem = Problem::KeyFileUnreadable { key: self.file, path: shown(path), error };
                findings.add(problem, span, "expected a file with the key in hex");
                None
            }
        }
    }
}

impl KeyFiles {
    /// The text of the file and, if others than its owner (of root's: its group) may read it, its mode.
    fn read(&self, path: &str) -> io::Result<(zeroize::Zeroizing<Vec<u8>>, Option<u32>)> {
        let KeyFiles::In(directory) = self else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "no directory to look for it in"));
        };
        let path: &Path = &directory.join(path);
        let metadata = path.metadata()?;
        let text = read_secret(path, MAX_KEY_FILE_LEN)?;
        if text.len() > MAX_KEY_FILE_LEN {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too long for a key"));
        }
        Ok((text, exposed(&metadata)))
    }
}

/// The permissions of a file if others than its owner may read or write it.
pub(super) fn exposed(metadata: &std::fs::Metadata) -> Option<u32> {
    let mode = metadata.permissions().mode() & 0o777;
    // What root owns is given to a user without rights over it by its group: 0640.
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    (metadata.is_file() && mode & others != 0).then_some(mode)
}

fn decoded(
    text: &[u8],
    key: &'static str,
    path: Option<&str>,
    span: Range<usize>,
    findings: &mut Findings,
) -> Option<(SecretBytes, &'static str)> {
    let file = path.map(shown);
    match decode(text) {
        Ok(bytes) => return Some((bytes, key)),
        Err(HexError::NotHex { position }) => {
            findings.add(Problem::NotHex { key, file, position }, span, "expected hex digits only");
        }
        Err(HexError::Odd { digits }) => {
            findings.add(
                Problem::OddHex { key, file, digits },
                span,
                "expected two hex digits for each byte",
            );
        }
    }
    None
}

fn decode(text: &[u8]) -> Result<SecretBytes, HexError> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    if let Some(position) = text.iter().position(|byte| !byte.is_ascii_hexdigit()) {
        return Err(HexError::NotHex { position: position + 1 });
    }
    if !text.len().is_multiple_of(2) {
        return Err(HexError::Odd { digits: text.len() });
    }
    // Of the right size at once: a vector that grows leaves copies behind.
    let mut bytes = Vec::with_capacity(text.len() / 2);
    bytes.extend(text.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])));
    Ok(SecretBytes::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_both_cases() {
        assert_eq!(decode(b"00fFA0").unwrap().expose(), [0x00, 0xff, 0xa0]);
        assert!(decode(b"").unwrap().expose().is_empty());
    }

    #[test]
    fn errors_name_a_position_or_a_count() {
        assert_eq!(decode(b"0x12"), Err(HexError::NotHex { position: 2 }));
        assert_eq!(decode(b"123"), Err(HexError::Odd { digits: 3 }));
    }
}
