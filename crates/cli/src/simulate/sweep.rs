//! `--sweep` and `--replications`: a table of runs, one row a point and seed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use forebay_sim::{Estimate, Outcome, Scenario};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_workbench::columnar::Runs;
use forebay_workbench::flat;
use forebay_workbench::pages::{Row, Sweep};
use forebay_workbench::pool::{self, Wanted};
use forebay_workbench::results::Done;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::{Map, Value, json};

use super::SimulateArgs;
use super::folder;

/// Most points times replications.
const RUNS_MAX: usize = 1_000_000;
/// What the terminal shows of a point besides its keys: heading, figure, factor, decimals.
const COLUMNS: [(&str, &str, f64, usize); 6] = [
    ("Mbit/s", "throughput_bps", 1e-6, 2),
    ("lost", "lost", 1.0, 0),
    ("packets/job", "packets_per_job", 1.0, 3),
    ("bus %", "bus.load", 100.0, 1),
    ("processing us", "processing_latency.mean_s", 1e6, 3),
    ("total us", "total_latency.mean_s", 1e6, 3),
];

/// One combination of the swept keys.
struct Point {
    /// Values in the order of the keys.
    values: Vec<String>,
    scenario: Scenario,
}

/// Runs all points.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    let sweeps: Vec<(&str, Vec<&str>)> =
        args.sweeps.iter().map(|one| parse(one)).collect::<Result<_, _>>()?;
    let points = points(args, &sweeps)?;
    let wanted: Vec<Wanted<'_>> = points
        .iter()
        .flat_map(|point| {
            let scenario = &point.scenario;
            (0..args.replications)
                .map(move |k| Wanted { scenario, seed: scenario.seed.wrapping_add(k as u64) })
        })
        .collect();
    let keys: Vec<&str> = sweeps.iter().map(|(key, _)| *key).collect();
    let files = args.out.is_some().then(|| Files::create(args, &keys, wanted.len())).transpose()?;
    let mut table = Table { args, keys: &keys, files, heading: false, open: None, points: Vec::new() };
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut bar = Progress::runs("simulating");
    bar.of(wanted.len() as u64);
    let look = |done: usize| {
        bar.at(done as u64);
        progress::go_on()
    };
    let each = |number, outcome| table.run(&points, number / args.replications, outcome);
    let done = pool::hosts(&wanted, threads, look, each);
    bar.finish();
    let done = done.wrap_err_with(|| args.scenario.display().to_string())?;
    table.close(&points)?;
    table.finish(&points, done, wanted.len())?;
    if done < wanted.len() {
        let kept = if args.out.is_some() { "are complete and kept" } else { "are complete" };
        eprintln!("interrupted: {done} of {} runs {kept}", wanted.len());
        return Ok(Answer::Interrupted);
    }
    Ok(Answer::Yes)
}

/// What comes of the points, printed and written as it comes.
struct Table<'a> {
    args: &'a SimulateArgs,
    keys: &'a [&'a str],
    files: Option<Files>,
    heading: bool,
    /// The point whose runs are coming.
    open: Option<(usize, Vec<Outcome>)>,
    /// Those that have come.
    points: Vec<Row>,
}

