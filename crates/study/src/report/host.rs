//! The page of a single simulation.

use forebay_page::element::element;
use forebay_page::units;
use forebay_sim::{Figures, Latency, Outcome, Scenario};

use super::{page, plot, table};
use crate::findings::{Made, Plot, Series, Table, Xs};

/// Writes the page of `forebay simulate`.
pub fn simulation(name: &str, scenario: &Scenario, outcome: &Outcome, made: &Made) -> String {
    let figures = &outcome.figures;
    let verdict = format!("{} with {name}", units::bits_per_second(figures.throughput_bps));
    let facts = format!(
        "{} in {}; {} packets a job; {}; seed {}.",
        units::counted(figures.packets, "packet", "packets"),
        units::seconds(figures.elapsed_s),
        units::digits(figures.packets_per_job),
        match figures.lost {
            0 => "none lost".to_owned(),
            lost => format!("{} lost at a full input", units::count(lost)),
        },
        outcome.seed
    );
    let header = element("header")
        .child(element("p").class("name").text("Forebay simulation"))
        .child(element("h1").text(verdict))
        .child(element("p").class("intro").text(facts))
        .children(outcome.notes.iter().map(|note| element("p").class("how").text(note.as_str())));
    let who = element("section")
        .child(element("h2").text("Who did the work"))
        .child(
            element("div")
                .class("pair plots")
                .child(plot::plot(&loads(figures)))
                .child(plot::plot(&shares(figures))),
        )
        .child(table(&processors(figures)));
    let time = element("section")
        .child(element("h2").text("How long packets took"))
        .child(table(&latencies(figures)));
    let whole = element("section").child(element("h2").text("The scenario, all defaults filled in")).child(
        element("details")
            .child(element("summary").text("scenario.toml"))
            .child(element("pre").text(scenario.resolved_toml())),
    );
    let footer = format!("Made by forebay {} on {}, {}.", made.version, made.host, made.at);
    let footer = element("footer").child(element("p").text(footer));
    let main = element("main").child(header).child(who).child(time).child(whole).child(footer);
    page(&format!("Forebay simulation: {name}"), main)
}

fn loads(figures: &Figures) -> Plot {
    let mut names: Vec<String> = figures.processors.iter().map(|one| one.name.clone()).collect();
    let mut loads: Vec<f64> = figures.processors.iter().map(|one| 100.0 * one.load).collect();
    let buses = if figures.buses.is_empty() { std::slice::from_ref(&figures.bus) } else { &figures.buses };
    for bus in buses {
        names.push(bus.name.clone().unwrap_or_else(|| "bus".to_owned()));
        loads.push(100.0 * bus.load);
    }
    bars("Load", "per cent of the time", names, vec![("load", loads)])
}

fn shares(figures: &Figures) -> Plot {
    let names = figures.processors.iter().map(|one| one.name.clone()).collect();
    let share = |part: fn(&forebay_sim::ProcessorFigures) -> u64| {
        let total: u64 = figures.processors.iter().map(part).sum();
        figures.processors.iter().map(|one| 100.0 * units::share(part(one) as f64, total as f64)).collect()
    };
    bars(
        "Shares",
        "per cent",
        names,
        vec![("packets", share(|one| one.packets)), ("bytes", share(|one| one.bytes))],
    )
}

fn bars(title: &str, y: &str, names: Vec<String>, values: Vec<(&str, Vec<f64>)>) -> Plot {
    let series = values
        .into_iter()
        .map(|(name, ys)| Series { name: name.to_owned(), xs: Xs::Names(names.clone()), ys })
        .collect();
    Plot { title: title.to_owned(), y: y.to_owned(), series, ..Plot::default() }
}

fn processors(figures: &Figures) -> Table {
    let row = |one: &forebay_sim::ProcessorFigures| {
        vec![
            one.name.clone(),
            units::percent(one.load),
            units::count(one.packets),
            units::bytes(one.bytes as f64),
            units::length(one.mean_size),
        ]
    };
    Table {
        title: "Processors".to_owned(),
        head: ["processor", "load", "packets", "bytes", "mean size"].map(str::to_owned).into(),
        rows: figures.processors.iter().map(row).collect(),
    }
}

fn latencies(figures: &Figures) -> Table {
    let row = |name: &str, one: &Latency| {
        let times = [one.mean_s, one.p50_s, one.p90_s, one.p99_s, one.p999_s];
        std::iter::once(name.to_owned()).chain(times.map(units::seconds)).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![
        row("from the scheduler's choice to completion", &figures.processing_latency),
        row("from arrival to completion", &figures.total_latency),
    ];
    for class in &figures.classes {
        let who = format!("{}, from arrival: {}", class.name, units::counted(class.packets, "packet", "packets"));
        let lost = if class.lost > 0 { format!(", {} lost", units::count(class.lost)) } else { String::new() };
        rows.push(row(&format!("{who}{lost}"), &class.total_latency));
    }
    Table {
        title: "Latency".to_owned(),
        head: ["", "mean", "median", "90 %", "99 %", "99.9 %"].map(str::to_owned).into(),
        rows,
    }
}
