//! One table of a scenario, asked for its values; what is wrong with one leaves a finding.

use std::cell::RefCell;

use forebay_diagnostics::{Findings, Place, Problem, nearest};
use forebay_time::Duration;

use crate::decimal::{Decimal, NoQuantity, Unit};
use crate::tree::{Node, Table, Value};

/// A table with what it is called and where it begins. A value that is wrong counts as absent after
/// its finding, so that reading goes on.
pub struct Section<'a> {
    table: &'a Table,
    /// What it is called in messages.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    findings: &'a RefCell<Findings>,
}

impl<'a> Section<'a> {
    /// Reports every key that is not one of `known`.
    pub fn new(
        table: &'a Table,
        name: String,
        place: Place,
        known: &[&'static str],
        findings: &'a RefCell<Findings>,
    ) -> Section<'a> {
        for (key, place, _) in table.0.iter().filter(|(key, ..)| !known.contains(&key.as_str())) {
            let nearest = nearest(key, known.iter().copied()).unwrap_or_default().to_owned();
            findings.borrow_mut().add(Problem::UnknownKey { key: key.clone(), nearest }, place.clone());
        }
        Section { table, name, place, findings }
    }

    /// What has been found wrong so far, for the sections inside.
    pub fn findings(&self) -> &'a RefCell<Findings> {
        self.findings
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// A key's value as it was written.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// Where a key's value stands, or the section.
    pub fn place_of(&self, key: &str) -> Place {
        self.table.get(key).map_or_else(|| self.place.clone(), |node| node.place.clone())
    }

    /// Adds a problem at a place.
    pub fn report(&self, problem: Problem, place: Place) {
        self.findings.borrow_mut().add(problem, place);
    }

    /// A key that has no default is not there.
    pub fn missing(&self, key: &'static str, example: &'static str) {
        let problem = Problem::MissingKey { table: self.name.clone(), key, example };
        self.report(problem, self.place.clone());
    }

    /// What a key says does not fit with the rest.
    pub fn conflict(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let problem = Problem::Conflict { message: message.into(), help: help.into() };
        self.report(problem, self.place_of(key));
    }

    fn wrong_type(&self, key: &str, node: &Node, expected: &str) {
        let found = node.value.type_name();
        let problem = Problem::WrongType { key: key.to_owned(), found, expected: expected.to_owned() };
        self.report(problem, node.place.clone());
    }

    fn out_of_range(&self, key: &str, found: Decimal, expected: impl Into<String>) {
        let found = found.as_f64().to_string();
        let problem = Problem::OutOfRange { key: key.to_owned(), found, expected: expected.into() };
        self.report(problem, self.place_of(key));
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let node = self.table.get(key)?;
        match node.value {
            Value::Flag(flag) => Some(flag),
            _ => {
                self.wrong_type(key, node, "expected `true` or `false`");
                None
            }
        }
    }

