//! The anti-replay window and the high half of extended sequence numbers.
//!
//! RFC 4303 3.4.3: a number right of the window is new; one inside it is new unless its bit is set;
//! one left of it is too old; zero is never sent. The window slides only for packets whose ICV has
//! been verified, so [`ReplayWindow::check`] comes before the crypto and [`ReplayWindow::settle`],
//! which looks again, after it: of two copies in flight at once only the first to settle passes.

/// The largest window, in packets.
pub const MAX_WINDOW: u32 = 65_536;

/// What becomes of a sequence number.
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
    /// Width in packets; zero accepts everything.
    window: u32,
    /// The ring; its length is a power of two.
    bits: Box<[u64]>,
}

impl ReplayWindow {
    /// A window of `window` packets, at most [`MAX_WINDOW`]; zero switches the check off. RFC 4303 3.4.3 asks
    /// for 32 at least and 64 if nobody says otherwise; fewer are as few as they are.
    pub fn new(window: u32) -> ReplayWindow {
        let window = window.min(MAX_WINDOW);
        let words = (window.div_ceil(64) as usize + 1).next_power_of_two();
        ReplayWindow { top: 0, window, bits: vec![0; words].into_boxed_slice() }
    }

    /// The highest sequence number that was settled, zero before the first.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The full sequence number that a received low half stands for (RFC 4303 A2.2): of all numbers with that
    /// half the one inside the window or right of it, by less than 2^32. `None` if it would lie before
    /// number zero, or behind the last there is.
    ///
    /// This goes by a window of at least 32 packets, which every receiver has to have (RFC 4303 3.4.3): with
    /// a narrower one, or none, a packet that is a little late is taken for that and found too old, and
    /// not for one of 2^32 packets ahead.
    #[inline]
    pub fn infer(&self, low: u32) -> Option<u64> {
        let window = u64::from(self.window.max(32));
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
        Settling { window: self, top, last: top | 63, word }
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
    /// As [`ReplayWindow::settle`].
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
        let verdict = self.window.settle(sequence);
        self.top = self.window.top;
        self.last = self.top | 63;
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
