//! What the engine counts.

use forebay_crypto::Job;
use forebay_scheduler::Work;
use forebay_time::{Duration, Time};

use crate::health::Removal;
use crate::in_flight::Placed;

/// Most jobs of which both times are kept.
pub const SAMPLES: usize = 512;
/// Most removals that are kept.
pub const REMOVALS: usize = 1024;

/// Statistics of one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorStats {
    /// Its name.
    pub name: String,
    /// Scheduler jobs finished; each holds one packet or a bundle.
    pub jobs: u64,
    /// Submissions finished: jobs that were placed and handed over together.
    pub submissions: u64,
    /// Packets finished.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time it spent on them.
    pub busy: Duration,
    /// Service time that was predicted for them.
    pub predicted: Duration,
    /// Predicted time from dispatch to result, waiting included.
    pub predicted_response: Duration,
    /// Measured time from dispatch to result, waiting included.
    pub response: Duration,
    /// Sum of the distances between the two.
    pub response_error: Duration,
    /// Sum over its packets of the time from the choice of the processor to the answer: a wait for room in
    /// its queue counts (its processing latency).
    pub processing: Duration,
    /// Predicted and actual time from dispatch to answer of some submissions: an even choice of at most
    /// 512.
    pub samples: Vec<(Duration, Duration)>,
    thinned: u32,
    /// Packets by length: up to 64, 128, 256, 512, 1024 bytes, and longer.
    pub sizes: [u64; 6],
    /// Answers that came after the job had been given to another processor.
    pub late: u64,
    /// How often it was ejected.
    pub removals: u64,
    /// Whether it is ejected now.
    pub out: bool,
}

impl ProcessorStats {
    pub(crate) fn new(name: &str) -> ProcessorStats {
        let samples = Vec::with_capacity(SAMPLES);
        ProcessorStats { name: name.to_owned(), samples, ..ProcessorStats::default() }
    }

    #[inline]
    pub(crate) fn size(&mut self, len: u32) {
        self.sizes[size_class(len)] += 1;
    }

    /// Counts a burst that was done in place, without having been placed.
    #[inline]
    pub(crate) fn in_place(&mut self, burst: &[Job], took: Duration) {
        self.jobs += burst.len() as u64;
        self.packets += burst.len() as u64;
        self.busy += took;
        let mut bytes = 0;
        // Packets of one length follow each other.
        let (mut length, mut alike) = (0, 0);
        for job in burst {
            let len = job.packet.len() as u32;
            bytes += u64::from(len);
            if len != length {
                self.sizes[size_class(length)] += alike;
                (length, alike) = (len, 0);
            }
            alike += 1;
        }
        self.sizes[size_class(length)] += alike;
        self.bytes += bytes;
    }

