//! A policy that distributes packets by fixed weights.

use crate::placement::{BurstView, Candidates, Choice, Placement};

/// Processors that can have a weight.
pub(super) const SPLIT_MAX: usize = 8;

/// The policy: the best that can be done without looking at the processors while they work.
#[derive(Debug)]
pub(super) struct Split {
    weights: [u16; SPLIT_MAX],
    dealer: Dealer,
}

impl Split {
    pub(super) fn new(weights: [u16; SPLIT_MAX]) -> Split {
        Split { weights, dealer: Dealer::default() }
    }
}

impl Placement for Split {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let is_capable = |one: usize| candidates.get(one).is_some();
        let packets = candidates.job().work.packets;
        let due = self.dealer.due(&self.weights, packets, is_capable)?;
        self.dealer.deal(&self.weights, packets, &due, is_capable);
        Some(due.processor)
    }

    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        let is_capable = |one: usize| candidates.get(one).is_some();
        let packets = burst.packets(burst.left());
        let due = self.dealer.due(&self.weights, packets, is_capable);
        let Some((due, chosen)) = due.and_then(|due| candidates.get(due.processor).map(|one| (due, one)))
        else {
            return Choice::FinishTime;
        };
        if !chosen.has_room() {
            return Choice::Wait;
        }
        let jobs = due.jobs(burst.left(), packets, chosen.lanes() as u32);
        self.dealer.deal(&self.weights, burst.packets(jobs), &due, is_capable);
        Choice::Share { processor: due.processor, jobs }
    }
}

/// By how much each processor is behind its share.
#[derive(Debug, Default)]
struct Dealer {
    /// In packets times the sum of the weights.
    behind: [i64; SPLIT_MAX],
}

/// Whose turn it is.
#[derive(Debug)]
struct Due {
    processor: usize,
    /// What it is behind once the packets at hand are dealt out, in packets times `sum`.
    behind: i64,
    /// The sum of the weights of all capable processors.
    sum: i64,
}

impl Due {
    /// How many of `jobs` jobs with `packets` packets in all it needs to have its share, to the nearest whole group
    /// of `lanes`; one group at least, since a part of one takes as long.
    fn jobs(&self, jobs: usize, packets: u32, lanes: u32) -> usize {
        let lanes = i64::from(lanes.max(1));
        let due = self.behind * jobs as i64 / (self.sum * i64::from(packets.max(1)));
        let groups = ((due + lanes / 2) / lanes).max(1);
        usize::try_from(groups * lanes).map_or(jobs, |needed| needed.min(jobs))
    }
}

impl Dealer {
    /// The processor whose turn it is if `packets` packets are at hand. Every capable processor earns its weight for
    /// each packet, and the processor that takes one pays what all earn together, so that none is ever ahead or
    /// behind by more than the packets of a choice times the sum of the weights. Of equal ones the lowest index is
    /// chosen; `None` if no capable processor has a weight.
    fn due(
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
    fn deal(
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
