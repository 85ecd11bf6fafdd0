//! Pages of sweeps and searches.

use forebay_page::Made;
use forebay_page::document::{Block, Frame, Table, page};
use forebay_page::plot::{Plot, Series};
use forebay_page::units;
use forebay_sim::{Bound, Estimate, Highest};

use crate::results::Done;

/// Lines of a plot at most: there are as many colours.
const LINES: usize = 8;
/// Values that far apart stand on a logarithmic axis.
const FAR_APART: f64 = 40.0;

/// A point of a sweep.
pub struct Row {
    /// Values of the swept keys, in their order.
    pub values: Vec<String>,
    /// Every figure.
    pub estimates: Vec<(String, Estimate)>,
    /// Seed and figures of each run, where there is one point only.
    pub runs: Vec<(u64, Vec<(String, f64)>)>,
}

impl Row {
    fn figure(&self, name: &str) -> Option<Estimate> {
        let found =
            |name: &str| self.estimates.iter().find(|(figure, _)| figure == name).map(|(_, one)| *one);
        // A single card is `card`, the first of several `card.0`.
        found(name).or_else(|| {
            let (processor, figure) = name.strip_prefix("processor.")?.rsplit_once('.')?;
            match processor.strip_suffix(".0") {
                Some(alone) => found(&format!("processor.{alone}.{figure}")),
                None => found(&format!("processor.{processor}.0.{figure}")),
            }
        })
    }
}

/// What a page says of a sweep besides its points.
pub struct SweepPage<'a> {
    /// The scenario's file.
    pub name: String,
    /// The swept keys.
    pub keys: &'a [String],
    /// Runs of each point.
    pub replications: usize,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// How many of the runs are done.
    pub done: &'a Done,
    /// The first point's scenario.
    pub scenario: String,
}

