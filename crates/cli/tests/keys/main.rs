//! Every key of every file has an effect: one row for each key of the schema says how it is observed, and the tests here observe it or look for
//! the tests that do. A key without a row fails, and so does a row whose key is gone or whose test is.
//!
//! The rows stand in a file for each kind of file beside this one. What they hold is said at the head of each.

mod captures;
mod gateway;
mod named;
mod scenarios;
mod table;

use std::collections::BTreeMap;

use forebay_reference::files;

use table::{Row, Table};

#[test]
fn every_key_has_a_row_and_every_row_a_key() {
    let mut wrong = Vec::new();
    let (mut keys, mut ways) = (0, BTreeMap::<&str, usize>::new());
    for file in files() {
        let rows = Table::of(file.name).rows;
        let known = table::keys(&file);
        keys += known.len();
        wrong.extend(known.iter().filter(|key| !rows.contains_key(*key)).map(|key| {
            format!(
                "{}: `{key}` has no row in crates/cli/tests/keys/{0}.toml: what changes with it?",
                file.name
            )
        }));
        let gone = rows.keys().filter(|key| !known.contains(key));
        wrong.extend(gone.map(|key| format!("{}: there is no key `{key}`", file.name)));
        rows.values().for_each(|row| *ways.entry(row.way(file.name)).or_default() += 1);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{keys} keys: {ways:?}");
}

/// A test that is named must be there and name the key, so that renaming either is seen.
#[test]
fn the_tests_that_rows_name_are_there() {
    let mut wrong = Vec::new();
    for file in files() {
        for (key, row) in Table::of(file.name).rows {
            match row {
                Row::Tests(tests) => {
                    wrong.extend(
                        named::missing(&key, &tests).map(|why| format!("{}: `{key}`: {why}", file.name)),
                    );
                }
                Row::Lab { sets, look, .. } => {
                    if !named::looks(&look) {
                        wrong.push(format!("`{key}`: tests/gateway/keys.py has no `{look}`"));
                    }
                    if !sets.iter().any(|set| table::set_key(set) == table::name(&key)) {
                        wrong.push(format!("`{key}`: its row does not set it"));
                    }
                }
                Row::Here { .. } => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
