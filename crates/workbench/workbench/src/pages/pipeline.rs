//! The page of a simulated pipeline.

use forebay_page::Made;
use forebay_page::document::{Block, Frame, Table, page};
use forebay_page::plot::{Plot, Series};
use forebay_page::units;
use forebay_pipeline::{BatchMean, BatchMeans, Outcome, Replications, TimeSeries};

use super::Parts;

/// The most points of a line over time.
const POINTS: usize = 1_000;

/// Writes the page of the runs of a scenario.
pub fn render(name: &str, outcomes: &[Outcome], notes: &[String], resolved: &str, made: &Made) -> String {
    let Some(Parts { mut frame, mut blocks }) = parts(name, outcomes, notes) else { return String::new() };
    frame.footer = made.sentence(". Figures, scenario and manifest are in the same directory.");
    blocks.push(Block::Section("Scenario with all defaults".to_owned()));
    blocks.push(Block::Verbatim("scenario.toml".to_owned(), resolved.to_owned()));
    page(&frame.kind, &frame, &blocks)
}

/// What the page shows of the runs; `None` without runs.
pub fn parts(name: &str, outcomes: &[Outcome], notes: &[String]) -> Option<Parts> {
    let first = outcomes.first()?;
    let facts = format!(
        "{} in {}: {} processed, {} lost, {} in flight at the end.",
        units::counted(first.generated, "packet", "packets"),
        units::seconds(first.elapsed_s),
        units::count(first.processed),
        units::count(first.lost),
        units::count(first.in_flight)
    );
    let frame = Frame {
        kind: format!("Forebay simulation: {name}"),
        verdict: match first.generated {
            0 => "no packet came in the time that counts".to_owned(),
            _ => format!(
                "{} packets/s, {} lost",
                units::digits(first.throughput_pps),
                units::percent(first.loss_probability)
            ),
        },
        intro: vec![facts],
        notes: notes.to_vec(),
        ..Frame::default()
    };
    let all = Replications::new(outcomes);
    let stages: Vec<String> = first.stages.iter().map(|one| one.name.clone()).collect();
    let mut blocks = vec![
        Block::Section("Stages".to_owned()),
        Block::Plot(busy(first, all.as_ref())),
        Block::Plot(plot(
            "Waiting at each stage",
            "packets",
            vec![
                Series::bars("mean", &stages, first.stages.iter().map(|one| one.mean_queue).collect()),
                Series::bars("most", &stages, first.stages.iter().map(|one| one.max_queue.into()).collect()),
            ],
        )),
        Block::Table(stage_table(first)),
    ];
    if !first.servers.is_empty() {
        blocks.push(Block::Table(server_table(first)));
    }
    blocks.push(Block::Section("Packet delay".to_owned()));
    blocks.push(Block::Table(delays(first)));
    if let Some(batches) = &first.batch_means {
        blocks.push(Block::Table(batch_means(batches)));
    }
    if let Some(series) = &first.series {
        blocks.push(Block::Section("Over time".to_owned()));
        blocks.extend(over_time(series).map(Block::Plot));
    }
    if let Some(all) = &all {
        blocks.push(Block::Section(format!("Over {}", units::counted(all.runs as u64, "run", "runs"))));
        blocks.push(Block::Table(replications(all)));
    }
    Some(Parts { frame, blocks })
}

fn plot(title: &str, y: &str, series: Vec<Series>) -> Plot {
    Plot { title: title.to_owned(), y: y.to_owned(), series, ..Plot::default() }
}

fn busy(first: &Outcome, all: Option<&Replications>) -> Plot {
    let stages = first.stages.iter().map(|one| (one.name.clone(), one.utilisation));
    let servers = first.servers.iter().map(|one| (format!("{} (server)", one.name), one.utilisation));
    let (names, ys): (Vec<String>, Vec<f64>) =
        stages.chain(servers).map(|(name, share)| (name, 100.0 * share)).unzip();
    let mut series = Series::bars("busy", &names, ys);
    let mut title = "Utilisation".to_owned();
    if let Some(all) = all {
        let stages = all.stages.iter().map(|one| one.utilisation);
        let means: Vec<_> = stages.chain(all.servers.iter().map(|one| one.utilisation)).collect();
        series.ys = means.iter().map(|one| 100.0 * one.mean).collect();
        series.spread = means.iter().map(|one| 100.0 * one.half_width).collect();
        title += &format!(", mean of {} runs with 95 % confidence", all.runs);
    }
    plot(&title, "per cent of the time", vec![series])
}

