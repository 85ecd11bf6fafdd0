//! Scenarios and their runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use forebay_sim::{Bound as Within, Limits, Options as SimOptions, Outcome as SimOutcome, Scenario};
use forebay_time::Duration;
use forebay_workbench::size_buffers::{Design, Method, Settings};
use forebay_workbench::{self as workbench, NoFigures, Options, Outcome, Way, pool, search};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::packets::{Raw, Table};
use crate::policy::{self, Ended};
use crate::ran::Ran;
use crate::watch::{Shared, attended};

/// A scenario that can be run.
#[pyclass(frozen, module = "forebay._forebay")]
#[derive(Debug)]
pub struct Model {
    pub model: workbench::Model,
    /// What it is called in errors.
    pub name: String,
}

/// What came of a run, before the interpreter is told.
struct Came {
    document: String,
    seed: u64,
    notes: Vec<String>,
    cut: Option<u64>,
    packets: Option<Raw>,
}

impl Came {
    fn into_ran(self, py: Python<'_>, interrupted: bool) -> PyResult<Ran> {
        let Came { document, seed, notes, cut, packets } = self;
        let packets = packets.map(|raw| Table::new(raw).and_then(|table| Py::new(py, table))).transpose()?;
        Ok(Ran { document, seed, notes, cut, interrupted, packets })
    }
}

#[pymethods]
impl Model {
    /// Reads the file at `path` with settings (`key=value`).
    #[staticmethod]
    #[pyo3(signature = (path, sets = Vec::new()))]
    fn load(py: Python<'_>, path: &str, sets: Vec<String>) -> PyResult<Model> {
        let model = py.detach(|| workbench::Model::load(Path::new(path), &sets));
        model.map(|model| Model { model, name: path.to_owned() }).map_err(|wrong| errors::file(py, &wrong))
    }

    /// Reads a text, which is called `name`; files that it names are relative to `directory`.
    #[staticmethod]
    #[pyo3(signature = (text, name, sets, directory))]
    fn parse(py: Python<'_>, text: &str, name: &str, sets: Vec<String>, directory: &str) -> PyResult<Model> {
        let model = py.detach(|| workbench::Model::parse(text, name, &sets, Path::new(directory)));
        model.map(|model| Model { model, name: name.to_owned() }).map_err(|wrong| errors::file(py, &wrong))
    }

    /// The word of the key `model`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.model.kind()
    }

    /// The seed of its first run; 0 where nothing is drawn.
    #[getter]
    fn seed(&self) -> u64 {
        self.model.seed()
    }

    /// With every default filled in, as TOML.
    fn resolved(&self) -> String {
        self.model.resolved_toml()
    }

    /// The same as JSON.
    fn resolved_json(&self) -> String {
        self.model.resolved().to_string()
    }

    /// Its figures by a way: "simulation", "solution" or "closed-form".
    #[pyo3(signature = (way = "simulation", seed = None, packets = false, policy = None, watch = None, threads = 1, memory_mib = 4_096, cycles = 500))]
    #[allow(clippy::too_many_arguments)] // they are of Python, by their names
    fn run(
        &self,
        py: Python<'_>,
        way: &str,
        seed: Option<u64>,
        packets: bool,
        policy: Option<Py<PyAny>>,
        watch: Option<Py<PyAny>>,
        threads: usize,
        memory_mib: u64,
        cycles: u32,
    ) -> PyResult<Ran> {
        let way = match way {
            "simulation" => Way::Simulation,
            "solution" => Way::Solution,
            "closed-form" => Way::ClosedForm,
            _ => return Err(PyValueError::new_err(format!("no way {way:?} to figures"))),
        };
        if let Some(policy) = policy {
            return self.run_with_policy(py, way, seed, packets, policy.bind(py), watch.as_ref());
        }
        let (came, raised) = attended(py, watch.as_ref(), |shared| {
            let mut options = Options { threads, columns: packets, keep: true, ..Options::default() };
            (options.solver.memory, options.solver.cycles) = (memory_mib.saturating_mul(1 << 20), cycles);
            figures(&self.seeded(seed), way, &options, &|step| shared.step(step))
        });
        let interrupted =
            raised.as_ref().is_some_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(py));
        match (came, raised) {
            (came, Some(error)) if !interrupted => {
                drop(came);
                Err(error)
            }
            (Ok(came), raised) => {
                // An interrupt after the end of the run is one all the same.
                let is_whole = came.cut.is_none();
                match raised {
                    Some(error) if is_whole => Err(error),
                    _ => came.into_ran(py, interrupted),
                }
            }
            (Err(NoFigures::Cancelled), Some(error)) => Err(error),
            (Err(why), _) => Err(errors::no_figures(py, &self.name, &why)),
        }
    }

    /// Runs with the seeds `first`, `first` + 1, ...: those that are complete, and whether they were interrupted.
    #[pyo3(signature = (first, count, threads, packets = false, policy = None, watch = None))]
    #[allow(clippy::too_many_arguments)] // they are of Python, by their names
    fn replicate(
        &self,
        py: Python<'_>,
        first: u64,
        count: u64,
        threads: usize,
        packets: bool,
        policy: Option<Py<PyAny>>,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Ran>, bool)> {
        if let Some(policy) = policy {
            return self.replicate_with_policy(py, first, count, packets, policy.bind(py), watch.as_ref());
        }
        let (all, raised) =
            attended(py, watch.as_ref(), |shared| self.replications(first, count, threads, packets, shared));
        let interrupted = match raised {
            Some(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => true,
            Some(error) => return Err(error),
            None => false,
        };
        let mut ran = Vec::new();
        for one in all.into_values() {
            match one {
                Ok(came) => ran.push(came.into_ran(py, false)?),
                Err(NoFigures::Cancelled) => {}
                Err(why) => return Err(errors::no_figures(py, &self.name, &why)),
            }
        }
        Ok((ran, interrupted))
    }
}

