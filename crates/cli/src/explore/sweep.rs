//! `forebay explore sweep`: a grid or a list of configurations.

use std::path::PathBuf;

use clap::Args;
use forebay_embedded::Setup;
use forebay_embedded::report::{Point, best, marginal};
use forebay_page::units;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::{Map, Value, json};

use super::files::Sweep;
use crate::simulate::sweep::parse;
use forebay_terminal::Answer;

/// Most configurations.
const POINTS_MAX: usize = 100_000;

/// Arguments of `forebay explore sweep`.
#[derive(Args)]
pub struct SweepArgs {
    /// The configuration (TOML), model = "embedded".
    config: PathBuf,
    /// Override a key at all points.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Values of a key; if repeated, every combination is run.
    #[arg(long = "sweep", value_name = "KEY=V1,V2,...")]
    sweeps: Vec<String>,
    /// Vary one key at a time, relative to the configuration, instead of all combinations.
    #[arg(long, requires = "sweeps", conflicts_with = "points")]
    one_at_a_time: bool,
    /// Read the points from a file, one per line: `icache.size=4096 memory.width=128`.
    #[arg(long, value_name = "FILE", conflicts_with = "sweeps")]
    points: Option<PathBuf>,
    /// Print one line of JSON per point.
    #[arg(long)]
    json: bool,
    /// Output directory for report.html, points.jsonl, figures.csv and manifest.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of threads [default: number of cores]. It does not change the figures.
    #[arg(long)]
    threads: Option<usize>,
}

/// What is set at a point, in the order of the keys; `None`: as the configuration says.
type Values = Vec<Option<String>>;

/// Runs the command.
pub fn run(args: &SweepArgs) -> miette::Result<Answer> {
    let (keys, points) = points(args)?;
    let setups = points
        .iter()
        .map(|values| {
            let mut sets = args.sets.clone();
            let given = keys.iter().zip(values).filter_map(|(key, value)| Some((key, value.as_ref()?)));
            sets.extend(given.map(|(key, value)| format!("{key}={value}")));
            Setup::load(&args.config, &sets)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut files = args
        .out
        .as_ref()
        .map(|dir| {
            Sweep::create(dir, &args.config, &args.sets, &args.sweeps, &names)
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot write {}", dir.display()))
        })
        .transpose()?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut done: Vec<Point> = Vec::new();
    let count = super::run_all(&setups, threads, |number, figures, run| {
        if figures.code != 0 {
            return Err(miette!("{}: the firmware exited with code {}", args.config.display(), run.code));
        }
        let values: Vec<String> = (0..keys.len())
            .map(|at| match &points[number][at] {
                Some(value) => value.clone(),
                None => resolved(&setups[number].resolved, &keys[at]),
            })
            .collect();
        let swept: Map<String, Value> =
            keys.iter().cloned().zip(values.iter().map(|value| value.as_str().into())).collect();
        let document = json!({ "schema": 1, "model": "embedded", "sweep": swept, "figures": figures });
        if let Some(files) = &mut files {
            files.add(&values, &document, &figures).into_diagnostic()?;
        }
        if args.json {
            println!("{document}");
        }
        let given = points[number].iter().zip(&keys).filter_map(|(value, key)| Some((key, value.as_ref()?)));
        let name: Vec<String> = given.map(|(key, value)| format!("{key}={value}")).collect();
        done.push(Point {
            name: if name.is_empty() { "as configured".to_owned() } else { name.join(" ") },
            values: keys.iter().cloned().zip(values).collect(),
            figures,
        });
        Ok(())
    })?;
    if let (Some(files), Some(dir)) = (files, &args.out) {
        let name =
            args.config.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        files.finish(dir, &name, &done)?;
    }
    if !args.json {
        print(&done);
    }
    if count < setups.len() {
        eprintln!("interrupted: {count} of {} configurations are complete", setups.len());
        return Ok(Answer::Interrupted);
    }
    Ok(Answer::Yes)
}

/// The swept keys, and the points.
fn points(args: &SweepArgs) -> miette::Result<(Vec<String>, Vec<Values>)> {
    if let Some(path) = &args.points {
        return listed(path);
    }
    let sweeps: Vec<(&str, Vec<&str>)> =
        args.sweeps.iter().map(|one| parse(one)).collect::<Result<_, _>>()?;
    let keys: Vec<String> = sweeps.iter().map(|(key, _)| (*key).to_owned()).collect();
    if args.one_at_a_time {
        let mut points = vec![vec![None; keys.len()]];
        for (at, (_, values)) in sweeps.iter().enumerate() {
            for value in values {
                let mut point = vec![None; keys.len()];
                point[at] = Some((*value).to_owned());
                points.push(point);
            }
        }
        return Ok((keys, points));
    }
    let count = sweeps.iter().fold(1_usize, |count, (_, values)| count.saturating_mul(values.len()));
    if count > POINTS_MAX {
        return Err(miette!("{count} configurations: {POINTS_MAX} at most"));
    }
    let point = |number: usize| {
        let mut rest = number;
        let mut values: Values = Vec::new();
        for (_, list) in sweeps.iter().rev() {
            values.push(Some(list[rest % list.len()].to_owned()));
            rest /= list.len();
        }
        values.reverse();
        values
    };
    Ok((keys, (0..count).map(point).collect()))
}

/// Points from a file.
fn listed(path: &std::path::Path) -> miette::Result<(Vec<String>, Vec<Values>)> {
    let text = std::fs::read_to_string(path).map_err(|error| miette!("{}: {error}", path.display()))?;
    let mut keys: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut pairs = Vec::new();
        for pair in line.split_whitespace() {
            let Some((key, value)) = pair.split_once('=') else {
                let help =
                    "write lines such as `icache.size=4096 memory.width=128`, without spaces in values";
                return Err(miette!(help = help, "{}:{}: `{pair}` has no `=`", path.display(), number + 1));
            };
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
            pairs.push((key.to_owned(), value.to_owned()));
        }
        lines.push(pairs);
    }
    if lines.is_empty() || lines.len() > POINTS_MAX {
        return Err(miette!("{}: {} points; 1 to {POINTS_MAX} can be", path.display(), lines.len()));
    }
    let points = lines.into_iter().map(|pairs| {
        keys.iter()
            .map(|key| pairs.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.clone()))
            .collect()
    });
    let points = points.collect();
    Ok((keys, points))
}

/// What a key is where a point does not set it.
fn resolved(resolved: &Value, key: &str) -> String {
    let found = key.split('.').try_fold(resolved, |at, step| at.get(step));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

fn print(points: &[Point]) {
    let width = points.iter().map(|one| one.name.len()).max().unwrap_or(0).clamp(14, 72);
    println!(
        "{:width$} {:>14} {:>12} {:>10} {:>10} {:>8}",
        "configuration", "cycles", "a packet", "a byte", "kGE", "CPI"
    );
    let frontier = best(points);
    for (at, point) in points.iter().enumerate() {
        let one = &point.figures;
        println!(
            "{:width$} {:>14} {:>12.1} {:>10.2} {:>10.1} {:>8.3}{}",
            point.name,
            one.cycles,
            one.cycles_per_packet,
            one.cycles_per_byte,
            one.area_kge,
            one.cpi,
            if frontier.contains(&at) { "  frontier" } else { "" }
        );
    }
    let steps = marginal(points);
    if let Some(step) = steps.first() {
        println!(
            "\nPays most per area: {} from {} to {}: {} of the cycles for {:.2} kGE (estimate)",
            step.key,
            step.values.0,
            step.values.1,
            units::percent(step.saved),
            step.kge
        );
    }
}
