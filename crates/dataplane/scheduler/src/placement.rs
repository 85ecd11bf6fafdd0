//! The interface of a placement policy: it chooses a processor for each job from candidates with predicted times.
//!
//! A policy of one's own is a type with [`Placement`] and a [`PolicyKind`](crate::PolicyKind) that gives it a word and its
//! parameters. After [`register`](crate::register) every file and command that takes a policy takes that word.

use std::fmt;

use forebay_time::{Duration, Time};

use crate::burst::{Burst, Pool};
use crate::processor_state::ProcessorState;
use crate::{Cost, JobHead, Keys, Kind};

/// The rule by which jobs find their processors.
///
/// A value of it belongs to one scheduler and is asked by one thread. What it decides may depend only on what it is
/// given and has been given before: the same scheduler runs in virtual time, where a run has to repeat.
pub trait Placement: fmt::Debug + Send {
    /// The processor for a job, by its index; `None` leaves the choice to the finish time. So does an index that is
    /// not among the candidates. The job waits if the processor's queue is full.
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize>;

    /// How many jobs of a burst go where, where jobs are placed by bursts ([`crate::Config::batch`] above 1); asked again
    /// for what is left. [`Placement::choose`] decides for one group of jobs at a time unless a policy does better.
    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        let chosen = self.choose(candidates).and_then(|processor| candidates.get(processor));
        match chosen {
            None => Choice::FinishTime,
            Some(chosen) if !chosen.has_room() => Choice::Wait,
            Some(chosen) => {
                Choice::Share { processor: chosen.index(), jobs: chosen.lanes().min(burst.left()) }
            }
        }
    }

    /// A processor has finished `jobs` jobs.
    fn finished(&mut self, processor: usize, jobs: usize) {
        let _ = (processor, jobs);
    }

    /// A job was finished so much later than predicted; zero if it was in time. Reported for a sample of the jobs.
    fn late(&mut self, processor: usize, late: Duration) {
        let _ = (processor, late);
    }
}

/// The choice for the next jobs of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One processor is given some of them, one at least.
    Share {
        /// Its index.
        processor: usize,
        /// How many jobs, from the front of those that are left.
        jobs: usize,
    },
    /// The rule of finish time divides what is left.
    FinishTime,
    /// They wait until a queue has room.
    Wait,
}

/// The processors that can do a job, and the job.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    pool: Pool<'a>,
    job: &'a JobHead,
    /// Where bursts are placed.
    burst: Option<&'a Burst>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(pool: Pool<'a>, job: &'a JobHead, burst: Option<&'a Burst>) -> Candidates<'a> {
        Candidates { pool, job, burst }
    }

    /// The time of the choice.
    pub fn now(&self) -> Time {
        self.pool.now
    }

    /// The job: its SA, service class, suite, work and arrival. Of a burst the first job that is left.
    pub fn job(&self) -> &'a JobHead {
        self.job
    }

    /// Processors there are, capable or not: indices are below that.
    pub fn processors(&self) -> usize {
        self.pool.processor_states.len()
    }

    /// A processor by its index, if it can do the job.
    #[inline]
    pub fn get(&self, processor: usize) -> Option<Candidate<'_>> {
        let is_capable = processor < self.pool.processor_states.len() && self.pool.is_capable(processor);
        is_capable.then_some(Candidate { index: processor, of: self })
    }

    /// Those that can do the job, by their index.
    pub fn iter(&self) -> impl Iterator<Item = Candidate<'_>> {
        (0..self.processors()).filter_map(|processor| self.get(processor))
    }

    /// The one with the smallest measure; of equal ones an accelerator before a CPU, the faster before the slower, the
    /// lower index, as for finish time.
    pub fn least<M: Ord>(&self, measure: impl Fn(&Candidate<'_>) -> M) -> Option<usize> {
        let rank = |one: &Candidate<'_>| (measure(one), one.kind() == Kind::Cpu, one.service(), one.index);
        self.iter().min_by_key(rank).map(|one| one.index)
    }

    /// The first of some processors that can do the job.
    pub fn first_of(&self, preferred: &[usize]) -> Option<usize> {
        preferred.iter().copied().find(|&one| self.get(one).is_some())
    }
}

impl fmt::Debug for Candidates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One processor that can do the job, with what is predicted for it there.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    index: usize,
    of: &'a Candidates<'a>,
}

impl Candidate<'_> {
    fn account(&self) -> &ProcessorState {
        &self.of.pool.processor_states[self.index]
    }

    fn cost(&self) -> &Cost {
        &self.of.pool.costs[self.index]
    }

    /// Its index in [`crate::Config::processors`].
    pub fn index(&self) -> usize {
        self.index
    }

    /// Core or accelerator.
    pub fn kind(&self) -> Kind {
        self.account().kind
    }

    /// The waiting time w_i before the job would begin (\[H\] eqs 2 and 3).
    pub fn wait(&self) -> Duration {
        self.of.pool.wait(self.index)
    }

    /// The processing time p_i of the job (\[H\] eq 13), with that for the keys of its SA.
    pub fn service(&self) -> Duration {
        let service = match self.of.burst {
            None => self.account().service(self.cost(), &self.of.job.work),
            Some(burst) => {
                let time = burst.time(self.cost(), 1);
                self.of.pool.service(self.index, time, self.of.job.work.bytes)
            }
        };
        service + Keys::time_on(self.of.pool.keys, self.index, self.of.job.sa)
    }

    /// The finish time f_i from now on, with alpha, beta and learnt tardiness (\[H\] eqs 4 and 5).
    pub fn finish(&self) -> Duration {
        self.account().biased(self.wait() + self.service())
    }

    /// Jobs placed on it and not finished.
    pub fn unfinished(&self) -> usize {
        self.account().unfinished()
    }

    /// Jobs in its queue that it has not taken out.
    pub fn waiting(&self) -> usize {
        self.account().waiting()
    }

    /// Whether its queue has room for another job of this class.
    pub fn has_room(&self) -> bool {
        self.of.pool.is_free(self.index)
    }

    /// Jobs that it computes side by side, one at least.
    pub fn lanes(&self) -> usize {
        self.cost().lanes.max(1) as usize
    }

    /// The factor alpha in force.
    pub fn alpha(&self) -> f64 {
        self.account().alpha()
    }
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Candidate");
        text.field("index", &self.index).field("kind", &self.kind()).field("wait", &self.wait());
        text.field("service", &self.service()).field("finish", &self.finish()).finish()
    }
}

/// The jobs of a burst that have no place yet, all of one suite and class.
#[derive(Clone, Copy, Debug)]
pub struct BurstView<'a>(&'a Burst);

impl<'a> BurstView<'a> {
    pub(crate) fn new(burst: &'a Burst) -> BurstView<'a> {
        BurstView(burst)
    }

    /// Jobs of the burst, placed or not.
    pub fn jobs(&self) -> usize {
        self.0.len()
    }

    /// Jobs that are left, one at least.
    pub fn left(&self) -> usize {
        self.0.left()
    }

    /// Packets of the first `jobs` jobs that are left.
    pub fn packets(&self, jobs: usize) -> u32 {
        if jobs == 0 { 0 } else { self.0.next_work(jobs).packets }
    }

    /// Bytes of each job that is left.
    pub fn bytes(&self) -> impl Iterator<Item = u64> + 'a {
        self.0.each_bytes()
    }
}
