//! One table of the file, a `[[sa]]` or what else there is, value by value.

use std::net::IpAddr;
use std::ops::Range;

use forebay_diagnostics::nearest;
use toml::de::{DeTable, DeValue};

use super::errors::Findings;
use super::host_name::{HostName, Peer};
use super::mask::shown;
use super::others::OtherKeys;
use super::problem::Problem;
use super::schema::{PARTS, SECRET};

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// `[[sa]]`.
    Sa,
    /// `[[policy]]`.
    Policy,
    /// `[sa.iptfs]`.
    Iptfs,
}

impl Section {
    const ALL: [Section; 3] = [Section::Sa, Section::Policy, Section::Iptfs];

    pub(super) fn keys(self) -> impl Iterator<Item = &'static str> {
        let (section, inside) = match self {
            Section::Sa => ("sa", Some("iptfs")),
            Section::Policy => ("policy", None),
            Section::Iptfs => ("sa.iptfs", None),
        };
        let parts = PARTS.iter().filter(move |part| part.section == section);
        parts.flat_map(|part| part.keys).map(|key| key.name).chain(inside)
    }

    pub(super) fn has(self, key: &str) -> bool {
        self.keys().any(|known| known == key)
    }

    /// The section as it is written.
    pub fn header(self) -> &'static str {
        match self {
            Section::Sa => "[[sa]]",
            Section::Policy => "[[policy]]",
            Section::Iptfs => "[sa.iptfs]",
        }
    }

    /// A section that has such a key.
    pub fn with(key: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| section.has(key))
    }
}

/// Whether the key means something anywhere.
pub(super) fn is_known(key: &str, others: &OtherKeys) -> bool {
    Section::with(key.strip_prefix("iptfs.").unwrap_or(key)).is_some() || (others.is_known)(key)
}

/// Whether the values of this key may be shown.
pub(super) fn is_plain(key: &str, others: &OtherKeys) -> bool {
    match key.strip_prefix("iptfs.") {
        Some(inside) => Section::Iptfs.has(inside),
        None => is_known(key, others) && !SECRET.contains(&key) && !key.ends_with(".key"),
    }
}

/// A value with its place in the file.
pub(super) type Placed<T> = (T, Range<usize>);

/// A table, asked for its values; what is wrong with one goes to the findings and makes it `None`.
pub(super) struct Table<'a, 'i> {
    table: &'a DeTable<'i>,
    header: Range<usize>,
    section: Section,
    /// Its name, `sa-` or `policy-` and its number if it has none.
    pub(super) name: String,
}

impl<'a, 'i> Table<'a, 'i> {
    /// Table number `number`, from 1, of its section.
    pub(super) fn new(section: Section, table: &'a DeTable<'i>, header: Range<usize>, number: usize) -> Self {
        let name = table.get("name").and_then(|value| value.get_ref().as_str());
        let name = name.map_or_else(
            || match section {
                Section::Policy => format!("policy-{number}"),
                _ => format!("sa-{number}"),
            },
            str::to_owned,
        );
        Table { table, header, section, name }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where the value of `key` stands, or the table if it has none.
    pub(super) fn span(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.header.clone(), |value| value.span())
    }

    pub(super) fn missing(&self, key: &'static str, findings: &mut Findings) {
        let problem = Problem::MissingKey { of: self.section, name: shown(&self.name), key };
        let label = if self.section == Section::Policy { "this policy" } else { "this SA" };
        findings.add(problem, self.header.clone(), label);
    }

    pub(super) fn report_unknown_keys(&self, findings: &mut Findings) {
        for key in self.table.keys().filter(|key| !self.section.has(key.get_ref())) {
            let word = shown(key.get_ref());
            let nearest = nearest(&word, self.section.keys()).unwrap_or_default().to_owned();
            let belongs = Section::with(key.get_ref());
            let problem = Problem::UnknownKey { key: word, nearest, within: Some(self.section), belongs };
            findings.add(problem, key.span(), "");
        }
    }

