//! What to do about each problem of an SAs file.

use std::borrow::Cow;
use std::io;

use forebay_crypto::{Cipher, Integrity, KeyError, Suite, nearest};
use forebay_ipsec::MAX_WINDOW;

use super::problem::Problem;
use super::table::KNOWN;

impl Problem {
    /// What to do about it.
    pub fn help(&self) -> Cow<'static, str> {
        match self {
            Problem::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "is the path right? `--sas` takes a TOML file with one `[[sa]]` for each SA".into()
            }
            Problem::Unreadable(_) => "Forebay must be able to read this file".into(),
            Problem::TooLong { .. } => "is this the SAs file?".into(),
            Problem::NotUtf8 { .. } => "is this the SAs file? TOML is UTF-8 text".into(),
            Problem::Syntax { .. } => {
                "each SA begins with `[[sa]]`, then come lines like `name = \"east-out\"`, `spi = 0x1001`"
                    .into()
            }
            Problem::NoSa => {
                "begin an SA with `[[sa]]`; it needs direction, spi, proposal, key, local and remote".into()
            }
            Problem::NotTables { .. } => "write `[[sa]]` with double brackets, once for each SA".into(),
            Problem::UnknownKey { key, misplaced: true, .. } => {
                format!("`{key}` belongs into an SA: put `[[sa]]` on a line above it").into()
            }
            Problem::UnknownKey { nearest, .. } => format!("did you mean `{nearest}`?").into(),
            Problem::MissingKey { key, .. } => missing(key).into(),
            Problem::WrongType { key: "key" | "auth_key", .. } => {
                "put the hex digits between quotes: key = \"00112233...\"".into()
            }
            Problem::WrongType { key: "local_ts", .. } => "local_ts = [\"10.1.0.0/16\"]".into(),
            Problem::WrongType { key: "remote_ts", .. } => "remote_ts = [\"10.2.0.0/16\"]".into(),
            Problem::WrongType { key, .. } => missing(key).into(),
            Problem::UnknownWord { found, expected, .. } => {
                // Half a word, or a longer form of it, means that one however many letters differ.
                let begun =
                    expected.iter().find(|word| word.starts_with(&**found) || found.starts_with(**word));
                let nearest = begun
                    .map(|word| word.to_string())
                    .or_else(|| nearest(found, expected.iter().map(|word| word.to_string())));
                let words = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
                format!("expected {words}; did you mean `{}`?", nearest.unwrap_or_default()).into()
            }
            Problem::UnknownProposal { nearest, .. } => {
                format!("did you mean `{nearest}`? There are {SUITES}").into()
            }
            Problem::WeakSuite { suite } => {
                let why = match suite.integrity() {
                    Integrity::None => "nothing would tell forged packets (RFC 8221 4)",
                    _ => "MD5 is broken (RFC 8221 6)",
                };
                format!("{why}: take another, or say `allow_weak = true` if the peer has nothing else").into()
            }
            Problem::NotForAh { suite } => {
                let alone = suite.to_string().rsplit_once('-').map(|(_, integrity)| integrity.to_owned());
                let alone = alone.unwrap_or_else(|| "sha256".to_owned());
                format!(
                    "proposal = \"{alone}\" or another integrity algorithm alone, or aes{{128,192,256}}gmac"
                )
                .into()
            }
            Problem::AhInUdp => {
                "AH covers the addresses that a NAT changes (RFC 3948 1): leave it out, or take ESP".into()
            }
            Problem::BadSpi { .. } => {
                "both peers know it as a number of 32 bits that is not 0 (RFC 4303 2.1)".into()
            }
            Problem::BadAddress { found, .. } if found.contains('/') => {
                "one address without a prefix length; ranges go into local_ts and remote_ts".into()
            }
            Problem::BadAddress { .. } => {
                "like 192.0.2.1 or 2001:db8::1; host names are not looked up".into()
            }
            Problem::BadSelector { error, .. } => format!(
                "{error}; selectors are like 10.1.0.0/16, 2001:db8:1::/48, 10.1.0.5-10.1.0.9 or 10.1.0.0/16[tcp/80]"
            )
            .into(),
            Problem::HostBits { found, .. } => {
                format!("the network is {}; the address alone would be {}", found.trunc(), found.addr())
                    .into()
            }
            Problem::MixedFamilies { .. } => {
                "both are outer addresses, of one tunnel's ends; the packets inside may be of either version"
                    .into()
            }
            Problem::BadWindow { .. } => {
                format!("a number of packets, at most {MAX_WINDOW}; 0 switches the check off, 64 is usual")
                    .into()
            }
            Problem::NotHex { file: None, .. } => {
                "hex digits only: no spaces, no colons, no 0x in front".into()
            }
            Problem::NotHex { file: Some(_), .. } => {
                "the file holds hex digits as text, not the raw bytes; no spaces, no colons, no 0x".into()
            }
            Problem::OddHex { .. } => "two digits make a byte: is one missing at an end?".into(),
            Problem::KeyLength { suite, error, .. } => key_length(*suite, error).into(),
            Problem::TwoKeys { inline, file } => format!("leave out `{inline}` or `{file}`").into(),
            Problem::AuthKeyMissing { suite, .. } => {
                let len = suite.integrity_key_len();
                format!("auth_key = \"...\" with {} hex digits ({len} bytes), or auth_key_file", 2 * len)
                    .into()
            }
            Problem::KeyUnused { key, suite } => {
                let why = match (*key, suite.integrity()) {
                    ("key" | "key_file", _) => "enciphers nothing",
                    (_, Integrity::None) => "authenticates nothing",
                    _ => "authenticates with the key of its cipher",
                };
                format!("leave out `{key}`: {suite} {why}").into()
            }
            Problem::KeyFileUnreadable { .. } => {
                "a path that is not absolute starts at the directory of the SAs file".into()
            }
            Problem::KeyFileExposed { path, .. } => format!("chmod 600 {path}").into(),
            Problem::OverlappingSpi { peer: None, .. } => {
                "packets carry nothing but the SPI to find their SA by: give one of the two another".into()
            }
            Problem::OverlappingSpi { peer: Some(_), .. } => {
                "the peer could not tell them apart: give one of the two another SPI".into()
            }
        }
    }
}

