//! Flow labels of tunnels: the inner packet's own, or one made from its flow (RFC 6437, RFC 6438).

use forebay_wire::{Ip, protocol};

/// Twenty bits.
const LABEL: u32 = 0xf_ffff;
/// From the fractions of the square roots of 2 and 3: odd, with no pattern.
const MULTIPLIERS: [u64; 2] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b];

/// The flow label of an IPv6 packet, zero for any other.
#[inline]
pub fn label_of(packet: &[u8]) -> u32 {
    match packet.first_chunk::<4>() {
        Some(word) if word[0] >> 4 == 6 => u32::from_be_bytes(*word) & LABEL,
        _ => 0,
    }
}

/// A label that is the same for all packets of a flow, never zero, and spread evenly over flows (RFC 6437 3). It is
/// computed from addresses and protocol, and from the ports unless the packet is a fragment, because later fragments
/// do not contain them. In an IPv6 packet with a flow label, that label takes the place of protocol and ports.
pub fn label_from(packet: &[u8], seed: u64) -> u32 {
    let Ok(ip) = Ip::parse(packet) else { return 1 };
    let bytes = ip.bytes();
    let (addresses, protocol, ports_at, label) = match ip {
        Ip::V4(ip) => {
            let ports_at = if ip.is_fragment() { None } else { Some(ip.header_len()) };
            (&bytes[12..20], ip.protocol(), ports_at, 0)
        }
        Ip::V6(v6) if v6.flow_label() != 0 => (&bytes[8..40], 0, None, v6.flow_label()),
        Ip::V6(v6) => match v6.upper_layer() {
            Ok(upper) if !upper.is_fragment => (&bytes[8..40], upper.protocol, Some(upper.at), 0),
            Ok(upper) => (&bytes[8..40], upper.protocol, None, 0),
            Err(_) => (&bytes[8..40], 0, None, 0),
        },
    };
    let ports = match (protocol, ports_at) {
        (protocol::TCP | protocol::UDP | SCTP | DCCP | protocol::ESP, Some(at)) => bytes
            .get(at..)
            .and_then(|upper| upper.first_chunk())
            .map_or(0, |ports| u32::from_be_bytes(*ports)),
        _ => 0,
    };
    let (words, _) = addresses.as_chunks::<8>();
    let start = seed ^ u64::from(protocol) << 52 ^ u64::from(label | ports);
    let hash = words.iter().fold(mix(start, 0), |hash, word| mix(hash, u64::from_be_bytes(*word)));
    match (hash >> 44) as u32 {
        0 => 1,
        label => label,
    }
}

const SCTP: u8 = 132;
const DCCP: u8 = 33;

/// All bits of both into all bits of the result.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ MULTIPLIERS[0]) * u128::from(word ^ MULTIPLIERS[1]);
    (product as u64 ^ (product >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
