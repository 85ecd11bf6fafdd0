//! The state of a replay window in a form that is kept beyond the life of the SA.

/// Maximum number of gaps that are reported of a window: those closest to the highest number. Numbers in other gaps
/// count as received.
pub(crate) const GAPS_MAX: usize = 1_024;

/// Which sequence numbers an SA has, or may have, received: a replay window that outlives its SA.
///
/// Every number up to `top` counts as received, except those of `missing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The highest number that was, or may have been, received; zero before the first.
    pub top: u64,
    /// The highest number that was certainly received. It is less than `top` if the numbers behind it were only noted
    /// for use when the process ended without a word.
    pub certain: u64,
    /// Gaps, each from its first to its last number, in ascending order: numbers that were not received.
    pub missing: Vec<(u64, u64)>,
}

impl Received {
    /// Everything up to `top`, without gaps.
    pub fn up_to(top: u64) -> Received {
        Received { top, certain: top, missing: Vec::new() }
    }
}
