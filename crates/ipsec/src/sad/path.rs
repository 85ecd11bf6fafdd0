//! Packets that are too big for the path of their SA, dummy packets, and what else is about lengths
//! (RFC 4301 8.2).
//!
//! A packet that [`Sad::prepare`] refuses for [`DropReason::OutPathMtu`] is as it was. If [`Sad::divide`] has
//! fragments of it, those are prepared in its place; otherwise [`Sad::answer`] tells its source.

use std::net::IpAddr;

use forebay_crypto::{JobSpec, Packet, SessionId};
use forebay_time::{PS_PER_S, Time};
use forebay_wire::icmp::{self, TooBig};
use forebay_wire::{Family, Fragments, Ip, esp, ipv4, ipv6, protocol, udp};

use super::{Sad, State};
use crate::mtu::{min_path_mtu, plateau_below};
use crate::path_limit::PathLimit;
use crate::spd::Decision;
use crate::{DropReason, Mode, Protocol, SaConfig};

/// ICMP messages about packets that were too big are sent, and believed, at most this often a second and this
/// many at once: each a bound that RFC 4443 2.4 f and RFC 1812 4.3.2.8 ask for.
const MESSAGES_PER_S: u64 = 1_000;
const MESSAGES_AT_ONCE: u64 = 50;

/// A quoted packet must be among this many sent last: somebody off the path would have to guess it.
const RECENT: u32 = 1 << 24;

impl Sad {
    /// The path MTU of an outbound SA at present, in bytes: as configured, as learned since, or as the SA leaves it
    /// that its packets go through next.
    pub fn path_mtu(&self, session: SessionId) -> Option<u16> {
        self.path_limit(session)?.mtu()
    }

    /// The longest packet with an IP header of `header_len` bytes that fits the path MTU of an outbound SA once
    /// it is protected, in bytes. `None` if the SA has no path MTU.
    pub fn effective_mtu(&self, session: SessionId, header_len: usize) -> Option<u16> {
        self.path_limit(session)?.effective_mtu(header_len)
    }

    /// Lowers the path MTU of an outbound SA, never under 576 bytes over IPv4 and 1,280 over IPv6, until
    /// [`LEARNED_FOR`](crate::LEARNED_FOR) has passed; whether that changed anything.
    pub fn lower_path_mtu(&mut self, session: SessionId, mtu: u16) -> bool {
        let entry = self.sas.get_mut(session.0 as usize);
        let Some(limit) = entry.and_then(|entry| entry.state.path_limit_mut()) else { return false };
        let changed = limit.learn(mtu, &mut self.watch);
        if changed {
            self.spread_path(session);
        }
        changed
    }

    /// Tells SAs whose packets go through `outer` what its path leaves for them.
    pub(super) fn spread_path(&mut self, outer: SessionId) {
        if self.nested == 0 {
            return;
        }
        let Some(limit) = self.path_limit(outer).cloned() else { return };
        for index in 0..self.sas.len() {
            let entry = &mut self.sas[index];
            // No deeper than SAs are nested.
            if entry.outer == Some(outer.0)
                && entry.state.path_limit_mut().is_some_and(|inner| inner.go_through(&limit))
            {
                self.spread_path(SessionId(index as u32));
            }
        }
    }

    /// Lowers a path MTU by an ICMP message that came from outside; the SA whose path MTU that changed. Nothing
    /// vouches for such a message (RFC 4301 8.2.1), so it is believed only if it quotes SPI, addresses and
    /// sequence number of a packet that was sent lately, and not below what every path takes.
    pub fn learn_path_mtu(&mut self, message: &[u8]) -> Option<SessionId> {
        let message = TooBig::parse(message)?;
        let quoted = Quoted::parse(message.quoted)?;
        if !self.lessons.take(self.watch.now()) {
            return None;
        }
        let index = self.quoted(&quoted)?;
        let mtu = match message.mtu {
            0 if quoted.family == Family::V4 => plateau_below(quoted.len),
            mtu if quoted.family == Family::V6 && mtu < min_path_mtu(Family::V6).into() => return None,
            mtu => mtu.min(u16::MAX.into()) as u16,
        };
        let session = SessionId(index as u32);
        self.lower_path_mtu(session, mtu).then_some(session)
    }

