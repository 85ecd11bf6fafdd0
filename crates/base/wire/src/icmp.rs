//! ICMP messages about packets that are too big: IPv4's "fragmentation needed" (RFC 792, RFC 1191 4) and
//! IPv6's "packet too big" (RFC 4443 3.2), to send and to read.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::ipv4::{DONT_FRAGMENT, OFFSET_MASK};
use crate::{Ip, Ipv4, Ipv6, ipv4, ipv6, protocol};

/// Longest message about an IPv4 packet, in bytes (RFC 1812 4.3.2.3).
pub const MAX_V4: usize = 576;
/// Longest message about an IPv6 packet, in bytes: the smallest MTU there is (RFC 4443 2.4 c).
pub const MAX_V6: usize = ipv6::MIN_MTU as usize;

/// Length of type, code, checksum and the word behind them.
const HEADER: usize = 8;
/// ICMP: destination unreachable, fragmentation needed.
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
/// ICMPv6: packet too big.
const PACKET_TOO_BIG: [u8; 2] = [2, 0];
/// Precedence "internetwork control" (RFC 1812 4.3.2.5).
const CONTROL: u8 = 0xc0;
const TTL: u8 = 64;

/// Writes at the begin of `room` the ICMP error that reports to the source of `original` that no more than `mtu`
/// bytes go through; returns its length. `from` is the address of the sender, of the same family.
///
/// `None` if no message may be sent: about an ICMP error (or what may be one), to a source that is no single
/// host, about an IPv4 packet to many hosts or a later fragment (RFC 1122 3.2.2, RFC 1812 4.3.2.7, RFC 4443
/// 2.4 e); or if `room` is shorter than the message, which [`MAX_V4`] and [`MAX_V6`] bound. An IPv6
/// source is never told less than 1,280 bytes (RFC 8201 4), and a multicast one is told, too: that is how
/// it learns its MTU (RFC 4443 2.4 e.3).
pub fn packet_too_big(original: &[u8], mtu: u16, from: IpAddr, room: &mut [u8]) -> Option<usize> {
    match (Ip::parse(original).ok()?, from) {
        (Ip::V4(original), IpAddr::V4(from)) if deserves_v4(&original) => {
            too_big_v4(&original, mtu, from, room)
        }
        (Ip::V6(original), IpAddr::V6(from)) if deserves_v6(&original) => {
            too_big_v6(&original, mtu, from, room)
        }
        _ => None,
    }
}

fn too_big_v4(original: &Ipv4<'_>, mtu: u16, from: Ipv4Addr, room: &mut [u8]) -> Option<usize> {
    const BEFORE: usize = ipv4::MIN_HEADER + HEADER;
    let quote = &original.bytes()[..original.bytes().len().min(MAX_V4 - BEFORE)];
    let total = BEFORE + quote.len();
    let message = room.get_mut(..total)?;
    message[BEFORE..].copy_from_slice(quote);
    let (header, body) = message.split_at_mut(ipv4::MIN_HEADER);
    body[..4].copy_from_slice(&[FRAGMENTATION_NEEDED[0], FRAGMENTATION_NEEDED[1], 0, 0]);
    body[4..8].copy_from_slice(&u32::from(mtu).to_be_bytes());
    let checksum = Sum::default().bytes(body).finish();
    body[2..4].copy_from_slice(&checksum.to_be_bytes());

    header[..4].copy_from_slice(&[0x45, CONTROL, (total >> 8) as u8, total as u8]);
    // Never fragmented, so it needs no identification (RFC 6864 4.1).
    header[4..8].copy_from_slice(&u32::from(DONT_FRAGMENT).to_be_bytes());
    header[8..12].copy_from_slice(&[TTL, protocol::ICMP, 0, 0]);
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&original.source().octets());
    let checksum = Sum::default().bytes(header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(total)
}

