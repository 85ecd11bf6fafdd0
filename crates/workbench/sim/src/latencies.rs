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

/// Both latencies of packets, in picoseconds.
#[derive(Debug)]
pub(crate) enum Latencies {
    /// Of each packet, for exact quantiles.
    All(Vec<[u64; 2]>),
    /// Only their distributions.
    Rough(Box<[Distribution; 2]>),
}

/// Latencies in buckets.
#[derive(Debug)]
pub(crate) struct Distribution {
    count: u64,
    sum: u128,
    histogram: Histogram,
}

impl Distribution {
    fn new() -> Distribution {
        Distribution { count: 0, sum: 0, histogram: Histogram::new() }
    }

    #[inline]
    fn add(&mut self, latency: u64) {
        self.count += 1;
        self.sum += u128::from(latency);
        self.histogram.add(latency);
    }

    fn join(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum += other.sum;
        self.histogram.join(&other.histogram);
    }
}

impl Latencies {
    /// `exact`: keeps those of so many packets, and more, one by one.
    pub(crate) fn new(exact: Option<usize>) -> Latencies {
        match exact {
            Some(packets) => Latencies::All(Vec::with_capacity(packets)),
            None => Latencies::Rough(Box::new([Distribution::new(), Distribution::new()])),
        }
    }

    /// Adds a packet's.
    #[inline(always)]
    pub(crate) fn add(&mut self, processing: u64, total: u64) {
        match self {
            Latencies::All(all) => all.push([processing, total]),
            Latencies::Rough(rough) => {
                rough[0].add(processing);
                rough[1].add(total);
            }
        }
    }

    /// How many packets.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Latencies::All(all) => all.len() as u64,
            Latencies::Rough(rough) => rough[0].count,
        }
    }
}

/// Mean and quantiles of one latency over the packets of all `parts`.
pub(crate) fn latency(parts: &[&Latencies], which: Which) -> Latency {
    let which = which as usize;
    let mut whole = Distribution::new();
    for part in parts {
        match part {
            Latencies::All(all) => all.iter().for_each(|both| whole.add(both[which])),
            Latencies::Rough(rough) => whole.join(&rough[which]),
        }
    }
    let seconds = |value| if whole.count == 0 { f64::NAN } else { Duration(value).as_secs() };
    let [p50_s, p90_s, p99_s, p999_s] = quantiles(parts, which, &whole).map(seconds);
    Latency { mean_s: figures::mean_s(whole.sum, whole.count), p50_s, p90_s, p99_s, p999_s }
}

/// The values of nearest rank. The histogram says in which bucket each is; where all values are kept,
/// those in such a bucket, and only those, have to be put in order.
fn quantiles(parts: &[&Latencies], which: usize, whole: &Distribution) -> [u64; 4] {
    if whole.count == 0 {
        return [0; 4];
    }
    let ranks = QUANTILES.map(|q| (u128::from(q) * u128::from(whole.count)).div_ceil(1_000) as u64);
    let places = ranks.map(|rank| whole.histogram.find(rank));
    let mut wanted = [false; histogram::BUCKETS];
    places.iter().for_each(|&(bucket, _)| wanted[bucket] = true);
    let mut members: [Vec<u64>; 4] = Default::default();
    for part in parts {
        let Latencies::All(all) = part else { return places.map(|(bucket, _)| histogram::middle(bucket)) };
        for value in all.iter().map(|both| both[which]) {
            let bucket = histogram::bucket(value);
            if wanted[bucket] {
                let lists = members.iter_mut().zip(&places).filter(|(_, place)| place.0 == bucket);
                lists.for_each(|(list, _)| list.push(value));
            }
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

    const LARGEST: u64 = u64::MAX;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        for count in [1u64, 2, 3, 9, 10, 11, 100, 1_000, 1_001, 54_321] {
            let values: Vec<u64> =
                (0..count).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (k % 40)).collect();
            let gather = |exact: Option<usize>, parts: usize| {
                let mut all: Vec<Latencies> = (0..parts).map(|_| Latencies::new(exact)).collect();
                for (at, &value) in values.iter().enumerate() {
                    all[at % parts].add(value, LARGEST - value);
                }
                let parts: Vec<&Latencies> = all.iter().collect();
                [Which::Processing, Which::Total].map(|which| {
                    let Latency { p50_s, p90_s, p99_s, p999_s, .. } = latency(&parts, which);
                    [p50_s, p90_s, p99_s, p999_s]
                })
            };
            let nearest = |mut sorted: Vec<u64>| {
                sorted.sort_unstable();
                [0.5, 0.9, 0.99, 0.999]
                    .map(|q| sorted[((q * count as f64 - 1e-9).ceil() as usize).max(1) - 1])
                    .map(|value| Duration(value).as_secs())
            };
            let expected =
                [nearest(values.clone()), nearest(values.iter().map(|value| LARGEST - value).collect())];
            assert_eq!(gather(Some(0), 1), expected, "of {count}");
            assert_eq!(gather(Some(99), 3), expected, "of {count} in three parts");
            let rough = gather(None, 2);
            for (rough, exact) in rough.into_iter().flatten().zip(expected.into_iter().flatten()) {
                assert!((rough - exact).abs() <= exact / 500.0);
            }
        }
    }
}
