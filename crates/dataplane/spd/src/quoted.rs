//! The packet that an ICMP error quotes (RFC 4301 6.2): an error is right where its quote's return traffic is.

use forebay_crypto::Direction;
use forebay_wire::{Ip, ipv4, ipv6, protocol};

use crate::headers::{Depth, Headers, ICMP, ICMP_V6};
use crate::rule::{Match, Rule};

/// As much of a quote as is looked at: an IP header with options or extension headers, and ports.
const LOOKED_AT: usize = 256;
/// Type, code, checksum and the word behind them.
const ICMP_HEADER: usize = 8;

/// Whether a packet may be an ICMP message.
#[inline]
pub fn may_be_icmp(ip: &Ip<'_>) -> bool {
    match ip {
        Ip::V4(ip) => ip.protocol() == ICMP,
        Ip::V6(ip) => matches!(
            ip.next_header(),
            ICMP_V6 | protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::FRAGMENT
        ),
    }
}

/// The begin of a quoted packet, with a length that fits it.
struct Quoted {
    bytes: [u8; LOOKED_AT],
    len: usize,
    /// Whether it is enough to let the error pass. A redirect or source quench asks its receiver to change what it does, so its own
    /// addresses have to be right as well.
    suffices: bool,
    /// Whether it is a packet of the host that the error is for; not another's, nor one that later fragments of the error
    /// complete, where nobody looks.
    is_own: bool,
}

impl Quoted {
    /// What an ICMP error quotes. `None` for everything else, and for a whole error that quotes no IP header: no host knows
    /// what that is about.
    fn of(ip: &Ip<'_>) -> Option<Quoted> {
        let (message, continues) = match ip {
            Ip::V4(ip) if ip.protocol() == ICMP && ip.fragment_word() & ipv4::OFFSET_MASK == 0 => {
                (ip.bytes().get(ip.header_len()..)?, ip.is_fragment())
            }
            Ip::V4(_) => return None,
            Ip::V6(ip) => {
                let upper = ip.upper_layer().ok()?;
                // The fragment header, with the offset in front of its last four bytes, stands right before.
                let offset = || ip.bytes().get(upper.at.checked_sub(6)?..)?.first_chunk::<2>().copied();
                let is_later = || offset().is_none_or(|offset| u16::from_be_bytes(offset) & 0xfff8 != 0);
                if upper.protocol != ICMP_V6 || upper.is_fragment && is_later() {
                    return None;
                }
                (ip.bytes().get(upper.at..)?, upper.is_fragment)
            }
        };
        let (header, quote) = message.split_at_checked(ICMP_HEADER)?;
        // RFC 792: unreachable, source quench, redirect, time exceeded, parameter problem; RFC 4443 2.1.
        let (is_error, suffices) = match (ip, header[0]) {
            (Ip::V4(_), kind) => (matches!(kind, 3 | 4 | 5 | 11 | 12), !matches!(kind, 4 | 5)),
            (Ip::V6(_), kind) => (kind < 128, true),
        };
        if !is_error {
            return None;
        }
        let mut bytes = [0; LOOKED_AT];
        let len = quote.len().min(LOOKED_AT);
        bytes[..len].copy_from_slice(&quote[..len]);
        // Mostly only the begin of the packet is there.
        match ip {
            Ip::V4(_) => bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes()),
            Ip::V6(_) => {
                bytes[4..6].copy_from_slice(&(len.saturating_sub(ipv6::HEADER) as u16).to_be_bytes())
            }
        }
        let quoted = Quoted { bytes, len, suffices, is_own: false };
        match quoted.ip().filter(|quoted| quoted.family() == ip.family()) {
            Some(inner) => Some(Quoted { is_own: inner.source() == ip.destination(), ..quoted }),
            None => continues.then_some(quoted),
        }
    }

    fn ip(&self) -> Option<Ip<'_>> {
        Ip::parse(&self.bytes[..self.len]).ok()
    }
}

/// The traffic that would return to what an ICMP error quotes.
pub struct Returning {
    /// Its selectors' values, addresses and ports exchanged; `None` if the quote is no packet of the error's receiver.
    pub headers: Option<Headers>,
    /// Whether the quote is enough, whatever the addresses of the error itself.
    pub suffices: bool,
}

/// The traffic that would return to what an ICMP error on its way out ([`Direction::Seal`]) or in quotes. `None` if it is no such
/// error.
#[cold]
pub fn returning(ip: &Ip<'_>, direction: Direction, depth: Depth) -> Option<Returning> {
    let quoted = Quoted::of(ip)?;
    let suffices = quoted.suffices;
    if !quoted.is_own {
        return Some(Returning { headers: None, suffices });
    }
    // By side, what went one way is as what comes the other.
    let against = match direction {
        Direction::Seal => Direction::Open,
        Direction::Open => Direction::Seal,
    };
    Some(Returning { headers: Some(Headers::of(&quoted.ip()?, against, depth)), suffices })
}

impl Rule {
    /// Whether a packet that may be an ICMP error may have come out of an SA with these selectors, where `by_header` is what they
    /// say of its own header (RFC 4301 6.2). Selectors that name ICMP let it pass whatever it quotes; with others it must
    /// quote a packet that they admit the return traffic of.
    #[cold]
    pub fn admits_quoting(&self, ip: &Ip<'_>, by_header: Match) -> Result<(), Refused> {
        let header_fits = by_header == Match::Yes;
        let depth = Depth { upper: true, dscp: false };
        let Some(Returning { headers, suffices }) = returning(ip, Direction::Open, depth) else {
            return if header_fits { Ok(()) } else { Err(Refused::Header) };
        };
        let admits = headers.is_some_and(|returning| self.matches_selectors(&returning) == Match::Yes);
        let is_named = || header_fits && self.names(&Headers::of(ip, Direction::Open, depth));
        if admits && (suffices || header_fits) || is_named() { Ok(()) } else { Err(Refused::Quote) }
    }
}

/// Why an ICMP message may not have come out of an SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its own header is not one of the SA's, and it quotes nothing.
    Header,
    /// It quotes a packet that is not one of the SA's.
    Quote,
}
