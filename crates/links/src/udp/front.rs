//! The IP and UDP headers in front of a payload whose own the kernel has taken off.

use std::net::SocketAddr;

use forebay_links_sys::Control;
use forebay_wire::{ipv4, ipv6, protocol, udp};

use crate::checksum::{fold, sum};

const MAX: usize = ipv6::HEADER + udp::HEADER;
/// Where the kernel does not say.
const HOP_LIMIT: u8 = 64;

/// The headers of one sender's datagrams.
#[derive(Debug)]
pub(super) struct Front {
    bytes: [u8; MAX],
    len: usize,
    /// The sum of the IPv4 header without its length.
    ip_sum: u64,
}

impl Default for Front {
    fn default() -> Front {
        Front { bytes: [0; MAX], len: ipv4::MIN_HEADER + udp::HEADER, ip_sum: 0 }
    }
}

impl Front {
    /// Writes all but lengths and checksum; false if the addresses are not of one family.
    #[inline]
    pub(super) fn start(&mut self, from: SocketAddr, to: SocketAddr, control: &Control) -> bool {
        let class = control.traffic_class.unwrap_or(0);
        let hop_limit = control.hop_limit.unwrap_or(HOP_LIMIT);
        let bytes = &mut self.bytes;
        *bytes = [0; MAX];
        let ip = match (from, to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                bytes[0] = 0x45;
                bytes[1] = class;
                bytes[8] = hop_limit;
                bytes[9] = protocol::UDP;
                bytes[12..16].copy_from_slice(&from.ip().octets());
                bytes[16..20].copy_from_slice(&to.ip().octets());
                self.ip_sum = sum(&bytes[..ipv4::MIN_HEADER]).into();
                ipv4::MIN_HEADER
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                bytes[0] = 0x60 | class >> 4;
                bytes[1] = class << 4;
                bytes[6] = protocol::UDP;
                bytes[7] = hop_limit;
                bytes[8..24].copy_from_slice(&from.ip().octets());
                bytes[24..40].copy_from_slice(&to.ip().octets());
                ipv6::HEADER
            }
            _ => return false,
        };
        bytes[ip..ip + 2].copy_from_slice(&from.port().to_be_bytes());
        bytes[ip + 2..ip + 4].copy_from_slice(&to.port().to_be_bytes());
        self.len = ip + udp::HEADER;
        true
    }

    /// The headers before a payload of `len` bytes; it came in a datagram, so it is short enough.
    #[inline]
    pub(super) fn before(&mut self, len: usize) -> &[u8] {
        let ip = self.len - udp::HEADER;
        let udp_len = len + udp::HEADER;
        if ip == ipv4::MIN_HEADER {
            let total = ip + udp_len;
            self.bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            let checksum = !fold(self.ip_sum + total as u64);
            self.bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            self.bytes[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
        }
        self.bytes[ip + 4..ip + 6].copy_from_slice(&(udp_len as u16).to_be_bytes());
        &self.bytes[..self.len]
    }
}
