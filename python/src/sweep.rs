//! Sweeps of any model by the compiled pool, and single points of them.

use std::path::PathBuf;

use forebay_sim::{Options, RunError};
use forebay_workbench::sweep::{Event, Plan, Point};
use forebay_workbench::{Axis, Error, Grid, Model, Outcome, Ran, Row, sweep as workbench};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::errors;
use crate::policy::{self, Ended};
use crate::watch::attended;

/// A sweep whose points are read when they are run, so that parts of it can be run in different places.
#[pyclass(frozen, module = "forebay._forebay")]
#[derive(Debug)]
pub struct Sweep(Plan);

#[pymethods]
impl Sweep {
    /// A sweep of a text, with `axes` as a list of keys with their values as `--sweep` takes them.
    #[new]
    #[pyo3(signature = (text, name, sets, directory, axes, replications = 1))]
    fn new(
        text: String,
        name: String,
        sets: Vec<String>,
        directory: PathBuf,
        axes: Vec<(String, Vec<String>)>,
        replications: usize,
    ) -> Sweep {
        let axes = axes.into_iter().map(|(key, values)| Axis { key, values }).collect();
        Sweep(Plan {
            text,
            name,
            directory,
            sets,
            grid: Grid { axes },
            replications: Some(replications.max(1)),
        })
    }

    /// The same of a file.
    #[staticmethod]
    #[pyo3(signature = (path, sets, axes, replications = 1))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        sets: Vec<String>,
        axes: Vec<(String, Vec<String>)>,
        replications: usize,
    ) -> PyResult<Sweep> {
        let axes = axes.into_iter().map(|(key, values)| Axis { key, values }).collect();
        let plan = Plan::load(&path, sets, Grid { axes }, Some(replications.max(1)));
        plan.map(Sweep).map_err(|why| errors::workbench(py, &why))
    }

    /// The number of points.
    #[getter]
    fn points(&self) -> usize {
        self.0.points()
    }

    /// The number of runs of all points together.
    #[getter]
    fn runs(&self) -> usize {
        self.0.points().saturating_mul(self.0.replications.unwrap_or(1))
    }

    /// The swept keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.0.grid.keys()
    }

    /// The values of a point, in the order of the keys; the last key changes fastest.
    fn point(&self, number: usize) -> PyResult<Vec<String>> {
        self.range(number, number + 1)?;
        Ok(self.0.grid.point(number))
    }

    /// The scenario of a point with every default filled in, as TOML.
    fn resolved(&self, py: Python<'_>, number: usize) -> PyResult<String> {
        let range = self.range(number, number + 1)?;
        let sweep = self.0.sweep(range).map_err(|why| errors::workbench(py, &why))?;
        Ok(sweep.points[0].model.resolved_toml())
    }

    /// Runs the points from `first` to before `last`: a line of JSON for each, as `points.jsonl` has it. `watch` is called
    /// with runs done and runs in all, `emit` with the number and the line of each point as soon as it is there, in their
    /// order. With a policy of Python all runs are made on this thread, each with a copy of the object.
    #[pyo3(signature = (first, last, threads = 1, watch = None, emit = None, policy = None))]
    #[allow(clippy::too_many_arguments)] // they are of Python, by their names
    fn run(
        &self,
        py: Python<'_>,
        first: usize,
        last: usize,
        threads: usize,
        watch: Option<Py<PyAny>>,
        emit: Option<Py<PyAny>>,
        policy: Option<Py<PyAny>>,
    ) -> PyResult<Vec<String>> {
        let range = self.range(first, last)?;
        let sweep = py.detach(|| self.0.sweep(range)).map_err(|why| errors::workbench(py, &why))?;
        let mut lines = Vec::with_capacity(sweep.points.len());
        if let Some(policy) = policy {
            for point in &sweep.points {
                let line = with_policy(py, &sweep, point, policy.bind(py), watch.as_ref())?;
                tell(py, emit.as_ref(), first + lines.len(), &line)?;
                lines.push(line);
            }
            return Ok(lines);
        }
        let all = sweep.runs() as u64;
        let (ran, raised) = attended(py, watch.as_ref(), |shared| {
            let mut refused = None;
            let look = |done: usize| shared.at(done as u64, all);
            let ran = sweep.run(threads, look, |event| {
                let Event::Point(point, rows) = event else { return Ok(()) };
                // Of a sweep that is stopped the last point may lack runs.
                if rows.len() < point.replications || refused.is_some() {
                    return Ok(());
                }
                let line = sweep.document(point, rows).to_string();
                let told = match &emit {
                    Some(_) => Python::attach(|py| tell(py, emit.as_ref(), first + lines.len(), &line)),
                    None => Ok(()),
                };
                lines.push(line);
                told.map_err(|error| {
                    refused = Some(error);
                    Error::Cancelled
                })
            });
            (ran, refused)
        });
        match (ran, raised) {
            ((_, Some(error)), _) | (_, Some(error)) => Err(error),
            ((Err(Error::Cancelled), None), None) | ((Ok(_), None), None) => Ok(lines),
            ((Err(why), None), None) => Err(errors::workbench(py, &why)),
        }
    }

    /// Runs one point: its line.
    #[pyo3(signature = (number, policy = None))]
    fn run_point(&self, py: Python<'_>, number: usize, policy: Option<Py<PyAny>>) -> PyResult<String> {
        let mut lines = self.run(py, number, number + 1, 1, None, None, policy)?;
        lines.pop().ok_or_else(|| errors::error(py, errors::Kind::Run, "the run was stopped", &[], ""))
    }
}

