//! From a frame to the IP packet in it.

use forebay_wire::ipv4;

use super::{
    AF_V4, ETHERTYPE_V4, ETHERTYPE_V6, Family, IpAt, LengthField, MAX_LABELS, MAX_TAGS, NotIp, PPP_V4,
    PPP_V6, Protocol, family_of,
};
use crate::LinkType;

/// Ethertypes of VLAN tags: 802.1Q, 802.1ad, and what was used before that for outer tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// PPPoE in its session stage (RFC 2516 5.3); PPP without a session (IANA's list of ethertypes); MPLS (RFC 5332 3).
const PPPOE_SESSION: u16 = 0x8864;
const PPP: u16 = 0x880b;
const MPLS: [u16; 2] = [0x8847, 0x8848];

/// Smaller values of an ethertype field are a length (IEEE 802.3); Linux's cooked captures have one for the LLC that follows.
const ETHERTYPE_MIN: u16 = 0x0600;
const COOKED_LLC: u16 = 0x0004;

/// LLC of SNAP, unnumbered information, and the organisation codes whose protocols are ethertypes: of RFC 1042, and of bridges
/// (IEEE 802.1H).
const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
const ETHERTYPES_OF: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// Finds the IP packet in a frame; VLAN tags, LLC with SNAP, PPPoE, PPP and MPLS labels before it are passed over.
///
/// Only what leads to the packet and its version is looked at: the packet itself may be damaged.
#[inline]
pub fn locate(link: LinkType, frame: &[u8]) -> Result<IpAt, NotIp> {
    match link {
        LinkType::Ethernet => by_ethertype(frame, 12, 14, true),
        LinkType::Raw => at(frame, 0, None, Protocol::Absent),
        LinkType::Ipv4 => at(frame, 0, Some(Family::V4), Protocol::Absent),
        LinkType::Ipv6 => at(frame, 0, Some(Family::V6), Protocol::Absent),
        LinkType::LinuxSll => by_ethertype(frame, 14, 16, false),
        LinkType::LinuxSll2 => by_ethertype(frame, 0, 20, false),
        LinkType::Null | LinkType::Loop => by_address_family(link, frame),
        LinkType::Ppp | LinkType::PppHdlc => by_ppp_protocol(frame, 0),
        LinkType::Other(code) => Err(NotIp::LinkType(code)),
    }
}

/// The packet at `start`, if its version is the `expected` one.
#[inline]
fn at(frame: &[u8], start: usize, expected: Option<Family>, protocol: Protocol) -> Result<IpAt, NotIp> {
    match frame.get(start..) {
        Some(packet @ [_, ..]) => {
            Ok(IpAt { start, family: family_of(packet, expected)?, protocol, length: None })
        }
        _ => Err(NotIp::TooShort { found: frame.len(), expected: start + 1 }),
    }
}

/// Follows an ethertype at `field` through tags, the first of which stands at `next`. Small values are lengths where the frame
/// `has_lengths`, as Ethernet's.
#[inline]
fn by_ethertype(frame: &[u8], mut field: usize, mut next: usize, has_lengths: bool) -> Result<IpAt, NotIp> {
    let (mut tags, mut has_snap, mut length) = (0, false, None);
    while tags <= MAX_TAGS {
        let ethertype = u16::from_be_bytes(bytes(frame, field)?);
        let family = match ethertype {
            ETHERTYPE_V4 => Family::V4,
            ETHERTYPE_V6 => Family::V6,
            tag if TAGS.contains(&tag) => {
                // A tag is two bytes of control information and the next ethertype.
                tags += 1;
                (field, next) = (next + 2, next + 4);
                continue;
            }
            // Two lengths would have to be kept true; no device sends such frames.
            PPPOE_SESSION if length.is_none() => return by_pppoe(frame, next),
            PPP => return by_ppp_protocol(frame, next).map(|found| found.within(length)),
            label if MPLS.contains(&label) => {
                return by_labels(frame, next).map(|found| found.within(length));
            }
            small if small < ETHERTYPE_MIN => {
                let may_be = has_lengths || small == COOKED_LLC;
                if has_snap || !may_be || !is_snap(frame, next) {
                    return Err(NotIp::Llc(small));
                }
                has_snap = true;
                length = has_lengths.then_some(LengthField::Ieee8023 { at: field as u8 });
                (field, next) = (next + 6, next + 8);
                continue;
            }
            other => return Err(NotIp::Ethertype(other)),
        };
        let found = at(frame, next, Some(family), Protocol::Ethertype { at: field as u8 });
        return found.map(|found| found.within(length));
    }
    Err(NotIp::TooManyTags)
}

/// Whether LLC with SNAP stands at `from`, with an ethertype for its protocol.
fn is_snap(frame: &[u8], from: usize) -> bool {
    let header: Result<[u8; 6], NotIp> = bytes(frame, from);
    header.is_ok_and(|[dsap, ssap, control, code @ ..]| {
        [dsap, ssap, control] == SNAP && ETHERTYPES_OF.contains(&code)
    })
}