/// A figure that is plotted: its name, the plot's title, the axis, the factor.
type Shown = (String, String, &'static str, f64);

impl SweepPage<'_> {
    /// Writes the page.
    pub fn render(&self, rows: &[Row], made: &Made) -> String {
        let Done { runs, of, complete } = self.done;
        let each = if self.replications > 1 {
            format!(
                " {} runs each, with consecutive seeds; intervals have 95 % confidence.",
                self.replications
            )
        } else {
            String::new()
        };
        let alone = self.keys.is_empty();
        let verdict = match alone {
            true => units::counted(*runs as u64, "replication", "replications"),
            false => format!(
                "{} of {}",
                units::counted(rows.len() as u64, "point", "points"),
                self.keys.join(", ")
            ),
        };
        let frame = Frame {
            kind: format!("Forebay simulation: {}", self.name),
            verdict,
            warnings: (!complete)
                .then(|| format!("Interrupted: {runs} of {of} runs are complete."))
                .into_iter()
                .collect(),
            intro: vec![format!("{}.{each}", units::counted(*runs as u64, "run", "runs"))],
            notes: self.notes.clone(),
            footer: made.sentence(
                ". The figures of every run are in figures.csv and figures.parquet in the same directory.",
            ),
            ..Frame::default()
        };
        let mut blocks = Vec::new();
        if let Some(first) = rows.first() {
            blocks.push(Block::Section(if alone { "Runs" } else { "Figures" }.to_owned()));
            let shown = shown(first, rows);
            if alone {
                blocks.extend(shown.iter().map(|figure| Block::Plot(by_seed(first, figure))));
                blocks.push(Block::Table(all_figures(first)));
            } else {
                blocks.extend(shown.iter().map(|figure| Block::Plot(self.plot(rows, figure))));
                blocks.push(Block::Section("Points".to_owned()));
                blocks.push(Block::Table(self.points(rows, &shown)));
            }
        }
        blocks.push(Block::Section("Scenario with all defaults".to_owned()));
        let of = if alone { "scenario.toml" } else { "scenario.toml of the first point" };
        blocks.push(Block::Verbatim(of.to_owned(), self.scenario.clone()));
        page(&format!("Forebay simulation: {}", self.name), &frame, &blocks)
    }

    /// A figure over the key with the most values, a line for each combination of the others.
    fn plot(&self, rows: &[Row], (name, title, y, factor): &Shown) -> Plot {
        let distinct = |key: usize| {
            let mut values: Vec<&str> = rows.iter().map(|row| row.values[key].as_str()).collect();
            values.sort_unstable();
            values.dedup();
            values.len()
        };
        let numeric = |key: usize| axis(rows.iter().map(|row| row.values[key].as_str()));
        let across =
            (0..self.keys.len()).max_by_key(|&key| (numeric(key).is_some(), distinct(key))).unwrap_or(0);
        let others = |row: &Row| -> Vec<String> {
            let others = (0..self.keys.len()).filter(|&key| key != across);
            others.map(|key| format!("{} {}", last(&self.keys[key]), row.values[key])).collect()
        };
        let mut lines: Vec<(Vec<String>, Vec<&Row>)> = Vec::new();
        for row in rows {
            let other = others(row);
            match lines.iter_mut().find(|(name, _)| *name == other) {
                Some((_, list)) => list.push(row),
                None => lines.push((other, vec![row])),
            }
        }
        let left_out = lines.len().saturating_sub(LINES);
        let unit = numeric(across);
        let series = lines.into_iter().take(LINES).map(|(name_of, mut list)| {
            let place = |row: &Row| number(&row.values[across]).map_or(0.0, |(value, _)| value);
            if unit.is_some() {
                list.sort_by(|a, b| place(a).total_cmp(&place(b)));
            }
            let found: Vec<Option<Estimate>> = list.iter().map(|row| row.figure(name)).collect();
            let ys = found.iter().map(|one| one.map_or(f64::NAN, |one| factor * one.mean)).collect();
            let spread: Vec<f64> =
                found.iter().map(|one| one.map_or(f64::NAN, |one| factor * one.half_width)).collect();
            let label = if name_of.is_empty() { title.clone() } else { name_of.join(", ") };
            let one = match unit {
                Some(_) => Series::line(label, list.iter().map(|row| place(row)).collect(), ys),
                None => {
                    let names: Vec<String> = list.iter().map(|row| row.values[across].clone()).collect();
                    Series::bars(label, &names, ys)
                }
            };
            Series { spread: if self.replications > 1 { spread } else { Vec::new() }, ..one }
        });
        let series: Vec<Series> = series.collect();
        let x = match &unit {
            Some(unit) if !unit.is_empty() => format!("{} ({unit})", self.keys[across]),
            _ => self.keys[across].clone(),
        };
        let places = rows.iter().filter_map(|row| number(&row.values[across])).map(|(value, _)| value);
        Plot {
            title: title.clone(),
            x,
            y: (*y).to_owned(),
            log_x: unit.is_some() && far_apart(places),
            log_y: far_apart(series.iter().flat_map(|one| one.ys.iter().copied())),
            series,
            note: if left_out > 0 { format!("The table has {left_out} more lines.") } else { String::new() },
            ..Plot::default()
        }
    }

    fn points(&self, rows: &[Row], shown: &[Shown]) -> Table {
        let heads = shown.iter().map(|(_, title, y, _)| format!("{title} ({y})"));
        let row = |row: &Row| {
            let cells = shown.iter().map(|(name, _, _, factor)| {
                row.figure(name).map_or_else(|| units::NOTHING.to_owned(), |one| cell(one, *factor))
            });
            row.values.iter().cloned().chain(cells).collect()
        };
        Table {
            title: "All points".to_owned(),
            head: self.keys.iter().cloned().chain(heads).collect(),
            rows: rows.iter().map(row).collect(),
        }
    }
}

