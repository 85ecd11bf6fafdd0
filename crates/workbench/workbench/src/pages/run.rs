//! The page of a single simulation.

use forebay_page::Made;
use forebay_page::document::{Block, Frame, Table, page};
use forebay_page::lanes::{Lanes, Span};
use forebay_page::plot::{Plot, Series};
use forebay_page::units;
use forebay_sim::{Doing, Figures, Latency, OrderFigures, Outcome, Scenario, Timeline};

use super::{Parts, packets};

/// Most spans that the page draws of a time line; all of it is in timeline.json.
const SPANS: usize = 160;

/// Writes the page of `forebay simulate`; `blocks` come after what all runs show.
pub fn simulation(
    name: &str,
    scenario: &Scenario,
    outcome: &Outcome,
    made: &Made,
    blocks: Vec<Block>,
) -> String {
    let Parts { mut frame, blocks: mut all } = parts(name, scenario, outcome);
    frame.footer = made.sentence(". Figures, scenario, manifest and time line lie beside this page.");
    all.extend(blocks);
    all.push(Block::Section("The scenario, all defaults filled in".to_owned()));
    all.push(Block::Verbatim("scenario.toml".to_owned(), scenario.resolved_toml()));
    page(&frame.kind, &frame, &all)
}

/// How many packets leave out of order, in words.
fn order(order: &OrderFigures) -> String {
    match order.late {
        0 => "the packets of each SA leave in their order".to_owned(),
        _ => format!(
            "{} leave after a later one of their SA, up to {} behind, and {} are 64 or more behind",
            units::percent(order.late_share),
            units::count(order.distance_max.into()),
            units::percent(order.beyond_64_share)
        ),
    }
}

/// What the page of any run shows, of its packets and its time line if the outcome has them.
pub fn parts(name: &str, scenario: &Scenario, outcome: &Outcome) -> Parts {
    let figures = &outcome.figures;
    let facts = format!(
        "{} in {}; {} packets a job; {}; {}; seed {}.",
        units::counted(figures.packets, "packet", "packets"),
        units::seconds(figures.elapsed_s),
        units::digits(figures.packets_per_job),
        match figures.lost {
            0 => "none lost".to_owned(),
            lost => format!("{} lost at a full input", units::count(lost)),
        },
        order(&figures.order),
        outcome.seed
    );
    let broken = |packets: u64| {
        format!(
            "Broken off after {}: these are the figures of a run of as many.",
            units::counted(packets, "packet", "packets")
        )
    };
    let frame = Frame {
        kind: format!("Forebay simulation: {name}"),
        verdict: format!(
            "{} through {}",
            units::bits_per_second(figures.throughput_bps),
            units::counted(figures.processors.len() as u64, "processor", "processors")
        ),
        warnings: outcome.cut.map(broken).into_iter().collect(),
        intro: vec![facts],
        notes: outcome.notes.clone(),
        ..Frame::default()
    };
    let mut all = vec![
        Block::Section("Who did the work".to_owned()),
        Block::Plot(loads(figures)),
        Block::Plot(shares(figures)),
        Block::Table(processors(figures)),
        Block::Section("How long packets took".to_owned()),
    ];
    if let Some(columns) = &outcome.columns {
        all.extend(packets::latencies(scenario, columns).into_iter().map(Block::Plot));
    }
    all.push(Block::Table(latencies(figures)));
    if let Some(columns) = &outcome.columns {
        all.push(Block::Section("In the course of time".to_owned()));
        all.extend(packets::over_time(scenario, columns).into_iter().map(Block::Plot));
        all.push(Block::Section("Which packets went where".to_owned()));
        all.extend(packets::by_size(scenario, columns).into_iter().map(Block::Plot));
    }
    if let Some(lanes) = outcome.timeline.as_ref().and_then(|timeline| lanes(scenario, timeline)) {
        all.push(Block::Section("The beginning of the run".to_owned()));
        all.push(Block::Lanes(lanes));
    }
    Parts { frame, blocks: all }
}

