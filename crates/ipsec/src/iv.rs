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

/// The IVs that one SA may use: `next`, `next + step`, ... below `end`. Cannot be copied, so that no
/// two SAs can use the same ones.
#[derive(Debug, PartialEq, Eq)]
pub struct IvRange {
    next: u64,
    end: u64,
    step: u64,
}

impl IvRange {
    /// The share number `index` of `shares` in the reserved numbers `start..end`.
    pub fn share(start: u64, end: u64, index: u64, shares: u64) -> IvRange {
        // The last few numbers are given up so that a step never overflows.
        let step = shares.max(1);
        IvRange { next: start.saturating_add(index), end: end.min(u64::MAX - step), step }
    }

    /// A range of its own for tests and benchmarks, where keys are made up for the run.
    pub fn for_throwaway_key() -> IvRange {
        IvRange::share(1, u64::MAX, 0, 1)
    }

    /// The next unused IV; `None`, for good, once the range is used up.
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        if self.next >= self.end {
            return None;
        }
        let iv = self.next;
        self.next = iv + self.step;
        Some(iv)
    }

    /// The next unused IV and how far the one behind it is: for whoever uses several and
    /// [skips](IvRange::skip) them afterwards.
    #[inline]
    pub(crate) fn peek(&self) -> (u64, u64) {
        (self.next, self.step)
    }

    /// Takes `count` IVs, of which there are as many.
    #[inline]
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count * self.step;
    }

    /// Whether no IV is left.
    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.next >= self.end
    }

    /// How many IVs are left.
    pub fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.next).div_ceil(self.step)
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
}
