//! AH inbound: everything around the crypto job when opening (RFC 4302 3.4).

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId};
use forebay_wire::{Ah, Family, Ip, ah, ipv4, ipv6, protocol};

use super::layout::{Headers, Sizes, in_hdr_error, tunnel_protocol};
use crate::esp::{check_selectors, want_note};
use crate::find::AhAt;
use crate::lifetime::Life;
use crate::sa::{Mode, SaConfig};
use crate::step::Next;
use crate::watch::Watch;
use forebay_drops::DropReason;
use forebay_replay::{Replay, ReplayWindow, Resync};
use forebay_spd::{DscpSet, Rule};
use forebay_tunnel::{self as tunnel, Decapsulator};

/// An inbound SA of AH: its settings and its replay window.
#[derive(Debug)]
pub struct InboundAh {
    sizes: Sizes,
    mode: Mode,
    local: IpAddr,
    pub(crate) replay: ReplayWindow,
    resync: Resync,
    pub(crate) life: Life,
    decapsulator: Decapsulator,
    selectors: Box<Rule>,
}

impl InboundAh {
    pub fn new(config: &SaConfig, session: SessionId, watch: &mut Watch) -> InboundAh {
        let suite = config.suite;
        InboundAh {
            sizes: Sizes { session, iv_len: suite.iv_len(), icv_len: suite.icv_len(), esn: config.esn },
            mode: config.mode,
            local: config.local,
            replay: ReplayWindow::new(config.replay_window),
            resync: Resync::default(),
            life: Life::new(config.lifetime, session, watch),
            decapsulator: Decapsulator::new(&config.tunnel),
            selectors: Box::new(Rule::new(&config.local_ts, &config.remote_ts, DscpSet::ALL)),
        }
    }

    /// Whether a packet that came out of the SA may have (RFC 4301 5.2 step 4).
    pub fn admits(&self, ip: &Ip<'_>) -> Result<(), DropReason> {
        check_selectors(&self.selectors, ip)
    }

    /// Packets that carried a combination of ECN marks that no tunnel makes.
    pub fn ecn_odd(&self) -> u64 {
        self.decapsulator.odd()
    }

    /// Takes note of a packet whose ICV did not match.
    pub fn auth_failed(&mut self) {
        self.resync.failed();
    }

    /// Whether a packet to the address `outer` may use the SA. In transport mode the addresses are the
    /// selectors' business.
    pub fn accepts(&self, outer: IpAddr) -> bool {
        self.mode == Mode::Transport || self.local == outer
    }

    /// Turns the AH packet in `packet` into its image. A packet that cannot be prepared stays as it was.
    pub fn prepare(
        &mut self,
        packet: &mut Packet,
        found: &AhAt,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        if self.life.has_expired() {
            return Err(DropReason::InStateExpired);
        }
        if !self.expects(found) {
            return Err(DropReason::InHdrError);
        }
        let sequence = match self.sizes.esn {
            true => self.resync.infer(&self.replay, found.sequence).ok_or(DropReason::InStateSeqError)?,
            false => found.sequence.into(),
        };
        if self.replay.check(sequence) != Replay::New {
            self.replay.refused(sequence);
            return Err(DropReason::InStateSeqError);
        }
        let mut headers = Headers::of(&packet.bytes()[..found.at]).ok_or(DropReason::TooLong)?;
        if found.family == Family::V6 {
            let gone = headers.unfragment();
            if gone > 0 {
                headers.set_length(Family::V6, found.end - gone, protocol::AH);
            }
        }
        let image = headers.image(Direction::Open).ok_or(DropReason::InHdrError)?;
        let offset = packet.offset();
        let (ah_at, end) = (offset + found.at, offset + found.end);
        let places = self.sizes.places(packet, headers.len, ah_at, end).ok_or(DropReason::TooLong)?;
        // The ICV goes into the stash, and what is left of it is zeros.
        let icv_at = ah_at + ah::FIXED + self.sizes.iv_len;
        let icv = icv_at..icv_at + self.sizes.icv_len;
        let buffer = packet.buffer_mut();
        buffer.copy_within(icv.clone(), places.icv);
        buffer[icv].fill(0);
        self.sizes.lay_out(packet, &places, &headers, &image, sequence, spec);
        Ok(())
    }

