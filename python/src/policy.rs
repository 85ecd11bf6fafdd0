//! Placement by an object of Python: its method `choose` decides in the place of a policy of the scheduler's.
//!
//! A decision takes about as long as the call of the method: the objects that it gets are made once for a run and filled
//! anew for every decision.

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_scheduler::{Candidates, Kind, Placement, Policy, PolicyKind, Registered};
use forebay_sim::{Options, Outcome, RunError, Scenario};
use forebay_time::PS_PER_S;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;
use crate::watch::{Shared, look};

/// A number that a thread fills and Python reads.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl Number {
    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / PS_PER_S as f64
}

/// A job that needs a processor. The object is used again for the next job.
#[pyclass(frozen, module = "forebay")]
#[derive(Debug, Default)]
pub struct Job {
    bytes: AtomicU64,
    packets: AtomicU64,
    sa: AtomicU64,
    class: AtomicU64,
    arrived: Number,
    now: Number,
}

#[pymethods]
impl Job {
    /// Bytes of its packets.
    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Packets that are bundled in it.
    #[getter]
    fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// The security association of its packets.
    #[getter]
    fn sa(&self) -> u64 {
        self.sa.load(Ordering::Relaxed)
    }

    /// The number of its service class, from 0.
    #[getter]
    fn service_class(&self) -> u64 {
        self.class.load(Ordering::Relaxed)
    }

    /// When its first packet arrived, in seconds of simulated time.
    #[getter]
    fn arrived(&self) -> f64 {
        self.arrived.get()
    }

    /// The time of the decision, in seconds of simulated time.
    #[getter]
    fn now(&self) -> f64 {
        self.now.get()
    }

    fn __repr__(&self) -> String {
        format!("<forebay.Job: {} bytes of SA {}, arrived {} s>", self.bytes(), self.sa(), self.arrived())
    }
}

/// A processor that supports a job, with what is predicted for the job there. The object is used again for the next job.
#[pyclass(frozen, module = "forebay")]
#[derive(Debug)]
pub struct Candidate {
    /// Its index among the processors of the scenario.
    #[pyo3(get)]
    index: usize,
    /// Its name.
    #[pyo3(get)]
    name: String,
    /// "cpu" or "accelerator".
    #[pyo3(get)]
    kind: &'static str,
    predicted: Predicted,
}

/// What is filled anew for every decision.
#[derive(Debug, Default)]
struct Predicted {
    finish: Number,
    cost: Number,
    free_at: Number,
    load: Number,
    alpha: Number,
    jobs: AtomicU64,
    has_room: AtomicBool,
}

#[pymethods]
impl Candidate {
    /// When the job would be finished there, with alpha and beta, in seconds of simulated time.
    #[getter]
    fn finish(&self) -> f64 {
        self.predicted.finish.get()
    }

    /// The processing time of the job there, in seconds.
    #[getter]
    fn cost(&self) -> f64 {
        self.predicted.cost.get()
    }

    /// When the processor would begin with the job, in seconds of simulated time.
    #[getter]
    fn free_at(&self) -> f64 {
        self.predicted.free_at.get()
    }

    /// The work that is placed on the processor and not finished, in seconds.
    #[getter]
    fn load(&self) -> f64 {
        self.predicted.load.get()
    }

    /// The factor alpha that is in force.
    #[getter]
    fn alpha(&self) -> f64 {
        self.predicted.alpha.get()
    }

    /// Jobs that are placed on the processor and not finished.
    #[getter]
    fn jobs(&self) -> u64 {
        self.predicted.jobs.load(Ordering::Relaxed)
    }

    /// Whether its queue has room; a job that is placed on a full queue waits.
    #[getter]
    fn has_room(&self) -> bool {
        self.predicted.has_room.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("<forebay.Candidate {}: finish {} s, cost {} s>", self.name, self.finish(), self.cost())
    }
}

