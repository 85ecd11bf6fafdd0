//! SAs within SAs: AH around ESP, a tunnel in a tunnel (RFC 4301 4.1, RFC 4302 3.1.1).
//!
//! A packet goes through one SA at a time: prepare, job, complete, and again. Outbound,
//! [`Sad::nest`] says what comes next. Inbound the packets say it themselves: what comes out of an SA
//! and is for another of ours goes on to that. Selectors are those of the innermost packet, and it must
//! match those of every SA on its way (as Linux has it): [`Path`] remembers them.

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId};
use forebay_wire::Ip;

use super::{Entry, Sad, SadError, State};
use crate::drops::DropReason;
use crate::find::{AhAt, EspAt};
use crate::step::{NEST_MAX, Next, Path, Prepared};
use crate::tunnel::Inner;

/// The number of no SA, in place of one that was removed.
const GONE: u32 = u32::MAX;

impl Sad {
    /// Lets the packets of `inner` go through `outer` next: outbound, all that `inner` has sealed; inbound,
    /// `inner` takes only what has come through `outer`. What the path MTU of `outer` leaves is one of `inner`, too,
    /// so that a packet too big for any SA on its way is refused by the first, while its source can be told.
    ///
    /// # Errors
    /// If there are no such SAs, they are not of one direction or not at one core, or more than [`NEST_MAX`]
    /// would be in a row.
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        let error = SadError::CannotNest { inner, outer };
        let direction = |session: SessionId| {
            self.config(session)?;
            Some(self.sas.get(session.0 as usize)?.state.direction())
        };
        let is_together = self.away(inner) == self.away(outer);
        if inner == outer
            || direction(inner).is_none()
            || direction(inner) != direction(outer)
            || !is_together
        {
            return Err(error);
        }
        let entry = &mut self.sas[inner.0 as usize];
        let before = entry.outer.replace(outer.0);
        // From each SA on, so that those that are nested in this one are seen too; a circle never ends.
        if (0..self.sas.len()).any(|start| self.is_too_deep(start)) {
            self.sas[inner.0 as usize].outer = before;
            return Err(error);
        }
        self.nested += usize::from(before.is_none());
        self.spread_path(outer);
        Ok(())
    }

    /// Lets nothing through the SAs whose packets went through `removed`: without it they would go less
    /// protected than was asked for, or through whatever has its number next.
    pub(super) fn unnest(&mut self, removed: SessionId) {
        if self.nested == 0 {
            return;
        }
        self.nested -= usize::from(self.sas[removed.0 as usize].outer.take().is_some());
        for entry in self.sas.iter_mut().filter(|entry| entry.outer == Some(removed.0)) {
            entry.outer = Some(GONE);
        }
    }

    fn is_too_deep(&self, start: usize) -> bool {
        let outer = |index: usize| self.sas.get(index)?.outer.map(|outer| outer as usize);
        std::iter::successors(Some(start), |&index| outer(index)).nth(NEST_MAX).is_some()
    }

    /// Prepares a packet for which complete has said [`Next::Again`] for the SA that is next, and adds the
    /// one it comes from to `path`. Its next complete is [`Sad::complete_on`].
    pub fn again(
        &mut self,
        path: &mut Path,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let session = spec.session;
        let entry = self.sas.get(session.0 as usize).ok_or(DropReason::InError)?;
        match entry.state {
            State::Out(_) | State::OutAh(_) => {
                let outer = entry.outer.ok_or(DropReason::OutError)?;
                path.push(session).ok_or(DropReason::OutError)?;
                self.prepare_with(SessionId(outer), packet, spec)
            }
            State::In(_) | State::InAh(_) => {
                path.push(session).ok_or(DropReason::InBufferError)?;
                // What is for an SA of ours is no cleartext.
                match self.prepare_open(packet, spec, Some(session.0))? {
                    Prepared::Job => Ok(()),
                    Prepared::Pass => Err(DropReason::InNoStates),
                    // Who it came through is known here only.
                    Prepared::Away(_) => Err(DropReason::InNestAway),
                }
            }
            State::Away(Direction::Seal, _) | State::Gone(Direction::Seal) => {
                Err(DropReason::OutStateInvalid)
            }
            State::Away(Direction::Open, _) | State::Gone(Direction::Open) => Err(DropReason::InStateInvalid),
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
        let entry = self.sas.get_mut(session.0 as usize).ok_or(DropReason::OutStateInvalid)?;
        match &mut entry.state {
            State::Out(sa) => sa.prepare(packet, &inner, spec, &mut self.watch)?,
            State::OutAh(sa) => sa.prepare(packet, &inner, spec, &mut self.watch)?,
            State::In(_) | State::InAh(_) => return Err(DropReason::OutNoStates),
            State::Away(..) | State::Gone(_) => return Err(DropReason::OutStateInvalid),
        }
        entry.in_flight += 1;
        Ok(())
    }

    /// Prepares a packet that is neither ESP nor ESP in UDP.
    pub(super) fn prepare_ah(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let (found, outer) = match AhAt::find(&ip) {
            Ok(found) => (found, ip.destination()),
            Err(reason) => return self.pass_cleartext(packet, reason),
        };
        let Some(&index) = self.by_spi.get(&found.spi) else {
            return self.pass_cleartext(packet, DropReason::InNoStates);
        };
        let entry = &mut self.sas[index as usize];
        let sa = match &entry.state {
            State::InAh(sa) => sa,
            State::Away(..) => {
                entry.comes_through(through)?;
                return entry.state.away();
            }
            _ => return Err(DropReason::InNoStates),
        };
        if !sa.accepts(outer) {
            return self.pass_cleartext(packet, DropReason::InNoStates);
        }
        entry.comes_through(through)?;
        let State::InAh(sa) = &mut entry.state else { return Err(DropReason::InNoStates) };
        sa.prepare(packet, &found, spec).inspect_err(|&reason| {
            entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
        })?;
        entry.in_flight += 1;
        Ok(Prepared::Job)
    }

    /// Says what follows for a packet that SA number `index` has opened: `next` is [`Next::Again`] if it
    /// may be ESP or AH itself and has not been held against that SA's selectors.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        index: u32,
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
            if self.is_ours(&ip) {
                return Ok(Next::Again);
            }
            self.admit(index, &ip)?;
        }
        path.sas().iter().try_for_each(|session| self.admit(session.0, &ip))?;
        if self.spd.has_inbound() {
            // The policy must protect by one of the SAs that the packet came through.
            let mut sas = std::iter::once(SessionId(index)).chain(path.sas().iter().copied());
            let first = sas.next().map_or(Ok(()), |session| self.spd.check_opened(&ip, session));
            first.or_else(|reason| {
                if sas.any(|session| self.spd.check_opened(&ip, session).is_ok()) {
                    Ok(())
                } else {
                    Err(reason)
                }
            })?;
        }
        Ok(Next::Deliver)
    }

    fn admit(&self, index: u32, ip: &Ip<'_>) -> Result<(), DropReason> {
        let admitted = match self.sas.get(index as usize).map(|entry| &entry.state) {
            Some(State::In(sa)) => sa.admits(ip),
            Some(State::InAh(sa)) => sa.admits(ip),
            _ => false,
        };
        if admitted { Ok(()) } else { Err(DropReason::InStateMismatch) }
    }

    /// Whether an inbound SA has this as its own address.
    pub fn is_local(&self, address: &IpAddr) -> bool {
        self.own.contains_key(address)
    }

    /// Whether a packet is ESP or AH of one of the SAs, and for this gateway.
    fn is_ours(&self, ip: &Ip<'_>) -> bool {
        let spi = match EspAt::find(ip) {
            Ok(found) => Some(found.spi),
            Err(_) => AhAt::find(ip).ok().map(|found| found.spi),
        };
        let index = spi.and_then(|spi| self.by_spi.get(&spi));
        index.is_some_and(|&index| {
            self.config(SessionId(index)).is_some_and(|sa| sa.local == ip.destination())
        })
    }
}

impl Entry {
    /// Whether a packet that was in SA number `through`, if any, may come in here.
    #[inline]
    pub(super) fn comes_through(&self, through: Option<u32>) -> Result<(), DropReason> {
        match self.outer {
            Some(_) if self.outer != through => Err(DropReason::InStateMismatch),
            _ => Ok(()),
        }
    }
}
