//! The cost behind a calibration: batches of several sizes of packets of several sizes.

use forebay_time::Duration;

use super::squares::{Moments, Ridge};
use super::terms::{PACKET, Terms, cost, dot, picoseconds, row};
use crate::{Cost, Work};

/// A measurement: how long one batch of jobs took from its begin to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The jobs, in the order given; a sample of none is ignored.
    pub jobs: &'a [Work],
    /// Time they took together.
    pub time: Duration,
}

/// A cost found by [`shape`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The cost; `wake` is zero.
    pub cost: Cost,
    /// Median distance of a sample from the time that the cost says.
    pub residual: Duration,
    /// How much of the variation of the time per job the cost explains (of the medians), 0 to 1.
    pub r_squared: f64,
    /// Root of the mean square of the medians' relative distances from what the cost says.
    pub error: f64,
}

/// A larger number of lanes must have a mean square error below this share of that of a smaller one, because caches
/// make large batches cheaper too, without parallel computation.
const BETTER: f64 = 0.5;
/// An improvement must also exceed this mean square error, since smaller ones cannot be measured (the square of 1 %).
const NEGLIGIBLE: f64 = 1e-4;

/// Fits a calibration's samples by least squares of relative errors, after the median of all samples of
/// the same batch: fewer than half of these may be disturbed.
///
/// Lanes are the power of two, up to the largest batch, that explains the samples best, a smaller one where
/// it does about as well. `None` without at least two different batches.
pub fn shape(samples: &[Sample]) -> Option<Shape> {
    let mut sorted: Vec<&Sample> = samples.iter().filter(|sample| !sample.jobs.is_empty()).collect();
    let key = |job: &Work| (job.blocks, job.packets);
    sorted.sort_by(|a, b| {
        let jobs = a.jobs.iter().map(key).cmp(b.jobs.iter().map(key));
        jobs.then(a.time.cmp(&b.time))
    });
    let medians: Vec<Sample> = sorted
        .chunk_by(|a, b| a.jobs.iter().map(key).eq(b.jobs.iter().map(key)))
        .map(|group| Sample { jobs: group[0].jobs, time: group[group.len() / 2].time })
        .collect();
    if medians.len() < 2 {
        return None;
    }

    let largest = medians.iter().map(|sample| sample.jobs.len()).max()?;
    let mut best: Option<Candidate> = None;
    for lanes in (0..u32::BITS - 1).map(|power| 1 << power) {
        let found = Candidate::new(&medians, lanes);
        if best.as_ref().is_none_or(|best| found.error < BETTER * best.error - NEGLIGIBLE) {
            best = Some(found);
        }
        if lanes as usize >= largest {
            break;
        }
    }
    let Candidate { terms, lanes, error } = best?;

    let found = cost(&terms, lanes, &Cost::default());
    let predicted = |sample: &Sample| dot(&terms, &row(sample.jobs.iter().copied(), lanes));
    let distance = |sample: &Sample| (sample.time.0 as f64 - predicted(sample)).abs();
    let mut distances: Vec<f64> = sorted.iter().map(|sample| distance(sample)).collect();
    distances.sort_by(f64::total_cmp);
    let per_job = |sample: &Sample, time: f64| time / sample.jobs.len() as f64;
    let times = medians.iter().map(|sample| per_job(sample, sample.time.0 as f64));
    let mean = times.clone().sum::<f64>() / medians.len() as f64;
    let total: f64 = times.map(|time| (time - mean).powi(2)).sum();
    let left: f64 = medians.iter().map(|sample| per_job(sample, distance(sample)).powi(2)).sum();
    Some(Shape {
        cost: found,
        residual: picoseconds(distances[distances.len() / 2]),
        r_squared: if left == 0.0 { 1.0 } else { (1.0 - left / total).max(0.0) },
        error: error.sqrt(),
    })
}

/// The best terms for a number of lanes.
struct Candidate {
    terms: Terms,
    lanes: u32,
    /// Mean square relative error.
    error: f64,
}

impl Candidate {
    fn new(samples: &[Sample], lanes: u32) -> Candidate {
        let mut moments = Moments::default();
        for sample in samples {
            moments.add(&row(sample.jobs.iter().copied(), lanes), sample.time.0.max(1) as f64, 1.0);
        }
        let mut free = [true; 4];
        // With one packet a job, and one job a group, init says the same.
        free[PACKET] = lanes > 1;
        let terms = moments.solve(&Ridge::default(), free);
        Candidate { terms, lanes, error: moments.error(&terms) }
    }
}
