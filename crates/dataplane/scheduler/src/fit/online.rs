//! A cost that is kept up to date while the processor works.

use forebay_time::Duration;

use super::squares::{Moments, Ridge};
use super::terms::{BLOCK, INIT, PACKET, POWERS, TERMS, Terms, cost, dot, rows, terms};
use crate::{Cost, Work};

/// Keeps a cost up to date from the times of batches: least squares of relative errors that forget
/// exponentially, for each number of lanes that may be the processor's.
///
/// A time further from the prediction than [`Fit::CLIP`] times the usual distance counts as if it were that
/// far, so that one preempted batch moves little. What the samples do not tell (submit, say, where all batches
/// are of one size) stays as it was. If many batches in a row take much longer or shorter than predicted, the
/// clock has changed: all terms change by that factor at once.
///
/// `wake` stays the prior's.
#[derive(Clone, Debug)]
pub struct Fit {
    prior: Cost,
    memory: f64,
    candidates: [Candidate; POWERS],
    /// The candidate whose lanes are believed.
    chosen: usize,
    /// Usual distance from the prediction, as a share of it.
    distance: f64,
    /// Batches since the candidates were compared.
    unchecked: u32,
    /// The candidate that was better when last compared, and how often in a row.
    rival: usize,
    wins: u32,
    /// Measured by predicted time of the last batches in a row that were all too long, or all too short.
    ratios: [f64; Fit::ROW],
    in_row: usize,
}

/// A number of lanes, and what is known if it is the processor's.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    moments: Moments,
    /// The terms that fit the samples best.
    terms: Terms,
    /// What they have been for long.
    trusted: Terms,
}

impl Fit {
    /// Distances beyond this multiple of the usual one are clipped.
    pub const CLIP: f64 = 4.0;
    /// The usual distance is never taken to be below this share of the prediction: a processor
    /// that has always been exact may still change.
    const NOISE: f64 = 0.02;
    /// Share of a new batch in the usual distance.
    const ADAPT: f64 = 1.0 / 16.0;
    /// How many samples the trust in a term's value is worth.
    const TRUST: f64 = 1.0;
    /// A term that says less than this share of a time may still grow by so much.
    const GROWTH: f64 = 0.1;
    /// Batches in a row by which a change of the clock is seen, ...
    const ROW: usize = 9;
    /// ... and how large it must be.
    const CHANGE: f64 = 1.3;
    /// Batches between two comparisons of the candidates.
    const CHECK: u32 = 8;
    /// Other lanes must have a mean square error below this share of that of the present ones, ...
    const BETTER: f64 = 0.5;
    /// ... not counting this much, the square of 2 %, ...
    const NEGLIGIBLE: f64 = 4e-4;
    /// ... in as many comparisons in a row, ...
    const WINS: u32 = 3;
    /// ... over at least so many batches.
    const ENOUGH: f64 = 16.0;

    /// A fit that begins with `prior` and forgets over `memory` jobs (at least 16; some thousands are usual).
    /// Lanes of the prior count as the next power of two, at most 64.
    pub fn new(prior: Cost, memory: u32) -> Fit {
        let chosen = (prior.lanes.max(1).next_power_of_two().trailing_zeros() as usize).min(POWERS - 1);
        // A batch that fills the most lanes takes the same time by all candidates.
        let candidates = std::array::from_fn(|power| {
            let mut trusted = terms(&prior);
            let factor = (1u64 << power) as f64 / (1u64 << chosen) as f64;
            trusted[INIT] *= factor;
            trusted[BLOCK] *= factor;
            Candidate { moments: Moments::default(), terms: trusted, trusted }
        });
        Fit {
            prior,
            memory: f64::from(memory.max(16)),
            candidates,
            chosen,
            distance: Fit::NOISE,
            unchecked: 0,
            rival: chosen,
            wins: 0,
            ratios: [1.0; Fit::ROW],
            in_row: 0,
        }
    }

    /// The cost as known now.
    pub fn cost(&self) -> Cost {
        cost(&self.candidates[self.chosen].terms, 1 << self.chosen, &self.prior)
    }

