//! SAs that aggregate (RFC 9347): many inner packets to one payload going out, one payload to many
//! inner packets coming in.
//!
//! Outbound, [`Sad::aggregate`] takes the place of prepare for packets of such an SA, and
//! [`Sad::poll_aggregate`] makes jobs of the payloads that are due. Inbound, [`Sad::complete`] leaves an empty
//! packet where it took a payload in, and [`Sad::take_inner`] gives out what that brought.

use forebay_crypto::{JobSpec, Packet, SessionId};
use forebay_time::Time;
use forebay_wire::Ip;
use forebay_wire::aggfrag::CongestionInfo;

use super::{Sad, State};
use crate::drops::DropReason;
use crate::iptfs::{IptfsCounters, Timers};
use crate::sa::SaConfig;
use crate::spd::Decision;

/// When SAs that aggregate have something to do, in both directions.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    outbound: Side,
    inbound: Side,
}

#[derive(Debug, Default)]
struct Side {
    timers: Timers,
    /// The SA of each timer.
    sessions: Vec<SessionId>,
    /// The timer of each SA.
    timer_of: Vec<Option<u32>>,
    /// Timers of SAs that were removed: none of them is due.
    free: Vec<u32>,
}

impl Side {
    fn add(&mut self, session: SessionId) -> u32 {
        let timer = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(session);
            self.timers.add()
        });
        self.sessions[timer as usize] = session;
        let len = self.timer_of.len().max(session.0 as usize + 1);
        self.timer_of.resize(len, None);
        self.timer_of[session.0 as usize] = Some(timer);
        timer
    }

    /// An SA that was removed has nothing to do any more; its timer is for the next one that is added.
    fn remove(&mut self, session: SessionId) {
        self.set(session, Time::MAX);
        self.free.extend(self.timer_of.get_mut(session.0 as usize).and_then(Option::take));
    }

    fn set(&mut self, session: SessionId, due: Time) {
        if let Some(&Some(timer)) = self.timer_of.get(session.0 as usize) {
            self.timers.set(timer, due);
        }
    }

    fn first(&self) -> Option<(SessionId, Time)> {
        self.timers.first().map(|(timer, due)| (self.sessions[timer as usize], due))
    }
}

impl Schedule {
    pub(super) fn add_outbound(&mut self, session: SessionId, config: &SaConfig) {
        if let Some(iptfs) = &config.iptfs {
            let timer = self.outbound.add(session);
            // A fixed rate begins at once, whether there is something to send or not.
            self.outbound.timers.set(timer, if iptfs.rate.is_some() { Time::ZERO } else { Time::MAX });
        }
    }

    pub(super) fn remove(&mut self, session: SessionId) {
        self.outbound.remove(session);
        self.inbound.remove(session);
    }

    pub(super) fn add_inbound(&mut self, session: SessionId, config: &SaConfig) {
        if config.iptfs.is_some() {
            self.inbound.add(session);
        }
    }
}

