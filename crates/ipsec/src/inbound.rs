//! ESP inbound: everything around the crypto job when opening (RFC 4303 3.4).

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Span};
use forebay_wire::esp::Trailer;
use forebay_wire::udp::{self, NAT_T_PORT};
use forebay_wire::{Esp, Ip, Malformed, Udp, esp, ipv4, protocol};

use crate::headers::{Depth, Headers};
use crate::rule::{Match, Rule};
use crate::{DropReason, DscpSet, Encapsulation, Mode, Replay, ReplayWindow, SaConfig};

/// Where the ESP header of a received packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspAt {
    /// Offset of the SPI in the packet.
    pub at: usize,
    /// End of the ESP packet.
    pub end: usize,
    /// What it stands in.
    pub encapsulation: Encapsulation,
    /// The SPI.
    pub spi: u32,
    /// The sequence number's low half.
    pub sequence: u32,
}

impl EspAt {
    /// Finds the ESP header in an IP packet, directly or in UDP.
    #[inline]
    pub fn find(ip: &Ip<'_>) -> Result<EspAt, DropReason> {
        let (at, protocol, fragment) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), ip.is_fragment()),
            Ip::V6(ip) => {
                let upper = ip.upper_layer().map_err(in_hdr_error)?;
                (upper.at, upper.protocol, upper.is_fragment)
            }
        };
        let payload = ip.bytes().get(at..).ok_or(DropReason::InHdrError)?;
        match protocol {
            protocol::ESP | protocol::UDP if fragment => Err(DropReason::InFragment),
            protocol::ESP => EspAt::read(payload, at, Encapsulation::None),
            protocol::UDP => {
                let datagram = Udp::parse(payload).map_err(in_hdr_error)?;
                if datagram.destination_port() != NAT_T_PORT && datagram.source_port() != NAT_T_PORT {
                    return Err(DropReason::InNoIpsec);
                }
                match datagram.payload() {
                    [0xff] => Err(DropReason::InNatKeepalive),
                    [0, 0, 0, 0, ..] => Err(DropReason::InIke),
                    payload => EspAt::read(payload, at + udp::HEADER, Encapsulation::Udp),
                }
            }
            _ => Err(DropReason::InNoIpsec),
        }
    }

    #[inline]
    fn read(payload: &[u8], at: usize, encapsulation: Encapsulation) -> Result<EspAt, DropReason> {
        let header = Esp::parse(payload).map_err(in_hdr_error)?;
        let (spi, sequence) = (header.spi(), header.sequence());
        Ok(EspAt { at, end: at + payload.len(), encapsulation, spi, sequence })
    }
}

/// An inbound SA: its settings and its replay window.
#[derive(Debug)]
pub struct InboundSa {
    session: SessionId,
    pub(crate) spi: u32,
    mode: Mode,
    pub(crate) encapsulation: Encapsulation,
    local: IpAddr,
    esn: bool,
    iv_len: usize,
    icv_len: usize,
    aead: bool,
    cbc: bool,
    replay: ReplayWindow,
    selectors: Box<Rule>,
    /// Addresses of the last inner IPv4 packet that the selectors let pass, if they look at nothing else:
    /// packets come in trains.
    passed: Option<[u8; 8]>,
}

impl InboundSa {
    pub fn new(config: &SaConfig, session: SessionId) -> InboundSa {
        let suite = config.suite;
        InboundSa {
            session,
            spi: config.spi.get(),
            mode: config.mode,
            encapsulation: config.encapsulation,
            local: config.local,
            esn: config.esn,
            iv_len: suite.iv_len(),
            icv_len: suite.icv_len(),
            aead: !suite.covers_text(),
            cbc: suite.is_chained(),
            replay: ReplayWindow::new(config.replay_window),
            selectors: Box::new(Rule::new(&config.local_ts, &config.remote_ts, DscpSet::ALL)),
            passed: None,
        }
    }

