//! Classifies a received packet for the reassembler.

use std::net::{IpAddr, Ipv6Addr};

use forebay_wire::udp::NAT_T_PORT;
use forebay_wire::{Family, Fragment, Ip, esp, ipv6, protocol, udp};

use forebay_drops::DropReason;

/// The longest headers before the fragmentable part. Those of IPv4 have up to 60 bytes; IPv6's
/// hop-by-hop options and routing headers are rare and short where they are allowed at all.
pub const HEADER_ROOM: usize = 256;
/// Length of AH without its ICV (RFC 4302 2).
const AH_FIXED: usize = 12;
/// The largest length that either version's length field holds.
pub const MAX_LEN: usize = 65_535;

/// Names a datagram (RFC 791 3.2; RFC 8200 4.5, where the protocol does not count).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    protocol: u8,
    /// The SA that it came through, if through any: others cannot add to it.
    through: Option<u32>,
}

impl Key {
    /// Names nothing yet.
    pub const NONE: Key = Key {
        source: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        destination: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        identification: 0,
        protocol: 0,
        through: None,
    };

    /// Whose share of the memory its fragments are in.
    pub fn payer(&self) -> IpAddr {
        payer(self.source)
    }
}

/// A fragment, checked as far as it can be alone.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub key: Key,
    pub family: Family,
    /// The headers that every fragment repeats, without the fragment header.
    pub header: &'a [u8],
    /// Where these name what follows, and what that is.
    pub named_at: usize,
    pub protocol: u8,
    pub offset: usize,
    pub more: bool,
    pub payload: &'a [u8],
    /// The two bits of ECN.
    pub ecn: u8,
}

impl Part<'_> {
    /// Where it ends in the fragmentable part.
    pub fn end(&self) -> usize {
        self.offset + self.payload.len()
    }
}

/// What a packet is.
#[derive(Debug)]
pub enum Found<'a> {
    /// Not a fragment, or none of IPsec.
    Whole,
    /// A fragment that is a whole datagram.
    Atomic(Part<'a>),
    /// A part of a datagram.
    Part(Part<'a>),
    /// A fragment that cannot be one.
    Bad(DropReason),
    /// One without which its datagram is of no use.
    Hopeless(Key, DropReason),
}

/// Looks at a packet that came through this SA, if through any.
pub fn find(packet: &[u8], through: Option<u32>) -> Found<'_> {
    // What is wrong with other packets, prepare finds out.
    let Ok(ip) = Ip::parse(packet) else { return Found::Whole };
    let fragment = match Fragment::find(&ip) {
        Ok(Some(fragment)) => fragment,
        Ok(None) | Err(_) => return Found::Whole,
    };
    let family = ip.family();
    // Before its upper layer, the fragmentable part of IPv6 may have extension headers.
    match (family, fragment.protocol) {
        (_, protocol::ESP | protocol::AH | protocol::UDP) => {}
        (Family::V6, protocol::DESTINATION | protocol::ROUTING) => {}
        _ => return Found::Whole,
    }
    let (header, payload) = (&ip.bytes()[..fragment.header_len], &ip.bytes()[fragment.payload_at..]);
    let part = Part {
        key: Key {
            source: ip.source(),
            destination: ip.destination(),
            identification: fragment.identification,
            protocol: if family == Family::V4 { fragment.protocol } else { 0 },
            through,
        },
        family,
        header,
        named_at: fragment.named_at,
        protocol: fragment.protocol,
        offset: fragment.offset,
        more: fragment.more,
        payload,
        ecn: ip.traffic_class() & 3,
    };
    if family == Family::V6 && fragment.is_atomic() {
        return Found::Atomic(part);
    }
    // The length field counts all of an IPv4 packet, but not the fixed header of IPv6.
    let counted = match family {
        Family::V4 => header.len(),
        Family::V6 => header.len() - ipv6::HEADER,
    };
    let cut_inside = part.more && !payload.len().is_multiple_of(8);
    if payload.is_empty() || cut_inside || header.len() > HEADER_ROOM || counted + part.end() > MAX_LEN {
        return Found::Bad(DropReason::FragError);
    }
    if part.offset == 0
        && let Err(reason) = check_first(part.protocol, payload)
    {
        return Found::Hopeless(part.key, reason);
    }
    Found::Part(part)
}

/// Whether the begin of the fragmentable part holds the whole header chain (RFC 7112), and leads to IPsec.
fn check_first(mut protocol: u8, payload: &[u8]) -> Result<(), DropReason> {
    let mut rest = payload;
    for _ in 0..ipv6::MAX_EXTENSIONS {
        let len = match protocol {
            protocol::ESP => return enough(rest, esp::HEADER),
            protocol::AH => {
                let words = *rest.get(1).ok_or(DropReason::FragError)?;
                return enough(rest, AH_FIXED.max(8 + 4 * usize::from(words)));
            }
            protocol::UDP => {
                enough(rest, udp::HEADER)?;
                let port = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
                let ours = port(0) == NAT_T_PORT || port(2) == NAT_T_PORT;
                return if ours { Ok(()) } else { Err(DropReason::InNoIpsec) };
            }
            protocol::DESTINATION | protocol::ROUTING => {
                8 + 8 * usize::from(*rest.get(1).ok_or(DropReason::FragError)?)
            }
            protocol::FRAGMENT => return Err(DropReason::FragError),
            _ => return Err(DropReason::InNoIpsec),
        };
        enough(rest, len)?;
        protocol = rest[0];
        rest = &rest[len..];
    }
    Err(DropReason::FragError)
}

fn enough(bytes: &[u8], len: usize) -> Result<(), DropReason> {
    if bytes.len() < len { Err(DropReason::FragError) } else { Ok(()) }
}

/// The part of an address that pays for what it sends.
fn payer(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => source,
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
    }
}
