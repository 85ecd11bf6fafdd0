//! Jobs that a device has, in the batches that they came in.
//!
//! The device works on their packets, so jobs stay where they are until it has given them back; and a batch comes and goes
//! as a whole, because at a small packet's rate moving each job alone costs as much as the driver does.

use std::mem;
use std::ops::Range;

use forebay_crypto::{Job, Verdict};

/// Where a job is: its batch, and its index in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub batch: u32,
    pub index: u32,
}

/// All batches of a queue.
#[derive(Default)]
pub struct Batches {
    all: Vec<Batch>,
    /// Those that hold no jobs.
    free: Vec<u32>,
}

#[derive(Default)]
struct Batch {
    /// Empty ones stand where jobs were taken.
    jobs: Vec<Job>,
    /// How many of them the device has.
    open: usize,
    /// Whether jobs were taken out singly.
    has_gaps: bool,
    /// How many jobs the device had been given before.
    number: u64,
}

impl Batches {
    /// Takes up to `room` of the jobs, from the first on; the number of their batch.
    pub fn hold(&mut self, jobs: &mut Vec<Job>, room: usize, number: u64) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push(Batch::default());
            self.all.len() as u32 - 1
        });
        let batch = &mut self.all[at as usize];
        (batch.number, batch.has_gaps) = (number, false);
        if jobs.len() <= room {
            mem::swap(&mut batch.jobs, jobs);
        } else {
            batch.jobs.extend(jobs.drain(..room));
        }
        batch.open = batch.jobs.len();
        at
    }

    /// The jobs of a batch that was just taken.
    #[inline]
    pub fn jobs(&mut self, batch: u32) -> &mut [Job] {
        &mut self.all[batch as usize].jobs
    }

    /// Takes a job that the device does not get, or has given back.
    #[inline]
    pub fn take(&mut self, place: Place) -> Job {
        let batch = &mut self.all[place.batch as usize];
        batch.open -= 1;
        batch.has_gaps = true;
        let job = mem::take(&mut batch.jobs[place.index as usize]);
        self.tidy(place.batch);
        job
    }

    /// Makes a batch ready for others if nothing is left of it.
    fn tidy(&mut self, batch: u32) {
        let all = &mut self.all[batch as usize];
        if all.open == 0 {
            all.jobs.clear();
            self.free.push(batch);
        }
    }

    /// Notes the verdict of a job that the device has given back, and that [`Batches::give`] is to be told of.
    #[inline]
    pub fn settle(&mut self, place: Place, verdict: Verdict) {
        self.all[place.batch as usize].jobs[place.index as usize].verdict = verdict;
    }

    /// Hands over jobs of one batch, all different, that the device has given back.
    #[inline]
    pub fn give(&mut self, batch: u32, settled: &[Place], done: &mut Vec<Job>) {
        let all = &mut self.all[batch as usize];
        if all.has_gaps || settled.len() < all.jobs.len() {
            done.extend(settled.iter().map(|place| self.take(*place)));
            return;
        }
        if done.is_empty() {
            mem::swap(done, &mut all.jobs);
        } else {
            done.append(&mut all.jobs);
        }
        all.open = 0;
        self.free.push(batch);
    }

    /// How many jobs the device had been given before the oldest batch of which it still has some.
    pub fn oldest(&self) -> Option<u64> {
        self.all.iter().filter(|batch| batch.open > 0).map(|batch| batch.number).min()
    }

    /// Gives up all jobs without their packets' memory, which the device may still write to.
    pub fn forget(&mut self) {
        self.all.drain(..).flat_map(|batch| batch.jobs).for_each(mem::forget);
        self.free.clear();
    }
}

/// The runs of places that are in the same batch.
pub fn runs(places: &[Place]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = places.get(at)?;
        let begin = at;
        at += places[begin..].iter().take_while(|place| place.batch == first.batch).count();
        Some(begin..at)
    })
}
