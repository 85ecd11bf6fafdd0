//! Several runs of one design, and how sure their means are.

use std::ops::ControlFlow;

use crate::description::{Invalid, Pipeline};
use crate::figures::Outcome;
use crate::run::{Watch, simulate_with};

/// A mean and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the runs.
    pub mean: f64,
    /// With the confidence asked for, the true mean is no further away than this.
    pub half_width: f64,
}

impl Interval {
    /// Whether a value lies in it.
    pub fn holds(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

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
    let chunks = seeds.chunks(runs.div_ceil(threads.max(1)).max(1));
    let parts: Result<Vec<Vec<Option<Outcome>>>, Invalid> = std::thread::scope(|scope| {
        let workers: Vec<_> = chunks.map(|chunk| scope.spawn(move || some(chunk))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    Ok(parts?.into_iter().flatten().collect())
}

/// The mean of a figure over independent runs, with its confidence interval (Student's t).
pub fn interval(outcomes: &[Outcome], confidence: f64, figure: impl Fn(&Outcome) -> f64) -> Interval {
    let n = outcomes.len() as f64;
    let mean = outcomes.iter().map(&figure).sum::<f64>() / n;
    if outcomes.len() < 2 {
        return Interval { mean, half_width: f64::INFINITY };
    }
    let variance = outcomes.iter().map(|outcome| (figure(outcome) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half_width = quantile(confidence, outcomes.len() as u32 - 1) * (variance / n).sqrt();
    Interval { mean, half_width }
}

/// The t that a Student variable of `freedom` degrees does not exceed in size, so sure is `confidence`.
fn quantile(confidence: f64, freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if within(middle, freedom) < confidence { low = middle } else { high = middle }
    }
    high
}

/// The probability that it is within t (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn within(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cosine, 0.0) } else { (1.0, 0.0) };
    for step in 0..freedom / 2 {
        sum += term;
        let (above, below) = if odd { (2 * step + 2, 2 * step + 3) } else { (2 * step + 1, 2 * step + 2) };
        term *= f64::from(above) / f64::from(below) * cosine * cosine;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        for (confidence, freedom, t) in [
            (0.99, 1, 63.657),
            (0.99, 2, 9.925),
            (0.99, 9, 3.250),
            (0.95, 10, 2.228),
            (0.99, 19, 2.861),
            (0.95, 120, 1.980),
        ] {
            assert!((quantile(confidence, freedom) - t).abs() < 6e-4, "{}", quantile(confidence, freedom));
        }
    }
}
