//! All SAs that aggregate (RFC 9347): the queues of those that send, the payloads of those that receive, and when
//! each has something to do.

use std::net::IpAddr;

use forebay_crypto::{Packet, SessionId};
use forebay_time::Time;

use crate::sa::SaConfig;
use forebay_drops::DropReason;
use forebay_iptfs::{Aggregator, Deaggregator, IptfsCounters, Timers};
use forebay_spd::TrafficSelector;

/// The aggregators of outbound SAs and the deaggregators of inbound ones, each with a timer.
#[derive(Debug, Default)]
pub struct Aggregation {
    outbound: Side<Aggregator>,
    inbound: Side<Deaggregator>,
    /// The SAs of each direction that exchange congestion information, in the order in which they were added.
    senders: Vec<(SessionId, Ends)>,
    receivers: Vec<(SessionId, Ends)>,
    /// By outbound SA, the newest inbound one of its tunnel: it tells the peer what that has found about the path.
    receiver_of: Vec<Option<SessionId>>,
}

/// What the two SAs of a tunnel, one of each direction, have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ends {
    addresses: [IpAddr; 2],
    selectors: [Vec<TrafficSelector>; 2],
}

impl Ends {
    /// The ends of an SA that exchanges congestion information.
    fn of(config: &SaConfig) -> Option<Ends> {
        let SaConfig { local, remote, local_ts, remote_ts, iptfs, .. } = config;
        let exchanges = iptfs.as_ref().is_some_and(|iptfs| iptfs.congestion);
        let selectors = || [local_ts.clone(), remote_ts.clone()];
        exchanges.then(|| Ends { addresses: [*local, *remote], selectors: selectors() })
    }
}

/// The SAs of one direction.
#[derive(Debug)]
struct Side<T> {
    timers: Timers,
    /// The SA of each timer, and what it has; `None` if it was removed.
    tunnels: Vec<(SessionId, Option<Box<T>>)>,
    /// The timer of each SA.
    timer_of: Vec<Option<u32>>,
    /// Timers of SAs that were removed: none of them is due.
    free: Vec<u32>,
}

impl<T> Default for Side<T> {
    fn default() -> Side<T> {
        Side { timers: Timers::default(), tunnels: Vec::new(), timer_of: Vec::new(), free: Vec::new() }
    }
}

impl<T> Side<T> {
    fn add(&mut self, session: SessionId, tunnel: T) {
        let timer = self.free.pop().unwrap_or_else(|| {
            self.tunnels.push((session, None));
            self.timers.add()
        });
        self.tunnels[timer as usize] = (session, Some(Box::new(tunnel)));
        let len = self.timer_of.len().max(session.0 as usize + 1);
        self.timer_of.resize(len, None);
        self.timer_of[session.0 as usize] = Some(timer);
    }

    /// An SA that was removed has nothing to do any more; its timer is for the next one that is added.
    fn remove(&mut self, session: SessionId) {
        self.set(session, Time::MAX);
        if let Some(timer) = self.timer_of.get_mut(session.0 as usize).and_then(Option::take) {
            self.tunnels[timer as usize].1 = None;
            self.free.push(timer);
        }
    }

    fn set(&mut self, session: SessionId, due: Time) {
        if let Some(&Some(timer)) = self.timer_of.get(session.0 as usize) {
            self.timers.set(timer, due);
        }
    }

    fn first(&self) -> Option<(SessionId, Time)> {
        self.timers.first().map(|(timer, due)| (self.tunnels[timer as usize].0, due))
    }

    fn get(&self, session: SessionId) -> Option<&T> {
        let timer = (*self.timer_of.get(session.0 as usize)?)?;
        self.tunnels[timer as usize].1.as_deref()
    }

    fn get_mut(&mut self, session: SessionId) -> Option<&mut T> {
        let timer = (*self.timer_of.get(session.0 as usize)?)?;
        self.tunnels[timer as usize].1.as_deref_mut()
    }
}

