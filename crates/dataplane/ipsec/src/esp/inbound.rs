//! ESP inbound: everything around the crypto job when opening (RFC 4303 3.4).

use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Span};
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};
use forebay_wire::esp::Trailer;
use forebay_wire::nat::{self, Originals};
use forebay_wire::udp;
use forebay_wire::{Addresses, Esp, Ip, Malformed, Udp, esp, ipv4, ipv6, protocol};

use crate::aggregation::Aggregation;
use crate::find::{EspAt, has_nat_t_port, may_nest, names_ipsec};
use crate::lifetime::Life;
use crate::sa::{Encapsulation, Mode, SaConfig};
use crate::step::Next;
use crate::watch::{EventKind, Watch};
use forebay_drops::DropReason;
use forebay_replay::{Replay, ReplayWindow, Resync};
use forebay_spd::{Depth, DscpSet, Headers, Match, Refused, Rule, may_be_icmp};
use forebay_tunnel::{self as tunnel, Decapsulator};

/// Moves of a peer that are followed at once after a quiet time, and the time that each takes of the next ones: a NAT gives
/// out another port now and then, and who sends genuine packets on from two places is not to keep the gateway busy.
const MOVES: u64 = 4;
const MOVE_EVERY: Duration = Duration::from_millis(1_000);

/// Where a peer is.
#[derive(Debug)]
pub struct Peer {
    pub at: SocketAddr,
    /// When its moves will have had all their time.
    moves_until: Time,
}

/// What is done about checksums that cover addresses which a NAT may have translated (RFC 3948 3.1.2).
#[derive(Debug)]
enum Repair {
    /// Nothing.
    None,
    /// They are computed over the packet.
    Computed,
    /// They are updated, from the addresses that the peer used.
    From(Box<Originals>),
}

impl Repair {
    fn of(config: &SaConfig) -> Repair {
        if config.mode == Mode::Tunnel || config.encapsulation == Encapsulation::None {
            return Repair::None;
        }
        match config.originals {
            Some(originals) => Repair::From(Box::new(originals)),
            // A new sum over what nothing vouches for would make damage look good.
            None if config.suite.icv_len() == 0 => Repair::None,
            None => Repair::Computed,
        }
    }

    #[inline]
    fn apply(&self, packet: &mut [u8]) {
        let originals = match self {
            Repair::None => return,
            Repair::Computed => None,
            Repair::From(originals) => Some(&**originals),
        };
        nat::repair_checksum(packet, originals);
    }
}

/// An inbound SA: its settings and its replay window. In few bytes, as [`OutboundSa`](super::outbound::OutboundSa).
#[derive(Debug)]
#[repr(C)]
pub struct InboundSa {
    // What packets change, on the lines of the counters of its entry.
    pub(crate) replay: ReplayWindow,
    pub(crate) life: Life,
    pub(crate) resync: Resync,
    // What they only read.
    pub(crate) session: SessionId,
    pub(crate) spi: u32,
    local: IpAddr,
    mode: Mode,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) esn: bool,
    /// Lengths in bytes.
    iv_len: u8,
    icv_len: u8,
    aead: bool,
    cbc: bool,
    pub(crate) check_padding: bool,
    /// Whether inner packets share its packets (RFC 9347).
    aggregates: bool,
    /// Addresses of the last inner packet that the selectors let pass, if they look at nothing else: packets come in runs.
    passed: Option<Passed>,
    repair: Repair,
    /// Where an SA in UDP has its packets from, if that may change.
    pub(crate) peer: Option<Box<Peer>>,
    pub(crate) decapsulator: Decapsulator,
    selectors: Box<Selectors>,
    /// The state of the policies that let every packet with these addresses pass too; zero for none.
    passed_under: u64,
}

/// What an inner packet is held against.
#[derive(Debug)]
struct Selectors {
    rule: Rule,
    /// Addresses of [`Passed::V6`].
    passed: [u8; 32],
}

/// Addresses that passed; those of IPv6 stand beside the selectors, because they do not fit into the cache lines of an SA.
#[derive(Clone, Copy, Debug)]
enum Passed {
    V4([u8; 8]),
    V6,
}

