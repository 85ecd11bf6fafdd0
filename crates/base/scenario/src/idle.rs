//! Keys that have no effect because of another key's value. Sweeps change that other key, so they are noted, not refused.

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

/// A number or word as the file has it.
pub fn value(table: &Table, key: &str) -> Option<String> {
    match &table.get(key)?.value {
        Value::Number(text) | Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}
