//! From an IP packet to a frame.

use super::{
    AF_V4, ETHERTYPE_V4, ETHERTYPE_V6, Family, IpAt, LengthField, NotIp, PPP_V4, PPP_V6, Protocol, family_of,
};

/// Puts the link layer's bytes of an old frame before a new packet; `out` is replaced.
///
/// `prefix` is what stood before the packet that [`locate()`](fn@super::locate) found at `at`: the first
/// `at.start` bytes of the frame. Where the family has changed, the field that tells it is changed
/// too; link types without such a field need the output to be of
/// [`LinkType::rewritten`](crate::LinkType::rewritten) type.
///
/// Fails if `packet` is no IP packet or `prefix` is too short; `out` is then empty.
#[inline]
pub fn reframe(at: &IpAt, prefix: &[u8], packet: &[u8], out: &mut Vec<u8>) -> Result<(), NotIp> {
    out.clear();
    let family = family_of(packet, None)?;
    let Some(prefix) = prefix.get(..at.start) else {
        return Err(NotIp::TooShort { found: prefix.len(), expected: at.start });
    };
    out.extend_from_slice(prefix);
    if family != at.family {
        set_family(out, at.protocol, family);
    }
    match at.length {
        Some(LengthField::Pppoe { at: field }) => put_length(out, field, at.start + packet.len()),
        Some(LengthField::Ieee8023 { at: field }) => {
            if at.start - usize::from(field) - 2 + packet.len() <= LENGTH_MAX {
                put_length(out, field, at.start + packet.len());
            } else {
                without_snap(out, field.into());
            }
        }
        None => {}
    }
    out.extend_from_slice(packet);
    Ok(())
}

/// The most bytes behind a length field of IEEE 802.3: larger values are ethertypes.
const LENGTH_MAX: usize = 1500;

/// Writes into the field at `field` how many bytes of `all` are behind it.
fn put_length(prefix: &mut [u8], field: u8, all: usize) {
    let field = usize::from(field);
    if let Some(bytes) = prefix.get_mut(field..field + 2) {
        bytes.copy_from_slice(&u16::try_from(all - field - 2).unwrap_or(u16::MAX).to_be_bytes());
    }
}

/// Makes of a frame of IEEE 802.3, whose length field is at `field`, one with an ethertype (RFC 1042 and 894 say the same by
/// both): what is longer has no other form.
fn without_snap(prefix: &mut Vec<u8>, field: usize) {
    if prefix.len() >= field + 10 {
        prefix.drain(field..field + 8);
    }
}

/// Writes a family into a prefix that [`locate()`](fn@super::locate) has passed: its field is there.
fn set_family(prefix: &mut [u8], protocol: Protocol, family: Family) {
    let mut put = |at: u8, bytes: &[u8]| {
        if let Some(field) = prefix.get_mut(usize::from(at)..).and_then(|rest| rest.get_mut(..bytes.len())) {
            field.copy_from_slice(bytes);
        }
    };
    let by_family = |v4, v6| match family {
        Family::V4 => v4,
        Family::V6 => v6,
    };
    match protocol {
        Protocol::Absent => {}
        Protocol::Ethertype { at } => {
            put(at, &if family == Family::V4 { ETHERTYPE_V4 } else { ETHERTYPE_V6 }.to_be_bytes());
        }
        Protocol::AddressFamily { little_endian, v6 } => {
            let value = u32::from(by_family(AF_V4, v6));
            put(0, &if little_endian { value.to_le_bytes() } else { value.to_be_bytes() });
        }
        // Both numbers have a first byte of zero and an odd second one: compressed or not, the last is set.
        Protocol::Ppp { at, compressed } => {
            put(at + u8::from(!compressed), &[by_family(PPP_V4, PPP_V6)]);
        }
    }
}
