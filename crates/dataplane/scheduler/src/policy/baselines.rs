//! Baseline policies for comparisons.

use crate::placement::{BurstView, Candidate, Candidates, Choice, Placement};

/// The jobs that one of `free` processors gets of a burst in equal parts, in whole groups that it computes side by side.
fn part(burst: &BurstView<'_>, chosen: &Candidate<'_>, candidates: &Candidates<'_>) -> usize {
    let free = candidates.iter().filter(Candidate::has_room).count().max(1);
    burst.jobs().div_ceil(free).next_multiple_of(chosen.lanes()).min(burst.left())
}

/// What a processor is given if its queue has room.
fn given(candidates: &Candidates<'_>, processor: usize, jobs: usize) -> Choice {
    match candidates.get(processor) {
        Some(chosen) if chosen.has_room() => Choice::Share { processor, jobs },
        _ => Choice::Wait,
    }
}

/// All to one processor (\[H\] 4.3).
#[derive(Debug)]
pub(super) struct Single {
    pub(super) processor: usize,
}

impl Placement for Single {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        candidates.first_of(&[self.processor])
    }

    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        match self.choose(candidates) {
            Some(processor) => given(candidates, processor, burst.left()),
            None => Choice::FinishTime,
        }
    }
}

/// One after the other.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// The processor whose turn it is.
    turn: usize,
}

impl RoundRobin {
    fn next(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let count = candidates.processors();
        let order = (self.turn..self.turn + count).map(|index| index % count);
        order.into_iter().find(|&index| candidates.get(index).is_some())
    }
}

impl Placement for RoundRobin {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let chosen = self.next(candidates)?;
        self.turn = (chosen + 1) % candidates.processors();
        Some(chosen)
    }

    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        let Some(chosen) = self.next(candidates).and_then(|index| candidates.get(index)) else {
            return Choice::Wait;
        };
        if !chosen.has_room() {
            return Choice::Wait;
        }
        self.turn = (chosen.index() + 1) % candidates.processors();
        Choice::Share { processor: chosen.index(), jobs: part(burst, &chosen, candidates) }
    }
}

/// The fewest jobs placed and not finished.
#[derive(Debug)]
pub(super) struct ShortestQueue;

impl Placement for ShortestQueue {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        candidates.least(|one| one.unfinished())
    }

    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        let free = candidates.iter().filter(Candidate::has_room);
        match free.min_by_key(|one| (one.unfinished(), one.index())) {
            Some(shortest) => {
                Choice::Share { processor: shortest.index(), jobs: part(burst, &shortest, candidates) }
            }
            None => Choice::Wait,
        }
    }
}

/// Small jobs to one processor, large ones to another.
#[derive(Debug)]
pub(super) struct SizeThreshold {
    pub(super) bytes: u64,
    pub(super) small: usize,
    pub(super) large: usize,
}

impl SizeThreshold {
    fn preferred(&self, bytes: u64) -> [usize; 2] {
        if bytes < self.bytes { [self.small, self.large] } else { [self.large, self.small] }
    }
}

impl Placement for SizeThreshold {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        candidates.first_of(&self.preferred(candidates.job().work.bytes))
    }

    /// All jobs that follow each other on one side of the threshold.
    fn share(&mut self, burst: &BurstView<'_>, candidates: &Candidates<'_>) -> Choice {
        let is_small = |bytes: u64| bytes < self.bytes;
        let first = candidates.job().work.bytes;
        match candidates.first_of(&self.preferred(first)) {
            Some(processor) => {
                let run = burst.bytes().take_while(|&bytes| is_small(bytes) == is_small(first)).count();
                given(candidates, processor, run)
            }
            None => Choice::FinishTime,
        }
    }
}
