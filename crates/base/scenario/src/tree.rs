//! A scenario file as a tree of values that know where they stand, and `--set` on it.

use std::ops::Range;

use forebay_diagnostics::{Findings, Place, Problem, nearest};
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub enum Value {
    /// A boolean.
    Flag(bool),
    /// A number's digits, without underscores.
    Number(String),
    /// A string.
    Text(String),
    /// A list, or `[[key]]`.
    List(Vec<Node>),
    /// A table.
    Table(Table),
    /// A date or a time of day, which means nothing in a scenario.
    Date,
}

/// Keys and values in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table(pub Vec<(String, Place, Node)>);

impl Value {
    /// Its type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Flag(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Date => "a date",
        }
    }
}

impl Node {
    fn has_from(&self, source: usize) -> bool {
        match &self.value {
            // Tables on the way to a value are from the first source that went there.
            Value::Table(table) if !table.0.is_empty() => table.has_from(source),
            Value::List(list) if !list.is_empty() => list.iter().any(|one| one.has_from(source)),
            _ => self.place.source == source,
        }
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(known, ..)| known == key).map(|(.., node)| node)
    }

    /// Whether any value in it is from a source.
    pub fn has_from(&self, source: usize) -> bool {
        self.0.iter().any(|(.., node)| node.has_from(source))
    }

    fn entry(&mut self, key: &str, place: &Place) -> &mut Node {
        let at = self.0.iter().position(|(known, ..)| known == key).unwrap_or_else(|| {
            let node = Node { value: Value::Table(Table::default()), place: place.clone() };
            self.0.push((key.to_owned(), place.clone(), node));
            self.0.len() - 1
        });
        &mut self.0[at].2
    }
}

/// The tree of a TOML text.
pub fn parse(text: &str, source: usize, findings: &mut Findings) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.add(Problem::Syntax { message: error.message().to_owned() }, Place { source, span });
    }
    of(document.get_ref(), source, |_| true)
}

/// The tree of a TOML table that is read already, of those keys of it that are wanted: what is not is not
/// copied.
pub fn of(table: &DeTable<'_>, source: usize, wanted: impl Fn(&str) -> bool) -> Table {
    let mut entries: Vec<_> = table
        .iter()
        .filter(|(key, _)| wanted(key.get_ref()))
        .map(|(key, value)| {
            let place = Place { source, span: key.span() };
            (key.get_ref().to_string(), place, node(value.get_ref(), value.span(), source))
        })
        .collect();
    entries.sort_by_key(|(_, place, _)| place.span.start);
    Table(entries)
}

fn node(value: &DeValue<'_>, span: Range<usize>, source: usize) -> Node {
    let value = match value {
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(number) => match number.radix() {
            10 => Value::Number(number.as_str().to_owned()),
            radix => match u64::from_str_radix(number.as_str(), radix) {
                Ok(value) => Value::Number(value.to_string()),
                Err(_) => Value::Number(number.to_string()),
            },
        },
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Array(list) => {
            Value::List(list.iter().map(|one| node(one.get_ref(), one.span(), source)).collect())
        }
        DeValue::Table(inner) => Value::Table(of(inner, source, |_| true)),
        _ => Value::Date,
    };
    Node { value, place: Place { source, span } }
}

/// Applies the n-th `--set key=value`; `key=` removes the key. The key is a path with dots; in a list of tables a step is
/// a name or a number from 0.
pub fn set(root: &mut Table, text: &str, source: usize, findings: &mut Findings) {
    let whole = Place { source, span: 0..text.len() };
    let Some((path, value)) = text.split_once('=') else {
        return findings.add(Problem::NoAssignment, whole);
    };
    let steps: Vec<&str> = path.trim().split('.').map(str::trim).collect();
    let key_place = Place { source, span: 0..path.len() };
    if value.trim().is_empty() {
        if let Err(problem) = remove(root, &steps) {
            findings.add(problem, key_place);
        }
        return;
    }
    let begin = text.len() - value.trim_start().len();
    let place = Place { source, span: begin..text.len() };
    let mut value = given(value.trim());
    rebase(&mut value, &place);
    if let Err(problem) = put(root, &steps, value, &key_place) {
        findings.add(problem, key_place);
    }
}

/// A value as TOML would read it; a word that it would not is a string.
fn given(text: &str) -> Node {
    let document = format!("value = {text}");
    let (table, errors) = DeTable::parse_recoverable(&document);
    let read = table.get_ref().get("value").filter(|_| errors.is_empty() && table.get_ref().len() == 1);
    match read {
        Some(value) => node(value.get_ref(), 0..0, 0),
        None => Node { value: Value::Text(text.to_owned()), place: Place { source: 0, span: 0..0 } },
    }
}

fn rebase(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::List(list) => list.iter_mut().for_each(|one| rebase(one, place)),
        Value::Table(table) => table.0.iter_mut().for_each(|(_, at, one)| {
            *at = place.clone();
            rebase(one, place);
        }),
        _ => {}
    }
}

fn put(table: &mut Table, steps: &[&str], value: Node, place: &Place) -> Result<(), Problem> {
    let Some((&first, rest)) = steps.split_first().filter(|(first, _)| !first.is_empty()) else {
        return Err(Problem::NoAssignment);
    };
    if rest.is_empty() {
        let entry = table.entry(first, place);
        *entry = value;
        return Ok(());
    }
    let mut node = table.entry(first, place);
    let mut rest = rest;
    loop {
        match &mut node.value {
            Value::Table(inner) => return put(inner, rest, value, place),
            Value::List(list) => {
                let at = position(list, rest[0])?;
                if rest.len() == 1 {
                    list[at] = value;
                    return Ok(());
                }
                rest = &rest[1..];
                node = &mut list[at];
            }
            other => {
                return Err(Problem::NotInside { step: rest[0].to_owned(), found: other.type_name() });
            }
        }
    }
}

/// Takes a key away, or the element of a list.
fn remove(table: &mut Table, steps: &[&str]) -> Result<(), Problem> {
    let Some((&first, mut rest)) = steps.split_first().filter(|(first, _)| !first.is_empty()) else {
        return Err(Problem::NoAssignment);
    };
    let Some(at) = table.0.iter().position(|(known, ..)| known == first) else {
        let known = nearest(first, table.0.iter().map(|(known, ..)| known.as_str()));
        return Err(Problem::NotThere { key: first.to_owned(), nearest: known.map(str::to_owned) });
    };
    if rest.is_empty() {
        table.0.remove(at);
        return Ok(());
    }
    let mut node = &mut table.0[at].2;
    loop {
        match &mut node.value {
            Value::Table(inner) => return remove(inner, rest),
            Value::List(list) => {
                let at = position(list, rest[0])?;
                if rest.len() == 1 {
                    list.remove(at);
                    return Ok(());
                }
                rest = &rest[1..];
                node = &mut list[at];
            }
            other => {
                return Err(Problem::NotInside { step: rest[0].to_owned(), found: other.type_name() });
            }
        }
    }
}

/// The element of a list by its name or its number.
fn position(list: &[Node], step: &str) -> Result<usize, Problem> {
    let name = |node: &Node| match &node.value {
        Value::Table(table) => match &table.get("name")?.value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    let named = list.iter().position(|node| name(node).as_deref() == Some(step));
    let numbered = step.parse().ok().filter(|&at: &usize| at < list.len());
    named.or(numbered).ok_or_else(|| Problem::NoElement {
        step: step.to_owned(),
        names: list.iter().filter_map(name).collect(),
    })
}
