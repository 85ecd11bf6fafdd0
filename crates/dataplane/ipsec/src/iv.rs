//! IVs that are unique by construction.
//!
//! Every suite gets its IV from one counter per key. The counter runs through a range that the
//! caller has reserved *durably before the first of it is used* (the command line keeps a file of
//! high-water marks by key, and starts behind both the mark and the clock): a crash loses the rest
//! of a range but never repeats a part of it. SAs that share a key walk the range in disjoint steps.
//!
//! The IV is written into the packet at prepare, before any processor sees it, and is part of the
//! bytes that a retry starts from. A job that is done again on another processor therefore seals the
//! same plaintext under the same IV into the same ciphertext: the pair (key, IV) still protects one
//! message only.
//!
//! AES-CBC needs unpredictable IVs too (RFC 3602 3): there the counter is enciphered by the SA's own
//! key first, see `JobSpec::cipher`.
//!
//! A range may be refilled: when half of it is used, the SA sends [`EventKind::IvWanted`]. The code that reserves IVs
//! then passes another range to the range's [`IvRefill`], and the SA continues with it when the first is used up.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_crypto::SessionId;

use crate::watch::{EventKind, Watch};

/// The IVs that one SA may use: `next`, `next + step`, ... below `end`. Cannot be copied, so that no
/// two SAs can use the same ones.
#[derive(Debug)]
#[repr(C)]
pub struct IvRange {
    next: u64,
    /// Where something has to be looked at: the end, or before it the half.
    mark: u64,
    step: u64,
    /// In a place of its own, so that what packets need of an SA stands together.
    facts: Box<Facts>,
}

/// What only a look at the mark needs.
#[derive(Debug)]
struct Facts {
    end: u64,
    refill: Option<IvRefill>,
    /// Whether [`EventKind::IvWanted`] was sent of this range.
    wanted: bool,
    /// Whether [`EventKind::IvEnd`] was sent since there were IVs.
    ended: bool,
}

/// Where the next range of an SA is put while it uses the one that it has.
#[derive(Clone, Debug, Default)]
pub struct IvRefill(Arc<Mutex<Option<IvRange>>>);

impl IvRefill {
    /// Gives the SA IVs to go on with; those given before that it has not begun are lost.
    pub fn give(&self, range: IvRange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(range);
    }

    fn take(&self) -> Option<IvRange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl IvRange {
    /// The share number `index` of `shares` in the reserved numbers `start..end`.
    pub fn share(start: u64, end: u64, index: u64, shares: u64) -> IvRange {
        // The last few numbers are given up so that a step never overflows.
        let step = shares.max(1);
        let end = end.min(u64::MAX - step);
        let facts = Box::new(Facts { end, refill: None, wanted: false, ended: false });
        IvRange { next: start.saturating_add(index), mark: end, step, facts }
    }

    /// A range of its own for tests and benchmarks, where keys are made up for the run.
    pub fn for_throwaway_key() -> IvRange {
        IvRange::share(1, u64::MAX, 0, 1)
    }

    /// The range, which asks for more at its half and goes on with what is given to `refill`.
    #[must_use]
    pub fn refilled_by(mut self, refill: IvRefill) -> IvRange {
        self.facts.refill = Some(refill);
        self.mark = self.next.saturating_add(self.left() / 2 * self.step).min(self.facts.end);
        self
    }

    /// The next unused IV; `None` once the range is used up.
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        if self.next >= self.facts.end {
            return None;
        }
        let iv = self.next;
        self.next = iv + self.step;
        Some(iv)
    }

    /// The next unused IV and the step from it to the one behind, for callers that use several and
    /// [skip](IvRange::skip) them afterwards.
    #[inline]
    pub(crate) fn peek(&self) -> (u64, u64) {
        (self.next, self.step)
    }

