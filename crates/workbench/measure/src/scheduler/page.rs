//! The figures as a page: one file that needs no network.

use std::path::Path;

use forebay_links::output;
use forebay_page::document::{Block, Frame, Table, page};
use forebay_page::plot::{Plot, Series};
use forebay_page::units;
use miette::{IntoDiagnostic, WrapErr};

use super::figures::{Document, Outcome, Size};
use super::limits::limits_in_words;
use crate::Error;

/// Writes `report.html` and `figures.json`.
///
/// # Errors
/// If `dir` cannot be written.
pub fn keep(dir: &Path, document: &Document) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(document).into_diagnostic()?;
    for (name, text) in [("report.html", render(document)), ("figures.json", json + "\n")] {
        let path = dir.join(name);
        let written = output::write(&path, text).into_diagnostic();
        written.wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Writes the page.
pub fn render(document: &Document) -> String {
    let frame = Frame {
        kind: "Forebay: scheduling policies on real processors".to_owned(),
        verdict: verdict(document),
        intro: vec![format!(
            "{}, {}, on {}. {}. Packets are in memory and go through the engine as in a gateway; each came out once, \
             in the order of its SA, and samples of each run were opened by another engine.",
            document.proposal,
            units::counted(document.sas as u64, "SA", "SAs"),
            document.processors.join(" + "),
            document.host
        )],
        notes: vec![format!(
            "Medians of {} of {} each. Latency is from the time when a packet was due (Poisson arrivals) to its \
             release, at 50 % and 90 % of the throughput that the configuration reached.",
            units::counted(document.rounds as u64, "round", "rounds"),
            units::seconds(document.slice_s)
        )],
        footer: format!("Made by forebay {}.", document.version),
        ..Frame::default()
    };
    let sizes = document.limits.by_size.iter();
    let blocks: Vec<Block> = sizes.flat_map(|limits| section(document, &limits.size)).collect();
    page("Forebay: scheduling policies", &frame, &blocks)
}

/// What finish time reaches, over all sizes, each with its best window.
fn verdict(document: &Document) -> String {
    let outcomes: Vec<&Outcome> =
        document.limits.by_size.iter().filter_map(|limits| best(document, &limits.size)).collect();
    let said = |one: &&Outcome| {
        format!(
            "{} of the sum and {} of the best fixed split ({})",
            units::percent_short(one.of_sum),
            units::percent_short(one.of_best_static),
            one.size
        )
    };
    match outcomes.is_empty() {
        true => "Throughput, shares and latency by policy".to_owned(),
        false => {
            format!("Finish time reaches {}", outcomes.iter().map(said).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Finish time with its best window.
fn best<'a>(document: &'a Document, size: &'a Size) -> Option<&'a Outcome> {
    let outcomes = of_size(document, size).filter(|one| one.policy == "finish-time");
    outcomes.max_by(|one, two| one.packets_per_s.total_cmp(&two.packets_per_s))
}

fn of_size<'a>(document: &'a Document, size: &'a Size) -> impl Iterator<Item = &'a Outcome> {
    document.results.iter().chain(&document.rivals).filter(move |one| one.size == *size)
}

fn section(document: &Document, size: &Size) -> Vec<Block> {
    let outcomes: Vec<&Outcome> = of_size(document, size).collect();
    let limits = document.limits.by_size.iter().find(|limits| limits.size == *size);
    let words = limits.map_or(String::new(), |limits| format!("Limits: {}.", limits_in_words(limits)));
    vec![
        Block::Section(size.to_string()),
        Block::Text(words),
        Block::Plot(throughput(&outcomes)),
        Block::Plot(latency(&outcomes)),
        Block::Table(alone(document, size)),
        Block::Table(policies(&outcomes)),
        Block::Table(processors(&outcomes)),
    ]
}

/// The policies of these outcomes, each once, and the windows.
fn axes(outcomes: &[&Outcome]) -> (Vec<String>, Vec<usize>) {
    let (mut policies, mut windows): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    for one in outcomes {
        if !policies.iter().any(|known| known == one.label()) {
            policies.push(one.label().to_owned());
        }
        if !windows.contains(&one.window) {
            windows.push(one.window);
        }
    }
    (policies, windows)
}

fn bars(outcomes: &[&Outcome], of: impl Fn(&Outcome) -> f64) -> Vec<Series> {
    let (policies, windows) = axes(outcomes);
    let value = |window: usize, policy: &str| {
        let found = outcomes.iter().find(|one| one.label() == policy && one.window == window);
        found.map_or(f64::NAN, |one| of(one))
    };
    let series = |&window: &usize| {
        let values = policies.iter().map(|policy| value(window, policy)).collect();
        Series::bars(words_of(window), &policies, values)
    };
    windows.iter().map(series).collect()
}

fn words_of(window: usize) -> String {
    if window == 1 { "no bundling".to_owned() } else { format!("window {window}") }
}

fn throughput(outcomes: &[&Outcome]) -> Plot {
    Plot {
        title: "Throughput by policy".to_owned(),
        y: "Gbit/s of plain packets".to_owned(),
        series: bars(outcomes, |one| one.bits_per_s / 1e9),
        note: "`split` is the best fixed split that a search found.".to_owned(),
        ..Plot::default()
    }
}

fn latency(outcomes: &[&Outcome]) -> Plot {
    Plot {
        title: "Latency at 90 % of each policy's own throughput".to_owned(),
        y: "us, 99th percentile".to_owned(),
        series: bars(outcomes, |one| 1e6 * one.latency_90.p99_s),
        log_y: false,
        note: "A policy with more throughput is offered more packets here.".to_owned(),
        ..Plot::default()
    }
}

fn alone(document: &Document, size: &Size) -> Table {
    let rows = document.alone.iter().filter(|one| one.size == *size).map(|one| {
        vec![one.name.clone(), units::count(one.packets_per_s.round() as u64), words_of(one.window)]
    });
    Table {
        title: "Each processor alone".to_owned(),
        head: ["processor", "packets/s", "with"].map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

fn policies(outcomes: &[&Outcome]) -> Table {
    let rows = outcomes.iter().map(|one| {
        let time = units::seconds;
        vec![
            one.label().to_owned(),
            one.window.to_string(),
            units::count(one.packets_per_s.round() as u64),
            units::bits_per_second(one.bits_per_s),
            units::percent(one.of_sum),
            units::percent(one.of_best_static),
            format!("{} / {}", time(one.latency_50.p50_s), time(one.latency_50.p99_s)),
            format!("{} / {}", time(one.latency_90.p50_s), time(one.latency_90.p99_s)),
        ]
    });
    let head = ["policy", "window", "packets/s", "plain bits", "of the sum", "of the best split"];
    let latency = ["p50 / p99 at 50 %", "p50 / p99 at 90 %"];
    Table {
        title: "Policies".to_owned(),
        head: head.into_iter().chain(latency).map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

fn processors(outcomes: &[&Outcome]) -> Table {
    let mut rows = Vec::new();
    for outcome in outcomes {
        for one in &outcome.processors {
            rows.push(vec![
                outcome.label().to_owned(),
                outcome.window.to_string(),
                one.name.clone(),
                units::percent(one.share),
                units::percent(one.load),
                units::seconds(one.predicted_service_s),
                units::seconds(one.actual_service_s),
                units::seconds(one.predicted_s),
                units::seconds(one.actual_s),
            ]);
        }
    }
    let head = ["policy", "window", "processor", "packets", "load"];
    let times = ["service, predicted", "actual", "response, predicted", "actual"];
    Table {
        title: "What each processor did: means per job, a response from dispatch to answer".to_owned(),
        head: head.into_iter().chain(times).map(str::to_owned).collect(),
        rows,
    }
}