impl Aggregation {
    /// Adds an outbound SA, if it aggregates.
    pub fn add_outbound(&mut self, session: SessionId, config: &SaConfig) {
        let Some(iptfs) = &config.iptfs else { return };
        let Some(payload) = config.payload_within(iptfs.packet_size) else { return };
        self.outbound.add(session, Aggregator::new(iptfs, payload));
        // A fixed rate begins at once, whether there is something to send or not.
        self.outbound.set(session, if iptfs.rate.is_some() { Time::ZERO } else { Time::MAX });
        if let Some(ends) = Ends::of(config) {
            self.find_receiver(session, &ends);
            self.senders.push((session, ends));
        }
    }

    /// Adds an inbound SA, if it aggregates.
    pub fn add_inbound(&mut self, session: SessionId, config: &SaConfig) {
        if let Some(iptfs) = &config.iptfs {
            self.inbound.add(session, Deaggregator::new(iptfs));
        }
        if let Some(ends) = Ends::of(config) {
            for (sender, _) in self.senders.iter().filter(|(_, theirs)| *theirs == ends) {
                self.receiver_of[sender.0 as usize] = Some(session);
            }
            self.receivers.push((session, ends));
        }
    }

    fn find_receiver(&mut self, sender: SessionId, ends: &Ends) {
        let place = sender.0 as usize;
        self.receiver_of.resize(self.receiver_of.len().max(place + 1), None);
        let found = self.receivers.iter().rev().find(|(_, theirs)| theirs == ends);
        self.receiver_of[place] = found.map(|(receiver, _)| *receiver);
    }

    /// Forgets an SA with everything that waits for it.
    pub fn remove(&mut self, session: SessionId) {
        self.outbound.remove(session);
        self.inbound.remove(session);
        self.senders.retain(|(sender, _)| *sender != session);
        let Some(at) = self.receivers.iter().position(|(receiver, _)| *receiver == session) else { return };
        self.receivers.remove(at);
        for (sender, ends) in std::mem::take(&mut self.senders) {
            if self.receiver_of[sender.0 as usize] == Some(session) {
                self.find_receiver(sender, &ends);
            }
            self.senders.push((sender, ends));
        }
    }

    /// Queues a copy of a packet of an outbound SA; `false` if the SA does not aggregate.
    pub fn push(&mut self, now: Time, session: SessionId, packet: &[u8]) -> Result<bool, DropReason> {
        let Some(aggregator) = self.outbound.get_mut(session) else { return Ok(false) };
        aggregator.push(now, packet)?;
        let due = aggregator.due();
        self.outbound.set(session, due);
        Ok(true)
    }

    /// An outbound SA that has something to do at `now`: [`Aggregation::fill`], then [`Aggregation::reschedule`].
    pub fn due_outbound(&self, now: Time) -> Option<SessionId> {
        self.outbound.first().filter(|(_, due)| *due <= now).map(|(session, _)| session)
    }

    /// Fills `packet` with the next payload of an outbound SA, if one is due.
    pub fn fill(&mut self, now: Time, session: SessionId, packet: &mut Packet) -> Result<bool, DropReason> {
        let Some(aggregator) = self.outbound.get_mut(session) else { return Ok(false) };
        let receiver = self.receiver_of.get(session.0 as usize).copied().flatten();
        if let Some(path) = receiver.and_then(|receiver| self.inbound.get_mut(receiver)?.path()) {
            path.set_transmit_delay(aggregator.spacing());
            aggregator.set_congestion(path.info(now), path.allowed_rate());
        }
        aggregator.poll(now, packet)
    }

    /// Sets when an outbound SA is to be asked next: one that cannot send waits for its next packet, so that it does
    /// not keep the others from sending.
    pub fn reschedule(&mut self, session: SessionId, sends: bool) {
        let aggregator = self.outbound.get(session).filter(|_| sends);
        let due = aggregator.map_or(Time::MAX, Aggregator::due);
        self.outbound.set(session, due);
    }

    /// The ECN field for the outer header of the payload that [`Aggregation::fill`] filled last.
    pub fn ecn(&self, session: SessionId) -> u8 {
        self.outbound.get(session).map_or(0, Aggregator::ecn)
    }

    /// Takes in a copy of a payload that an inbound SA received under this sequence number, behind an IP header with
    /// this traffic class.
    pub fn receive(
        &mut self,
        session: SessionId,
        sequence: u64,
        traffic_class: u8,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let deaggregator = self.inbound.get_mut(session).ok_or(DropReason::InStateModeError)?;
        deaggregator.push(sequence, traffic_class, payload)
    }