    /// The fragments that an IPv4 packet too big for its SA's path is to be divided into, each to be prepared
    /// like any other packet (RFC 4301 8.2.1, case 2). `None` if it is not too big, may not be divided, or has
    /// an SA in transport mode, which takes it whole.
    pub fn divide<'a>(&mut self, original: &'a [u8]) -> Option<Fragments<'a>> {
        let ip = Ip::parse(original).ok()?;
        let (limit, mtu) = self.limit(&ip)?;
        if limit.mode() == Mode::Transport || ip.family() == Family::V6 {
            return None;
        }
        Fragments::new(&ip, mtu.into(), 0)
    }

    /// Writes the ICMP message for the source of a packet that is too big for its SA's path and may not be
    /// divided (RFC 4301 8.2.1, cases 1 and 3) at the begin of `room`; its length. `from` is this gateway's
    /// address on the source's side, of the packet's family. `None` if there is none to send: see
    /// [`icmp::packet_too_big`]; or too many were sent lately, by the time that is told.
    pub fn answer(&mut self, original: &[u8], from: IpAddr, room: &mut [u8]) -> Option<usize> {
        let ip = Ip::parse(original).ok()?;
        if matches!(ip, Ip::V4(v4) if !v4.dont_fragment()) {
            return None;
        }
        let (_, mtu) = self.limit(&ip)?;
        let len = icmp::packet_too_big(original, mtu, from, room)?;
        self.answers.take(self.watch.now()).then_some(len)
    }

    /// The fragments of a protected packet that is longer than the path takes: there are some only where the
    /// packet inside must pass whole, IPv6 of up to 1,280 bytes (RFC 2473 7.1), or was protected whole in
    /// transport mode. `None` for all others, which are sent as they are.
    ///
    /// If the packet is to go through another SA, each fragment is ([`Sad::prepare_with`]); there are none if that
    /// is in transport mode, which takes the packet whole.
    pub fn divide_sealed<'a>(&self, session: SessionId, sealed: &'a [u8]) -> Option<Fragments<'a>> {
        let entry = self.sas.get(session.0 as usize)?;
        let mtu = usize::from(entry.state.path_limit()?.mtu()?);
        let outer = entry.outer.and_then(|outer| self.path_limit(SessionId(outer)));
        let ip = Ip::parse(sealed).ok()?;
        if ip.bytes().len() <= mtu || outer.is_some_and(|outer| outer.mode() == Mode::Transport) {
            return None;
        }
        let (_, spi, sequence) = spi_and_sequence(&ip)?;
        // One to one with the sequence number, and another series for each SA.
        Fragments::new(&ip, mtu, sequence ^ spi.rotate_left(16))
    }

    /// Bytes up to which a sealed packet of an SA is sent whole; a longer one [`Sad::divide_sealed`] may divide.
    #[inline]
    pub fn whole_up_to(&self, session: SessionId) -> usize {
        self.path_limit(session).and_then(PathLimit::mtu).map_or(usize::MAX, usize::from)
    }

    /// Makes `packet` a dummy packet of an outbound SA with `len` bytes inside, and states its job: sent between
    /// others, it hides when there is something to say (RFC 4303 2.6). Its receiver drops it.
    pub fn dummy(
        &mut self,
        session: SessionId,
        len: usize,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let entry = self.sas.get_mut(session.0 as usize).ok_or(DropReason::OutNoStates)?;
        let State::Out(sa) = &mut entry.state else { return Err(DropReason::OutNoStates) };
        sa.dummy(packet, len, spec, &mut self.watch)?;
        entry.in_flight += 1;
        Ok(())
    }

    /// Packets of an inbound SA with a combination of ECN marks that no tunnel makes: something on the way does
    /// not keep to RFC 6040.
    pub fn ecn_odd(&self, session: SessionId) -> u64 {
        match self.sas.get(session.0 as usize).map(|entry| &entry.state) {
            Some(State::In(sa)) => sa.ecn_odd(),
            Some(State::InAh(sa)) => sa.ecn_odd(),
            _ => 0,
        }
    }

    /// The SA of a packet that is longer than may be, and how long it may be.
    fn limit(&mut self, ip: &Ip<'_>) -> Option<(&PathLimit, u16)> {
        let Decision::Protect(index) = self.spd.decide_outbound(ip) else { return None };
        let header_len = match ip {
            Ip::V4(ip) => ip.header_len(),
            Ip::V6(ip) => ip.transport_place().ok()?.at,
        };
        let limit = self.path_limit(SessionId(index))?;
        let mtu = limit.effective_mtu(header_len)?;
        (ip.bytes().len() > mtu.into()).then_some((limit, mtu))
    }

    /// The SA that a quoted packet is of.
    fn quoted(&self, quoted: &Quoted) -> Option<usize> {
        self.sas.iter().zip(&self.configs).position(|(entry, config)| {
            let sent = match &entry.state {
                State::Out(sa) => sa.sequence,
                State::OutAh(sa) => sa.sequence(),
                State::In(_) | State::InAh(_) | State::Away(..) | State::Gone(_) => return false,
            };
            config.as_ref().is_some_and(|config| quoted.is_of(config, sent))
        })
    }

    fn path_limit(&self, session: SessionId) -> Option<&PathLimit> {
        self.sas.get(session.0 as usize)?.state.path_limit()
    }
}

