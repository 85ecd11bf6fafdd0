//! Costs from measurements: [`line()`] for a calibration, [`Fit`] while running.
//!
//! Both find t_init and t_block of \[H\] eq 13 and leave the other terms of the [`Cost`] as they
//! are: with one packet a job, init and packet cannot be told apart. A measured time may be ten or
//! a hundred times too long, because the worker was preempted, so neither is a plain
//! least-squares fit.

use forebay_time::Duration;

use crate::{Cost, Work};

/// A measurement: how long one submission of jobs took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Jobs in the submission; a sample of none is ignored.
    pub jobs: u32,
    /// The work of all of them.
    pub work: Work,
    /// Time they took together.
    pub time: Duration,
}

/// A sample as a point of the line: blocks a job, picoseconds a job.
#[derive(Clone, Copy, Debug)]
struct Point {
    blocks: f64,
    time: f64,
    jobs: f64,
}

impl Point {
    /// The point without what `known` says of packets and submit; `None` for a sample of no job.
    fn new(sample: &Sample, known: &Cost) -> Option<Point> {
        let fixed = known.packet.times(u64::from(sample.work.packets)) + known.submit;
        let jobs = f64::from(sample.jobs);
        let time = (sample.time - fixed).0 as f64;
        (sample.jobs > 0).then(|| Point {
            blocks: f64::from(sample.work.blocks) / jobs,
            time: time / jobs,
            jobs,
        })
    }
}

/// A line found by [`line()`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The cost: init and block found, packet and submit as given.
    pub cost: Cost,
    /// Median distance of a sample from the line, per job.
    pub residual: Duration,
    /// How much of the variation between block counts the line explains (of the median at each), 0 to 1.
    pub r_squared: f64,
}

/// Fits a calibration's samples: the median at each number of blocks, then the median slope
/// between those, wide pairs counting more (Theil and Sen, weighted). Fewer than half of the samples
/// at a size may be disturbed.
///
/// `known` gives packet and submit. Takes time in proportion to the square of the number of
/// different sizes; `None` without at least two of them.
pub fn line(samples: &[Sample], known: &Cost) -> Option<Line> {
    let mut points: Vec<Point> = samples.iter().filter_map(|sample| Point::new(sample, known)).collect();
    points.sort_by(|a, b| a.blocks.total_cmp(&b.blocks));
    let medians: Vec<Point> = points
        .chunk_by(|a, b| a.blocks == b.blocks)
        .map(|group| {
            let time = weighted_median(group.iter().map(|point| (point.time, point.jobs)).collect());
            Point { blocks: group[0].blocks, time, jobs: 1.0 }
        })
        .collect();
    if medians.len() < 2 {
        return None;
    }

    let pairs = medians.iter().enumerate().flat_map(|(i, a)| medians[i + 1..].iter().map(move |b| (a, b)));
    let slopes = pairs.map(|(a, b)| ((b.time - a.time) / (b.blocks - a.blocks), b.blocks - a.blocks));
    let mut block = weighted_median(slopes.collect()).max(0.0);
    let median_over = |value: &dyn Fn(&Point) -> f64| {
        weighted_median(medians.iter().map(|point| (value(point), 1.0)).collect())
    };
    let mut init = median_over(&|point| point.time - block * point.blocks);
    if init < 0.0 {
        init = 0.0;
        block = median_over(&|point| point.time / point.blocks.max(1.0));
    }

    let error = |point: &Point| point.time - init - block * point.blocks;
    let mean = medians.iter().map(|point| point.time).sum::<f64>() / medians.len() as f64;
    let total: f64 = medians.iter().map(|point| (point.time - mean).powi(2)).sum();
    let left: f64 = medians.iter().map(|point| error(point).powi(2)).sum();
    let residual = weighted_median(points.iter().map(|point| (error(point).abs(), point.jobs)).collect());
    Some(Line {
        cost: Cost { init: picoseconds(init), block: picoseconds(block), ..*known },
        residual: picoseconds(residual),
        r_squared: if left == 0.0 { 1.0 } else { (1.0 - left / total).max(0.0) },
    })
}