    /// Whether a header is as long as the SA's ICV asks for. Over IPv4 that is whole words of four bytes, but
    /// many senders make them eight, as in IPv6 (Linux unless told otherwise): the ICV covers their
    /// padding too.
    fn expects(&self, found: &AhAt) -> bool {
        let len = |family| ah::Header::len(family, self.sizes.iv_len + self.sizes.icv_len);
        found.len == len(found.family) || found.len == len(Family::V6)
    }

    /// Length of the AH packet whose job this is, in bytes.
    pub fn len_of(&self, spec: &JobSpec) -> usize {
        spec.auth.len as usize - self.sizes.behind()
    }

    /// Settles the replay window for a packet whose ICV matched, and takes AH off again:
    /// [`Next::Again`], because what is left may be ESP or AH itself, and the SA's selectors have not been
    /// looked at.
    pub fn complete(
        &mut self,
        packet: &mut Packet,
        spec: &JobSpec,
        watch: &mut Watch,
    ) -> Result<Next, DropReason> {
        let places = self.sizes.places_of(packet, spec);
        let high = match self.sizes.esn {
            true => packet.buffer()[places.end..].first_chunk().copied().unwrap_or_default(),
            false => [0; 4],
        };
        places.restore(packet);
        let at = places.ah - places.image;
        let header = Ah::parse(&packet.bytes()[at..]).map_err(in_hdr_error)?;
        let sequence = u64::from(u32::from_be_bytes(high)) << 32 | u64::from(header.sequence());
        let (next_header, len) = (header.next_header(), header.header_len());
        if self.replay.settle(sequence) != Replay::New {
            self.replay.refused(sequence);
            return Err(DropReason::InStateSeqError);
        }
        if sequence > self.replay.mark() {
            want_note(&mut self.replay, &self.life, self.sizes.session, watch);
        }
        self.resync.verified();
        self.life.admit(spec.auth.len as usize, watch).map_err(|_| DropReason::InStateExpired)?;
        self.life.count(1, spec.auth.len.into());
        match self.mode {
            Mode::Tunnel => self.strip_tunnel(packet, at + len, next_header),
            Mode::Transport => strip_transport(packet, at, len, next_header),
        }?;
        Ok(Next::Again)
    }

    fn strip_tunnel(&mut self, packet: &mut Packet, from: usize, next_header: u8) -> Result<(), DropReason> {
        let inner = Ip::parse(&packet.bytes()[from..]).map_err(|_| DropReason::InStateModeError)?;
        if tunnel_protocol(&inner) != next_header {
            return Err(DropReason::InStateModeError);
        }
        let (len, inner_class) = (inner.bytes().len(), inner.traffic_class());
        let outer_class = tunnel::traffic_class(packet.bytes());
        packet.truncate(from + len);
        packet.pull_front(from).ok_or(DropReason::InStateModeError)?;
        if !self.decapsulator.changes_nothing(outer_class, inner_class) {
            self.decapsulator.apply(outer_class, packet.bytes_mut())?;
        }
        Ok(())
    }
}

/// Moves the `at` bytes of headers over the `len` bytes of AH.
fn strip_transport(packet: &mut Packet, at: usize, len: usize, next_header: u8) -> Result<(), DropReason> {
    let ip = Ip::parse(packet.bytes()).map_err(in_hdr_error)?;
    let named_at = match ip {
        Ip::V4(_) => None,
        Ip::V6(ip) => Some(ip.upper_layer().map_err(in_hdr_error)?.named_at),
    };
    packet.bytes_mut().copy_within(..at, len);
    packet.pull_front(len).ok_or(DropReason::InStateModeError)?;
    let total = packet.len();
    let bytes = packet.bytes_mut();
    match named_at {
        None => ipv4::rewrite(bytes, at, total as u16, next_header),
        Some(named_at) => ipv6::rewrite(bytes, named_at, total, next_header),
    }
    Ok(())
}