/// Version and type, code, session and length of PPPoE at `from`, then PPP's protocol (RFC 2516 4).
fn by_pppoe(frame: &[u8], from: usize) -> Result<IpAt, NotIp> {
    let [_, code, ..]: [u8; 6] = bytes(frame, from)?;
    if code != 0 {
        return Err(NotIp::Ethertype(PPPOE_SESSION));
    }
    let found = by_ppp_protocol(frame, from + 6)?;
    Ok(found.within(Some(LengthField::Pppoe { at: (from + 4) as u8 })))
}

/// Labels at `next` up to the one that is marked as the last (RFC 3032 2.1); what follows has no field that names it.
fn by_labels(frame: &[u8], mut next: usize) -> Result<IpAt, NotIp> {
    for _ in 0..MAX_LABELS {
        let [.., bottom, _]: [u8; 4] = bytes(frame, next)?;
        next += 4;
        if bottom & 1 == 1 {
            return at(frame, next, None, Protocol::Absent);
        }
    }
    Err(NotIp::TooManyLabels)
}

/// The length of the IP packet that [`locate`] found, of whose frame `captured` was kept and which had `original_len` bytes
/// on the wire. Where offload left the length to the network card (IPv4's total length or IPv6's payload length is 0), it
/// is what the frame has; `None`: not even that is known.
pub fn ip_length(at: &IpAt, captured: &[u8], original_len: u32) -> Option<usize> {
    let packet = captured.get(at.start..)?;
    let be16 =
        |from: usize| packet.get(from..from + 2).map(|two| usize::from(two[0]) << 8 | usize::from(two[1]));
    let of_frame = || (original_len as usize).max(captured.len()).checked_sub(at.start);
    match at.family {
        Family::V4 => match be16(2)? {
            0 => of_frame(),
            length => Some(length),
        },
        // Of next header 59 a payload of 0 bytes is whole, and what follows is the frame's padding (RFC 8200 4.7).
        Family::V6 => match (be16(4)?, packet.get(6)?) {
            (0, 59) => Some(40),
            (0, _) => of_frame(),
            (length, _) => Some(40 + length),
        },
    }
}

/// Writes the length of an IP packet whose own offload has left at 0, if it can be written: of longer packets none can.
pub fn fill_in_length(family: Family, packet: &mut [u8]) {
    let length = packet.len();
    match (family, packet) {
        (Family::V4, packet @ [_, _, 0, 0, ..]) if length <= 0xffff => {
            let header = usize::from(packet[0] & 15) * 4;
            if (20..=length).contains(&header) {
                ipv4::rewrite(packet, header, length as u16, packet[9]);
            }
        }
        (Family::V6, [_, _, _, _, high @ 0, low @ 0, next, ..])
            if *next != 59 && (40..=40 + 0xffff).contains(&length) =>
        {
            [*high, *low] = ((length - 40) as u16).to_be_bytes();
        }
        _ => {}
    }
}

#[inline]
fn by_address_family(link: LinkType, frame: &[u8]) -> Result<IpAt, NotIp> {
    let field: [u8; 4] = bytes(frame, 0)?;
    // Families are small numbers: one with its upper half in use was written the other way round.
    let native = u32::from_le_bytes(field);
    let little_endian = link == LinkType::Null && native <= 0xffff;
    let value = if little_endian { native } else { u32::from_be_bytes(field) };
    // IPv6: Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
    let (family, v6) = match value {
        found if found == AF_V4.into() => (Family::V4, if link == LinkType::Loop { 24 } else { 30 }),
        10 | 24 | 28 | 30 => (Family::V6, value as u8),
        other => return Err(NotIp::AddressFamily(other)),
    };
    at(frame, 4, Some(family), Protocol::AddressFamily { little_endian, v6 })
}

/// PPP, with or without address and control bytes (RFC 1661 6.6), protocol compressed or not.
#[inline]
fn by_ppp_protocol(frame: &[u8], from: usize) -> Result<IpAt, NotIp> {
    let framed = matches!(frame.get(from..), Some([0xff, 0x03, ..] | [0xff]));
    let field = if framed { from + 2 } else { from };
    // The last byte of a protocol number is odd, all before are even (RFC 1661 2).
    let [first] = bytes(frame, field)?;
    let compressed = first & 1 == 1;
    let (protocol, start) = match compressed {
        true => (first.into(), field + 1),
        false => (u16::from_be_bytes(bytes(frame, field)?), field + 2),
    };
    let family = match protocol {
        found if found == PPP_V4.into() => Family::V4,
        found if found == PPP_V6.into() => Family::V6,
        other => return Err(NotIp::PppProtocol(other)),
    };
    at(frame, start, Some(family), Protocol::Ppp { at: field as u8, compressed })
}

/// The `N` bytes at `from`.
#[inline]
fn bytes<const N: usize>(frame: &[u8], from: usize) -> Result<[u8; N], NotIp> {
    let found = frame.get(from..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().ok_or(NotIp::TooShort { found: frame.len(), expected: from + N })
}
