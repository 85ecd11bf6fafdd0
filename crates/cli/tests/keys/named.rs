//! Tests elsewhere that rows name.

use std::path::Path;

use crate::table::name;

/// What is wrong with the tests that are named for a key. The first has to name the key as the file does; the others are of what the key becomes
/// within the program.
pub fn missing(key: &str, tests: &[String]) -> impl Iterator<Item = String> {
    let tests: Vec<String> = tests.to_vec();
    let key = name(key).to_owned();
    tests.into_iter().enumerate().filter_map(move |(number, test)| {
        let (path, function) = test.split_once("::").unwrap_or((&test, ""));
        let Some(text) = source(path) else { return Some(format!("there is no file {path}")) };
        let is_set = |line: &str| line.contains(&format!("{key} = ")) || line.contains(&format!("{key}={{"));
        if function.is_empty() {
            return (!text.lines().any(is_set)).then(|| format!("{path} does not set `{key}`"));
        }
        let Some(body) = body(&text, function) else {
            return Some(format!("{path} has no test `{function}`"));
        };
        let names_it = number > 0 || is_named(body, &key);
        (!names_it).then(|| format!("`{function}` of {path} does not name `{key}`"))
    })
}

/// A file of the repository.
fn source(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).ok()
}

/// Whether the laboratory's test of keys has such a function, and nothing twice.
pub fn looks(function: &str) -> bool {
    source("tests/gateway/keys.py")
        .is_some_and(|text| text.matches(&format!("\ndef {function}(")).count() == 1)
}

/// A function of Rust or Python, to the next line that is indented as it is.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let head = [format!("fn {function}("), format!("def {function}(")];
    let at = head.iter().find_map(|head| text.find(head))?;
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = text[line..].len() - text[line..].trim_start_matches(' ').len();
    let mut end = line;
    for (number, one) in text[line..].split_inclusive('\n').enumerate() {
        let inner = one.trim().is_empty() || one.len() - one.trim_start_matches(' ').len() > indent;
        let ends = number > 0 && !inner && !one.trim_start().starts_with([')', ']', '}']);
        if ends {
            break;
        }
        end += one.len();
    }
    Some(&text[line..end])
}

/// Whether the word stands there by itself.
fn is_named(text: &str, word: &str) -> bool {
    // The ends of lines in a file that a test has as text.
    let text = text.replace("\\n", " ");
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[test]
fn functions_are_found_with_their_bodies() {
    let rust = "#[test]\nfn one() {\n    mtu = 5;\n}\n\nfn two(\n    a: u8,\n) {\n    name = 3;\n}\n";
    assert!(is_named(body(rust, "one").unwrap(), "mtu") && !is_named(body(rust, "one").unwrap(), "name"));
    assert!(is_named(body(rust, "two").unwrap(), "name"));
    assert!(body(rust, "three").is_none() && !is_named("mtus", "mtu") && !is_named("an_mtu", "mtu"));
    let python = "def one(a):\n    mtu = 5\n\n    queue = 4\n\n\ndef two():\n    pass\n";
    assert!(
        is_named(body(python, "one").unwrap(), "queue") && !is_named(body(python, "two").unwrap(), "mtu")
    );
}
