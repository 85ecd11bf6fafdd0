//! Reads one section of a configuration by the rules of the schema.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use forebay_diagnostics::{Findings, Place, Problem, nearest};
use forebay_scenario::tree::Node;
use forebay_scenario::{Decimal, Section, Table, Unit, Value, tree};
use forebay_time::Duration;

use super::diff::Setting;
use super::schema::{self, Absent, DISABLED, Key, Part, Takes};
use forebay_sas::{Findings as FileFindings, Problem as FileProblem, Section as SaSection, mask};

/// What all sections of one file share.
pub(super) struct Context<'a> {
    /// What paths are relative to.
    pub directory: &'a Path,
    /// What the sections' values are found wrong.
    pub findings: RefCell<Findings>,
    /// What is said of keys, and warnings.
    pub notes: RefCell<FileFindings>,
    /// Every value, with its defaults.
    pub settings: RefCell<Vec<Setting>>,
}

impl Context<'_> {
    /// Adds a warning.
    pub fn advise(&self, message: String, help: &str, place: &Place) {
        let problem = FileProblem::Advice { message, help: help.to_owned() };
        self.notes.borrow_mut().add(problem, place.span.clone(), "");
    }
}

/// The tables of a section, in the order of the file: none, one, or of `[[...]]` any number.
pub(super) fn tables<'a>(
    top: &'a Table,
    section: &'static str,
    context: &Context<'_>,
) -> Vec<(&'a Table, Place)> {
    let Some(part) = schema::parts(section).next() else { return vec![] };
    let Some(node) = top.get(section) else { return vec![] };
    let nodes = match &node.value {
        Value::List(list) if part.several => list.iter().collect(),
        _ => vec![node],
    };
    let mut tables = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Table(table) => tables.push((table, node.place.clone())),
            other => {
                let expected = format!("write `{}` and its lines below", part.header());
                let (key, found) = (section.to_owned(), other.type_name());
                let problem = Problem::WrongType { key, found, expected };
                context.findings.borrow_mut().add(problem, node.place.clone());
            }
        }
    }
    tables
}

/// One table of a section: what was given, and the default of what was not.
pub(super) struct Reader<'a> {
    given: &'a Table,
    filled: Table,
    place: Place,
    parts: Vec<&'static Part>,
    context: &'a Context<'a>,
}

impl<'a> Reader<'a> {
    /// The table of a section without kinds, which is at `place`; unknown keys become findings.
    pub fn new(section: &'static str, given: &'a Table, place: Place, context: &'a Context<'a>) -> Self {
        let common = schema::parts(section).filter(|part| part.kind.is_empty());
        let mut reader = Reader { given, filled: Table::default(), place, parts: common.collect(), context };
        reader.fill();
        reader
    }

    /// The table of a section whose keys depend on the word of `kind`, and that word.
    pub fn of_kind(
        section: &'static str,
        kind: &'static str,
        given: &'a Table,
        place: Place,
        context: &'a Context<'a>,
    ) -> (Self, Option<&'static str>) {
        let mut reader = Reader::new(section, given, place, context);
        let word = reader.word(kind);
        if let Some(word) = word {
            reader.parts.extend(schema::parts(section).filter(|part| part.kind == word));
            reader.fill();
        }
        reader.report_unknown(word);
        reader.report_disabled();
        reader.record();
        (reader, word)
    }