    /// Loads what preparing a packet reads, which is on several cache lines.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((self.spi, self.iv_len, self.replay.top(), self.session));
    }

    /// Continues as if `sequence` had been received: for tests and for resynchronisation.
    pub fn continue_after(&mut self, sequence: u64) {
        self.replay.settle(sequence);
    }

    /// Whether a packet with this outer header and encapsulation may use the SA. In transport mode
    /// the addresses are the selectors' business.
    #[inline]
    pub fn accepts(&self, found: &EspAt, outer: &Ip<'_>) -> Result<(), DropReason> {
        if self.mode == Mode::Tunnel && self.local != outer.destination() {
            return Err(DropReason::InNoStates);
        }
        if self.encapsulation != found.encapsulation {
            return Err(DropReason::InStateMismatch);
        }
        Ok(())
    }

    /// Checks lengths and sequence number of the ESP packet in `packet`, which is otherwise untouched.
    #[inline]
    pub fn prepare(&self, packet: &Packet, found: &EspAt, spec: &mut JobSpec) -> Result<(), DropReason> {
        let text_at = found.at + esp::HEADER + self.iv_len;
        let icv_at = found.end.checked_sub(self.icv_len).ok_or(DropReason::InHdrError)?;
        let text_len = icv_at.checked_sub(text_at).ok_or(DropReason::InHdrError)?;
        if text_len < esp::TRAILER || (self.cbc && !text_len.is_multiple_of(16)) {
            return Err(DropReason::InHdrError);
        }
        let sequence = match self.esn {
            true => self.replay.infer(found.sequence).ok_or(DropReason::InStateSeqError)?,
            false => found.sequence.into(),
        };
        if self.replay.check(sequence) != Replay::New {
            return Err(DropReason::InStateSeqError);
        }
        let offset = packet.offset();
        let span = |from: usize, to: usize| Span { start: (offset + from) as u32, len: (to - from) as u32 };
        let auth_end = if self.aead { found.at + esp::HEADER } else { icv_at };
        *spec = JobSpec {
            session: self.session,
            cipher: span(text_at, icv_at),
            iv: (offset + found.at + esp::HEADER) as u32,
            auth: span(found.at, auth_end),
            icv: (offset + icv_at) as u32,
            seq_hi: self.esn.then_some((sequence >> 32) as u32),
        };
        Ok(())
    }

    /// Settles the replay window for a packet whose ICV matched, and takes everything that ESP put
    /// around the packet off again.
    #[inline]
    pub fn complete(&mut self, packet: &mut Packet, spec: &JobSpec) -> Result<(), DropReason> {
        let esp_at = spec.auth.start as usize - packet.offset();
        let low = Esp::parse(&packet.bytes()[esp_at..]).map_err(in_hdr_error)?.sequence();
        let sequence = u64::from(spec.seq_hi.unwrap_or(0)) << 32 | u64::from(low);
        if self.replay.settle(sequence) != Replay::New {
            return Err(DropReason::InStateSeqError);
        }
        let text_at = spec.cipher.start as usize - packet.offset();
        let text_end = spec.cipher.end() - packet.offset();
        // RFC 4303 2.4 lets a receiver check the padding bytes; the ICV has vouched for them already.
        let trailer = Trailer::parse(&packet.bytes()[text_at..text_end]).map_err(in_hdr_error)?;
        let payload_end = text_end - trailer.len();
        if trailer.next_header == protocol::NONE {
            return Err(DropReason::InDummy);
        }
        match self.mode {
            Mode::Tunnel => self.strip_tunnel(packet, text_at, payload_end, trailer.next_header),
            Mode::Transport => {
                self.strip_transport(packet, esp_at, text_at, payload_end, trailer.next_header)
            }
        }
    }

    #[inline]
    fn strip_tunnel(
        &mut self,
        packet: &mut Packet,
        from: usize,
        to: usize,
        next_header: u8,
    ) -> Result<(), DropReason> {
        let inner = Ip::parse(&packet.bytes()[from..to]).map_err(in_mode_error)?;
        match (&inner, next_header) {
            (Ip::V4(_), protocol::IPV4) | (Ip::V6(_), protocol::IPV6) => {}
            _ => return Err(DropReason::InStateModeError),
        }
        let addresses = if let Ip::V4(v4) = &inner { Some(v4.raw_addresses()) } else { None };
        if addresses.is_none() || addresses != self.passed {
            self.check_selectors(&inner)?;
            self.passed = addresses.filter(|_| self.selectors.wide);
        }
        // Behind the inner packet's own length stands TFC padding (RFC 4303 2.7).
        let len = inner.bytes().len();
        packet.truncate(from + len);
        packet.pull_front(from).ok_or(DropReason::InStateModeError)
    }

    fn strip_transport(
        &self,
        packet: &mut Packet,
        esp_at: usize,
        from: usize,
        to: usize,
        next_header: u8,
    ) -> Result<(), DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(in_hdr_error)?;
        let header_len = match self.encapsulation {
            Encapsulation::None => esp_at,
            Encapsulation::Udp => esp_at - udp::HEADER,
        };
        let named_at = match ip {
            Ip::V4(_) => None,
            Ip::V6(ip) => Some(ip.upper_layer().map_err(in_hdr_error)?.named_at),
        };
        packet.truncate(to);
        let shift = from - header_len;
        packet.bytes_mut().copy_within(..header_len, shift);
        packet.pull_front(shift).ok_or(DropReason::InStateModeError)?;
        let total = packet.len();
        let bytes = packet.bytes_mut();
        match named_at {
            None => ipv4::rewrite(bytes, header_len, total as u16, next_header),
            Some(named_at) => {
                bytes[named_at] = next_header;
                bytes[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
            }
        }
        // Only now has the packet the protocol and ports that selectors are about.
        self.check_selectors(&Ip::parse(packet.bytes()).map_err(in_mode_error)?)
    }

    /// Whether a packet that came out of the SA may have (RFC 4301 5.2 step 4). A fragment without ports
    /// is never one that an SA by ports may carry (RFC 4301 7.3).
    #[inline(never)]
    fn check_selectors(&self, ip: &Ip<'_>) -> Result<(), DropReason> {
        let depth = Depth { upper: !self.selectors.wide, dscp: false };
        match self.selectors.matches_selectors(&Headers::of(ip, Direction::Open, depth)) {
            Match::Yes => Ok(()),
            Match::Maybe | Match::No => Err(DropReason::InStateMismatch),
        }
    }
}

fn in_hdr_error(_: Malformed) -> DropReason {
    DropReason::InHdrError
}

fn in_mode_error(_: Malformed) -> DropReason {
    DropReason::InStateModeError
}
