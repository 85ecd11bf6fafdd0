//! Which processor a job goes to. Adding a policy, or changing one, touches this file only.
//!
//! Every policy looks only at processors that have the job's suite and have not been removed.

mod split;

use std::fmt;
use std::str::FromStr;

use forebay_time::Time;

use self::split::{Dealer, SPLIT_MAX};
use crate::account::Account;
use crate::burst::{Burst, Pool, Share};
use crate::{AlphaLoop, Cost, JobHead, Kind};

/// How the place of a job is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The smallest predicted finishing time (\[H\] 3.2).
    FinishTime,
    /// Finishing time, with the CPUs' alpha after their load, which the driver reports
    /// ([`crate::Scheduler::report_load`]).
    AdaptiveAlpha(AlphaLoop),
    /// All to one processor, the papers' comparison without scheduling (\[H\] 4.3). Jobs it cannot
    /// do go by finishing time.
    Single {
        /// Which one.
        processor: usize,
    },
    /// One after the other; those that cannot do the job are passed over.
    RoundRobin,
    /// The fewest jobs placed and not finished; ties as for finishing time.
    ShortestQueue,
    /// Jobs of fewer than `bytes` bytes to `small`, others to `large`. If that one cannot do the
    /// job, the other side does; if neither can, finishing time decides.
    SizeThreshold {
        /// Bytes of all packets of a job from which on it is large.
        bytes: u64,
        /// The processor for small jobs.
        small: usize,
        /// The processor for large jobs.
        large: usize,
    },
    /// Fixed shares of the packets, dealt out evenly over time: the best that can be done without looking at the
    /// processors while they work. Each job goes to the capable processor that is furthest behind its share
    /// (smooth weighted round robin). Where no capable processor has a weight, finishing time decides.
    Split {
        /// The weight of each processor by its index; processors from index 8 on have weight 0.
        weights: [u16; 8],
    },
}

impl Policy {
    /// Every policy, with the parameters that its bare word stands for: processor 0 is the host's
    /// CPU and processor 1 the first card, as in the papers; a mean packet of their trace is small; a split is
    /// into equal shares.
    pub const ALL: [Policy; 7] = [
        Policy::FinishTime,
        Policy::AdaptiveAlpha(AlphaLoop::DEFAULT),
        Policy::Single { processor: 1 },
        Policy::RoundRobin,
        Policy::ShortestQueue,
        Policy::SizeThreshold { bytes: 256, small: 0, large: 1 },
        Policy::Split { weights: [1; SPLIT_MAX] },
    ];

    /// The word it has in scenario and configuration files.
    pub fn word(&self) -> &'static str {
        match self {
            Policy::FinishTime => "finish-time",
            Policy::AdaptiveAlpha(_) => "adaptive-alpha",
            Policy::Single { .. } => "single",
            Policy::RoundRobin => "round-robin",
            Policy::ShortestQueue => "shortest-queue",
            Policy::SizeThreshold { .. } => "size-threshold",
            Policy::Split { .. } => "split",
        }
    }

    /// Whether places are chosen by finishing time, so that what is known of the processors matters.
    pub(crate) fn goes_by_time(&self) -> bool {
        matches!(self, Policy::FinishTime | Policy::AdaptiveAlpha(_))
    }

    /// The largest processor index it names, if any.
    pub(crate) fn names(&self) -> Option<usize> {
        match *self {
            Policy::Single { processor } => Some(processor),
            Policy::SizeThreshold { small, large, .. } => Some(small.max(large)),
            // A weight beyond the processors is never used.
            Policy::FinishTime
            | Policy::AdaptiveAlpha(_)
            | Policy::RoundRobin
            | Policy::ShortestQueue
            | Policy::Split { .. } => None,
        }
    }
}

impl fmt::Display for Policy {
    /// Its word, without parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    /// The word.
    pub found: String,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Policy::ALL.map(|policy| policy.word()).join(", ");
        write!(f, "unknown policy `{}`; there are {words}", self.found)
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    /// Reads a word of [`Policy::ALL`]; parameters are set afterwards.
    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        let known = Policy::ALL.into_iter().find(|policy| policy.word() == text);
        known.ok_or_else(|| UnknownPolicy { found: text.to_owned() })
    }
}

