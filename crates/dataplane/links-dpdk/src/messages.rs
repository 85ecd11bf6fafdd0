//! Messages by which hosts of an Ethernet find each other: ARP (RFC 826) and Neighbour Discovery (RFC 4861); and echo
//! requests. Messages are read once here, whole and checked, and written as whole frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_wire::checksum::Sum;
use forebay_wire::{Ip, Ipv6, protocol};

use crate::{ETHERNET, Mac};

/// All hosts of the Ethernet.
pub const BROADCAST: Mac = [0xff; 6];

/// Ethernet types.
pub const IPV4: [u8; 2] = [0x08, 0x00];
pub const ARP: [u8; 2] = [0x08, 0x06];
pub const IPV6: [u8; 2] = [0x86, 0xdd];

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// Flags of an advertisement.
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// What a message of a neighbour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who has `target`?
    Asks {
        /// Who asks, and its address on the Ethernet; `None`: one that looks whether others have the address already.
        from: Option<(IpAddr, Mac)>,
        target: IpAddr,
    },
    /// I have it.
    Says {
        who: IpAddr,
        mac: Mac,
        /// Whether a known address is to be replaced.
        overrides: bool,
    },
}

/// The Ethernet header of a frame.
pub fn header(to: Mac, from: Mac, kind: [u8; 2]) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&kind);
    header
}

