//! Jobs that are handed to a processor together, from the scheduler's choice to their answers.

use forebay_scheduler::{Cost, Keys, Work};
use forebay_station::Work as StationWork;
use forebay_time::Duration;

use crate::ledger::Tag;
use crate::scenario::{Answers, Scenario};
use crate::setup;

/// A job of a batch.
#[derive(Clone, Copy, Debug)]
struct Part {
    work: Work,
    tag: Tag,
    /// What it takes for the keys of its SA.
    keys: Duration,
    /// Whether it is the last of what the scheduler dispatched in one decision.
    ends_chunk: bool,
}

/// Jobs by processor that have been placed and not handed over, and those that a processor has.
#[derive(Debug)]
pub(crate) struct Batches {
    /// By processor: what jobs cost there, and whether each group of a batch is answered by itself.
    processors: Vec<(Cost, Answers)>,
    /// By processor.
    open: Vec<Vec<Part>>,
    /// Processors with open jobs, the one that got the first of them first.
    order: Vec<usize>,
    /// What processors have: the jobs that are answered together. A place is used again, and its memory too.
    held: Vec<Vec<Part>>,
    free: Vec<u32>,
    works: Vec<StationWork<u32>>,
    /// By processor, the keys that it holds.
    keys: Vec<Option<Keys>>,
}

impl Batches {
    pub(crate) fn new(scenario: &Scenario) -> Batches {
        let processors = scenario.processors.iter();
        Batches {
            processors: processors.map(|one| (one.config.cost, one.answers)).collect(),
            open: scenario.processors.iter().map(|_| Vec::new()).collect(),
            order: Vec::new(),
            held: Vec::new(),
            free: Vec::new(),
            works: Vec::new(),
            keys: setup::keys(scenario),
        }
    }

    /// A job of an SA was placed on a processor; `ends_chunk`: it is the last one of a decision.
    pub(crate) fn place(&mut self, processor: usize, sa: u32, work: Work, tag: Tag, ends_chunk: bool) {
        if self.open[processor].is_empty() {
            self.order.push(processor);
        }
        let keys = self.keys[processor].as_mut().map_or(Duration::ZERO, |keys| keys.place(sa));
        self.open[processor].push(Part { work, tag, keys, ends_chunk });
    }

    /// The processors that have jobs to be handed over, in order.
    pub(crate) fn waiting(&self) -> &[usize] {
        &self.order
    }

    /// Packets and blocks of the jobs to be handed over to a processor.
    pub(crate) fn size(&self, processor: usize) -> (u64, u64) {
        let works = self.open[processor].iter().map(|part| part.work);
        works.fold((0, 0), |(packets, blocks), work| {
            (packets + u64::from(work.packets), blocks + u64::from(work.blocks))
        })
    }

    /// Hands over what a processor has to get; returns that as the host wants it: one entry for all jobs that are
    /// answered together. The list's memory is to be given back.
    pub(crate) fn hand_over(&mut self, processor: usize) -> Vec<StationWork<u32>> {
        let (cost, answers) = self.processors[processor];
        self.order.retain(|&waiting| waiting != processor);
        let mut works = std::mem::take(&mut self.works);
        let mut jobs = std::mem::take(&mut self.open[processor]);
        let group = match answers {
            Answers::Batch => jobs.len(),
            Answers::Each => cost.lanes.max(1) as usize,
        };
        let mut submit = cost.submit;
        for parts in jobs.chunks(group.max(1)) {
            let place = self.free.pop().unwrap_or_else(|| {
                self.held.push(Vec::new());
                (self.held.len() - 1) as u32
            });
            self.held[place as usize].extend_from_slice(parts);
            let paid_once = Cost { submit: std::mem::replace(&mut submit, Duration::ZERO), ..cost };
            works.push(StationWork {
                bytes: parts.iter().map(|part| part.work.bytes).sum(),
                time: parts
                    .iter()
                    .fold(paid_once.of_batch(parts.iter().map(|part| part.work)), |sum, part| {
                        sum + part.keys
                    }),
                tag: place,
            });
        }
        jobs.clear();
        self.open[processor] = jobs;
        works
    }

    /// Takes back the memory of what was handed over.
    pub(crate) fn give_back(&mut self, mut works: Vec<StationWork<u32>>) {
        works.clear();
        self.works = works;
    }

    /// Removes answered jobs: passes the tag of each to `each`, and returns how many chunks ended with them.
    pub(crate) fn take(&mut self, place: u32, mut each: impl FnMut(Tag)) -> usize {
        let parts = &mut self.held[place as usize];
        let mut chunks = 0;
        for part in parts.drain(..) {
            each(part.tag);
            chunks += usize::from(part.ends_chunk);
        }
        self.free.push(place);
        chunks
    }
}
