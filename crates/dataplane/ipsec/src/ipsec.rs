//! IPsec: the databases, and the steps before and after every job.

mod burst;
mod configure;

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Verdict};
use forebay_time::Time;
use forebay_wire::{Addresses, Fragment, Fragments, Ip};

use crate::aggregation::Aggregation;
use crate::find::{AhAt, EspAt};
use crate::path_mtu::PathMtus;
use crate::sad::Sad;
use crate::sad::entry::Further;
use crate::step::{Next, Path, Prepared};
use crate::watch::Watch;
use forebay_drops::DropReason;
use forebay_spd::{Decision, Seed, Spd};
use forebay_tunnel::Inner;

/// The IPsec of a gateway: which packets go through which SAs, and what becomes of them. Each part owns its state;
/// here they meet.
#[derive(Debug)]
pub struct Ipsec {
    sad: Sad,
    spd: Spd,
    iptfs: Aggregation,
    path_mtu: PathMtus,
    watch: Watch,
}

impl Default for Ipsec {
    /// Databases whose hash key is public: for tests. See [`Ipsec::seeded`].
    fn default() -> Ipsec {
        Ipsec::seeded(0)
    }
}

impl Ipsec {
    /// Empty databases. `seed` keys the hash of all their tables. It must be a number that no other party can know,
    /// drawn once per process; an attacker can then not choose packets that all collide in one bucket.
    pub fn seeded(seed: u64) -> Ipsec {
        let seed = Seed::new(seed);
        Ipsec {
            sad: Sad::new(seed),
            spd: Spd::new(seed),
            iptfs: Aggregation::default(),
            path_mtu: PathMtus::default(),
            watch: Watch::default(),
        }
    }

    /// Does everything to a packet that comes before the crypto and needs order, and states in
    /// `spec` the job that is left, which may be done anywhere and at any time. A packet that a policy
    /// bypasses has no job.
    #[inline]
    pub fn prepare(
        &mut self,
        direction: Direction,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<Prepared, DropReason> {
        match direction {
            Direction::Seal => self.prepare_outbound(packet, spec),
            Direction::Open => self.prepare_inbound(packet, spec, None),
        }
    }

    #[inline]
    fn prepare_outbound(&mut self, packet: &mut Packet, spec: &mut JobSpec) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        let session = match self.spd.decide_outbound(&ip) {
            Decision::Protect(session) => SessionId(session),
            Decision::Bypass => {
                let len = ip.bytes().len();
                packet.truncate(len);
                return Ok(Prepared::Bypass);
            }
            Decision::Drop(reason) => return Err(reason),
        };
        let inner = Inner::of(&ip);
        self.sad.prepare_outbound(session, packet, &inner, spec, &mut self.watch)
    }

    /// Prepares a packet for opening that came out of SA number `through`, if out of any.
    #[inline]
    fn prepare_inbound(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let found = match EspAt::find(&ip) {
            Ok(found) => found,
            Err(DropReason::InNoIpsec) => return self.prepare_ah(packet, spec, through),
            Err(reason) => return self.bypass_inbound(packet, reason),
        };
        match self.sad.prepare_esp(packet, &ip, &found, spec, through)? {
            Some(prepared) => Ok(prepared),
            None => self.bypass_inbound(packet, DropReason::InNoStates),
        }
    }

    /// Prepares a packet that is neither ESP nor ESP in UDP.
    fn prepare_ah(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let (found, outer) = match AhAt::find(&ip) {
            Ok(found) => (found, ip.destination()),
            Err(reason) => return self.bypass_inbound(packet, reason),
        };
        match self.sad.prepare_ah(packet, outer, &found, spec, through)? {
            Some(prepared) => Ok(prepared),
            None => self.bypass_inbound(packet, DropReason::InNoStates),
        }
    }