impl Model {
    /// The same with another seed.
    fn seeded(&self, seed: Option<u64>) -> Cow<'_, workbench::Model> {
        match seed.filter(|seed| *seed != self.model.seed()) {
            Some(seed) => Cow::Owned(self.model.with_seed(seed)),
            None => Cow::Borrowed(&self.model),
        }
    }

    /// A run with an object of Python that places the jobs.
    fn run_with_policy(
        &self,
        py: Python<'_>,
        way: Way,
        seed: Option<u64>,
        columns: bool,
        policy: &Bound<'_, PyAny>,
        watch: Option<&Py<PyAny>>,
    ) -> PyResult<Ran> {
        let seeded = self.seeded(seed);
        let (workbench::Model::Host(scenario), Way::Simulation) = (&*seeded, way) else {
            let message = format!("{}: a policy is for simulations of the host model", self.name);
            return Err(errors::error(py, errors::Kind::Policy, &message, &[], "run it without `policy`"));
        };
        let options = SimOptions { columns, keep: true, ..SimOptions::default() };
        let Ended { scenario, outcome, raised, decided } =
            policy::run(py, (**scenario).clone(), policy, options, watch)?;
        let interrupted =
            raised.as_ref().is_some_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(py));
        match (outcome, raised) {
            (Ok(outcome), None) => came(Box::new(scenario), outcome).into_ran(py, false),
            (Ok(outcome), Some(_)) if interrupted && decided && outcome.cut.is_some() => {
                came(Box::new(scenario), outcome).into_ran(py, true)
            }
            (_, Some(error)) => Err(error),
            (Err(why), None) => Err(errors::no_figures(py, &self.name, &NoFigures::from(why))),
        }
    }

    /// The same with several seeds, each with a copy of the object.
    fn replicate_with_policy(
        &self,
        py: Python<'_>,
        first: u64,
        count: u64,
        columns: bool,
        policy: &Bound<'_, PyAny>,
        watch: Option<&Py<PyAny>>,
    ) -> PyResult<(Vec<Ran>, bool)> {
        let copy = py.import("copy")?.getattr("deepcopy")?;
        let mut all = Vec::new();
        for number in 0..count {
            let (own, seed) = (copy.call1((policy,))?, first.wrapping_add(number));
            match self.run_with_policy(py, Way::Simulation, Some(seed), columns, &own, None) {
                // Only complete runs are kept.
                Ok(ran) if ran.interrupted => return Ok((all, true)),
                Ok(ran) => all.push(ran),
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => return Ok((all, true)),
                Err(error) => return Err(error),
            }
            let goes_on = match watch {
                None => true,
                Some(watch) => {
                    let answer = watch.bind(py).call1((number + 1, count))?;
                    answer.is_none() || answer.is_truthy()?
                }
            };
            if !goes_on {
                break;
            }
        }
        Ok((all, false))
    }

    /// What came of each seed, as far as they were begun.
    fn replications(
        &self,
        first: u64,
        count: u64,
        threads: usize,
        columns: bool,
        shared: &Shared,
    ) -> BTreeMap<usize, Result<Came, NoFigures>> {
        let seeds: Vec<u64> = (0..count).map(|number| first.wrapping_add(number)).collect();
        let mut all = BTreeMap::new();
        let work = |&seed: &u64, go_on: pool::GoOn<'_>| {
            let options = Options { columns, ..Options::default() };
            figures(&self.seeded(Some(seed)), Way::Simulation, &options, &|_| go_on())
        };
        let mut done = 0;
        pool::each(&seeds, threads, work, |result| {
            if let Some((at, came)) = result {
                all.insert(at, came);
                done += 1;
            }
            shared.at(done, count)
        });
        all
    }
}

