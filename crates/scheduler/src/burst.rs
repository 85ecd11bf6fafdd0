//! The burst at hand: jobs of one suite that are shared out together, each share at a price that depends on
//! its size.
//!
//! # The rule
//! Of the `n` jobs that are left of the burst, the next *share* is placed. For every capable processor i a share
//! of c_i jobs is looked at, and its finishing time is predicted:
//!
//! ```text
//! c_i = ceil(n / (2 m)) rounded up to whole groups of lanes_i, at most n        m capable processors
//! T_i = sum over the share's groups of lanes_i jobs of the longest (t_init + t_block * blocks)
//!       + t_packet * packets
//! f_i = alpha_i (w_i + submit_i + wake_i + T_i + beta_i)                        submit: if it opens a batch,
//!                                                                               wake: if the processor is idle
//! F_0 = w_0 + move + feed_i(c_i)                                                the host, if i is another
//! ```
//!
//! The processor with the smallest max(f_i, F_0) takes its share; of equal ones the one with the smallest f_i.
//! Then the rest is shared out likewise, in ever smaller shares (guided self-scheduling, Polychronopoulos and
//! Kuck 1987), so that all end at about the same time: the last job of the burst is done first. `move` is what
//! the host still has to do for this burst besides crypto, `feed_i` what handing jobs to processor i and taking
//! them back costs it. With one job at hand and neither, f_i is \[H\] eqs 4 and 5 and the rule is the paper's.

use forebay_time::{Duration, Time};

use crate::account::Account;
use crate::cost::{Batch, Cost};
use crate::job::{Job, JobHead, Work};

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
    pub(crate) accounts: &'a [Account],
    pub(crate) costs: &'a [Cost],
    pub(crate) suite: u8,
    /// Most jobs waiting in a queue that the class may join.
    pub(crate) queue: usize,
    /// The processor that moves packets besides, if there is one, and until when it is busy with that.
    pub(crate) host: Option<(usize, Time)>,
}

impl Pool<'_> {
    pub(crate) fn is_capable(&self, processor: usize) -> bool {
        self.accounts[processor].open_for & 1 << self.suite != 0
    }

    /// Whether it may be given jobs now.
    pub(crate) fn is_free(&self, processor: usize) -> bool {
        self.is_capable(processor) && self.accounts[processor].has_room(self.queue)
    }

    /// Those that may be given jobs now.
    pub(crate) fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.accounts.len()).filter(|&processor| self.is_free(processor))
    }

    /// The waiting time of a processor; the host's with what it has to move.
    pub(crate) fn wait(&self, processor: usize) -> Duration {
        let wait = self.accounts[processor].wait(self.now);
        match self.host {
            Some((host, until)) if host == processor => wait + until.since(self.now),
            _ => wait,
        }
    }

    /// The service time of a share on a processor, whose jobs take `time` by themselves.
    pub(crate) fn service(&self, processor: usize, time: Duration, bytes: u64) -> Duration {
        self.accounts[processor].share_service(&self.costs[processor], time, bytes)
    }

    /// The finishing time f_i of a share with that service time.
    fn finish(&self, processor: usize, service: Duration) -> Duration {
        self.accounts[processor].biased(self.wait(processor) + service)
    }

    /// When the host would be free if it handed jobs to another processor; zero without a host.
    fn host_after(&self, processor: usize, jobs: usize, work: &Work) -> Duration {
        match self.host {
            Some((host, _)) if host != processor => {
                self.wait(host) + self.accounts[processor].feed_time(jobs, work)
            }
            _ => Duration::ZERO,
        }
    }
}

