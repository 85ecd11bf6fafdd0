//! The page of a study: claims first, then what the script showed, then every run.

mod pipelines;

use forebay_page::document::{self, Frame};
use forebay_page::element::{Element, element};
use forebay_page::units;

use crate::findings::{Claim, Findings, Made};
use crate::model::Figures;
use crate::runs::Record;

/// Writes the page as one self-contained HTML document; all text of a study is escaped.
pub fn render(findings: &Findings, made: &Made) -> String {
    let title = findings.about.first().map_or(findings.name.as_str(), String::as_str);
    let frame = frame(findings, title);
    let mut main = element("main").child(document::header(&frame));
    if !findings.claims.is_empty() {
        main = main.child(claims(&findings.claims));
    }
    main = main.children(document::parts(&findings.blocks)).child(runs(&findings.runs));
    let rest = format!(
        ", from the study {}. Scenarios, figures and the study itself lie beside this page.",
        findings.name
    );
    let main = main.child(document::footer(&made.sentence(&rest)));
    document::document(&format!("Forebay study: {title}"), main)
}

fn frame(findings: &Findings, title: &str) -> Frame {
    let claims = &findings.claims;
    let held = claims.iter().filter(|claim| claim.holds).count();
    let verdict = match claims.len() {
        0 => title.to_owned(),
        all if all == held => format!("All {all} claims hold"),
        all => format!("{held} of {all} claims hold"),
    };
    let mut warnings = Vec::new();
    if !findings.complete {
        warnings.push("Broken off: what was done until then is here, the rest is missing.".to_owned());
    }
    if findings.quick {
        let quick = "A quick run, with a fiftieth of the packets: it shows that the study works. Its figures are \
            those of queues filling up, and claims may fail for that alone.";
        warnings.push(quick.to_owned());
    }
    // Lines of the comment up to an empty one are a paragraph.
    let lines: Vec<&str> = findings.about.iter().skip(1).map(String::as_str).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    Frame {
        kind: format!("Forebay study: {title}"),
        verdict,
        warnings,
        intro: paragraphs.map(|lines| lines.join(" ")).collect(),
        ..Frame::default()
    }
}

fn claims(claims: &[Claim]) -> Element {
    let head = ["what was claimed", "what came", "", "why, and when"];
    let row = |claim: &Claim| {
        let (class, sign, word) = match claim.holds {
            true => ("verdict good", "\u{2713}", "holds"),
            false => ("verdict bad", "\u{2717}", "does not hold"),
        };
        let verdict = element("span").class(class).text(format!("{sign}\u{a0}{word}"));
        element("tr")
            .at("id", claim.id.as_str())
            .child(said(claim))
            .child(element("td").text(claim.figure.as_str()))
            .child(element("td").child(verdict))
            .child(element("td").text(claim.why.as_str()))
    };
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    let table = element("table").class("claims").child(head);
    let table = table.child(element("tbody").children(claims.iter().map(row)));
    let section = element("section").child(element("h2").text("Claims"));
    let failed: Vec<&Claim> = claims.iter().filter(|claim| !claim.holds).collect();
    let section = match failed.is_empty() {
        true => section,
        false => {
            let link =
                |claim: &&Claim| element("a").at("href", format!("#{}", claim.id)).text(claim.id.as_str());
            let mut line = element("p").text("Not: ");
            for (number, claim) in failed.iter().enumerate() {
                line = if number == 0 { line } else { line.text(", ") }.child(link(claim));
            }
            section.child(line)
        }
    };
    section.child(document::scroll("Claims", table))
}

/// What was claimed: in the source's words where those are given, with ours below.
fn said(claim: &Claim) -> Element {
    let cell = element("td");
    let cell = match claim.quote.is_empty() {
        true => cell.text(claim.claim.as_str()),
        false => {
            let quote = element("q").text(claim.quote.as_str());
            cell.child(quote).child(element("cite").text(claim.claim.as_str()))
        }
    };
    cell.child(element("code").text(claim.id.as_str()))
}

/// Every run with what was set for it; the rest is in results.json.
fn runs(runs: &[Record]) -> Element {
    let hosts = runs.iter().filter_map(|run| match &run.figures {
        Figures::Host(figures) => Some((run, &**figures)),
        Figures::Other(_) => None,
    });
    let hosts: Vec<(&Record, &forebay_sim::Figures)> = hosts.collect();
    let head = [
        "run",
        "scenario and settings",
        "throughput",
        "CPU load",
        "bus",
        "processing latency",
        "packets/job",
    ];
    let row = |&(run, figures): &(&Record, &forebay_sim::Figures)| {
        let sets: Vec<String> = run.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let cpu = figures.processors.iter().find(|one| one.name == "cpu").map(|one| one.load);
        let cells = [
            format!("{} {}", run.scenario, sets.join(" ")),
            units::bits_per_second(figures.throughput_bps),
            cpu.map_or_else(|| units::NOTHING.to_owned(), units::percent),
            units::percent(figures.bus.load),
            units::seconds(figures.processing_latency.mean_s),
            units::digits(figures.packets_per_job),
        ];
        let cells = cells.into_iter().map(|cell| element("td").text(cell));
        element("tr").child(element("td").text(run.run.to_string())).children(cells)
    };
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    let table = element("table").class("runs").child(head);
    let rows = element("tbody").children(hosts.iter().map(row));
    let table = (!hosts.is_empty()).then(|| table.child(rows));
    let summary = format!("All {}", units::counted(runs.len() as u64, "run", "runs"));
    let mut notes: Vec<&str> = runs.iter().flat_map(|run| &run.notes).map(String::as_str).collect();
    notes.sort_unstable();
    notes.dedup();
    element("section")
        .child(element("h2").text("Runs"))
        .children(notes.into_iter().map(|note| element("p").class("how").text(note)))
        .child(element("details").child(element("summary").text(summary)).children(
            table.into_iter().chain(pipelines::runs(runs)).map(|table| document::scroll("Runs", table)),
        ))
}