/// Runs a model and writes its document.
fn figures(
    model: &workbench::Model,
    way: Way,
    options: &Options,
    watch: workbench::Watch<'_>,
) -> Result<Came, NoFigures> {
    let ran = model.run(way, options, watch)?;
    Ok(written(model, ran))
}

/// A run of the host model with its document.
fn came(scenario: Box<Scenario>, outcome: SimOutcome) -> Came {
    let (seed, notes) = (outcome.seed, outcome.notes.clone());
    written(
        &workbench::Model::Host(scenario),
        workbench::Ran { seed, notes, outcome: Outcome::Host(Box::new(outcome)), stopped: false },
    )
}

/// A run with its document.
fn written(model: &workbench::Model, mut ran: workbench::Ran<'_>) -> Came {
    let (mut cut, mut packets) = (None, None);
    let shorter = model.as_far_as(&ran);
    if let (Outcome::Runs(runs), true) = (&ran.outcome, ran.stopped) {
        cut = runs.first().map(|one| one.generated);
    }
    if let (workbench::Model::Host(scenario), Outcome::Host(outcome)) = (model, &mut ran.outcome) {
        cut = outcome.cut;
        packets = outcome.columns.take().map(|columns| Raw::new(scenario, columns));
    }
    // A run with a policy of Python is not told that it was stopped.
    let shorter = shorter.or_else(|| match model {
        workbench::Model::Host(_) => cut.map(|packets| model.with_packets(packets)),
        _ => None,
    });
    let written = shorter.as_ref().unwrap_or(model).written(&ran.outcome);
    let document = serde_json::to_string_pretty(&written).unwrap_or_default();
    Came { document, seed: ran.seed, notes: ran.notes, cut, packets }
}

/// Reads the text of a scenario's file.
#[pyfunction]
fn read_scenario(py: Python<'_>, path: &str) -> PyResult<String> {
    forebay_scenario::load(Path::new(path)).map_err(|wrong| errors::file(py, &wrong))
}

/// The first of `sets`, from the one numbered `start` on, that later ones replace.
#[pyfunction]
fn replaced(text: &str, sets: Vec<String>, start: usize) -> Option<usize> {
    forebay_scenario::replaced(text, &sets, start)
}

/// The run at the highest rate of a host within bounds (`latency`: of the 99 % quantile, in seconds), or None.
#[pyfunction]
#[pyo3(signature = (model, loss, latency = None, watch = None))]
fn highest_rate(
    py: Python<'_>,
    model: &Model,
    loss: f64,
    latency: Option<f64>,
    watch: Option<Py<PyAny>>,
) -> PyResult<Option<Ran>> {
    let scenario = host(py, model, "the highest rate is searched for in the host model")?;
    if !(0.0..=1.0).contains(&loss) {
        return Err(PyValueError::new_err(format!("loss is {loss}; expected a ratio from 0 to 1")));
    }
    let bound = Within { loss, latency: latency.map(Duration::from_secs) };
    let (found, raised) = attended(py, watch.as_ref(), |shared| {
        let mut share = |share: f64| shared.at((share * 1000.0) as u64, 1000);
        search::highest_rate(Path::new(&model.name), scenario, bound, &mut share)
    });
    let interrupted = raised.as_ref().is_some_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(py));
    match (found, raised) {
        (_, Some(error)) if !interrupted => Err(error),
        (Err(_), Some(error)) => Err(error),
        (Err(why), None) => Err(errors::workbench(py, &why)),
        (Ok(None), _) => Ok(None),
        (Ok(Some(found)), _) => {
            let document = search::document(scenario, &found, bound);
            let document = serde_json::to_string_pretty(&document).unwrap_or_default();
            let (seed, notes) = (found.outcome.seed, found.outcome.notes);
            let ran = Ran { document, seed, notes, cut: None, interrupted: !found.complete, packets: None };
            Ok(Some(ran))
        }
    }
}

