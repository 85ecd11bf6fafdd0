//! The parts of a packet that AH covers, and where they stand while its job is done.

use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Span};
use forebay_wire::ipv6::{self, MAX_EXTENSIONS};
use forebay_wire::{Family, Ip, Malformed, ah, ipv4, protocol};

use super::image;
use forebay_drops::DropReason;

/// Longest headers in front of AH, in bytes: IPv4's longest, or IPv6's with 152 bytes of extension
/// headers, where hop-by-hop options, a routing header and destination options come to some 80. The
/// headroom holds them twice beside a new AH header.
pub const HEADERS_MAX: usize = 192;
/// Length of the high half of an ESN, in bytes.
const HIGH_LEN: usize = JobSpec::SEQ_HI_LEN;

/// The headers in front of AH.
#[derive(Clone, Debug)]
pub struct Headers {
    pub bytes: [u8; HEADERS_MAX],
    pub len: usize,
}

impl Headers {
    /// A copy of `bytes`; `None` if they are more than [`HEADERS_MAX`].
    #[inline]
    pub fn of(bytes: &[u8]) -> Option<Headers> {
        let mut headers = Headers { bytes: [0; HEADERS_MAX], len: bytes.len() };
        headers.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(headers)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// Takes out the fragment headers of a packet that is no fragment, which IPsec does not see
    /// (RFC 4302 A2): the number of bytes that went. The length field stays.
    pub fn unfragment(&mut self) -> usize {
        let (mut named_at, mut at, len) = (6, ipv6::HEADER, self.len);
        for _ in 0..MAX_EXTENSIONS {
            if at + 8 > self.len {
                break;
            }
            if self.bytes[named_at] == protocol::FRAGMENT {
                self.bytes[named_at] = self.bytes[at];
                self.bytes.copy_within(at + 8..self.len, at);
                self.len -= 8;
            } else {
                (named_at, at) = (at, at + 8 + 8 * usize::from(self.bytes[at + 1]));
            }
        }
        len - self.len
    }

    /// Sets the length fields for a packet of `total` bytes, and IPv4's protocol and checksum.
    #[inline]
    pub fn set_length(&mut self, family: Family, total: usize, protocol: u8) {
        let len = self.len;
        match family {
            Family::V4 => ipv4::rewrite(&mut self.bytes, len, total as u16, protocol),
            Family::V6 => self.bytes[4..6].copy_from_slice(&((total - ipv6::HEADER) as u16).to_be_bytes()),
        }
    }

    /// The headers as the ICV covers them.
    #[inline]
    pub fn image(&self, direction: Direction) -> Option<Headers> {
        let mut image = self.clone();
        image::mask(image.bytes_mut(), direction)?;
        Some(image)
    }
}

/// The sizes that an SA's suite and numbers ask for.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub session: SessionId,
    /// The IV stands at the begin of AH's ICV field (RFC 4543 4).
    pub iv_len: usize,
    pub icv_len: usize,
    pub esn: bool,
}

/// Where the parts of a prepared packet are in its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// The kept headers' first byte, and that of the kept ICV behind them.
    pub stash: usize,
    pub icv: usize,
    /// The image's headers, its AH, and the end of its payload.
    pub image: usize,
    pub ah: usize,
    pub end: usize,
}

impl Sizes {
    /// Number of bytes behind the packet that the ICV covers.
    #[inline]
    pub fn behind(&self) -> usize {
        if self.esn { HIGH_LEN } else { 0 }
    }

    /// The places for headers of `headers` bytes in front of AH at `ah`, with a payload up to `end`;
    /// `None` if the packet's buffer has no room for them.
    #[inline]
    pub fn places(&self, packet: &Packet, headers: usize, ah: usize, end: usize) -> Option<Places> {
        let image = ah.checked_sub(headers)?;
        let icv = image.checked_sub(self.icv_len)?;
        let stash = icv.checked_sub(headers)?;
        (end + self.behind() <= packet.buffer().len()).then_some(Places { stash, icv, image, ah, end })
    }

    /// The places in a packet that was prepared.
    #[inline]
    pub fn places_of(&self, packet: &Packet, spec: &JobSpec) -> Places {
        let (stash, icv) = (packet.offset(), spec.icv as usize);
        let image = spec.auth.start as usize;
        let end = spec.auth.end() - self.behind();
        Places { stash, icv, image, ah: image + icv - stash, end }
    }

    /// Lays down stash, masked headers and the high half, sets the bounds and states the job; AH and
    /// payload stand in their places already.
    #[inline]
    pub fn lay_out(
        &self,
        packet: &mut Packet,
        places: &Places,
        headers: &Headers,
        image: &Headers,
        sequence: u64,
        spec: &mut JobSpec,
    ) {
        let Places { stash, icv, image: image_at, ah, end } = *places;
        let buffer = packet.buffer_mut();
        buffer[stash..icv].copy_from_slice(headers.bytes());
        buffer[image_at..ah].copy_from_slice(image.bytes());
        let mut auth_end = end;
        if self.esn {
            auth_end += HIGH_LEN;
            buffer[end..auth_end].copy_from_slice(&((sequence >> 32) as u32).to_be_bytes());
        }
        packet.set_bounds(stash, auth_end);
        *spec = JobSpec {
            session: self.session,
            cipher: Span { start: image_at as u32, len: 0 },
            iv: (ah + ah::FIXED) as u32,
            auth: Span { start: image_at as u32, len: (auth_end - image_at) as u32 },
            icv: icv as u32,
            // In the packet, so that no processor need know of it.
            seq_hi: None,
        };
    }
}

impl Places {
    /// Puts the headers back and takes stash and high half off the packet.
    #[inline]
    pub fn restore(&self, packet: &mut Packet) {
        packet.buffer_mut().copy_within(self.stash..self.icv, self.image);
        packet.set_bounds(self.image, self.end);
    }
}

/// The next header of a tunnel's payload.
#[inline]
pub fn tunnel_protocol(ip: &Ip<'_>) -> u8 {
    match ip {
        Ip::V4(_) => protocol::IPV4,
        Ip::V6(_) => protocol::IPV6,
    }
}

pub fn in_hdr_error(_: Malformed) -> DropReason {
    DropReason::InHdrError
}