/// The value at which half of the weight is reached; 0 for no values.
fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    for (value, weight) in &values {
        reached += weight;
        if reached >= half {
            return *value;
        }
    }
    0.0
}

fn picoseconds(value: f64) -> Duration {
    Duration((value + 0.5).floor() as u64)
}

/// Keeps a cost up to date from measurements: least squares that forget exponentially.
///
/// A sample further from the line than [`Fit::CLIP`] times the usual distance counts as if it
/// stood there. The usual distance is learnt from the clipped samples too, so a worker that was
/// preempted once moves little, and a clock that dropped to half is followed within tens of samples.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The cost before any sample, and its packet and submit for ever.
    prior: Cost,
    /// Jobs after which a sample has faded to 1/e.
    memory: f64,
    /// Faded weight, means and central moments of the points.
    weight: f64,
    blocks: f64,
    time: f64,
    blocks_blocks: f64,
    blocks_time: f64,
    /// Usual distance from the line, in picoseconds a job.
    distance: f64,
    /// The line, in picoseconds.
    init: f64,
    block: f64,
    /// The last slope that stood on enough spread.
    trusted_block: f64,
}

impl Fit {
    /// Distances beyond this multiple of the usual one are clipped.
    pub const CLIP: f64 = 4.0;
    /// Jobs that must have been measured before the prior is given up.
    const FIRST: f64 = 16.0;
    /// The usual distance is never taken to be below this share of the prediction: a processor
    /// that has always been exact may still change.
    const NOISE: f64 = 0.02;
    /// The slope is trusted where the standard deviation of the blocks is at least this share of
    /// their mean, and a block.
    const SPREAD: f64 = 0.1;
    /// Share of a new sample in the usual distance.
    const ADAPT: f64 = 1.0 / 16.0;

    /// A fit that begins with `prior` and forgets over `memory` jobs (at least 16; some thousands are usual).
    pub fn new(prior: Cost, memory: u32) -> Fit {
        Fit {
            prior,
            memory: f64::from(memory).max(Fit::FIRST),
            weight: 0.0,
            blocks: 0.0,
            time: 0.0,
            blocks_blocks: 0.0,
            blocks_time: 0.0,
            distance: 0.0,
            init: prior.init.0 as f64,
            block: prior.block.0 as f64,
            trusted_block: prior.block.0 as f64,
        }
    }

    /// The cost as known now.
    pub fn cost(&self) -> Cost {
        Cost { init: picoseconds(self.init), block: picoseconds(self.block), ..self.prior }
    }

    /// Takes a measurement in. Constant time, no allocation.
    pub fn add(&mut self, sample: &Sample) {
        let Some(mut point) = Point::new(sample, &self.prior) else { return };
        let predicted = self.init + self.block * point.blocks;
        let limit = Fit::CLIP * self.distance.max(Fit::NOISE * predicted).max(1_000.0);
        let distance = (point.time - predicted).clamp(-limit, limit);
        point.time = predicted + distance;
        let usual = self.distance.max(Fit::NOISE * predicted);
        self.distance = usual + Fit::ADAPT * (distance.abs() - usual);

        self.accumulate(&point);
        if self.weight >= Fit::FIRST.min(self.memory / 2.0) {
            self.solve();
        }
    }

    /// Updates means and central moments, old ones faded (West's form, stable for far-off means).
    fn accumulate(&mut self, point: &Point) {
        let keep = (-point.jobs / self.memory).exp();
        let old = self.weight * keep;
        self.weight = old + point.jobs;
        let (blocks, time) = (point.blocks - self.blocks, point.time - self.time);
        let share = point.jobs / self.weight;
        self.blocks += share * blocks;
        self.time += share * time;
        self.blocks_blocks = self.blocks_blocks * keep + share * old * blocks * blocks;
        self.blocks_time = self.blocks_time * keep + share * old * blocks * time;
    }

