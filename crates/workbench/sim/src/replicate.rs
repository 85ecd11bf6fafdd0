//! Several runs of one scenario with different seeds, and what can be said of their mean.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::figures::Figures;
use crate::outcome::{Options, Outcome, RunError};
use crate::run::run;
use crate::scenario::Scenario;

/// A mean with its 95 % confidence interval, mean +- half_width (Student's t; the runs are independent).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of the interval; infinite for a single run.
    pub half_width: f64,
}

impl Estimate {
    /// From one value a run.
    pub fn of(values: &[f64]) -> Estimate {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let freedom = values.len().saturating_sub(1);
        if freedom == 0 {
            return Estimate { mean, half_width: f64::INFINITY };
        }
        Estimate { mean, half_width: student(freedom) * (square / freedom as f64 / n).sqrt() }
    }

    /// Whether a value is in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// The 97.5 % point of Student's t.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond the table: the first term of Cornish and Fisher's expansion.
    TABLE.get(freedom - 1).copied().unwrap_or_else(|| 1.960 + 2.372 / freedom as f64)
}

/// Runs with the seeds s, s + 1, ..., in the order of the seeds.
#[derive(Debug)]
pub struct Replications {
    /// One outcome a seed: running the scenario with that seed gives the same.
    pub outcomes: Vec<Outcome>,
}

impl Replications {
    /// The estimate of one of the figures.
    pub fn estimate(&self, figure: impl Fn(&Figures) -> f64) -> Estimate {
        let values: Vec<f64> = self.outcomes.iter().map(|outcome| figure(&outcome.figures)).collect();
        Estimate::of(&values)
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