    /// Takes in that a batch of `jobs`, in the order given, took `time` from its begin to its end. Constant memory,
    /// no allocation.
    pub fn add(&mut self, jobs: impl Iterator<Item = Work>, time: Duration) {
        let (rows, count) = rows(jobs);
        if count == 0 {
            return;
        }
        let predicted = dot(&self.candidates[self.chosen].terms, &rows[self.chosen]).max(1.0);
        let ratio = time.0.max(1) as f64 / predicted;
        let apart = ratio.max(1.0 / ratio) - 1.0;
        let limit = Fit::CLIP * self.distance;
        let clipped = predicted * ratio.clamp(1.0 / (1.0 + limit), 1.0 + limit);
        let far = apart > 2.0 * self.distance;
        self.distance = (self.distance + Fit::ADAPT * (apart.min(limit) - self.distance)).max(Fit::NOISE);

        let share = f64::from(count) / self.memory;
        for (candidate, row) in self.candidates.iter_mut().zip(&rows) {
            candidate.moments.add(row, clipped, 1.0 / (1.0 + share));
        }
        self.candidates[self.chosen].solve(self.chosen, &rows[self.chosen], predicted);
        self.candidates[self.chosen].trust(share.min(1.0));
        self.unchecked += 1;
        if self.unchecked >= Fit::CHECK {
            self.unchecked = 0;
            self.compare(&rows, share);
        }
        self.watch_the_clock(ratio, far);
    }

    /// Looks whether other lanes explain the samples better.
    fn compare(&mut self, rows: &[Terms; POWERS], share: f64) {
        let chosen = self.chosen;
        let error = |candidate: &Candidate| candidate.moments.error(&candidate.terms);
        let limit = Fit::BETTER * error(&self.candidates[chosen]) - Fit::NEGLIGIBLE;
        let mut least = limit;
        let mut best = chosen;
        for (power, candidate) in self.candidates.iter_mut().enumerate() {
            if power != chosen {
                let predicted = dot(&candidate.terms, &rows[power]).max(1.0);
                candidate.solve(power, &rows[power], predicted);
                candidate.trust((share * f64::from(Fit::CHECK)).min(1.0));
                let found = error(candidate);
                // A smaller number of lanes comes first.
                if found < least * if best == chosen { 1.0 } else { 0.9 } {
                    (best, least) = (power, found);
                }
            }
        }
        let enough = self.candidates[chosen].moments.weight >= Fit::ENOUGH;
        self.wins = match best {
            _ if best == chosen || !enough => 0,
            _ if best == self.rival => self.wins + 1,
            _ => 1,
        };
        self.rival = best;
        if self.wins >= Fit::WINS {
            (self.chosen, self.wins) = (best, 0);
        }
    }

    /// Follows a clock that has changed.
    fn watch_the_clock(&mut self, ratio: f64, far: bool) {
        let same_side = self.in_row == 0 || (ratio > 1.0) == (self.ratios[0] > 1.0);
        if !far || !same_side {
            // One batch among others may be early, or preempted while the clock became faster.
            self.in_row /= 2;
            return;
        }
        self.ratios[self.in_row] = ratio;
        self.in_row += 1;
        if self.in_row < Fit::ROW {
            return;
        }
        self.in_row = 0;
        let mut sorted = self.ratios;
        sorted.sort_unstable_by(f64::total_cmp);
        let factor = sorted[Fit::ROW / 2];
        if factor.max(1.0 / factor) < Fit::CHANGE {
            return;
        }
        for candidate in &mut self.candidates {
            candidate.moments.scale(factor);
            candidate.terms.iter_mut().for_each(|term| *term *= factor);
            candidate.trusted.iter_mut().for_each(|term| *term *= factor);
        }
        self.distance = Fit::NOISE;
    }
}

impl Candidate {
    /// Finds the terms, held near to the trusted ones by as much as the samples leave open. `row` is a batch that is
    /// usual, and `predicted` what it takes.
    fn solve(&mut self, power: usize, row: &Terms, predicted: f64) {
        let mut ridge = Ridge { at: self.trusted, strength: [0.0; TERMS] };
        for ((strength, trusted), count) in ridge.strength.iter_mut().zip(&self.trusted).zip(row) {
            // A term moves in proportion to what it says of the time.
            let room = trusted + Fit::GROWTH * predicted / count.max(1.0);
            *strength = Fit::TRUST / (room * room);
        }
        if power == 0 {
            // With one packet a job init says the same.
            ridge.strength[PACKET] *= 1e6;
        }
        self.terms = self.moments.solve(&ridge, [true; TERMS]);
    }

    fn trust(&mut self, share: f64) {
        for i in 0..TERMS {
            self.trusted[i] += share * (self.terms[i] - self.trusted[i]);
        }
    }
}
