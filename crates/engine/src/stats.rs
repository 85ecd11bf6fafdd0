//! What the engine counts.

use forebay_scheduler::Work;
use forebay_time::{Duration, Time};

use crate::flight::Placed;
use crate::health::Removal;

/// Most jobs of which both times are kept.
pub const SAMPLES: usize = 512;
/// Most removals that are kept.
pub const REMOVALS: usize = 1024;

/// What one processor did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorStats {
    /// Its name.
    pub name: String,
    /// Scheduler jobs finished; each holds one packet or a bundle.
    pub jobs: u64,
    /// Packets finished.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time it spent on them.
    pub busy: Duration,
    /// Service time that was predicted for them.
    pub predicted: Duration,
    /// From dispatch to answer, waiting included: predicted.
    pub predicted_response: Duration,
    /// From dispatch to answer, waiting included: as it was.
    pub response: Duration,
    /// Sum of the distances between the two.
    pub response_error: Duration,
    /// Sum over its packets of the time from the choice of the processor to the answer: a wait for room in
    /// its queue counts (the processing latency of `spec/models.md` section 1).
    pub processing: Duration,
    /// Predicted and actual time from dispatch to answer of some jobs: an even choice of at most
    /// 512.
    pub samples: Vec<(Duration, Duration)>,
    thinned: u32,
    /// Packets by length: up to 64, 128, 256, 512, 1024 bytes, and longer.
    pub sizes: [u64; 6],
    /// Answers that came after the job had been given to another.
    pub late: u64,
    /// Times it was taken out.
    pub removals: u64,
    /// Whether it is out now.
    pub out: bool,
}

impl ProcessorStats {
    pub(crate) fn new(name: &str) -> ProcessorStats {
        let samples = Vec::with_capacity(SAMPLES);
        ProcessorStats { name: name.to_owned(), samples, ..ProcessorStats::default() }
    }

    pub(crate) fn size(&mut self, len: u32) {
        let class = [64, 128, 256, 512, 1024].iter().position(|&limit| len <= limit);
        self.sizes[class.unwrap_or(5)] += 1;
    }

    pub(crate) fn job(&mut self, work: &Work, placed: &Placed, took: Duration, now: Time) {
        let prediction = &placed.prediction;
        self.jobs += 1;
        self.processing += now.since(placed.chosen).times(u64::from(work.packets));
        self.packets += u64::from(work.packets);
        self.bytes += work.bytes;
        self.busy += took;
        self.predicted += prediction.service;
        let (expected, actual) = (prediction.wait + prediction.service, now.since(prediction.at));
        self.predicted_response += expected;
        self.response += actual;
        self.response_error += Duration(expected.0.abs_diff(actual.0));
        // Every job while there is room; then every second is forgotten and only every second,
        // fourth, ... comes in, so that the choice stays even over the whole run.
        if self.jobs.is_multiple_of(self.stride()) {
            if self.samples.len() == SAMPLES {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.thinned += 1;
            }
            self.samples.push((expected, actual));
        }
    }

    fn stride(&self) -> u64 {
        1 << self.thinned.min(63)
    }
}

/// What the engine as a whole did beyond passing packets on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Jobs done again by the running core.
    pub redone: u64,
    /// Packets that came before their SA, and waited for it.
    pub strangers: u64,
    /// Results of others that the running core checked.
    pub audits: u64,
    /// Processors taken out: when, which, why. The first 1024; [`ProcessorStats::removals`] counts all.
    pub removals: Vec<(Time, usize, Removal)>,
}