fn loads(figures: &Figures) -> Plot {
    let mut names: Vec<String> = figures.processors.iter().map(|one| one.name.clone()).collect();
    let mut loads: Vec<f64> = figures.processors.iter().map(|one| 100.0 * one.load).collect();
    let buses = if figures.buses.is_empty() { std::slice::from_ref(&figures.bus) } else { &figures.buses };
    match &figures.cores {
        // They have no bus.
        Some(cores) => {
            names.extend(["taking", "completing"].map(str::to_owned));
            loads.extend([cores.take, cores.complete].map(|stage| 100.0 * stage.load));
        }
        None => {
            names.extend(buses.iter().map(|bus| bus.name.clone().unwrap_or_else(|| "bus".to_owned())));
            loads.extend(buses.iter().map(|bus| 100.0 * bus.load));
        }
    }
    bars("Load", "per cent of the time", &names, vec![("load", loads)])
}

fn shares(figures: &Figures) -> Plot {
    let names: Vec<String> = figures.processors.iter().map(|one| one.name.clone()).collect();
    let share = |part: fn(&forebay_sim::ProcessorFigures) -> u64| {
        let total: u64 = figures.processors.iter().map(part).sum();
        figures.processors.iter().map(|one| 100.0 * units::share(part(one) as f64, total as f64)).collect()
    };
    let values = vec![("packets", share(|one| one.packets)), ("bytes", share(|one| one.bytes))];
    bars("Shares", "per cent", &names, values)
}

fn bars(title: &str, y: &str, names: &[String], values: Vec<(&str, Vec<f64>)>) -> Plot {
    let series = values.into_iter().map(|(name, ys)| Series::bars(name, names, ys)).collect();
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
    let serial = |name: &str, load| {
        let none = || "-".to_owned();
        vec![name.to_owned(), units::percent(load), none(), none(), none()]
    };
    let turnstiles = figures.cores.map(|cores| {
        [
            serial("taking (one core at a time)", cores.take.load),
            serial("completing (one core at a time)", cores.complete.load),
        ]
    });
    Table {
        title: "Processors".to_owned(),
        head: ["processor", "load", "packets", "bytes", "mean size"].map(str::to_owned).into(),
        rows: figures.processors.iter().map(row).chain(turnstiles.into_iter().flatten()).collect(),
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
        let who =
            format!("{}, from arrival: {}", class.name, units::counted(class.packets, "packet", "packets"));
        let lost =
            if class.lost > 0 { format!(", {} lost", units::count(class.lost)) } else { String::new() };
        rows.push(row(&format!("{who}{lost}"), &class.total_latency));
    }
    if let Some(core) = &figures.running_core {
        rows.push(row("from completion to release in order", &core.reorder_hold));
        rows.push(row("from arrival to release", &core.release_latency));
    }
    if let (Some(hold), Some(release)) = (&figures.order.hold, &figures.order.release_latency) {
        rows.push(row("from completion to release in order", hold));
        rows.push(row("from arrival to release", release));
    }
    Table {
        title: "Latency".to_owned(),
        head: ["", "mean", "median", "90 %", "99 %", "99.9 %"].map(str::to_owned).into(),
        rows,
    }
}

/// Processors and buses in lanes, from the first arrival on.
fn lanes(scenario: &Scenario, timeline: &Timeline) -> Option<Lanes> {
    let processors = scenario.processors.iter().map(|one| one.name.clone());
    let buses = scenario.buses.iter().map(|bus| match scenario.buses.len() {
        1 => "bus".to_owned(),
        _ => format!("bus {}", bus.name),
    });
    let count = scenario.processors.len();
    let span = |span: forebay_sim::Span| {
        let owner = &scenario.processors[span.processor].name;
        Span {
            lane: span.bus.map_or(span.processor, |bus| count + bus),
            slot: span.processor,
            name: match span.what {
                Doing::Compute => format!("{owner} computes"),
                Doing::Fetch => format!("fetched by {owner}"),
                Doing::WriteBack => format!("written back by {owner}"),
                Doing::Take => format!("{owner} takes a burst"),
                Doing::Complete => format!("{owner} completes a burst"),
            },
            from: packets::seconds(span.from.0),
            until: packets::seconds(span.until.0),
        }
    };
    let spans: Vec<Span> = timeline.spans().take(SPANS).map(span).collect();
    let note = "What each processor computed and whose data the bus carried, in the processor's colour. The whole \
        time line, with the queues' lengths, is in timeline.json: open it at ui.perfetto.dev.";
    (!spans.is_empty()).then(|| Lanes {
        title: format!("The first {} spans", spans.len()),
        lanes: processors.chain(buses).collect(),
        spans,
        note: note.to_owned(),
    })
}