/// Whether the host should do a whole burst itself.
impl Pool<'_> {
    /// Whether a burst of `jobs` jobs, `work` in all, the longest of `longest` blocks, would not be done earlier if
    /// the least share of it that another processor does well went there.
    #[inline]
    pub(crate) fn keeps(&self, host: usize, jobs: usize, work: &Work, longest: u32) -> bool {
        let one = Work { packets: 1, blocks: longest, bytes: u64::from(longest) * 16 };
        let groups = |cost: &Cost, jobs: usize, work: &Work| match cost.lanes {
            0 | 1 => cost.of_jobs(jobs, work),
            lanes => cost.of_groups(jobs.div_ceil(lanes as usize), &one, jobs),
        };
        let alone = self.service(host, groups(&self.costs[host], jobs, work), work.bytes);
        let alone = self.finish(host, alone);
        (0..self.accounts.len()).filter(|&other| other != host && self.is_free(other)).all(|other| {
            let cost = &self.costs[other];
            let part = (cost.lanes as usize).clamp(1, jobs);
            // As many of the longest jobs: what is left to the host is the less.
            let part_blocks = longest.saturating_mul(part as u32).min(work.blocks);
            let part_work = Work {
                packets: part as u32,
                blocks: part_blocks,
                bytes: (u64::from(part_blocks) * 16).min(work.bytes),
            };
            let theirs =
                self.finish(other, self.service(other, groups(cost, part, &part_work), part_work.bytes));
            let left = Work { packets: work.packets.saturating_sub(part as u32), ..work.minus(&part_work) };
            let rest = groups(&self.costs[host], jobs - part, &left);
            let ours =
                self.service(host, rest, left.bytes) + self.accounts[other].feed_time(part, &part_work);
            theirs.max(self.finish(host, ours)) >= alone
        })
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
        self.placed = 0;
    }

    /// Adds a job behind the others, whose suite it has.
    #[inline]
    pub(crate) fn push(&mut self, head: &JobHead, items: &[u64]) {
        let work = head.work;
        let sum = match self.jobs.last() {
            None => {
                self.head = *head;
                self.alike = true;
                work
            }
            Some(last) => {
                let first = &self.jobs[0].work;
                self.alike &= first.blocks == work.blocks && first.packets == work.packets;
                last.sum.plus(&work)
            }
        };
        self.items.extend_from_slice(items);
        let items_end = self.items.len() as u32;
        self.jobs.push(Entry { work, arrived: head.arrived, sa: head.sa, items_end, sum });
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

    /// Bytes of the first job that is left.
    pub(crate) fn first_bytes(&self) -> u64 {
        self.jobs.get(self.placed).map_or(0, |job| job.work.bytes)
    }

    /// How many of the jobs that are left follow each other on the same side of a limit of bytes.
    pub(crate) fn run_of_size(&self, bytes: u64) -> usize {
        let small = self.first_bytes() < bytes;
        self.jobs[self.placed..].iter().take_while(|job| (job.work.bytes < bytes) == small).count()
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

    /// Jobs of the next share of a processor, where `free` may be given some.
    pub(crate) fn chunk(&self, cost: &Cost, free: usize) -> usize {
        let lanes = (cost.lanes as usize).max(1);
        self.left().div_ceil(2 * free.max(1)).next_multiple_of(lanes).min(self.left())
    }

    /// The next share by the rule above; `None` if no processor may be given a job now.
    pub(crate) fn share(&self, pool: &Pool<'_>) -> Option<Share> {
        let free = pool.free().count();
        let mut best = None;
        for processor in pool.free() {
            let cost = &pool.costs[processor];
            let jobs = self.chunk(cost, free);
            let work = self.next_work(jobs);
            let service = pool.service(processor, self.time(cost, jobs), work.bytes);
            let finish = pool.finish(processor, service);
            let last = finish.max(pool.host_after(processor, jobs, &work));
            // Ties as for single jobs: an accelerator before a CPU, the faster before the slower, the lower index.
            let rank = (last, finish, pool.accounts[processor].kind == crate::Kind::Cpu, service);
            if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                best = Some((rank, Share { processor, jobs }));
            }
        }
        best.map(|(_, share)| share)
    }
}
