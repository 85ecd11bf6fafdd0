//! Times between packets from a table, in an order.

use super::Chain;
use crate::random::Random;

/// Times between packets: bins of equally likely times, and the order of the bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaps {
    /// Shortest and longest time of each bin in picoseconds.
    pub bins: Vec<(u64, u64)>,
    /// The order of the bins.
    pub chain: Chain,
    /// By which every time is multiplied, for another rate.
    pub scale: f64,
}

impl Gaps {
    /// The mean in picoseconds, before it is scaled.
    pub fn mean(&self) -> f64 {
        let middle = |&(low, high): &(u64, u64)| low as f64 / 2.0 + high as f64 / 2.0;
        self.chain.shares().iter().zip(&self.bins).map(|(share, bin)| share * middle(bin)).sum()
    }

    /// The same with this mean, in picoseconds.
    #[must_use]
    pub fn with_mean(&self, mean: f64) -> Gaps {
        Gaps { scale: mean / self.mean(), ..self.clone() }
    }

    #[inline(never)] // few scenarios have gaps, and every packet comes by here
    pub(crate) fn draw(&self, last: &mut Option<u16>, random: &mut Random) -> u64 {
        let bin = self.chain.draw(*last, random);
        *last = Some(bin);
        let (low, high) = self.bins[usize::from(bin)];
        let span = high - low;
        let gap = if span == 0 { low } else { low + random.below(span + 1) };
        if self.scale == 1.0 { gap } else { (gap as f64 * self.scale + 0.5) as u64 }
    }
}
