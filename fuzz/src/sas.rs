//! The security associations file.

use forebay_sas as sas;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

/// Longest text that is tried: what a parser does is done within a few SAs.
const TEXT_MAX: usize = 16_384;

/// Bytes of a key that are looked for in messages.
const PART: usize = 12;

/// Reads `data` as an SAs file. What is said about it must not show a key.
pub fn sas_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() > TEXT_MAX {
        return;
    }
    let (findings, errors, file) = match sas::parse(text, "fuzz.toml") {
        Ok(mut file) => (std::mem::take(&mut file.warnings), None, Some(file)),
        Err(errors) => (vec![], Some(errors), None),
    };
    let mut said = String::new();
    for finding in findings.iter().chain(errors.iter().flat_map(|errors| errors.findings())) {
        say(finding, &mut said);
    }
    if let Some(errors) = &errors {
        assert!(!errors.findings().is_empty());
        let lines = text.lines().count().max(1);
        for finding in errors.findings() {
            let line = finding.line().expect("every error has its line");
            assert!((1..=lines + 1).contains(&line), "line {line} of {lines}");
        }
        say(errors, &mut said);
        // As a person sees it, which takes some time: where there is not much of it.
        if errors.findings().len() <= 2 {
            render(errors, &mut said);
        }
    }
    for key in keys(text) {
        // Nor may a part of it appear that is too long to be guessed.
        for part in [&key[..PART], &key[key.len() - PART..]] {
            let shows = text.matches(part).count() == 1 && said.contains(part);
            assert!(!shows, "{part} of the key {key} shows:\n{said}");
        }
    }
    let Some(file) = file else { return };
    assert!(!file.entries.is_empty());
    assert!(!format!("{file:?}").contains("expose"));
    let inbound =
        file.entries.iter().filter(|entry| entry.direction == forebay_crypto::Direction::Open).count();
    let (sad, keys) = file.into_inbound_sad(0).expect("what the reader lets pass the database takes");
    assert_eq!((sad.iter().count(), keys.len()), (inbound, inbound));
}

/// All that a diagnostic has to say, and the text it would quote from.
fn say(diagnostic: &dyn Diagnostic, said: &mut String) {
    said.push_str(&diagnostic.to_string());
    said.extend(diagnostic.help().map(|help| help.to_string()));
    let labels = diagnostic.labels().into_iter().flatten();
    for label in labels {
        said.push_str(label.label().unwrap_or_default());
        let Some(source) = diagnostic.source_code() else { continue };
        let quoted = source.read_span(label.inner(), 2, 2).expect("a place in the text");
        said.push_str(&String::from_utf8_lossy(quoted.data()));
    }
}

fn render(diagnostic: &dyn Diagnostic, said: &mut String) {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(200);
    handler.render_report(said, diagnostic).expect("a report into a string");
}

/// The values of keys as a line-by-line look finds them, if they look secret (long, of digits and letters: one wrong
/// digit makes the others no less secret) and stand nowhere else, where they would be no secret.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
        let named = matches!(name.trim(), "key" | "auth_key");
        let long = value.len() >= 16 && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (named && long && text.matches(value).count() == 1).then_some(value)
    })
}
