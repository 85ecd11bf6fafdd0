//! The burst at hand: jobs of one suite that are divided among the processors together. The price of a share
//! depends on its size.
//!
//! # The rule
//! For a finish time F, processor i can take the share
//!
//! ```text
//! n_i(F) = lanes_i * floor((F / alpha_i - beta_i - w_i - submit_i - wake_i) / g_i)       submit: if it opens a
//! g_i    = t_init + t_block * blocks + lanes_i * t_packet * packets                      batch, wake: if idle
//! ```
//!
//! of the burst's `n` jobs, where `blocks` and `packets` are the means of the burst. The host, which also moves
//! packets, has less time for jobs: it loses `move` for each job of the burst, and `feed_i` for every share that goes to
//! another processor i, the cost of handing its jobs over and taking them back. Another processor takes part only if
//! feeding it a job costs the host less than doing the job. The least F for which the shares together are the whole
//! burst is found by bisection. All processors then end at about the same time, and the last job is done as early as
//! possible; the host somewhat earlier, because it has the next burst to move: the others take what they can do by
//! [`RELIEF`] times F. If one processor alone would be done no later, it gets the whole burst. With one job at hand the processor
//! with the smallest
//!
//! ```text
//! f_i = alpha_i (w_i + submit_i + wake_i + p_i + beta_i)
//! ```
//!
//! takes it. Where submit and wake are zero, this is the paper's rule, \[H\] eqs 4 and 5.

use forebay_time::{Duration, Time};

use crate::Kind;
use crate::cost::{Batch, Cost};
use crate::job::{Item, Job, JobHead, Work};
use crate::keys::Keys;
use crate::processor_state::ProcessorState;

/// Longest predicted time of a share that is given away to measure something.
pub(crate) const LONGEST: Duration = Duration::from_millis(2);

/// The jobs at hand, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Burst {
    head: JobHead,
    items: Vec<u64>,
    /// For each job: its own work, and items and work of all up to and including it.
    jobs: Vec<Entry>,
    /// Jobs that have been placed.
    placed: usize,
    /// Whether all jobs have as many blocks and packets as the first.
    alike: bool,
    /// What is left of the division of the jobs, the next share last.
    plan: Vec<Share>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    work: Work,
    arrived: Time,
    sa: u32,
    items_end: u32,
    sum: Work,
}

/// A part of the burst for one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) processor: usize,
    /// Jobs, from the front of those that are left.
    pub(crate) jobs: usize,
}

/// Processors, and what jobs of the burst's suite cost at each.
#[derive(Clone, Copy)]
pub(crate) struct Pool<'a> {
    pub(crate) now: Time,
    pub(crate) processor_states: &'a [ProcessorState],
    pub(crate) costs: &'a [Cost],
    /// The keys that they hold, if that matters for any; else empty.
    pub(crate) keys: &'a [Option<Keys>],
    pub(crate) suite: u8,
    /// Most jobs waiting in a queue that the class may join.
    pub(crate) queue: usize,
    /// See [`crate::ClassConfig::latency_bound`].
    pub(crate) bound: Duration,
    /// The processor that also moves packets, if there is one, and until when it is busy with that.
    pub(crate) host: Option<(usize, Time)>,
}

