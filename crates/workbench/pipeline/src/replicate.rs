//! Several runs of one design, and how sure their means are.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_random::Estimate;
use forebay_time::Duration;

use crate::description::{Invalid, Pipeline};
use crate::figures::Outcome;
use crate::run::{Watch, simulate_with};

/// Simulates a pipeline `runs` times, with the seeds `seed`, `seed + 1` and so on, on `threads`
/// threads. The outcomes are in the order of their seeds, whatever the number of threads.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
pub fn replicate(pipeline: &Pipeline, runs: usize, threads: usize) -> Result<Vec<Outcome>, Invalid> {
    Ok(replicate_with(pipeline, runs, threads, &|_| ControlFlow::Continue(()))?.outcomes)
}

/// Runs that may have been stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicated {
    /// Those that are complete from the first seed on. If there is none, what the first run came to.
    pub outcomes: Vec<Outcome>,
    /// Whether they were stopped before all were complete.
    pub stopped: bool,
}

/// [`replicate`] with progress reports, see [`simulate_with`]: if `watch` stops the runs, those that are complete remain.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
pub fn replicate_with(
    pipeline: &Pipeline,
    runs: usize,
    threads: usize,
    watch: Watch<'_>,
) -> Result<Replicated, Invalid> {
    pipeline.check()?;
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let some = || -> Result<Vec<(usize, Outcome)>, Invalid> {
        let mut outcomes = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            // Short runs report no progress, so `watch` is called between runs.
            if watch(Duration::ZERO).is_break() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                break;
            }
            let seed = pipeline.seed.wrapping_add(run as u64);
            match simulate_with(&Pipeline { seed, ..pipeline.clone() }, watch)? {
                Some(outcome) if outcome.interrupted_after_s.is_none() => outcomes.push((run, outcome)),
                cut => {
                    stop.store(true, Ordering::Relaxed);
                    outcomes.extend(cut.filter(|_| run == 0).map(|outcome| (run, outcome)));
                }
            }
        }
        Ok(outcomes)
    };
    // One thread is this one, so that a caller can take its processor time.
    let parts: Vec<_> = if threads <= 1 {
        vec![some()]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(runs)).map(|_| scope.spawn(some)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
        })
    };
    let all: BTreeMap<usize, Outcome> =
        parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let outcomes: Vec<Outcome> =
        all.into_iter().enumerate().map_while(|(at, (run, one))| (run == at).then_some(one)).collect();
    let stopped = outcomes.len() < runs || outcomes.iter().any(|one| one.interrupted_after_s.is_some());
    // A cut first run is not averaged with complete runs of other seeds.
    let whole = outcomes.first().is_none_or(|one| one.interrupted_after_s.is_none());
    Ok(Replicated {
        outcomes: if whole { outcomes } else { outcomes.into_iter().take(1).collect() },
        stopped,
    })
}

/// The mean of a figure over independent runs that have it, with its confidence interval.
pub fn interval(outcomes: &[Outcome], confidence: f64, figure: impl Fn(&Outcome) -> f64) -> Estimate {
    Estimate::of_known(&outcomes.iter().map(figure).collect::<Vec<f64>>(), confidence)
}
