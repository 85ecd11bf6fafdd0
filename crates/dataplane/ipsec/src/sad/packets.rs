//! What SAs do to packets: the steps before and after the job of a packet whose SA is known, or is named by it.

use std::net::IpAddr;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Verdict};
use forebay_planted::{Fault, planted};
use forebay_wire::{Addresses, Ip};

use super::Sad;
use super::entry::{Entry, Further, State};
use crate::aggregation::Aggregation;
use crate::find::{AhAt, EspAt};
use crate::step::{Next, Prepared};
use crate::watch::Watch;
use forebay_drops::DropReason;
use forebay_tunnel::Inner;

impl Sad {
    /// Prepares a packet for sealing with an SA, whatever its selectors say.
    ///
    /// # Panics
    /// If there never was an SA of this number.
    #[inline]
    pub fn prepare_outbound(
        &mut self,
        session: SessionId,
        packet: &mut Packet,
        inner: &Inner,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<Prepared, DropReason> {
        let entry = &mut self.sas[session.0 as usize];
        match &mut entry.state {
            State::Outbound(sa) => sa.prepare(packet, inner, spec, watch)?,
            State::OutboundAh(sa) => sa.prepare(packet, inner, spec, watch)?,
            State::Inbound(_) | State::InboundAh(_) => return Err(DropReason::OutNoStates),
            State::Removed(_) => return Err(DropReason::OutStateInvalid),
        }
        entry.in_flight += 1;
        Ok(Prepared::Job)
    }

    /// Prepares a payload of an outbound SA that aggregates, for an outer header with this ECN field.
    pub fn prepare_payload(
        &mut self,
        session: SessionId,
        packet: &mut Packet,
        ecn: u8,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        let entry = self.sas.get_mut(session.0 as usize).ok_or(DropReason::OutNoStates)?;
        let State::Outbound(sa) = &mut entry.state else { return Err(DropReason::OutNoStates) };
        sa.prepare_payload(packet, ecn, spec, watch)?;
        entry.in_flight += 1;
        Ok(())
    }

    /// Makes `packet` a dummy packet of an outbound SA with `len` bytes inside, and states its job.
    pub fn dummy(
        &mut self,
        session: SessionId,
        len: usize,
        packet: &mut Packet,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        let entry = self.sas.get_mut(session.0 as usize).ok_or(DropReason::OutNoStates)?;
        let State::Outbound(sa) = &mut entry.state else { return Err(DropReason::OutNoStates) };
        sa.dummy(packet, len, spec, watch)?;
        entry.in_flight += 1;
        Ok(())
    }

    /// Prepares a packet for opening that holds ESP where `found` says, and came out of SA number `through`, if out
    /// of any. `None` if no inbound SA is for it.
    #[inline]
    pub fn prepare_esp(
        &mut self,
        packet: &Packet,
        outer: &Ip<'_>,
        found: &EspAt,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Option<Prepared>, DropReason> {
        let Some(&index) = self.by_spi.get(&found.spi) else { return Ok(None) };
        let entry = &mut self.sas[index as usize];
        entry.comes_through(through)?;
        let State::Inbound(sa) = &mut entry.state else { return Err(DropReason::InNoStates) };
        match sa.accepts(found, outer) {
            // Another gateway's packet may have any SPI.
            Err(DropReason::InNoStates) => return Ok(None),
            accepted => accepted?,
        }
        sa.prepare(packet, found, spec).inspect_err(|&reason| {
            entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
        })?;
        entry.in_flight += 1;
        Ok(Some(Prepared::Job))
    }

    /// The same for AH, in a packet to the address `outer`.
    pub fn prepare_ah(
        &mut self,
        packet: &mut Packet,
        outer: IpAddr,
        found: &AhAt,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Option<Prepared>, DropReason> {
        let Some(&index) = self.by_spi.get(&found.spi) else { return Ok(None) };
        let entry = &mut self.sas[index as usize];
        let sa = match &mut entry.state {
            State::InboundAh(sa) if sa.accepts(outer) => sa,
            State::InboundAh(_) => return Ok(None),
            _ => return Err(DropReason::InNoStates),
        };
        if entry.outer.is_some() && entry.outer != through {
            return Err(DropReason::InStateMismatch);
        }
        sa.prepare(packet, found, spec).inspect_err(|&reason| {
            entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
        })?;
        entry.in_flight += 1;
        Ok(Some(Prepared::Job))
    }

    /// Prepares jobs from the front of `jobs` for an outbound SA while their packets are of one flow between
    /// `addresses`; how many it did.
    #[inline]
    pub fn prepare_outbound_run(
        &mut self,
        session: SessionId,
        jobs: &mut [Job],
        addresses: &Addresses,
    ) -> usize {
        let Some(Entry { state: State::Outbound(sa), in_flight, .. }) = self.sas.get_mut(session.0 as usize)
        else {
            return 0;
        };
        let done = sa.prepare_run(jobs, addresses);
        *in_flight += done as u32;
        done
    }

    /// Prepares jobs from the front of `jobs` for an inbound SA likewise, behind a packet of it that was `accepted`.
    #[inline]
    pub fn prepare_inbound_run(&mut self, session: SessionId, accepted: &[u8], jobs: &mut [Job]) -> usize {
        let Some(Entry { state: State::Inbound(sa), in_flight, .. }) = self.sas.get_mut(session.0 as usize)
        else {
            return 0;
        };
        let done = sa.prepare_run(accepted, jobs);
        *in_flight += done as u32;
        done
    }

    /// Completes jobs from the front of `jobs` while they are of one SA and nothing is unusual about them; how many.
    /// `policies` is the state of the policies at present.
    #[inline]
    pub fn complete_run(&mut self, jobs: &mut [Job], policies: u64) -> usize {
        let session = jobs.first().map(|job| job.spec.session.0 as usize);
        let Some(entry) = session.and_then(|session| self.sas.get_mut(session)) else { return 0 };
        let (done, bytes) = match &mut entry.state {
            State::Outbound(sa) if entry.outer.is_none() => sa.complete_run(jobs),
            State::Inbound(sa) if entry.outer.is_none() => sa.complete_run(jobs, policies),
            _ => (0, 0),
        };
        entry.counters.packets += done as u64;
        entry.counters.bytes += bytes;
        entry.in_flight = entry.in_flight.saturating_sub(done as u32);
        done
    }

    /// Does everything that needs the verdict and only the SA; says in which direction, and what follows. Inbound,
    /// [`Next::Again`] means that the packet may be ESP or AH itself and has not been held against the SA's selectors.
    #[inline]
    pub fn complete(
        &mut self,
        packet: &mut Packet,
        spec: &JobSpec,
        verdict: Verdict,
        watch: &mut Watch,
        payloads: &mut Aggregation,
    ) -> Result<(Direction, Next), DropReason> {
        let entry = self.sas.get_mut(spec.session.0 as usize).ok_or(DropReason::InError)?;
        let was_last = entry.in_flight == 1;
        entry.in_flight = entry.in_flight.saturating_sub(1);
        match (&mut entry.state, verdict) {
            (State::Removed(direction), _) => {
                // The last of a removed SA's jobs sets its number free.
                if was_last {
                    self.free.push_back(spec.session.0);
                }
                return Err(match direction {
                    Direction::Seal => DropReason::OutStateInvalid,
                    Direction::Open => DropReason::InStateInvalid,
                });
            }
            (State::Outbound(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::OutboundAh(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::Outbound(_) | State::OutboundAh(_), _) => {
                if planted(Fault::NumbersGivenBack)
                    && let State::Outbound(sa) = &mut entry.state
                {
                    sa.numbers.sequence -= 1;
                }
                return Err(DropReason::OutError);
            }
            (State::Inbound(_) | State::InboundAh(_), verdict)
                if verdict == Verdict::Done
                    || (planted(Fault::IcvIgnored) && verdict == Verdict::AuthFailed) =>
            {
                let (outer_len, opened) = match &mut entry.state {
                    State::Inbound(sa) => (packet.len(), sa.complete(packet, spec, watch, payloads)),
                    State::InboundAh(sa) => (sa.len_of(spec), sa.complete(packet, spec, watch)),
                    State::Outbound(_) | State::OutboundAh(_) | State::Removed(_) => {
                        return Err(DropReason::InError);
                    }
                };
                let next = opened.inspect_err(|&reason| {
                    entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
                })?;
                entry.counters.packets += 1;
                entry.counters.bytes += outer_len as u64;
                return Ok((Direction::Open, next));
            }
            (State::Inbound(_) | State::InboundAh(_), Verdict::AuthFailed) => {
                match &mut entry.state {
                    State::Inbound(sa) => sa.auth_failed(),
                    State::InboundAh(sa) => sa.auth_failed(),
                    State::Outbound(_) | State::OutboundAh(_) | State::Removed(_) => {}
                }
                entry.counters.auth_failures += 1;
                return Err(DropReason::InStateProtoError);
            }
            (State::Inbound(_) | State::InboundAh(_), Verdict::Pending | Verdict::Failed | Verdict::Done) => {
                return Err(DropReason::InError);
            }
        }
        entry.counters.packets += 1;
        entry.counters.bytes += packet.len() as u64;
        Ok((Direction::Seal, if entry.outer.is_some() { Next::Again } else { Next::Deliver }))
    }

    /// Which SA follows for a packet that is complete for one and goes through another.
    pub fn further(&self, session: SessionId) -> Result<Further, DropReason> {
        self.sas.get(session.0 as usize).ok_or(DropReason::InError)?.further()
    }

    /// Whether a packet that came out of an inbound SA may have, by the SA's selectors (RFC 4301 5.2 step 4).
    pub fn admit(&self, session: SessionId, ip: &Ip<'_>) -> Result<(), DropReason> {
        match self.sas.get(session.0 as usize).map(|entry| &entry.state) {
            Some(State::Inbound(sa)) => sa.admits(ip),
            Some(State::InboundAh(sa)) => sa.admits(ip),
            _ => Err(DropReason::InStateMismatch),
        }
    }

    /// Whether a packet is ESP or AH of one of the SAs, and for this gateway.
    pub fn is_ours(&self, ip: &Ip<'_>) -> bool {
        let spi = match EspAt::find(ip) {
            Ok(found) => Some(found.spi),
            Err(_) => AhAt::find(ip).ok().map(|found| found.spi),
        };
        let index = spi.and_then(|spi| self.by_spi.get(&spi));
        index.is_some_and(|&index| {
            self.config(SessionId(index)).is_some_and(|sa| sa.local == ip.destination())
        })
    }

    /// Lets the packets behind one that an inbound SA has delivered, between `addresses`, pass without a look at
    /// selectors and policies while the policies are in this state.
    #[inline]
    pub fn pass_all(&mut self, session: SessionId, addresses: &Addresses, policies: u64) {
        if let Some(Entry { state: State::Inbound(sa), outer: None, .. }) =
            self.sas.get_mut(session.0 as usize)
            && sa.passed() == Some(*addresses)
        {
            sa.pass_all(policies);
        }
    }

    /// Gives an inner packet of an inbound SA that aggregates what the outer packet asks for that it has come in, of
    /// `traffic_class`.
    pub fn decapsulate_shared(
        &self,
        session: SessionId,
        traffic_class: u8,
        packet: &mut Packet,
    ) -> Result<(), DropReason> {
        match self.sas.get(session.0 as usize).map(|entry| &entry.state) {
            Some(State::Inbound(sa)) => sa.decapsulator.apply_shared(traffic_class, packet.bytes_mut()),
            _ => Ok(()),
        }
    }

    /// Packets of an inbound SA with a combination of ECN marks that no tunnel makes.
    pub fn ecn_odd(&self, session: SessionId) -> u64 {
        match self.sas.get(session.0 as usize).map(|entry| &entry.state) {
            Some(State::Inbound(sa)) => sa.ecn_odd(),
            Some(State::InboundAh(sa)) => sa.ecn_odd(),
            _ => 0,
        }
    }

    /// How many SAs there are, removed ones whose numbers are not used again counted too.
    #[inline]
    pub fn len(&self) -> usize {
        self.sas.len()
    }

    /// Loads what preparing a packet reads of an SA.
    #[inline]
    pub fn touch(&self, session: u32) {
        let Some(entry) = self.sas.get(session as usize) else { return };
        std::hint::black_box(entry.in_flight);
        match &entry.state {
            State::Outbound(sa) => sa.touch(),
            State::Inbound(sa) => sa.touch(),
            State::OutboundAh(_) | State::InboundAh(_) | State::Removed(_) => {}
        }
    }

    /// Loads where the SAs with these SPIs are found, then the SAs, then their replay windows: each step for all
    /// before the next. An SPI of zero is none.
    #[inline]
    pub fn touch_inbound<const N: usize>(&self, spis: &[u32; N]) {
        spis.iter().for_each(|spi| self.by_spi.touch(*spi));
        let mut sessions = [u32::MAX; N];
        for (spi, session) in spis.iter().zip(&mut sessions) {
            *session = self.by_spi.get(spi).copied().unwrap_or(u32::MAX);
        }
        sessions.into_iter().for_each(|session| self.touch(session));
        for session in sessions {
            if let Some(Entry { state: State::Inbound(sa), .. }) = self.sas.get(session as usize) {
                sa.touch_window();
            }
        }
    }
}