impl InboundSa {
    pub fn new(config: &SaConfig, session: SessionId, watch: &mut Watch) -> InboundSa {
        let suite = config.suite;
        InboundSa {
            session,
            spi: config.spi.get(),
            mode: config.mode,
            encapsulation: config.encapsulation,
            local: config.local,
            peer: (config.encapsulation == Encapsulation::Udp && config.follow_peer).then(|| {
                let at = SocketAddr::new(config.remote, config.udp.remote);
                Box::new(Peer { at, moves_until: Time::ZERO })
            }),
            esn: config.esn,
            iv_len: suite.iv_len() as u8,
            icv_len: suite.icv_len() as u8,
            aead: !suite.covers_text(),
            cbc: suite.is_chained(),
            check_padding: config.check_padding,
            replay: ReplayWindow::new(config.replay_window),
            resync: Resync::default(),
            life: Life::new(config.lifetime, session, watch),
            decapsulator: Decapsulator::new(&config.tunnel),
            selectors: Box::new(Selectors {
                rule: Rule::new(&config.local_ts, &config.remote_ts, DscpSet::ALL),
                passed: [0; 32],
            }),
            repair: Repair::of(config),
            passed: None,
            passed_under: 0,
            aggregates: config.iptfs.is_some(),
        }
    }

