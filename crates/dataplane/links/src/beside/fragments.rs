//! Recognizes fragments of ESP in UDP to the link's port: the first fragment has the ports, the others its identification.

use std::net::IpAddr;

use forebay_wire::{Ip, ipv6, protocol};

/// Packets whose further fragments are known.
const KNOWN: usize = 64;
const IPV6_FRAGMENT: u8 = 44;
const IPV6_FRAGMENT_HEADER: usize = 8;

/// What fragments of a packet have in common (RFC 791 3.2, RFC 8200 4.5).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
}

/// The packets of which the first fragment has come, the oldest forgotten first.
pub(super) struct Fragments {
    port: u16,
    known: Vec<Key>,
    next: usize,
}

/// Whether a packet is a fragment. Of IPv6 it is seen where its header comes first, as all systems put it.
#[inline]
pub(super) fn is_fragment(ip: &Ip<'_>) -> bool {
    match ip {
        Ip::V4(ip) => ip.is_fragment(),
        Ip::V6(ip) => ip.next_header() == IPV6_FRAGMENT,
    }
}

impl Fragments {
    pub(super) fn new(port: u16) -> Fragments {
        Fragments { port, known: Vec::with_capacity(KNOWN), next: 0 }
    }

    /// Whether a fragment is one of ESP in UDP; of one whose first did not come before it, it is not known.
    pub(super) fn is_ours(&mut self, ip: &Ip<'_>) -> bool {
        let Some((key, offset, payload)) = parse(ip) else { return false };
        if offset > 0 {
            return self.known.contains(&key);
        }
        let ours = payload
            .first_chunk::<12>()
            .is_some_and(|head| u16::from_be_bytes([head[2], head[3]]) == self.port && head[8..] != [0; 4]);
        if ours {
            if self.known.len() < KNOWN {
                self.known.push(key);
            } else {
                self.known[self.next] = key;
                self.next = (self.next + 1) % KNOWN;
            }
        }
        ours
    }
}

/// Key, offset and bytes of a fragment of UDP.
fn parse<'a>(ip: &Ip<'a>) -> Option<(Key, u16, &'a [u8])> {
    let (identification, offset, payload) = match ip {
        Ip::V4(ip) if ip.protocol() == protocol::UDP => {
            let bytes = ip.bytes();
            let identification = u16::from_be_bytes([bytes[4], bytes[5]]);
            (identification.into(), ip.fragment_word() & 0x1fff, &bytes[ip.header_len()..])
        }
        Ip::V6(ip) => {
            let (header, payload) = ip.bytes()[ipv6::HEADER..].split_first_chunk::<IPV6_FRAGMENT_HEADER>()?;
            let [next, _, high, low, i0, i1, i2, i3] = *header;
            let offset = u16::from_be_bytes([high, low]) >> 3;
            (next == protocol::UDP).then_some((u32::from_be_bytes([i0, i1, i2, i3]), offset, payload))?
        }
        Ip::V4(_) => return None,
    };
    let key = Key { source: ip.source(), destination: ip.destination(), identification };
    Some((key, offset, payload))
}