    /// Reports every key that means nothing here; for a section without kinds.
    pub fn checked(self) -> Self {
        self.report_unknown(Some(""));
        self.report_disabled();
        self.record();
        self
    }

    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.parts.iter().flat_map(|part| part.keys)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    fn section(&self) -> &'static str {
        self.parts.first().map_or("", |part| part.section)
    }

    /// Puts the defaults beside what is given.
    fn fill(&mut self) {
        let keys: Vec<_> = self.keys().collect();
        let known = |name: &str| keys.iter().any(|key| key.name == name);
        self.filled = Table(self.given.0.iter().filter(|(name, ..)| known(name)).cloned().collect());
        for key in &keys {
            if let Absent::Is(value) = key.absent
                && self.given.get(key.name).is_none()
            {
                let mut nothing = Findings::default();
                let document = tree::parse(&format!("{} = {value}", key.name), 0, &mut nothing);
                let moved = document.0.into_iter().map(|(name, _, node)| {
                    (name, self.place.clone(), Node { place: self.place.clone(), ..node })
                });
                self.filled.0.extend(moved);
            }
        }
    }

    /// Notes the values, when all keys are known.
    fn record(&self) {
        let Some(part) = self.parts.first() else { return };
        let mut settings = self.context.settings.borrow_mut();
        let mut section = if part.section.is_empty() { String::new() } else { part.header() };
        if part.several {
            let mut seen: Vec<&str> = settings.iter().map(|one| one.section.as_str()).collect();
            seen.dedup();
            let number = 1 + seen.iter().filter(|one| one.starts_with(&section)).count();
            section = format!("{section} {number}");
        }
        for key in self.keys() {
            if let Some(node) = self.filled.get(key.name) {
                let value = toml_of(&node.value);
                settings.push(Setting { section: section.clone(), key: key.name, value });
            }
        }
    }

    /// Refuses keys that another key disables.
    fn report_disabled(&self) {
        for row in DISABLED.iter().filter(|row| row.section == self.section()) {
            let Some(value) = self.filled.get(row.by).map(|node| toml_of(&node.value)) else { continue };
            if !row.values.contains(&value.as_str()) {
                continue;
            }
            for key in row.keys.iter().filter(|key| self.has(key)) {
                let message = format!("`{key}` has no effect with `{} = {value}`", row.by);
                self.conflict(key, message, format!("remove `{key}`, or set `{}` to another value", row.by));
            }
        }
    }

    /// Without the word of its kind only what no kind has is reported.
    fn report_unknown(&self, kind: Option<&str>) {
        let section = self.section();
        let elsewhere = |name: &str| {
            let mut parts = schema::PARTS.iter().filter(|part| part.keys.iter().any(|key| key.name == name));
            parts.clone().find(|part| part.section == section).or_else(|| parts.next())
        };
        for (name, place, _) in self.given.0.iter().filter(|(name, ..)| self.key(name).is_none()) {
            // At the top of the file sections are keys; who reads them looks there.
            let is_section = section.is_empty() && (schema::parts(name).next().is_some() || is_sa(name));
            let renamed = schema::RENAMED.iter().find(|(old, ..)| section.is_empty() && old == name);
            if let Some((_, old, new)) = renamed {
                let (message, help) = (format!("unknown section `{old}`"), format!("write `{new}` instead"));
                let problem = Problem::Conflict { message, help };
                self.context.findings.borrow_mut().add(problem, place.clone());
                continue;
            }
            let belongs = elsewhere(name);
            match belongs {
                _ if is_section => {}
                Some(part) if part.section == section => {
                    if let Some(kind) = kind {
                        let word = if section == "keys" { "source" } else { "kind" };
                        let message =
                            format!("`{name}` does not apply to {} of {word} `{kind}`", part.header());
                        let help =
                            format!("remove it, or set {word} to `{}`, which it applies to", part.kind);
                        self.context
                            .findings
                            .borrow_mut()
                            .add(Problem::Conflict { message, help }, place.clone());
                    }
                }
                Some(part) => {
                    let problem = FileProblem::Misplaced { key: mask::shown(name), section: part.header() };
                    self.context.notes.borrow_mut().add(problem, place.span.clone(), "");
                }
                None if SaSection::with(name).is_some() && !is_sa(name) => {
                    let section = SaSection::with(name).map_or("", SaSection::header).to_owned();
                    let problem = FileProblem::Misplaced { key: mask::shown(name), section };
                    self.context.notes.borrow_mut().add(problem, place.span.clone(), "");
                }
                None => {
                    let sections = schema::sections().map(|part| part.section).filter(|_| section.is_empty());
                    let known = self.keys().map(|key| key.name).chain(sections);
                    let key = mask::shown(name);
                    let nearest = nearest(&key, known).unwrap_or_default().to_owned();
                    self.context
                        .findings
                        .borrow_mut()
                        .add(Problem::UnknownKey { key, nearest }, place.clone());
                }
            }
        }
    }

    /// The values, with defaults.
    pub fn values(&self) -> Section<'_> {
        let name = match self.parts.first() {
            Some(part) => format!("this {}", part.header()),
            None => String::new(),
        };
        // What is unknown has been reported, and is not among the values.
        let known: Vec<_> = self.keys().map(|key| key.name).collect();
        Section::new(&self.filled, name, self.place.clone(), &known, &self.context.findings)
    }

    /// Whether this section has such a key.
    pub fn knows(&self, name: &str) -> bool {
        self.key(name).is_some()
    }

    /// Whether the file gives the key.
    pub fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some()
    }

    /// Where the key's value stands, or the section.
    pub fn place_of(&self, name: &str) -> Place {
        self.given.get(name).map_or_else(|| self.place.clone(), |node| node.place.clone())
    }

    /// What a key says does not fit with the rest.
    pub fn conflict(&self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        let problem = Problem::Conflict { message: message.into(), help: help.into() };
        self.context.findings.borrow_mut().add(problem, self.place_of(name));
    }

    /// Whether there is a value; a required one that is absent is a finding.
    fn asked(&self, name: &'static str) -> Option<&'static Key> {
        let key = self.key(name)?;
        if self.filled.get(name).is_none() {
            if matches!(key.absent, Absent::Required) {
                let part = self.parts[0].header();
                let message = format!("{part} has no `{name}`");
                self.conflict("", message, format!("add `{}`: {}", key.line(), key.meaning));
            }
            return None;
        }
        Some(key)
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &'static str) -> Option<bool> {
        self.asked(name)?;
        self.values().flag(name)
    }

    /// A string that is not empty.
    pub fn text(&self, name: &'static str) -> Option<String> {
        self.asked(name)?;
        let text = self.values().text(name)?.to_owned();
        if text.trim().is_empty() {
            self.conflict(name, format!("`{name}` is empty"), "remove the key, or give a value");
            return None;
        }
        Some(text)
    }

    /// One of the words that the key takes.
    pub fn word(&self, name: &'static str) -> Option<&'static str> {
        let Takes::Word(words) = self.asked(name)?.takes else { return None };
        self.values().word(name, words)
    }

    /// A whole number of the key's range.
    pub fn whole(&self, name: &'static str) -> Option<u64> {
        let Takes::Whole(unit, least, most) = self.asked(name)?.takes else { return None };
        self.values().whole(name, unit, least, most)
    }

    /// [`Reader::whole`] for what counts things in memory.
    pub fn count(&self, name: &'static str) -> Option<usize> {
        self.whole(name).and_then(|whole| usize::try_from(whole).ok())
    }

    /// A time of the key's range.
    pub fn time(&self, name: &'static str) -> Option<Duration> {
        let Takes::Time(least, most) = self.asked(name)?.takes else { return None };
        let time = self.values().time(name)?;
        let bound = |text| Decimal::parse_quantity(text, Unit::Time).ok()?.scaled(12).map(Duration);
        if !(bound(least)?..=bound(most)?).contains(&time) {
            let (key, found) = (name.to_owned(), time.to_string());
            let problem = Problem::OutOfRange { key, found, expected: format!("expected {least} to {most}") };
            self.context.findings.borrow_mut().add(problem, self.place_of(name));
            return None;
        }
        Some(time)
    }

    /// A number of the key's range.
    pub fn number(&self, name: &'static str) -> Option<f64> {
        let Takes::Number(least, most) = self.asked(name)?.takes else { return None };
        let number = self.values().decimal(name, Unit::None)?.as_f64();
        if !(least..=most).contains(&number) {
            let (key, found) = (name.to_owned(), number.to_string());
            let problem = Problem::OutOfRange { key, found, expected: format!("expected {least} to {most}") };
            self.context.findings.borrow_mut().add(problem, self.place_of(name));
            return None;
        }
        Some(number)
    }

    /// A path, made absolute by the directory of the file as far as that is.
    pub fn path(&self, name: &'static str) -> Option<PathBuf> {
        self.text(name).map(|path| self.context.directory.join(path))
    }

    /// A string that means a `T`.
    pub fn parsed<T: FromStr>(&self, name: &'static str, expected: &'static str) -> Option<T> {
        self.asked(name)?;
        let values = self.values();
        let text = values.text(name)?;
        let read = text.parse().ok();
        if read.is_none() {
            self.bad(name, text, expected, self.place_of(name));
        }
        read
    }

    /// An address with a port.
    pub fn socket(&self, name: &'static str) -> Option<SocketAddr> {
        self.parsed(name, "expected an address with a port: \"192.0.2.1:4500\", \"[::]:4500\"")
    }

    /// Values of a list, or a single one; `read` makes something of each and reports what it cannot.
    pub fn each<T>(
        &self,
        name: &'static str,
        read: impl Fn(&Section<'_>, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.asked(name)?;
        let node = self.filled.get(name)?;
        let nodes = match &node.value {
            Value::List(list) => list.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let values = self.values();
        // All are looked at, so that all that is wrong is said.
        let read: Vec<Option<T>> = nodes.iter().map(|node| read(&values, node)).collect();
        read.into_iter().collect()
    }

    /// Strings of a list that mean a `T` each.
    pub fn each_parsed<T: FromStr>(&self, name: &'static str, expected: &'static str) -> Option<Vec<T>> {
        self.each(name, |_, node| {
            let Value::Text(text) = &node.value else {
                let (key, found) = (name.to_owned(), node.value.type_name());
                let problem = Problem::WrongType { key, found, expected: expected.to_owned() };
                self.context.findings.borrow_mut().add(problem, node.place.clone());
                return None;
            };
            let read = text.parse().ok();
            if read.is_none() {
                self.bad(name, text, expected, node.place.clone());
            }
            read
        })
    }

    /// A word for which something special holds.
    pub fn is_word(&self, name: &str, word: &str) -> bool {
        matches!(self.filled.get(name), Some(Node { value: Value::Text(text), .. }) if text == word)
    }

    /// Reports a word that names none of `expected`.
    pub fn unknown_word(&self, name: &str, found: &str, expected: Vec<String>) {
        let problem = Problem::UnknownWord { key: name.to_owned(), found: mask::shown(found), expected };
        self.context.findings.borrow_mut().add(problem, self.place_of(name));
    }

    /// Reports a value that means nothing.
    pub fn bad(&self, name: &str, found: &str, expected: &'static str, place: Place) {
        let problem = Problem::BadQuantity { key: name.to_owned(), found: mask::shown(found), expected };
        self.context.findings.borrow_mut().add(problem, place);
    }

    /// Says something that hinders nothing.
    pub fn advise(&self, name: &str, message: impl Into<String>, help: &str) {
        self.context.advise(message.into(), help, &self.place_of(name));
    }
}

/// Whether it is a table of the SAs file.
fn is_sa(name: &str) -> bool {
    matches!(name, "sa" | "policy")
}

/// A value as TOML has it.
fn toml_of(value: &Value) -> String {
    match value {
        Value::Flag(flag) => flag.to_string(),
        Value::Number(digits) => digits.clone(),
        Value::Text(text) => toml::Value::String(mask::shown(text)).to_string(),
        Value::List(list) => {
            let inside: Vec<_> = list.iter().map(|node| toml_of(&node.value)).collect();
            format!("[{}]", inside.join(", "))
        }
        Value::Table(_) => "{ ... }".to_owned(),
        Value::Date => "a date".to_owned(),
    }
}
