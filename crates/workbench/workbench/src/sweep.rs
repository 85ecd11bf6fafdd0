//! Sweeps of the host model: every combination of values, with one or several seeds each.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use forebay_sim::{Estimate, Options, Outcome, RunError, Scenario};
use serde_json::{Map, Value, json};

use crate::pool::{GoOn, in_order};
use crate::{Error, Grid, flat};

/// Most points times replications.
const RUNS_MAX: usize = 1_000_000;

/// The points of a sweep, read and checked, before any of them runs. Without keys it is one point, which is replicated.
#[derive(Debug)]
pub struct Sweep {
    /// The swept keys.
    pub keys: Vec<String>,
    /// Every combination of their values; the last key changes fastest.
    pub points: Vec<Point>,
    /// Runs of each point, with the seeds s, s + 1, ...
    pub replications: usize,
    path: PathBuf,
}

/// One combination of the swept keys.
#[derive(Debug)]
pub struct Point {
    /// Values in the order of the keys.
    pub values: Vec<String>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// What has come of a sweep, in the order of its points. The runs of a point come one after the other, and then the
/// point; in a sweep that is stopped the last point may lack runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run of a point.
    Run(&'a Point, &'a Outcome),
    /// A point with its runs.
    Point(&'a Point, &'a [Outcome]),
}

/// A sweep whose points are not read yet, so that parts of it can be run in different places.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario as TOML.
    pub text: String,
    /// What it is called in errors.
    pub name: String,
    /// Where the files that it names are.
    pub directory: PathBuf,
    /// What is set at all points (`key=value`).
    pub sets: Vec<String>,
    /// The values of the swept keys.
    pub grid: Grid,
    /// Runs of each point, with the seeds s, s + 1, ...
    pub replications: usize,
}

impl Plan {
    /// The sweep of the scenario at `path`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load(path: &Path, sets: Vec<String>, grid: Grid, replications: usize) -> Result<Plan, Error> {
        let text = forebay_scenario::load(path)?;
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Plan { text, name: path.display().to_string(), directory, sets, grid, replications })
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.grid.count()
    }

    /// Reads the points of a range of their numbers.
    ///
    /// # Errors
    /// What is wrong with the scenario at the first point where it is wrong; [`Error::TooMany`] above a million runs.
    pub fn sweep(&self, points: Range<usize>) -> Result<Sweep, Error> {
        let (count, replications) = (points.len(), self.replications);
        if count.saturating_mul(replications) > RUNS_MAX {
            let found =
                format!("{count} points with {replications} runs each exceed the maximum of {RUNS_MAX} runs");
            return Err(Error::TooMany { found });
        }
        let Plan { text, name, directory, grid, .. } = self;
        let point = |number: usize| {
            let values = grid.point(number);
            let mut sets = self.sets.clone();
            sets.extend(grid.axes.iter().zip(&values).map(|(axis, value)| format!("{}={value}", axis.key)));
            Ok(Point { scenario: Scenario::parse(text, name, &sets, directory)?, values })
        };
        let points = points.map(point).collect::<Result<Vec<Point>, Error>>()?;
        Ok(Sweep { keys: grid.keys(), points, replications: replications.max(1), path: name.into() })
    }
}

impl Sweep {
    /// Reads the scenario at `path` with `sets` (`key=value`) at each point of `grid`.
    ///
    /// # Errors
    /// What is wrong with the scenario at the first point where it is wrong; [`Error::TooMany`] above a million runs.
    pub fn load(path: &Path, sets: &[String], grid: &Grid, replications: usize) -> Result<Sweep, Error> {
        let plan = Plan::load(path, sets.to_vec(), grid.clone(), replications)?;
        plan.sweep(0..plan.points())
    }

    /// The scenario's file, or the name of its text.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of runs of all points together.
    pub fn runs(&self) -> usize {
        self.points.len() * self.replications
    }

    /// Runs all points on up to `threads` threads, whose number affects only the time taken, and passes to `each` what
    /// comes. `look` is called with the number of runs that are done, and returns whether to go on. Returns how many runs
    /// were passed on: fewer than all if the sweep was stopped.
    ///
    /// # Errors
    /// The first that a run or `each` has.
    pub fn run(
        &self,
        threads: usize,
        look: impl FnMut(usize) -> ControlFlow<()>,
        mut each: impl FnMut(Event<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let numbers: Vec<usize> = (0..self.runs()).collect();
        let work = |&number: &usize, go_on: GoOn<'_>| {
            let scenario = &self.points[number / self.replications].scenario;
            let seed = scenario.seed.wrapping_add((number % self.replications) as u64);
            let mut progress = |_, _| go_on();
            let options = Options { seed: Some(seed), progress: Some(&mut progress), ..Options::default() };
            match forebay_sim::run(scenario, options) {
                Ok(outcome) => Ok(vec![(number, outcome)]),
                Err(RunError::Cancelled) => Ok(Vec::new()),
                Err(error) => Err(Error::Run { path: self.path.clone(), error }),
            }
        };
        let (mut at, mut open) = (0, Vec::new());
        let done = in_order(&numbers, threads, work, look, |number, outcome| {
            let point = number / self.replications;
            // A point whose later runs were stopped.
            if point != at && !open.is_empty() {
                each(Event::Point(&self.points[at], &open))?;
                open.clear();
            }
            at = point;
            each(Event::Run(&self.points[at], &outcome))?;
            open.push(outcome);
            if open.len() == self.replications {
                each(Event::Point(&self.points[at], &open))?;
                open.clear();
            }
            Ok(())
        })?;
        if !open.is_empty() {
            each(Event::Point(&self.points[at], &open))?;
        }
        Ok(done)
    }

    /// A point as JSON: the line of `points.jsonl`, and what `forebay simulate --sweep --json` prints.
    pub fn document(&self, point: &Point, outcomes: &[Outcome]) -> Value {
        let swept: Map<String, Value> = self
            .keys
            .iter()
            .zip(&point.values)
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        let mut document = json!({ "schema": 1, "model": "host", "seed": point.scenario.seed });
        if !self.keys.is_empty() {
            document["sweep"] = swept.into();
        }
        if self.replications == 1 {
            let figures: Map<String, Value> =
                flat(&outcomes[0].figures).into_iter().map(|(name, value)| (name, value.into())).collect();
            document["figures"] = figures.into();
            return document;
        }
        let estimates: Map<String, Value> = estimates(outcomes)
            .into_iter()
            .map(|(name, one)| (name, json!({ "mean": one.mean, "half_width": one.half_width })))
            .collect();
        document["replications"] = outcomes.len().into();
        document["confidence"] = 0.95.into();
        document["estimates"] = estimates.into();
        if self.keys.is_empty() {
            let run = |one: &Outcome| json!({ "seed": one.seed, "figures": one.figures });
            document["runs"] = outcomes.iter().map(run).collect();
            document["notes"] = outcomes[0].notes.clone().into();
            document["resolved"] = point.scenario.resolved.clone();
        }
        document
    }
}

/// Mean and 95 % confidence interval of each figure of one or more runs of a scenario, by its name in [`flat()`].
pub fn estimates(outcomes: &[Outcome]) -> Vec<(String, Estimate)> {
    let rows: Vec<Vec<(String, f64)>> = outcomes.iter().map(|one| flat(&one.figures)).collect();
    let column = |at: usize| rows.iter().map(|row| row[at].1).collect::<Vec<f64>>();
    let names = rows.first().into_iter().flatten().enumerate();
    names.map(|(at, (name, _))| (name.clone(), Estimate::of(&column(at)))).collect()
}
