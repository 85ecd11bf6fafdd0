//! Packet headers as checked views: IPv4, IPv6 and its extension headers, UDP, ESP, AH, AGGFRAG.
//!
//! `parse` checks the bytes once. A view that exists is consistent with its bytes, so its getters cannot fail. The crate is `core` only and
//! allocates nothing.
//!
//! ```
//! use forebay_wire::{Ip, protocol};
//!
//! let packet = [69, 0, 0, 20, 0, 0, 0, 0, 64, protocol::ESP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
//! let Ok(Ip::V4(ip)) = Ip::parse(&packet) else { unreachable!() };
//! assert_eq!((ip.protocol(), ip.ttl(), ip.source().octets()), (protocol::ESP, 64, [192, 0, 2, 1]));
//! assert!(Ip::parse(&packet[..19]).is_err()); // its header ends behind the bytes
//! ```
#![no_std]

pub mod aggfrag;
pub mod ah;
pub mod checksum;
pub mod esp;
pub mod fragment;
pub mod fragments;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod nat;
pub mod tcp;
pub mod udp;

pub use aggfrag::Aggfrag;
pub use ah::Ah;
pub use esp::Esp;
pub use fragment::Fragment;
pub use fragments::Fragments;
pub use ip::{Addresses, Family, Ip};
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use udp::Udp;

/// Protocol and next-header numbers (IANA) that the data plane uses.
pub mod protocol {
    /// IPv6 hop-by-hop options (RFC 8200 4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP: u8 = 1;
    /// IPv4 in IP, the next header of a tunnel-mode ESP packet with an IPv4 packet inside.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header (RFC 8200 4.4).
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header (RFC 8200 4.5).
    pub const FRAGMENT: u8 = 44;
    /// Encapsulating Security Payload (RFC 4303).
    pub const ESP: u8 = 50;
    /// Authentication Header (RFC 4302).
    pub const AH: u8 = 51;
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// No next header: a dummy packet inside ESP (RFC 4303 2.6).
    pub const NONE: u8 = 59;
    /// IPv6 destination options (RFC 8200 4.6).
    pub const DESTINATION: u8 = 60;
    /// IP-TFS: several IP packets and parts of them inside ESP (RFC 9347 7.1).
    pub const AGGFRAG: u8 = 144;
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than the header, or than the length it states.
    Truncated,
    /// A version other than 4 or 6, or than the one looked for.
    Version,
    /// A length field that contradicts the header itself.
    Length,
    /// More extension headers than [`ipv6::MAX_EXTENSIONS`].
    TooManyExtensions,
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Malformed::Truncated => "shorter than it states",
            Malformed::Version => "not the IP version expected",
            Malformed::Length => "a length field contradicts the header",
            Malformed::TooManyExtensions => "too many extension headers",
        })
    }
}

impl core::error::Error for Malformed {}
