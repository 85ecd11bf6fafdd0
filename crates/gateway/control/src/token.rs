//! The token that clients of metrics and of the live page show: as a bearer token (RFC 6750), or as the password of any user
//! (RFC 7617), for which browsers ask.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Characters of a token, at least and at most.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

/// See the module. It is never printed.
pub struct Token(Zeroizing<Vec<u8>>);

impl Token {
    /// Reads a token from its file.
    ///
    /// # Errors
    /// If it is no regular file or cannot be read, others may read it, or it has something else than one token;
    /// `PermissionDenied` if this user may not read it.
    pub fn read(path: &Path) -> io::Result<Token> {
        let named =
            |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let unreadable = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: cannot be read: {error}", path.display()))
        };
        // Opening a FIFO blocks until a process opens it for writing.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(named("is not a regular file; write the token to a file".to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata()?.mode();
        if mode & 0o007 != 0 {
            return Err(named(format!(
                "has mode {:04o} and can be read by others; use chmod 0640",
                mode & 0o777
            )));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(1024));
        file.take(1024).read_to_end(&mut text)?;
        Token::of(text.trim_ascii()).ok_or_else(|| {
            let (least, most) = (LENGTHS.start(), LENGTHS.end());
            named(format!("expected one token of {least} to {most} printable characters"))
        })
    }

    /// The token that is so, if it is one.
    pub fn of(token: &[u8]) -> Option<Token> {
        let is_one = LENGTHS.contains(&token.len()) && token.iter().all(u8::is_ascii_graphic);
        is_one.then(|| Token(Zeroizing::new(token.to_vec())))
    }

    /// Whether a line of a request's head shows this token.
    pub fn is_shown_by(&self, line: &str) -> bool {
        let Some((name, value)) = line.split_once(':') else { return false };
        if !name.eq_ignore_ascii_case("authorization") {
            return false;
        }
        let Some((scheme, shown)) = value.trim().split_once(' ') else { return false };
        let shown = shown.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.is(shown.as_bytes());
        }
        let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(shown));
        let Some(Ok(decoded)) = decoded.map(|decoded| decoded.map(Zeroizing::new)) else { return false };
        // A user's name has no colon.
        let end = decoded.iter().position(|byte| *byte == b':');
        end.is_some_and(|end| self.is(&decoded[end + 1..]))
    }

    fn is(&self, shown: &[u8]) -> bool {
        // Over all characters, so that the time does not tell how many are right.
        let differ = self.0.iter().zip(shown).fold(0, |differ, (one, other)| differ | (one ^ other));
        shown.len() == self.0.len() && differ == 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(text: &str, mode: u32) -> io::Result<Token> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
        Token::read(file.path())
    }

    #[test]
    fn a_token_is_one_word_of_its_length_that_others_cannot_read() {
        assert!(read("0123456789abcdef\n", 0o640).is_ok());
        for (text, mode, what) in [
            ("0123456789abcdef", 0o644, "chmod"),
            ("short", 0o600, "16 to 256"),
            ("two words of this length", 0o600, "16 to 256"),
            (&"x".repeat(257), 0o600, "16 to 256"),
        ] {
            let error = read(text, mode).err().expect("refused").to_string();
            assert!(error.contains(what) && !error.contains(text), "{error}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = Token::read(path).err().expect("refused").to_string();
            assert!(error.contains("is not a regular file"), "{error}");
        }
    }

    #[test]
    fn only_the_whole_token_in_its_header_is_good() {
        let token = read("0123456789abcdef", 0o600).unwrap();
        for good in [
            "Authorization: Bearer 0123456789abcdef\r\n",
            "authorization:bearer 0123456789abcdef",
            // any:0123456789abcdef, and :0123456789abcdef
            "Authorization: Basic YW55OjAxMjM0NTY3ODlhYmNkZWY=\r\n",
            "Authorization: basic OjAxMjM0NTY3ODlhYmNkZWY=",
        ] {
            assert!(token.is_shown_by(good), "{good}");
        }
        for bad in [
            "Authorization: Bearer 0123456789abcdeF",
            "Authorization: Bearer 0123456789abcde",
            "Authorization: Bearer 0123456789abcdef0",
            "Authorization: Bearer",
            "Authorization: Basic 0123456789abcdef",
            // 0123456789abcdef without a user, any:0123456789abcde, and bytes that are no base64
            "Authorization: Basic MDEyMzQ1Njc4OWFiY2RlZg==",
            "Authorization: Basic YW55OjAxMjM0NTY3ODlhYmNkZQ==",
            "Authorization: Basic *",
            "X-Authorization: Bearer 0123456789abcdef",
            "Bearer 0123456789abcdef",
        ] {
            assert!(!token.is_shown_by(bad), "{bad}");
        }
    }
}
