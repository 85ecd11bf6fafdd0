//! As much of TCP (RFC 9293) as a tunnel has to touch: the maximum segment size that SYNs announce.

use crate::checksum::update;
use crate::{Ip, protocol};

/// Length of the header without options, in bytes.
const MIN_HEADER: usize = 20;
const SYN: u8 = 0x02;
/// Option kinds (RFC 9293 3.2).
const END: u8 = 0;
const NOTHING: u8 = 1;
const MSS: u8 = 2;
/// What a SYN without the option means, by IP version (RFC 9293 3.7.1).
const DEFAULTS: (u16, u16) = (536, 1220);

/// Lowers the maximum segment size in a TCP SYN so that segments fit in IP packets of `mtu` bytes, and mends the
/// checksum; whether it did. Other packets, and a SYN that announces none, are left alone: what that means
/// fits everywhere.
pub fn clamp_mss(packet: &mut [u8], mtu: u16) -> bool {
    let Some((at, value, most)) = announced(packet, mtu) else { return false };
    if value <= most {
        return false;
    }
    let tcp = at.tcp;
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    // The option may stand at an odd place: then its bytes are in two of the words that are summed up.
    let first = tcp + (at.value - tcp) / 2 * 2;
    let words = if first == at.value { 1 } else { 2 };
    let old = [word(packet, first), word(packet, first + 2 * (words - 1))];
    packet[at.value..at.value + 2].copy_from_slice(&most.to_be_bytes());
    let mut checksum = word(packet, tcp + 16);
    for (n, old) in old.into_iter().take(words).enumerate() {
        checksum = update(checksum, old, word(packet, first + 2 * n));
    }
    packet[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    true
}

struct Places {
    tcp: usize,
    value: usize,
}

/// Where a SYN announces its segment size, that size, and the one that fits.
fn announced(packet: &[u8], mtu: u16) -> Option<(Places, u16, u16)> {
    let (tcp, upper, fragment, default) = match Ip::parse(packet).ok()? {
        Ip::V4(ip) => (ip.header_len(), ip.protocol(), ip.is_fragment(), DEFAULTS.0),
        Ip::V6(ip) => {
            let upper = ip.upper_layer().ok()?;
            (upper.at, upper.protocol, upper.is_fragment, DEFAULTS.1)
        }
    };
    let header = packet.get(tcp..)?;
    if upper != protocol::TCP || fragment || header.len() < MIN_HEADER || header[13] & SYN == 0 {
        return None;
    }
    let options = header.get(MIN_HEADER..usize::from(header[12] >> 4) * 4)?;
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        let len = match kind {
            END => return None,
            NOTHING => 1,
            _ => usize::from(*options.get(at + 1).filter(|&&len| len >= 2)?),
        };
        if kind == MSS && len == 4 {
            let value = options.get(at + 2..at + 4)?;
            let value = u16::from_be_bytes([value[0], value[1]]);
            // IP's own header and TCP's least one; options come out of what was announced (RFC 6691).
            let most = mtu.saturating_sub((tcp + MIN_HEADER) as u16).max(default.min(value));
            return Some((Places { tcp, value: tcp + MIN_HEADER + at + 2 }, value, most));
        }
        at += len;
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::checksum::Sum;

    /// A SYN with these options, in IPv4 or IPv6, checksum right.
    fn syn(v6: bool, flags: u8, options: &[u8]) -> Vec<u8> {
        assert!(options.len().is_multiple_of(4));
        let mut tcp = vec![0x30, 0x39, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0, flags, 0xff, 0xff, 0, 0, 0, 0];
        tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
        tcp.extend_from_slice(options);
        let mut packet = if v6 {
            let mut header = vec![0x60, 0, 0, 0, 0, tcp.len() as u8, 6, 64];
            header.extend([0x20; 32]);
            header
        } else {
            let mut header = vec![0x45, 0, 0, 20 + tcp.len() as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
            header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            header
        };
        let at = packet.len();
        packet.extend(tcp);
        let checksum = tcp_sum(&packet, at).finish();
        packet[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn tcp_sum(packet: &[u8], at: usize) -> Sum {
        let addresses = if at == 20 { &packet[12..20] } else { &packet[8..40] };
        Sum::default().bytes(addresses).word(6).word((packet.len() - at) as u16).bytes(&packet[at..])
    }

    fn is_right(packet: &[u8], at: usize) -> bool {
        tcp_sum(packet, at).finish() == 0
    }

    #[test]
    fn what_is_too_large_is_lowered_and_the_checksum_stays_right() {
        for (v6, header, place) in [(false, 20, 22), (true, 40, 22)] {
            for options in [
                &[2, 4, 0x05, 0xb4][..],
                &[1, 2, 4, 0x23, 0x28, 0, 0, 0][..],
                &[1, 1, 2, 4, 0xff, 0xff, 1, 0][..],
                &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 0x05, 0xb4, 0, 0][..],
            ] {
                let mut packet = syn(v6, SYN, options);
                assert!(is_right(&packet, header));
                assert!(clamp_mss(&mut packet, 1400), "{options:?}");
                let at = header + place - 2 + options.windows(2).position(|pair| pair == [2, 4]).unwrap() + 2;
                let value = u16::from_be_bytes([packet[at], packet[at + 1]]);
                assert_eq!(usize::from(value), 1400 - header - 20);
                assert!(is_right(&packet, header), "{options:?}");
                assert!(!clamp_mss(&mut packet, 1400), "once is enough");
            }
        }
    }

    #[test]
    fn nothing_else_is_touched() {
        let mss = [2, 4, 0x05, 0xb4];
        for (flags, options) in [
            (0x10, &mss[..]),                        // no SYN
            (SYN, &[2, 4, 0x01, 0x00][..]),          // small already
            (SYN, &[][..]),                          // none announced
            (SYN, &[0, 2, 4, 5, 0xb4, 0, 0, 0][..]), // behind the end of the options
            (SYN, &[2, 3, 5, 0][..]),                // of another length
            (SYN, &[8, 200, 0, 0][..]),              // beyond the header
            (SYN, &[8, 0, 2, 4, 5, 0xb4, 0, 0][..]), // an option without length
        ] {
            let packet = syn(false, flags, options);
            let mut after = packet.clone();
            assert!(!clamp_mss(&mut after, 1400), "{options:?}");
            assert_eq!(after, packet, "{options:?}");
        }
        let mut fragment = syn(false, SYN, &mss);
        fragment[6] = 0x20;
        assert!(!clamp_mss(&mut fragment, 1400));
        for len in 0..44 {
            assert!(!clamp_mss(&mut syn(false, SYN, &mss)[..len], 1400));
        }
    }

    #[test]
    fn never_below_what_every_path_takes() {
        let mut packet = syn(false, SYN, &[2, 4, 0x05, 0xb4]);
        assert!(clamp_mss(&mut packet, 100));
        assert_eq!(packet[42..44], [0x02, 0x18]);
    }
}
