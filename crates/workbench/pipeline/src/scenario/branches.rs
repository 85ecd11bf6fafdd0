//! Stages whose `next` has shares: a network instead of a chain.

use forebay_diagnostics::Problem;
use forebay_scenario::{Node, Section, Unit, Value};
use serde_json::{Map, Value as Json, json};

use super::{PARTS, known};
use crate::description::{Branch, Stage};

const EXPECTED: &str =
    "expected the name of a stage, or a list of branches: [{ stage = \"crypto\", share = 0.7 }]";

/// Whether a stage says by a list where its packets go.
pub(super) fn are_in(sections: &[Section<'_>]) -> bool {
    sections
        .iter()
        .any(|section| section.node("next").is_some_and(|node| matches!(node.value, Value::List(_))))
}

/// Where the packets of each stage go, which are in the order of the file; a stage without `next` leads to the next one.
pub(super) fn read(stages: &mut [Stage], sections: &[Section<'_>], maps: &mut [Map<String, Json>]) {
    let names: Vec<String> = stages.iter().map(|stage| stage.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (at, section) in sections.iter().enumerate() {
        let ways = match section.node("next") {
            Some(node) => of(section, node, &names),
            None if at + 1 < stages.len() => vec![Branch { stage: at + 1, share: 1.0 }],
            None => Vec::new(),
        };
        let written = ways.iter().map(|way| json!({ "stage": names[way.stage], "share": way.share }));
        maps[at].insert("next".to_owned(), written.collect());
        stages[at].next = Some(ways);
    }
}

fn of(section: &Section<'_>, node: &Node, names: &[&str]) -> Vec<Branch> {
    let index = |word: &str| names.iter().position(|name| *name == word);
    match &node.value {
        Value::Text(_) => {
            let to = section.word("next", names).and_then(index);
            to.map(|stage| Branch { stage, share: 1.0 }).into_iter().collect()
        }
        Value::List(list) => list.iter().filter_map(|one| branch(section, one, names)).collect(),
        other => {
            let (key, found) = ("next".to_owned(), other.type_name());
            section
                .report(Problem::WrongType { key, found, expected: EXPECTED.to_owned() }, node.place.clone());
            Vec::new()
        }
    }
}

fn branch(section: &Section<'_>, node: &Node, names: &[&str]) -> Option<Branch> {
    let Value::Table(table) = &node.value else {
        let (key, found) = ("next".to_owned(), node.value.type_name());
        section.report(Problem::WrongType { key, found, expected: EXPECTED.to_owned() }, node.place.clone());
        return None;
    };
    let branch = Section::new(
        table,
        "this branch".to_owned(),
        node.place.clone(),
        &known(PARTS, "stage.next"),
        section.findings(),
    );
    for (key, example) in [("stage", "stage = \"crypto\""), ("share", "share = 0.7")] {
        if !branch.has(key) {
            branch.missing(key, example);
        }
    }
    let word = branch.word("stage", names);
    let share = branch.positive("share", Unit::None)?.as_f64();
    if share > 1.0 {
        branch.conflict("share", format!("`share` is {share}"), "expected a probability above 0, up to 1");
        return None;
    }
    Some(Branch { stage: names.iter().position(|name| Some(*name) == word)?, share })
}
