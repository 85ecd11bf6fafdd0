//! What traffic an SA or a policy is for: selectors and classes.

use std::ops::Range;

use forebay_ipsec::{DscpSet, SelectorError, TrafficSelector};
use toml::de::DeValue;

use super::errors::Findings;
use super::mask::shown;
use super::problem::Problem;
use super::table::Table;

impl Table<'_, '_> {
    /// A list of traffic selectors, empty if there is none.
    pub(super) fn selectors(
        &self,
        key: &'static str,
        findings: &mut Findings,
    ) -> Option<Vec<TrafficSelector>> {
        self.or(key, vec![], |key| {
            let list = self.list(key, "expected a list of selectors in brackets", findings)?;
            let selectors: Vec<Option<TrafficSelector>> =
                list.into_iter().map(|(element, span)| selector(key, element, span, findings)).collect();
            selectors.into_iter().collect()
        })
    }

    /// A list of classes, all if there is none.
    pub(super) fn classes(&self, findings: &mut Findings) -> Option<DscpSet> {
        self.or("classes", DscpSet::ALL, |key| {
            let list = self.list(key, "expected a list of classes in brackets", findings)?;
            if list.is_empty() {
                let problem = Problem::BadClass { key, found: "[]".to_owned() };
                findings.add(problem, self.span(key), "expected one at least");
                return None;
            }
            let sets: Vec<Option<DscpSet>> =
                list.into_iter().map(|(element, span)| classes(key, element, span, findings)).collect();
            sets.into_iter().try_fold(DscpSet(0), |all, set| Some(DscpSet(all.0 | set?.0)))
        })
    }

    /// One class.
    pub(super) fn class(&self, key: &'static str, findings: &mut Findings) -> Option<u8> {
        let (value, span) = self.value(key, "expected a number or a name in quotes", findings, Some)?;
        let set = classes(key, value, span.clone(), findings)?;
        if set.0.count_ones() != 1 {
            let found = value.as_str().map(shown).unwrap_or_default();
            findings.add(Problem::BadClass { key, found }, span, "expected a single code point");
            return None;
        }
        Some(set.0.trailing_zeros() as u8)
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
            let problem = Problem::BadSelector { key, found: shown(text), error: shown(&error.found()) };
            findings.add(problem, span, error.expected());
        }
    }
    None
}

/// Classes as one value names them.
fn classes(
    key: &'static str,
    value: &DeValue<'_>,
    span: Range<usize>,
    findings: &mut Findings,
) -> Option<DscpSet> {
    const EXPECTED: &str = "expected a code point: 0 to 63, or a name in quotes";
    let (set, found) = match value {
        DeValue::Integer(number) => {
            let point = u8::from_str_radix(number.as_str(), number.radix()).ok();
            (point.filter(|&point| point < 64).map(|point| DscpSet::of([point])), shown(&number.to_string()))
        }
        DeValue::String(text) => (text.parse().ok(), shown(text)),
        _ => {
            let problem = Problem::WrongType { key, found: value.type_str(), expected: EXPECTED };
            findings.add(problem, span, EXPECTED);
            return None;
        }
    };
    if set.is_none() {
        findings.add(Problem::BadClass { key, found }, span, "expected code points of 0 to 63 or names");
    }
    set
}
