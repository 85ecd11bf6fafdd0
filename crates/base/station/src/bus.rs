//! A bus: how long it is taken by a transfer, and who has it.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroU64};

use forebay_time::{Duration, PS_PER_S, Time};

use crate::host::Way;

/// What a transfer costs, and how many there can be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// How long a transfer takes.
    pub speed: Speed,
    /// Fetches and write-backs have a line each, as on PCI Express; else they share one.
    pub full_duplex: bool,
}

/// How long a transfer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// A parallel bus, like PCI: whole cycles (\[H\] eq 12).
    Cycles {
        /// Clock in Hz.
        clock: NonZeroU64,
        /// Bytes moved in a cycle.
        width: NonZeroU32,
        /// Cycles before the first byte.
        address_cycles: u32,
    },
    /// A serial link, like PCI Express: a rate, and a time for each transfer before its first byte.
    Rate {
        /// bit/s, after coding.
        rate: NonZeroU64,
        /// Once per transfer.
        overhead: Duration,
    },
}

impl Speed {
    /// t_bus: how long `bytes` occupy a line. Rounded to the nearest picosecond, halves up, once and
    /// from the exact value.
    #[inline]
    pub fn transfer(&self, bytes: u64) -> Duration {
        match *self {
            Speed::Cycles { clock, width, address_cycles } => {
                let cycles = u64::from(address_cycles) + bytes.div_ceil(u64::from(width.get()));
                Duration(per_second(cycles, clock.get()))
            }
            Speed::Rate { rate, overhead } => {
                overhead + Duration(per_second(bytes.saturating_mul(8), rate.get()))
            }
        }
    }
}

/// Picoseconds that `count` things take at `rate` a second, to the nearest, halves up.
#[inline]
fn per_second(count: u64, rate: u64) -> u64 {
    // 64 bits hold 18 million things; a 128-bit division is tens of times slower.
    match count.checked_mul(PS_PER_S).and_then(|ps| ps.checked_add(rate / 2)) {
        Some(ps) => ps / rate,
        None => {
            let ps = u128::from(count) * u128::from(PS_PER_S) + u128::from(rate / 2);
            u64::try_from(ps / u128::from(rate)).unwrap_or(u64::MAX)
        }
    }
}

/// A transfer that is requested or in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) length: Duration,
    pub(crate) station: u32,
    pub(crate) way: Way,
}

/// What carries one transfer at a time, first come, first served.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) bus: usize,
    /// Transfers in the order in which they were asked for.
    pub(crate) asked: VecDeque<Transfer>,
    /// Whether the first of them is in progress, and when it ends.
    pub(crate) busy: bool,
    pub(crate) end: Time,
}

impl Line {
    pub(crate) fn new(bus: usize) -> Line {
        Line { bus, asked: VecDeque::new(), busy: false, end: Time::ZERO }
    }

    /// Records the end of the transfer in progress.
    #[inline]
    pub(crate) fn ended(&mut self) {
        self.busy = false;
        self.asked.pop_front();
    }

    /// When a transfer that is requested or in progress will end; the bus serves requests in order, so the time is
    /// known.
    pub(crate) fn end_of(&self, station: usize, way: Way) -> Option<Time> {
        let mut end = self.end;
        for (place, transfer) in self.asked.iter().enumerate() {
            if place > 0 {
                end = end + transfer.length;
            }
            if (transfer.station as usize, transfer.way) == (station, way) {
                return Some(end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parallel_transfer_is_rounded_once_from_whole_cycles() {
        let clock = NonZeroU64::new(66_000_000).unwrap();
        let pci = Speed::Cycles { clock, width: NonZeroU32::new(4).unwrap(), address_cycles: 1 };
        let lengths = [0, 1, 4, 1_500].map(|bytes| pci.transfer(bytes).0);
        assert_eq!(lengths, [15_152, 30_303, 30_303, 5_696_970]); // 1, 2, 2 and 376 cycles of 15151.51..
    }

    #[test]
    fn halves_round_up() {
        let clock = NonZeroU64::new(2 * PS_PER_S).unwrap();
        let speed = Speed::Cycles { clock, width: NonZeroU32::MIN, address_cycles: 0 };
        assert_eq!([0, 1, 2, 3].map(|bytes| speed.transfer(bytes).0), [0, 1, 1, 2]);
    }

    #[test]
    fn a_serial_transfer_is_its_overhead_and_its_bits() {
        let rate = NonZeroU64::new(16_000_000_000).unwrap();
        let link = Speed::Rate { rate, overhead: Duration::from_nanos(500) };
        assert_eq!([0, 1, 1_500].map(|bytes| link.transfer(bytes).0), [500_000, 500_500, 1_250_000]);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
    }
}
