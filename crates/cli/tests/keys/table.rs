//! The rows, and the keys that they are about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use forebay_reference::File;

/// How a key is observed.
#[derive(Clone, Debug)]
pub enum Row {
    /// From this base, with what is set, by this figure.
    Here { base: String, sets: Vec<String>, figure: String },
    /// In the laboratory, by a function of its test, with what is set.
    Lab { sets: Vec<String>, look: String },
    /// By tests elsewhere, `FILE::FUNCTION` each, or `FILE` where it sets the key.
    Tests(Vec<String>),
}

impl Row {
    /// The way in a few words, for the sum.
    pub fn way(&self, file: &str) -> &'static str {
        match self {
            Row::Here { figure, .. } if figure.starts_with("refused: ") => "what is refused",
            Row::Here { .. } => match file {
                "sas" => "a capture",
                "gateway" => "`check`",
                _ => "a scenario's figures",
            },
            Row::Lab { .. } => "a running gateway with it and without it",
            Row::Tests(tests) if tests[0].contains("tests/vm/") => "a test with virtual machines",
            Row::Tests(tests) if tests[0].contains(".py") => "a test in the laboratory",
            Row::Tests(_) => "a test of a crate",
        }
    }
}

/// The rows of a kind of file.
pub struct Table {
    /// Files that rows begin with, by name.
    pub bases: toml::Table,
    /// By key.
    pub rows: BTreeMap<String, Row>,
}

impl Table {
    /// That of a kind of file.
    pub fn of(name: &str) -> Table {
        let path = here().join(format!("{name}.toml"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut table: toml::Table =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{name}.toml: {error}"));
        let bases = match table.remove("bases") {
            Some(toml::Value::Table(bases)) => bases,
            _ => toml::Table::new(),
        };
        let Some(toml::Value::Table(keys)) = table.remove("keys") else {
            panic!("{name}.toml has no [keys]")
        };
        let rows = keys.into_iter().map(|(key, row)| {
            let words: Vec<String> =
                row.try_into().unwrap_or_else(|error| panic!("{name}.toml: {key}: {error}"));
            let row = row_of(&words).unwrap_or_else(|| panic!("{name}.toml: {key}: too short"));
            (key, row)
        });
        Table { bases, rows: rows.collect() }
    }
}

fn row_of(words: &[String]) -> Option<Row> {
    match words {
        [word, tests @ ..] if word == "test" && !tests.is_empty() => Some(Row::Tests(tests.to_vec())),
        // The base is for the laboratory to know.
        [word, _, sets @ .., look] if word == "lab" && !sets.is_empty() => {
            Some(Row::Lab { sets: sets.to_vec(), look: look.clone() })
        }
        // All rows of the gateway's file say what kind they are.
        [word, rest @ ..] if word == "check" => row_of(rest),
        [base, sets @ .., figure] if !sets.is_empty() => {
            Some(Row::Here { base: base.clone(), sets: sets.to_vec(), figure: figure.clone() })
        }
        _ => None,
    }
}

/// The folder of the rows.
pub fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/keys")
}

/// The keys of a kind of file: `section.key`, `section[kind].key`, at the top `key`.
pub fn keys(file: &File) -> Vec<String> {
    let parts = file.parts.iter().flat_map(|part| {
        let section = match (part.section, part.kind) {
            ("", _) => String::new(),
            (section, "") => format!("{section}."),
            (section, kind) => format!("{section}[{kind}]."),
        };
        part.keys.iter().map(move |key| format!("{section}{}", key.name))
    });
    parts.collect()
}

/// The name of a key behind its section.
pub fn name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The key that a line or an option sets: the last name before `=`.
pub fn set_key(set: &str) -> &str {
    name(set.split('=').next().unwrap_or(set).trim())
}
