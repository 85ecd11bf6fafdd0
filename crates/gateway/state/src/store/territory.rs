//! The IVs and sequence numbers that a gateway of a pair may use: disjoint from those of the other one, regardless of the
//! connection between the two.
//!
//! Two gateways that share SAs must never use an IV twice under one key, nor a sequence number twice in one SA, and no
//! protocol between them can guarantee that while they cannot communicate. Each therefore has a territory of its own:
//!
//! ```text
//! IVs                  0 .. 2^63            2^63 .. 2^64
//! of gateway           0                    1
//!
//! sequence numbers     | stripe 0 | stripe 1 | stripe 2 | stripe 3 | ...
//! of gateway             0          1          0          1
//! ```
//!
//! IVs only have to differ, so their highest bit is the gateway's number. The clock in nanoseconds, above which IVs
//! start, has 61 bits until 2043 and 62 until 2116. Sequence numbers have to rise too, because the peer refuses those below its
//! replay window: stripes alternate, and the gateway that takes over starts with its first stripe above all numbers that the other
//! may have used.

use std::ops::Range;

use forebay_planted::{Fault, planted};

use super::Block;

/// The bits of a stripe's length without ESN: 2^22 numbers are 1,024 stripes.
const STRIPE_BITS: u32 = 22;
/// The same with ESN. A take-over skips at most two stripes. Therefore more than 60 consecutive take-overs between which the peer receives
/// nothing stay below the 2^31 from which on it may misjudge the high half (RFC 4303 A2).
const STRIPE_BITS_ESN: u32 = 24;
/// Minimum number of blocks in a stripe: a part of a block is lost at the end of a stripe.
const BLOCKS: u64 = 8;

/// The IVs and sequence numbers of one gateway of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Territory {
    number: u8,
}

impl Territory {
    /// The version of this division: two gateways have to agree on it.
    pub const DIVISION: u32 = 1;

    /// The territory of gateway 0 or 1; `None` for other numbers.
    pub fn of(number: u8) -> Option<Territory> {
        let number = if planted(Fault::SameTerritory) { 0 } else { number };
        (number <= 1).then_some(Territory { number })
    }

    /// The gateway's number.
    pub fn number(self) -> u8 {
        self.number
    }

    /// The IVs that the gateway may use.
    pub fn ivs(self) -> Range<u64> {
        if self.number == 0 { 0..1 << 63 } else { 1 << 63..u64::MAX }
    }

    /// Up to `count` sequence numbers above `mark` that are the gateway's and lie in one stripe; the block is empty if none
    /// are left up to `end`.
    pub fn block(self, mark: u64, count: u64, end: u64) -> Block {
        let bits = bits(end);
        let none = Block { after: end, last: end };
        let Some(mut first) = mark.checked_add(1) else { return none };
        if self.owner(first, bits) != self.number {
            let Some(next) = (first >> bits).checked_add(1).and_then(|stripe| stripe.checked_mul(1 << bits))
            else {
                return none;
            };
            first = next;
        }
        if first > end {
            return none;
        }
        let stripe_last = first | ((1 << bits) - 1);
        let last = first.saturating_add(count.max(1) - 1).min(stripe_last).min(end);
        Block { after: first - 1, last }
    }

    /// Maximum block of an SA whose last number is `end`.
    pub fn block_max(end: u64) -> u64 {
        (1 << bits(end)) / BLOCKS
    }

    fn owner(self, number: u64, bits: u32) -> u8 {
        (number >> bits) as u8 & 1
    }
}

fn bits(end: u64) -> u32 {
    if end > u64::from(u32::MAX) { STRIPE_BITS_ESN } else { STRIPE_BITS }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::half;
    use super::*;

    const END: u64 = u32::MAX as u64;
    const STRIPE: u64 = 1 << STRIPE_BITS;

    fn of(number: u8) -> Territory {
        Territory::of(number).unwrap()
    }

    #[test]
    fn there_are_two_gateways_and_every_iv_is_one_of_theirs() {
        assert_eq!(Territory::of(2), None);
        assert_eq!((of(0).ivs().end, of(1).ivs().start), (1 << 63, 1 << 63));
        assert_eq!((half(1), half(of(0).ivs().end), half(of(1).ivs().start + 1)), (0, 0, 1));
    }

    #[test]
    fn blocks_stay_in_stripes_of_their_gateway() {
        assert_eq!(of(0).block(0, 10, END), Block { after: 0, last: 10 });
        assert_eq!(of(1).block(0, 10, END), Block { after: STRIPE - 1, last: STRIPE + 9 });
        assert_eq!(of(0).block(STRIPE - 3, 10, END), Block { after: STRIPE - 3, last: STRIPE - 1 });
        assert_eq!(of(0).block(STRIPE - 1, 10, END), Block { after: 2 * STRIPE - 1, last: 2 * STRIPE + 9 });
        assert_eq!(of(1).block(END - 2, 10, END), Block { after: END - 2, last: END });
        let none = Block { after: END, last: END };
        assert_eq!(of(0).block(END - 2, 10, END), none);
        assert_eq!(of(1).block(END, 10, END), none);
        assert_eq!(of(1).block(u64::MAX, 10, u64::MAX), Block { after: u64::MAX, last: u64::MAX });
        assert_eq!(of(0).block(u64::MAX - 5, 10, u64::MAX), Block { after: u64::MAX, last: u64::MAX });
    }

    proptest! {
        #[test]
        fn no_number_is_in_blocks_of_both(
            marks in prop::collection::vec((any::<u64>(), 1_u64..1 << 40, any::<bool>()), 2..20)
        ) {
            let mut blocks: [Vec<Block>; 2] = [vec![], vec![]];
            for (mark, count, esn) in marks {
                let end = if esn { u64::MAX } else { END };
                let mark = if esn { mark } else { mark & END };
                for number in 0..2 {
                    let block = of(number).block(mark, count, end);
                    prop_assert!(block.after >= mark && block.last <= end);
                    prop_assert!(block.after - mark <= 2 << bits(end) || block.after == end);
                    if block.after < block.last && !esn {
                        blocks[usize::from(number)].push(block);
                    }
                }
            }
            for one in &blocks[0] {
                for other in &blocks[1] {
                    prop_assert!(one.last <= other.after || other.last <= one.after, "{one:?} {other:?}");
                }
            }
        }
    }
}