/// The frames' address of a group (RFC 1112 6.4, RFC 2464 7); `None` for an address of one host.
pub fn group(address: IpAddr) -> Option<Mac> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some(BROADCAST),
        IpAddr::V4(v4) if v4.is_multicast() => {
            let [_, b, c, d] = v4.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(v6) if v6.is_multicast() => {
            let [.., a, b, c, d] = v6.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

/// Whether an Ethernet address is that of one host.
pub fn is_of_one(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// Reads ARP behind the Ethernet header; `None` for anything that is not whole, or not of IPv4 on an Ethernet.
pub fn read_arp(bytes: &[u8]) -> Option<Message> {
    const HEAD: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
    let message: &[u8; 28] = bytes.first_chunk()?;
    let (head, rest) = message.split_first_chunk::<6>()?;
    if *head != HEAD {
        return None;
    }
    let mac: Mac = *rest[2..].first_chunk()?;
    let v4 = |at: usize| rest[at..].first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
    let (sender, target) = (v4(8)?, v4(18)?);
    if !is_of_one(mac) || sender.is_multicast() || sender.is_broadcast() {
        return None;
    }
    let who = IpAddr::V4(sender);
    match (rest[..2].first_chunk::<2>()?, sender.is_unspecified()) {
        // RFC 5227 1.1: an address that is looked for before it is used.
        ([0, 1], true) => Some(Message::Asks { from: None, target: target.into() }),
        ([0, 1], false) if sender == target => Some(Message::Says { who, mac, overrides: true }),
        ([0, 1], false) => Some(Message::Asks { from: Some((who, mac)), target: target.into() }),
        ([0, 2], false) => Some(Message::Says { who, mac, overrides: true }),
        _ => None,
    }
}

/// Reads a solicitation or an advertisement (RFC 4861 7.1) that came in a frame of `sender`; `None` for any other packet, and for
/// one that the RFC has hosts discard.
pub fn read_nd(ip: &Ipv6<'_>, sender: Mac) -> Option<Message> {
    let body = ip.bytes().get(forebay_wire::ipv6::HEADER..)?;
    let head: &[u8; 24] = body.first_chunk()?;
    // A hop limit of 255: no router has passed it on.
    if ip.next_header() != protocol::ICMPV6 || ip.hop_limit() != 255 || head[1] != 0 {
        return None;
    }
    if sum_v6(ip.source(), ip.destination(), body) != 0 {
        return None;
    }
    let target = Ipv6Addr::from(*head[8..].first_chunk::<16>()?);
    if target.is_multicast() {
        return None;
    }
    let option = |wanted| option(&body[24..], wanted);
    match head[0] {
        SOLICITATION if ip.source().is_unspecified() => {
            let is_right = ip.destination() == solicited(target) && option(SOURCE_ADDRESS)?.is_none();
            is_right.then_some(Message::Asks { from: None, target: target.into() })
        }
        SOLICITATION => {
            // RFC 4861 4.3: a solicitation to one host may lack the option.
            let mac = option(SOURCE_ADDRESS)?.unwrap_or(sender);
            is_of_one(mac)
                .then_some(Message::Asks { from: Some((ip.source().into(), mac)), target: target.into() })
        }
        ADVERTISEMENT => {
            if ip.destination().is_multicast() && head[4] & SOLICITED != 0 {
                return None;
            }
            let mac = option(TARGET_ADDRESS)??;
            Some(Message::Says { who: target.into(), mac, overrides: head[4] & OVERRIDE != 0 })
        }
        _ => None,
    }
}

/// The Ethernet address in an option; the outer `None`: options that are not whole.
fn option(mut options: &[u8], wanted: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while !options.is_empty() {
        let (kind, len) = (options[0], usize::from(*options.get(1)?) * 8);
        let (option, rest) = options.split_at_checked(len).filter(|_| len > 0)?;
        if kind == wanted && len == 8 {
            found = option[2..].first_chunk::<6>().copied().filter(|mac| is_of_one(*mac));
        }
        options = rest;
    }
    Some(found)
}

/// The group that a host is asked by for its address (RFC 4291 2.7.1).
pub fn solicited(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// A frame that asks for an address, of one host alone if that is known already.
pub fn ask(own: (IpAddr, Mac), target: IpAddr, known: Option<Mac>) -> Vec<u8> {
    match (own.0, target) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let to_mac = known.unwrap_or(BROADCAST);
            arp(1, (from, own.1), (to, [0; 6]), to_mac)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (mac, group) = match known {
                Some(mac) => (mac, to),
                None => (group(solicited(to).into()).unwrap_or(BROADCAST), solicited(to)),
            };
            nd((own.1, mac), (from, group), SOLICITATION, 0, to, SOURCE_ADDRESS)
        }
        _ => vec![],
    }
}

/// A frame that answers one who asked for an own address; `to` is `None` where that one has no address yet.
pub fn answer(own: (IpAddr, Mac), to: Option<(IpAddr, Mac)>) -> Vec<u8> {
    match (own.0, to) {
        (IpAddr::V4(from), Some((IpAddr::V4(to), mac))) => arp(2, (from, own.1), (to, mac), mac),
        // RFC 5227 2.1.1: a probe is answered as a request is, by the sender of the frame.
        (IpAddr::V4(from), _) => arp(2, (from, own.1), (Ipv4Addr::UNSPECIFIED, [0; 6]), BROADCAST),
        (IpAddr::V6(from), Some((IpAddr::V6(to), mac))) => {
            let flags = ROUTER | SOLICITED | OVERRIDE;
            nd((own.1, mac), (from, to), ADVERTISEMENT, flags, from, TARGET_ADDRESS)
        }
        (IpAddr::V6(from), _) => announce((IpAddr::V6(from), own.1)),
    }
}

/// A frame that tells all hosts of the Ethernet who has an own address.
pub fn announce(own: (IpAddr, Mac)) -> Vec<u8> {
    match own.0 {
        IpAddr::V4(v4) => arp(1, (v4, own.1), (v4, [0; 6]), BROADCAST),
        IpAddr::V6(v6) => {
            const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
            let to = group(ALL_NODES.into()).unwrap_or(BROADCAST);
            nd((own.1, to), (v6, ALL_NODES), ADVERTISEMENT, ROUTER | OVERRIDE, v6, TARGET_ADDRESS)
        }
    }
}

fn arp(operation: u8, from: (Ipv4Addr, Mac), to: (Ipv4Addr, Mac), to_mac: Mac) -> Vec<u8> {
    let mut frame = header(to_mac, from.1, ARP).to_vec();
    frame.extend([0, 1, 0x08, 0x00, 6, 4, 0, operation]);
    frame.extend(from.1);
    frame.extend(from.0.octets());
    frame.extend(to.1);
    frame.extend(to.0.octets());
    frame
}

/// A solicitation or an advertisement of `target` with the own Ethernet address as its option.
fn nd(
    (own, to_mac): (Mac, Mac),
    (from, to): (Ipv6Addr, Ipv6Addr),
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    option: u8,
) -> Vec<u8> {
    const LEN: u8 = 32;
    let mut body = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    body.extend(target.octets());
    body.extend([option, 1]);
    body.extend(own);
    let checksum = sum_v6(from, to, &body);
    body[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = header(to_mac, own, IPV6).to_vec();
    frame.extend([0x60, 0, 0, 0, 0, LEN, protocol::ICMPV6, 255]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(body);
    frame
}

/// The reply to an echo request (RFC 792, RFC 4443 4.2), as a packet; `None` for any other packet. Its checksum is that of the
/// request, corrected for the type, so that an error in it stays one.
pub fn echo(ip: &Ip<'_>) -> Option<Vec<u8>> {
    let (at, request, reply) = match ip {
        Ip::V4(ip) if ip.protocol() == protocol::ICMP && !ip.is_fragment() => (ip.header_len(), 8, 0),
        // Options would have to be turned around (RFC 1122 3.2.2.6); hardly anybody sends them.
        Ip::V6(ip) if ip.next_header() == protocol::ICMPV6 => (forebay_wire::ipv6::HEADER, 128, 129),
        _ => return None,
    };
    let mut packet = ip.bytes().to_vec();
    let head = packet.get_mut(at..at + 8)?;
    if head[..2] != [request, 0] {
        return None;
    }
    let old = u16::from_be_bytes([head[2], head[3]]);
    let words = [u16::from_be_bytes([request, 0]), u16::from_be_bytes([reply, 0])];
    let checksum = forebay_wire::checksum::update(old, words[0], words[1]);
    head[0] = reply;
    head[2..4].copy_from_slice(&checksum.to_be_bytes());
    match ip {
        Ip::V4(_) => {
            let (from, to) = packet[12..20].split_at_mut(4);
            from.swap_with_slice(to);
            (packet[8], packet[10], packet[11]) = (64, 0, 0);
            let checksum = Sum::ZERO.bytes(&packet[..at]).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Ip::V6(_) => {
            let (from, to) = packet[8..40].split_at_mut(16);
            from.swap_with_slice(to);
            packet[7] = 64;
        }
    }
    Some(packet)
}

/// The checksum of an ICMPv6 message (RFC 4443 2.3): zero for one whose own is right.
fn sum_v6(from: Ipv6Addr, to: Ipv6Addr, body: &[u8]) -> u16 {
    let words = [body.len() as u16, u16::from(protocol::ICMPV6)];
    let sum = Sum::ZERO.bytes(&from.octets()).bytes(&to.octets()).word(words[0]).word(words[1]);
    sum.bytes(body).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MACS: [Mac; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

    fn read(frame: &[u8]) -> Option<Message> {
        let (head, rest) = frame.split_at(ETHERNET);
        match [head[12], head[13]] {
            ARP => read_arp(rest),
            _ => match Ip::parse(rest) {
                Ok(Ip::V6(ip)) => read_nd(&ip, *head[6..].first_chunk().unwrap()),
                _ => None,
            },
        }
    }

    #[test]
    fn messages_read_back_as_they_were_meant() {
        for (own, other) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let (own, other): (IpAddr, IpAddr) = (own.parse().unwrap(), other.parse().unwrap());
            let from = Some((own, MACS[0]));
            for known in [None, Some(MACS[1])] {
                let frame = ask((own, MACS[0]), other, known);
                assert_eq!(read(&frame), Some(Message::Asks { from, target: other }));
                let to = known.unwrap_or(if own.is_ipv4() { BROADCAST } else { [0x33, 0x33, 0xff, 0, 0, 2] });
                assert_eq!(frame[..6], to);
            }
            let says = Some(Message::Says { who: own, mac: MACS[0], overrides: true });
            let frame = answer((own, MACS[0]), Some((other, MACS[1])));
            assert_eq!((read(&frame), &frame[..6]), (says, &MACS[1][..]));
            assert_eq!(read(&announce((own, MACS[0]))), says);
            assert_eq!(read(&answer((own, MACS[0]), None)), says);
        }
    }

    #[test]
    fn what_a_host_must_discard_is_discarded() {
        let (own, other) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let good = ask((own, MACS[0]), other, None);
        assert!(read(&good).is_some());
        // A hop limit that a router has lowered, a code, a checksum, an option of no length, a target that is a group.
        for (at, value) in [(21, 254), (55, 1), (56, 0x55), (79, 0), (62, 0xff)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(read(&bad), None, "byte {at}");
        }
        let arp = ask(("192.0.2.1".parse().unwrap(), MACS[0]), "192.0.2.2".parse().unwrap(), None);
        assert!(read(&arp).is_some());
        // Another hardware, an address of a group as the sender's, another operation, a length.
        for (at, value) in [(15, 6), (22, 0x01), (28, 224), (21, 3), (18, 8)] {
            let mut bad = arp.clone();
            bad[at] = value;
            assert_eq!(read(&bad), None, "byte {at}");
        }
    }

    #[test]
    fn echo_requests_are_turned_around() {
        let mut v4 = vec![0x45, 0, 0, 32, 1, 2, 0, 0, 9, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        v4.extend([8, 0, 0, 0, 0, 1, 0, 2, 5, 6, 7, 8]);
        let checksum = Sum::ZERO.bytes(&v4[20..]).finish();
        v4[22..24].copy_from_slice(&checksum.to_be_bytes());
        let reply = echo(&Ip::parse(&v4).unwrap()).unwrap();
        assert_eq!((&reply[12..16], &reply[16..20], reply[20]), (&v4[16..20], &v4[12..16], 0));
        assert_eq!(Sum::ZERO.bytes(&reply[..20]).finish(), 0);
        assert_eq!(Sum::ZERO.bytes(&reply[20..]).finish(), 0);
        assert_eq!(echo(&Ip::parse(&reply).unwrap()), None);
        let (from, to): (Ipv6Addr, Ipv6Addr) = ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let mut body = vec![128, 0, 0, 0, 0, 1, 0, 2, 9];
        let checksum = sum_v6(from, to, &body);
        body[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut v6 = vec![0x60, 0, 0, 0, 0, 9, protocol::ICMPV6, 3];
        v6.extend(from.octets().into_iter().chain(to.octets()).chain(body));
        let reply = echo(&Ip::parse(&v6).unwrap()).unwrap();
        assert_eq!(sum_v6(to, from, &reply[40..]), 0);
        assert_eq!((reply[40], &reply[8..24]), (129, &to.octets()[..]));
    }

    proptest! {
        #[test]
        fn nothing_that_can_come_is_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..3) {
            let mut bytes = bytes;
            read_arp(&bytes);
            // Packets that look like what is looked into.
            if let (Some(first), true) = (bytes.first_mut(), kind > 0) {
                *first = if kind == 1 { 0x45 } else { 0x60 };
            }
            let len = bytes.len();
            if kind == 2 && len >= 40 {
                bytes[4..8].copy_from_slice(&[0, (len - 40) as u8, protocol::ICMPV6, 255]);
            } else if kind == 1 && len >= 20 {
                (bytes[2], bytes[3], bytes[9]) = (0, len as u8, 1);
            }
            if let Ok(ip) = Ip::parse(&bytes) {
                echo(&ip);
                if let Ip::V6(ip) = ip {
                    read_nd(&ip, [2; 6]);
                }
            }
        }
    }
}
