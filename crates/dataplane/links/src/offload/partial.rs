//! Finds checksums that a sender has left to its device, where the packet comes without metadata that marks them.
//!
//! Linux writes the sum of the pseudo-header into the field and leaves the rest to the card (`CHECKSUM_PARTIAL`).
//! Virtual cables such as veth and bridges pass such packets on unchanged, and a receiver by XDP gets no mark. The
//! field itself serves as the mark: a complete checksum has that value once in 65,536 packets, and completing it
//! again then yields the same value.

use forebay_wire::{Ip, protocol};

use super::{tcp, udp};
use crate::checksum::{fold, pseudo_header, sum};

/// The longest headers that are looked into, up to the end of the checksum.
const MAX: usize = 128;

/// The first bytes of a packet with its checksum completed.
pub struct Completed {
    bytes: [u8; MAX],
    len: usize,
}

impl Completed {
    /// Of no packet yet.
    pub const EMPTY: Completed = Completed { bytes: [0; MAX], len: 0 };

    /// The packet as head and body with the checksum of its TCP or UDP complete; where it is already, or is not to be
    /// found, as it came.
    #[inline]
    pub fn of<'a>(&'a mut self, ip: &Ip<'a>) -> (&'a [u8], &'a [u8]) {
        let packet = ip.bytes();
        match self.complete(ip) {
            Some(()) => (&self.bytes[..self.len], &packet[self.len..]),
            None => (packet, &[]),
        }
    }

    fn complete(&mut self, ip: &Ip<'_>) -> Option<()> {
        let packet = ip.bytes();
        let (l4, which) = match ip {
            Ip::V4(ip) => (!ip.is_fragment()).then_some((ip.header_len(), ip.protocol()))?,
            Ip::V6(ip) => {
                let upper = ip.upper_layer().ok().filter(|upper| !upper.is_fragment)?;
                (upper.at, upper.protocol)
            }
        };
        let offset = match which {
            protocol::TCP => tcp::CHECKSUM,
            protocol::UDP => udp::CHECKSUM,
            _ => return None,
        };
        let covered = packet.get(l4..)?;
        let field: [u8; 2] = *covered.get(offset..)?.first_chunk()?;
        let pseudo = match ip {
            Ip::V4(_) => pseudo_header(packet[12..].first_chunk::<8>()?, which, covered.len()),
            Ip::V6(_) => pseudo_header(packet[8..].first_chunk::<32>()?, which, covered.len()),
        };
        self.len = l4 + offset + field.len();
        if u16::from_be_bytes(field) != fold(pseudo) || self.len > MAX {
            return None;
        }
        // The field holds the pseudo-header's sum, which so is added too.
        let checksum = match !sum(covered) {
            0 if which == protocol::UDP => 0xffff, // zero means none (RFC 768)
            checksum => checksum,
        };
        self.bytes[..self.len].copy_from_slice(&packet[..self.len]);
        self.bytes[l4 + offset..self.len].copy_from_slice(&checksum.to_be_bytes());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::is_l4_right;
    use proptest::prelude::*;

    /// A packet of TCP or UDP whose checksum field holds zero.
    fn packet(v6: bool, udp: bool, payload: &[u8], addresses: [u8; 32]) -> Vec<u8> {
        let which = if udp { protocol::UDP } else { protocol::TCP };
        let l4 = if udp { udp::HEADER } else { tcp::HEADER };
        let len = l4 + payload.len();
        let mut packet = match v6 {
            true => [&[0x60, 0, 0, 0, (len >> 8) as u8, len as u8, which, 64][..], &addresses].concat(),
            false => {
                let total = 20 + len;
                let start = [0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, which, 0, 0];
                [&start[..], &addresses[..8]].concat()
            }
        };
        let at = packet.len();
        packet.resize(at + l4, 3);
        match udp {
            true => packet[at + 4..at + 6].copy_from_slice(&(len as u16).to_be_bytes()),
            false => packet[at + tcp::OFFSET] = 0x50,
        }
        let field = at + if udp { udp::CHECKSUM } else { tcp::CHECKSUM };
        packet[field..field + 2].fill(0);
        packet.extend(payload);
        packet
    }

    /// The pseudo-header's sum, 16 bits at a time.
    fn pseudo(packet: &[u8], v6: bool, udp: bool) -> u16 {
        let (addresses, l4) = if v6 { (&packet[8..40], 40) } else { (&packet[12..20], 20) };
        let mut sum = if udp { 17 } else { 6 } + (packet.len() - l4) as u32;
        for word in addresses.chunks(2) {
            sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
        }
        while sum >> 16 > 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn what_was_left_to_the_device_is_done(
            v6: bool, udp: bool, payload in proptest::collection::vec(any::<u8>(), 0..200), addresses: [u8; 32],
        ) {
            let mut bytes = packet(v6, udp, &payload, addresses);
            let l4 = if v6 { 40 } else { 20 };
            let field = l4 + if udp { udp::CHECKSUM } else { tcp::CHECKSUM };
            let partial = pseudo(&bytes, v6, udp);
            bytes[field..field + 2].copy_from_slice(&partial.to_be_bytes());
            let mut completed = Completed::EMPTY;
            let (head, body) = completed.of(&Ip::parse(&bytes).unwrap());
            prop_assert!(!body.is_empty() || payload.is_empty());
            let whole = [head, body].concat();
            prop_assert_eq!(whole.len(), bytes.len());
            let (which, l4) = (if udp { protocol::UDP } else { protocol::TCP }, &whole[l4..]);
            let right = match v6 {
                true => is_l4_right(whole[8..].first_chunk::<32>().unwrap(), which, l4),
                false => is_l4_right(whole[12..].first_chunk::<8>().unwrap(), which, l4),
            };
            prop_assert!(right);
            // Done, it stays.
            let again = [whole.clone()];
            let mut completed = Completed::EMPTY;
            let (head, body) = completed.of(&Ip::parse(&again[0]).unwrap());
            prop_assert_eq!([head, body].concat(), whole);
        }

        #[test]
        fn nonsense_stays_as_it_is(bytes in proptest::collection::vec(any::<u8>(), 20..120)) {
            if let Ok(ip) = Ip::parse(&bytes) {
                let mut completed = Completed::EMPTY;
                let (head, body) = completed.of(&ip);
                prop_assert_eq!(head.len() + body.len(), ip.bytes().len());
            }
        }
    }
}
