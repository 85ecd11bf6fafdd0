//! Reads one policy from its table.

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, Policy};

use super::PolicyEntry;
use super::entry::DIRECTIONS;
use super::errors::Findings;
use super::names::Names;
use super::problem::Problem;
use super::table::Table;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Protect,
    Bypass,
    Discard,
}

const ACTIONS: &[(&str, Word)] =
    &[("protect", Word::Protect), ("bypass", Word::Bypass), ("discard", Word::Discard)];

/// Reads a policy that begins on `line`. If it returns nothing, there is a finding.
pub(super) fn read(
    table: &Table<'_, '_>,
    line: usize,
    names: &Names,
    findings: &mut Findings,
) -> Option<PolicyEntry> {
    table.report_unknown_keys(findings);
    let name = table.or("name", (&*table.name, 0..0), |key| table.name_of(key, findings));
    let direction =
        table.required("direction", findings).and_then(|key| table.word(key, DIRECTIONS, findings));
    let word = table.required("action", findings).and_then(|key| table.word(key, ACTIONS, findings));
    let sas = sas(table, word, direction, names, findings);
    let (local_ts, remote_ts) =
        (table.selectors("local_ts", findings), table.selectors("remote_ts", findings));
    let dscp = table.classes(findings);
    let action = match word? {
        Word::Protect => Action::Protect(sas?),
        Word::Bypass => Action::Bypass,
        Word::Discard => Action::Discard,
    };
    let policy = Policy {
        local_ts: local_ts?,
        remote_ts: remote_ts?,
        dscp: dscp?,
        ..Policy::new(name?.0, direction?, action)
    };
    Some(PolicyEntry { policy, line })
}

/// The SAs that protect: there is one at least for this action, and none for others.
fn sas(
    table: &Table<'_, '_>,
    word: Option<Word>,
    direction: Option<Direction>,
    names: &Names,
    findings: &mut Findings,
) -> Option<Vec<SessionId>> {
    const KEY: &str = "sa";
    if !table.has(KEY) {
        if word == Some(Word::Protect) {
            table.missing(KEY, findings);
        }
        return None;
    }
    if word.is_some_and(|word| word != Word::Protect) {
        let (label, other) = ("expected no SA", "as this says");
        findings.add_pair(Problem::SaOfNoUse, table.span(KEY), label, table.span("action"), other);
    }
    let texts = table.texts(KEY, findings)?;
    if texts.is_empty() && word == Some(Word::Protect) {
        table.missing(KEY, findings);
        return None;
    }
    let found: Vec<Option<usize>> =
        texts.into_iter().map(|(name, span)| names.find(name, span, direction, findings)).collect();
    found.into_iter().map(|place| Some(SessionId(place? as u32))).collect()
}
