//! The anti-replay window and the high half of extended sequence numbers.
//!
//! RFC 4303 3.4.3: a number right of the window is new; one inside it is new unless its bit is set;
//! one left of it is too old; zero is never sent. The window slides only for packets whose ICV has
//! been verified, so [`ReplayWindow::check`] comes before the crypto and [`ReplayWindow::settle`],
//! which looks again, after it: of two copies in flight at once only the first to settle passes.
//!
//! A window may be *noted*: its owner keeps durably that all numbers up to a limit count as received, and raises the
//! limit ahead of use ([`ReplayWindow::note`]). A packet with a higher number settles like any other, but must not be
//! delivered before the limit is raised: after a crash, it would be taken for new again.

use crate::received::{GAPS_MAX, Received};

/// The largest window, in packets.
pub const MAX_WINDOW: u32 = 65_536;
/// The narrowest window that high halves are inferred by, in packets.
const INFERRED_MIN: u32 = 32;

/// The verdict on a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Not seen before.
    New,
    /// Zero, which no sender uses.
    Zero,
    /// Left of the window.
    TooOld,
    /// Seen before.
    Duplicate,
    /// New, and beyond the mark of a noted window: [`ReplayWindow::settle`] takes it, `Settling` does not.
    BeyondMark,
}

/// Sequence numbers received on one SA: the highest, and a bit for each of the last `window`.
///
/// The bits are a ring of 64-bit words that is cleared a word at a time as the window moves (the
/// scheme of RFC 6479): one word more than the window needs, so that a partly used word never
/// holds bits of two rounds.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// Highest number settled; zero before the first.
    top: u64,
    /// The highest number that can be settled without [`ReplayWindow::passed_mark`].
    mark: u64,
    /// Width in packets; zero accepts everything.
    window: u32,
    /// How far below the highest number [`ReplayWindow::infer`] expects packets.
    behind: u32,
    /// The ring; its length is a power of two.
    bits: Box<[u64]>,
    /// In a place of its own, because packets do not need it.
    noted: Option<Box<Noted>>,
}

/// What is kept durably of a window.
#[derive(Clone, Debug)]
struct Noted {
    /// All numbers up to this one count as received after a crash.
    limit: u64,
    /// After a crash: the highest number that was certainly received, and the highest that may have been. Ends with the
    /// first packet beyond both.
    doubt: Option<(u64, u64)>,
    /// Packets that were refused with a number between the two.
    unsure: u64,
}

impl Default for Noted {
    fn default() -> Noted {
        Noted { limit: u64::MAX, doubt: None, unsure: 0 }
    }
}

/// Half of the number space: inference takes no larger distance for lateness (RFC 4303 A2.1).
const BEHIND_MAX: u64 = 1 << 31;

impl ReplayWindow {
    /// A window of `window` packets, at most [`MAX_WINDOW`]; zero disables the check. RFC 4303 3.4.3 requires support
    /// of 32 and recommends 64 as the default; a smaller `window` is used as it is given.
    pub fn new(window: u32) -> ReplayWindow {
        let window = window.min(MAX_WINDOW);
        let words = (window.div_ceil(64) as usize + 1).next_power_of_two();
        let bits = vec![0; words].into_boxed_slice();
        ReplayWindow { top: 0, mark: u64::MAX, window, behind: window.max(INFERRED_MIN), bits, noted: None }
    }

