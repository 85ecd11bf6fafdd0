//! The order of what comes out: the sequence numbers of each SA follow each other without a gap.

use forebay_wire::{Ip, protocol};

/// Why a sealed packet is not the one that had to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfOrder {
    /// It is no ESP packet in IP.
    NotEsp,
    /// Its sequence number is not the next of its SA.
    Number {
        /// The sequence number that it has.
        found: u32,
        /// The next one.
        expected: u32,
    },
}

impl std::fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OutOfOrder::NotEsp => f.write_str("it is no ESP packet"),
            OutOfOrder::Number { found, expected } => {
                write!(f, "its sequence number is {found}, expected {expected}")
            }
        }
    }
}

/// The last sequence number of each SA.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    last: Vec<u32>,
}

impl Sequence {
    /// Takes the next packet of `sa`, which came out sealed.
    ///
    /// # Errors
    /// If it is not the one behind the last.
    #[inline]
    pub fn take(&mut self, sa: usize, packet: &[u8]) -> Result<(), OutOfOrder> {
        let payload = match Ip::parse(packet) {
            Ok(Ip::V4(ip)) if ip.protocol() == protocol::ESP => &packet[ip.header_len()..],
            _ => return Err(OutOfOrder::NotEsp),
        };
        // RFC 4303 2: SPI, then the sequence number.
        let Some(&[a, b, c, d]) = payload.get(4..8) else { return Err(OutOfOrder::NotEsp) };
        let found = u32::from_be_bytes([a, b, c, d]);
        if self.last.len() <= sa {
            self.last.resize(sa + 1, 0);
        }
        let expected = self.last[sa].wrapping_add(1);
        if found != expected {
            return Err(OutOfOrder::Number { found, expected });
        }
        self.last[sa] = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: u32) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[24..28].copy_from_slice(&number.to_be_bytes());
        forebay_wire::ipv4::rewrite(&mut packet, 20, 40, 50);
        packet
    }

    #[test]
    fn numbers_of_an_sa_follow_each_other() {
        let mut sequence = Sequence::default();
        for (sa, number) in [(0, 1), (0, 2), (2, 1), (0, 3), (2, 2)] {
            assert_eq!(sequence.take(sa, &sealed(number)), Ok(()));
        }
    }

    #[test]
    fn a_gap_a_repetition_and_a_swap_are_seen() {
        for (second, third) in [(3, 4), (1, 2), (4, 3)] {
            let mut sequence = Sequence::default();
            assert_eq!(sequence.take(0, &sealed(1)), Ok(()));
            let taken = [second, third].map(|number| sequence.take(0, &sealed(number)));
            assert_eq!(taken[0], Err(OutOfOrder::Number { found: second, expected: 2 }));
        }
        assert_eq!(Sequence::default().take(0, &[0x45; 20]), Err(OutOfOrder::NotEsp));
    }
}
