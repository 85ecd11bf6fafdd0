//! Finding the high half of the sequence number again after 2^32 packets or more were lost (RFC 4303 A3, RFC 4302 B3).
//!
//! Then every packet fails, for all are verified with a high half that is behind the sender's. After
//! [`TRIGGER`] failures in a row one packet is verified with the next high half, after as many more the one
//! behind that, and so on for [`GUESSES`]; then again from the first. The one that matches moves the window, and
//! all is well. The appendix has the *same* bad packet tried again; here it is the next packet, since a job that
//! has failed may have left nothing to try again, and the guess costs no job of its own: a forger gains no work
//! beyond the packets he sends. What he can spoil is one good packet for each [`TRIGGER`] forged ones that
//! come with no good one between them.

use crate::replay::ReplayWindow;

/// Failures in a row that make a guess.
pub const TRIGGER: u32 = 64;
/// High halves ahead that are tried.
pub const GUESSES: u32 = 16;

/// Failures in a row, and what to try next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resync {
    failures: u32,
    /// High halves ahead that the last guess was.
    guessed: u32,
}

impl Resync {
    /// A packet's ICV did not match.
    #[inline]
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// A packet's ICV did match.
    #[inline]
    pub fn verified(&mut self) {
        *self = Resync::default();
    }

    /// The full sequence number to verify a packet with whose low half this is.
    #[inline]
    pub fn infer(&mut self, replay: &ReplayWindow, low: u32) -> Option<u64> {
        let likely = replay.infer(low)?;
        match self.guess() {
            0 => Some(likely),
            // Behind the last subspace there is nothing to guess.
            ahead => Some(likely.checked_add(u64::from(ahead) << 32).unwrap_or(likely)),
        }
    }

    /// Whether the next packet is to be verified with a guess.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.failures >= TRIGGER
    }

    /// How many high halves ahead of the likely one the next packet is to be verified with: mostly zero.
    #[inline]
    fn guess(&mut self) -> u32 {
        if self.failures < TRIGGER {
            return 0;
        }
        self.failures = 0;
        self.guessed = self.guessed % GUESSES + 1;
        self.guessed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_for_each_row_of_failures_and_no_more() {
        let mut resync = Resync::default();
        for expected in (1..=GUESSES).chain(1..=3) {
            for _ in 0..TRIGGER {
                assert_eq!(resync.guess(), 0);
                resync.failed();
            }
            assert_eq!(resync.guess(), expected);
        }
        resync.verified();
        assert_eq!(resync.guess(), 0);
        (0..TRIGGER).for_each(|_| resync.failed());
        assert_eq!(resync.guess(), 1);
    }
}
