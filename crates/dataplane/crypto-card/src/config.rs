//! The figures of a card and of the bus before it.

use std::num::{NonZeroU32, NonZeroU64};

use forebay_crypto::Suite;
use forebay_station::Speed;
use forebay_time::Duration;

/// Bytes in a block of [`CardConfig::block`].
const BLOCK_LEN: u64 = 16;

/// The figures of one card (models.md section 1, "Accelerator").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardConfig {
    /// Name for tables and logs.
    pub name: String,
    /// t_init: what a submission costs before its first block.
    pub init: Duration,
    /// t_block: what 16 bytes, or the rest of a packet, cost.
    pub block: Duration,
    /// From submission to the card's notice of it; delays a submission but occupies nothing.
    pub doorbell: Duration,
    /// Waiting submissions that the card takes; the one it works on is not counted.
    pub queue: usize,
    /// w: finished submissions that wait for the bus, or cross it, while the card computes the next.
    pub write_buffer: usize,
    /// k: submissions fetched ahead while the card is busy with another.
    pub prefetch: usize,
    /// Suites that the card has, of those of the processor inside; `None` for all of them.
    pub suites: Option<Vec<Suite>>,
}

impl CardConfig {
    /// The accelerator of \[H\] without buffers, "about 230 Mbit/s": t_block 440 ns (its Table 1: 640
    /// bytes in 17.6 us), queue 1000. t_init is not printed there; 1 us by models.md. A doorbell, which the
    /// model does not have, takes no time.
    pub fn paper_230_mbit() -> CardConfig {
        CardConfig {
            name: "card".to_owned(),
            init: Duration::from_micros(1),
            block: Duration::from_nanos(440),
            doorbell: Duration::ZERO,
            queue: 1_000,
            write_buffer: 0,
            prefetch: 0,
            suites: None,
        }
    }

    /// What the blocks of one packet of `len` bytes cost: t_block * ceil(len / 16).
    #[inline]
    pub(crate) fn blocks_time(&self, len: usize) -> Duration {
        self.block.times((len as u64).div_ceil(BLOCK_LEN))
    }
}

/// The figures of a bus (models.md section 1, "Bus").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// Clock in Hz.
    pub clock_hz: NonZeroU64,
    /// Bytes moved in a cycle.
    pub width: NonZeroU32,
    /// c_address: cycles before the first byte.
    pub address_cycles: u32,
}

impl BusConfig {
    /// The bus of \[H\] and \[S\]: PCI, 66 MHz, 4 bytes wide, one address cycle.
    pub const fn pci_66() -> BusConfig {
        BusConfig {
            clock_hz: NonZeroU64::new(66_000_000).unwrap(),
            width: NonZeroU32::new(4).unwrap(),
            address_cycles: 1,
        }
    }

    pub(crate) fn station_bus(&self) -> forebay_station::BusConfig {
        let &BusConfig { clock_hz: clock, width, address_cycles } = self;
        forebay_station::BusConfig {
            speed: Speed::Cycles { clock, width, address_cycles },
            full_duplex: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_s_last_block_counts_whole() {
        let card = CardConfig::paper_230_mbit();
        assert_eq!([0, 1, 16, 17].map(|len| card.blocks_time(len).as_nanos()), [0, 440, 440, 880]);
        assert_eq!(card.blocks_time(640), Duration::from_nanos(17_600)); // [H] Table 1
    }
}
