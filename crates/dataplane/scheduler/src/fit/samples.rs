//! Made-up measurements for the tests of the fits.

use forebay_time::Duration;

use crate::{Cost, Work};

/// Numbers that look random and are the same everywhere, each below what is asked.
pub(super) fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 1u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// A batch of packets of these numbers of blocks.
pub(super) fn batch(blocks: &[u32]) -> Vec<Work> {
    blocks.iter().map(|blocks| Work::packet(16 * blocks)).collect()
}

/// What the batch takes by `cost`, times `factor`.
pub(super) fn time(cost: &Cost, jobs: &[Work], factor: f64) -> Duration {
    Duration((cost.of_batch(jobs.iter().copied()).0 as f64 * factor) as u64)
}

/// Whether both say about the same of a batch of `jobs` packets of `blocks` blocks.
pub(super) fn agree(found: &Cost, expected: &Cost, jobs: usize, blocks: u32, share: f64) -> bool {
    let jobs = batch(&vec![blocks; jobs]);
    let (found, expected) = (time(found, &jobs, 1.0).0 as f64, time(expected, &jobs, 1.0).0 as f64);
    (found - expected).abs() <= share * expected
}
