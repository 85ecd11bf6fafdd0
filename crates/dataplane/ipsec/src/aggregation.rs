//! All SAs that aggregate (RFC 9347): the queues of those that send, the payloads of those that receive, and when
//! each has something to do.

use forebay_crypto::{Packet, SessionId};
use forebay_time::{Duration, Time};

use crate::paths::Paths;
use crate::sa::SaConfig;
use forebay_drops::DropReason;
use forebay_iptfs::{Aggregator, Deaggregator, IptfsCounters, Seen, Timers};

/// How soon the peer is told about its payloads while the round-trip time is not known.
const FIRST_ANSWER: Duration = Duration::from_millis(20);

/// The aggregators of outbound SAs and the deaggregators of inbound ones, each with a timer.
#[derive(Debug, Default)]
pub struct Aggregation {
    outbound: Side<Aggregator>,
    inbound: Side<Deaggregator>,
    paths: Paths,
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
        self.paths.add(session, config, true);
    }

    /// Adds an inbound SA, if it aggregates.
    pub fn add_inbound(&mut self, session: SessionId, config: &SaConfig) {
        if let Some(iptfs) = &config.iptfs {
            self.inbound.add(session, Deaggregator::new(iptfs));
        }
        self.paths.add(session, config, false);
    }

    /// The ends of an SA are others now.
    pub fn moved(&mut self, session: SessionId, config: &SaConfig) {
        self.paths.moved(session, config);
    }

    /// Forgets an SA with everything that waits for it.
    pub fn remove(&mut self, session: SessionId) {
        self.outbound.remove(session);
        self.inbound.remove(session);
        self.paths.remove(session);
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
        if let Some(path) = self.paths.of(session) {
            aggregator.follow(&mut path.congestion, now);
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
            let seen = deaggregator.seen();
            let due = deaggregator.due();
            self.inbound.set(session, due);
            self.note(now, session, &seen);
        }
        taken
    }

    /// Takes note of what an inbound SA has seen of its path, for the SAs that tell the peer.
    fn note(&mut self, now: Time, session: SessionId, seen: &Seen) {
        let Some(path) = self.paths.of(session).filter(|_| seen.payloads > 0) else { return };
        path.congestion.payloads(now, seen);
        if !seen.wants_answer {
            return;
        }
        let at = now + path.congestion.rtt().unwrap_or(FIRST_ANSWER);
        for &sender in &path.senders {
            if let Some(aggregator) = self.outbound.get_mut(sender) {
                aggregator.owe(at);
                let due = aggregator.due();
                self.outbound.set(sender, due);
            }
        }
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