    /// Takes `count` IVs, of which there are as many.
    #[inline]
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count * self.step;
    }

    /// Whether there is an IV for a packet of `session`; sends the events that are due.
    #[inline]
    pub(crate) fn is_ready(&mut self, session: SessionId, watch: &mut Watch) -> bool {
        self.next < self.mark || self.look(session, watch)
    }

    #[cold]
    fn look(&mut self, session: SessionId, watch: &mut Watch) -> bool {
        if self.next >= self.facts.end
            && let Some(refill) = self.facts.refill.clone()
            && let Some(more) = refill.take()
        {
            *self = more.refilled_by(refill);
        }
        let facts = &mut self.facts;
        if self.next >= facts.end {
            facts.ended = facts.ended || watch.tell(session, EventKind::IvEnd);
            return false;
        }
        if self.next >= self.mark {
            facts.wanted = facts.wanted || watch.tell(session, EventKind::IvWanted);
            // Without room for the event the next packet sends it.
            self.mark = if facts.wanted { facts.end } else { self.next + self.step };
        }
        true
    }

    /// How many IVs are left that need no look at the range.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.mark.saturating_sub(self.next).div_ceil(self.step)
    }

    /// How many IVs are left.
    fn left(&self) -> u64 {
        self.facts.end.saturating_sub(self.next).div_ceil(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn shares_are_disjoint_and_end() {
        let mut seen = HashSet::new();
        for index in 0..3 {
            let mut range = IvRange::share(100, 110, index, 3);
            let remaining = range.remaining();
            let mut taken = 0;
            while let Some(iv) = range.take() {
                assert!((100..110).contains(&iv));
                assert!(seen.insert(iv), "{iv} came twice");
                taken += 1;
            }
            assert_eq!(taken, remaining);
            assert_eq!(range.take(), None);
        }
        assert_eq!(seen.len(), 10);
    }

    #[test]
    fn the_last_number_does_not_wrap() {
        let mut range = IvRange::share(u64::MAX - 4, u64::MAX, 0, 2);
        assert_eq!(range.take(), Some(u64::MAX - 4));
        assert_eq!(range.take(), None);
        assert_eq!(range.take(), None);
    }

    /// Uses the range as an SA does, and says what it has sent.
    fn events(range: &mut IvRange, packets: usize, taken: &mut Vec<u64>) -> Vec<EventKind> {
        let mut watch = Watch::default();
        for _ in 0..packets {
            if range.is_ready(SessionId(0), &mut watch) {
                taken.extend(range.take());
            }
        }
        std::iter::from_fn(|| watch.take()).map(|event| event.kind).collect()
    }

    #[test]
    fn a_range_asks_for_more_at_its_half_and_goes_on_with_it() {
        let (refill, mut taken) = (IvRefill::default(), vec![]);
        let mut range = IvRange::share(100, 110, 0, 1).refilled_by(refill.clone());
        assert_eq!(range.remaining(), 5);
        assert_eq!(events(&mut range, 5, &mut taken), []);
        assert_eq!(events(&mut range, 3, &mut taken), [EventKind::IvWanted]);
        refill.give(IvRange::share(1_000, 1_004, 0, 1));
        // What is left of the first comes first, and then half of the second.
        assert_eq!(events(&mut range, 4, &mut taken), []);
        assert_eq!(events(&mut range, 4, &mut taken), [EventKind::IvWanted, EventKind::IvEnd]);
        assert_eq!(events(&mut range, 100, &mut taken), []);
        assert!(taken.iter().copied().eq((100..110).chain(1_000..1_004)), "{taken:?}");
        refill.give(IvRange::share(2_000, 2_100, 0, 1));
        assert_eq!(events(&mut range, 1, &mut taken), []);
        assert_eq!(taken.last(), Some(&2_000));
    }

    #[test]
    fn a_range_that_nobody_refills_says_its_end_once() {
        let mut taken = vec![];
        let mut range = IvRange::share(100, 102, 0, 1);
        assert_eq!(events(&mut range, 9, &mut taken), [EventKind::IvEnd]);
        assert_eq!(taken, [100, 101]);
    }
}