impl Table<'_> {
    /// A run of a point has come. Those of a point come one after the other.
    fn run(&mut self, points: &[Point], at: usize, outcome: Outcome) -> miette::Result<()> {
        if self.open.as_ref().is_some_and(|(open, _)| *open != at) {
            self.close(points)?;
        }
        if let Some(files) = &mut self.files {
            files.run(&points[at], &outcome)?;
        }
        let (_, outcomes) = self.open.get_or_insert_with(|| (at, Vec::new()));
        outcomes.push(outcome);
        if outcomes.len() == self.args.replications { self.close(points) } else { Ok(()) }
    }

    /// The open point is done, or as good as it will be.
    fn close(&mut self, points: &[Point]) -> miette::Result<()> {
        let Some((at, outcomes)) = self.open.take() else { return Ok(()) };
        let point = &points[at];
        let document = document(self.args, self.keys, point, &outcomes);
        if let Some(files) = &mut self.files {
            files.point(&document)?;
        }
        let whole = self.keys.is_empty();
        match (self.args.json, whole) {
            (true, true) => println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?),
            (true, false) => println!("{document}"),
            (false, true) => estimates(&outcomes),
            (false, false) => self.show(point, &outcomes),
        }
        if self.files.is_some() {
            let runs = if whole {
                outcomes.iter().map(|one| (one.seed, flat(&one.figures))).collect()
            } else {
                Vec::new()
            };
            let (values, estimates) = (point.values.clone(), all_estimates(&outcomes));
            self.points.push(Row { values, estimates, runs });
        }
        Ok(())
    }

    /// Writes what can only be written at the end.
    fn finish(self, points: &[Point], runs: usize, of: usize) -> miette::Result<()> {
        let (Some(files), Some(dir)) = (self.files, self.args.out.as_deref()) else { return Ok(()) };
        let made = crate::study::made()?;
        let name = self.args.scenario.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let done = Done { runs, of, complete: runs == of };
        let notes =
            self.points.first().and(points.first()).map_or(Vec::new(), |point| point.scenario.notes.clone());
        let scenario = points.first().map_or(String::new(), |point| point.scenario.resolved_toml());
        let page = Sweep {
            name,
            keys: self.keys,
            replications: self.args.replications,
            notes,
            done: &done,
            scenario,
        };
        let html = page.render(&self.points, &made);
        let written = fs::write(dir.join("report.html"), html)
            .and_then(|()| folder::write_manifest(dir, self.args, None, &made, done));
        written.into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))?;
        files.finish(dir)
    }

    /// A line on the terminal.
    fn show(&mut self, point: &Point, outcomes: &[Outcome]) {
        if !self.heading {
            self.heading = true;
            self.keys.iter().for_each(|key| print!("{key:24} "));
            COLUMNS.iter().for_each(|(heading, ..)| print!("{heading:>22} "));
            println!();
        }
        let estimates = all_estimates(outcomes);
        point.values.iter().for_each(|value| print!("{value:24} "));
        for (_, figure, factor, decimals) in COLUMNS {
            let found = estimates.iter().find(|(name, _)| name == figure).map(|(_, one)| *one);
            let text = match found {
                Some(one) if outcomes.len() > 1 => {
                    format!("{:.decimals$} +- {:.1e}", factor * one.mean, factor * one.half_width)
                }
                Some(one) => format!("{:.decimals$}", factor * one.mean),
                None => String::new(),
            };
            print!("{text:>22} ");
        }
        println!();
    }
}

