//! Sweeps of any model: every combination of values, with one or several seeds each.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use forebay_random::{CONFIDENCE, Estimate};
use serde_json::{Map, Value, json};

use crate::pool::{GoOn, in_order};
use crate::{Error, Grid, Model, NoFigures, Options, Row, Way};

/// What to do about a swept key that has no effect.
pub(crate) const ONE_KEY: &str = "sweep each key once, by one of its names";

/// Whether each of the keys and values that are set after `sets` is in effect; if not, what replaces it.
pub(crate) fn effective(text: &str, sets: &[String], given: &[(&str, &str)]) -> Result<(), String> {
    let mut all = sets.to_vec();
    all.extend(given.iter().map(|(key, value)| format!("{key}={value}")));
    match forebay_scenario::replaced(text, &all, sets.len()) {
        Some(at) => Err(format!(
            "the swept key `{}` is set by another one too, which replaces it",
            given[at - sets.len()].0
        )),
        None => Ok(()),
    }
}

/// Most points times replications.
const RUNS_MAX: usize = 1_000_000;

/// The points of a sweep, read and checked, before any of them runs. Without keys it is one point, which is replicated.
#[derive(Debug)]
pub struct Sweep {
    /// The swept keys.
    pub keys: Vec<String>,
    /// Every combination of their values; the last key changes fastest.
    pub points: Vec<Point>,
    path: PathBuf,
}

/// One combination of the swept keys.
#[derive(Debug)]
pub struct Point {
    /// Values in the order of the keys.
    pub values: Vec<String>,
    /// The scenario with these values.
    pub model: Model,
    /// Its runs, with the seeds s, s + 1, ...
    pub replications: usize,
}

/// What has come of a sweep, in the order of its points. The runs of a point come one after the other, and then the
/// point; in a sweep that is stopped the last point may lack runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run of a point.
    Run(&'a Point, &'a Row),
    /// A point with its runs.
    Point(&'a Point, &'a [Row]),
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
    /// Runs of each point, with the seeds s, s + 1, ...; `None`: as many as the scenario asks for.
    pub replications: Option<usize>,
}

impl Plan {
    /// The sweep of the scenario at `path`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load(
        path: &Path,
        sets: Vec<String>,
        grid: Grid,
        replications: Option<usize>,
    ) -> Result<Plan, Error> {
        let text = forebay_scenario::load(path)?;
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Plan { text, name: path.display().to_string(), directory, sets, grid, replications })
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.grid.count()
    }

    /// Each swept key has to have an effect: the rows of a sweep say its values.
    fn check_keys(&self) -> Result<(), Error> {
        let Plan { text, name, sets, grid, .. } = self;
        let values = if self.points() > 0 { grid.point(0) } else { Vec::new() };
        let given: Vec<(&str, &str)> =
            grid.axes.iter().zip(&values).map(|(axis, value)| (axis.key.as_str(), value.as_str())).collect();
        effective(text, sets, &given).map_err(|what| Error::of_file(Path::new(name), what, ONE_KEY))
    }

    /// Reads the points of a range of their numbers.
    ///
    /// # Errors
    /// What is wrong with the scenario at the first point where it is wrong; [`Error::TooMany`] above a million runs.
    pub fn sweep(&self, points: Range<usize>) -> Result<Sweep, Error> {
        let (count, replications) = (points.len(), self.replications.unwrap_or(1));
        if count.saturating_mul(replications) > RUNS_MAX {
            let found =
                format!("{count} points with {replications} runs each exceed the maximum of {RUNS_MAX} runs");
            return Err(Error::TooMany { found });
        }
        let Plan { text, name, directory, grid, .. } = self;
        self.check_keys()?;
        let point = |number: usize| {
            let values = grid.point(number);
            let mut sets = self.sets.clone();
            sets.extend(grid.axes.iter().zip(&values).map(|(axis, value)| format!("{}={value}", axis.key)));
            let model = Model::parse(text, name, &sets, directory)?;
            let replications = self.replications.unwrap_or_else(|| model.runs()).max(1);
            Ok(Point { values, model, replications })
        };
        let points = points.map(point).collect::<Result<Vec<Point>, Error>>()?;
        Ok(Sweep { keys: grid.keys(), points, path: name.into() })
    }
}

