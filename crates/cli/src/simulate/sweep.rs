//! `--sweep` and `--replications`: a table of runs, one row a point and seed.

use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_workbench::Row;
use forebay_workbench::results::{Request, SweepFolder};
use forebay_workbench::sweep::{Event, Point, Sweep, estimates};

use super::SimulateArgs;
use crate::request::{decimals, grid, made, report, threads};

/// What the terminal shows of a point besides its keys, where its model has it: heading, figure, factor, decimals.
const COLUMNS: [(&str, &str, f64, usize); 11] = [
    ("Mbit/s", "throughput_bps", 1e-6, 2),
    ("Mbit/s of payload", "payload_bps", 1e-6, 2),
    ("packets/s", "throughput_pps", 1.0, 1),
    ("lost", "lost", 1.0, 0),
    ("packets/job", "packets_per_job", 1.0, 3),
    ("bus %", "bus.load", 100.0, 1),
    ("processing us", "processing_latency.mean_s", 1e6, 3),
    ("total us", "total_latency.mean_s", 1e6, 3),
    ("lost %", "loss_probability", 100.0, 4),
    ("delay us", "delay.mean_s", 1e6, 3),
    ("99 % us", "delay.p99_s", 1e6, 3),
];

/// Runs all points.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    let grid = grid(&args.sweeps)?;
    let sweep = Sweep::load(&args.scenario, &args.sets, &grid, args.replications).map_err(report)?;
    for point in &sweep.points {
        args.check(&point.model)?;
    }
    let replications = sweep.points.first().map_or(1, |point| point.replications);
    let request = Request { replications, ..args.request() };
    let folder =
        args.out.as_ref().map(|dir| SweepFolder::create(dir, request, &sweep, &made()?).map_err(report));
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
        if let Event::Point(point, rows) = event {
            table.show(point, rows);
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
    fn show(&mut self, point: &Point, rows: &[Row]) {
        let whole = self.sweep.keys.is_empty();
        match (self.args.json, whole) {
            (true, true) => println!("{:#}", self.sweep.document(point, rows)),
            (true, false) => println!("{}", self.sweep.document(point, rows)),
            (false, true) => print_estimates(rows),
            (false, false) => self.line(point, rows),
        }
    }

    fn line(&mut self, point: &Point, rows: &[Row]) {
        let estimates = estimates(rows);
        let columns = COLUMNS.iter().filter_map(|column| {
            let found = estimates.iter().find(|(name, _)| name == column.1);
            found.map(|(_, one)| (column, *one))
        });
        if !self.heading {
            self.heading = true;
            self.sweep.keys.iter().for_each(|key| print!("{key:24} "));
            columns.clone().for_each(|((heading, ..), _)| print!("{heading:>22} "));
            println!();
        }
        point.values.iter().for_each(|value| print!("{value:24} "));
        for (&(_, _, factor, places), one) in columns {
            let mean = decimals(factor * one.mean, places);
            let text = match rows.len() {
                _ if one.mean.is_nan() => mean,
                1 => mean,
                _ => format!("{mean} +- {:.1e}", factor * one.half_width),
            };
            print!("{text:>22} ");
        }
        println!();
    }
}

fn print_estimates(rows: &[Row]) {
    println!("{} replications; mean and 95 % confidence interval", rows.len());
    for (name, one) in estimates(rows) {
        match one.mean.is_nan() {
            true => println!("{name:36} {:>16}", "-"),
            false => println!("{name:36} {:>16.6e} +- {:.1e}", one.mean, one.half_width),
        }
    }
}