impl Pool<'_> {
    pub(crate) fn is_capable(&self, processor: usize) -> bool {
        self.processor_states[processor].open_for & 1 << self.suite != 0
    }

    /// Whether it may be given jobs now.
    pub(crate) fn is_free(&self, processor: usize) -> bool {
        self.is_capable(processor) && self.processor_states[processor].has_room(self.queue)
    }

    /// Those that may be given jobs now; of a class with a latency bound those that keep it, if there are such.
    pub(crate) fn free(&self) -> impl Iterator<Item = usize> {
        let free = (0..self.processor_states.len()).filter(|&processor| self.is_free(processor));
        let is_bounded = self.bound < Duration(u64::MAX) && free.clone().any(|one| self.is_in_time(one));
        free.filter(move |&one| !is_bounded || self.is_in_time(one))
    }

    /// Whether a job of the class may be done there within its bound, from which the host is exempt.
    fn is_in_time(&self, processor: usize) -> bool {
        self.host.is_some_and(|(host, _)| host == processor)
            || self.finish(processor, self.service(processor, self.costs[processor].init, 0)) <= self.bound
    }

    /// The waiting time of a processor; the host's with what it has to move.
    pub(crate) fn wait(&self, processor: usize) -> Duration {
        let wait = self.processor_states[processor].wait(self.now);
        match self.host {
            Some((host, until)) if host == processor => wait + until.since(self.now),
            _ => wait,
        }
    }

    /// The service time of a share on a processor, whose jobs take `time` by themselves.
    pub(crate) fn service(&self, processor: usize, time: Duration, bytes: u64) -> Duration {
        self.processor_states[processor].share_service(&self.costs[processor], time, bytes)
    }

    /// Whether a share is done soon enough to be given away for the sake of a measurement.
    pub(crate) fn is_short(&self, processor: usize, time: Duration, bytes: u64) -> bool {
        self.wait(processor) + self.service(processor, time, bytes) <= LONGEST.min(self.bound)
    }

    /// What is left of the burst as one share, if the processor may be given it for the sake of a measurement.
    pub(crate) fn whole_for(&self, processor: usize, burst: &Burst) -> Option<Share> {
        let jobs = burst.left();
        let time = burst.time(&self.costs[processor], jobs);
        let fits = self.is_free(processor) && self.is_short(processor, time, burst.next_work(jobs).bytes);
        fits.then_some(Share { processor, jobs })
    }

    /// The bound in picoseconds.
    fn latest(&self) -> f64 {
        if self.bound < Duration(u64::MAX) { self.bound.0 as f64 } else { f64::INFINITY }
    }

    /// The host's offer, which stands last.
    fn host_offer<'o>(&self, offers: &'o [Offer]) -> Option<&'o Offer> {
        offers.last().filter(|last| self.host.is_some_and(|(host, _)| host == last.processor))
    }

    /// The finish time f_i of a share with that service time.
    pub(crate) fn finish(&self, processor: usize, service: Duration) -> Duration {
        self.processor_states[processor].biased(self.wait(processor) + service)
    }
}

impl Burst {
    pub(crate) fn with_capacity(jobs: usize) -> Burst {
        Burst {
            head: JobHead { sa: 0, class: 0, suite: 0, work: Work::default(), arrived: Time::ZERO },
            items: Vec::with_capacity(jobs),
            jobs: Vec::with_capacity(jobs),
            placed: 0,
            alike: true,
            plan: Vec::new(),
        }
    }