impl Sweep {
    /// Reads the scenario at `path` with `sets` (`key=value`) at each point of `grid`.
    ///
    /// # Errors
    /// What is wrong with the scenario at the first point where it is wrong; [`Error::TooMany`] above a million runs.
    pub fn load(
        path: &Path,
        sets: &[String],
        grid: &Grid,
        replications: Option<usize>,
    ) -> Result<Sweep, Error> {
        let plan = Plan::load(path, sets.to_vec(), grid.clone(), replications)?;
        plan.sweep(0..plan.points())
    }

    /// The scenario's file, or the name of its text.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of runs of all points together.
    pub fn runs(&self) -> usize {
        self.points.iter().map(|point| point.replications).sum()
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
        let runs: Vec<(usize, &Point, usize)> = self
            .points
            .iter()
            .flat_map(|point| (0..point.replications).map(move |run| (point, run)))
            .enumerate()
            .map(|(number, (point, run))| (number, point, run))
            .collect();
        let work =
            |&(number, point, run): &(usize, &Point, usize), go_on: GoOn<'_>| match point.run(run, go_on) {
                Ok(row) => Ok(vec![(number, row)]),
                Err(NoFigures::Cancelled) => Ok(Vec::new()),
                Err(error) => Err(Error::of_run(&self.path, error)),
            };
        let mut open: (Option<&Point>, Vec<Row>) = (None, Vec::new());
        let done = in_order(&runs, threads, work, look, |number, row| {
            let (_, point, _) = runs[number];
            // A point whose later runs were stopped.
            if open.0.is_some_and(|last| !std::ptr::eq(last, point)) {
                close(&mut open, &mut each)?;
            }
            each(Event::Run(point, &row))?;
            open.0 = Some(point);
            open.1.push(row);
            if open.1.len() == point.replications {
                close(&mut open, &mut each)?;
            }
            Ok(())
        })?;
        close(&mut open, &mut each)?;
        Ok(done)
    }

    /// A point as JSON: the line of `points.jsonl`, and what `forebay simulate --sweep --json` prints.
    pub fn document(&self, point: &Point, rows: &[Row]) -> Value {
        let swept: Map<String, Value> = self
            .keys
            .iter()
            .zip(&point.values)
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        let mut document = json!({ "schema": 1, "model": point.model.kind(), "seed": point.model.seed() });
        if !self.keys.is_empty() {
            document["sweep"] = swept.into();
        }
        if point.replications == 1 {
            let figures: Map<String, Value> =
                rows[0].named.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
            document["figures"] = figures.into();
            return document;
        }
        let estimates: Map<String, Value> = estimates(rows)
            .into_iter()
            .map(|(name, one)| (name, json!({ "mean": one.mean, "half_width": one.half_width })))
            .collect();
        document["replications"] = rows.len().into();
        document["confidence"] = CONFIDENCE.into();
        document["estimates"] = estimates.into();
        if self.keys.is_empty() {
            let run = |one: &Row| json!({ "seed": one.seed, "figures": one.figures });
            document["runs"] = rows.iter().map(run).collect();
            document["notes"] = rows[0].notes.clone().into();
            document["resolved"] = point.model.resolved().clone();
        }
        document
    }
}

impl Point {
    /// One of its runs.
    ///
    /// # Errors
    /// Why it has no figures.
    pub fn run(&self, number: usize, go_on: GoOn<'_>) -> Result<Row, NoFigures> {
        let seed = Some(self.model.seed().wrapping_add(number as u64));
        let options = Options { seed, runs: Some(1), ..Options::default() };
        Ok(self.model.row(&self.model.run(Way::Simulation, &options, &|_| go_on())?))
    }
}

/// Passes on the point whose runs are there, if there are some.
fn close(
    (point, rows): &mut (Option<&Point>, Vec<Row>),
    each: &mut impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if let Some(point) = point.take() {
        each(Event::Point(point, rows))?;
    }
    rows.clear();
    Ok(())
}

/// Mean and 95 % confidence interval of each figure of one or more runs of a scenario.
pub fn estimates(rows: &[Row]) -> Vec<(String, Estimate)> {
    let names = rows.first().into_iter().flat_map(|row| &row.named).enumerate();
    // A figure that a run lacks is none of the others': of firmware, a cause that did not occur.
    let value = |row: &Row, at: usize, name: &str| match row.named.get(at) {
        Some((known, value)) if known == name => Some(*value),
        _ => row.named.iter().find(|(known, _)| known == name).map(|(_, value)| *value),
    };
    let column = |at, name: &str| rows.iter().filter_map(|row| value(row, at, name)).collect::<Vec<f64>>();
    names.map(|(at, (name, _))| (name.clone(), Estimate::of_known(&column(at, name), CONFIDENCE))).collect()
}
