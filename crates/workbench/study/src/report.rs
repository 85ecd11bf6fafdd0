//! The page of a study: claims first, then what the study showed, then every run.

mod claims;
mod runs;

use forebay_page::document::{self, Frame};
use forebay_page::element::element;
use forebay_page::units::micro;

use crate::error::PageError;
use crate::findings::{Block, Findings, Kind};
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
        .children(claims::section(Kind::Claim, findings))
        .children(claims::section(Kind::Observation, findings))
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
    let count = |kind| {
        let all: Vec<bool> = findings.of_kind(kind).map(|claim| claim.holds).collect();
        (all.iter().filter(|holds| **holds).count(), all.len())
    };
    let verdict = match (count(Kind::Claim), count(Kind::Observation)) {
        ((_, 0), (_, 0)) => title.to_owned(),
        ((_, 0), (held, all)) => said(held, all, "observation", "observations"),
        ((held, all), _) => said(held, all, "claim", "claims"),
    };
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
        intro: findings.about.iter().skip(1).cloned().collect(),
        ..Frame::default()
    }
}

fn said(held: usize, all: usize, one: &str, many: &str) -> String {
    match (held, all) {
        (1, 1) => format!("The {one} holds"),
        (held, all) if held == all => format!("All {all} {many} hold"),
        (held, all) => format!("{held} of {all} {} hold", if all == 1 { one } else { many }),
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
