//! Where costs break even: from which size or number of packets on a device is done earlier than a core.

use std::iter::repeat_n;
use std::ops::RangeInclusive;

use forebay_crypto::Suite;
use forebay_engine::esp_len;
use forebay_processors::MeasuredCost;
use forebay_scheduler::fit::{Sample, shape};
use forebay_scheduler::{Cost, Work};
use forebay_time::Duration;

/// Which packets it is worth giving to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pays {
    /// This much and more.
    From(usize),
    /// Everything in the range.
    Always,
    /// Nothing in the range.
    Never,
    /// No more than this much.
    UpTo(usize),
}

impl Pays {
    /// What a device pays for within `range`, if `device_first` says for which of it that one is done earlier.
    pub(super) fn of(range: RangeInclusive<usize>, device_first: impl Fn(usize) -> bool) -> Pays {
        let most = *range.end();
        if device_first(most) {
            return match range.rev().find(|&one| !device_first(one)) {
                Some(last) => Pays::From(last + 1),
                None => Pays::Always,
            };
        }
        range.rev().find(|&one| device_first(one)).map_or(Pays::Never, Pays::UpTo)
    }

    /// Where to measure whether that is so: half and twice the break-even, or the ends of the range.
    pub(super) fn sides(self, range: RangeInclusive<usize>) -> [usize; 2] {
        let (least, most) = range.into_inner();
        match self {
            Pays::From(at) | Pays::UpTo(at) => [(at / 2).max(least), (at * 2).min(most)],
            Pays::Always | Pays::Never => [least, most],
        }
    }

    /// Its word, and the break-even where there is one.
    pub(super) fn in_words(self) -> (&'static str, Option<usize>) {
        match self {
            Pays::From(at) => ("from", Some(at)),
            Pays::Always => ("always", None),
            Pays::Never => ("never", None),
            Pays::UpTo(at) => ("up-to", Some(at)),
        }
    }
}

/// The time from a hand-over to an idle processor until the last answer is back, as a cost. It is fitted as the cost
/// itself is, to the same batches; the way to a device and back is in it, which the time that the device works is not.
pub(super) fn response(one: &MeasuredCost, suite: Suite) -> Option<Cost> {
    let jobs: Vec<Vec<Work>> =
        one.batches.iter().map(|batch| vec![Work::packet(esp_len(suite, batch.size)); batch.batch]).collect();
    let samples = jobs.iter().zip(&one.batches);
    let samples: Vec<Sample> =
        samples.map(|(jobs, batch)| Sample { jobs, time: Duration::from_secs(batch.response_s) }).collect();
    Some(shape(&samples)?.cost)
}

/// The time until `packets` cleartext packets of `bytes` each are back from a processor whose response to an idle
/// hand-over is `response`, where others like them take `load` of its time at random moments: beside the response the mean
/// wait of an M/D/1 queue.
pub(super) fn time(response: &Cost, suite: Suite, bytes: usize, packets: usize, load: f64) -> Duration {
    let work = Work::packet(esp_len(suite, text(bytes)));
    let alone = response.of_batch(repeat_n(work, packets));
    alone + Duration((alone.0 as f64 * load / (2.0 * (1.0 - load))).round() as u64)
}

/// Bytes to encipher of a cleartext packet in tunnel mode: with padding length and next header, in whole words (RFC 4303
/// section 2.4).
pub(super) fn text(bytes: usize) -> u32 {
    (bytes as u32 + 2).next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_pays_for_is_found_from_the_far_end() {
        let range = || 1..=64;
        assert_eq!(Pays::of(range(), |n| n >= 7), Pays::From(7));
        assert_eq!(Pays::of(range(), |_| true), Pays::Always);
        assert_eq!(Pays::of(range(), |_| false), Pays::Never);
        assert_eq!(Pays::of(range(), |n| n < 7), Pays::UpTo(6));
        // With groups of lanes it may pay below the break-even too: what counts is from where on it always does.
        assert_eq!(Pays::of(range(), |n| n == 4 || n >= 9), Pays::From(9));
    }

    #[test]
    fn it_is_measured_on_both_sides_within_the_range() {
        assert_eq!(Pays::From(100).sides(28..=9_000), [50, 200]);
        assert_eq!(Pays::From(30).sides(28..=9_000), [28, 60]);
        assert_eq!(Pays::UpTo(8_000).sides(28..=9_000), [4_000, 9_000]);
        assert_eq!(Pays::Never.sides(1..=64), [1, 64]);
    }

    #[test]
    fn a_load_adds_the_mean_wait_of_a_queue_with_equal_jobs() {
        let suite: Suite = "aes128gcm16".parse().unwrap();
        let card = Cost { submit: Duration(1_000_000), block: Duration(1_000), ..Cost::default() };
        // 64 bytes are 68 with padding; with header, IV and ICV 100: 7 blocks.
        let alone = Duration(1_000_000 + 2 * 7_000);
        assert_eq!(time(&card, suite, 64, 2, 0.0), alone);
        assert_eq!(time(&card, suite, 64, 2, 0.5), alone + Duration(alone.0 / 2));
        assert_eq!(time(&card, suite, 64, 2, 0.8), alone * 3);
    }
}
