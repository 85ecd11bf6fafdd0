//! Several runs of one design, and how sure their means are.

use std::ops::ControlFlow;

use forebay_random::Estimate;

use crate::description::{Invalid, Pipeline};
use crate::figures::Outcome;
use crate::run::{Watch, simulate_with};

/// Simulates a pipeline `runs` times, with the seeds `seed`, `seed + 1` and so on, on `threads`
/// threads. The outcomes are in the order of their seeds, whatever the number of threads.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
pub fn replicate(pipeline: &Pipeline, runs: usize, threads: usize) -> Result<Vec<Outcome>, Invalid> {
    let outcomes = replicate_with(pipeline, runs, threads, &|_| ControlFlow::Continue(()))?;
    Ok(outcomes.expect("nobody stops it"))
}

/// [`replicate`] for those who watch; `None` if they say to break off.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
pub fn replicate_with(
    pipeline: &Pipeline,
    runs: usize,
    threads: usize,
    watch: Watch<'_>,
) -> Result<Option<Vec<Outcome>>, Invalid> {
    pipeline.check()?;
    let seeds: Vec<u64> = (0..runs as u64).map(|run| pipeline.seed.wrapping_add(run)).collect();
    let some = |seeds: &[u64]| -> Result<Vec<Option<Outcome>>, Invalid> {
        let mut outcomes = Vec::new();
        for &seed in seeds {
            outcomes.push(simulate_with(&Pipeline { seed, ..pipeline.clone() }, watch)?);
            if outcomes.last().is_some_and(Option::is_none) {
                break;
            }
        }
        Ok(outcomes)
    };
    // On this thread, so that a caller can take its processor time.
    if threads <= 1 {
        return Ok(some(&seeds)?.into_iter().collect());
    }
    let chunks = seeds.chunks(runs.div_ceil(threads).max(1));
    let parts: Result<Vec<Vec<Option<Outcome>>>, Invalid> = std::thread::scope(|scope| {
        let workers: Vec<_> = chunks.map(|chunk| scope.spawn(move || some(chunk))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    Ok(parts?.into_iter().flatten().collect())
}

/// The mean of a figure over independent runs, with its confidence interval.
pub fn interval(outcomes: &[Outcome], confidence: f64, figure: impl Fn(&Outcome) -> f64) -> Estimate {
    Estimate::with_confidence(&outcomes.iter().map(figure).collect::<Vec<f64>>(), confidence)
}