/// What a choice is made from.
pub(crate) struct Offer<'a> {
    pub(crate) now: Time,
    pub(crate) job: &'a JobHead,
    /// The processors, and what jobs of this suite cost on each.
    pub(crate) accounts: &'a [Account],
    pub(crate) costs: &'a [Cost],
}

impl<'a> Offer<'a> {
    fn is_capable(&self, processor: usize) -> bool {
        self.accounts[processor].open_for & 1 << self.job.suite != 0
    }

    /// The capable processor with the smallest `measure`, a function of its account and costs; of
    /// equal ones an accelerator before a CPU, the faster before the slower, the lower index.
    ///
    /// Who is smaller is a move and no branch, because nobody can predict it.
    #[inline]
    fn smallest(&self, measure: impl Fn(&Account, &Cost) -> u64) -> Option<usize> {
        let suite = 1u64 << self.job.suite;
        let mut least = u64::MAX;
        let mut holder = usize::MAX;
        for (index, (account, cost)) in self.accounts.iter().zip(self.costs).enumerate() {
            let found = measure(account, cost);
            let found = if account.open_for & suite != 0 { found } else { u64::MAX };
            let is_tie = found == least;
            holder = if found < least { index } else { holder };
            least = least.min(found);
            if is_tie {
                holder = self.winner(holder, index);
            }
        }
        (holder != usize::MAX).then_some(holder)
    }

    /// Of the one that had the smallest measure so far, if any did, and another that is as good.
    #[cold]
    fn winner(&self, holder: usize, other: usize) -> usize {
        let rank = |index: usize| {
            let account = &self.accounts[index];
            (account.kind == Kind::Cpu, account.service(&self.costs[index], &self.job.work))
        };
        let wins = self.is_capable(other) && (holder == usize::MAX || rank(other) < rank(holder));
        if wins { other } else { holder }
    }

    #[inline]
    fn by_finish_time(&self) -> Option<usize> {
        self.smallest(|account, cost| account.finish(self.now, cost, &self.job.work).0)
    }

    fn first_capable_of(&self, preferred: &[usize]) -> Option<usize> {
        preferred.iter().copied().find(|&index| self.is_capable(index)).or_else(|| self.by_finish_time())
    }
}

/// A policy with what it remembers from choice to choice.
#[derive(Debug)]
pub(crate) struct Chooser {
    policy: Policy,
    /// Round robin: the processor whose turn it is.
    turn: usize,
    /// Split: what each processor has got of its share.
    dealer: Dealer,
}

impl Chooser {
    pub(crate) fn new(policy: Policy) -> Chooser {
        Chooser { policy, turn: 0, dealer: Dealer::default() }
    }

