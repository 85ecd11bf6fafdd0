//! The pool of processors: who they are, how well they are, what their jobs cost, what they hold.

use std::collections::VecDeque;

use forebay_crypto::{Processor, SessionId};
use forebay_scheduler::fit::Fit;
use forebay_scheduler::{Cost, ProcessorConfig, Progress, Scheduler, Work};
use forebay_time::Duration;

use crate::health::Health;
use crate::setup::ProcessorSetup;
use crate::stats::ProcessorStats;

/// The running core's index among the processors.
pub const RUNNING_CORE: usize = 0;

/// Jobs after which a measurement has faded from a processor's cost.
const FIT_MEMORY: u32 = 65_536;
/// Jobs after which a processor's refitted costs are given to the scheduler.
const REFIT_EVERY: u32 = 64;
/// After so many submissions...
const SETTLED: u32 = 128;
/// ...only one of so many is measured.
const MEASURE_EVERY: u32 = 16;
/// Jobs taken back after which their number is halved.
const COLLECTED_MAX: u64 = 16_384;

/// One processor.
pub struct Attached {
    pub processor: Box<dyn Processor>,
    pub health: Health,
    /// What a job costs there until measurements say otherwise.
    expected: Cost,
    /// For each kind of job what was measured, and the cost that the scheduler last had.
    fits: Vec<Fit>,
    costs: Vec<Cost>,
    /// By how much its answers of a kind are checked more seldom: see [`Pool::scale_checks`].
    check_scale: Vec<u64>,
    /// Jobs measured since then, and submissions in all.
    measured: u32,
    submitted: u32,
    /// What handing jobs to it costs the running core, and taking a job back.
    feed: Fit,
    /// Submissions handed over.
    fed: u32,
    collect: Duration,
    /// Jobs taken back, and the time that took: halved now and then.
    collected: (u64, Duration),
    /// And what else a packet costs more that is handed over.
    dispatching: Duration,
    /// Submissions that it holds, in the order of their hand-over.
    pub submissions: VecDeque<u32>,
    pub stats: ProcessorStats,
}

impl Attached {
    /// How many of its answers of a kind one is checked for, where the setting says one in `every`.
    #[inline]
    pub fn check_every(&self, every: u64, kind: u8) -> u64 {
        every.saturating_mul(self.check_scale[usize::from(kind)])
    }

    /// Time that the running core spends to hand jobs to it and take them back.
    pub fn feed(&self) -> Cost {
        let feed = self.feed.cost();
        let init = feed.init + self.collect + self.dispatching;
        Cost { init, ..feed }
    }
}

/// The processors, the running core first.
pub struct Pool {
    all: Vec<Attached>,
}

