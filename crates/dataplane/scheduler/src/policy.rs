//! The placement policies that files can name, each [`Placement`] in a file of its own.
//!
//! Every policy looks only at processors that have the job's suite and have not been removed. Finish time is a
//! branch of its own, so that the others cost it nothing.

mod baselines;
mod split;

use std::fmt;
use std::str::FromStr;

use forebay_time::{Duration, Time};

use self::baselines::{RoundRobin, ShortestQueue, Single, SizeThreshold};
use self::split::{SPLIT_MAX, Split};
use crate::burst::{Burst, Pool, Share};
use crate::keys::Keys;
use crate::processor_state::ProcessorState;
use crate::registry::{Registered, registered};
use crate::{AlphaLoop, BurstView, Candidates, Choice, Cost, JobHead, Kind, Placement};

/// How the place of a job is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The smallest predicted finish time (\[H\] 3.2).
    FinishTime,
    /// Finish time, with the CPUs' alpha after their load, which the driver reports
    /// ([`crate::Scheduler::report_load`]).
    AdaptiveAlpha(AlphaLoop),
    /// Places all jobs at one processor, the papers' comparison without scheduling (\[H\] 4.3). Jobs that it does not
    /// support are placed by finish time.
    Single {
        /// Which one.
        processor: usize,
    },
    /// One after the other; those that cannot do the job are passed over.
    RoundRobin,
    /// The fewest jobs placed and not finished; ties as for finish time.
    ShortestQueue,
    /// Places jobs of fewer than `bytes` bytes at `small`, others at `large`. If that processor does not support the
    /// job, the other one gets it; if neither does, finish time decides.
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
    /// (smooth weighted round robin). Where no capable processor has a weight, finish time decides.
    Split {
        /// The weight of each processor by its index; processors from index 8 on have weight 0.
        weights: [u16; 8],
    },
    /// One that the program has registered ([`crate::register`]).
    Registered(Registered),
}

impl Policy {
    /// Every policy of this crate, with the parameters that its bare word stands for: processor 0 is the host's
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
            Policy::Registered(registered) => registered.kind().word,
        }
    }

    /// The words that a file may have: of this crate's policies, and of those that have been registered.
    pub fn words() -> Vec<&'static str> {
        let shipped = Policy::ALL.iter().map(Policy::word);
        shipped.chain(registered().iter().map(|kind| kind.word)).collect()
    }

    /// Whether places are chosen by finish time, so that what is known of the processors matters.
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
            | Policy::Split { .. }
            | Policy::Registered(_) => None,
        }
    }

    /// The rule itself; none for finish time, which the scheduler applies by itself.
    fn placement(&self) -> Option<Box<dyn Placement>> {
        match *self {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => None,
            Policy::Single { processor } => Some(Box::new(Single { processor })),
            Policy::RoundRobin => Some(Box::new(RoundRobin::default())),
            Policy::ShortestQueue => Some(Box::new(ShortestQueue)),
            Policy::SizeThreshold { bytes, small, large } => {
                Some(Box::new(SizeThreshold { bytes, small, large }))
            }
            Policy::Split { weights } => Some(Box::new(Split::new(weights))),
            Policy::Registered(registered) => Some(registered.create()),
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
        let words = Policy::words().join(", ");
        write!(f, "unknown policy `{}`; there are {words}", self.found)
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    /// Reads a word of [`Policy::words`]; parameters are set afterwards.
    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        let known = Policy::ALL.into_iter().find(|policy| policy.word() == text);
        let from_outside = || registered().into_iter().find(|kind| kind.word == text);
        let known = known.or_else(|| from_outside().map(|kind| Policy::Registered(Registered::new(kind))));
        known.ok_or_else(|| UnknownPolicy { found: text.to_owned() })
    }
}

/// Finish time for jobs that are placed one by one: the scheduler's hot path.
pub(crate) struct Fastest<'a> {
    pub(crate) now: Time,
    pub(crate) job: &'a JobHead,
    /// The processors, and what jobs of this suite cost on each.
    pub(crate) processor_states: &'a [ProcessorState],
    pub(crate) costs: &'a [Cost],
    /// The keys that they hold, if that matters for any; else empty.
    pub(crate) keys: &'a [Option<Keys>],
}

