//! `--sweep` and `--replications`: a table of runs, one row a point and seed.

use forebay_sim::Outcome;
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_workbench::results::SweepFolder;
use forebay_workbench::sweep::{Event, Point, Sweep, estimates};

use super::SimulateArgs;
use crate::request::{grid, made, report, threads};

/// What the terminal shows of a point besides its keys: heading, figure, factor, decimals.
const COLUMNS: [(&str, &str, f64, usize); 6] = [
    ("Mbit/s", "throughput_bps", 1e-6, 2),
    ("lost", "lost", 1.0, 0),
    ("packets/job", "packets_per_job", 1.0, 3),
    ("bus %", "bus.load", 100.0, 1),
    ("processing us", "processing_latency.mean_s", 1e6, 3),
    ("total us", "total_latency.mean_s", 1e6, 3),
];

/// Runs all points.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    let grid = grid(&args.sweeps)?;
    let sweep = Sweep::load(&args.scenario, &args.sets, &grid, args.replications).map_err(report)?;
    let folder = args
        .out
        .as_ref()
        .map(|dir| SweepFolder::create(dir, args.request(), &sweep, &made()?).map_err(report));
    let mut folder = folder.transpose()?;
    let mut table = Table { args, sweep: &sweep, heading: false };
    let mut bar = Progress::runs("simulating");
    bar.of(sweep.runs() as u64);
    let look = |done: usize| {
        bar.at(done as u64);
        progress::go_on()
    };
    let done = sweep.run(threads(args.threads), look, |event| {
        if let Some(folder) = &mut folder {
            folder.add(event)?;
        }
        if let Event::Point(point, outcomes) = event {
            table.show(point, outcomes);
        }
        Ok(())
    });
    bar.finish();
    let done = done.map_err(report)?;
    if let Some(folder) = folder {
        folder.finish(done, &made()?).map_err(report)?;
    }
    if done < sweep.runs() {
        let kept = if args.out.is_some() { "are complete and kept" } else { "are complete" };
        eprintln!("interrupted: {done} of {} runs {kept}", sweep.runs());
        return Ok(Answer::Interrupted);
    }
    Ok(Answer::Yes)
}

/// What is printed of the points, as they come.
struct Table<'a> {
    args: &'a SimulateArgs,
    sweep: &'a Sweep,
    heading: bool,
}

impl Table<'_> {
    fn show(&mut self, point: &Point, outcomes: &[Outcome]) {
        let whole = self.sweep.keys.is_empty();
        match (self.args.json, whole) {
            (true, true) => println!("{:#}", self.sweep.document(point, outcomes)),
            (true, false) => println!("{}", self.sweep.document(point, outcomes)),
            (false, true) => print_estimates(outcomes),
            (false, false) => self.line(point, outcomes),
        }
    }

    fn line(&mut self, point: &Point, outcomes: &[Outcome]) {
        if !self.heading {
            self.heading = true;
            self.sweep.keys.iter().for_each(|key| print!("{key:24} "));
            COLUMNS.iter().for_each(|(heading, ..)| print!("{heading:>22} "));
            println!();
        }
        let estimates = estimates(outcomes);
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

fn print_estimates(outcomes: &[Outcome]) {
    println!("{} replications; mean and 95 % confidence interval", outcomes.len());
    for (name, one) in estimates(outcomes) {
        println!("{name:36} {:>16.6e} +- {:.1e}", one.mean, one.half_width);
    }
}
