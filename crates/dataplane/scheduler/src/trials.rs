//! Trials: shares for processors that the rule would not choose, so that their costs stay known.
//!
//! A cost that is fitted to chosen shares says nothing about shares of other sizes, and nothing at all about a
//! processor that gets no jobs. Therefore each processor that can do a suite is given a share now and then, whatever its
//! predicted finish time: of 1, 16, 4, 32, 2 and 8 jobs in turn, at most half of the burst. The sizes that tell the
//! terms of the cost apart best come first.
//!
//! Trials are bounded. The first comes after half of [`EVERY`] jobs of a suite, a little later for each further
//! processor. If the rule also chose the processor since its last trial, the next comes after [`EVERY`] jobs; otherwise
//! the interval doubles, up to [`EVERY_MAX`] jobs. A trial whose predicted time is longer than [`LONGEST`](crate::burst::LONGEST) is left out,
//! because the packets behind it would wait as long; such a slow processor keeps the cost of its calibration. And the next
//! trial of a processor comes no earlier than the fastest one could have done [`SPARED`] times as many jobs as in the time
//! of this one: trials of a slow processor, which packets of the same SAs wait for, take no more than a small share.

use crate::burst::{Burst, Pool, Share};

/// Jobs of a suite between two trials of a processor, at the beginning and while it is chosen otherwise too.
pub(crate) const EVERY: u64 = 2_048;
/// Maximum number of jobs between two trials.
pub(crate) const EVERY_MAX: u64 = 1 << 18;
/// Between two trials of a processor the others are to have so many times the jobs that they could have done in the
/// time of the trial.
const SPARED: u64 = 400;
/// Sizes of the shares, in turn.
const SIZES: [usize; 6] = [1, 16, 4, 32, 2, 8];

/// Which trials are due.
#[derive(Debug)]
pub(crate) struct Trials {
    processors: usize,
    /// By suite: jobs so far.
    jobs: Vec<u64>,
    /// By suite, then processor.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The count of jobs at which the next is due.
    due: u64,
    every: u64,
    turn: usize,
    /// Whether it was chosen since the last trial.
    chosen: bool,
}

impl Trials {
    /// For so many suites and processors.
    pub(crate) fn new(suites: usize, processors: usize) -> Trials {
        // Not all processors at once.
        let state = |at: usize| State {
            due: EVERY / 2 + (at % processors) as u64 * EVERY / 8,
            every: EVERY,
            turn: 0,
            chosen: false,
        };
        let states = (0..suites * processors).map(state).collect();
        Trials { processors, jobs: vec![0; suites], states }
    }

    fn row(&mut self, suite: u8) -> &mut [State] {
        let from = usize::from(suite) * self.processors;
        &mut self.states[from..from + self.processors]
    }

    /// Counts jobs at hand.
    #[inline]
    pub(crate) fn count(&mut self, suite: u8, jobs: usize) {
        self.jobs[usize::from(suite)] += jobs as u64;
    }

    /// Whether a trial of any processor but `host` is due. The host's own waits until a burst is divided: the bursts that stay
    /// tell its costs, and one that is divided for a trial costs it more than the trial.
    #[inline]
    pub(crate) fn any_due(&self, suite: u8, host: usize) -> bool {
        let from = usize::from(suite) * self.processors;
        let jobs = self.jobs[usize::from(suite)];
        let states = self.states[from..from + self.processors].iter().enumerate();
        states.filter(|(processor, _)| *processor != host).any(|(_, state)| state.due <= jobs)
    }

    /// The share of a trial, if one is due that may be made. `taken` jobs have just come to hand.
    pub(crate) fn next(&mut self, burst: &Burst, taken: usize, pool: &Pool<'_>) -> Option<Share> {
        self.count(pool.suite, taken);
        if burst.left() < 2 {
            return None;
        }
        let (processor, jobs) = self.due(pool.suite, burst.left(), pool.free())?;
        let (time, bytes) = (burst.time(&pool.costs[processor], jobs), burst.next_work(jobs).bytes);
        let least = pool.free().map(|one| burst.time(&pool.costs[one], jobs)).min().unwrap_or(time);
        // What wakes a processor costs the others nothing.
        let lost = jobs as u64 * (time + pool.costs[processor].submit).0 / least.0.max(1);
        self.made(pool.suite, processor, SPARED.saturating_mul(lost));
        let is_short = pool.is_short(processor, time, bytes);
        is_short.then_some(Share { processor, jobs })
    }

