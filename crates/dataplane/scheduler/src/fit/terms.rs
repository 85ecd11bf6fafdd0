//! The terms of a cost as the unknowns of a linear equation, and how often a batch counts each of them.

use forebay_time::Duration;

use crate::{Cost, Work};

/// Unknowns: submit, init, block, packet.
pub(super) const TERMS: usize = 4;
pub(super) const INIT: usize = 1;
pub(super) const BLOCK: usize = 2;
pub(super) const PACKET: usize = 3;

/// One number for each term.
pub(super) type Terms = [f64; TERMS];

/// The terms of a cost in picoseconds.
pub(super) fn terms(cost: &Cost) -> Terms {
    [cost.submit, cost.init, cost.block, cost.packet].map(|term| term.0 as f64)
}

/// The cost with these terms, the rest as in `prior`.
pub(super) fn cost(terms: &Terms, lanes: u32, prior: &Cost) -> Cost {
    let [submit, init, block, packet] = terms.map(picoseconds);
    Cost { submit, init, block, packet, lanes, ..*prior }
}

/// The sum of the products.
#[inline]
pub(super) fn dot(a: &Terms, b: &Terms) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

pub(super) fn picoseconds(value: f64) -> Duration {
    Duration((value + 0.5).floor() as u64)
}

/// How often a batch counts each term at a number of lanes: 1, the groups, the sum of each group's most blocks,
/// and the packets.
pub(super) fn row(jobs: impl Iterator<Item = Work>, lanes: u32) -> Terms {
    let (mut groups, mut blocks, mut packets) = (0u64, 0u64, 0u64);
    let (mut filling, mut longest) = (0, 0);
    for job in jobs {
        packets += u64::from(job.packets);
        groups += u64::from(filling == 0);
        longest = longest.max(job.blocks);
        filling += 1;
        if filling >= lanes {
            blocks += u64::from(longest);
            (filling, longest) = (0, 0);
        }
    }
    blocks += u64::from(longest);
    [1.0, groups as f64, blocks as f64, packets as f64]
}

/// Numbers of lanes that are powers of two, from 1: their groups lie in one another.
pub(super) const POWERS: usize = 7;

/// The rows of a batch for 1, 2, 4, ... 2^(POWERS - 1) lanes in one pass, and its jobs. Two groups end with every
/// job on average, so that this costs little more than one row.
pub(super) fn rows(jobs: impl Iterator<Item = Work>) -> ([Terms; POWERS], u32) {
    let (mut blocks, mut longest) = ([0u64; POWERS], [0u32; POWERS]);
    let (mut packets, mut count) = (0u64, 0u32);
    for job in jobs {
        packets += u64::from(job.packets);
        count += 1;
        let mut carried = job.blocks;
        let full = (count.trailing_zeros() as usize + 1).min(POWERS);
        for level in 0..full {
            carried = carried.max(longest[level]);
            blocks[level] += u64::from(carried);
            longest[level] = 0;
        }
        if full < POWERS {
            longest[full] = longest[full].max(carried);
        }
    }
    let mut carried = 0;
    let rows = std::array::from_fn(|level| {
        carried = carried.max(longest[level]);
        let groups = count.div_ceil(1 << level);
        [1.0, f64::from(groups), (blocks[level] + u64::from(carried)) as f64, packets as f64]
    });
    (rows, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_all_lanes_are_those_of_each() {
        let sizes = [1, 90, 3, 3, 7, 64, 2, 2, 5, 1, 88, 4];
        for count in 0..200usize {
            let jobs = || (0..count).map(|i| Work::packet(16 * sizes[i * 7 % sizes.len()]));
            let (all, found) = rows(jobs());
            assert_eq!(found as usize, count);
            for (level, one) in all.iter().enumerate() {
                assert_eq!(*one, row(jobs(), 1 << level), "{count} jobs, {} lanes", 1 << level);
            }
        }
    }

    #[test]
    fn a_row_and_the_terms_make_the_time_of_the_batch() {
        let cost_of = |lanes| Cost {
            submit: Duration(70),
            init: Duration(11),
            block: Duration(3),
            packet: Duration(5),
            lanes,
            ..Cost::default()
        };
        let jobs = || [64, 1440, 20, 333, 700].map(Work::packet).into_iter();
        for lanes in [1, 2, 3, 8] {
            let cost = cost_of(lanes);
            assert_eq!(dot(&terms(&cost), &row(jobs(), lanes)), cost.of_batch(jobs()).0 as f64);
        }
    }
}