    fn solve(&mut self) {
        let spread = (Fit::SPREAD * self.blocks).max(1.0);
        if self.blocks_blocks >= self.weight * spread * spread {
            self.trusted_block = (self.blocks_time / self.blocks_blocks).max(0.0);
        }
        self.block = self.trusted_block;
        self.init = self.time - self.block * self.blocks;
        if self.init < 0.0 {
            // The best line through the origin.
            let squares = self.blocks_blocks + self.weight * self.blocks * self.blocks;
            self.init = 0.0;
            self.block =
                (self.blocks_time + self.weight * self.blocks * self.time).max(0.0) / squares.max(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUE: Cost = Cost {
        init: Duration(1_000_000),
        packet: Duration::ZERO,
        block: Duration(440_000),
        submit: Duration::ZERO,
        wake: Duration::ZERO,
        lanes: 1,
    };

    /// A packet of `blocks` blocks that takes `cost`, times `factor`.
    fn sample(cost: &Cost, blocks: u32, factor: f64) -> Sample {
        let work = Work::packet(blocks * 16);
        let time = cost.of(&work) + cost.submit;
        Sample { jobs: 1, work, time: Duration((time.0 as f64 * factor) as u64) }
    }

    /// Numbers that look random and are the same everywhere.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// One sample in ten took up to a hundred times as long, all are off by up to 2 %.
    fn noisy(cost: &Cost, count: usize) -> Vec<Sample> {
        let mut number = numbers();
        let mut one = || {
            let factor = 0.98 + number(41) as f64 / 1_000.0;
            let factor = if number(10) == 0 { 10.0 + number(90) as f64 } else { factor };
            sample(cost, 1 + number(94) as u32, factor)
        };
        (0..count).map(|_| one()).collect()
    }

    fn near(found: Duration, expected: Duration, share: f64) -> bool {
        (found.0 as f64 - expected.0 as f64).abs() <= share * expected.0 as f64
    }

    #[test]
    fn a_line_without_noise_is_found_exactly() {
        let samples = [4, 16, 36, 88].map(|blocks| sample(&TRUE, blocks, 1.0));
        let line = line(&samples, &Cost::default()).unwrap();
        assert_eq!(line, Line { cost: TRUE, residual: Duration::ZERO, r_squared: 1.0 });
    }

    #[test]
    fn a_line_is_found_among_preempted_samples() {
        let line = line(&noisy(&TRUE, 1_000), &Cost::default()).unwrap();
        assert!(near(line.cost.block, TRUE.block, 0.01), "{line:?}");
        assert!(near(line.cost.init, TRUE.init, 0.10), "{line:?}");
        assert!(line.r_squared > 0.99 && line.residual < Duration::from_micros(1), "{line:?}");
    }

    #[test]
    fn one_size_makes_no_line() {
        assert_eq!(line(&[sample(&TRUE, 4, 1.0), sample(&TRUE, 4, 1.1)], &Cost::default()), None);
    }

    #[test]
    fn no_term_is_negative() {
        let falling = [(1, 900_000), (10, 500_000), (20, 100_000)];
        let concave = [(1, 1_000), (10, 20_000), (20, 41_000)];
        let samples = |points: [(u32, u64); 3]| {
            points.map(|(blocks, time)| Sample {
                jobs: 1,
                work: Work::packet(blocks * 16),
                time: Duration(time),
            })
        };
        let cost = line(&samples(falling), &Cost::default()).unwrap().cost;
        assert_eq!(cost, Cost { init: Duration(500_000), ..Cost::default() });
        let cost = line(&samples(concave), &Cost::default()).unwrap().cost;
        assert_eq!(cost, Cost { block: Duration(2_000), ..Cost::default() });

        for points in [falling, concave] {
            let mut fit = Fit::new(TRUE, 100);
            for sample in samples(points).iter().cycle().take(3_000) {
                fit.add(sample);
            }
            let cost = fit.cost();
            assert!(cost.init == Duration::ZERO || cost.block == Duration::ZERO, "{cost:?}");
        }
    }

    #[test]
    fn known_terms_are_kept_and_bursts_are_averaged() {
        let known = Cost { packet: Duration(50_000), submit: Duration(300_000), ..Cost::default() };
        let burst = |jobs: u32, blocks: u32| Sample {
            jobs,
            work: Work { packets: jobs, blocks: blocks * jobs, bytes: u64::from(16 * blocks * jobs) },
            time: Duration(300_000)
                + Duration(50_000 + 1_000_000 + 440_000 * u64::from(blocks)).times(u64::from(jobs)),
        };
        let samples = [burst(1, 4), burst(7, 4), burst(32, 90), burst(3, 40)];
        let expected = Cost { init: TRUE.init, block: TRUE.block, ..known };
        assert_eq!(line(&samples, &known).unwrap().cost, expected);
        let mut fit = Fit::new(expected, 1_000);
        samples.iter().cycle().take(100).for_each(|sample| fit.add(sample));
        assert!(
            near(fit.cost().init, TRUE.init, 1e-6) && near(fit.cost().block, TRUE.block, 1e-6),
            "{fit:?}"
        );
    }

    #[test]
    fn a_running_fit_leaves_a_wrong_prior_and_ignores_preemption() {
        let prior = Cost { init: Duration(10_000_000), block: Duration(40_000), ..Cost::default() };
        let mut fit = Fit::new(prior, 1_000);
        noisy(&TRUE, 10_000).iter().for_each(|sample| fit.add(sample));
        let cost = fit.cost();
        // A disturbance only ever lengthens: what is clipped still pulls a little upwards.
        assert!(near(cost.of(&Work::packet(400)), TRUE.of(&Work::packet(400)), 0.06), "{cost:?}");
        assert!(near(cost.of(&Work::packet(1_500)), TRUE.of(&Work::packet(1_500)), 0.06), "{cost:?}");
    }

    #[test]
    fn a_running_fit_follows_a_slower_clock() {
        let mut number = numbers();
        let mut fit = Fit::new(TRUE, 200);
        (0..1_000).for_each(|_| fit.add(&sample(&TRUE, 1 + number(94) as u32, 1.0)));
        (0..1_000).for_each(|_| fit.add(&sample(&TRUE, 1 + number(94) as u32, 2.0)));
        assert!(near(fit.cost().init, TRUE.init.times(2), 0.03), "{:?}", fit.cost());
        assert!(near(fit.cost().block, TRUE.block.times(2), 0.03), "{:?}", fit.cost());
    }

    #[test]
    fn one_size_moves_init_and_not_the_slope() {
        let slower = Cost { init: Duration(1_500_000), ..TRUE };
        let mut fit = Fit::new(TRUE, 100);
        (0..1_000).for_each(|_| fit.add(&sample(&slower, 10, 1.0)));
        assert_eq!(fit.cost().block, TRUE.block);
        assert!(near(fit.cost().init, slower.init, 0.01), "{:?}", fit.cost());
    }

    #[test]
    fn one_preempted_sample_moves_a_prediction_by_less_than_a_percent() {
        let mut number = numbers();
        let mut fit = Fit::new(TRUE, 1_000);
        (0..2_000).for_each(|_| fit.add(&sample(&TRUE, 1 + number(94) as u32, 1.0)));
        fit.add(&sample(&TRUE, 94, 100.0));
        assert!(
            near(fit.cost().of(&Work::packet(1_500)), TRUE.of(&Work::packet(1_500)), 0.01),
            "{:?}",
            fit.cost()
        );
        fit.add(&Sample { jobs: 0, work: Work::default(), time: Duration(u64::MAX) });
    }
}
