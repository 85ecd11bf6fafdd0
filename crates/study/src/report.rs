//! The page of a study: claims first, then what the script showed, then every run.

mod host;
mod pipelines;
mod plot;

use forebay_page::element::{Element, element};
use forebay_page::{STYLE, units};

use crate::findings::{Block, Claim, Findings, Made, Table};
use crate::model::Figures;
use crate::runs::Record;

pub use host::simulation;

/// Writes the page as one self-contained HTML document; all text of a study is escaped.
pub fn render(findings: &Findings, made: &Made) -> String {
    let title = findings.about.first().map_or(findings.name.as_str(), String::as_str);
    let mut main = element("main").child(headline(findings, title));
    if !findings.claims.is_empty() {
        main = main.child(claims(&findings.claims));
    }
    for part in parts(&findings.blocks) {
        main = main.child(part);
    }
    page(&format!("Forebay study: {title}"), main.child(runs(&findings.runs)).child(footer(findings, made)))
}

/// A document with the style of all reports, and the script that lets the reader ask plots.
fn page(title: &str, main: Element) -> String {
    let head = element("head")
        .child(element("meta").at("charset", "utf-8"))
        .child(element("meta").at("name", "viewport").at("content", "width=device-width, initial-scale=1"))
        .child(element("title").text(title))
        .child(element("style").style(STYLE).style(include_str!("report/study.css")));
    let script = element("script").style(include_str!("report/study.js"));
    let body = element("body").child(main).child(script);
    let mut out = "<!DOCTYPE html>\n".to_owned();
    element("html").at("lang", "en").child(head).child(body).write(&mut out);
    out.push('\n');
    out
}

fn headline(findings: &Findings, title: &str) -> Element {
    let claims = &findings.claims;
    let held = claims.iter().filter(|claim| claim.holds).count();
    let verdict = match claims.len() {
        0 => title.to_owned(),
        all if all == held => format!("All {all} claims hold"),
        all => format!("{held} of {all} claims hold"),
    };
    let mut header = element("header")
        .child(element("p").class("name").text(format!("Forebay study: {title}")))
        .child(element("h1").text(verdict));
    if !findings.complete {
        header = header.child(warning("Broken off: what was done until then is here, the rest is missing."));
    }
    if findings.quick {
        header = header.child(warning(
            "A quick run, with a fiftieth of the packets: it shows that the study works. Its figures are those \
             of queues filling up, and claims may fail for that alone.",
        ));
    }
    // Lines of the comment up to an empty one are a paragraph.
    let lines: Vec<&str> = findings.about.iter().skip(1).map(String::as_str).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    header.children(paragraphs.map(|lines| element("p").class("intro").text(lines.join(" "))))
}

fn warning(words: &str) -> Element {
    element("p").class("warning").text(words)
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
            .child(element("td").text(claim.claim.as_str()).child(element("code").text(claim.id.as_str())))
            .child(element("td").text(claim.figure.as_str()))
            .child(element("td").child(verdict))
            .child(element("td").text(claim.why.as_str()))
    };
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    let table = element("table").class("claims").child(head);
    element("section").child(element("h2").text("Claims")).child(
        element("div").class("scroll").child(table.child(element("tbody").children(claims.iter().map(row)))),
    )
}

/// Blocks as sections, plots two in a row.
fn parts(blocks: &[Block]) -> Vec<Element> {
    let mut parts = Vec::new();
    let mut part: Option<Element> = None;
    let mut figures: Vec<Element> = Vec::new();
    let flush = |part: &mut Option<Element>, figures: &mut Vec<Element>| {
        if !figures.is_empty() {
            let row = element("div").class("pair plots").children(figures.drain(..));
            *part = Some(part.take().unwrap_or_else(|| element("section")).child(row));
        }
    };
    for block in blocks {
        if let Block::Plot(plot) = block {
            figures.push(plot::plot(plot));
            continue;
        }
        flush(&mut part, &mut figures);
        let open = || element("section");
        part = match block {
            Block::Section(title) => {
                parts.extend(part.take());
                Some(open().child(element("h2").text(title.as_str())))
            }
            Block::Text(words) => Some(part.unwrap_or_else(open).child(element("p").text(words.as_str()))),
            Block::Table(one) => Some(part.unwrap_or_else(open).child(table(one))),
            Block::Heat(heat) => Some(part.unwrap_or_else(open).child(plot::heat(heat))),
            Block::Plot(_) => part,
        };
    }
    flush(&mut part, &mut figures);
    parts.extend(part);
    parts
}

fn table(table: &Table) -> Element {
    let head = table.head.iter().map(|name| element("th").text(name.as_str()));
    let row = |cells: &Vec<String>| {
        element("tr").children(cells.iter().map(|cell| element("td").text(cell.as_str())))
    };
    let shown = element("table")
        .child(element("caption").text(table.title.as_str()))
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(table.rows.iter().map(row)));
    element("div").class("scroll").child(shown)
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
        .child(
            element("details").child(element("summary").text(summary)).children(
                table
                    .into_iter()
                    .chain(pipelines::runs(runs))
                    .map(|table| element("div").class("scroll").child(table)),
            ),
        )
}

fn footer(findings: &Findings, made: &Made) -> Element {
    let made = format!(
        "Made by forebay {} on {}, {}, from the study {}. Rest the pointer on a plot for its values; press a \
         name in a legend to hide or show it. Scenarios, figures and the study itself lie beside this page.",
        made.version, made.host, made.at, findings.name
    );
    element("footer").child(element("p").text(made))
}
