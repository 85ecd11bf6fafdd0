//! What runs look at in a header, for each version of IP: packets that are alike in it are treated alike.

use forebay_tunnel::Inner;
use forebay_wire::ip::is_extension;
use forebay_wire::ipv4::{DONT_FRAGMENT, MIN_HEADER, MORE_FRAGMENTS, OFFSET_MASK};
use forebay_wire::{ipv6, protocol};

use crate::find::names_ipsec;

/// A version of IP. Headers have neither options nor extensions.
pub trait Version {
    /// A header's bytes.
    type Header;
    /// Source and destination as they stand in a header.
    type Addresses: Copy + PartialEq;
    /// The protocol number of a packet in a tunnel.
    const PROTOCOL: u8;

    /// The header that `bytes` start with, if there are so many, and what stands behind it.
    fn split(bytes: &[u8]) -> Option<(&Self::Header, &[u8])>;

    /// Source and destination.
    fn addresses(header: &Self::Header) -> Self::Addresses;

    /// What a tunnel header takes from a packet of `bytes` bytes at most; `None` if it is not of this kind, or not whole.
    fn inner(header: &Self::Header, bytes: usize) -> Option<Inner>;

    /// What [`Version::inner`] takes and checks, but for the hop limit.
    fn taken(header: &Self::Header) -> u64;

    /// What the end of a tunnel looks at: the same without "don't fragment", and what the packet carries.
    fn checked(header: &Self::Header) -> u64;

    /// What a header says that it carries.
    fn carried(header: &Self::Header) -> u8;

    /// Whether a packet inside that carries this is looked at each time: it may hold ESP or AH itself, or be an ICMP error.
    fn is_looked_at(carried: u8) -> bool;

    /// The length of a packet, with its header, if it carries `protocol` and is no fragment.
    fn whole(header: &Self::Header, protocol: u8) -> Option<usize>;
}

/// IPv4.
pub struct V4;

/// IPv6.
pub struct V6;

impl Version for V4 {
    type Header = [u8; MIN_HEADER];
    type Addresses = [u8; 8];
    const PROTOCOL: u8 = protocol::IPV4;

    #[inline(always)]
    fn split(bytes: &[u8]) -> Option<(&[u8; MIN_HEADER], &[u8])> {
        bytes.split_first_chunk()
    }

    #[inline(always)]
    fn addresses(header: &[u8; MIN_HEADER]) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = *header;
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    fn inner(header: &[u8; MIN_HEADER], bytes: usize) -> Option<Inner> {
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] != 0x45 || len < MIN_HEADER || len > bytes {
            return None;
        }
        Some(Inner {
            len,
            next_header: protocol::IPV4,
            traffic_class: header[1],
            ttl: header[8],
            dont_fragment: header[6] & (DONT_FRAGMENT >> 8) as u8 != 0,
        })
    }

    #[inline(always)]
    fn taken(header: &[u8; MIN_HEADER]) -> u64 {
        const COUNTS: u64 = 0xffff_ffff_0000_4000_u64.to_be();
        first_word(header) & COUNTS
    }

    #[inline(always)]
    fn checked(header: &[u8; MIN_HEADER]) -> u64 {
        let first = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        u64::from(first) << 8 | u64::from(header[9])
    }

    #[inline(always)]
    fn carried(header: &[u8; MIN_HEADER]) -> u8 {
        header[9]
    }

    #[inline(always)]
    fn is_looked_at(carried: u8) -> bool {
        names_ipsec(carried) || carried == protocol::ICMP
    }

    #[inline(always)]
    fn whole(header: &[u8; MIN_HEADER], protocol: u8) -> Option<usize> {
        let fragment = u16::from_be_bytes([header[6], header[7]]) & (MORE_FRAGMENTS | OFFSET_MASK);
        let is_plain = header[0] == 0x45 && header[9] == protocol && fragment == 0;
        is_plain.then(|| u16::from_be_bytes([header[2], header[3]]).into())
    }
}

impl Version for V6 {
    type Header = [u8; ipv6::HEADER];
    type Addresses = [u8; 32];
    const PROTOCOL: u8 = protocol::IPV6;

    #[inline(always)]
    fn split(bytes: &[u8]) -> Option<(&[u8; ipv6::HEADER], &[u8])> {
        bytes.split_first_chunk()
    }

    #[inline(always)]
    fn addresses(header: &[u8; ipv6::HEADER]) -> [u8; 32] {
        let [_, _, _, _, _, _, _, _, addresses @ ..] = *header;
        addresses
    }

    #[inline(always)]
    fn inner(header: &[u8; ipv6::HEADER], bytes: usize) -> Option<Inner> {
        let len = ipv6::HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
        if header[0] >> 4 != 6 || is_extension(header[6]) || len > bytes {
            return None;
        }
        Some(Inner {
            len,
            next_header: protocol::IPV6,
            traffic_class: header[0] << 4 | header[1] >> 4,
            ttl: header[7],
            dont_fragment: true,
        })
    }

    #[inline(always)]
    fn taken(header: &[u8; ipv6::HEADER]) -> u64 {
        // All but the flow label and the hop limit.
        const COUNTS: u64 = 0xfff0_0000_ffff_ff00_u64.to_be();
        first_word(header) & COUNTS
    }

    #[inline(always)]
    fn checked(header: &[u8; ipv6::HEADER]) -> u64 {
        V6::taken(header)
    }

    #[inline(always)]
    fn carried(header: &[u8; ipv6::HEADER]) -> u8 {
        header[ipv6::field::NEXT_HEADER]
    }

    #[inline(always)]
    fn is_looked_at(carried: u8) -> bool {
        names_ipsec(carried) || is_extension(carried) || carried == protocol::ICMPV6
    }

    #[inline(always)]
    fn whole(header: &[u8; ipv6::HEADER], protocol: u8) -> Option<usize> {
        let is_plain = header[0] >> 4 == 6 && header[ipv6::field::NEXT_HEADER] == protocol;
        is_plain.then(|| ipv6::HEADER + usize::from(u16::from_be_bytes([header[4], header[5]])))
    }
}

/// The first eight bytes of a header.
#[inline(always)]
fn first_word<const N: usize>(header: &[u8; N]) -> u64 {
    header.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}