    /// Loads what a packet needs, which is on several cache lines.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((self.replay.top(), self.life.packets(), self.spi, self.passed_under));
    }

    /// Loads the part of the replay window that the next packet needs.
    #[inline]
    pub fn touch_window(&self) {
        std::hint::black_box(self.replay.check(self.replay.top()));
    }

    /// Packets that carried a combination of ECN marks that no tunnel makes.
    pub fn ecn_odd(&self) -> u64 {
        self.decapsulator.odd()
    }

    /// Takes note of a packet whose ICV did not match.
    pub fn auth_failed(&mut self) {
        self.resync.failed();
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
    pub fn prepare(&mut self, packet: &Packet, found: &EspAt, spec: &mut JobSpec) -> Result<(), DropReason> {
        if self.life.has_expired() {
            return Err(DropReason::InStateExpired);
        }
        let text = self.text_of(found)?;
        let sequence = match self.esn {
            true => self.resync.infer(&self.replay, found.sequence).ok_or(DropReason::InStateSeqError)?,
            false => found.sequence.into(),
        };
        if planted(Fault::WindowBeforeIcv) {
            self.replay.settle(sequence);
        }
        let stated = self.state_job(packet, found, text, sequence, spec);
        if stated.is_err() {
            self.replay.refused(sequence);
        }
        stated
    }

    /// Whether the SA is in its normal state, in which packets need no check for expiry or resynchronization.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        !self.life.has_expired() && !self.resync.is_due()
    }

    /// The sequence number that a packet has, if there is nothing to guess.
    #[inline]
    pub(crate) fn likely(&self, low: u32) -> Option<u64> {
        if self.esn { self.replay.infer(low) } else { Some(low.into()) }
    }

    /// Where the text begins and ends in an ESP packet, if there can be one.
    #[inline(always)]
    pub(crate) fn text_of(&self, found: &EspAt) -> Result<(usize, usize), DropReason> {
        let (iv_len, icv_len) = (usize::from(self.iv_len), usize::from(self.icv_len));
        let text_at = found.at + esp::HEADER + iv_len;
        let icv_at = found.end.checked_sub(icv_len).ok_or(DropReason::InHdrError)?;
        let text_len = icv_at.checked_sub(text_at).ok_or(DropReason::InHdrError)?;
        if text_len < esp::TRAILER || (self.cbc && !text_len.is_multiple_of(iv_len)) {
            return Err(DropReason::InHdrError);
        }
        Ok((text_at, icv_at))
    }

    /// Checks the sequence number and states the job, for a text from `text_at` to `icv_at`.
    #[inline(always)]
    pub(crate) fn state_job(
        &self,
        packet: &Packet,
        found: &EspAt,
        (text_at, icv_at): (usize, usize),
        sequence: u64,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let ignored =
            planted(Fault::ReplayIgnored) || planted(Fault::MoveByReplay) || planted(Fault::WindowBeforeIcv);
        if self.replay.check(sequence) != Replay::New && !ignored {
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

    /// Addresses of the last inner packet that the selectors let pass, if they look at nothing else.
    #[inline]
    pub(crate) fn passed(&self) -> Option<Addresses> {
        self.passed.map(|passed| match passed {
            Passed::V4(addresses) => Addresses::V4(addresses),
            Passed::V6 => Addresses::V6(self.selectors.passed),
        })
    }

    fn set_passed(&mut self, addresses: Option<Addresses>) {
        self.passed = addresses.map(|addresses| match addresses {
            Addresses::V4(addresses) => Passed::V4(addresses),
            Addresses::V6(addresses) => {
                self.selectors.passed = addresses;
                Passed::V6
            }
        });
        self.passed_under = 0;
    }

    /// Takes note that the policies of state `under` let every packet pass that has the addresses passed last.
    pub(crate) fn pass_all(&mut self, under: u64) {
        if self.passed.is_some() && self.mode == Mode::Tunnel && !self.aggregates {
            self.passed_under = under;
        }
    }

    /// Whether every packet with the addresses passed last may pass under the policies of this state.
    #[inline]
    pub(crate) fn passes_all(&self, under: u64) -> bool {
        self.passed_under == under
    }

    /// Whether a packet that came out of the SA may have (RFC 4301 5.2 step 4).
    pub fn admits(&self, ip: &Ip<'_>) -> Result<(), DropReason> {
        check_selectors(&self.selectors.rule, ip)
    }

    /// Settles the replay window for a packet whose ICV matched, and takes everything that ESP put
    /// around the packet off again. [`Next::Again`]: the packet may be ESP or AH itself, and the SA's
    /// selectors have not been looked at. What an SA that aggregates has received goes to `payloads`.
    #[inline]
    pub fn complete(
        &mut self,
        packet: &mut Packet,
        spec: &JobSpec,
        watch: &mut Watch,
        payloads: &mut Aggregation,
    ) -> Result<Next, DropReason> {
        let esp_at = spec.auth.start as usize - packet.offset();
        let low = Esp::parse(&packet.bytes()[esp_at..]).map_err(in_hdr_error)?.sequence();
        let sequence = u64::from(spec.seq_hi.unwrap_or(0)) << 32 | u64::from(low);
        let newest = sequence > self.replay.top();
        let ignored = planted(Fault::ReplayIgnored)
            || planted(Fault::ReplayCheckedOnce)
            || planted(Fault::WindowBeforeIcv);
        if planted(Fault::MoveByReplay) && self.peer.is_some() {
            self.note_sender(packet, esp_at, watch);
        }
        if self.replay.settle(sequence) != Replay::New && !ignored {
            self.replay.refused(sequence);
            return Err(DropReason::InStateSeqError);
        }
        if sequence > self.replay.mark() {
            want_note(&mut self.replay, &self.life, self.session, watch);
        }
        // Without a window an old packet cannot be distinguished from a new one (RFC 7296 2.23).
        if newest && self.peer.is_some() && self.replay.is_on() {
            self.note_sender(packet, esp_at, watch);
        }
        self.resync.verified();
        let enciphered = spec.cipher.len as usize;
        self.life.admit(enciphered, watch).map_err(|_| DropReason::InStateExpired)?;
        self.life.count(1, enciphered as u64);
        let text_at = spec.cipher.start as usize - packet.offset();
        let text_end = spec.cipher.end() - packet.offset();
        let text = &packet.bytes()[text_at..text_end];
        let trailer = Trailer::parse(text).map_err(|_| DropReason::InPadding)?;
        if self.check_padding && !trailer.is_padded_in_order(text) {
            return Err(DropReason::InPadding);
        }
        let payload_end = text_end - trailer.len();
        if trailer.next_header == protocol::NONE {
            return Err(DropReason::InDummy);
        }
        if self.aggregates {
            // RFC 9347 2.3: nothing else may come over it.
            if trailer.next_header != protocol::AGGFRAG {
                return Err(DropReason::InStateModeError);
            }
            let outer_class = tunnel::traffic_class(packet.bytes());
            payloads.receive(self.session, sequence, outer_class, &packet.bytes()[text_at..payload_end])?;
            packet.truncate(0);
            return Ok(Next::Unpack);
        }
        match self.mode {
            Mode::Tunnel => self.strip_tunnel(packet, text_at, payload_end, trailer.next_header),
            Mode::Transport => {
                self.strip_transport(packet, esp_at, text_at, payload_end, trailer.next_header)
            }
        }
    }

    /// Tells if the peer has moved: by a packet that is genuine and newer than all others, since old ones can be
    /// sent again from anywhere.
    fn note_sender(&mut self, packet: &Packet, esp_at: usize, watch: &mut Watch) {
        let (Some(peer), Ok(ip)) = (&mut self.peer, Ip::parse(packet.bytes())) else { return };
        let datagram = esp_at.checked_sub(udp::HEADER).and_then(|at| packet.bytes().get(at..));
        let Some(Ok(datagram)) = datagram.map(Udp::parse) else { return };
        let from = SocketAddr::new(ip.source(), datagram.source_port());
        if peer.at == from {
            return;
        }
        let (now, most) = (watch.now(), Duration(MOVE_EVERY.0 * (MOVES - 1)));
        if peer.moves_until > now + most {
            watch.limit_move();
            return;
        }
        // An event for which there is no room is reported with the next packet.
        if watch.tell(self.session, EventKind::Moved(from)) {
            peer.at = from;
            peer.moves_until = peer.moves_until.max(now) + MOVE_EVERY;
        }
    }

    // Called from one place, which is the hot path.
    #[inline(always)]
    fn strip_tunnel(
        &mut self,
        packet: &mut Packet,
        from: usize,
        to: usize,
        next_header: u8,
    ) -> Result<Next, DropReason> {
        let inner = Ip::parse(&packet.bytes()[from..to]).map_err(in_mode_error)?;
        let (protocol, inner_class) = match &inner {
            Ip::V4(v4) => (protocol::IPV4, v4.tos()),
            Ip::V6(v6) => (protocol::IPV6, v6.traffic_class()),
        };
        if protocol != next_header {
            return Err(DropReason::InStateModeError);
        }
        let next = if may_nest(&inner) { Next::Again } else { Next::Deliver };
        let addresses = Addresses::of(&inner);
        if next == Next::Deliver && (addresses.is_none() || addresses != self.passed() || may_be_icmp(&inner))
        {
            check_selectors(&self.selectors.rule, &inner)?;
            // An ICMP error may pass for what it quotes.
            self.set_passed(addresses.filter(|_| self.selectors.rule.wide && !may_be_icmp(&inner)));
        }
        // Behind the inner packet's own length stands TFC padding (RFC 4303 2.7).
        let len = inner.bytes().len();
        let outer_class = tunnel::traffic_class(packet.bytes());
        packet.truncate(from + len);
        packet.pull_front(from).ok_or(DropReason::InStateModeError)?;
        if !self.decapsulator.changes_nothing(outer_class, inner_class) {
            self.decapsulator.apply(outer_class, packet.bytes_mut())?;
        }
        Ok(next)
    }

    #[inline(never)]
    fn strip_transport(
        &self,
        packet: &mut Packet,
        esp_at: usize,
        from: usize,
        to: usize,
        next_header: u8,
    ) -> Result<Next, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(in_hdr_error)?;
        let inner = packet.bytes().get(from..to).ok_or(DropReason::InStateModeError)?;
        let may_nest = names_ipsec(next_header) || (next_header == protocol::UDP && has_nat_t_port(inner));
        let next = if may_nest { Next::Again } else { Next::Deliver };
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
            Some(named_at) => ipv6::rewrite(bytes, named_at, total, next_header),
        }
        // Only now has the packet the protocol and ports that selectors are about.
        if next == Next::Deliver {
            check_selectors(&self.selectors.rule, &Ip::parse(packet.bytes()).map_err(in_mode_error)?)?;
            self.repair.apply(packet.bytes_mut());
        }
        Ok(next)
    }
}

