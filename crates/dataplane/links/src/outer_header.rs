//! Rebuilds IP and UDP headers stripped by the kernel.

use std::net::{IpAddr, SocketAddr};

use forebay_links_sys::Control;
use forebay_wire::{ipv4, ipv6, protocol, udp};

use crate::checksum::{fold, sum};
use crate::offload::put;

const MAX: usize = ipv6::HEADER + udp::HEADER;
/// Where the kernel does not say.
const HOP_LIMIT: u8 = 64;

/// The headers of one sender's packets.
#[derive(Debug)]
pub(crate) struct OuterHeader {
    bytes: [u8; MAX],
    /// Of the IP header.
    ip_len: usize,
    udp: bool,
    /// The sum of the IPv4 header without its length.
    ip_sum: u64,
}

impl Default for OuterHeader {
    fn default() -> OuterHeader {
        OuterHeader { bytes: [0; MAX], ip_len: ipv4::MIN_HEADER, udp: false, ip_sum: 0 }
    }
}

impl OuterHeader {
    /// Writes all but lengths and checksum of headers of UDP; false if the addresses are not of one family.
    #[inline]
    pub(crate) fn start_udp(&mut self, from: SocketAddr, to: SocketAddr, control: &Control) -> bool {
        let done = self.start_ip(from.ip(), to.ip(), protocol::UDP, control);
        let ports = &mut self.bytes[self.ip_len..self.ip_len + 4];
        ports[..2].copy_from_slice(&from.port().to_be_bytes());
        ports[2..].copy_from_slice(&to.port().to_be_bytes());
        self.udp = true;
        done
    }

    /// Writes all but length and checksum of an IP header; false if the addresses are not of one family.
    #[inline]
    pub(crate) fn start_ip(&mut self, from: IpAddr, to: IpAddr, protocol: u8, control: &Control) -> bool {
        let class = control.traffic_class.unwrap_or(0);
        let hop_limit = control.hop_limit.unwrap_or(HOP_LIMIT);
        let bytes = &mut self.bytes;
        *bytes = [0; MAX];
        self.udp = false;
        match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes[0] = 0x45;
                bytes[1] = class;
                bytes[8] = hop_limit;
                bytes[9] = protocol;
                bytes[12..16].copy_from_slice(&from.octets());
                bytes[16..20].copy_from_slice(&to.octets());
                self.ip_sum = sum(&bytes[..ipv4::MIN_HEADER]).into();
                self.ip_len = ipv4::MIN_HEADER;
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                bytes[0] = 0x60 | class >> 4;
                bytes[1] = class << 4;
                bytes[6] = protocol;
                bytes[7] = hop_limit;
                bytes[8..24].copy_from_slice(&from.octets());
                bytes[24..40].copy_from_slice(&to.octets());
                self.ip_len = ipv6::HEADER;
            }
            _ => return false,
        }
        true
    }

    /// The headers before a payload of `len` bytes; the kernel has seen it in a packet, so it is short enough.
    #[inline]
    pub(crate) fn before(&mut self, mut len: usize) -> &[u8] {
        let ip = self.ip_len;
        let mut head = ip;
        if self.udp {
            head += udp::HEADER;
            len += udp::HEADER;
            put(&mut self.bytes, ip + 4, (len as u16).to_be_bytes());
        }
        if ip == ipv4::MIN_HEADER {
            let total = ip + len;
            put(&mut self.bytes, 2, (total as u16).to_be_bytes());
            let checksum = !fold(self.ip_sum + total as u64);
            put(&mut self.bytes, 10, checksum.to_be_bytes());
        } else {
            put(&mut self.bytes, 4, (len as u16).to_be_bytes());
        }
        &self.bytes[..head]
    }
}