/// `key=v1,v2,...`; commas within brackets or quotes are part of a value.
pub fn parse(text: &str) -> miette::Result<(&str, Vec<&str>)> {
    let (key, list) = text
        .split_once('=')
        .filter(|(key, list)| !key.trim().is_empty() && !list.trim().is_empty())
        .ok_or_else(|| {
            miette!(help = "write --sweep processor.card.count=1,2,4", "--sweep {text}: no values")
        })?;
    let (mut depth, mut quoted, mut begin) = (0_i32, None, 0);
    let mut values = Vec::new();
    for (at, c) in list.char_indices() {
        match (quoted, c) {
            (Some(quote), _) if c == quote => quoted = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quoted = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(list[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    values.push(list[begin..].trim());
    Ok((key.trim(), values))
}

/// Every combination, the last key changing fastest; all are read, and so checked, before any runs.
fn points(args: &SimulateArgs, sweeps: &[(&str, Vec<&str>)]) -> miette::Result<Vec<Point>> {
    let count = sweeps.iter().fold(1_usize, |count, (_, values)| count.saturating_mul(values.len()));
    if count.saturating_mul(args.replications) > RUNS_MAX {
        return Err(miette!(
            "{count} points with {} runs each exceed the maximum of {RUNS_MAX} runs",
            args.replications
        ));
    }
    let point = |number: usize| {
        let mut rest = number;
        let mut values: Vec<String> = Vec::new();
        for (_, list) in sweeps.iter().rev() {
            values.push(list[rest % list.len()].to_owned());
            rest /= list.len();
        }
        values.reverse();
        let mut sets = args.sets.clone();
        sets.extend(sweeps.iter().zip(&values).map(|((key, _), value)| format!("{key}={value}")));
        Ok(Point { values, scenario: Scenario::load(&args.scenario, &sets)? })
    };
    (0..count).map(point).collect()
}

/// A point in JSON.
fn document(args: &SimulateArgs, keys: &[&str], point: &Point, outcomes: &[Outcome]) -> Value {
    let swept: Map<String, Value> = keys
        .iter()
        .zip(&point.values)
        .map(|(key, value)| ((*key).to_owned(), value.as_str().into()))
        .collect();
    let mut document = json!({ "schema": 1, "model": "host", "seed": point.scenario.seed });
    if !keys.is_empty() {
        document["sweep"] = swept.into();
    }
    if args.replications == 1 {
        let figures: Map<String, Value> =
            flat(&outcomes[0].figures).into_iter().map(|(name, value)| (name, value.into())).collect();
        document["figures"] = figures.into();
        return document;
    }
    let estimates: Map<String, Value> = all_estimates(outcomes)
        .into_iter()
        .map(|(name, one)| (name, json!({ "mean": one.mean, "half_width": one.half_width })))
        .collect();
    document["replications"] = outcomes.len().into();
    document["confidence"] = 0.95.into();
    document["estimates"] = estimates.into();
    if keys.is_empty() {
        let run = |one: &Outcome| json!({ "seed": one.seed, "figures": one.figures });
        document["runs"] = outcomes.iter().map(run).collect();
        document["notes"] = outcomes[0].notes.clone().into();
        document["resolved"] = point.scenario.resolved.clone();
    }
    document
}

/// Mean and 95 % confidence interval of each figure.
fn all_estimates(outcomes: &[Outcome]) -> Vec<(String, Estimate)> {
    let rows: Vec<Vec<(String, f64)>> = outcomes.iter().map(|one| flat(&one.figures)).collect();
    let column = |at: usize| rows.iter().map(|row| row[at].1).collect::<Vec<f64>>();
    rows[0].iter().enumerate().map(|(at, (name, _))| (name.clone(), Estimate::of(&column(at)))).collect()
}

fn estimates(outcomes: &[Outcome]) {
    println!("{} replications; mean and 95 % confidence interval", outcomes.len());
    for (name, one) in all_estimates(outcomes) {
        println!("{name:36} {:>16.6e} +- {:.1e}", one.mean, one.half_width);
    }
}

/// What is kept of a sweep, written as it goes.
struct Files {
    /// One line of JSON a point.
    points: BufWriter<File>,
    /// One line a run and figure.
    runs: BufWriter<File>,
    /// The same in columns, written at the end.
    columns: Runs,
}

impl Files {
    fn create(args: &SimulateArgs, keys: &[&str], of: usize) -> miette::Result<Files> {
        let dir = args.out.as_deref().unwrap_or(std::path::Path::new("."));
        let made = crate::study::made()?;
        let create = || -> std::io::Result<Files> {
            fs::create_dir_all(dir)?;
            folder::write_manifest(dir, args, None, &made, Done { runs: 0, of, complete: false })?;
            fs::copy(&args.scenario, dir.join("scenario.toml"))?;
            let points = BufWriter::new(File::create(dir.join("points.jsonl"))?);
            let mut runs = BufWriter::new(File::create(dir.join("figures.csv"))?);
            keys.iter().try_for_each(|key| write!(runs, "{},", field(key)))?;
            writeln!(runs, "seed,figure,value")?;
            Ok(Files { points, runs, columns: Runs::new(keys) })
        };
        create().into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))
    }

    fn run(&mut self, point: &Point, outcome: &Outcome) -> miette::Result<()> {
        self.columns.add(&point.values, outcome.seed, flat(&outcome.figures));
        let mut write = || -> std::io::Result<()> {
            for (figure, value) in flat(&outcome.figures) {
                point.values.iter().try_for_each(|value| write!(self.runs, "{},", field(value)))?;
                writeln!(self.runs, "{},{figure},{value}", outcome.seed)?;
            }
            self.runs.flush()
        };
        write().into_diagnostic()
    }

    fn point(&mut self, document: &Value) -> miette::Result<()> {
        writeln!(self.points, "{document}").and_then(|()| self.points.flush()).into_diagnostic()
    }

    fn finish(self, dir: &std::path::Path) -> miette::Result<()> {
        let written = self.columns.write(&dir.join("figures.parquet"));
        written.into_diagnostic().wrap_err("cannot write figures.parquet")
    }
}

/// A field of a CSV file (RFC 4180 2).
pub(super) fn field(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parted_by_commas_outside_quotes_and_brackets() {
        let cases = [
            ("a.b=1,2, 4", vec!["1", "2", "4"]),
            ("traffic.rate=200 Mbit/s,1 Gbit/s", vec!["200 Mbit/s", "1 Gbit/s"]),
            ("a=[1,2],[3]", vec!["[1,2]", "[3]"]),
            ("a=\"x,y\",z", vec!["\"x,y\"", "z"]),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap().1, expected, "{text}");
        }
        assert!(parse("a").is_err() && parse("=1").is_err() && parse("a=").is_err());
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!([field("1 Gbit/s"), field("a,\"b\"")], ["1 Gbit/s", "\"a,\"\"b\"\"\""]);
    }
}
