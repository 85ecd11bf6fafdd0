//! Fragmentation of IPv4 packets (RFC 791 2.3, 3.1) and, at their source, of IPv6 packets (RFC 8200 4.5).

use crate::checksum::Sum;
use crate::ipv4::{DONT_FRAGMENT, MORE_FRAGMENTS, OFFSET_MASK};
use crate::{Ip, Ipv4, Ipv6, ipv4, ipv6, protocol};

/// Length of the IPv6 fragment header in bytes.
pub const FRAGMENT_HEADER: usize = 8;

/// The fragments of one packet, written one after the other into buffers of the caller's.
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    /// What is divided.
    payload: &'a [u8],
    /// How much of it has been written.
    at: usize,
    mtu: usize,
    form: Form<'a>,
}

#[derive(Clone, Debug)]
enum Form<'a> {
    V4 {
        /// The header of the first fragment, and of the others: only some options go with those.
        first: &'a [u8],
        other: [u8; ipv4::MAX_HEADER],
        other_len: usize,
        /// The packet may be a fragment itself.
        word: u16,
    },
    V6 {
        /// All headers that routers look at.
        header: &'a [u8],
        /// Where the fragment header is named, and what it names.
        named_at: usize,
        protocol: u8,
        identification: u32,
    },
}

impl<'a> Fragments<'a> {
    /// Divides `packet` into fragments of at most `mtu` bytes, header included. IPv6 fragments get
    /// `identification`, which must not repeat between two addresses for a while; IPv4 ones keep the
    /// packet's.
    ///
    /// `None` for what may not or cannot be divided: IPv4 with "don't fragment" or options that
    /// contradict themselves, IPv6 with a fragment header or with more headers than the first fragment holds
    /// (RFC 7112), an `mtu` with no room for eight bytes of payload.
    pub fn new(packet: &Ip<'a>, mtu: usize, identification: u32) -> Option<Fragments<'a>> {
        // Longer ones could not say how long they are.
        let mtu = mtu.min(65_535);
        match packet {
            Ip::V4(ip) => Fragments::ipv4(ip, mtu),
            Ip::V6(ip) => Fragments::ipv6(ip, mtu, identification),
        }
    }

    fn ipv4(ip: &Ipv4<'a>, mtu: usize) -> Option<Fragments<'a>> {
        let (first, payload) = ip.bytes().split_at_checked(ip.header_len())?;
        let (other, other_len) = header_of_later_fragments(first)?;
        if ip.dont_fragment() || mtu < first.len() + 8 {
            return None;
        }
        let form = Form::V4 { first, other, other_len, word: ip.fragment_word() };
        Some(Fragments { payload, at: 0, mtu, form })
    }

    fn ipv6(ip: &Ipv6<'a>, mtu: usize, identification: u32) -> Option<Fragments<'a>> {
        let place = ip.fragment_place().ok()?;
        let (header, payload) = ip.bytes().split_at_checked(place.at)?;
        // Wherever it stands, one behind destination options included.
        let no_fragment = matches!(ip.fragment_header(), Ok(None));
        if !no_fragment || mtu < header.len() + FRAGMENT_HEADER + 8 {
            return None;
        }
        // The first fragment has to hold all headers (RFC 7112).
        let upper = ip.upper_layer().ok()?;
        let upper_len = match upper.protocol {
            protocol::AH => 8 + 4 * usize::from(*ip.bytes().get(upper.at + 1)?),
            _ => 8,
        };
        let headers = (upper.at + upper_len).min(ip.bytes().len());
        if headers > place.at + ((mtu - place.at - FRAGMENT_HEADER) & !7) {
            return None;
        }
        let form = Form::V6 { header, named_at: place.named_at, protocol: place.protocol, identification };
        Some(Fragments { payload, at: 0, mtu, form })
    }

    /// Writes the next fragment at the begin of `room`, which should have the MTU's bytes; its length.
    /// `None` when all are written, or if `room` is too short.
    pub fn next_into(&mut self, room: &mut [u8]) -> Option<usize> {
        if self.at >= self.payload.len() {
            return None;
        }
        let (header, gap) = match &self.form {
            Form::V4 { first, .. } if self.at == 0 => (*first, 0),
            Form::V4 { other, other_len, .. } => (other.get(..*other_len)?, 0),
            Form::V6 { header, .. } => (*header, FRAGMENT_HEADER),
        };
        let left = &self.payload[self.at..];
        let room_for = self.mtu - header.len() - gap;
        // All but the last are multiples of eight bytes.
        let (len, more) = if left.len() <= room_for { (left.len(), false) } else { (room_for & !7, true) };
        let header_len = header.len() + gap;
        let fragment = room.get_mut(..header_len + len)?;
        fragment[..header.len()].copy_from_slice(header);
        fragment[header_len..].copy_from_slice(&left[..len]);
        match &self.form {
            Form::V4 { word, .. } => finish_v4(fragment, header_len, *word, self.at, more),
            Form::V6 { named_at, protocol, identification, .. } => {
                let offset = self.at as u16 | u16::from(more);
                fragment[*named_at] = protocol::FRAGMENT;
                fragment[4..6].copy_from_slice(&((header_len + len - ipv6::HEADER) as u16).to_be_bytes());
                let extension = &mut fragment[header_len - FRAGMENT_HEADER..header_len];
                extension[..2].copy_from_slice(&[*protocol, 0]);
                extension[2..4].copy_from_slice(&offset.to_be_bytes());
                extension[4..].copy_from_slice(&identification.to_be_bytes());
            }
        }
        self.at += len;
        Some(header_len + len)
    }
}

/// Sets lengths, flags, offset and checksum of an IPv4 fragment whose payload stands at `at` in that of
/// the packet, which has flags and offset `word` itself.
fn finish_v4(fragment: &mut [u8], header_len: usize, word: u16, at: usize, more: bool) {
    let total = fragment.len() as u16;
    let offset = (word & OFFSET_MASK).wrapping_add((at / 8) as u16) & OFFSET_MASK;
    let flags = word & (MORE_FRAGMENTS | !(OFFSET_MASK | DONT_FRAGMENT | MORE_FRAGMENTS));
    let flags = if more { flags | MORE_FRAGMENTS } else { flags };
    let header = &mut fragment[..header_len];
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6..8].copy_from_slice(&(flags | offset).to_be_bytes());
    header[10..12].fill(0);
    let checksum = Sum::default().bytes(header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The header of all fragments but the first: options without the copied flag are left out (RFC 791
/// 3.1). With its length; `None` if an option is longer than the header.
fn header_of_later_fragments(first: &[u8]) -> Option<([u8; ipv4::MAX_HEADER], usize)> {
    const COPIED: u8 = 0x80;
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    let mut header = [END; ipv4::MAX_HEADER];
    let (fixed, mut options) = first.split_at_checked(ipv4::MIN_HEADER)?;
    header[..ipv4::MIN_HEADER].copy_from_slice(fixed);
    let mut len = ipv4::MIN_HEADER;
    while let [kind, rest @ ..] = options {
        match *kind {
            END => break,
            NOTHING => options = rest,
            kind => {
                let option_len = usize::from(*rest.first()?);
                let (option, behind) = options.split_at_checked(option_len).filter(|_| option_len >= 2)?;
                if kind & COPIED != 0 {
                    header.get_mut(len..len + option_len)?.copy_from_slice(option);
                    len += option_len;
                }
                options = behind;
            }
        }
    }
    // The room behind is zeros, which end the options.
    let len = len.next_multiple_of(4);
    header[0] = 0x40 | (len / 4) as u8;
    Some((header, len))
}
