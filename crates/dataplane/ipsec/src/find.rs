//! Where ESP or AH stands in a packet.

use forebay_wire::udp::{self, NAT_T_PORT};
use forebay_wire::{Ah, Esp, Family, Ip, Ipv4, Malformed, Udp, ipv6, protocol};

use crate::sa::Encapsulation;
use forebay_drops::DropReason;

/// Where the ESP header of a received packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspAt {
    /// Offset of the SPI in the packet.
    pub at: usize,
    /// End of the ESP packet.
    pub end: usize,
    /// Its encapsulation.
    pub encapsulation: Encapsulation,
    /// The SPI.
    pub spi: u32,
    /// The sequence number's low half.
    pub sequence: u32,
}

impl EspAt {
    /// Finds the ESP header in an IP packet, directly or in UDP.
    #[inline]
    pub fn find(ip: &Ip<'_>) -> Result<EspAt, DropReason> {
        let (at, protocol, fragment) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), ip.is_fragment()),
            Ip::V6(ip) => {
                let upper = ip.upper_layer().map_err(in_hdr_error)?;
                (upper.at, upper.protocol, upper.is_fragment)
            }
        };
        let payload = ip.bytes().get(at..).ok_or(DropReason::InHdrError)?;
        match protocol {
            protocol::ESP | protocol::UDP if fragment => Err(DropReason::InFragment),
            protocol::ESP => EspAt::read(payload, at, Encapsulation::None),
            protocol::UDP => {
                let datagram = Udp::parse(payload).map_err(in_hdr_error)?;
                if datagram.destination_port() != NAT_T_PORT && datagram.source_port() != NAT_T_PORT {
                    return Err(DropReason::InNoIpsec);
                }
                match datagram.payload() {
                    [0xff] => Err(DropReason::InNatKeepalive),
                    [0, 0, 0, 0, ..] => Err(DropReason::InIke),
                    payload => EspAt::read(payload, at + udp::HEADER, Encapsulation::Udp),
                }
            }
            _ => Err(DropReason::InNoIpsec),
        }
    }

    #[inline]
    fn read(payload: &[u8], at: usize, encapsulation: Encapsulation) -> Result<EspAt, DropReason> {
        let header = Esp::parse(payload).map_err(in_hdr_error)?;
        let (spi, sequence) = (header.spi(), header.sequence());
        Ok(EspAt { at, end: at + payload.len(), encapsulation, spi, sequence })
    }
}

/// The SPI of a packet with ESP, directly or in UDP; `None` if it has none, or does not show it.
#[inline]
pub fn esp_spi(packet: &[u8]) -> Option<u32> {
    let ip = Ip::parse(packet).ok()?;
    EspAt::find(&ip).ok().map(|found| found.spi)
}

/// Where the AH header of a received packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AhAt {
    pub family: Family,
    /// Offset of the header in the packet, its length with the ICV, and the packet's end.
    pub at: usize,
    pub len: usize,
    pub end: usize,
    /// The SPI.
    pub spi: u32,
    /// The sequence number's low half.
    pub sequence: u32,
}

impl AhAt {
    /// Finds the AH header in an IP packet.
    pub fn find(ip: &Ip<'_>) -> Result<AhAt, DropReason> {
        let (at, protocol, fragment) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), ip.is_fragment()),
            Ip::V6(ip) => {
                let upper = ip.upper_layer().map_err(in_hdr_error)?;
                (upper.at, upper.protocol, upper.is_fragment)
            }
        };
        if protocol != protocol::AH {
            return Err(DropReason::InNoIpsec);
        }
        if fragment {
            return Err(DropReason::InFragment);
        }
        let header = Ah::parse(ip.bytes().get(at..).ok_or(DropReason::InHdrError)?).map_err(in_hdr_error)?;
        let (spi, sequence) = (header.spi(), header.sequence());
        Ok(AhAt { family: ip.family(), at, len: header.header_len(), end: ip.bytes().len(), spi, sequence })
    }
}

/// Whether what an IP packet names first may lead to ESP or AH, or to ESP in UDP.
#[inline]
pub fn may_nest(ip: &Ip<'_>) -> bool {
    match ip {
        Ip::V4(ip) => names_ipsec(ip.protocol()) || (ip.protocol() == protocol::UDP && may_hold_esp(ip)),
        Ip::V6(ip) => {
            names_ipsec(ip.next_header())
                || matches!(ip.next_header(), protocol::HOP_BY_HOP | protocol::ROUTING | protocol::FRAGMENT)
                || (ip.next_header() == protocol::UDP && has_nat_t_port(&ip.bytes()[ipv6::HEADER..]))
        }
    }
}

/// Whether an IPv4 packet of UDP may have ESP in it: a later fragment does not show its ports.
fn may_hold_esp(ip: &Ipv4<'_>) -> bool {
    ip.is_fragment() || has_nat_t_port(&ip.bytes()[ip.header_len()..])
}

/// Whether a UDP datagram is to or from the port of ESP in UDP (RFC 3948 2.1).
#[inline]
pub fn has_nat_t_port(datagram: &[u8]) -> bool {
    let port = NAT_T_PORT.to_be_bytes();
    datagram.get(..2) == Some(&port) || datagram.get(2..4) == Some(&port)
}

/// Whether this next header is ESP or AH, or in IPv6 may lead to one.
#[inline]
pub fn names_ipsec(next_header: u8) -> bool {
    matches!(next_header, protocol::ESP | protocol::AH | protocol::DESTINATION)
}

fn in_hdr_error(_: Malformed) -> DropReason {
    DropReason::InHdrError
}