impl State {
    fn path_limit(&self) -> Option<&PathLimit> {
        match self {
            State::Out(sa) => Some(&sa.limit),
            State::OutAh(sa) => Some(&sa.limit),
            State::In(_) | State::InAh(_) | State::Away(..) | State::Gone(_) => None,
        }
    }

    fn path_limit_mut(&mut self) -> Option<&mut PathLimit> {
        match self {
            State::Out(sa) => Some(&mut sa.limit),
            State::OutAh(sa) => Some(&mut sa.limit),
            State::In(_) | State::InAh(_) | State::Away(..) | State::Gone(_) => None,
        }
    }
}

/// Kind, SPI and sequence number of a whole protected packet.
fn spi_and_sequence(ip: &Ip<'_>) -> Option<(Protocol, u32, u32)> {
    let (protocol, at) = match ip {
        Ip::V4(ip) => (ip.protocol(), ip.header_len()),
        Ip::V6(ip) => ip.upper_layer().ok().map(|upper| (upper.protocol, upper.at))?,
    };
    read_spi(protocol, ip.bytes().get(at..)?)
}

/// Kind, SPI and sequence number at the begin of an IP payload.
fn read_spi(protocol: u8, payload: &[u8]) -> Option<(Protocol, u32, u32)> {
    let (protocol, at) = match protocol {
        protocol::ESP => (Protocol::Esp, 0),
        protocol::AH => (Protocol::Ah, 4),
        protocol::UDP => (Protocol::Esp, udp::HEADER),
        _ => return None,
    };
    let numbers: &[u8; esp::HEADER] = payload.get(at..)?.first_chunk()?;
    let number =
        |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
    Some((protocol, number(0), number(4)))
}

/// The begin of a protected packet in an ICMP message, which may end anywhere behind the sequence number.
#[derive(Clone, Copy, Debug)]
struct Quoted {
    family: Family,
    source: IpAddr,
    destination: IpAddr,
    /// Its length in bytes.
    len: u16,
    protocol: Protocol,
    spi: u32,
    sequence: u32,
}

impl Quoted {
    fn parse(bytes: &[u8]) -> Option<Quoted> {
        match bytes.first()? >> 4 {
            4 => {
                let header: &[u8; ipv4::MIN_HEADER] = bytes.first_chunk()?;
                let payload = bytes.get(usize::from(header[0] & 15) * 4..)?;
                let (protocol, spi, sequence) = read_spi(header[9], payload)?;
                let address =
                    |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
                let len = u16::from_be_bytes([header[2], header[3]]);
                Some(Quoted {
                    family: Family::V4,
                    source: address(12),
                    destination: address(16),
                    len,
                    protocol,
                    spi,
                    sequence,
                })
            }
            6 => {
                let (header, payload) = bytes.split_first_chunk::<{ ipv6::HEADER }>()?;
                let (protocol, spi, sequence) = read_spi(header[6], payload)?;
                let address =
                    |at: usize| header[at..].first_chunk::<16>().map(|octets| IpAddr::from(*octets));
                let len = u16::from_be_bytes([header[4], header[5]]).saturating_add(ipv6::HEADER as u16);
                Some(Quoted {
                    family: Family::V6,
                    source: address(8)?,
                    destination: address(24)?,
                    len,
                    protocol,
                    spi,
                    sequence,
                })
            }
            _ => None,
        }
    }

    /// Whether it is of an SA with these settings that has sent `sent` packets.
    fn is_of(&self, config: &SaConfig, sent: u64) -> bool {
        let addresses = config.mode == Mode::Transport
            || (config.local == self.source && config.remote == self.destination);
        let age = (sent as u32).wrapping_sub(self.sequence);
        let is_named = config.protocol == self.protocol && config.spi.get() == self.spi;
        is_named && addresses && age < RECENT && u64::from(age) < sent
    }
}

/// How many more messages there may be: a bucket that fills with the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    left: u64,
    filled: Time,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { left: MESSAGES_AT_ONCE, filled: Time::ZERO }
    }
}

impl Rate {
    /// Takes one, if there is one.
    fn take(&mut self, now: Time) -> bool {
        const EVERY: u64 = PS_PER_S / MESSAGES_PER_S;
        let more = now.since(self.filled).0 / EVERY;
        if more > 0 {
            self.left = self.left.saturating_add(more).min(MESSAGES_AT_ONCE);
            self.filled = now;
        }
        let some = self.left > 0;
        self.left -= u64::from(some);
        some
    }
}
