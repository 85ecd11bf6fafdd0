//! The emulated card as a processor.

use std::collections::VecDeque;

use forebay_crypto::{
    Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Suite, Verdict,
};
use forebay_station::Work;
use forebay_time::{Duration, Time};

use crate::{Bus, CardConfig};

/// How many delivered submissions a card keeps for a caller that does not poll; no more are taken
/// then. Four times a full default queue, so a caller that polls at all never sees it.
pub const COMPLETIONS_MAX: usize = 4_096;

/// A processor whose jobs are done by another one and finished when a card of the given figures
/// would have written them back.
///
/// The model's packet size b is [`Packet::len`](forebay_crypto::Packet::len): the whole packet, the
/// protocol's overhead included (models.md, "Packet size"), which crosses the bus and is charged by the
/// block, not only [`JobSpec::cipher`](forebay_crypto::JobSpec). [`Job::took`] is a job's share of the
/// submission's t_enc: its own blocks and an equal part of t_init; the shares' sum is t_enc.
///
/// Where the model's queue is full, jobs stay with the caller. [`Capabilities::queue`] counts
/// submissions, each of one job or more.
pub struct Card {
    capabilities: Capabilities,
    config: CardConfig,
    bus: Bus,
    /// The card's number on the bus.
    number: usize,
    inner: Box<dyn Processor>,
    /// Jobs between submit and poll. The card works in order, so submissions leave at the front.
    held: VecDeque<Job>,
    /// How many of them each submission has.
    submissions: VecDeque<usize>,
    /// Jobs that `inner` has kept beyond the call that gave them to it.
    late: usize,
    /// Emptied after each use.
    batch: Vec<Job>,
    /// Whether a job takes as long as the inner processor says, in the place of the figures.
    timed_by_inner: bool,
}

impl Card {
    /// Plugs a card into `bus`. `inner` does the cryptography and should do it inside submit: a job that it still
    /// holds when it is polled right afterwards is delivered later, as [`Verdict::Failed`].
    pub fn new(config: CardConfig, bus: &Bus, inner: Box<dyn Processor>) -> Card {
        let inner_can = inner.capabilities();
        let has = |suite: &Suite| config.suites.as_ref().is_none_or(|suites| suites.contains(suite));
        let capabilities = Capabilities {
            suites: inner_can.suites.iter().copied().filter(has).collect(),
            best_burst: inner_can.best_burst,
            queue: config.queue,
        };
        Card {
            number: bus.model().plug(&config),
            capabilities,
            config,
            bus: bus.clone(),
            inner,
            held: VecDeque::new(),
            submissions: VecDeque::new(),
            late: 0,
            batch: Vec::new(),
            timed_by_inner: false,
        }
    }

    /// A card whose jobs take t_init for a submission and then as long as `inner` says of each ([`Job::took`]), such as a
    /// simulation of hardware; t_block does not count.
    pub fn timed_by_inner(config: CardConfig, bus: &Bus, inner: Box<dyn Processor>) -> Card {
        Card { timed_by_inner: true, ..Card::new(config, bus, inner) }
    }

    /// The card's figures.
    pub fn config(&self) -> &CardConfig {
        &self.config
    }

    /// [`Processor::poll`] that also passes the time at which each job was delivered: at or before `now`, and the
    /// same however often the card is polled.
    pub fn collect(&mut self, now: Time, mut each: impl FnMut(Time, Job)) {
        self.fail_late_jobs(now, &mut each);
        let mut model = self.bus.model();
        model.advance(now);
        let delivered = model.delivered(self.number);
        // Another card's thread may have taken the bus further than this `now`.
        while let Some(&at) = delivered.front()
            && at <= now
        {
            delivered.pop_front();
            let jobs = self.submissions.pop_front().unwrap_or(0);
            self.held.drain(..jobs).for_each(|job| each(at, job));
        }
    }

    /// Whether the card has room for a submission.
    fn has_room(&self, now: Time) -> bool {
        let mut model = self.bus.model();
        model.advance(now);
        let full = model.delivered(self.number).len() >= COMPLETIONS_MAX;
        !full && model.has_room(self.number, self.config.queue)
    }

    /// How long a job takes by itself.
    fn job_time(&self, job: &Job) -> Duration {
        if self.timed_by_inner { job.took } else { self.config.blocks_time(job.packet.len()) }
    }

    /// Has the crypto done: all of `jobs` that can be had back now are in `batch` afterwards.
    fn compute(&mut self, now: Time, jobs: &mut Vec<Job>) {
        let given = jobs.len();
        loop {
            let before = (jobs.len(), self.batch.len());
            self.inner.submit(now, jobs);
            self.inner.poll(now, &mut self.batch);
            if jobs.is_empty() || before == (jobs.len(), self.batch.len()) {
                break;
            }
        }
        self.batch.extend(jobs.drain(..).map(|job| Job { verdict: Verdict::Failed, ..job }));
        self.late = (self.late + given).saturating_sub(self.batch.len());
    }

    /// Returns at once, as failed, what `inner` has finished only now.
    fn fail_late_jobs(&mut self, now: Time, each: &mut impl FnMut(Time, Job)) {
        if self.late == 0 {
            return;
        }
        self.inner.poll(now, &mut self.batch);
        self.late = self.late.saturating_sub(self.batch.len());
        for job in self.batch.drain(..) {
            each(now, Job { verdict: Verdict::Failed, took: Duration::ZERO, ..job });
        }
    }
}

impl Processor for Card {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        if !self.capabilities.has(keys.suite()) {
            return Err(SessionError::Unsupported(keys.suite()));
        }
        self.inner.open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        self.inner.close_session(id);
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        if jobs.is_empty() || !self.has_room(now) {
            return;
        }
        let given = jobs.len() as u64;
        let mut work = Work { bytes: 0, time: self.config.init, tag: () };
        work.bytes = jobs.iter().map(|job| job.packet.len() as u64).sum();
        self.compute(now, jobs);
        self.submissions.push_back(self.batch.len());
        let mut batch = std::mem::take(&mut self.batch);
        for (index, mut job) in batch.drain(..).enumerate() {
            let time = self.job_time(&job);
            work.time += time;
            // The rest of the division goes to the first jobs, a picosecond each.
            let init = self.config.init.0 / given + u64::from((index as u64) < self.config.init.0 % given);
            job.took = Duration(init) + time;
            self.held.push_back(job);
        }
        self.batch = batch;
        self.bus.model().submit(now, self.number, work);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        self.collect(now, |_, job| done.push(job));
    }

    /// A time before which nothing more comes: exact where all that is left of the oldest submission
    /// is its write-back, else as early as other cards on the bus allow. Never one that has passed
    /// without having brought anything, so a caller who sleeps until then always gets on.
    fn next_due(&self) -> Option<Time> {
        self.bus.model().next_due(self.number)
    }
}