impl Pool {
    /// A pool, and what the scheduler is to know of each processor; of each kind of job it is said when it
    /// first occurs.
    pub fn new(setups: Vec<ProcessorSetup>, in_flight: usize) -> (Pool, Vec<ProcessorConfig>) {
        let mut configs = Vec::with_capacity(setups.len());
        let all = setups.into_iter().enumerate().map(|(index, setup)| {
            configs.push(ProcessorConfig {
                kind: setup.kind,
                alpha: setup.alpha,
                beta: setup.beta,
                // Jobs beyond the processor's own queue would be returned at once, for the running core to do.
                queue: setup.queue.min(setup.processor.capabilities().queue),
                suites: 0,
                progress: Progress::InOrder,
                // What else it takes until an idle device begins is in its lateness.
                ..ProcessorConfig::cpu(Cost { wake: Duration::ZERO, ..setup.cost })
            });
            // One that does nothing is out from the start, and for good; the running core moves packets.
            let out = index != RUNNING_CORE && setup.processor.capabilities().suites.is_empty();
            let health = if out { Health::absent(index) } else { Health::new(index) };
            let mut stats = ProcessorStats::new(setup.processor.name());
            stats.out = out;
            Attached {
                stats,
                processor: setup.processor,
                health,
                expected: setup.cost,
                fits: vec![],
                costs: vec![],
                check_scale: vec![],
                measured: 0,
                submitted: 0,
                fed: 0,
                feed: Fit::new(Cost::default(), FIT_MEMORY),
                collect: Duration::ZERO,
                collected: (0, Duration::ZERO),
                dispatching: Duration::ZERO,
                submissions: VecDeque::with_capacity(in_flight),
            }
        });
        let all = all.collect();
        (Pool { all }, configs)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> &mut Attached {
        &mut self.all[index]
    }

    #[inline]
    pub fn get(&self, index: usize) -> &Attached {
        &self.all[index]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Attached> {
        self.all.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Attached> {
        self.all.iter_mut()
    }

    /// The running core.
    #[inline]
    pub fn core(&mut self) -> &mut Attached {
        &mut self.all[RUNNING_CORE]
    }

    /// Every processor but the running core, by index.
    #[inline]
    pub fn others(&self) -> std::ops::Range<usize> {
        RUNNING_CORE + 1..self.all.len()
    }

    /// Whether any processor but the running core holds jobs.
    #[inline]
    pub fn others_hold_any(&self) -> bool {
        self.all[1..].iter().any(|other| !other.submissions.is_empty())
    }

    /// Has every processor forget a session.
    pub fn close_session(&mut self, session: SessionId) {
        self.all.iter_mut().for_each(|one| one.processor.close_session(session));
    }

    /// Adds a kind of job that is done `by` these processors; what is known of kind `like` holds for it too.
    pub fn add_kind(&mut self, kind: u8, by: &[bool], like: Option<usize>, scheduler: &mut Scheduler) {
        for (index, attached) in self.all.iter_mut().enumerate() {
            let cost = like.map_or(attached.expected, |like| attached.costs[like]);
            attached.fits.push(Fit::new(cost, FIT_MEMORY));
            attached.costs.push(cost);
            attached.check_scale.push(1);
            scheduler.set_suite_cost(index, kind, cost);
            if by[index] {
                scheduler.add_suite(index, kind);
            }
        }
        self.scale_checks();
    }

    /// A check is a job by itself, which costs a core that does many side by side as much as a whole group. So
    /// where that is dear beside what the answers cost the other processor, fewer are checked: the checks of a
    /// processor's work take the running core no more than a fiftieth of its time.
    fn scale_checks(&mut self) {
        const BATCH: usize = 32;
        let job = Work::packet(1_024);
        let Some((core, others)) = self.all.split_first_mut() else { return };
        for other in others {
            for (kind, scale) in other.check_scale.iter_mut().enumerate() {
                let check = core.costs[kind].of_batch([job]).0;
                let each = other.costs[kind].of_batch([job; BATCH]).0 / BATCH as u64;
                // One in 64 is a fiftieth where both cost about the same.
                *scale = (4 * check / (5 * each.max(1))).clamp(1, 64);
            }
        }
    }

    /// The cost that a processor is taken to have for a kind of job.
    pub fn cost(&self, processor: usize, kind: u8) -> Option<Cost> {
        Some(self.all.get(processor)?.fits.get(usize::from(kind))?.cost())
    }

    /// Takes in how long a processor took for jobs of one kind that it was given together.
    pub fn learn(
        &mut self,
        processor: usize,
        kind: u8,
        jobs: impl Iterator<Item = Work> + Clone,
        took: Duration,
        scheduler: &mut Scheduler,
    ) {
        let attached = &mut self.all[processor];
        attached.submitted = attached.submitted.wrapping_add(1);
        if attached.submitted > SETTLED && !attached.submitted.is_multiple_of(MEASURE_EVERY) {
            return;
        }
        let count = jobs.clone().count() as u32;
        attached.fits[usize::from(kind)].add(jobs, took);
        attached.measured += count;
        if attached.measured < REFIT_EVERY {
            return;
        }
        attached.measured = 0;
        // All of them: kinds that take turns would else meet the same turn for ever.
        for (kind, (cost, fit)) in attached.costs.iter_mut().zip(&attached.fits).enumerate() {
            *cost = fit.cost();
            scheduler.set_suite_cost(processor, kind as u8, *cost);
        }
        self.scale_checks();
    }

    /// Takes in how long the running core took to hand jobs to a processor.
    pub fn learn_feed(
        &mut self,
        processor: usize,
        jobs: impl Iterator<Item = Work> + Clone,
        took: Duration,
        scheduler: &mut Scheduler,
    ) {
        let attached = &mut self.all[processor];
        attached.fed = attached.fed.wrapping_add(1);
        if attached.fed > SETTLED && !attached.fed.is_multiple_of(MEASURE_EVERY) {
            return;
        }
        attached.feed.add(jobs, took);
        scheduler.set_feed(processor, attached.feed());
    }

    /// Takes in what a packet costs the running core more that is handed over, beyond handing over and taking back.
    pub fn set_dispatching(&mut self, more: Duration, scheduler: &mut Scheduler) {
        for processor in self.others() {
            let attached = &mut self.all[processor];
            attached.dispatching = more;
            scheduler.set_feed(processor, attached.feed());
        }
    }

    /// Takes in how long the running core took to take `jobs` back from a processor. Few jobs at a time cost more each
    /// than many, so all jobs count alike, and not all times at which some were taken back.
    pub fn learn_collect(&mut self, processor: usize, jobs: usize, took: Duration) {
        let attached = &mut self.all[processor];
        // A preempted thread is no cost.
        let took =
            if attached.collect.0 == 0 { took } else { took.min(attached.collect.times(8 * jobs as u64)) };
        let (all, time) = &mut attached.collected;
        *all += jobs as u64;
        *time += took;
        if *all > COLLECTED_MAX {
            (*all, *time) = (*all / 2, Duration(time.0 / 2));
        }
        attached.collect = Duration(time.0 / (*all).max(1));
    }
}

#[cfg(test)]
mod tests;
