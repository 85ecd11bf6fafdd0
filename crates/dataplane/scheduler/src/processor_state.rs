//! The work that was given to a processor and is not done yet (\[H\] eqs 1-3, 6-11).

use std::collections::VecDeque;

use forebay_time::{Duration, Time};

use crate::cost::{Alpha, saturated};
use crate::tardiness::Tardiness;
use crate::window::SET_ASIDE;
use crate::{ConfigError, Cost, Kind, ProcessorConfig, Progress, Transfer, Work};

/// A processor's queue as costs, and the job it is busy with.
///
/// A job goes through these steps in order, and only sums are kept up to date:
///
/// ```text
/// placed -> waiting -> taken -> fetched -> started -> finished
///           [  `waiting` jobs ][ taken ][ `fetched` ]  `computing`
///           back <------------ unstarted ------------> front
/// ```
///
/// Steps that a driver does not report are inferred from the next one that it does report.
#[derive(Debug)]
pub(crate) struct ProcessorState {
    pub(crate) kind: Kind,
    /// Suites that jobs may be placed here for: none while the processor is removed.
    pub(crate) open_for: u64,
    suites: u64,
    removed: bool,
    alpha: Alpha,
    beta: Duration,
    lateness: Tardiness,
    /// Beta and what is known of lateness: added before the factor.
    added: Duration,
    /// What handing jobs to it and taking them back costs the host.
    feed: Cost,
    transfer: Option<Transfer>,
    progress: Progress,
    queue: usize,
    /// Costs of the jobs that have not begun to be computed.
    unstarted: VecDeque<Duration>,
    /// Of these, how many at the back are still in the queue.
    waiting: usize,
    /// Of these, how many at the front are completely fetched.
    fetched: usize,
    /// Cost of the waiting jobs (\[H\] eq 1), and of the fetched ones if they are to count too.
    backlog: Duration,
    prefetch_aware: bool,
    /// Jobs begun and not finished.
    computing: usize,
    /// When the job last taken out of the queue should be done, t_i^p + c_i^p of \[H\] eq 3; past
    /// once nothing taken is left.
    busy_until: Time,
    /// Cost of the jobs taken since [`ProcessorState::crypto_time`] was last asked, and what was left of them
    /// then.
    begun: Duration,
    carried: Duration,
    /// All ones if the next job opens a submission and bears its cost, else zero: a mask,
    /// because a choice reads it for every processor.
    rings: u64,
}

impl ProcessorState {
    pub(crate) fn new(
        index: usize,
        config: &ProcessorConfig,
        prefetch_aware: bool,
    ) -> Result<ProcessorState, ConfigError> {
        if config.queue == 0 {
            return Err(ConfigError::ZeroQueue { processor: index });
        }
        if config.transfer.is_some_and(|bus| bus.clock == 0 || bus.width == 0) {
            return Err(ConfigError::Transfer { processor: index });
        }
        Ok(ProcessorState {
            kind: config.kind,
            open_for: config.suites,
            suites: config.suites,
            removed: false,
            alpha: alpha(index, config.alpha)?,
            beta: config.beta,
            lateness: Tardiness::default(),
            added: config.beta,
            feed: config.feed,
            transfer: config.transfer,
            progress: config.progress,
            queue: config.queue,
            // Jobs taken out but not begun (prefetched ones) need places too: twice covers them.
            unstarted: VecDeque::with_capacity(config.queue.min(SET_ASIDE) * 2),
            waiting: 0,
            fetched: 0,
            backlog: Duration::ZERO,
            prefetch_aware,
            computing: 0,
            busy_until: Time::ZERO,
            begun: Duration::ZERO,
            carried: Duration::ZERO,
            rings: u64::MAX,
        })
    }