    /// What no inbound SA is for, for `reason`: the inbound policies decide, if there are any, on
    /// what is not IPsec and on what is not for this gateway (RFC 4301 5.2 step 2).
    #[cold]
    fn bypass_inbound(&mut self, packet: &mut Packet, reason: DropReason) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let cleartext = match reason {
            DropReason::InNoIpsec | DropReason::InIke => true,
            // A fragment of ours may be one of ESP, and an unknown SPI to us is an error.
            DropReason::InFragment | DropReason::InNoStates => !self.sad.is_local(&ip.destination()),
            _ => false,
        };
        if !cleartext || !self.spd.has_inbound() {
            return Err(reason);
        }
        self.spd.check_cleartext(&ip)?;
        let len = ip.bytes().len();
        packet.truncate(len);
        Ok(Prepared::Bypass)
    }

    /// Does everything that needs the verdict. Called once per job, for each SA in the order of
    /// release, so that what is delivered is in order and delivered once.
    #[inline]
    pub fn complete(
        &mut self,
        packet: &mut Packet,
        spec: &JobSpec,
        verdict: Verdict,
    ) -> Result<Next, DropReason> {
        self.complete_on(&Path::default(), packet, spec, verdict)
    }

    /// The same for a packet that has been through the SAs of `path` before.
    #[inline]
    pub fn complete_on(
        &mut self,
        path: &Path,
        packet: &mut Packet,
        spec: &JobSpec,
        verdict: Verdict,
    ) -> Result<Next, DropReason> {
        let completed = self.sad.complete(packet, spec, verdict, &mut self.watch, &mut self.iptfs)?;
        let next = match completed {
            (Direction::Seal, next) => return Ok(next),
            (Direction::Open, next) => self.arrive(spec.session, next, path, packet)?,
        };
        if next == Next::Deliver {
            self.remember(spec.session, packet);
        }
        Ok(next)
    }

    /// Lets the packets behind one that has been delivered do without what it was asked, if they are alike.
    // By itself, so that what is around it has the registers.
    #[inline(never)]
    fn remember(&mut self, session: SessionId, packet: &Packet) {
        // What is for an SA in UDP of ours shows by its ports only.
        if let Ok(ip) = Ip::parse(packet.bytes())
            && let Some(addresses) = Addresses::of(&ip)
            && self.spd.passes_all(&addresses, session)
            && self.sad.in_udp_at(&ip.destination()) == 0
        {
            self.sad.pass_all(session, &addresses, self.spd.state());
        }
    }

    /// Says what follows for a packet that an SA has opened: `next` is [`Next::Again`] if it
    /// may be ESP or AH itself and has not been held against that SA's selectors.
    #[inline]
    fn arrive(
        &mut self,
        session: SessionId,
        next: Next,
        path: &Path,
        packet: &Packet,
    ) -> Result<Next, DropReason> {
        let is_plain = next == Next::Deliver && path.sas().is_empty();
        if next == Next::Unpack || (is_plain && !self.spd.has_inbound()) {
            return Ok(next);
        }
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InStateModeError)?;
        if next == Next::Again {
            if self.sad.is_ours(&ip) || (is_fragment(&ip) && self.sad.is_inside(session, &ip)) {
                return Ok(Next::Again);
            }
            self.sad.admit(session, &ip)?;
        }
        path.sas().iter().try_for_each(|session| self.sad.admit(*session, &ip))?;
        if self.spd.has_inbound() {
            // The policy must protect by one of the SAs that the packet came through.
            let first = self.spd.check_opened(&ip, session);
            first.or_else(|reason| {
                if path.sas().iter().any(|session| self.spd.check_opened(&ip, *session).is_ok()) {
                    Ok(())
                } else {
                    Err(reason)
                }
            })?;
        }
        Ok(Next::Deliver)
    }

    /// Prepares a packet for which complete has said [`Next::Again`] for the SA that is next, and adds the
    /// one it comes from to `path`. Its next complete is [`Ipsec::complete_on`].
    ///
    /// An outbound packet that is longer than the next SA's path takes goes there in pieces, see
    /// [`Ipsec::divide_sealed`]; an inbound one may be such a piece, and is to be put together with the others first.
    pub fn again(
        &mut self,
        path: &mut Path,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let session = spec.session;
        match self.sad.further(session)? {
            Further::Outer(outer) => {
                path.push(session).ok_or(DropReason::OutError)?;
                self.prepare_with(outer, packet, spec)
            }
            Further::Named => {
                path.push(session).ok_or(DropReason::InBufferError)?;
                // What is for an SA of ours is no cleartext.
                match self.prepare_inbound(packet, spec, Some(session.0))? {
                    Prepared::Job => Ok(()),
                    Prepared::Bypass => Err(DropReason::InNoStates),
                }
            }
        }
    }

    /// Prepares a packet for sealing with a given SA, whatever its selectors say.
    pub fn prepare_with(
        &mut self,
        session: SessionId,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        let inner = Inner::of(&ip);
        self.sad.direction(session).ok_or(DropReason::OutStateInvalid)?;
        match self.sad.prepare_outbound(session, packet, &inner, spec, &mut self.watch)? {
            Prepared::Job => Ok(()),
            Prepared::Bypass => Err(DropReason::OutStateInvalid),
        }
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
        self.sad.dummy(session, len, packet, spec, &mut self.watch)
    }

    /// Queues a copy of a plain packet if its SA aggregates, and says which SA that is; `None` if the
    /// packet is one for [`Ipsec::prepare`].
    pub fn aggregate(&mut self, now: Time, packet: &Packet) -> Result<Option<SessionId>, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        // What else a policy says of it is for prepare to do.
        let Decision::Protect(index) = self.spd.decide_outbound(&ip) else { return Ok(None) };
        let session = SessionId(index);
        Ok(self.iptfs.push(now, session, ip.bytes())?.then_some(session))
    }

    /// Prepares the next payload that is due in `packet`, whatever that held, as [`Ipsec::prepare`] does with a
    /// packet. To be asked until it gives `None`. After an error the payload is lost.
    pub fn poll_aggregate(
        &mut self,
        now: Time,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Option<Result<SessionId, DropReason>> {
        while let Some(session) = self.iptfs.due_outbound(now) {
            let result = match self.iptfs.fill(now, session, packet) {
                Ok(true) => {
                    let ecn = self.iptfs.ecn(session);
                    self.sad.prepare_payload(session, packet, ecn, spec, &mut self.watch).map(|()| true)
                }
                other => other,
            };
            self.iptfs.reschedule(session, result.is_ok());
            match result {
                Ok(false) => {}
                Ok(true) => return Some(Ok(session)),
                Err(reason) => return Some(Err(reason)),
            }
        }
        None
    }

    /// Puts the next inner packet that an inbound SA has into `packet`; an error for something that was
    /// lost or may not have come out of this SA; `None` if there is no more. To be asked until then after
    /// [`Ipsec::complete`] has left an empty packet, and for the SAs that [`Ipsec::poll_inner`] names.
    pub fn take_inner(
        &mut self,
        now: Time,
        session: SessionId,
        packet: &mut Packet,
    ) -> Option<Result<(), DropReason>> {
        let taken = self.iptfs.take_inner(now, session, packet)?;
        Some(taken.and_then(|()| {
            let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InStateModeError)?;
            self.sad.admit(session, &ip)?;
            if self.spd.has_inbound() {
                self.spd.check_opened(&ip, session)?;
            }
            self.sad.decapsulate_shared(session, self.iptfs.traffic_class(session), packet)
        }))
    }

    /// The fragments that an IPv4 packet too big for its SA's path is to be divided into, each to be prepared
    /// like any other packet (RFC 4301 8.2.1, case 2). `None` if it is not too big, may not be divided, or has
    /// an SA in transport mode, which takes it whole.
    pub fn divide<'a>(&mut self, original: &'a [u8]) -> Option<Fragments<'a>> {
        let ip = Ip::parse(original).ok()?;
        let Decision::Protect(index) = self.spd.decide_outbound(&ip) else { return None };
        self.path_mtu.divide(SessionId(index), &ip)
    }

    /// Writes the ICMP error for the source of a packet that is too big for its SA's path and may not be fragmented
    /// (RFC 4301 8.2.1, cases 1 and 3) at the begin of `room`; returns its length. `from` is this gateway's address
    /// on the source's side, of the packet's family. `None` if no error may be sent, see
    /// [`icmp::packet_too_big`](forebay_wire::icmp::packet_too_big), or if too many were sent lately, by the time
    /// given to [`Ipsec::advance`].
    pub fn icmp_error(&mut self, original: &[u8], from: IpAddr, room: &mut [u8]) -> Option<usize> {
        let ip = Ip::parse(original).ok()?;
        if matches!(ip, Ip::V4(v4) if !v4.dont_fragment()) {
            return None;
        }
        let Decision::Protect(index) = self.spd.decide_outbound(&ip) else { return None };
        self.path_mtu.icmp_error(SessionId(index), &ip, from, room, &self.watch)
    }

    /// The fragments of a protected packet that is longer than the path takes: there are some only where the
    /// packet inside must pass whole, IPv6 of up to 1,280 bytes (RFC 2473 7.1), or was protected whole in
    /// transport mode. `None` for all others, which are sent as they are.
    ///
    /// If the packet is to go through another SA, each fragment is ([`Ipsec::prepare_with`]); there are none if that
    /// is in transport mode, which takes the packet whole.
    pub fn divide_sealed<'a>(&self, session: SessionId, sealed: &'a [u8]) -> Option<Fragments<'a>> {
        self.path_mtu.divide_sealed(session, self.sad.outer(session), sealed)
    }
}

fn is_fragment(ip: &Ip<'_>) -> bool {
    Fragment::find(ip).is_ok_and(|fragment| fragment.is_some())
}