    /// Whether numbers are checked at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.window > 0
    }

    /// The highest sequence number that was settled, zero before the first.
    #[inline]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The full sequence number that a received low half stands for (RFC 4303 A2.2): of all numbers with that
    /// half the one inside the window or right of it, by less than 2^32. `None` if it would lie before
    /// number zero, or behind the last there is.
    ///
    /// This goes by a window of at least 32 packets, which every receiver has to have (RFC 4303 3.4.3): with
    /// a narrower one, or none, a packet that is a little late is taken for that and found too old, and
    /// not for one of 2^32 packets ahead. After a crash the numbers that may have been received before it count as part
    /// of the window here, so that they are refused as replays and not tried as numbers 2^32 ahead.
    #[inline]
    pub fn infer(&self, low: u32) -> Option<u64> {
        let window = u64::from(self.behind);
        let (top_high, top_low) = (self.top >> 32, self.top & 0xffff_ffff);
        let low = u64::from(low);
        if top_low >= window - 1 {
            // Case A: the window lies within one subspace.
            let high = if low >= top_low - (window - 1) { top_high } else { top_high + 1 };
            (high <= u64::from(u32::MAX)).then_some(high << 32 | low)
        } else {
            // Case B: the window spans two subspaces.
            let bottom = top_low + (1 << 32) + 1 - window;
            let high = if low >= bottom { top_high.checked_sub(1)? } else { top_high };
            Some(high << 32 | low)
        }
    }

    /// Whether a packet with this number may be worth the crypto.
    #[inline(always)]
    pub fn check(&self, sequence: u64) -> Replay {
        if sequence == 0 {
            return Replay::Zero;
        }
        if self.window == 0 || sequence > self.top {
            return Replay::New;
        }
        if self.top - sequence >= u64::from(self.window) {
            return Replay::TooOld;
        }
        let (word, bit) = self.position(sequence);
        if self.bits[word] & bit != 0 { Replay::Duplicate } else { Replay::New }
    }

    /// Records a number whose packet has been verified; anything but [`Replay::New`] means that the
    /// packet must be dropped after all, and nothing is recorded.
    #[inline(always)]
    pub fn settle(&mut self, sequence: u64) -> Replay {
        let verdict = self.check(sequence);
        if verdict != Replay::New {
            return verdict;
        }
        if sequence > self.top {
            let (from, to) = (self.top / 64, sequence / 64);
            if from != to {
                self.clear(from, to);
            }
            self.top = sequence;
        }
        let (word, bit) = self.position(sequence);
        self.bits[word] |= bit;
        Replay::New
    }

    /// The window to settle numbers in that mostly follow each other.
    #[inline]
    pub fn settling(&mut self) -> Settling<'_> {
        let top = self.top;
        let word = self.bits[self.position(top).0];
        let last = (top | 63).min(self.mark);
        Settling { window: self, top, last, word }
    }

    /// The numbers that were received, with the gaps in the window.
    pub fn received(&self) -> Received {
        let certain =
            self.noted.as_ref().and_then(|noted| noted.doubt).map_or(self.top, |(certain, _)| certain);
        let mut missing: Vec<(u64, u64)> = Vec::new();
        let (lowest, mut next) = (self.lowest(), self.top);
        while next >= lowest {
            let (sequence, (word, bit)) = (next, self.position(next));
            if self.bits[word] == u64::MAX {
                // A word without gaps; lower numbers are in others.
                next = (sequence & !63).saturating_sub(1);
                continue;
            }
            next -= 1;
            if self.bits[word] & bit != 0 {
                continue;
            }
            let count = missing.len();
            match missing.last_mut() {
                Some(gap) if gap.0 == sequence + 1 => gap.0 = sequence,
                _ if count == GAPS_MAX => break,
                _ => missing.push((sequence, sequence)),
            }
        }
        missing.reverse();
        Received { top: self.top, certain, missing }
    }

    /// Makes this the window of an SA that has received so much. Where it is wider than the one that told, numbers count
    /// as received that were left of that one.
    pub fn restore(&mut self, received: &Received) {
        if self.window == 0 || received.top == 0 {
            return;
        }
        self.top = received.top;
        self.bits.fill(u64::MAX);
        // Numbers beyond the highest have their bits clear while they share its word.
        let (word, bit) = self.position(self.top);
        self.bits[word] = bit | (bit - 1);
        let lowest = self.lowest();
        for &(from, to) in &received.missing {
            for sequence in from.max(lowest)..=to.min(self.top) {
                let (word, bit) = self.position(sequence);
                self.bits[word] &= !bit;
            }
        }
        if received.certain < self.top {
            let reach = (self.top - received.certain).saturating_add(self.window.into()).min(BEHIND_MAX);
            self.behind = self.behind.max(reach as u32);
            self.noted.get_or_insert_default().doubt = Some((received.certain, self.top));
            self.mark = self.top;
        }
    }

    /// Takes note that all numbers up to `limit` are kept durably as received. Half-way there, and beyond it,
    /// [`ReplayWindow::passed_mark`] says that the limit is to be raised.
    pub fn note(&mut self, limit: u64) {
        if self.window == 0 {
            return;
        }
        let noted = self.noted.get_or_insert_default();
        noted.limit = limit;
        self.mark = match noted.doubt {
            Some(_) => self.top,
            None => self.top + limit.saturating_sub(self.top) / 2,
        };
    }

    /// The number up to which all are noted; `None` if nothing was ever noted.
    #[inline]
    pub fn limit(&self) -> Option<u64> {
        self.noted.as_ref().map(|noted| noted.limit)
    }

    /// The highest number that can be settled without [`ReplayWindow::passed_mark`].
    #[inline(always)]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// To be asked when a number beyond the mark was settled: whether the limit is to be raised. If so, that was either
    /// told, and [`ReplayWindow::told`] says so here, or this is asked again for the next packet.
    pub fn passed_mark(&mut self) -> bool {
        let Some(noted) = &mut self.noted else { return false };
        noted.doubt = None;
        self.behind = self.window.max(INFERRED_MIN);
        if noted.limit == u64::MAX {
            self.mark = u64::MAX;
        }
        noted.limit < u64::MAX
    }

    /// Takes note that the owner knows that the limit is to be raised: it is told again at the limit itself.
    pub fn told(&mut self) {
        let limit = self.noted.as_ref().map_or(u64::MAX, |noted| noted.limit);
        self.mark = if self.top <= limit { limit } else { u64::MAX };
    }

    /// Takes note of a packet that was refused.
    pub fn refused(&mut self, sequence: u64) {
        if let Some(noted) = &mut self.noted
            && let Some((certain, top)) = noted.doubt
            && (certain + 1..=top).contains(&sequence)
        {
            noted.unsure += 1;
        }
    }

    /// Packets that were refused because they may have been received before a crash.
    #[inline]
    pub fn unsure(&self) -> u64 {
        self.noted.as_ref().map_or(0, |noted| noted.unsure)
    }

    /// The lowest number in the window.
    fn lowest(&self) -> u64 {
        self.top.saturating_sub(self.window.into()).saturating_add(1)
    }

    /// Empties the words that the window enters on its way from word `from` to word `to`.
    #[inline(never)]
    fn clear(&mut self, from: u64, to: u64) {
        let words = self.bits.len() as u64;
        for k in 1..=(to - from).min(words) {
            self.bits[((from + k) & (words - 1)) as usize] = 0;
        }
    }

    #[inline]
    fn position(&self, sequence: u64) -> (usize, u64) {
        ((sequence / 64) as usize & (self.bits.len() - 1), 1 << (sequence % 64))
    }
}

