//! Several runs of one scenario with different seeds, and what can be said of their mean.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use forebay_random::{CONFIDENCE, Estimate};

use crate::figures::Figures;
use crate::outcome::{Options, Outcome, RunError};
use crate::run::run;
use crate::scenario::Scenario;

/// Runs with the seeds s, s + 1, ..., in the order of the seeds.
#[derive(Debug)]
pub struct Replications {
    /// One outcome a seed: running the scenario with that seed gives the same.
    pub outcomes: Vec<Outcome>,
}

impl Replications {
    /// The estimate of one of the figures, over the runs that have it.
    pub fn estimate(&self, figure: impl Fn(&Figures) -> f64) -> Estimate {
        let values: Vec<f64> = self.outcomes.iter().map(|outcome| figure(&outcome.figures)).collect();
        Estimate::of_known(&values, CONFIDENCE)
    }
}

/// Runs a scenario `runs` times on up to `threads` threads, whose number changes nothing but the time taken.
pub fn replicate(scenario: &Scenario, runs: usize, threads: usize) -> Result<Replications, RunError> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut outcomes = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= runs {
                return outcomes;
            }
            let seed = Some(scenario.seed.wrapping_add(number as u64));
            outcomes.push((number, run(scenario, Options { seed, ..Options::default() })));
        }
    };
    let mut all: Vec<(usize, Result<Outcome, RunError>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, runs.max(1))).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    all.sort_by_key(|(number, _)| *number);
    let outcomes = all.into_iter().map(|(_, outcome)| outcome).collect::<Result<_, _>>()?;
    Ok(Replications { outcomes })
}