    /// The processor for a job; `None` if no processor can do it.
    #[inline]
    pub(crate) fn choose(&mut self, offer: &Offer<'_>) -> Option<usize> {
        match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => offer.by_finish_time(),
            _ => self.choose_otherwise(offer),
        }
    }

    /// The rules that are there to be compared with, apart so that they cost the first one nothing.
    #[inline(never)]
    fn choose_otherwise(&mut self, offer: &Offer<'_>) -> Option<usize> {
        match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => offer.by_finish_time(),
            Policy::Single { processor } => offer.first_capable_of(&[processor]),
            Policy::RoundRobin => self.next_in_turn(offer),
            Policy::ShortestQueue => offer.smallest(|account, _| account.unfinished() as u64),
            Policy::SizeThreshold { bytes, small, large } if offer.job.work.bytes < bytes => {
                offer.first_capable_of(&[small, large])
            }
            Policy::SizeThreshold { small, large, .. } => offer.first_capable_of(&[large, small]),
            Policy::Split { weights } => self.choose_of_split(&weights, offer),
        }
    }

    /// Whether it may be that the host computes a burst by itself: for other rules than finishing time only if all
    /// goes there.
    #[inline]
    pub(crate) fn may_keep(&self, host: usize) -> bool {
        match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => true,
            Policy::Single { processor } => processor == host,
            _ => false,
        }
    }

    /// Whether places are chosen by finishing time.
    pub(crate) fn goes_by_time(&self) -> bool {
        self.policy.goes_by_time()
    }

    /// Whether all goes to one processor.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.policy, Policy::Single { .. })
    }

    /// The next share of the burst at hand; `None` if no processor may be given a job now.
    ///
    /// The rules that are there to be compared with deal whole groups too: round robin and the shortest queue
    /// equal parts of the burst, a split parts by the weights, one side of a size threshold all packets that follow
    /// each other on it.
    #[inline]
    pub(crate) fn share(&mut self, burst: &mut Burst, pool: &Pool<'_>) -> Option<Share> {
        match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => burst.share(pool),
            _ => self.share_otherwise(burst, pool),
        }
    }

    #[inline(never)]
    fn share_otherwise(&mut self, burst: &mut Burst, pool: &Pool<'_>) -> Option<Share> {
        let free = pool.free().count();
        let part = |processor: usize| {
            let lanes = (pool.costs[processor].lanes as usize).max(1);
            burst.len().div_ceil(free.max(1)).next_multiple_of(lanes).min(burst.left())
        };
        // A processor that cannot do the jobs is passed over; one that is full is waited for.
        let first_of = |preferred: &[usize]| preferred.iter().copied().find(|&one| pool.is_capable(one));
        let (processor, jobs) = match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => return burst.share(pool),
            Policy::Single { processor } => match first_of(&[processor]) {
                Some(processor) => (processor, burst.left()),
                None => return burst.share(pool),
            },
            Policy::RoundRobin => {
                let count = pool.accounts.len();
                let chosen = (self.turn..self.turn + count)
                    .map(|index| index % count)
                    .find(|&index| pool.is_capable(index))?;
                if pool.is_free(chosen) {
                    self.turn = (chosen + 1) % count;
                }
                (chosen, part(chosen))
            }
            Policy::ShortestQueue => {
                let rank = |one: &usize| (pool.accounts[*one].unfinished(), *one);
                let shortest = pool.free().min_by_key(rank)?;
                (shortest, part(shortest))
            }
            Policy::SizeThreshold { bytes, small, large } => {
                let preferred = if burst.first_bytes() < bytes { [small, large] } else { [large, small] };
                match first_of(&preferred) {
                    Some(processor) => (processor, burst.run_of_size(bytes)),
                    None => return burst.share(pool),
                }
            }
            Policy::Split { weights } => return self.share_of_split(&weights, burst, pool),
        };
        pool.is_free(processor).then_some(Share { processor, jobs })
    }

    fn next_in_turn(&mut self, offer: &Offer<'_>) -> Option<usize> {
        let count = offer.accounts.len();
        let chosen = (self.turn..self.turn + count)
            .map(|index| index % count)
            .find(|&index| offer.is_capable(index))?;
        self.turn = (chosen + 1) % count;
        Some(chosen)
    }
}

impl Chooser {
    fn choose_of_split(&mut self, weights: &[u16; SPLIT_MAX], offer: &Offer<'_>) -> Option<usize> {
        let is_capable = |one: usize| one < offer.accounts.len() && offer.is_capable(one);
        let packets = offer.job.work.packets;
        let Some(due) = self.dealer.due(weights, packets, is_capable) else { return offer.by_finish_time() };
        self.dealer.deal(weights, packets, &due, is_capable);
        Some(due.processor)
    }

    fn share_of_split(
        &mut self,
        weights: &[u16; SPLIT_MAX],
        burst: &mut Burst,
        pool: &Pool<'_>,
    ) -> Option<Share> {
        let is_capable = |one: usize| one < pool.accounts.len() && pool.is_capable(one);
        let packets = burst.next_work(burst.left()).packets;
        let Some(due) = self.dealer.due(weights, packets, is_capable) else { return burst.share(pool) };
        if !pool.is_free(due.processor) {
            return None;
        }
        let jobs = due.jobs(burst.left(), packets, pool.costs[due.processor].lanes);
        self.dealer.deal(weights, burst.next_work(jobs).packets, &due, is_capable);
        Some(Share { processor: due.processor, jobs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "finish_time".parse::<Policy>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown policy `finish_time`; there are finish-time, adaptive-alpha, single, round-robin, \
             shortest-queue, size-threshold, split"
        );
    }
}