    /// The first of `free` whose trial is due, and how many of `left` jobs it is to be given.
    pub(crate) fn due(
        &self,
        suite: u8,
        left: usize,
        mut free: impl Iterator<Item = usize>,
    ) -> Option<(usize, usize)> {
        let from = usize::from(suite) * self.processors;
        let jobs = self.jobs[usize::from(suite)];
        let processor = free.find(|&processor| self.states[from + processor].due <= jobs)?;
        let size = SIZES[self.states[from + processor].turn % SIZES.len()];
        Some((processor, size.min(left / 2).max(1)))
    }

    /// Notes that the trial that was due has been made or left out; the next is not due before so many jobs.
    pub(crate) fn made(&mut self, suite: u8, processor: usize, spared: u64) {
        let jobs = self.jobs[usize::from(suite)];
        let state = &mut self.row(suite)[processor];
        state.turn += 1;
        state.every = if state.chosen { EVERY } else { (2 * state.every).min(EVERY_MAX) };
        state.chosen = false;
        state.due = jobs + state.every.max(spared);
    }

    /// Notes that the rule chose a processor.
    #[inline]
    pub(crate) fn chosen(&mut self, suite: u8, processor: usize) {
        self.row(suite)[processor].chosen = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_become_rare_where_they_change_nothing_and_come_back_where_they_do() {
        let mut trials = Trials::new(1, 2);
        let mut made = Vec::new();
        for burst in 0..100_000u64 {
            trials.count(0, 32);
            while let Some((processor, size)) = trials.due(0, 32, 0..2) {
                made.push((burst * 32, processor, size));
                trials.made(0, processor, 0);
                if processor == 0 {
                    trials.chosen(0, 0);
                }
            }
        }
        let of = |which: usize| made.iter().filter(move |(_, processor, _)| *processor == which);
        assert_eq!(of(1).map(|(.., size)| *size).take(7).collect::<Vec<_>>(), [1, 16, 4, 16, 2, 8, 1]);
        assert!(of(0).count() > 1_000, "{}", of(0).count());
        assert!(of(1).count() < 24, "{}", of(1).count());
    }

    #[test]
    fn the_next_trial_of_a_slow_processor_waits_until_it_was_worth_it() {
        let mut trials = Trials::new(1, 1);
        trials.count(0, 2_048);
        assert_eq!(trials.due(0, 32, 0..1), Some((0, 1)));
        trials.made(0, 0, 100_000);
        trials.count(0, 99_999);
        assert_eq!(trials.due(0, 32, 0..1), None);
        trials.count(0, 1);
        assert_eq!(trials.due(0, 32, 0..1), Some((0, 16)));
    }

    /// Each suite counts its own jobs; the first trials follow each other at an eighth of the interval.
    #[test]
    fn suites_have_trials_of_their_own_and_processors_one_after_the_other() {
        let mut trials = Trials::new(3, 3);
        let mut made = Vec::new();
        for jobs in 1..=6_000u64 {
            trials.count(1, 1);
            assert!(!trials.any_due(0, 3) && !trials.any_due(2, 3));
            // The processors that are free decide the order, and only they are tried.
            while let Some((processor, size)) = trials.due(1, 8, [2, 0].into_iter()) {
                assert!(trials.any_due(1, 3) && trials.any_due(1, 1));
                made.push((jobs, processor, size));
                if jobs < 2_000 && processor == 2 {
                    trials.chosen(1, 2);
                }
                trials.made(1, processor, 0);
            }
        }
        assert_eq!(made, [(1_024, 0, 1), (1_536, 2, 1), (3_584, 2, 4), (5_120, 0, 4)]);
        assert!(trials.any_due(1, 0), "processor 1's is due since 1,280");
        assert!(!trials.any_due(1, 1), "nobody else's is");
        assert_eq!(trials.due(1, 1, 0..3), Some((1, 1)), "no share of nothing");
    }
}
