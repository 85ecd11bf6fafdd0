//! Work beside which Python stays alive: signals are handled and progress is told while it lasts.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use forebay_workbench::Step;
use pyo3::prelude::*;

/// Interval between checks for signals and reports of progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The total of progress that is reported as a share.
const WHOLE: u64 = 1_000;
/// Parts in which shares are summed.
const PARTS: f64 = 1e9;

/// State that a run and its observer share.
#[derive(Debug, Default)]
pub struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
    whole: AtomicU64,
}

impl Shared {
    /// Whether to go on.
    pub fn go_on(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Says how much of the whole is done.
    pub fn at(&self, done: u64, whole: u64) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        self.whole.store(whole, Ordering::Relaxed);
        self.go_on()
    }

    /// Says how far a run is.
    pub fn step(&self, step: Step) -> ControlFlow<()> {
        match step {
            Step::Packets(done, all) => self.at(done, all),
            Step::Share(share) => {
                self.whole.store(PARTS as u64, Ordering::Relaxed);
                self.done.fetch_add((share * PARTS) as u64, Ordering::Relaxed);
                self.go_on()
            }
            Step::Residual(residual) => {
                // It falls by about the same factor in every cycle.
                let tolerance = forebay_models::Options::default().tolerance;
                let share = (residual.log10() / tolerance.log10()).clamp(0.0, 1.0);
                self.at((share * WHOLE as f64) as u64, WHOLE)
            }
            _ => self.go_on(),
        }
    }

    /// Done and whole, with a whole that people can read.
    fn told(&self) -> (u64, u64) {
        let (done, whole) = (self.done.load(Ordering::Relaxed), self.whole.load(Ordering::Relaxed));
        if whole == PARTS as u64 { (done / (PARTS as u64 / WHOLE), WHOLE) } else { (done, whole) }
    }
}

/// Handles signals and tells `watch` what is done; whether to go on.
///
/// # Errors
/// What a signal's handler or `watch` raised.
pub fn look(py: Python<'_>, shared: &Shared, watch: Option<&Py<PyAny>>) -> PyResult<ControlFlow<()>> {
    py.check_signals()?;
    let Some(watch) = watch else { return Ok(ControlFlow::Continue(())) };
    let (done, whole) = shared.told();
    let answer = watch.bind(py).call1((done, whole))?;
    let goes_on = answer.is_none() || answer.is_truthy()?;
    Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
}

/// Does `work` on a thread of its own without holding the interpreter, and looks after Python meanwhile. Returns what
/// came of it and what a signal's handler or `watch` raised, after which the work was told to stop.
pub fn attended<R: Send>(
    py: Python<'_>,
    watch: Option<&Py<PyAny>>,
    work: impl FnOnce(&Shared) -> R + Send,
) -> (R, Option<PyErr>) {
    let shared = Shared::default();
    let mut raised = None;
    let ended = py.detach(|| {
        std::thread::scope(|scope| {
            let (ends, end) = mpsc::channel::<()>();
            let of_work = &shared;
            let worker = scope.spawn(move || {
                let result = work(of_work);
                drop(ends);
                result
            });
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LOOK_EVERY) {
                if shared.go_on().is_break() {
                    continue;
                }
                match Python::attach(|py| look(py, &shared, watch)) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => shared.stop.store(true, Ordering::Relaxed),
                    Err(error) => {
                        shared.stop.store(true, Ordering::Relaxed);
                        raised = Some(error);
                    }
                }
            }
            worker.join()
        })
    });
    (ended.unwrap_or_else(|panic| resume_unwind(panic)), raised)
}
