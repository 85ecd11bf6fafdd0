//! Which functions belong together: the parts of a report.
//!
//! ```toml
//! [groups]
//! header = ["headers_*", "esp_seal"]   # the first group whose pattern fits has the function
//! [sides]
//! protocol = ["header"]
//! ```
//!
//! A function that no pattern fits belongs to the group of the nearest caller that has one: `memcpy` called by
//! `headers_build` is header work.

use std::cell::RefCell;
use std::path::Path;

use forebay_diagnostics::{FileErrors, Findings, Problem};
use forebay_riscv::{Function, Node, ROOT};
use forebay_scenario::{Section, Table, Value};

/// The groups of our own firmware.
const OURS: &str = include_str!("../data/functions.toml");

/// Groups of functions, and sides of groups.
#[derive(Clone, Debug)]
pub struct Groups {
    groups: Vec<(String, Vec<String>)>,
    sides: Vec<(String, Vec<String>)>,
}

/// What belongs nowhere.
pub const OTHER: &str = "other";

impl Groups {
    /// Those of our own firmware.
    pub fn ours() -> Groups {
        Groups::parse(OURS, "functions.toml").expect("our own file is right")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(path: &Path) -> Result<Groups, FileErrors> {
        Groups::parse(&forebay_scenario::load(path)?, &path.display().to_string())
    }

    /// Reads `text`, calling it `name` in errors.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, name: &str) -> Result<Groups, FileErrors> {
        forebay_scenario::read(text, name, &[], read)
    }

    /// The names of all groups, and of what belongs to none.
    pub fn names(&self) -> Vec<&str> {
        self.groups.iter().map(|(name, _)| name.as_str()).chain([OTHER]).collect()
    }

    /// The side of a group.
    pub fn side(&self, group: &str) -> &str {
        let side = self.sides.iter().find(|(_, groups)| groups.iter().any(|one| one == group));
        side.map_or(OTHER, |(name, _)| name)
    }

    /// The number of each path's group in [`Groups::names`].
    pub fn of_nodes(&self, functions: &[Function], nodes: &[Node]) -> Vec<usize> {
        let own: Vec<Option<usize>> = functions.iter().map(|one| self.of(&one.name)).collect();
        let group = |mut at: u32| loop {
            let node = nodes[at as usize];
            if let Some(group) = own[node.function as usize] {
                return group;
            }
            if at == ROOT {
                return self.groups.len();
            }
            at = node.parent;
        };
        (0..nodes.len() as u32).map(group).collect()
    }

    /// The number of a function's own group in [`Groups::names`].
    pub fn of(&self, function: &str) -> Option<usize> {
        self.groups.iter().position(|(_, patterns)| patterns.iter().any(|one| fits(one, function)))
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(after, &rest[at..]))
        }),
    }
}

fn read(table: &Table, findings: &RefCell<Findings>) -> Option<Groups> {
    let start = forebay_diagnostics::Place { source: 0, span: 0..0 };
    let top = Section::new(table, "the file".to_owned(), start, &["groups", "sides"], findings);
    let groups = lists(&top, "groups");
    let sides = lists(&top, "sides");
    for (side, members) in &sides {
        for member in members.iter().filter(|member| groups.iter().all(|(name, _)| name != *member)) {
            let expected = groups.iter().map(|(name, _)| name.clone()).collect();
            let problem = Problem::UnknownWord { key: side.clone(), found: member.clone(), expected };
            top.report(problem, top.place_of("sides"));
        }
    }
    Some(Groups { groups, sides })
}

fn lists(top: &Section<'_>, key: &'static str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (table, place) in forebay_scenario::tables(top, key) {
        for (name, at, node) in &table.0 {
            let texts = match &node.value {
                Value::List(list) => list.iter().map(|one| text(&one.value)).collect(),
                other => text(other).map(|text| vec![text]),
            };
            match texts {
                Some(texts) => found.push((name.clone(), texts)),
                None => {
                    let expected = "expected a list of strings: [\"aes_*\"]".to_owned();
                    let problem =
                        Problem::WrongType { key: name.clone(), found: node.value.type_name(), expected };
                    top.report(problem, if at.span.is_empty() { place.clone() } else { at.clone() });
                }
            }
        }
    }
    found
}

fn text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.clone()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_firmware_s_own_file_is_right() {
        assert!(Groups::ours().names().len() > 8);
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, fit) in [
            ("aes_*", "aes_encrypt", true),
            ("aes_*", "my_aes_", false),
            ("*_blocks", "md5_blocks", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("same", "same", true),
            ("same", "same2", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn what_fits_nothing_belongs_to_its_caller() {
        let function = |name: &str| Function { name: name.to_owned(), start: 0, end: 0 };
        let functions = ["(no symbol)", "main", "aes_encrypt", "memcpy"].map(function);
        let node = |parent, function| Node { parent, function };
        let nodes = [node(0, 0), node(0, 1), node(1, 2), node(2, 3), node(1, 3)];
        let groups = Groups::parse("[groups]\naes = [\"aes_*\"]\n[sides]\ncrypto = [\"aes\"]", "t").unwrap();
        assert_eq!(groups.of_nodes(&functions, &nodes), [1, 1, 0, 0, 1]);
        assert_eq!(groups.names(), ["aes", "other"]);
        assert_eq!([groups.side("aes"), groups.side("other")], ["crypto", "other"]);
        let wrong = Groups::parse("[groups]\naes = 3\n[sides]\ncrypto = [\"aes\"]", "t").unwrap_err();
        assert_eq!(wrong.findings()[0].line(), Some(2));
    }
}