impl Sweep {
    /// A range of points that there are.
    fn range(&self, first: usize, last: usize) -> PyResult<std::ops::Range<usize>> {
        let points = self.0.points();
        if first > last || last > points {
            let found = format!("points {first} to {last}; the sweep has {points}");
            return Err(PyIndexError::new_err(found));
        }
        Ok(first..last)
    }
}

fn tell(py: Python<'_>, emit: Option<&Py<PyAny>>, number: usize, line: &str) -> PyResult<()> {
    emit.map_or(Ok(()), |emit| emit.bind(py).call1((number, line)).map(drop))
}

/// The line of a point whose jobs an object of Python places.
fn with_policy(
    py: Python<'_>,
    sweep: &workbench::Sweep,
    point: &Point,
    policy: &Bound<'_, PyAny>,
    watch: Option<&Py<PyAny>>,
) -> PyResult<String> {
    let copy = py.import("copy")?.getattr("deepcopy")?;
    let Model::Host(scenario) = &point.model else {
        let message = format!("{}: a policy is for simulations of the host model", sweep.path().display());
        return Err(errors::error(py, errors::Kind::Policy, &message, &[], "run it without `policy`"));
    };
    let mut rows: Vec<Row> = Vec::with_capacity(point.replications);
    for number in 0..point.replications {
        let seed = scenario.seed.wrapping_add(number as u64);
        let options = Options { seed: Some(seed), ..Options::default() };
        let own = copy.call1((policy,))?;
        let Ended { outcome, raised, .. } = policy::run(py, (**scenario).clone(), &own, options, watch)?;
        match (outcome, raised) {
            (_, Some(error)) => return Err(error),
            (Ok(outcome), None) => {
                let (seed, notes) = (outcome.seed, outcome.notes.clone());
                rows.push(point.model.row(&Ran {
                    seed,
                    notes,
                    outcome: Outcome::Host(Box::new(outcome)),
                    stopped: false,
                }));
            }
            (Err(RunError::Cancelled), None) => {
                return Err(errors::error(py, errors::Kind::Run, "the run was stopped", &[], ""));
            }
            (Err(error), None) => {
                return Err(errors::workbench(py, &Error::of_run(sweep.path(), error)));
            }
        }
    }
    Ok(sweep.document(point, &rows).to_string())
}
