//! Counts of latencies in buckets of bounded relative width.
//!
//! As hdrhistogram's, which pipelines and benchmarks use; but the buckets' bounds are part of the fingerprints of runs here,
//! so they may not change with another crate's version.

/// Bits of a value that a bucket keeps: buckets are at most 2^-8 = 0.4 % of their values wide.
const KEPT: u32 = 8;
/// Buckets for 64-bit values.
pub(crate) const BUCKETS: usize = ((64 - KEPT as usize) + 1) << KEPT;

/// A log-linear histogram of picoseconds, as in HdrHistogram; values below 2^9 have a bucket each.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS] }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
    }

    /// Adds what is in another one.
    pub(crate) fn join(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The bucket with the value of this rank, from 1, and how many values are below the bucket.
    pub(crate) fn find(&self, rank: u64) -> (usize, u64) {
        let mut below = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if below + count >= rank {
                return (bucket, below);
            }
            below += count;
        }
        (BUCKETS - 1, below)
    }
}

/// The bucket of a value: rises with it.
#[inline]
pub(crate) fn bucket(value: u64) -> usize {
    let shift = (value | 1 << KEPT).ilog2() - KEPT;
    (shift as usize) * (1 << KEPT) + (value >> shift) as usize
}

/// The value in the middle of a bucket.
pub(crate) fn middle(at: usize) -> u64 {
    let shift = (at >> KEPT).saturating_sub(1);
    let low = ((at - (shift << KEPT)) as u64) << shift;
    low + (1u64 << shift >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_and_are_narrow() {
        let values = (0..2_000)
            .chain((9..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 12_345 % (1 << bit)]));
        let mut values: Vec<u64> = values.chain([u64::MAX]).collect();
        values.sort_unstable();
        for pair in values.windows(2) {
            assert!(bucket(pair[0]) <= bucket(pair[1]), "{pair:?}");
        }
        for &value in &values {
            let middle = middle(bucket(value));
            assert_eq!(bucket(middle), bucket(value), "{value}");
            assert!(middle.abs_diff(value) as f64 <= value as f64 / 500.0, "{value} {middle}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }
}