impl Fastest<'_> {
    pub(crate) fn is_capable(&self, processor: usize) -> bool {
        self.processor_states[processor].open_for & 1 << self.job.suite != 0
    }

    /// The capable processor with the smallest finish time; of equal ones an accelerator before a CPU, the faster
    /// before the slower, the lower index.
    ///
    /// The comparison compiles to a conditional move instead of a branch, because its result cannot be predicted.
    #[inline]
    fn processor<const EXTENDED: bool>(&self) -> Option<usize> {
        if EXTENDED && !self.keys.is_empty() {
            return self.least(|_| true);
        }
        let suite = 1u64 << self.job.suite;
        let mut least = u64::MAX;
        let mut holder = usize::MAX;
        for (index, (processor_state, cost)) in self.processor_states.iter().zip(self.costs).enumerate() {
            let found = processor_state.finish(self.now, cost, &self.job.work).0;
            let found = if processor_state.open_for & suite != 0 { found } else { u64::MAX };
            let is_tie = found == least;
            holder = if found < least { index } else { holder };
            least = least.min(found);
            if is_tie {
                holder = self.winner(holder, index);
            }
        }
        (holder != usize::MAX).then_some(holder)
    }

    /// The same of those whose queues have room for a job of a class that may see so many waiting.
    pub(crate) fn with_room(&self, queue: usize) -> Option<usize> {
        self.least(|index| self.processor_states[index].has_room(queue))
    }

    /// The same of those that may be taken.
    fn least(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let may = |&index: &usize| self.is_capable(index) && may(index);
        (0..self.processor_states.len()).filter(may).min_by_key(|&index| {
            let (state, service) = (&self.processor_states[index], self.service(index));
            (state.biased(state.wait(self.now) + service), state.kind == Kind::Cpu, service)
        })
    }

    /// The processing time of the job at a processor, that for its keys included.
    pub(crate) fn service(&self, processor: usize) -> Duration {
        let service = self.processor_states[processor].service(&self.costs[processor], &self.job.work);
        service + Keys::time_on(self.keys, processor, self.job.sa)
    }

    /// If no processor has anything to do, the accelerator that does the job fastest, and of several the first (\[H\] 3.2).
    pub(crate) fn fastest_of_idle(&self) -> Option<usize> {
        if self.processor_states.iter().any(|state| state.unfinished() > 0) {
            return None;
        }
        let accelerator =
            |&index: &usize| self.is_capable(index) && self.processor_states[index].kind == Kind::Accelerator;
        (0..self.processor_states.len()).filter(accelerator).min_by_key(|&index| self.service(index))
    }

    /// Of the one that was first so far, if any was, and another that is as good.
    #[cold]
    fn winner(&self, holder: usize, other: usize) -> usize {
        let rank = |index: usize| {
            let processor_state = &self.processor_states[index];
            (processor_state.kind == Kind::Cpu, processor_state.service(&self.costs[index], &self.job.work))
        };
        let wins = self.is_capable(other) && (holder == usize::MAX || rank(other) < rank(holder));
        if wins { other } else { holder }
    }
}

/// A policy with what it remembers from choice to choice.
#[derive(Debug)]
pub(crate) struct PolicyState {
    policy: Policy,
    /// None for finish time.
    placement: Option<Box<dyn Placement>>,
}

impl PolicyState {
    pub(crate) fn new(policy: Policy) -> PolicyState {
        PolicyState { policy, placement: policy.placement() }
    }

    /// The processor for a job, whose class may see so many jobs waiting in a queue; `None` if no processor can do it.
    #[inline]
    pub(crate) fn choose<const EXTENDED: bool>(&mut self, of: &Fastest<'_>, queue: usize) -> Option<usize> {
        match &mut self.placement {
            None => of.processor::<EXTENDED>(),
            Some(placement) => choose_by(&mut **placement, of, queue),
        }
    }

    /// Whether it may be that the host computes a burst by itself: for other rules than finish time only if all
    /// goes there.
    #[inline]
    pub(crate) fn may_keep(&self, host: usize) -> bool {
        match self.policy {
            Policy::FinishTime | Policy::AdaptiveAlpha(_) => true,
            Policy::Single { processor } => processor == host,
            _ => false,
        }
    }

    /// Whether places are chosen by finish time.
    pub(crate) fn goes_by_time(&self) -> bool {
        self.placement.is_none()
    }

    /// Whether all goes to one processor.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.policy, Policy::Single { .. })
    }

    /// The next share of the burst at hand; `None` if no processor may be given a job now.
    #[inline]
    pub(crate) fn share(&mut self, burst: &mut Burst, pool: &Pool<'_>) -> Option<Share> {
        match &mut self.placement {
            None => burst.share(pool),
            Some(placement) => share_by(&mut **placement, burst, pool),
        }
    }

    /// A processor has finished some jobs.
    #[inline]
    pub(crate) fn finished(&mut self, processor: usize, jobs: usize) {
        if let Some(placement) = &mut self.placement {
            placement.finished(processor, jobs);
        }
    }

    /// A job was late by so much.
    #[inline]
    pub(crate) fn late(&mut self, processor: usize, late: Duration) {
        if let Some(placement) = &mut self.placement {
            placement.late(processor, late);
        }
    }
}

/// Apart, so that it costs finish time nothing.
#[inline(never)]
fn choose_by(placement: &mut dyn Placement, of: &Fastest<'_>, queue: usize) -> Option<usize> {
    let suite = of.job.suite;
    let pool = Pool {
        now: of.now,
        processor_states: of.processor_states,
        costs: of.costs,
        keys: of.keys,
        suite,
        queue,
        bound: Duration(u64::MAX),
        host: None,
    };
    let candidates = Candidates::new(pool, of.job, None);
    let chosen = placement.choose(&candidates).filter(|&one| candidates.get(one).is_some());
    chosen.or_else(|| of.processor::<true>())
}

#[inline(never)]
fn share_by(placement: &mut dyn Placement, burst: &mut Burst, pool: &Pool<'_>) -> Option<Share> {
    let head = burst.next_head();
    let choice = placement.share(&BurstView::new(burst), &Candidates::new(*pool, &head, Some(burst)));
    match choice {
        // What no processor could be given is not given to it, whatever a policy says.
        Choice::Share { processor, jobs }
            if processor < pool.processor_states.len() && pool.is_free(processor) =>
        {
            Some(Share { processor, jobs: jobs.clamp(1, burst.left()) })
        }
        Choice::Share { .. } | Choice::Wait => None,
        Choice::FinishTime => burst.share(pool),
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