/// A [`ReplayWindow`] with what the next number mostly needs at hand: the highest, and its word of the ring. They go back
/// when this ends.
pub struct Settling<'a> {
    window: &'a mut ReplayWindow,
    top: u64,
    /// The last number that is in the same word.
    last: u64,
    word: u64,
}

impl Settling<'_> {
    /// As [`ReplayWindow::settle`] for numbers up to the mark; [`Replay::BeyondMark`] for those beyond.
    #[inline(always)]
    pub fn settle(&mut self, sequence: u64) -> Replay {
        if sequence > self.top && sequence <= self.last {
            self.top = sequence;
            self.word |= 1 << (sequence % 64);
            return Replay::New;
        }
        self.settle_elsewhere(sequence)
    }

    #[inline(never)]
    fn settle_elsewhere(&mut self, sequence: u64) -> Replay {
        self.put_back();
        if sequence > self.window.mark {
            return Replay::BeyondMark;
        }
        let verdict = self.window.settle(sequence);
        self.top = self.window.top;
        self.last = (self.top | 63).min(self.window.mark);
        self.word = self.window.bits[self.window.position(self.top).0];
        verdict
    }

    #[inline]
    fn put_back(&mut self) {
        let (word, _) = self.window.position(self.top);
        self.window.bits[word] = self.word;
        self.window.top = self.top;
    }
}

impl Drop for Settling<'_> {
    #[inline]
    fn drop(&mut self) {
        self.put_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Numbers that follow each other, skip some, or go back; in runs.
        #[test]
        fn settling_in_runs_is_settling_one_by_one(
            window in prop::sample::select(vec![0u32, 1, 32, 64, 100, 1024]),
            start in prop::sample::select(vec![0u64, 60, 4_000, (1 << 32) - 70, u64::MAX - 300]),
            steps in prop::collection::vec(prop::collection::vec((any::<bool>(), -90i64..90), 0..80), 0..8),
        ) {
            let (mut one, mut other) = (ReplayWindow::new(window), ReplayWindow::new(window));
            prop_assert_eq!(one.settle(start), other.settle(start));
            let mut sequence = start;
            for run in steps {
                let mut settling = other.settling();
                for (next, step) in run {
                    sequence = sequence.saturating_add_signed(if next { 1 } else { step });
                    prop_assert_eq!(settling.settle(sequence), one.settle(sequence), "{}", sequence);
                }
                drop(settling);
                prop_assert_eq!((&other.bits, other.top), (&one.bits, one.top));
            }
        }
    }
}