    /// What `read` makes of a key that is there, otherwise its default.
    pub(super) fn or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&'static str) -> Option<T>,
    ) -> Option<T> {
        if self.has(key) { read(key) } else { Some(default) }
    }

    /// The key if it is there; its absence is a finding.
    pub(super) fn required(&self, key: &'static str, findings: &mut Findings) -> Option<&'static str> {
        if !self.has(key) {
            self.missing(key, findings);
            return None;
        }
        Some(key)
    }

    /// A value that `read` understands; `expected` says what that would be.
    pub(super) fn value<T>(
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

    /// A name, which stands in lines of the log and of tables.
    pub(super) fn name_of(&self, key: &'static str, findings: &mut Findings) -> Option<Placed<&'a str>> {
        let (name, span) = self.text(key, findings)?;
        if name.trim().is_empty() || name.contains(char::is_control) {
            findings.add(Problem::BadName, span, "expected visible characters");
            return None;
        }
        Some((name, span))
    }

    pub(super) fn flag(&self, key: &'static str, default: bool, findings: &mut Findings) -> Option<bool> {
        self.or(key, default, |key| {
            self.value(key, "expected `true` or `false`", findings, DeValue::as_bool).map(|(flag, _)| flag)
        })
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

    /// One of `words`, or the default.
    pub(super) fn word_or<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
        default: T,
        findings: &mut Findings,
    ) -> Option<T> {
        self.or(key, default, |key| self.word(key, words, findings))
    }

    /// The elements of a list in brackets, each with its place.
    pub(super) fn list(
        &self,
        key: &'static str,
        expected: &'static str,
        findings: &mut Findings,
    ) -> Option<Vec<Placed<&'a DeValue<'i>>>> {
        let (list, _) = self.value(key, expected, findings, DeValue::as_array)?;
        Some(list.iter().map(|element| (element.get_ref(), element.span())).collect())
    }

    /// One string, or a list of them.
    pub(super) fn texts(&self, key: &'static str, findings: &mut Findings) -> Option<Vec<Placed<&'a str>>> {
        const EXPECTED: &str = "expected a string in quotes, or several in brackets";
        let (value, span) = self
            .value(key, EXPECTED, findings, |value| (value.is_str() || value.is_array()).then_some(value))?;
        let Some(list) = value.as_array() else { return Some(vec![(value.as_str()?, span)]) };
        let texts: Vec<_> = list
            .iter()
            .map(|element| {
                let text = element.get_ref().as_str();
                if text.is_none() {
                    let found = element.get_ref().type_str();
                    findings.add(
                        Problem::WrongType { key, found, expected: EXPECTED },
                        element.span(),
                        EXPECTED,
                    );
                }
                Some((text?, element.span()))
            })
            .collect();
        texts.into_iter().collect()
    }

    /// A table within this one.
    pub(super) fn inside(
        &self,
        key: &'static str,
        section: Section,
        findings: &mut Findings,
    ) -> Option<Table<'a, 'i>> {
        let (table, header) = self.value(key, "expected a table", findings, DeValue::as_table)?;
        Some(Table { table, header, section, name: self.name.clone() })
    }

    pub(super) fn address(&self, key: &'static str, findings: &mut Findings) -> Option<Placed<IpAddr>> {
        let (text, span) = self.required(key, findings).and_then(|key| self.text(key, findings))?;
        match text.parse() {
            Ok(address) => Some((address, span)),
            Err(_) => {
                let problem = Problem::BadAddress { key, found: shown(text) };
                findings.add(problem, span, "expected an IPv4 or IPv6 address");
                None
            }
        }
    }

    /// An address or, where something resolves it, the name of a host.
    pub(super) fn peer(&self, key: &'static str, findings: &mut Findings) -> Option<Placed<Peer>> {
        if !findings.others.takes_names {
            return self.address(key, findings).map(|(address, span)| (Peer::Address(address), span));
        }
        let (text, span) = self.required(key, findings).and_then(|key| self.text(key, findings))?;
        if let Ok(address) = text.parse() {
            return Some((Peer::Address(address), span));
        }
        match text.parse::<HostName>() {
            Ok(name) => Some((Peer::Name(name), span)),
            Err(why) => {
                let problem = Problem::BadPeer { key, found: shown(text), why };
                findings.add(problem, span, "expected an IP address or a host name");
                None
            }
        }
    }
}
