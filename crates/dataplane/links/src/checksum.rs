//! The Internet checksum over long payloads.

/// The one's complement sum of big-endian 16-bit words, folded (RFC 1071); an odd last byte is the high half
/// of a word. Byte order does not matter until the end (RFC 1071 2 B).
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    u16::from_be(fold(forebay_links_sys::checksum::sum(bytes)))
}

/// Adds up all carries.
#[inline]
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The sum of the pseudo-header of TCP and UDP (RFC 9293 3.1, RFC 8200 8.1): `addresses` are both addresses
/// as they stand in the packet, `len` is that of header and payload.
#[inline]
pub(crate) fn pseudo_header<const N: usize>(addresses: &[u8; N], protocol: u8, len: usize) -> u64 {
    u64::from(u16::from_be(fold(words(addresses)))) + u64::from(protocol) + len as u64
}

/// Whether an IPv4 header without options has the right checksum.
#[inline]
pub(crate) fn is_ipv4_right(header: &[u8; 20]) -> bool {
    fold(words(header)) == 0xffff
}

/// Whether the checksum in `l4`, TCP or UDP, is right.
#[inline]
pub(crate) fn is_l4_right<const N: usize>(addresses: &[u8; N], protocol: u8, l4: &[u8]) -> bool {
    // In the machine's byte order all along: all ones are all ones in either.
    let rest = u16::to_be(protocol.into());
    let len = u16::to_be(l4.len() as u16);
    let sum = forebay_links_sys::checksum::sum(l4) + words(addresses) + u64::from(rest) + u64::from(len);
    fold(sum) == 0xffff
}

/// The sum of a few words in the machine's byte order.
#[inline]
fn words<const N: usize>(bytes: &[u8; N]) -> u64 {
    const { assert!(N.is_multiple_of(4)) };
    bytes.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

#[cfg(test)]
mod tests {
    use forebay_wire::checksum::Sum;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_sum_of_the_headers(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let other = Sum::ZERO.bytes(&bytes).finish();
            prop_assert_eq!(!super::sum(&bytes), other);
        }
    }

    #[test]
    fn long_runs_of_ones_do_not_overflow() {
        let bytes = vec![0xff; 1 << 16];
        assert_eq!(super::sum(&bytes), 0xffff);
    }
}
