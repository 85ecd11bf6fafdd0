//! The begin of a protected packet as an ICMP error quotes it.

use std::net::IpAddr;

use forebay_wire::{Family, Ip, esp, ipv4, ipv6, protocol, udp};

use crate::sa::{Mode, Protocol, SaConfig};

/// A quoted packet must be among this many sent last: an attacker off the path would have to guess its number.
const RECENT: u32 = 1 << 24;

/// Kind, SPI and sequence number of a whole protected packet.
pub fn spi_and_sequence(ip: &Ip<'_>) -> Option<(Protocol, u32, u32)> {
    let (protocol, at) = match ip {
        Ip::V4(ip) => (ip.protocol(), ip.header_len()),
        Ip::V6(ip) => ip.upper_layer().ok().map(|upper| (upper.protocol, upper.at))?,
    };
    read_spi(protocol, ip.bytes().get(at..)?)
}

/// Kind, SPI and sequence number at the begin of an IP payload.
fn read_spi(protocol: u8, payload: &[u8]) -> Option<(Protocol, u32, u32)> {
    let (protocol, at) = match protocol {
        protocol::ESP => (Protocol::Esp, 0),
        protocol::AH => (Protocol::Ah, 4),
        protocol::UDP => (Protocol::Esp, udp::HEADER),
        _ => return None,
    };
    let numbers: &[u8; esp::HEADER] = payload.get(at..)?.first_chunk()?;
    let number =
        |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
    Some((protocol, number(0), number(4)))
}

/// The begin of a protected packet in an ICMP message, which may end anywhere behind the sequence number.
#[derive(Clone, Copy, Debug)]
pub struct Quoted {
    pub family: Family,
    source: IpAddr,
    pub destination: IpAddr,
    /// Its length in bytes.
    pub len: u16,
    protocol: Protocol,
    pub spi: u32,
    sequence: u32,
}

impl Quoted {
    pub fn parse(bytes: &[u8]) -> Option<Quoted> {
        match bytes.first()? >> 4 {
            4 => {
                let header: &[u8; ipv4::MIN_HEADER] = bytes.first_chunk()?;
                let payload = bytes.get(usize::from(header[0] & 15) * 4..)?;
                let (protocol, spi, sequence) = read_spi(header[9], payload)?;
                let address =
                    |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
                let len = u16::from_be_bytes([header[2], header[3]]);
                Some(Quoted {
                    family: Family::V4,
                    source: address(12),
                    destination: address(16),
                    len,
                    protocol,
                    spi,
                    sequence,
                })
            }
            6 => {
                let (header, payload) = bytes.split_first_chunk::<{ ipv6::HEADER }>()?;
                let (protocol, spi, sequence) = read_spi(header[6], payload)?;
                let address =
                    |at: usize| header[at..].first_chunk::<16>().map(|octets| IpAddr::from(*octets));
                let len = u16::from_be_bytes([header[4], header[5]]).saturating_add(ipv6::HEADER as u16);
                Some(Quoted {
                    family: Family::V6,
                    source: address(8)?,
                    destination: address(24)?,
                    len,
                    protocol,
                    spi,
                    sequence,
                })
            }
            _ => None,
        }
    }

    /// Whether it is of an SA with these settings that has sent `sent` packets.
    pub fn is_of(&self, config: &SaConfig, sent: u64) -> bool {
        let addresses = config.mode == Mode::Transport
            || (config.local == self.source && config.remote == self.destination);
        let age = (sent as u32).wrapping_sub(self.sequence);
        let is_named = config.protocol == self.protocol && config.spi.get() == self.spi;
        is_named && addresses && age < RECENT && u64::from(age) < sent
    }
}