/// What a policy raised, for whoever runs it.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// A policy's object with what it is given.
struct Bridge {
    policy: Py<PyAny>,
    choose: Py<PyAny>,
    /// Where the object wants to know of finished jobs.
    finished: Option<Py<PyAny>>,
    job: Py<Job>,
    candidates: Vec<Py<Candidate>>,
    /// The arguments of the last decision, and the processors that it was about.
    arguments: Option<(Vec<usize>, Py<PyTuple>)>,
    /// Those of this decision.
    capable: Vec<usize>,
    failed: bool,
    raised: Raised,
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Bridge {
    fn new(
        py: Python<'_>,
        policy: &Bound<'_, PyAny>,
        scenario: &Scenario,
        raised: Raised,
    ) -> PyResult<Bridge> {
        let candidate = |(index, one): (usize, &forebay_sim::Processor)| {
            let kind = if one.config.kind == Kind::Cpu { "cpu" } else { "accelerator" };
            Py::new(py, Candidate { index, name: one.name.clone(), kind, predicted: Predicted::default() })
        };
        let candidates =
            scenario.processors.iter().enumerate().map(candidate).collect::<PyResult<Vec<_>>>()?;
        let names: Vec<&str> = scenario.processors.iter().map(|one| one.name.as_str()).collect();
        let base = py.import("forebay.placement")?.getattr("Placement")?;
        if let Ok(begin) = policy.getattr("begin") {
            begin.call1((names,))?;
        }
        let own = policy.get_type().getattr_opt("finished")?;
        let wants_finished = own.is_some_and(|own| base.getattr("finished").is_ok_and(|base| !own.is(&base)));
        let finished = wants_finished.then(|| policy.getattr("finished").map(Bound::unbind)).transpose()?;
        Ok(Bridge {
            policy: policy.clone().unbind(),
            choose: policy.getattr("choose")?.unbind(),
            finished,
            job: Py::new(py, Job::default())?,
            candidates,
            arguments: None,
            capable: Vec::new(),
            failed: false,
            raised,
        })
    }

    /// Fills the objects for a decision.
    fn fill(&mut self, given: &Candidates<'_>) {
        let (job, head) = (self.job.get(), given.job());
        job.bytes.store(head.work.bytes, Ordering::Relaxed);
        job.packets.store(head.work.packets.into(), Ordering::Relaxed);
        job.sa.store(head.sa.into(), Ordering::Relaxed);
        job.class.store(head.class.into(), Ordering::Relaxed);
        job.arrived.set(seconds(head.arrived.0));
        let now = given.now().0;
        job.now.set(seconds(now));
        self.capable.clear();
        for one in given.iter() {
            let to = &self.candidates[one.index()].get().predicted;
            let wait = one.wait().0;
            to.finish.set(seconds(now.saturating_add(one.finish().0)));
            to.cost.set(seconds(one.service().0));
            to.free_at.set(seconds(now.saturating_add(wait)));
            to.load.set(seconds(wait));
            to.alpha.set(one.alpha());
            to.jobs.store(one.unfinished() as u64, Ordering::Relaxed);
            to.has_room.store(one.has_room(), Ordering::Relaxed);
            self.capable.push(one.index());
        }
    }

    /// The arguments of `choose`: the last ones, if they are about the same processors.
    fn arguments<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some((of, arguments)) = &self.arguments
            && *of == self.capable
        {
            return Ok(arguments.bind(py).clone());
        }
        let candidates = PyTuple::new(py, self.capable.iter().map(|&index| &self.candidates[index]))?;
        let arguments = (&self.job, candidates).into_pyobject(py)?;
        self.arguments = Some((self.capable.clone(), arguments.clone().unbind()));
        Ok(arguments)
    }

    fn ask(&mut self, py: Python<'_>, given: &Candidates<'_>) -> PyResult<Option<usize>> {
        self.fill(given);
        let arguments = self.arguments(py)?;
        let chosen = self.choose.bind(py).call1(arguments)?;
        if chosen.is_none() {
            return Ok(None);
        }
        let index = chosen.cast::<Candidate>().ok().map(|one| one.get().index);
        let index = index.filter(|&at| self.candidates.get(at).is_some_and(|own| own.is(&chosen)));
        match index.filter(|at| self.capable.contains(at)) {
            Some(index) => Ok(Some(index)),
            None => Err(answer(py, &self.policy, &chosen)),
        }
    }

