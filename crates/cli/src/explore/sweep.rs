//! `forebay explore sweep`: a grid or a list of configurations.

use std::path::PathBuf;

use clap::Args;
use forebay_embedded::report::{Point, best, marginal};
use forebay_page::units;
use forebay_workbench::explore::{Points, Sweep, document};
use forebay_workbench::results;
use forebay_workbench::results::explore::{Request, SweepFolder};

use crate::request::{grid, made, report, threads};
use forebay_terminal::Answer;

/// Arguments of `forebay explore sweep`.
#[derive(Args)]
pub struct SweepArgs {
    /// The configuration (TOML), model = "embedded".
    config: PathBuf,
    /// Override a key at all points, or remove it by `KEY=`.
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

/// Runs the command.
pub fn run(args: &SweepArgs) -> miette::Result<Answer> {
    let written = args.out.iter().flat_map(|dir| results::files(dir));
    let named = forebay_scenario::files_named(&args.config, &args.sets);
    forebay_terminal::refuse_inputs(written, named.iter().chain(&args.points))?;
    let points = match &args.points {
        Some(path) => Points::load(path),
        None if args.one_at_a_time => Ok(Points::one_at_a_time(&grid(&args.sweeps)?)),
        None => Points::combinations(&grid(&args.sweeps)?),
    };
    let sweep = Sweep::load(&args.config, &args.sets, points.map_err(report)?).map_err(report)?;
    let request = Request { config: &args.config, sets: &args.sets, sweeps: &args.sweeps };
    let keys = &sweep.points.keys;
    let folder =
        args.out.as_ref().map(|dir| SweepFolder::create(dir, request, keys, &made()?).map_err(report));
    let mut folder = folder.transpose()?;
    let mut done: Vec<Point> = Vec::new();
    let count = super::with_bar(sweep.count(), |look| {
        sweep.run(threads(args.threads), look, |point| {
            if let Some(folder) = &mut folder {
                folder.add(&point)?;
            }
            if args.json {
                println!("{}", document(&point));
            }
            done.push(point);
            Ok(())
        })
    });
    let count = count.map_err(report)?;
    if let Some(folder) = folder {
        folder.finish(&done, &made()?).map_err(report)?;
    }
    if !args.json {
        print(&done);
    }
    if count < sweep.count() {
        eprintln!("interrupted: {count} of {} configurations are complete", sweep.count());
        return Ok(Answer::Interrupted);
    }
    Ok(Answer::Yes)
}

fn print(points: &[Point]) {
    let width = points.iter().map(|one| one.name.len()).max().unwrap_or(0).clamp(14, 72);
    println!(
        "{:width$} {:>14} {:>12} {:>10} {:>10} {:>8} {:>6} {:>12}",
        "configuration", "cycles", "a packet", "a byte", "kGE", "CPI", "MHz", "us a packet"
    );
    let frontier = best(points);
    for (at, point) in points.iter().enumerate() {
        let one = &point.figures;
        println!(
            "{:width$} {:>14} {:>12.1} {:>10.2} {:>10.1} {:>8.3} {:>6.0} {:>12.2}{}",
            point.name,
            one.cycles,
            one.cycles_per_packet,
            one.cycles_per_byte,
            one.area_kge,
            one.cpi,
            one.clock.mhz,
            one.us_per_packet,
            if frontier.contains(&at) { "  frontier" } else { "" }
        );
    }
    let steps = marginal(points);
    if let Some(step) = steps.first() {
        println!(
            "\nPays most per area: {} from {} to {}: {} of the time for {:.2} kGE",
            step.key,
            step.values.0,
            step.values.1,
            units::percent(step.saved),
            step.kge
        );
    }
}
