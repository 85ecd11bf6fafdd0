//! The comparison as a page: one file that needs no network.

use forebay_page::document::{Block, Frame, Table, page};
use forebay_page::plot::{Plot, Series};
use forebay_page::units;

use super::compare::{Comparison, Figures, Run};
use super::words;

const SIDES: [&str; 2] = ["engine", "simulator"];

/// Writes the page.
pub fn render(comparison: &Comparison) -> String {
    let frame = Frame {
        kind: "Forebay: engine and simulator".to_owned(),
        verdict: words::verdict(comparison),
        good: Some(comparison.holds),
        intro: vec![format!(
            "{} {} packets at each rate; the engine's clock: {}. {}.",
            comparison.setup,
            units::count(comparison.packets),
            comparison.clock,
            comparison.host
        )],
        footer: format!("Made by forebay {}.", comparison.version),
        ..Frame::default()
    };
    let blocks: Vec<Block> = comparison.runs.iter().flat_map(section).collect();
    page("Forebay: engine and simulator", &frame, &blocks)
}

fn section(run: &Run) -> Vec<Block> {
    let both = [&run.engine, &run.simulator];
    vec![
        Block::Section(format!("Offered: {}", run.rate)),
        Block::Plot(packets(both)),
        Block::Plot(distribution(both)),
        Block::Table(comparison(run)),
        Block::Text(words::why(run)),
    ]
}

fn packets(both: [&Figures; 2]) -> Plot {
    let series = both.into_iter().zip(SIDES).map(|(side, name)| {
        let names: Vec<String> = side.processors.iter().map(|one| one.name.clone()).collect();
        Series::bars(name, &names, side.processors.iter().map(|one| one.packets as f64).collect())
    });
    Plot {
        title: "Packets per processor".to_owned(),
        y: "packets".to_owned(),
        series: series.collect(),
        ..Plot::default()
    }
}

/// Total latency by percentile.
fn distribution(both: [&Figures; 2]) -> Plot {
    let series = both.into_iter().zip(SIDES).map(|(side, name)| {
        let shares = (1..=side.total_s.len()).map(|percent| percent as f64).collect();
        Series::line(name, shares, side.total_s.iter().map(|seconds| 1e6 * seconds).collect())
    });
    Plot {
        title: "Total latency, until released in the order of the SA".to_owned(),
        x: "per cent of the packets".to_owned(),
        y: "us, at most".to_owned(),
        series: series.collect(),
        ..Plot::default()
    }
}

fn comparison(run: &Run) -> Table {
    let rows = run.lines.iter().map(|line| {
        let mut difference = format!("{:+.2} %", 100.0 * line.difference);
        if !line.holds {
            difference += " !";
        }
        let limit = line.limit.map_or(String::new(), |limit| format!("{:.0} %", 100.0 * limit));
        let [engine, simulator] = [line.engine, line.simulator].map(|value| words::value(value, line.unit));
        vec![line.figure.clone(), engine, simulator, difference, limit]
    });
    Table {
        title: format!("Engine and simulator at {}", run.rate),
        head: ["", "engine", "simulator", "difference", "limit"].map(str::to_owned).into(),
        rows: rows.collect(),
    }
}
