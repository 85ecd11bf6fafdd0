//! Other systems' security associations and policies, taken over into a gateway's file.
//!
//! [`xfrm`] reads what `ip xfrm state` and `ip xfrm policy` print, [`secgw`] the configuration of DPDK's ipsec-secgw.
//! What is not taken over, or not as it was meant, is a [`Remark`] with its line: nothing is lost in silence.
//! [`write()`] makes a gateway's file of it, keys in files of their own unless they are wanted inside.

pub mod secgw;
mod write;
pub mod xfrm;

use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_ipsec::{Policy, SaConfig};
use zeroize::Zeroizing;

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
    /// The line, from 1.
    pub line: usize,
    /// What stands there, keys replaced by asterisks.
    pub text: String,
    /// Why.
    pub reason: String,
    /// Whether what comes out protects less, more, or otherwise than what went in.
    pub lost: bool,
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
        self.remarks.push(Remark { line, text: shown(text), reason: reason.into(), lost: true });
    }

    /// Notes what has no meaning here, or is done otherwise.
    fn note(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        self.remarks.push(Remark { line, text: shown(text), reason: reason.into(), lost: false });
    }

    fn finish(mut self) -> Imported {
        self.remarks.sort_by_key(|remark| remark.line);
        self.remarks.dedup();
        self
    }
}

/// A line as it may be shown: no keys, and nothing that looks like one.
fn shown(text: &str) -> String {
    // Keys with colons between their bytes (secgw) are no run of hex digits.
    let words = text.split_whitespace().map(|word| match word.split(':').count() {
        parts if parts >= 8 && word.split(':').all(|part| part.len() <= 2) => "***".to_owned(),
        _ => word.to_owned(),
    });
    mask::shown(&words.collect::<Vec<_>>().join(" "))
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
