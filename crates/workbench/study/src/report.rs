//! The page of a study: claims first, then what the study showed, then every run.

mod claims;
mod runs;

use forebay_page::document::{self, Frame};
use forebay_page::element::element;
use forebay_page::units::micro;

use crate::error::PageError;
use crate::findings::{Basis, Block, Findings, Kind, Verdict};
use forebay_page::Made;

/// The page of findings, both as the JSON that the package of Python writes.
///
/// # Errors
/// If either is not as this version of the package writes it.
pub fn page(findings: &str, made: &str) -> Result<String, PageError> {
    let findings: Findings = serde_json::from_str(findings).map_err(PageError)?;
    let made: Made = serde_json::from_str(made).map_err(PageError)?;
    Ok(render(&findings, &made))
}

/// Writes the page as one self-contained HTML document; all text of a study is escaped.
pub fn render(findings: &Findings, made: &Made) -> String {
    let title = findings.about.first().map_or(findings.name.as_str(), String::as_str);
    let main = element("main")
        .child(document::header(&frame(findings, title)))
        .children(claims::sections(Kind::Claim, findings))
        .children(claims::sections(Kind::Observation, findings))
        .children(document::parts(&blocks(&findings.blocks)))
        .child(runs::section(&findings.runs));
    let rest = format!(
        ", from the study {}. Scenarios, figures and the study itself lie beside this page.",
        findings.name
    );
    let main = main.child(document::footer(&made.sentence(&rest)));
    document::document(&format!("Forebay study: {title}"), main)
}

fn frame(findings: &Findings, title: &str) -> Frame {
    let verdict = [(Kind::Claim, "claim", "claims"), (Kind::Observation, "observation", "observations")]
        .into_iter()
        .find_map(|(kind, one, many)| said(&findings.of(kind, Basis::Test).collect::<Vec<_>>(), one, many))
        .unwrap_or_else(|| title.to_owned());
    let mut warnings = Vec::new();
    if !findings.complete {
        warnings.push("Broken off: the results until then are here, the rest is missing.".to_owned());
    }
    if findings.quick {
        let quick = "A quick run, with a fiftieth of the packets: it shows that the study works. Its figures are \
            those of queues that are filling, and claims may fail for that alone.";
        warnings.push(quick.to_owned());
    }
    Frame {
        kind: format!("Forebay study: {title}"),
        verdict,
        warnings,
        intro: findings.about.iter().skip(1).map(|words| micro(words)).collect(),
        ..Frame::default()
    }
}

/// How many of these hold, fail and are not decided, if there are any.
fn said(claims: &[&crate::Claim], one: &str, many: &str) -> Option<String> {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let all = claims.len();
    let (held, failed, open) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::NotDecided));
    match (held, all) {
        (_, 0) => None,
        (1, 1) => Some(format!("The {one} holds")),
        (held, all) if held == all => Some(format!("All {all} {many} hold")),
        _ => {
            let noun = if all == 1 { one } else { many };
            let rest = [(failed, if failed == 1 { "fails" } else { "fail" }), (open, "not decided")];
            let rest = rest.iter().filter(|(count, _)| *count > 0);
            let rest: Vec<String> = rest.map(|(count, word)| format!("{count} {word}")).collect();
            Some(format!("{held} of {all} {noun} hold, {}", rest.join(", ")))
        }
    }
}

fn blocks(blocks: &[Block]) -> Vec<document::Block> {
    let mut all = Vec::with_capacity(blocks.len());
    for block in blocks.iter().cloned() {
        match block {
            Block::Section(title) => all.push(document::Block::Section(micro(&title))),
            Block::Text(words) => all.push(document::Block::Text(micro(&words))),
            Block::Plot(plot) => all.push(document::Block::Plot(plot.into())),
            Block::Table(table) => {
                let remark = table.remark();
                all.push(document::Block::Table(table.into()));
                all.extend(remark.map(document::Block::Remark));
            }
            Block::Heat(heat) => all.push(document::Block::Heat(heat.into())),
        }
    }
    all
}