    /// Jobs that are not placed.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.jobs.len() - self.placed
    }

    /// Jobs, placed or not.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    #[inline]
    pub(crate) fn suite(&self) -> u8 {
        self.head.suite
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.jobs.clear();
        self.plan.clear();
        self.placed = 0;
    }

    /// Forgets the jobs that have been placed, so that there is room for others behind those that are left.
    pub(crate) fn make_room(&mut self) {
        if self.placed == 0 {
            return;
        }
        let (items, gone) = (self.items_before(self.placed), self.work(0, self.placed));
        self.items.drain(..items);
        self.jobs.drain(..self.placed);
        for job in &mut self.jobs {
            job.items_end -= items as u32;
            job.sum = job.sum.minus(&gone);
        }
        self.plan.clear();
        self.placed = 0;
    }

    /// Adds a job behind the others, whose suite it has.
    #[inline]
    pub(crate) fn push(&mut self, head: &JobHead, items: &[u64]) {
        let sum = self.begin(head).plus(&head.work);
        let first = &self.head.work;
        self.alike &= first.blocks == head.work.blocks && first.packets == head.work.packets;
        self.items.extend_from_slice(items);
        let items_end = self.items.len() as u32;
        self.jobs.push(Entry { work: head.work, arrived: head.arrived, sa: head.sa, items_end, sum });
    }

    /// Adds packets of the burst's suite, each as a job of its own.
    #[inline]
    pub(crate) fn push_packets(&mut self, items: &[Item], arrived: Time) {
        let Some(first) = items.first() else { return };
        let work = Work::packet(first.bytes);
        let head = JobHead { sa: first.sa, class: first.class, suite: first.suite, work, arrived };
        let mut sum = self.begin(&head);
        let (mut alike, first, mut items_end) = (self.alike, self.head.work, self.items.len() as u32);
        self.items.extend(items.iter().map(|item| item.id));
        self.jobs.extend(items.iter().map(|item| {
            let work = Work::packet(item.bytes);
            alike &= first.blocks == work.blocks && first.packets == work.packets;
            sum = sum.plus(&work);
            items_end += 1;
            Entry { work, arrived, sa: item.sa, items_end, sum }
        }));
        self.alike = alike;
    }

    /// The work of all jobs before the next, which is `head`.
    #[inline(always)]
    fn begin(&mut self, head: &JobHead) -> Work {
        match self.jobs.last() {
            Some(last) => last.sum,
            None => {
                self.head = *head;
                self.alike = true;
                Work::default()
            }
        }
    }

    /// Moves the first `jobs` that are left into `hand`.
    pub(crate) fn take(&mut self, jobs: usize, hand: &mut Job) {
        let (from, to) = (self.placed, self.placed + jobs);
        let first = &self.jobs[from];
        let head = JobHead { sa: first.sa, arrived: first.arrived, work: self.work(from, to), ..self.head };
        let items = self.items_before(from)..self.items_before(to);
        hand.fill(head, &self.items[items], self.jobs[from..to].iter().map(|job| job.work));
        self.placed = to;
    }

    fn items_before(&self, job: usize) -> usize {
        if job == 0 { 0 } else { self.jobs[job - 1].items_end as usize }
    }

    /// The work of some of the jobs.
    fn work(&self, from: usize, to: usize) -> Work {
        match from {
            0 => self.jobs[to - 1].sum,
            _ => self.jobs[to - 1].sum.minus(&self.jobs[from - 1].sum),
        }
    }

    /// The work of the first `jobs` that are left.
    pub(crate) fn next_work(&self, jobs: usize) -> Work {
        self.work(self.placed, self.placed + jobs)
    }

    /// The SAs of the first `jobs` that are left.
    pub(crate) fn next_sas(&self, jobs: usize) -> impl Iterator<Item = u32> {
        self.jobs[self.placed..self.placed + jobs].iter().map(|job| job.sa)
    }

    /// What jobs of the burst cost where their keys have to be loaded: what that takes for all that are left is shared out to
    /// their packets.
    pub(crate) fn costs_with_keys(&self, costs: &[Cost], keys: &[Option<Keys>], to: &mut Vec<Cost>) {
        let packets = u64::from(self.next_work(self.left()).packets.max(1));
        to.clear();
        to.extend(costs.iter().zip(keys).map(|(cost, keys)| {
            let all = keys.as_ref().map(|keys| keys.time_of(self.next_sas(self.left())));
            let each = Duration(all.map_or(0, |all| all.0 / packets));
            Cost { packet: cost.packet + each, ..*cost }
        }));
    }

    /// The first job that is left.
    pub(crate) fn next_head(&self) -> JobHead {
        let first = &self.jobs[self.placed];
        JobHead { sa: first.sa, arrived: first.arrived, work: first.work, ..self.head }
    }

    /// Bytes of each job that is left.
    pub(crate) fn each_bytes(&self) -> impl Iterator<Item = u64> {
        self.jobs[self.placed..].iter().map(|job| job.work.bytes)
    }

    /// How long the first `jobs` that are left take by themselves (T_i of the rule).
    pub(crate) fn time(&self, cost: &Cost, jobs: usize) -> Duration {
        let (from, to) = (self.placed, self.placed + jobs);
        let lanes = (cost.lanes as usize).max(1);
        if self.alike {
            return cost.of_groups(jobs.div_ceil(lanes), &self.jobs[from].work, jobs);
        }
        if lanes == 1 {
            return cost.of_jobs(jobs, &self.work(from, to));
        }
        let mut batch = Batch::default();
        self.jobs[from..to].iter().for_each(|job| batch.add(cost, &job.work));
        batch.time()
    }

    /// The next share by the rule above; `None` if no processor may be given a job now.
    pub(crate) fn share(&mut self, pool: &Pool<'_>) -> Option<Share> {
        if self.left() == 1 {
            return self.best_for_one(pool).map(|processor| Share { processor, jobs: 1 });
        }
        // A plan is made and carried out at one instant.
        if self.plan.iter().map(|share| share.jobs).sum::<usize>() != self.left() {
            let whole = Whole::of(self.left(), &self.next_work(self.left()));
            whole.plan(pool, &mut self.plan);
        }
        self.plan.pop()
    }

    /// The processor that is done with the next job first. Ties: an accelerator before a CPU, the faster before the
    /// slower, the lower index.
    fn best_for_one(&self, pool: &Pool<'_>) -> Option<usize> {
        let work = self.next_work(1);
        let rank = |&processor: &usize| {
            let service = pool.service(processor, self.time(&pool.costs[processor], 1), work.bytes);
            let finish = pool.finish(processor, service);
            (finish, pool.processor_states[processor].kind == Kind::Cpu, service, processor)
        };
        pool.free().min_by_key(rank)
    }
}

