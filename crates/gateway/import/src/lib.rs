//! Import of other systems' security associations and policies into a gateway configuration.
//!
//! [`xfrm`] reads the output of `ip xfrm state` and `ip xfrm policy`, [`secgw`] the configuration of DPDK's ipsec-secgw.
//! [`swanctl`] and [`ipsec_conf`] read the files of IKE daemons, which continue to run beside the gateway, and [`wireguard`] those of `wg`.
//! Everything that is not imported, or is imported with a different meaning, is a [`Remark`] with its line: nothing is lost silently, and no
//! remark shows a key. [`write()`] makes a gateway configuration, with keys in separate files or inline.
//!
//! ```
//! let imported = forebay_import::wireguard::read(
//!     "[Interface]\nListenPort = 51820\n[Peer]\nEndpoint = 192.0.2.2:51820\nAllowedIPs = 10.2.0.0/16\n",
//! );
//! assert_eq!(imported.peers(), 1);
//! assert!(imported.write("wg0.conf").contains(r#"remote_ts = ["10.2.0.0/16"]"#));
//! let port = imported.remarks.iter().find(|remark| remark.text == "ListenPort").expect("it is not imported");
//! assert_eq!((port.line, port.lost), (2, true));
//! ```

mod ike;
mod include;
pub mod ipsec_conf;
pub mod secgw;
pub mod swanctl;
pub mod wireguard;
mod write;
pub mod xfrm;

use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_ipsec::{Action, Policy, SaConfig};
use zeroize::Zeroizing;

pub use ike::ImportedIke;
pub use include::{Include, Text};
pub use wireguard::ImportedWireguard;
pub use write::{KeyFile, Written, write};

use forebay_sas::mask;

/// An SA of another system.
#[derive(Debug)]
pub struct ImportedSa {
    /// Everything but keys; the name is made of direction and SPI.
    pub config: SaConfig,
    /// Outbound (`Seal`) or inbound (`Open`).
    pub direction: Direction,
    /// The cipher's key with its salt, in hex; empty if there is none.
    pub key: Zeroizing<String>,
    /// The integrity algorithm's key in hex; likewise.
    pub auth_key: Zeroizing<String>,
    /// The place of the SA that goes around this one.
    pub outer: Option<usize>,
    /// The line where it begins, from 1.
    pub line: usize,
}

/// Something that was not taken over, or not as it was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The file, if it is one that the given one includes.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// What stands there, keys replaced by asterisks.
    pub text: String,
    /// Why.
    pub reason: String,
    /// Whether what comes out protects less, more, or otherwise than what went in.
    pub lost: bool,
}

impl Remark {
    /// The place in words: `line 3`, `conf.d/east.conf line 3`.
    pub fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("{file} line {}", self.line),
            None => format!("line {}", self.line),
        }
    }
}

/// What was taken over.
#[derive(Debug, Default)]
pub struct Imported {
    /// The SAs; policies number them by their places.
    pub sas: Vec<ImportedSa>,
    /// The policies, the first that matches decides.
    pub policies: Vec<Policy>,
    /// What was not, in the order of the text.
    pub remarks: Vec<Remark>,
}

impl Imported {
    /// Notes what is lost.
    fn lose(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        self.remarks.push(Remark { file: None, line, text: shown(text), reason: reason.into(), lost: true });
    }

    /// Notes what has no meaning here, or is done otherwise.
    fn note(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        self.remarks.push(Remark { file: None, line, text: shown(text), reason: reason.into(), lost: false });
    }

    /// Leaves out SAs, of which no policy and no other SA makes use.
    fn keep_sas(&mut self, keep: impl Fn(usize) -> bool) {
        let mut places = Vec::with_capacity(self.sas.len());
        let mut next = 0;
        for place in 0..self.sas.len() {
            places.push(next);
            next += usize::from(keep(place));
        }
        let mut place = 0;
        self.sas.retain(|_| {
            place += 1;
            keep(place - 1)
        });
        for sa in &mut self.sas {
            sa.outer = sa.outer.map(|outer| places[outer]);
        }
        for policy in &mut self.policies {
            if let Action::Protect(sas) = &mut policy.action {
                sas.iter_mut().for_each(|session| session.0 = places[session.0 as usize] as u32);
            }
        }
    }

    fn finish(mut self) -> Imported {
        self.remarks.sort_by_key(|remark| remark.line);
        self.remarks.dedup();
        self
    }
}

/// Words whose value may be shown though it could be a piece of a key by its shape.
const HARMLESS: &[&str] = &[
    "src",
    "dst",
    "spi",
    "reqid",
    "in",
    "out",
    "protect",
    "pri",
    "priority",
    "proto",
    "sport",
    "dport",
    "type",
    "code",
    "mark",
    "output-mark",
    "if_id",
    "esn",
    "port",
    "port_id",
    "index",
    "uid",
    "addr",
    "replay-window",
    "pcpu-num",
    "tfcpad",
];

/// Words behind which a key stands, with the name of an algorithm before it or without.
const SECRET: &[&str] = &["enc", "auth", "auth-trunc", "aead", "comp", "cipher_key", "auth_key", "aead_key"];

