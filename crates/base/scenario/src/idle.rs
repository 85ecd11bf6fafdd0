//! Keys that have no effect because of another key's value, or without a part of what is described. Sweeps change that other key, so they are noted, not refused.

use crate::{Section, Table, Value, tables};

/// Keys of a section without effect while another key has one of some values.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// The section; empty at the top of the file.
    pub section: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
    /// The other key, of the section itself or of another one.
    pub by: &'static str,
    /// That other section.
    pub of: &'static str,
    /// The value that the other key has where no section has it.
    pub default: &'static str,
    /// The values with which it disables them.
    pub values: &'static [&'static str],
}

/// Notes those that a scenario has.
pub fn note(root: &Table, top: &Section<'_>, rows: &[Idle], notes: &mut Vec<String>) {
    let sections = |name: &str| match name {
        "" => vec![root],
        _ => tables(top, name).into_iter().map(|(table, _)| table).collect(),
    };
    for row in rows {
        let other = sections(row.of).into_iter().find_map(|table| value(table, row.by));
        for table in sections(row.section) {
            let found = value(table, row.by).or_else(|| other.clone());
            let found = found.unwrap_or_else(|| row.default.to_owned());
            if !row.values.contains(&found.as_str()) {
                continue;
            }
            for key in row.keys.iter().filter(|key| table.get(key).is_some()) {
                let place =
                    if row.section.is_empty() { String::new() } else { format!(" of [{}]", row.section) };
                let note = format!("`{key}`{place} has no effect with `{} = {found}`", row.by);
                // Once for all processors, or classes.
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
}

/// Keys of a section without effect unless there is one of some parts, such as extensions of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The section.
    pub section: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
    /// The parts, of which one is enough.
    pub parts: &'static [&'static str],
}

/// Notes the keys that a file has without what they need; `has` says which parts there are.
pub fn note_needs(top: &Section<'_>, rows: &[Needs], has: impl Fn(&str) -> bool, notes: &mut Vec<String>) {
    for row in rows.iter().filter(|row| !row.parts.iter().any(|part| has(part))) {
        for (table, _) in tables(top, row.section) {
            for key in row.keys.iter().filter(|key| table.get(key).is_some()) {
                let parts = row.parts.join("` or `");
                notes.push(format!("`{key}` of [{}] has no effect without `{parts}`", row.section));
            }
        }
    }
}

/// A number or word as the file has it.
pub fn value(table: &Table, key: &str) -> Option<String> {
    match &table.get(key)?.value {
        Value::Number(text) | Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}
