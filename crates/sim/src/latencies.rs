//! Latencies of packets: their sums, histograms, and if quantiles are to be exact each one.

use forebay_time::Duration;

use crate::figures::{self, Latency, QUANTILES};
use crate::histogram::{self, Histogram};

/// Which latency.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// From the scheduler's choice to completion.
    Processing,
    /// From arrival to completion.
    Total,
}

/// Both latencies of packets.
#[derive(Debug)]
pub(crate) struct Latencies {
    count: u64,
    sums: [u128; 2],
    histograms: [Histogram; 2],
    all: Option<Vec<[u64; 2]>>,
}

impl Latencies {
    /// Keeps those of `exact` packets and more one by one; `None`: only the sums and histograms.
    pub(crate) fn new(exact: Option<usize>) -> Latencies {
        let histograms = [Histogram::new(), Histogram::new()];
        Latencies { count: 0, sums: [0; 2], histograms, all: exact.map(Vec::with_capacity) }
    }

    /// Adds a packet's, in picoseconds.
    #[inline(always)]
    pub(crate) fn add(&mut self, processing: u64, total: u64) {
        self.count += 1;
        self.sums[0] += u128::from(processing);
        self.sums[1] += u128::from(total);
        self.histograms[0].add(processing);
        self.histograms[1].add(total);
        if let Some(all) = &mut self.all {
            all.push([processing, total]);
        }
    }

    /// How many packets.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// Mean and quantiles of one latency over the packets of all `parts`.
pub(crate) fn latency(parts: &[&Latencies], which: Which) -> Latency {
    let which = which as usize;
    let sum = parts.iter().map(|part| part.sums[which]).sum();
    let count = parts.iter().map(|part| part.count).sum();
    let [p50_s, p90_s, p99_s, p999_s] =
        quantiles(parts, which, count).map(|value| Duration(value).as_secs());
    Latency { mean_s: figures::mean_s(sum, count), p50_s, p90_s, p99_s, p999_s }
}

/// The values of nearest rank. The histogram says in which bucket each is; of the kept values
/// only those in such a bucket have to be put in order.
fn quantiles(parts: &[&Latencies], which: usize, count: u64) -> [u64; 4] {
    if count == 0 {
        return [0; 4];
    }
    let ranks = QUANTILES.map(|q| (u128::from(q) * u128::from(count)).div_ceil(1_000) as u64);
    let histogram = Histogram::sum(parts.iter().map(|part| &part.histograms[which]));
    let places = ranks.map(|rank| histogram.find(rank));
    let lists: Option<Vec<&Vec<[u64; 2]>>> = parts.iter().map(|part| part.all.as_ref()).collect();
    let Some(lists) = lists else { return places.map(|(bucket, _)| histogram::middle(bucket)) };
    let mut members: [Vec<u64>; 4] = Default::default();
    let mut wanted = vec![false; histogram::BUCKETS];
    places.iter().for_each(|&(bucket, _)| wanted[bucket] = true);
    for value in lists.into_iter().flatten().map(|both| both[which]) {
        let bucket = histogram::bucket(value);
        if wanted[bucket] {
            let lists = members.iter_mut().zip(&places).filter(|(_, place)| place.0 == bucket);
            lists.for_each(|(list, _)| list.push(value));
        }
    }
    let mut values = [0; 4];
    for (at, list) in members.iter_mut().enumerate() {
        let rank = ranks[at] - places[at].1 - 1;
        values[at] = *list.select_nth_unstable(rank as usize).1;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        for count in [1u64, 2, 3, 9, 10, 11, 100, 1_000, 1_001, 54_321] {
            let values: Vec<u64> =
                (0..count).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (k % 40)).collect();
            let gather = |exact: Option<usize>, parts: usize| {
                let mut all: Vec<Latencies> = (0..parts).map(|_| Latencies::new(exact)).collect();
                for (at, &value) in values.iter().enumerate() {
                    all[at % parts].add(value, u64::MAX - value);
                }
                let parts: Vec<&Latencies> = all.iter().collect();
                [0, 1].map(|which| quantiles(&parts, which, count))
            };
            let nearest = |mut sorted: Vec<u64>| {
                sorted.sort_unstable();
                [0.5, 0.9, 0.99, 0.999]
                    .map(|q| sorted[((q * count as f64 - 1e-9).ceil() as usize).max(1) - 1])
            };
            let expected =
                [nearest(values.clone()), nearest(values.iter().map(|value| u64::MAX - value).collect())];
            assert_eq!(gather(Some(0), 1), expected, "of {count}");
            assert_eq!(gather(Some(99), 3), expected, "of {count} in three parts");
            let rough = gather(None, 2);
            for (rough, exact) in rough.into_iter().flatten().zip(expected.into_iter().flatten()) {
                assert!(rough.abs_diff(exact) as f64 <= exact as f64 / 500.0);
            }
        }
    }
}
