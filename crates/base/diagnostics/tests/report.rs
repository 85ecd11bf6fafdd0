//! Findings of a text, as a report and as plain data.

use forebay_diagnostics::{FileErrors, Findings, Place, Plain, Problem, Text, nearest};
use miette::{Diagnostic, Severity};

const TEXT: &str = "rate = 1\nwindwo = 0\n";

fn errors(findings: Findings) -> FileErrors {
    let text = Text { title: "a.toml", name: "a.toml", shown: TEXT, lines: true };
    findings.finish("a.toml", &[text]).unwrap_err()
}

fn place(piece: &str) -> Place {
    let from = TEXT.find(piece).unwrap();
    Place { source: 0, span: from..from + piece.len() }
}

#[test]
fn plain_data_has_what_was_found_and_expected_with_its_place() {
    let mut findings = Findings::default();
    let problem = Problem::UnknownKey { key: "windwo".to_owned(), nearest: "window".to_owned() };
    findings.add(problem, place("windwo"));
    let expected = Plain {
        file: "a.toml".to_owned(),
        line: Some(2),
        column: Some(1),
        span: Some(9..15),
        severity: Severity::Error,
        message: "unknown key `windwo`".to_owned(),
        found: Some("windwo".to_owned()),
        expected: Some("window".to_owned()),
        hint: "did you mean `window`?".to_owned(),
    };
    assert_eq!(errors(findings).findings()[0].plain(), expected);
}

#[test]
fn only_words_that_may_be_misspelt_have_a_hint() {
    let known = ["window", "rate", "size"];
    for (word, found) in [
        ("windwo", Some("window")),
        ("win", Some("window")),
        ("rates", Some("rate")),
        ("sizes_max", None),
        ("policy", None),
        ("x", None),
    ] {
        assert_eq!(nearest(word, known), found, "{word}");
    }
    let problem = Problem::UnknownKey { key: "policy".to_owned(), nearest: String::new() };
    assert!(problem.help().contains("no key here has a similar name"), "{}", problem.help());
}

#[test]
fn errors_are_in_the_order_of_the_text_and_those_beyond_the_limit_are_counted() {
    let mut findings = Findings::default();
    for _ in 0..40 {
        findings.add(Problem::NoAssignment, place("windwo"));
    }
    findings.add(Problem::Syntax { message: "first".to_owned() }, place("rate"));
    let errors = errors(findings);
    assert_eq!((errors.findings().len(), errors.left_out()), (32, 9));
    assert_eq!(errors.findings()[0].line(), Some(1));
    assert_eq!(errors.to_string(), "a.toml has 41 errors, the first 32 of which are");
}

#[test]
fn a_problem_of_the_whole_file_names_it_and_may_lack_a_hint() {
    let problem = Problem::Conflict { message: "no points".to_owned(), help: String::new() };
    let errors: FileErrors = FileErrors::of_file("points.txt", problem);
    assert_eq!(errors.to_string(), "points.txt: no points");
    assert!(errors.help().is_none());
    assert_eq!(errors.findings()[0].plain().span, None);
}