    /// Whether jobs are placed here at all.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open_for != 0
    }

    /// Whether the queue takes one more job of a class that may see `most` waiting.
    #[inline]
    pub(crate) fn has_room(&self, most: usize) -> bool {
        self.waiting < self.queue.min(most)
    }

    /// Jobs in the queue.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Jobs placed and not finished.
    #[inline]
    pub(crate) fn unfinished(&self) -> usize {
        self.unstarted.len() + self.computing
    }

    /// The waiting time w_i (\[H\] eqs 2 and 3).
    #[inline]
    pub(crate) fn wait(&self, now: Time) -> Duration {
        self.backlog + self.busy_until.since(now)
    }

    /// The processing time p_i of a job here: \[H\] eq 13, and what the configuration adds.
    #[inline]
    pub(crate) fn service(&self, cost: &Cost, work: &Work) -> Duration {
        saturated(self.exact_service(cost, work))
    }

    /// The finish time f_i that is compared (\[H\] eqs 4 and 5).
    #[inline(always)]
    pub(crate) fn finish(&self, now: Time, cost: &Cost, work: &Work) -> Duration {
        let wait = u128::from(self.backlog.0) + u128::from(self.busy_until.since(now).0);
        let sum = wait + self.exact_service(cost, work) + u128::from(self.added.0);
        self.alpha.times(saturated(sum))
    }

    #[inline(always)]
    fn exact_service(&self, cost: &Cost, work: &Work) -> u128 {
        let opening = u128::from(cost.submit.0 & self.rings) + u128::from(cost.wake.0 & self.idle());
        cost.exact(work) + opening + u128::from(self.transfers(work.bytes).0)
    }

    /// The time from the hand-over of a share of `bytes` bytes, whose jobs take `time` by themselves, to its end:
    /// with what opens a batch, wakes the processor, and is moved over the bus.
    #[inline]
    pub(crate) fn share_service(&self, cost: &Cost, time: Duration, bytes: u64) -> Duration {
        time + Duration(cost.submit.0 & self.rings)
            + Duration(cost.wake.0 & self.idle())
            + self.transfers(bytes)
    }

    /// All ones if it has nothing to do, and so has to be woken, else zero.
    #[inline(always)]
    fn idle(&self) -> u64 {
        u64::from(self.unfinished() == 0).wrapping_neg()
    }

    #[inline(always)]
    fn transfers(&self, bytes: u64) -> Duration {
        match &self.transfer {
            Some(bus) => bus.of(bytes).times(2),
            None => Duration::ZERO,
        }
    }

    /// A finish time as it is compared: with beta and tardiness, times alpha (\[H\] eq 4).
    #[inline]
    pub(crate) fn biased(&self, finish: Duration) -> Duration {
        self.alpha.times(finish + self.added)
    }

    /// What handing it jobs costs the host.
    #[inline]
    pub(crate) fn feed_time(&self, jobs: usize, work: &Work) -> Duration {
        let opening = Duration(self.feed.submit.0 & self.rings) + Duration(self.feed.wake.0 & self.idle());
        self.feed.of_jobs(jobs, work) + opening
    }

    /// The same in picoseconds: for a batch, and for each of its jobs, which are of so many blocks.
    #[inline]
    pub(crate) fn feed_terms(&self, blocks: f64) -> (f64, f64) {
        let opening = (self.feed.submit.0 & self.rings) + (self.feed.wake.0 & self.idle());
        let job = (self.feed.init + self.feed.packet).0 as f64 + self.feed.block.0 as f64 * blocks;
        (opening as f64, job)
    }

    /// Beta and what is known of tardiness.
    #[inline]
    pub(crate) fn added(&self) -> Duration {
        self.added
    }

    /// Changes what handing it jobs costs the host.
    pub(crate) fn set_feed(&mut self, feed: Cost) {
        self.feed = feed;
    }

    /// Puts a job of the given cost at the end of the queue (\[H\] eqs 6 and 7).
    #[inline(always)]
    pub(crate) fn place(&mut self, now: Time, cost: Duration) {
        let idle = self.unfinished() == 0;
        self.unstarted.push_back(cost);
        self.waiting += 1;
        self.backlog += cost;
        self.rings = 0;
        if idle && self.progress == Progress::InOrder {
            self.take(now);
        }
    }

    /// The job at the head of the queue leaves it (\[H\] eqs 8-11).
    #[inline]
    pub(crate) fn take(&mut self, now: Time) {
        assert!(self.waiting > 0, "a job was taken from an empty queue");
        let cost = self.unstarted[self.unstarted.len() - self.waiting];
        self.waiting -= 1;
        self.backlog = self.backlog - cost;
        self.busy_until = now + cost;
        self.begun += cost;
    }

    /// The oldest job that was still being fetched is there completely.
    #[inline]
    pub(crate) fn fetch(&mut self) {
        assert!(self.fetched + self.waiting < self.unstarted.len(), "a job was fetched but none taken");
        if self.prefetch_aware {
            self.backlog += self.unstarted[self.fetched];
        }
        self.fetched += 1;
    }

    /// The oldest job taken begins to be computed.
    #[inline]
    pub(crate) fn start(&mut self) {
        assert!(self.waiting < self.unstarted.len(), "a job was started but none taken");
        let cost = self.unstarted.pop_front().expect("just checked");
        if self.fetched > 0 {
            self.fetched -= 1;
            if self.prefetch_aware {
                self.backlog = self.backlog - cost;
            }
        }
        self.computing += 1;
    }

    /// The oldest job begun is done.
    #[inline]
    pub(crate) fn finish_one(&mut self) {
        if self.computing == 0 {
            self.start();
        }
        self.computing -= 1;
        if self.computing == 0 && self.waiting == self.unstarted.len() {
            self.busy_until = Time::ZERO;
        }
    }

    /// The `jobs` oldest jobs are done, whatever was told of them, and the next one begins: now, or when the last of
    /// them should have been done if that was after `asked`, when they were not done yet.
    #[inline]
    pub(crate) fn complete(&mut self, asked: Time, now: Time, jobs: usize) {
        assert!(jobs <= self.unfinished(), "more jobs were completed than placed");
        let mut begun = now;
        for _ in 0..jobs {
            if self.waiting == self.unfinished() {
                self.take(begun);
            }
            begun = self.busy_until.max(asked).min(now);
            self.finish_one();
        }
        if self.waiting > 0 && self.waiting == self.unfinished() {
            self.take(begun);
        }
    }

    /// What was placed has been handed to the processor: the next job opens a new submission.
    #[inline]
    pub(crate) fn submit(&mut self) {
        self.rings = u64::MAX;
    }

    /// How long the processor should have been busy since this was last asked.
    pub(crate) fn crypto_time(&mut self, now: Time) -> Duration {
        let begun = std::mem::replace(&mut self.begun, Duration::ZERO);
        let left = self.busy_until.since(now);
        let carried = std::mem::replace(&mut self.carried, left);
        carried + begun - left
    }

    /// Forgets all jobs and takes no more.
    pub(crate) fn close(&mut self) {
        self.removed = true;
        self.open_for = 0;
        self.unstarted.clear();
        (self.waiting, self.fetched, self.computing) = (0, 0, 0);
        (self.backlog, self.busy_until) = (Duration::ZERO, Time::ZERO);
        self.rings = u64::MAX;
    }

    /// Takes jobs again.
    pub(crate) fn reopen(&mut self) {
        self.removed = false;
        self.open_for = self.suites;
    }

    /// Takes jobs of one more suite.
    pub(crate) fn add_suite(&mut self, suite: u8) {
        self.suites |= 1 << suite;
        if !self.removed {
            self.open_for = self.suites;
        }
    }

    /// A job was done `late` after it should have been.
    #[inline]
    pub(crate) fn learn_late(&mut self, late: Duration) {
        self.lateness.add(late);
        self.added = self.beta + self.lateness.usual();
    }

    /// The oldest job should have been done `overdue` ago: as long may it take once more.
    pub(crate) fn see_overdue(&mut self, overdue: Duration) {
        self.added = self.beta + self.lateness.usual().max(overdue);
    }

    /// Forgets some of what is above `least`.
    pub(crate) fn fade_lateness(&mut self, steps: u64, least: Duration) {
        self.lateness.fade(steps, least);
        self.added = self.beta + self.lateness.usual();
    }

    /// What its jobs are late by.
    pub(crate) fn lateness(&self) -> Duration {
        self.lateness.usual()
    }

    /// The factor alpha.
    pub(crate) fn alpha(&self) -> f64 {
        self.alpha.value()
    }

    /// Changes what only steers the choice.
    pub(crate) fn set_bias(&mut self, index: usize, factor: f64, beta: Duration) -> Result<(), ConfigError> {
        self.alpha = alpha(index, factor)?;
        self.beta = beta;
        self.added = beta + self.lateness.usual();
        Ok(())
    }

    /// Changes alpha, which is at least 1 and below 2^53, to what the loop has found.
    pub(crate) fn set_alpha(&mut self, factor: f64) {
        if let Some(alpha) = Alpha::new(factor) {
            self.alpha = alpha;
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.unstarted.capacity()
    }
}

fn alpha(processor: usize, found: f64) -> Result<Alpha, ConfigError> {
    Alpha::new(found).ok_or(ConfigError::Alpha { processor, found })
}

#[cfg(test)]
mod tests;
