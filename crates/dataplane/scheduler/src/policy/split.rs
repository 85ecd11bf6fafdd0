//! Packets dealt out by fixed weights.

/// Processors that can have a weight.
pub(super) const SPLIT_MAX: usize = 8;

/// By how much each processor is behind its share.
#[derive(Debug, Default)]
pub(super) struct Dealer {
    /// In packets times the sum of the weights.
    behind: [i64; SPLIT_MAX],
}

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) processor: usize,
    /// What it is behind once the packets at hand are dealt out, in packets times `sum`.
    behind: i64,
    /// The sum of the weights of all capable processors.
    sum: i64,
}

impl Due {
    /// How many of `jobs` jobs with `packets` packets in all it needs to have its share, to the nearest whole group
    /// of `lanes`; one group at least, since a part of one takes as long.
    pub(super) fn jobs(&self, jobs: usize, packets: u32, lanes: u32) -> usize {
        let lanes = i64::from(lanes.max(1));
        let due = self.behind * jobs as i64 / (self.sum * i64::from(packets.max(1)));
        let groups = ((due + lanes / 2) / lanes).max(1);
        usize::try_from(groups * lanes).map_or(jobs, |needed| needed.min(jobs))
    }
}

impl Dealer {
    /// Whose turn it is if `packets` packets are at hand: every capable processor earns its weight for each packet,
    /// and whoever takes one pays what all earn together, so that none is ever ahead or behind by more than the
    /// packets of a choice times the sum of the weights. Of equal ones the lowest index; `None` if no capable
    /// processor has a weight.
    pub(super) fn due(
        &self,
        weights: &[u16; SPLIT_MAX],
        packets: u32,
        is_capable: impl Fn(usize) -> bool,
    ) -> Option<Due> {
        let (mut first, mut sum) = (None::<(usize, i64)>, 0);
        for processor in (0..SPLIT_MAX).filter(|&one| weights[one] > 0 && is_capable(one)) {
            let weight = i64::from(weights[processor]);
            let behind = self.behind[processor] + weight * i64::from(packets);
            sum += weight;
            if first.is_none_or(|(_, most)| behind > most) {
                first = Some((processor, behind));
            }
        }
        first.map(|(processor, behind)| Due { processor, behind, sum })
    }

    /// Books `packets` packets that `due` is given.
    pub(super) fn deal(
        &mut self,
        weights: &[u16; SPLIT_MAX],
        packets: u32,
        due: &Due,
        is_capable: impl Fn(usize) -> bool,
    ) {
        for processor in (0..SPLIT_MAX).filter(|&one| is_capable(one)) {
            self.behind[processor] += i64::from(weights[processor]) * i64::from(packets);
        }
        self.behind[due.processor] -= due.sum * i64::from(packets);
    }
}