/// What no placement can beat, of the host model: elapsed time, throughput, mean total latency.
#[pyfunction]
fn bound(py: Python<'_>, model: &Model) -> PyResult<BTreeMap<&'static str, f64>> {
    let scenario = host(py, model, "bounds are of the host model")?;
    Ok(limits(py.detach(|| forebay_sim::bound(scenario, scenario.seed))))
}

/// The same of the best placement, found by trying all; None if there are too many.
#[pyfunction]
fn optimum(py: Python<'_>, model: &Model) -> PyResult<Option<BTreeMap<&'static str, f64>>> {
    let scenario = host(py, model, "the optimum is of the host model")?;
    Ok(py.detach(|| forebay_sim::optimum(scenario, scenario.seed)).map(limits))
}

fn host<'a>(py: Python<'_>, model: &'a Model, what: &str) -> PyResult<&'a Scenario> {
    match &model.model {
        workbench::Model::Host(scenario) => Ok(scenario),
        other => {
            let message = format!("{}: {what}, found model = \"{}\"", model.name, other.kind());
            Err(errors::error(py, errors::Kind::Run, &message, &[], ""))
        }
    }
}

fn limits(of: Limits) -> BTreeMap<&'static str, f64> {
    let Limits { elapsed_s, throughput_bps, total_latency_mean_s } = of;
    BTreeMap::from([
        ("elapsed_s", elapsed_s),
        ("throughput_bps", throughput_bps),
        ("total_latency_mean_s", total_latency_mean_s),
    ])
}

/// The smallest buffers of a pipeline as JSON, as `forebay size-buffers --json` prints it, and whether an interrupt ended the
/// search.
#[pyfunction]
#[pyo3(signature = (text, name, sets, directory, loss, most, by, runs, threads, watch = None))]
#[allow(clippy::too_many_arguments)] // they are of Python, by their names
fn size_buffers(
    py: Python<'_>,
    text: &str,
    name: &str,
    sets: Vec<String>,
    directory: &str,
    loss: f64,
    most: u32,
    by: Option<&str>,
    runs: Option<u16>,
    threads: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<(String, bool)> {
    let by = match by {
        None => None,
        Some("chain") => Some(Method::Chain),
        Some("simulation") => Some(Method::Simulation),
        Some(other) => {
            return Err(PyValueError::new_err(format!("by is {other:?}; expected chain or simulation")));
        }
    };
    let design = Design::parse(text, name, &sets, Path::new(directory));
    let design = design.map_err(|why| errors::workbench(py, &why))?;
    if runs.is_some() && design.method(by) == Method::Chain {
        let message = format!("{name}: runs has no effect where the Markov chain is solved");
        let hint = "leave out runs=, or add by=\"simulation\"";
        return Err(errors::error(py, errors::Kind::Run, &message, &[], hint));
    }
    let settings = Settings { loss, buffer_max: most, by, runs: runs.unwrap_or(5).into(), threads };
    let (sizes, raised) = attended(py, watch.as_ref(), |shared| {
        let tried = |tried: usize| shared.at(tried as u64, 0);
        let sizes = design.size_buffers(&settings, &tried)?;
        Ok(serde_json::to_string_pretty(&sizes).unwrap_or_default())
    });
    match (sizes, raised) {
        (Ok(sizes), Some(error)) if error.is_instance_of::<PyKeyboardInterrupt>(py) => Ok((sizes, true)),
        (_, Some(error)) => Err(error),
        (Ok(sizes), None) => Ok((sizes, false)),
        (Err(why), None) => Err(errors::workbench(py, &why)),
    }
}

/// Adds what is here besides its class.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(replaced, module)?)?;
    module.add_function(wrap_pyfunction!(highest_rate, module)?)?;
    module.add_function(wrap_pyfunction!(bound, module)?)?;
    module.add_function(wrap_pyfunction!(optimum, module)?)?;
    module.add_function(wrap_pyfunction!(size_buffers, module)?)
}