    /// A string.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        let node = self.table.get(key)?;
        match &node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.wrong_type(key, node, "expected a string in quotes");
                None
            }
        }
    }

    /// One of `words`.
    pub fn word<'w>(&self, key: &str, words: &[&'w str]) -> Option<&'w str> {
        let text = self.text(key)?;
        let known = words.iter().copied().find(|&word| word == text);
        if known.is_none() {
            let expected = words.iter().map(|word| word.to_string()).collect();
            let problem = Problem::UnknownWord { key: key.to_owned(), found: text.to_owned(), expected };
            self.report(problem, self.place_of(key));
        }
        known
    }

    /// Strings: a list of them, or one.
    pub fn texts(&self, key: &str) -> Option<Vec<&'a str>> {
        const EXPECTED: &str = "expected a list of strings: [\"a\", \"b\"]";
        let node = self.table.get(key)?;
        match &node.value {
            Value::Text(text) => Some(vec![text]),
            Value::List(list) => {
                let texts = list.iter().map(|one| match &one.value {
                    Value::Text(text) => Some(text.as_str()),
                    _ => {
                        self.wrong_type(key, one, EXPECTED);
                        None
                    }
                });
                texts.collect()
            }
            _ => {
                self.wrong_type(key, node, EXPECTED);
                None
            }
        }
    }

    /// A list; `expected` is what to write if it is none.
    pub fn list(&self, key: &str, expected: &str) -> Option<&'a [Node]> {
        let node = self.table.get(key)?;
        match &node.value {
            Value::List(list) => Some(list),
            _ => {
                self.wrong_type(key, node, expected);
                None
            }
        }
    }

    /// A number with a unit, or without.
    pub fn decimal(&self, key: &str, unit: Unit) -> Option<Decimal> {
        self.decimal_of(key, self.table.get(key)?, unit)
    }

    /// [`Section::decimal`] of a value in a list.
    pub fn decimal_of(&self, key: &str, node: &Node, unit: Unit) -> Option<Decimal> {
        let (read, found) = match &node.value {
            Value::Number(digits) => (Decimal::parse(digits).ok_or(NoQuantity::NoNumber), digits),
            Value::Text(text) => (Decimal::parse_quantity(text, unit), text),
            _ => {
                self.wrong_type(key, node, unit.expected());
                return None;
            }
        };
        let expected = unit.expected();
        if read.is_err() {
            let problem = Problem::BadQuantity { key: key.to_owned(), found: found.clone(), expected };
            self.report(problem, node.place.clone());
        }
        read.ok()
    }

    /// A number above zero.
    pub fn positive(&self, key: &str, unit: Unit) -> Option<Decimal> {
        let number = self.decimal(key, unit)?;
        if number.is_negative() || number.is_zero() {
            self.out_of_range(key, number, "it has to be above zero");
            return None;
        }
        Some(number)
    }

    /// A number from zero on.
    pub fn not_negative(&self, key: &str, unit: Unit) -> Option<f64> {
        let number = self.decimal(key, unit)?;
        if number.is_negative() {
            self.out_of_range(key, number, "expected a number from 0 on");
            return None;
        }
        Some(number.as_f64())
    }

    /// A time from zero on, with its exact value.
    pub fn exact_time(&self, key: &str) -> Option<Decimal> {
        let number = self.decimal(key, Unit::Time)?;
        if number.scaled(12).is_none() {
            self.out_of_range(key, number, "expected 0 to 18 million seconds");
            return None;
        }
        Some(number)
    }

    /// A time from zero on, to the nearest picosecond.
    pub fn time(&self, key: &str) -> Option<Duration> {
        self.exact_time(key).and_then(|number| number.scaled(12)).map(Duration)
    }

    /// A whole number of a range.
    pub fn whole(&self, key: &str, unit: Unit, least: u64, most: u64) -> Option<u64> {
        self.whole_of(key, self.table.get(key)?, unit, least, most)
    }

    /// [`Section::whole`] of a value in a list.
    pub fn whole_of(&self, key: &str, node: &Node, unit: Unit, least: u64, most: u64) -> Option<u64> {
        let number = self.decimal_of(key, node, unit)?;
        let whole = number.as_whole().filter(|whole| (least..=most).contains(whole));
        if whole.is_none() {
            let expected = match most {
                u64::MAX => format!("expected a whole number from {least} on"),
                _ => format!("expected a whole number, {least} to {most}"),
            };
            let found = number.as_f64().to_string();
            let problem = Problem::OutOfRange { key: key.to_owned(), found, expected };
            self.report(problem, node.place.clone());
        }
        whole
    }
}

/// The tables of a key: one `[key]`, or several `[[key]]`; none if it is absent.
pub fn tables<'a>(top: &Section<'a>, key: &str) -> Vec<(&'a Table, Place)> {
    let Some(node) = top.node(key) else { return Vec::new() };
    let nodes = match &node.value {
        Value::List(list) => list.iter().collect(),
        _ => vec![node],
    };
    let mut tables = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Table(table) => tables.push((table, node.place.clone())),
            other => {
                let expected = format!("write `[{key}]` and its lines below");
                let problem = Problem::WrongType { key: key.to_owned(), found: other.type_name(), expected };
                top.report(problem, node.place.clone());
            }
        }
    }
    tables
}