const SUITES: &str = "aes{128,192,256}{gcm,ccm}{8,12,16}, aes{128,192,256}gmac, chacha20poly1305, \
    {aes{128,192,256}[ctr],3des,null}-{sha1,sha256,sha384,sha512,aesxcbc,aescmac}, and the weak ones with \
    md5 or without integrity";

/// An example of what is missing.
fn missing(key: &str) -> &'static str {
    match key {
        "name" => "name = \"east-out\"",
        "direction" => "direction = \"out\" for packets that leave, \"in\" for those that arrive",
        "spi" => "spi = 0x1001, the number that both peers know the SA by",
        "protocol" => "protocol = \"esp\"",
        "mode" => "mode = \"tunnel\" or \"transport\"",
        "proposal" => "proposal = \"aes128gcm16\"",
        "key" => "key = \"...\" with the cipher key in hex, its salt behind it; or key_file",
        "key_file" | "auth_key_file" => "the path of a file that holds the key in hex",
        "local" => "local = \"192.0.2.1\", this side's outer address",
        "remote" => "remote = \"192.0.2.2\", the peer's outer address",
        "esn" => "esn = true for sequence numbers of 64 bits",
        "replay_window" => "replay_window = 64, in packets",
        "encapsulation" => "encapsulation = \"none\" or \"udp\"",
        "allow_weak" => "allow_weak = false",
        _ => "see the example in the manual",
    }
}

fn key_length(suite: Suite, error: &KeyError) -> String {
    let mut help = format!("{} hex digits", 2 * error.expected);
    let section = match suite.cipher() {
        Cipher::AesGcm(_) => "RFC 4106 8.1",
        Cipher::AesCcm(_) => "RFC 4309 7.1",
        Cipher::AesGmac(_) => "RFC 4543 3.2",
        Cipher::AesCtr(_) => "RFC 3686 5.1",
        _ => "RFC 7634 2",
    };
    if error.salt > 0 {
        let cipher = error.expected - error.salt;
        help += &format!(
            ": {} for the cipher, then {} for the salt, which belongs to the key ({section})",
            2 * cipher,
            2 * error.salt
        );
        if error.found == cipher {
            help += "; it is the salt that seems to be missing";
        }
    }
    let fitting = Suite::all().find(|other| match error.which {
        "key" => {
            std::mem::discriminant(&other.cipher()) == std::mem::discriminant(&suite.cipher())
                && other.integrity() == suite.integrity()
                && other.icv_len() == suite.icv_len()
                && other.cipher_key_len() + other.salt_len() == error.found
        }
        _ => other.cipher() == suite.cipher() && other.integrity_key_len() == error.found,
    });
    match fitting {
        Some(other) if error.found > 0 => help + &format!(". {} bytes would fit {other}", error.found),
        _ => help,
    }
}

const _: () = assert!(KNOWN.len() == 18, "every key has an example in `missing`");