/// What is plotted of a sweep: what every design is judged by, and the load of each kind of processor.
fn shown(first: &Row, rows: &[Row]) -> Vec<Shown> {
    const SHARE: &str = "per cent of the time";
    let mut all: Vec<Shown> = [
        ("throughput_bps", "Throughput", "Mbit/s", 1e-6),
        ("payload_bps", "Payload carried", "Mbit/s", 1e-6),
        ("throughput_pps", "Throughput", "packets/s", 1.0),
        ("loss_probability", "Packets lost", "per cent", 100.0),
        ("processing_latency.mean_s", "Processing latency, mean", "us", 1e6),
        ("total_latency.mean_s", "Total latency, mean", "us", 1e6),
        ("total_latency.p99_s", "Total latency, 99 % quantile", "us", 1e6),
        ("delay.mean_s", "Delay, mean", "us", 1e6),
        ("delay.p99_s", "Delay, 99 % quantile", "us", 1e6),
        ("bus.load", "Bus load", SHARE, 100.0),
        ("energy_per_packet_j", "Energy per packet", "uJ", 1e6),
        ("average_power_w", "Mean power", "W", 1.0),
    ]
    .into_iter()
    .filter(|(name, ..)| first.figure(name).is_some())
    .map(|(name, title, unit, factor)| (name.to_owned(), title.to_owned(), unit, factor))
    .collect();
    let of = |prefix, suffix| {
        let names = first.estimates.iter().map(|(name, _)| name.as_str());
        names.filter_map(move |name: &str| name.strip_prefix(prefix)?.strip_suffix(suffix))
    };
    let stages = of("stages.", ".utilisation").take(6);
    all.extend(
        stages.map(|name| {
            (format!("stages.{name}.utilisation"), format!("Utilisation of {name}"), SHARE, 100.0)
        }),
    );
    // Cards of one kind are loaded alike: the first stands for them.
    let processors = of("processor.", ".load");
    let processors = processors.filter(|name| {
        !name.rsplit_once('.').is_some_and(|(_, number)| number.parse::<u32>().is_ok_and(|n| n > 0))
    });
    all.extend(
        processors
            .take(4)
            .map(|name| (format!("processor.{name}.load"), format!("Load of {name}"), SHARE, 100.0)),
    );
    all.push(("packets_per_job".to_owned(), "Packets per job".to_owned(), "packets", 1.0));
    if first.figure("loss_probability").is_none() {
        all.push(("lost".to_owned(), "Packets lost".to_owned(), "packets", 1.0));
    }
    // What is the same everywhere and says nothing is left out.
    all.retain(|(name, ..)| match name.as_str() {
        "packets_per_job" => rows.iter().any(|row| row.figure(name).is_some_and(|one| one.mean != 1.0)),
        "lost" => rows.iter().any(|row| row.figure(name).is_some_and(|one| one.mean > 0.0)),
        _ => true,
    });
    all
}

fn by_seed(row: &Row, (name, title, y, factor): &Shown) -> Plot {
    let value = |figures: &[(String, f64)]| {
        figures.iter().find(|(figure, _)| figure == name).map_or(f64::NAN, |(_, value)| factor * value)
    };
    let names: Vec<String> = row.runs.iter().map(|(seed, _)| seed.to_string()).collect();
    let ys: Vec<f64> = row.runs.iter().map(|(_, figures)| value(figures)).collect();
    let seeds: Vec<f64> = row.runs.iter().map(|(seed, _)| *seed as f64).collect();
    let mut series = vec![match names.len() {
        ..=12 => Series::bars("run", &names, ys),
        _ => Series::line("run", seeds.clone(), ys),
    }];
    if let Some(one) = row.figure(name).filter(|_| names.len() > 12) {
        let (mean, half) = (vec![factor * one.mean; seeds.len()], vec![factor * one.half_width; seeds.len()]);
        series.push(Series { spread: half, ..Series::line("mean of all", seeds, mean) });
    }
    Plot { title: title.clone(), x: "seed".to_owned(), y: (*y).to_owned(), series, ..Plot::default() }
}

fn all_figures(row: &Row) -> Table {
    let line = |(name, one): &(String, Estimate)| {
        let share = if one.mean == 0.0 {
            units::NOTHING.to_owned()
        } else {
            units::percent((one.half_width / one.mean).abs())
        };
        vec![name.clone(), units::digits(one.mean), units::digits(one.half_width), share]
    };
    Table {
        title: "All figures, in SI base units".to_owned(),
        head: ["figure", "mean", "±, 95 %", "of the mean"].map(str::to_owned).into(),
        rows: row.estimates.iter().map(line).collect(),
    }
}

fn cell(one: Estimate, factor: f64) -> String {
    let mean = units::digits(factor * one.mean);
    if one.half_width.is_finite() {
        format!("{mean} ± {}", units::digits(factor * one.half_width))
    } else {
        mean
    }
}