    /// Counts a submission of `jobs` jobs that is done at `now`.
    pub(crate) fn submission(&mut self, jobs: u32, work: &Work, placed: &Placed, took: Duration, now: Time) {
        let prediction = &placed.prediction;
        let each = u64::from(jobs);
        self.jobs += each;
        self.submissions += 1;
        self.processing += now.since(placed.chosen).times(u64::from(work.packets));
        self.packets += u64::from(work.packets);
        self.bytes += work.bytes;
        self.busy += took;
        self.predicted += prediction.service;
        let (expected, actual) = (prediction.wait + prediction.service, now.since(prediction.at));
        self.predicted_response += expected.times(each);
        self.response += actual.times(each);
        self.response_error += Duration(expected.0.abs_diff(actual.0)).times(each);
        // Every submission while there is room; then every second is forgotten and only every second,
        // fourth, ... comes in, so that the choice stays even over the whole run.
        if self.submissions.is_multiple_of(self.stride()) {
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

/// Counts of the engine as a whole, apart from packets passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Jobs done again by the running core.
    pub redone: u64,
    /// Packets that came before their SA, and waited for it.
    pub pending_spi: u64,
    /// Packets whose crypto was done before their turn came. [`EngineStats::held`] is the sum of the times that they waited
    /// for packets before them.
    pub released: u64,
    /// See [`EngineStats::released`].
    pub held: Duration,
    /// Tickets that were skipped because the core that had them was held up ([`Limits::overtake`](crate::Limits::overtake)).
    pub overtaken: u64,
    /// Results of other processors that the running core checked.
    pub audits: u64,
    /// Processors ejected: when, which, why. The first 1024; [`ProcessorStats::removals`] counts all.
    pub removals: Vec<(Time, usize, Removal)>,
}

/// Where a length is counted in [`ProcessorStats::sizes`].
#[inline]
fn size_class(len: u32) -> usize {
    // 0..=64 have at most 6 bits below one less than them, 65..=128 have 7, and so on.
    let bits = u32::BITS - len.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(6) as usize).min(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_up_to_powers_of_two() {
        let limits = [64, 128, 256, 512, 1024];
        for len in 0..3_000 {
            let expected = limits.iter().position(|&limit| len <= limit).unwrap_or(5);
            assert_eq!(size_class(len), expected, "{len}");
        }
    }

    /// Placed at 1,000 after a wait for room since 600, expected to wait 200 and to take 300.
    fn placed() -> Placed {
        let prediction =
            forebay_scheduler::Prediction { at: Time(1_000), wait: Duration(200), service: Duration(300) };
        Placed { prediction, chosen: Time(600) }
    }

    #[test]
    fn a_submission_by_hand() {
        let mut stats = ProcessorStats::new("card");
        let work = Work { packets: 5, blocks: 50, bytes: 700 };
        stats.submission(3, &work, &placed(), Duration(250), Time(1_600));
        let expected = ProcessorStats {
            name: "card".to_owned(),
            jobs: 3,
            submissions: 1,
            packets: 5,
            bytes: 700,
            busy: Duration(250),
            predicted: Duration(300),
            // 500 were expected and 600 it took, of which 400 more before it was dispatched.
            predicted_response: Duration(3 * 500),
            response: Duration(3 * 600),
            response_error: Duration(3 * 100),
            processing: Duration(5 * 1_000),
            samples: vec![(Duration(500), Duration(600))],
            ..ProcessorStats::default()
        };
        assert_eq!(stats, expected);
        // Earlier than expected is as wrong as later.
        stats.submission(1, &work, &placed(), Duration(50), Time(1_440));
        assert_eq!((stats.jobs, stats.submissions, stats.packets, stats.bytes), (4, 2, 10, 1_400));
        assert_eq!((stats.busy, stats.predicted), (Duration(300), Duration(600)));
        assert_eq!((stats.predicted_response, stats.response), (Duration(4 * 500), Duration(1_800 + 440)));
        assert_eq!((stats.response_error, stats.processing), (Duration(360), Duration(5_000 + 5 * 840)));
    }

    #[test]
    fn samples_are_spread_evenly_over_the_run() {
        let mut stats = ProcessorStats::new("card");
        let mut after = |submissions: u64| {
            while stats.submissions < submissions {
                let now = Time(1_001 + stats.submissions);
                stats.submission(1, &Work::packet(64), &placed(), Duration(1), now);
            }
            stats.samples.iter().map(|(_, actual)| actual.0).collect::<Vec<u64>>()
        };
        assert_eq!(after(512), (1..=512).collect::<Vec<u64>>());
        // The first, third, fifth, ... stay; from then on every second comes in.
        let halved: Vec<u64> = (1..512).step_by(2).chain([513]).collect();
        assert_eq!(after(513), halved);
        assert_eq!(after(514).last(), Some(&514));
        assert_eq!([1_022, 1_024, 1_027, 1_028].map(|n| after(n).len()), [512, 257, 257, 258]);
        // Every 32nd by then: 257 at number 8,192, and 56 more.
        assert_eq!(after(10_000).len(), 313);
    }

    #[test]
    fn a_burst_done_in_place_counts_each_packet() {
        let mut stats = ProcessorStats::new("core");
        let job = |len: usize| {
            let mut packet = forebay_crypto::Packet::with_capacity(2_048);
            assert!(packet.fill(&vec![0; len]));
            Job::new(packet, forebay_crypto::JobSpec::default(), 0)
        };
        stats.in_place(&[64, 64, 100, 65, 1_500, 64, 1_500].map(job), Duration(70));
        stats.in_place(&[200].map(job), Duration(5));
        stats.in_place(&[], Duration(1));
        assert_eq!((stats.jobs, stats.packets, stats.busy), (8, 8, Duration(76)));
        assert_eq!(stats.bytes, 3 * 64 + 100 + 65 + 3_000 + 200);
        assert_eq!(stats.sizes, [3, 2, 1, 0, 0, 2]);
        stats.size(129);
        assert_eq!(stats.sizes, [3, 2, 2, 0, 0, 2]);
    }
}