    /// Ends the run at its next report of progress.
    fn fail(&mut self, error: PyErr) {
        self.failed = true;
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl Placement for Bridge {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        if self.failed {
            return None;
        }
        Python::attach(|py| match self.ask(py, candidates) {
            Ok(chosen) => chosen,
            Err(error) => {
                self.fail(error);
                None
            }
        })
    }

    fn finished(&mut self, processor: usize, jobs: usize) {
        let Some(finished) = self.finished.as_ref().filter(|_| !self.failed) else { return };
        if let Err(error) = Python::attach(|py| finished.bind(py).call1((processor, jobs)).map(drop)) {
            self.fail(error);
        }
    }
}

/// What is wrong with an answer that is no candidate.
fn answer(py: Python<'_>, policy: &Py<PyAny>, chosen: &Bound<'_, PyAny>) -> PyErr {
    let error = py.import("forebay.errors").and_then(|module| module.getattr("not_a_candidate"));
    let error = error.and_then(|make| make.call1((policy, chosen)));
    error.map_or_else(|error| error, PyErr::from_value)
}

/// Without an object, as when a scheduler is made outside of a run, finish time decides.
#[derive(Debug)]
struct Nothing;

impl Placement for Nothing {
    fn choose(&mut self, _: &Candidates<'_>) -> Option<usize> {
        None
    }
}

thread_local! {
    /// The object for the scheduler that this thread makes next.
    static NEXT: RefCell<Option<Bridge>> = const { RefCell::new(None) };
}

/// Not registered, so that no file can name it.
static PYTHON: PolicyKind = PolicyKind {
    word: "python",
    meaning: "an object of Python decides",
    parameters: &[],
    create: |_| match NEXT.take() {
        Some(bridge) => Box::new(bridge),
        None => Box::new(Nothing),
    },
};

/// How a run with a policy of Python ended.
#[derive(Debug)]
pub struct Ended {
    /// The scenario as it was run.
    pub scenario: Scenario,
    /// What came of it, if nothing was raised.
    pub outcome: Result<Outcome, RunError>,
    /// What the policy, a signal's handler or the watch raised.
    pub raised: Option<PyErr>,
    /// Whether the policy has decided to the end, so that an outcome that was cut is right.
    pub decided: bool,
}

/// Runs a scenario with the object `policy` as its policy, on this thread.
///
/// # Errors
/// If the object has no method `choose`, or what its method `begin` raised.
pub fn run(
    py: Python<'_>,
    mut scenario: Scenario,
    policy: &Bound<'_, PyAny>,
    options: Options<'_>,
    watch: Option<&Py<PyAny>>,
) -> PyResult<Ended> {
    if scenario.cores.is_some() {
        let message = "a policy has no effect with [cores]: the core that is free takes the next burst";
        return Err(errors::error(py, errors::Kind::Policy, message, &[], "run it without `policy`"));
    }
    let raised = Raised::default();
    let bridge = Bridge::new(py, policy, &scenario, raised.clone())?;
    NEXT.set(Some(bridge));
    scenario.scheduler.policy = Policy::Registered(Registered::new(&PYTHON));
    let name = policy.get_type().qualname()?.to_string();
    scenario.resolved["scheduler"]["policy"] = format!("python: {name}").into();
    let shared = Shared::default();
    let mut looked = None;
    let mut progress = |done, all| {
        if raised.lock().is_ok_and(|raised| raised.is_some()) {
            return ControlFlow::Break(());
        }
        let _ = shared.at(done, all);
        look(py, &shared, watch).unwrap_or_else(|error| {
            looked = Some(error);
            ControlFlow::Break(())
        })
    };
    let outcome = forebay_sim::run(&scenario, Options { progress: Some(&mut progress), ..options });
    // Of a run that the scheduler refused.
    drop(NEXT.take());
    let of_policy = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    let decided = of_policy.is_none();
    let raised = of_policy.map(|cause| wrapped(py, policy, cause)).or(looked);
    Ok(Ended { scenario, outcome, raised, decided })
}

/// What a policy raised, as a `PolicyError` with it as its cause. An interrupt stays one.
fn wrapped(py: Python<'_>, policy: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
    let is_plain = cause.is_instance_of::<PyException>(py);
    let make = || -> PyResult<PyErr> {
        let module = py.import("forebay.errors")?;
        if cause.matches(py, module.getattr("PolicyError")?)? {
            return Ok(cause.clone_ref(py));
        }
        // With its traceback, which the value lacks otherwise before CPython 3.12.
        let value = cause.clone_ref(py).into_value(py);
        let error = module.getattr("policy_error")?.call1((policy, value))?;
        Ok(PyErr::from_value(error))
    };
    if is_plain { make().unwrap_or_else(|error| error) } else { cause }
}