impl Sad {
    /// Queues a copy of a plain packet if its SA aggregates, and says which SA that is; `None` if the
    /// packet is one for [`Sad::prepare`].
    pub fn aggregate(&mut self, now: Time, packet: &Packet) -> Result<Option<SessionId>, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        // What else a policy says of it is for prepare to do.
        let Decision::Protect(index) = self.spd.decide_outbound(&ip) else { return Ok(None) };
        let session = SessionId(index);
        let State::Out(sa) = &mut self.sas[index as usize].state else { return Ok(None) };
        let Some(aggregator) = sa.aggregator_mut() else { return Ok(None) };
        aggregator.push(now, ip.bytes())?;
        self.iptfs.outbound.set(session, aggregator.due());
        Ok(Some(session))
    }

    /// Prepares the next payload that is due in `packet`, whatever that held, as [`Sad::prepare`] does with a
    /// packet. To be asked until it gives `None`. After an error the payload is lost.
    pub fn poll_aggregate(
        &mut self,
        now: Time,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Option<Result<SessionId, DropReason>> {
        while let Some((session, due)) = self.iptfs.outbound.first()
            && due <= now
        {
            let entry = &mut self.sas[session.0 as usize];
            let State::Out(sa) = &mut entry.state else { return None };
            let result = sa.prepare_aggregate(now, packet, spec, &mut self.watch);
            // One that cannot send does not keep the others from it.
            let due = match result {
                Err(_) => Time::MAX,
                Ok(_) => sa.aggregator_mut().map_or(Time::MAX, |aggregator| aggregator.due()),
            };
            self.iptfs.outbound.set(session, due);
            match result {
                Ok(false) => {}
                Ok(true) => {
                    entry.in_flight += 1;
                    return Some(Ok(session));
                }
                Err(reason) => return Some(Err(reason)),
            }
        }
        None
    }

    /// Puts the next inner packet that an inbound SA has into `packet`; an error for something that was
    /// lost or may not have come out of this SA; `None` if there is no more. To be asked until then after
    /// [`Sad::complete`] has left an empty packet, and for the SAs that [`Sad::poll_inner`] names.
    pub fn take_inner(
        &mut self,
        now: Time,
        session: SessionId,
        packet: &mut Packet,
    ) -> Option<Result<(), DropReason>> {
        let State::In(sa) = &mut self.sas.get_mut(session.0 as usize)?.state else { return None };
        let mut taken = sa.take_inner(now, packet);
        if taken.is_none() {
            let due = sa.deaggregator().map_or(Time::MAX, |deaggregator| deaggregator.due());
            self.iptfs.inbound.set(session, due);
        } else if taken == Some(Ok(())) && self.spd.has_inbound() {
            let checked = Ip::parse(packet.bytes()).map_err(|_| DropReason::InStateModeError);
            taken = Some(checked.and_then(|ip| self.spd.check_opened(&ip, session)));
        }
        taken
    }

    /// An inbound SA whose payloads have waited long enough for one that is missing.
    pub fn poll_inner(&mut self, now: Time) -> Option<SessionId> {
        let (session, _) = self.iptfs.inbound.first().filter(|(_, due)| *due <= now)?;
        // Its draining sets this again.
        self.iptfs.inbound.set(session, Time::MAX);
        Some(session)
    }

    /// Whether there are outbound SAs that aggregate: if not, packets need not be asked about.
    #[inline]
    pub fn aggregates(&self) -> bool {
        !self.iptfs.outbound.sessions.is_empty()
    }

    /// Bytes of inner packets that wait in the queues of outbound SAs.
    pub fn waiting(&self) -> usize {
        let queue = |session: &SessionId| match &self.sas[session.0 as usize].state {
            State::Out(sa) => sa.aggregator.as_ref().map_or(0, |aggregator| aggregator.waiting()),
            _ => 0,
        };
        self.iptfs.outbound.sessions.iter().map(queue).sum()
    }

    /// When [`Sad::poll_aggregate`] or [`Sad::poll_inner`] are to be asked next; [`Time::MAX`] for not
    /// before there is another packet.
    pub fn next_due(&self) -> Time {
        let sides = [&self.iptfs.outbound, &self.iptfs.inbound];
        sides.into_iter().filter_map(Side::first).map(|(_, due)| due).min().unwrap_or(Time::MAX)
    }

    /// What has come out of an inbound SA that aggregates.
    pub fn iptfs_counters(&self, session: SessionId) -> Option<IptfsCounters> {
        match &self.sas.get(session.0 as usize)?.state {
            State::In(sa) => sa.deaggregator().map(|deaggregator| deaggregator.counters()),
            _ => None,
        }
    }

    /// The congestion information that an inbound SA received last.
    pub fn congestion(&self, session: SessionId) -> Option<CongestionInfo> {
        match &self.sas.get(session.0 as usize)?.state {
            State::In(sa) => sa.deaggregator()?.congestion(),
            _ => None,
        }
    }

    /// The congestion information that an outbound SA sends from now on.
    pub fn set_congestion(&mut self, session: SessionId, info: CongestionInfo) {
        if let Some(State::Out(sa)) = self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state)
            && let Some(aggregator) = sa.aggregator_mut()
        {
            aggregator.set_congestion(info);
        }
    }
}
