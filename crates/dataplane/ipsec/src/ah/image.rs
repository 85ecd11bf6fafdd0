//! What of the headers in front of AH its ICV covers, and as what (RFC 4302 3.3.3.1 and appendix A).

use forebay_crypto::Direction;
use forebay_wire::{ipv4, ipv6, protocol};

/// IPv4 options that the ICV covers (RFC 4302 A1), by their type byte, copy flag and class included. All
/// others, unknown ones too, are zeroed as a whole, type and length included.
const IMMUTABLE_OPTIONS: [u8; 7] = [
    0,   // End of Options List
    1,   // No Operation
    130, // Security
    133, // Extended Security
    134, // Commercial Security
    148, // Router Alert
    149, // Sender Directed Multi-Destination Delivery
];
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;
/// Type, length and pointer of a source route.
const ROUTE_HEAD: usize = 3;

/// The one-byte IPv6 option (RFC 8200 4.2).
const PAD1: u8 = 0;
/// The bit in an IPv6 option's type that says that its data may change on the way (RFC 8200 4.2).
const MAY_CHANGE: u8 = 0x20;
/// Routing headers whose addresses trade places with the destination: RFC 2460 4.4, and RFC 6275 6.4 for
/// the one address of Mobile IPv6, which gives the same.
const ADDRESS_SWAPPING: [u8; 2] = [0, 2];
/// Type-specific bytes up to a routing header's first address.
const ROUTING_HEAD: usize = 8;
const ADDRESS: usize = 16;

/// Turns the headers in front of AH, all of them and nothing else, into what its ICV covers.
///
/// `None` if they are malformed, or not predictable: a routing header of a type for which nothing says
/// how AH is to treat it, with segments left. Received ones with segments left are at no destination yet.
/// The headers are then partly changed.
///
/// Predicting is for the sender alone: what the receiver has is what arrived. If it took the final
/// destination from a source route, which the ICV does not cover, anyone could redirect the packet.
#[inline]
pub fn mask(headers: &mut [u8], direction: Direction) -> Option<()> {
    match headers.first()? >> 4 {
        4 => mask_ipv4(headers, direction),
        _ => mask_ipv6(headers, direction),
    }
}

#[inline]
fn mask_ipv4(headers: &mut [u8], direction: Direction) -> Option<()> {
    let (fixed, mut options) = headers.split_at_mut_checked(ipv4::MIN_HEADER)?;
    // DSCP and ECN; flags and fragment offset; time to live; checksum.
    fixed[1] = 0;
    fixed[6..9].fill(0);
    fixed[10..12].fill(0);
    while let Some(&kind) = options.first() {
        let len = match kind {
            // What is behind has no structure, and is covered like any padding.
            END_OF_OPTIONS => break,
            NO_OPERATION => 1,
            _ => usize::from(*options.get(1).filter(|&&len| len >= 2)?),
        };
        let (option, rest) = options.split_at_mut_checked(len)?;
        if kind == LOOSE_SOURCE_ROUTE || kind == STRICT_SOURCE_ROUTE {
            let last = last_hop(option)?;
            if direction == Direction::Seal
                && let Some(address) = last
            {
                fixed[16..20].copy_from_slice(&address);
            }
        }
        if !IMMUTABLE_OPTIONS.contains(&kind) {
            option.fill(0);
        }
        options = rest;
    }
    Some(())
}

/// The address that a source route leads to, if it has not been walked to its end (RFC 791 3.1); `None`
/// outside if it is malformed.
fn last_hop(option: &[u8]) -> Option<Option<[u8; 4]>> {
    let (head, route) = option.split_first_chunk::<ROUTE_HEAD>()?;
    let [_, len, pointer] = *head;
    let (addresses, []) = route.as_chunks::<4>() else { return None };
    Some(addresses.last().copied().filter(|_| pointer <= len))
}

#[inline]
fn mask_ipv6(headers: &mut [u8], direction: Direction) -> Option<()> {
    if headers.len() < ipv6::HEADER {
        return None;
    }
    let (fixed, mut extensions) = headers.split_at_mut(ipv6::HEADER);
    // DSCP, ECN and flow label; hop limit.
    fixed[0] = 0x60;
    fixed[1..4].fill(0);
    fixed[7] = 0;
    let mut kind = fixed[6];
    while !extensions.is_empty() {
        let len = 8 + 8 * usize::from(*extensions.get(1)?);
        let (header, rest) = extensions.split_at_mut_checked(len)?;
        match kind {
            protocol::HOP_BY_HOP | protocol::DESTINATION => mask_options(&mut header[2..])?,
            protocol::ROUTING => settle_route(fixed, header, direction)?,
            _ => return None,
        }
        kind = header[0];
        extensions = rest;
    }
    Some(())
}

/// Zeroes the data of options that may change; type and length stay.
fn mask_options(mut options: &mut [u8]) -> Option<()> {
    while let Some(&kind) = options.first() {
        let len = if kind == PAD1 { 1 } else { 2 + usize::from(*options.get(1)?) };
        let (option, rest) = options.split_at_mut_checked(len)?;
        if kind & MAY_CHANGE != 0 {
            option[2..].fill(0);
        }
        options = rest;
    }
    Some(())
}

/// Brings a routing header and the destination to what they are at the end of the route.
fn settle_route(fixed: &mut [u8], header: &mut [u8], direction: Direction) -> Option<()> {
    let (kind, left) = (header[2], usize::from(header[3]));
    if left == 0 {
        return Some(());
    }
    if direction == Direction::Open || !ADDRESS_SWAPPING.contains(&kind) {
        return None;
    }
    let (head, addresses) = header.split_at_mut(ROUTING_HEAD);
    if addresses.len() % ADDRESS != 0 {
        return None;
    }
    let ahead = addresses.len().checked_sub(ADDRESS * left)?;
    // Each of the nodes ahead puts its own address in the place of the next one's: what is the
    // destination now comes first, the last address becomes the destination.
    let destination = &mut fixed[24..ipv6::HEADER];
    let ahead = &mut addresses[ahead..];
    ahead.rotate_right(ADDRESS);
    ahead[..ADDRESS].swap_with_slice(destination);
    head[3] = 0;
    Some(())
}

#[cfg(test)]
mod tests;