    /// The traffic class of the outer packet in which the inner packet taken last has come: with congestion
    /// experienced if any of several has that.
    pub fn traffic_class(&self, session: SessionId) -> u8 {
        self.inbound.get(session).map_or(0, Deaggregator::traffic_class)
    }

    /// Puts the next inner packet of an inbound SA into `packet`; `None` if there is no more for now.
    pub fn take_inner(
        &mut self,
        now: Time,
        session: SessionId,
        packet: &mut Packet,
    ) -> Option<Result<(), DropReason>> {
        let deaggregator = self.inbound.get_mut(session)?;
        let taken = deaggregator.take(now, packet);
        if taken.is_none() {
            let due = deaggregator.due();
            self.inbound.set(session, due);
        }
        taken
    }

    /// An inbound SA whose payloads have waited long enough for one that is missing.
    pub fn due_inbound(&mut self, now: Time) -> Option<SessionId> {
        let (session, _) = self.inbound.first().filter(|(_, due)| *due <= now)?;
        // Its draining sets this again.
        self.inbound.set(session, Time::MAX);
        Some(session)
    }

    /// When an SA of either direction has something to do next; [`Time::MAX`] for not before there is another packet.
    pub fn next_due(&self) -> Time {
        let (outbound, inbound) = (self.outbound.first(), self.inbound.first());
        [outbound, inbound].into_iter().flatten().map(|(_, due)| due).min().unwrap_or(Time::MAX)
    }

    /// Whether there are outbound SAs that aggregate.
    #[inline]
    pub fn has_outbound(&self) -> bool {
        !self.outbound.tunnels.is_empty()
    }

    /// Bytes of inner packets that wait in the queues of outbound SAs.
    pub fn waiting(&self) -> usize {
        self.outbound.tunnels.iter().filter_map(|(_, aggregator)| Some(aggregator.as_ref()?.waiting())).sum()
    }

    /// Lets an inbound SA continue behind `sequence`.
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        if let Some(deaggregator) = self.inbound.get_mut(session) {
            deaggregator.continue_after(sequence);
        }
    }

    /// Payloads a second that an outbound SA at a fixed rate sends now.
    pub fn rate(&self, session: SessionId) -> Option<u64> {
        self.outbound.get(session)?.rate()
    }

    /// Counters of the packets that came out of an inbound SA.
    pub fn counters(&self, session: SessionId) -> Option<IptfsCounters> {
        self.inbound.get(session).map(Deaggregator::counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sa::Spi;
    use forebay_iptfs::Iptfs;

    fn sa(remote: &str, congestion: bool) -> SaConfig {
        let (suite, local) = ("aes128gcm16".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let config = SaConfig::new("tunnel", Spi::MIN, suite, local, remote.parse().unwrap());
        SaConfig { iptfs: Some(Iptfs { congestion, ..Iptfs::default() }), ..config }
    }

    #[test]
    fn the_newest_inbound_sa_of_a_tunnel_speaks_for_its_path() {
        let [one, other] = ["192.0.2.2", "192.0.2.3"].map(|remote| sa(remote, true));
        let id = SessionId;
        let mut all = Aggregation::default();
        all.add_outbound(id(1), &one);
        all.add_outbound(id(2), &other);
        all.add_outbound(id(3), &sa("192.0.2.2", false));
        all.add_inbound(id(4), &sa("192.0.2.2", false));
        assert_eq!(all.receiver_of, [None; 3]);
        all.add_inbound(id(5), &one);
        all.add_inbound(id(6), &other);
        // A rekeyed SA, and then an outbound one that is added behind the inbound ones.
        all.add_inbound(id(7), &one);
        all.add_outbound(id(0), &one);
        assert_eq!(all.receiver_of, [Some(id(7)), Some(id(7)), Some(id(6))]);
        all.remove(id(7));
        assert_eq!(all.receiver_of, [Some(id(5)), Some(id(5)), Some(id(6))]);
        all.remove(id(5));
        assert_eq!(all.receiver_of, [None, None, Some(id(6))]);
        all.remove(id(2));
        all.remove(id(6));
        assert_eq!((all.senders.len(), all.receivers.len()), (2, 0));
    }
}
