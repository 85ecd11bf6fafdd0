//! Scenario files: TOML whose values keep their position in the file.
//!
//! [`read`] makes a tree from a text and the values of `--set`, and passes it to a model's reader, which looks up the
//! keys that it supports in [`Section`]s. All errors of a file are reported at once, each with its line, what was
//! found, what was expected, and the nearest valid key.

pub mod decimal;
pub mod idle;
pub mod schema;
pub mod section;
pub mod tree;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use forebay_diagnostics::{FileErrors, Findings, Problem, Text};

pub use decimal::{Decimal, Unit};
pub use section::{Section, tables};
pub use tree::{Node, Table, Value};

/// The words that `model` may be.
pub const MODELS: &[&str] = &["host", "pipeline", "inline-card", "embedded"];

/// The text of a scenario file.
///
/// # Errors
/// That the file cannot be read, and why.
pub fn load(path: &Path) -> Result<String, FileErrors> {
    std::fs::read_to_string(path).map_err(|error| {
        let problem = Problem::Unreadable { error: error.to_string() };
        FileErrors::of_file(&path.display().to_string(), problem)
    })
}

/// Reads a scenario from `text`, calling it `name` in errors. `sets` are what `--set` was given,
/// `key=value`; the later of two counts. `model` reads the tree: what it cannot read has to leave a
/// finding.
///
/// # Errors
/// All that is wrong with the text, with `sets`, and what `model` finds.
pub fn read<T>(
    text: &str,
    name: &str,
    sets: &[String],
    model: impl FnOnce(&Table, &RefCell<Findings>) -> Option<T>,
) -> Result<T, FileErrors> {
    let mut findings = Findings::default();
    let root = tree_of(text, sets, &mut findings);
    // What was recovered from a broken text would only bring errors that are none.
    let findings = RefCell::new(findings);
    let scenario = if findings.borrow().is_empty() { model(&root, &findings) } else { None };
    finish(findings.into_inner(), name, text, sets)?;
    Ok(scenario.expect("what could not be read has left a finding"))
}

/// What was found in `text`, which is called `name`, and in `sets`, as errors.
fn finish(findings: Findings, name: &str, text: &str, sets: &[String]) -> Result<(), FileErrors> {
    let names: Vec<String> = sets.iter().map(|set| format!("--set {set}")).collect();
    let mut texts = vec![Text { title: name, name, shown: text, lines: true }];
    for (set, name) in sets.iter().zip(&names) {
        texts.push(Text { title: "--set", name, shown: set, lines: false });
    }
    findings.finish(name, &texts).map(drop)
}

/// The model that a text is of, if it says so; what is wrong with it is for its reader to say.
pub fn model_of(text: &str, sets: &[String]) -> Option<String> {
    let root = tree_of(text, sets, &mut Findings::default());
    match &root.get("model")?.value {
        Value::Text(model) => Some(model.clone()),
        _ => None,
    }
}

/// The first of `sets`, from the one numbered `from` on, of whose value nothing is left, because later ones replace it: a key that
/// is given twice, or by the name and by the number of an element. Those that remove a key have no value.
pub fn replaced(text: &str, sets: &[String], from: usize) -> Option<usize> {
    // What cannot be set is for the reader of the scenario to say.
    let mut findings = Findings::default();
    let root = tree_of(text, sets, &mut findings);
    if !findings.is_empty() {
        return None;
    }
    let has_value = |set: &String| set.split_once('=').is_some_and(|(_, value)| !value.trim().is_empty());
    (from..sets.len()).find(|&at| has_value(&sets[at]) && !root.has_from(at + 1))
}

/// The scenario file at `path` and all files that it names, such as traces: whatever value is the path of a file that is
/// there, relative to the scenario's folder. A command compares its outputs with them.
pub fn files_named(path: &Path, sets: &[String]) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let Ok(text) = std::fs::read_to_string(path) else { return files };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut words = Vec::new();
    texts(&Value::Table(tree_of(&text, sets, &mut Findings::default())), &mut words);
    files.extend(words.iter().map(|word| folder.join(word)).filter(|named| named.is_file()));
    files
}

/// All texts below a value.
fn texts(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Text(word) => words.push(word.clone()),
        Value::List(values) => values.iter().for_each(|node| texts(&node.value, words)),
        Value::Table(table) => table.0.iter().for_each(|(.., node)| texts(&node.value, words)),
        _ => {}
    }
}

fn tree_of(text: &str, sets: &[String], findings: &mut Findings) -> Table {
    let mut root = tree::parse(text, 0, findings);
    for (at, set) in sets.iter().enumerate() {
        tree::set(&mut root, set, at + 1, findings);
    }
    root
}