/// A burst as a number of equal jobs: the mean of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    jobs: usize,
    /// Blocks, packets and bytes of a job.
    blocks: f64,
    packets: f64,
    bytes: f64,
}

/// What a processor can do of a burst by some time, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Offer {
    processor: usize,
    alpha: f64,
    /// Before its first job is begun, beta included.
    before: f64,
    /// For a group of jobs that are computed side by side, and how many they are.
    group: f64,
    lanes: usize,
    /// What it costs the host to feed it: for a batch, and for each job.
    feed_batch: f64,
    feed_job: f64,
}

/// Steps of the bisection: the finish time is found to a thousandth of itself, and then to a group of jobs.
const STEPS: usize = 12;
/// How much later than at best a divided burst may end, so that the host is free earlier.
const RELIEF: f64 = 1.05;
/// Processors that a burst is shared out to at most; further ones are not looked at.
const OFFERS: usize = 16;

impl Whole {
    /// A burst of `jobs` jobs, at least one, with `work` in all.
    #[inline]
    pub(crate) fn of(jobs: usize, work: &Work) -> Whole {
        let each = 1.0 / jobs as f64;
        Whole {
            jobs,
            blocks: f64::from(work.blocks) * each,
            packets: f64::from(work.packets) * each,
            bytes: work.bytes as f64 * each,
        }
    }

    fn offer(&self, pool: &Pool<'_>, processor: usize) -> Offer {
        let (processor_state, cost) = (&pool.processor_states[processor], &pool.costs[processor]);
        let lanes = cost.lanes.max(1);
        let opening = pool.service(processor, Duration::ZERO, (self.bytes * self.jobs as f64) as u64);
        let packets = cost.packet.0 as f64 * self.packets;
        let group = cost.init.0 as f64 + cost.block.0 as f64 * self.blocks + packets * f64::from(lanes);
        let (batch, job) = processor_state.feed_terms(self.blocks);
        Offer {
            processor,
            alpha: processor_state.alpha(),
            before: (pool.wait(processor) + opening).0 as f64 + processor_state.added().0 as f64,
            group: group.max(1.0),
            lanes: lanes as usize,
            feed_batch: batch,
            feed_job: job,
        }
    }

    /// Divides the burst by the rule; nothing if no processor may be given a job now. The share that goes first is
    /// the last of `plan`.
    fn plan(&self, pool: &Pool<'_>, plan: &mut Vec<Share>) {
        plan.clear();
        let mut offers = [Offer::default(); OFFERS];
        let count = self.offers(pool, &mut offers);
        let Some(alone) = self.least_alone(pool, &offers[..count]) else { return };
        let Some(division) = self.divide(pool, &offers[..count], alone.1) else {
            return plan.push(Share { processor: alone.0, jobs: self.jobs });
        };
        // The host's share goes last, because it takes it piece by piece.
        let host = pool.host.map(|(host, _)| host);
        for (offer, jobs) in offers[..count].iter().zip(division).filter(|&(_, jobs)| jobs > 0) {
            let share = Share { processor: offer.processor, jobs };
            plan.push(share);
        }
        plan.sort_by_key(|share| (Some(share.processor) != host, std::cmp::Reverse(share.processor)));
    }

    /// What the processors that may be given jobs offer, the host last.
    fn offers(&self, pool: &Pool<'_>, offers: &mut [Offer; OFFERS]) -> usize {
        let host = pool.host.map(|(host, _)| host);
        let others = pool.free().filter(|&one| Some(one) != host);
        let mut count = 0;
        for (processor, offer) in others.take(OFFERS - 1).zip(&mut *offers) {
            *offer = self.offer(pool, processor);
            count += 1;
        }
        if let Some(host) = host {
            let takes = pool.is_free(host);
            // A host that can take no job has to feed the others all the same.
            if takes || count > 0 {
                offers[count] = self.offer(pool, host);
                if !takes {
                    offers[count].group = f64::INFINITY;
                }
                count += 1;
            }
        }
        count
    }