/// Words behind which everything is secret, in lower case: those of the files of daemons and of WireGuard.
const PHRASES: &[&str] = &[
    "psk",
    "secret",
    "password",
    "passphrase",
    "rsa",
    "ecdsa",
    "eap",
    "xauth",
    "pin",
    "privatekey",
    "presharedkey",
    "key",
];

/// A line as it may be shown: no part of a key, whole or broken. What could be one by its place or its shape is hidden.
fn shown(text: &str) -> String {
    let (mut secret, mut phrase, mut before) = (false, false, "");
    let words = text.split_whitespace().map(|word| {
        // A name of an algorithm has brackets or a dash; the word behind a key that says what follows is a name too.
        let named = word.contains(['(', '-', '_']) && !word.contains(':');
        let hidden = phrase
            || (secret && !named)
            || (is_like_key(word) && !HARMLESS.contains(&before))
            || is_like_secret(word);
        let bare = word.trim_start_matches([':', '"', '=']);
        let (head, rest) = bare.split_at(bare.find(|one: char| !one.is_alphanumeric()).unwrap_or(bare.len()));
        let is_phrase = PHRASES.contains(&head.to_lowercase().as_str()) && rest.starts_with([':', '"', '\'']);
        // Behind the quote or the colon, the secret begins within the word.
        let begins = is_phrase && !rest.trim_matches([':', '"', '=', '\'']).is_empty();
        phrase |= is_phrase || PHRASES.contains(&bare.trim_matches([':', '"', '=']).to_lowercase().as_str());
        if SECRET.contains(&word) {
            secret = true;
        } else if HARMLESS.contains(&word) || word.ends_with("_algo") || word == "mode" {
            secret = false;
        }
        before = word;
        match word.split_once('=') {
            // Without a space between the two.
            Some((name, value))
                if !value.is_empty()
                    && (is_secret_name(name) || is_like_key(value) || is_like_secret(value)) =>
            {
                phrase |= is_phrase_name(name);
                format!("{}=***", if is_like_secret(name) { "***" } else { name })
            }
            _ if begins => format!("{head}***"),
            _ if hidden && !HARMLESS.contains(&word) && !SECRET.contains(&word) && word != "mode" => {
                "***".to_owned()
            }
            _ => word.to_owned(),
        }
    });
    mask::shown(&words.collect::<Vec<_>>().join(" "))
}

/// A value as it may be shown, where it stands in the place of an address or a word: one that has the shape of a key is hidden.
fn shown_value(word: &str) -> String {
    if is_like_secret(word) { "***".to_owned() } else { mask::shown(word) }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.contains(&name.as_str()) || is_phrase_name(&name)
}

/// Whether what follows may have spaces.
fn is_phrase_name(name: &str) -> bool {
    let name = name.to_lowercase();
    // `rekey = no` has no key.
    !SECRET.contains(&name.as_str()) && name != "rekey" && PHRASES.iter().any(|phrase| name.ends_with(phrase))
}

/// Whether a word has the shape of a key wherever it stands: many hex digits with anything between them, or base64.
fn is_like_secret(word: &str) -> bool {
    const HEX_MIN: usize = 16;
    const BASE64_MIN: usize = 20;
    let word = word.trim_matches(['"', '\'', '[', ']', '{', '}', ',', ';']);
    let digits = word.trim_start_matches("0x").trim_start_matches("0X");
    let is_between = |byte: &u8| matches!(byte, b':' | b'_' | b'-' | b',');
    let count = digits.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_hex = count >= HEX_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || is_between(&byte));
    // Addresses of IPv6, their prefixes and ranges may have as many.
    let is_part = |part: &str| part.parse::<std::net::IpAddr>().is_ok() || part.parse::<u8>().is_ok();
    let is_address = word.split(['/', '-']).all(is_part);
    let is_base64 = word.len() >= BASE64_MIN
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
        && word.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'='))
        && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_hex && !is_address) || is_base64
}

/// Whether a word has the digits of a key, with colons between them or without.
fn is_like_key(word: &str) -> bool {
    let word = word.strip_prefix("0x").unwrap_or(word).trim_matches([',', '\\']);
    word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
}

/// Whether the keys are those of the suite; what is wrong in words.
fn check_keys(suite: Suite, key: &str, auth_key: &str) -> Result<(), String> {
    let bytes = |text: &str| -> Option<SecretBytes> {
        let digit = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let even = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut bytes = Vec::with_capacity(text.len() / 2);
        for at in (0..text.len()).step_by(2).filter(|_| even) {
            bytes.push(digit(at)?);
        }
        even.then(|| SecretBytes::new(bytes))
    };
    let (Some(key), Some(auth_key)) = (bytes(key), bytes(auth_key)) else {
        return Err("a key is not hex".to_owned());
    };
    SaKeys::new(suite, &key, &auth_key).map(|_| ()).map_err(|error| error.to_string())
}

/// The name of an SA.
fn name(direction: Direction, spi: u32) -> String {
    let word = if direction == Direction::Seal { "out" } else { "in" };
    format!("{word}-{spi:08x}")
}