fn too_big_v6(original: &Ipv6<'_>, mtu: u16, from: Ipv6Addr, room: &mut [u8]) -> Option<usize> {
    const BEFORE: usize = ipv6::HEADER + HEADER;
    let quote = &original.bytes()[..original.bytes().len().min(MAX_V6 - BEFORE)];
    let body_len = HEADER + quote.len();
    let message = room.get_mut(..ipv6::HEADER + body_len)?;
    message[BEFORE..].copy_from_slice(quote);
    let (header, body) = message.split_at_mut(ipv6::HEADER);
    header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    header[4..8].copy_from_slice(&[(body_len >> 8) as u8, body_len as u8, protocol::ICMPV6, TTL]);
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&original.source().octets());

    body[..4].copy_from_slice(&[PACKET_TOO_BIG[0], PACKET_TOO_BIG[1], 0, 0]);
    body[4..8].copy_from_slice(&u32::from(mtu.max(ipv6::MIN_MTU)).to_be_bytes());
    let checksum = sum_v6(header, body).finish();
    body[2..4].copy_from_slice(&checksum.to_be_bytes());
    Some(ipv6::HEADER + body_len)
}

/// Pseudo-header (RFC 8200 8.1) and ICMPv6 message, which has at most 65,535 bytes.
fn sum_v6(header: &[u8], body: &[u8]) -> Sum {
    let pseudo = Sum::default().bytes(&header[8..40]).word(protocol::ICMPV6.into()).word(body.len() as u16);
    pseudo.bytes(body)
}

fn deserves_v4(original: &Ipv4<'_>) -> bool {
    let [network, ..] = original.source().octets();
    let one_source = !matches!(network, 0 | 127 | 224..);
    let to_one = !original.destination().is_multicast() && !original.destination().is_broadcast();
    let first_fragment = original.fragment_word() & OFFSET_MASK == 0;
    // Echo, router discovery, timestamp, information, address mask, extended echo: what is known to be no error.
    let kind = original.bytes().get(original.header_len());
    let error =
        original.protocol() == protocol::ICMP && !matches!(kind, Some(0 | 8 | 9 | 10 | 13..=18 | 42 | 43));
    one_source && to_one && first_fragment && !error
}

fn deserves_v6(original: &Ipv6<'_>) -> bool {
    const REDIRECT: u8 = 137;
    let source = original.source();
    if source.is_unspecified() || source.is_multicast() || source.is_loopback() {
        return false;
    }
    // What cannot be read to its end may be an error as well.
    let Ok(upper) = original.upper_layer() else { return false };
    if upper.protocol != protocol::ICMPV6 {
        return true;
    }
    // A fragment header names what stands behind it; only the first fragment shows the message's type.
    let offset = original.bytes().get(upper.named_at + 2..upper.named_at + 4);
    let later = upper.is_fragment && offset.is_none_or(|offset| offset[0] != 0 || offset[1] & 0xf8 != 0);
    let kind = original.bytes().get(upper.at);
    !later && kind.is_some_and(|&kind| kind >= 128 && kind != REDIRECT)
}

/// What a received message about a packet that was too big says. Nothing vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig<'a> {
    /// The MTU of the next hop, zero if the router did not say (RFC 1191 5).
    pub mtu: u32,
    /// The begin of the packet that was too big.
    pub quoted: &'a [u8],
}

impl<'a> TooBig<'a> {
    /// Reads such a message in an IP packet; `None` for any other packet, and for one with a wrong checksum.
    pub fn parse(packet: &'a [u8]) -> Option<TooBig<'a>> {
        let (kind, body, sum) = match Ip::parse(packet).ok()? {
            Ip::V4(ip) if ip.protocol() == protocol::ICMP && !ip.is_fragment() => {
                let body = ip.bytes().get(ip.header_len()..)?;
                (FRAGMENTATION_NEEDED, body, Sum::default().bytes(body))
            }
            Ip::V6(ip) => {
                let upper = ip.upper_layer().ok()?;
                let body = ip.bytes().get(upper.at..)?;
                if upper.protocol != protocol::ICMPV6 || upper.is_fragment {
                    return None;
                }
                (PACKET_TOO_BIG, body, sum_v6(ip.bytes(), body))
            }
            Ip::V4(_) => return None,
        };
        let (header, quoted) = body.split_first_chunk::<HEADER>()?;
        if header[..2] != kind || sum.finish() != 0 {
            return None;
        }
        let mtu = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        // IPv4 has the MTU in the low half; the other one is unused, or a length (RFC 4884).
        Some(TooBig { mtu: if kind == PACKET_TOO_BIG { mtu } else { mtu & 0xffff }, quoted })
    }
}
