//! What arrives: sizes, times and security associations of packets, one after the other.

mod chain;
mod gaps;
mod sizes;
mod source;
mod stream;
mod trace;

pub use chain::Chain;
pub use gaps::Gaps;
pub use sizes::{Bin, Sizes};
pub use source::{TraceError, read_trace};
pub use stream::{Arrival, Stream};
pub use trace::Trace;

use std::sync::Arc;

use forebay_time::{Duration, PS_PER_S};

/// Where packets come from and when.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Payload sizes, and what else a trace has.
    pub source: Source,
    /// Packets to take or to draw at most; `None`: all that the trace has.
    pub packets: Option<u64>,
    /// Bytes added to every payload.
    pub overhead: u32,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// SAs to draw, as weights that sum up to the last one; empty: the trace's column.
    pub sas: Vec<u64>,
    /// Mean number of packets in a row of one SA that is drawn; 1: each packet's SA is drawn alone.
    pub sa_run_length: f64,
    /// Classes to draw, by their numbers; empty: the trace's column.
    pub classes: Vec<DrawnClass>,
    /// Suites by number of the SA, in turn; never empty.
    pub suites: Vec<u8>,
    /// SAs with numbers below this depend on themselves: each of their packets needs the result of the one before.
    pub dependent_sas: u32,
    /// Suites of the passes that each packet needs one after the other, in place of `suites`; empty: one pass.
    pub passes: Vec<u8>,
    /// Packets at the begin that count in no figure.
    pub warm_up: u64,
}

/// Where payload sizes come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file's packets, in its order.
    Trace(Arc<Trace>),
    /// Drawn by the seed.
    Drawn(Sizes),
}

/// A service class of packets that are drawn.
#[derive(Clone, Debug)]
pub struct DrawnClass {
    /// Its share as a weight, added to those of the classes before it.
    pub border: u64,
    /// Payload sizes of its own, where the source draws; `None`: the source's.
    pub sizes: Option<Sizes>,
}

/// When packets arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// When the trace says.
    Stamps,
    /// Back to back at a rate: packet k after all bytes before it.
    BackToBack(Rate),
    /// With exponential gaps of this mean.
    Poisson(Duration),
    /// Back to back at a rate within bursts of exponential length, with exponential pauses between.
    OnOff {
        /// The rate within a burst.
        rate: Rate,
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
    /// With gaps from a table, in an order.
    Gaps(Arc<Gaps>),
}

/// A rate in bit/s as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits.
    pub bits: u64,
    /// In so many seconds.
    pub seconds: u64,
}

impl Rate {
    /// A whole number of bit/s.
    pub const fn per_second(bits: u64) -> Rate {
        Rate { bits, seconds: 1 }
    }

    /// As a number.
    pub fn as_bps(self) -> f64 {
        self.bits as f64 / self.seconds as f64
    }
}

/// The time of whole numbers of bytes at a rate, summed exactly and rounded once, halves up.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Picoseconds a byte takes, and the rest of that division.
    whole: u64,
    rest: u128,
    divisor: u128,
    /// The time so far, its fraction in units of 1 / divisor; it begins with a half for the rounding.
    time: u64,
    fraction: u128,
}

impl Line {
    fn new(rate: Rate) -> Line {
        let divisor = u128::from(rate.bits);
        let byte = 8 * u128::from(PS_PER_S) * u128::from(rate.seconds);
        let whole = u64::try_from(byte / divisor).unwrap_or(u64::MAX);
        Line { whole, rest: byte % divisor, divisor, time: 0, fraction: divisor / 2 }
    }

    /// The time of all bytes sent so far.
    #[inline]
    fn now(&self) -> u64 {
        self.time
    }

    #[inline]
    fn send(&mut self, bytes: u32) {
        self.time = self.time.saturating_add(self.whole.saturating_mul(u64::from(bytes)));
        if self.rest != 0 {
            self.fraction += self.rest * u128::from(bytes);
            if self.fraction >= self.divisor {
                self.time = self.time.saturating_add((self.fraction / self.divisor) as u64);
                self.fraction %= self.divisor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_once_from_all_bytes_before() {
        for rate in
            [Rate::per_second(1_000_000_000), Rate::per_second(7), Rate { bits: 3_000_001, seconds: 10 }]
        {
            let (mut line, mut bytes) = (Line::new(rate), 0u128);
            for size in [40, 1, 1_500, 0, 3, 777, 65_535] {
                line.send(size);
                bytes += u128::from(size);
                let exact = 8 * bytes * u128::from(PS_PER_S) * u128::from(rate.seconds);
                let divisor = u128::from(rate.bits);
                assert_eq!(u128::from(line.now()), (2 * exact + divisor) / (2 * divisor));
            }
        }
    }
}