/// Tells that a window, in which a number beyond the mark was settled, wants more numbers to be noted.
#[cold]
pub fn want_note(replay: &mut ReplayWindow, life: &Life, session: SessionId, watch: &mut Watch) {
    let (top, packets) = (replay.top(), life.packets());
    if replay.passed_mark() && watch.tell(session, EventKind::WindowWanted { top, packets }) {
        replay.told();
    }
}

/// Whether a packet that came out of an SA with these selectors may have (RFC 4301 5.2 step 4). A fragment
/// without ports is never one that an SA by ports may carry (RFC 4301 7.3).
#[inline(never)]
pub fn check_selectors(selectors: &Rule, ip: &Ip<'_>) -> Result<(), DropReason> {
    let depth = Depth { upper: !selectors.wide, dscp: false };
    let matched = selectors.matches_selectors(&Headers::of(ip, Direction::Open, depth));
    if may_be_icmp(ip) {
        return selectors.admits_quoting(ip, matched).map_err(|refused| match refused {
            Refused::Header => DropReason::InStateMismatch,
            Refused::Quote => DropReason::InIcmpQuote,
        });
    }
    match matched {
        Match::Yes => Ok(()),
        Match::Maybe | Match::No => Err(DropReason::InStateMismatch),
    }
}

fn in_hdr_error(_: Malformed) -> DropReason {
    DropReason::InHdrError
}

fn in_mode_error(_: Malformed) -> DropReason {
    DropReason::InStateModeError
}
