//! One `[[sa]]` table, value by value.

use std::net::IpAddr;
use std::ops::Range;

use forebay_crypto::nearest;
use forebay_ipsec::{SelectorError, TrafficSelector};
use toml::de::{DeTable, DeValue};

use super::errors::Findings;
use super::mask::shown;
use super::problem::Problem;

/// Every key of a `[[sa]]`.
pub(super) const KNOWN: &[&str] = &[
    "name",
    "direction",
    "spi",
    "protocol",
    "mode",
    "proposal",
    "local",
    "remote",
    "esn",
    "replay_window",
    "encapsulation",
    "allow_weak",
    "local_ts",
    "remote_ts",
    "key_file",
    "auth_key_file",
    "key",
    "auth_key",
];

/// Those whose values may be shown: all but the last two.
pub(super) const PLAIN: &[&str] = KNOWN.split_at(KNOWN.len() - 2).0;

/// A value with its place in the file.
pub(super) type Placed<T> = (T, Range<usize>);

/// One `[[sa]]`, asked for its values; what is wrong with one goes to the findings and makes it `None`.
pub(super) struct SaTable<'a, 'i> {
    table: &'a DeTable<'i>,
    header: Range<usize>,
    /// Its name, `sa-` and its number if it has none.
    pub(super) name: String,
}

impl<'a, 'i> SaTable<'a, 'i> {
    pub(super) fn new(table: &'a DeTable<'i>, header: Range<usize>, number: usize) -> Self {
        let name = table.get("name").and_then(|value| value.get_ref().as_str());
        SaTable { table, header, name: name.map_or_else(|| format!("sa-{number}"), str::to_owned) }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where the value of `key` stands, or the SA if it has none.
    pub(super) fn span(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.header.clone(), |value| value.span())
    }

    pub(super) fn missing(&self, key: &'static str, findings: &mut Findings) {
        let problem = Problem::MissingKey { sa: shown(&self.name), key };
        findings.add(problem, self.header.clone(), "this SA");
    }

    pub(super) fn report_unknown_keys(&self, findings: &mut Findings) {
        for key in self.table.keys().filter(|key| !KNOWN.contains(&&**key.get_ref())) {
            let word = shown(key.get_ref());
            let nearest = nearest(&word, KNOWN.iter().map(|known| known.to_string())).unwrap_or_default();
            findings.add(Problem::UnknownKey { key: word, nearest, misplaced: false }, key.span(), "");
        }
    }

    /// A value that `read` understands; `expected` says what that would be.
    fn value<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        findings: &mut Findings,
        read: impl FnOnce(&'a DeValue<'i>) -> Option<T>,
    ) -> Option<Placed<T>> {
        let value = self.table.get(key)?;
        let read = read(value.get_ref());
        if read.is_none() {
            let found = value.get_ref().type_str();
            findings.add(Problem::WrongType { key, found, expected }, value.span(), expected);
        }
        Some((read?, value.span()))
    }

    pub(super) fn text(&self, key: &'static str, findings: &mut Findings) -> Option<Placed<&'a str>> {
        self.value(key, "expected a string in quotes", findings, DeValue::as_str)
    }

    pub(super) fn flag(&self, key: &'static str, default: bool, findings: &mut Findings) -> Option<bool> {
        if !self.has(key) {
            return Some(default);
        }
        self.value(key, "expected `true` or `false`", findings, DeValue::as_bool).map(|(flag, _)| flag)
    }

    /// One of `words`, by its meaning.
    pub(super) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
        findings: &mut Findings,
    ) -> Option<T> {
        let (text, span) = self.text(key, findings)?;
        let meaning = words.iter().find(|(word, _)| *word == text).map(|&(_, meaning)| meaning);
        if meaning.is_none() {
            let expected = words.iter().map(|&(word, _)| word).collect();
            let problem = Problem::UnknownWord { key, found: shown(text), expected };
            findings.add(problem, span, "not one of the words for this");
        }
        meaning
    }

    /// A number, as an integer or as a string that holds one, with how it was written;
    /// negative ones and those above 64 bits are `None` inside.
    pub(super) fn number(
        &self,
        key: &'static str,
        findings: &mut Findings,
    ) -> Option<Placed<(Option<u64>, String)>> {
        self.value(key, "expected a number", findings, |value| match value {
            DeValue::Integer(number) => {
                let value = u64::from_str_radix(number.as_str(), number.radix()).ok();
                Some((value, shown(&number.to_string())))
            }
            DeValue::String(text) => {
                let value = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                Some((value.ok(), format!("\"{}\"", shown(text))))
            }
            _ => None,
        })
    }

    pub(super) fn address(&self, key: &'static str, findings: &mut Findings) -> Option<Placed<IpAddr>> {
        if !self.has(key) {
            self.missing(key, findings);
        }
        let (text, span) = self.text(key, findings)?;
        match text.parse() {
            Ok(address) => Some((address, span)),
            Err(_) => {
                let problem = Problem::BadAddress { key, found: shown(text) };
                findings.add(problem, span, "expected an IPv4 or IPv6 address");
                None
            }
        }
    }

    /// A list of traffic selectors, empty if there is none.
    pub(super) fn selectors(
        &self,
        key: &'static str,
        findings: &mut Findings,
    ) -> Option<Vec<TrafficSelector>> {
        if !self.has(key) {
            return Some(vec![]);
        }
        let (list, _) =
            self.value(key, "expected a list of selectors in brackets", findings, DeValue::as_array)?;
        let selectors: Vec<Option<TrafficSelector>> =
            list.iter().map(|element| selector(key, element.get_ref(), element.span(), findings)).collect();
        selectors.into_iter().collect()
    }
}

fn selector(
    key: &'static str,
    value: &DeValue<'_>,
    span: Range<usize>,
    findings: &mut Findings,
) -> Option<TrafficSelector> {
    const EXPECTED: &str = "expected a selector in quotes";
    let Some(text) = value.as_str() else {
        findings.add(Problem::WrongType { key, found: value.type_str(), expected: EXPECTED }, span, EXPECTED);
        return None;
    };
    match text.parse() {
        Ok(selector) => return Some(selector),
        Err(SelectorError::HostBits { found }) => {
            findings.add(Problem::HostBits { key, found }, span, "expected the network's own address");
        }
        Err(error) => {
            // The words of the error quote the file.
            let problem = Problem::BadSelector { key, found: shown(text), error: shown(&error.to_string()) };
            findings.add(problem, span, error.expected());
        }
    }
    None
}