/// A table, with a column for the shares of what breaks down, where anything does.
fn with_down(mut table: Table, down: impl Iterator<Item = Option<f64>>) -> Table {
    let down: Vec<Option<f64>> = down.collect();
    if down.iter().any(Option::is_some) {
        table.head.push("down".to_owned());
        for (row, share) in table.rows.iter_mut().zip(down) {
            row.push(share.map_or_else(String::new, units::percent));
        }
    }
    table
}

fn stage_table(outcome: &Outcome) -> Table {
    let row = |one: &forebay_pipeline::StageOutcome| {
        vec![
            one.name.clone(),
            units::percent(one.utilisation),
            units::digits(one.mean_queue),
            one.max_queue.to_string(),
            units::count(one.lost),
        ]
    };
    let table = Table {
        title: "Stages".to_owned(),
        head: ["stage", "busy", "waiting, mean", "waiting, most", "lost"].map(str::to_owned).into(),
        rows: outcome.stages.iter().map(row).collect(),
    };
    with_down(table, outcome.stages.iter().map(|one| one.down))
}

fn server_table(outcome: &Outcome) -> Table {
    let row = |one: &forebay_pipeline::ServerOutcome| {
        vec![
            one.name.clone(),
            units::percent(one.utilisation),
            units::percent(one.switching),
            units::percent(one.waiting),
            units::count(one.switches),
        ]
    };
    let table = Table {
        title: "Servers".to_owned(),
        head: ["server", "busy", "switching", "kept waiting", "switches"].map(str::to_owned).into(),
        rows: outcome.servers.iter().map(row).collect(),
    };
    with_down(table, outcome.servers.iter().map(|one| one.down))
}

fn delays(outcome: &Outcome) -> Table {
    let delay = outcome.delay;
    let times = [delay.mean_s, delay.p50_s, delay.p90_s, delay.p99_s, delay.p999_s];
    Table {
        title: "Delay".to_owned(),
        head: ["", "mean", "median", "90 %", "99 %", "99.9 %"].map(str::to_owned).into(),
        rows: vec![
            std::iter::once("from arrival to departure".to_owned())
                .chain(times.map(units::seconds))
                .collect(),
        ],
    }
}

fn batch_means(all: &BatchMeans) -> Table {
    let row = |name: &str, one: BatchMean, factor: f64, unit: &str| {
        vec![
            format!("{name} ({unit})"),
            units::digits(factor * one.mean),
            units::digits(factor * one.half_width),
            units::digits(one.lag_1),
        ]
    };
    Table {
        title: format!("{} batches of this run, with 95 % confidence", all.batches),
        head: ["figure", "mean", "±", "correlation of neighbours"].map(str::to_owned).into(),
        rows: vec![
            row("throughput", all.throughput_pps, 1.0, "packets/s"),
            row("lost", all.loss_probability, 100.0, "%"),
            row("delay", all.delay_mean_s, 1e6, "us"),
        ],
    }
}

/// Packets in the stages, and losses, at each interval's end; of very many intervals some.
fn over_time(series: &TimeSeries) -> [Plot; 2] {
    let step = series.end_s.len().div_ceil(POINTS).max(1);
    let line = |name: &str, ys: Vec<f64>| {
        let points = series.end_s.iter().copied().zip(ys).step_by(step);
        let (xs, ys) = points.unzip();
        Series::line(name, xs, ys)
    };
    let stages = series.stages.iter();
    let inside = stages.clone().map(|one| line(&one.name, one.mean_occupancy.clone()));
    let lost = stages.map(|one| line(&one.name, one.lost.iter().map(|&lost| lost as f64).collect()));
    let interval = units::seconds(series.interval_s);
    let of =
        |title: String, series: Vec<Series>| Plot { x: "s".to_owned(), ..plot(&title, "packets", series) };
    [
        of(format!("In each stage, means of {interval}"), inside.collect()),
        of(format!("Lost at each stage in {interval}"), lost.collect()),
    ]
}

fn replications(all: &Replications) -> Table {
    let row = |name: &str, one: forebay_pipeline::Estimate, factor: f64, unit: &str| {
        vec![
            format!("{name} ({unit})"),
            units::digits(factor * one.mean),
            units::digits(factor * one.half_width),
        ]
    };
    Table {
        title: "Means with 95 % confidence".to_owned(),
        head: ["figure", "mean", "±"].map(str::to_owned).into(),
        rows: vec![
            row("throughput", all.throughput_pps, 1.0, "packets/s"),
            row("lost", all.loss_probability, 100.0, "%"),
            row("delay", all.delay_mean_s, 1e6, "us"),
        ],
    }
}