    /// The processor that is done with the whole burst first, and when; one that keeps the bound before others.
    fn least_alone(&self, pool: &Pool<'_>, offers: &[Offer]) -> Option<(usize, f64)> {
        // The host, which stands last; feeding others all of it keeps it busy too.
        let host = pool.host.and_then(|(host, _)| offers.last().filter(|last| last.processor == host));
        let alone = |offer: &Offer| {
            let groups = self.jobs.div_ceil(offer.lanes) as f64;
            let end = offer.alpha * (offer.before + groups * offer.group);
            match host.filter(|host| host.processor != offer.processor) {
                Some(host) => {
                    let fed = host.before + offer.feed_batch + self.jobs as f64 * offer.feed_job;
                    end.max(host.alpha * fed)
                }
                None => end,
            }
        };
        // The host before others that are as good.
        let (host, latest) = (pool.host.map(|(host, _)| host), pool.latest());
        let ends = offers.iter().rev().map(|offer| (offer.processor, alone(offer)));
        let is_late = |&(processor, end): &(usize, f64)| Some(processor) != host && end > latest;
        ends.min_by(|one, other| is_late(one).cmp(&is_late(other)).then(one.1.total_cmp(&other.1)))
    }

    /// The division with which the last job is done first, if that is before `alone`: by offer.
    fn divide(&self, pool: &Pool<'_>, offers: &[Offer], alone: f64) -> Option<[usize; OFFERS]> {
        let host = pool.host_offer(offers);
        let latest = pool.latest();
        let (best, end) = self.least(offers, host, latest, alone)?;
        // The host has the next burst to move as soon as it is done: others take what hardly delays the end.
        let relieved = host.and_then(|_| self.by(offers, host, latest, (end * RELIEF).min(alone)));
        Some(relieved.unwrap_or(best))
    }

    /// The division with which the last job is done first, and when that is.
    fn least(
        &self,
        offers: &[Offer],
        host: Option<&Offer>,
        latest: f64,
        alone: f64,
    ) -> Option<([usize; OFFERS], f64)> {
        if offers.len() < 2 {
            return None;
        }
        // What is saved is to be more than what rounding makes.
        let (mut low, mut high) = (0.0, alone * 0.999);
        let mut best = self.by(offers, host, latest, high)?;
        for _ in 0..STEPS {
            let middle = 0.5 * (low + high);
            match self.by(offers, host, latest, middle) {
                Some(division) => (best, high) = (division, middle),
                None => low = middle,
            }
        }
        Some((best, high))
    }

    /// How many jobs each processor does so that all are done by `end`; `None` if they are not.
    #[inline]
    fn by(&self, offers: &[Offer], host: Option<&Offer>, latest: f64, end: f64) -> Option<[usize; OFFERS]> {
        let mut shares = [0; OFFERS];
        let (mut left, mut feeding) = (self.jobs, 0.0);
        let per_job = host.map(|host| host.group / host.lanes as f64);
        for (share, offer) in shares.iter_mut().zip(offers) {
            let is_host = host.is_some_and(|host| host.processor == offer.processor);
            if !is_host && per_job.is_some_and(|job| offer.feed_job >= job) {
                continue;
            }
            // The host does what others cannot do in time.
            let end = if is_host { end } else { end.min(latest) };
            let time = end / offer.alpha - offer.before - if is_host { feeding } else { 0.0 };
            let groups = (time / offer.group).max(0.0) as usize;
            *share = groups.saturating_mul(offer.lanes).min(left);
            left -= *share;
            // The host feeds others, not itself.
            if *share > 0 && !is_host {
                feeding += offer.feed_batch + *share as f64 * offer.feed_job;
            }
        }
        let fed = host.is_none_or(|host| end / host.alpha >= host.before + feeding);
        (left == 0 && fed).then_some(shares)
    }

    /// Whether the host would do the whole burst itself by the rule.
    #[inline]
    pub(crate) fn stays(&self, pool: &Pool<'_>, host: usize) -> bool {
        let mut offers = [Offer::default(); OFFERS];
        let count = self.offers(pool, &mut offers);
        let offers = &offers[..count];
        match self.least_alone(pool, offers) {
            Some((processor, end)) => processor == host && self.divide_at_all(pool, offers, end).is_none(),
            None => false,
        }
    }

    /// Like [`Whole::divide`], but any division that is better will do.
    fn divide_at_all(&self, pool: &Pool<'_>, offers: &[Offer], alone: f64) -> Option<[usize; OFFERS]> {
        let host = pool.host_offer(offers);
        if offers.len() < 2 { None } else { self.by(offers, host, pool.latest(), alone * 0.999) }
    }
}