/// The rates that a search tried.
pub fn search(found: &Highest, bound: Bound) -> Vec<Block> {
    let mut tried = found.tried.clone();
    tried.sort_by_key(|one| one.rate_bps);
    // Far below and far above nothing is to be seen.
    let near =
        |rate: u64| (rate as f64) >= 0.2 * found.rate as f64 && (rate as f64) <= 5.0 * found.rate as f64;
    let shown: Vec<_> = tried.iter().filter(|one| near(one.rate_bps)).collect();
    let rates: Vec<f64> = shown.iter().map(|one| one.rate_bps as f64 / 1e6).collect();
    let plot = |title: &str, y: &str, ys: Vec<f64>, limit: f64| {
        let mut series = vec![Series::line("tried", rates.clone(), ys)];
        series.push(Series::line("bound", rates.clone(), vec![limit; rates.len()]));
        let (title, y, x) = (title.to_owned(), y.to_owned(), "offered (Mbit/s)".to_owned());
        Block::Plot(Plot { title, x, y, series, ..Plot::default() })
    };
    let row = |one: &&forebay_sim::Tried| {
        vec![
            units::bits_per_second(one.rate_bps as f64),
            units::bits_per_second(one.throughput_bps),
            units::percent(one.loss),
            units::seconds(one.latency_p99_s),
            if one.keeps { "yes" } else { "no" }.to_owned(),
        ]
    };
    let rate = units::bits_per_second(found.rate as f64);
    let words = match (found.complete, found.above) {
        (true, _) => format!(
            "The highest offered rate within the bounds is {rate}; the figures above were measured at this rate."
        ),
        (false, Some(above)) => {
            let above = units::bits_per_second(above as f64);
            format!("Interrupted: the highest rate is at least {rate} and below {above}.")
        }
        (false, None) => format!("Interrupted: the highest rate is at least {rate}."),
    };
    let mut blocks = vec![Block::Section("The search".to_owned()), Block::Text(words)];
    if let Some(latency) = bound.latency {
        let latencies = shown.iter().map(|one| 1e6 * one.latency_p99_s).collect();
        blocks.push(plot("Total latency, 99 % quantile", "us", latencies, 1e6 * latency.as_secs()));
    }
    blocks.push(plot(
        "Packets lost",
        "per cent",
        shown.iter().map(|one| 100.0 * one.loss).collect(),
        100.0 * bound.loss,
    ));
    blocks.push(Block::Table(Table {
        title: "Rates that were tried, with the same packets".to_owned(),
        head: ["offered", "throughput", "lost", "total latency, 99 %", "carried within bounds"]
            .map(str::to_owned)
            .into(),
        rows: tried.iter().collect::<Vec<_>>().iter().map(row).collect(),
    }));
    blocks
}

/// The last part of a key.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// A value and its unit: `200 Mbit/s`.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim().trim_matches('"');
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_' | 'e' | 'E')))
        .unwrap_or(text.len());
    let value = text[..end].replace('_', "").parse().ok()?;
    Some((value, text[end..].trim()))
}

/// The unit that all values have, if all are numbers.
fn axis<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let units: Option<Vec<&str>> = values.map(|value| number(value).map(|(_, unit)| unit)).collect();
    let units = units?;
    let first = *units.first()?;
    units.iter().all(|unit| *unit == first).then(|| first.to_owned())
}

/// Whether values, all above 0, are so far apart that a linear axis would show the largest only.
fn far_apart(values: impl Iterator<Item = f64>) -> bool {
    let (low, high) =
        values.filter(|v| v.is_finite()).fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    low > 0.0 && low.is_finite() && high / low >= FAR_APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_one_unit_make_an_axis() {
        assert_eq!(axis(["200 Mbit/s", "1000 Mbit/s"].into_iter()), Some("Mbit/s".to_owned()));
        assert_eq!(axis(["1", "2.5", "1e3"].into_iter()), Some(String::new()));
        assert_eq!(axis(["200 Mbit/s", "1 Gbit/s"].into_iter()), None);
        assert_eq!(axis(["single", "1"].into_iter()), None);
    }
}
