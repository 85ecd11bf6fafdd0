//! SAs, policies and what is told of both: mostly one owner's word, and where several are concerned, each of theirs.

use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, SessionId};
use forebay_time::Time;
use forebay_wire::Addresses;

use super::Ipsec;
use crate::iv::IvRange;
use crate::lifetime::Lived;
use crate::path_mtu::PathMtuCounters;
use crate::sa::SaConfig;
use crate::sad::entry::SaCounters;
use crate::sad::error::SadError;
use crate::watch::Event;
use forebay_iptfs::IptfsCounters;
use forebay_replay::Received;
use forebay_spd::{Policy, PolicyError, PolicyId, PolicyPlace, Rule};

/// SAs.
impl Ipsec {
    /// Prepares the packets of core number `cpu` from now on, which is 0 otherwise: they go through outbound SAs that are
    /// bound to this CPU ([`SaConfig::cpu`]) in the place of the fallback SA, and through none of those that are bound to
    /// others. What was decided for recent flows is kept by core.
    #[inline]
    pub fn set_cpu(&mut self, cpu: u32) {
        self.spd.set_cpu(cpu as usize);
    }

    /// Adds an outbound SA, which uses the IVs of `iv`. While there are no outbound policies, packets try
    /// outbound SAs in the order added.
    pub fn add_outbound(&mut self, config: SaConfig, iv: IvRange) -> Result<SessionId, SadError> {
        let (session, config) = self.sad.add_outbound(config, iv, &mut self.watch)?;
        let rule = Rule::new(&config.local_ts, &config.remote_ts, config.dscp);
        match config.cpu {
            None => self.spd.add_sa(session, rule),
            Some(cpu) => self.spd.add_bound_sa(session, rule, cpu),
        }
        self.iptfs.add_outbound(session, config);
        self.path_mtu.add(session, config);
        Ok(session)
    }

    /// Adds an inbound SA.
    pub fn add_inbound(&mut self, config: SaConfig) -> Result<SessionId, SadError> {
        let local = config.local;
        let in_udp = self.sad.in_udp_at(&local);
        let (session, config) = self.sad.add_inbound(config, &mut self.watch)?;
        self.iptfs.add_inbound(session, config);
        if in_udp != self.sad.in_udp_at(&local) && in_udp == 0 {
            // What came to this address so far passed whatever its ports.
            self.spd.forget_decisions();
        }
        Ok(session)
    }

    /// Removes an SA, from the policies too: they protect by what other SAs they have, and drop where
    /// there are none. Its jobs in flight end in drops.
    pub fn remove(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let removed = self.sad.remove(session)?;
        self.spd.remove_sa(session);
        self.iptfs.remove(session);
        self.path_mtu.remove(session);
        self.watch.forget(session);
        Some(removed)
    }

    /// Lets the packets of `inner` go through `outer` next: outbound, all that `inner` has sealed; inbound, `inner`
    /// accepts only packets that have come through `outer`. The path MTU of `outer`, less its overhead, limits that
    /// of `inner` too, so that the first SA refuses a packet too big for any SA on its path, while an ICMP error can
    /// still reach its source.
    ///
    /// # Errors
    /// If there are no such SAs, they are not of one direction or not at one core, or more than
    /// [`NEST_MAX`](crate::NEST_MAX) would be in a row.
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        self.sad.nest(inner, outer)?;
        self.path_mtu.spread(outer, &mut self.sad);
        Ok(())
    }

    /// Gives the peer of an SA in UDP another address and port, as after
    /// [`EventKind::Moved`](crate::EventKind::Moved): an outbound SA sends there from now on. An inbound SA that follows its peer does
    /// so from there. Whether that is another than before.
    ///
    /// # Errors
    /// If the address is of the other IP version, or another SA of that peer has the SPI.
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        let moved = self.sad.move_peer(session, to)?;
        self.note_ends(session, moved);
        Ok(moved)
    }

    fn note_ends(&mut self, session: SessionId, moved: bool) {
        if let Some(config) = self.sad.config(session).filter(|_| moved) {
            self.iptfs.moved(session, config);
        }
    }

    /// Gives the peer of any SA, in UDP or not, another address and port, as a configuration says: an outbound SA sends there from
    /// now on, with its numbers. An inbound SA that follows its peer does so from there. Whether that is another than before.
    ///
    /// # Errors
    /// As [`Ipsec::move_peer`].
    pub fn set_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        let moved = self.sad.set_peer(session, to)?;
        self.note_ends(session, moved);
        Ok(moved)
    }

    /// The SAs in UDP, of both directions, between this local address and a peer there.
    pub fn sas_at(&self, local: IpAddr, peer: SocketAddr) -> Vec<SessionId> {
        self.sad.sas_at(local, peer)
    }

    /// Genuine packets that came from elsewhere than the peer, which had moved so often that it was not followed.
    pub fn moves_limited(&self) -> u64 {
        self.watch.moves_limited()
    }

    /// Lets an SA continue behind `sequence`: as if that had been sent, or received and verified and no other number
    /// before. An inbound SA that may have received more continues by [`Ipsec::restore_window`].
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        self.sad.continue_after(session, sequence);
        self.iptfs.continue_after(session, sequence);
    }

    /// The numbers that an inbound SA has received; `None` for one that has no replay window here.
    pub fn received(&self, session: SessionId) -> Option<Received> {
        self.sad.received(session)
    }

    /// Lets an inbound SA that is new continue with what was received under its keys before.
    pub fn restore_window(&mut self, session: SessionId, received: &Received) {
        self.sad.restore_window(session, received);
        if received.top > 0 {
            self.iptfs.continue_after(session, received.top);
        }
    }

    /// Takes note that all numbers of an inbound SA up to `limit` are kept durably as received. Half-way there, and again
    /// beyond it, the SA sends [`EventKind::WindowWanted`](crate::EventKind::WindowWanted). What it receives with a
    /// number beyond the limit must not be delivered before the limit is raised ([`Ipsec::noted`]): after a crash
    /// the packet would be taken for a new one. An SA of which nothing was ever noted has no limit.
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.sad.note_window(session, limit);
    }

    /// The highest number that an inbound SA has received, and the one up to which its numbers are noted; of nested SAs,
    /// those of the innermost that has a replay window, which keeps repeated packets out. `None` if nothing was ever
    /// noted of it.
    pub fn noted(&self, session: SessionId) -> Option<(u64, u64)> {
        self.sad.noted(session)
    }

    /// Packets of an inbound SA that its replay window refused because they may have been received before a crash.
    pub fn unsure(&self, session: SessionId) -> u64 {
        self.sad.unsure(session)
    }

    /// How far an SA has come in its life by the time told last; `None` if it is another core's.
    pub fn lived(&self, session: SessionId) -> Option<Lived> {
        self.sad.lived(session, &self.watch)
    }

    /// Lets a new SA go on with a life that was lived under its keys before, so that its limits do not begin anew.
    pub fn resume_life(&mut self, session: SessionId, lived: &Lived) {
        self.sad.resume_life(session, lived, &mut self.watch);
    }

    /// Packets that an SA has sent or received, as its lifetime counts them.
    pub fn admitted(&self, session: SessionId) -> u64 {
        self.sad.admitted(session)
    }

    /// The next IV of an outbound SA, which no packet has used; `None` for other SAs.
    pub fn next_iv(&self, session: SessionId) -> Option<u64> {
        self.sad.next_iv(session)
    }

    /// Lets an outbound SA number its packets up to `last` and no further, until it is granted more; at half of the
    /// way there it asks by [`EventKind::SequenceWanted`](crate::EventKind::SequenceWanted). So numbers can be
    /// noted durably before their use. An SA that was never granted any goes to the end.
    pub fn grant(&mut self, session: SessionId, last: u64) {
        self.sad.grant(session, last);
    }

    /// The number that the next SA gets.
    pub fn next_session(&self) -> SessionId {
        self.sad.next_session()
    }

    /// All SAs with their settings and counters, by number.
    pub fn iter(&self) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        self.sad.iter()
    }

    /// The same from a number on, without a look at those before.
    pub fn iter_from(
        &self,
        first: SessionId,
    ) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        self.sad.iter_from(first)
    }

    /// The settings of the SA with this number.
    pub fn config(&self, session: SessionId) -> Option<&SaConfig> {
        self.sad.config(session)
    }

    /// Whether the SA with this number is outbound ([`Direction::Seal`]) or inbound; that of a removed SA holds
    /// until its number is given to another.
    pub fn direction(&self, session: SessionId) -> Option<Direction> {
        self.sad.direction(session)
    }

    /// The SA that the packets of another go through next, or come through before ([`Ipsec::nest`]).
    pub fn outer(&self, session: SessionId) -> Option<SessionId> {
        self.sad.outer(session)
    }

    /// Counters of the packets that went through the SA with this number.
    pub fn counters(&self, session: SessionId) -> Option<&SaCounters> {
        self.sad.counters(session)
    }

    /// Jobs of this number that were prepared and not completed, of an SA that has been removed too.
    pub fn in_flight(&self, session: SessionId) -> u32 {
        self.sad.in_flight(session)
    }

    /// The last sequence number that an outbound SA has given out, or the highest that an inbound one has verified.
    pub fn sequence(&self, session: SessionId) -> Option<u64> {
        self.sad.sequence(session)
    }

    /// Packets of an inbound SA with a combination of ECN marks that no tunnel makes: something on the way does
    /// not keep to RFC 6040.
    pub fn ecn_odd(&self, session: SessionId) -> u64 {
        self.sad.ecn_odd(session)
    }

    /// Whether an inbound SA has this as its own address.
    pub fn is_local(&self, address: &IpAddr) -> bool {
        self.sad.is_local(address)
    }
}

/// Policies.
impl Ipsec {
    /// Lets only policies decide (RFC 4301 5.1, 5.2: what matches none is dropped), even while there are none. Without this,
    /// outbound SAs are asked by their own selectors then, and what comes out of inbound ones passes by those alone.
    pub fn require_policies(&mut self) {
        self.spd.require_policies();
    }

    /// Adds a policy at its place among those of its direction.
    pub fn add_policy(&mut self, policy: Policy, place: PolicyPlace) -> Result<PolicyId, PolicyError> {
        self.check_sas(policy.direction, policy.sas())?;
        self.spd.add(policy, place)
    }

    /// Removes a policy.
    pub fn remove_policy(&mut self, id: PolicyId) -> Option<Policy> {
        self.spd.remove(id)
    }

    /// Gives a policy that protects other SAs, as after rekeying.
    pub fn set_policy_sas(&mut self, id: PolicyId, sas: Vec<SessionId>) -> Result<(), PolicyError> {
        let direction = self.spd.direction(id).ok_or(PolicyError::NoSuchPolicy(id))?;
        self.check_sas(direction, &sas)?;
        self.spd.set_sas(id, sas)
    }

    /// Puts an SA before all others of a policy that protects, so that traffic moves to it, as in rekeying;
    /// the cost does not depend on how many it has.
    pub fn put_policy_sa_first(&mut self, id: PolicyId, session: SessionId) -> Result<(), PolicyError> {
        let direction = self.spd.direction(id).ok_or(PolicyError::NoSuchPolicy(id))?;
        self.check_sas(direction, &[session])?;
        self.spd.put_sa_first(id, session)
    }

    /// [`Spd::take_fallback_flows`](forebay_spd::Spd::take_fallback_flows).
    pub fn take_fallback_flows(&mut self) -> Vec<(IpAddr, IpAddr)> {
        self.spd.take_fallback_flows()
    }

    /// [`Spd::forget_decisions`](forebay_spd::Spd::forget_decisions).
    pub fn forget_decisions(&mut self) {
        self.spd.forget_decisions();
    }

    /// The policy with this id.
    pub fn policy(&self, id: PolicyId) -> Option<Policy> {
        self.spd.get(id)
    }

    /// The policies of a direction in order.
    pub fn policies(&self, direction: Direction) -> impl Iterator<Item = (PolicyId, Policy)> {
        self.spd.iter(direction)
    }

    /// The same behind the first so many, which are not copied.
    pub fn policies_behind(
        &self,
        direction: Direction,
        count: usize,
    ) -> impl Iterator<Item = (PolicyId, Policy)> {
        self.spd.iter_behind(direction, count)
    }

    fn check_sas(&self, direction: Direction, sas: &[SessionId]) -> Result<(), PolicyError> {
        for &session in sas {
            self.sad.config(session).ok_or(PolicyError::NoSuchSa(session))?;
            if self.sad.direction(session) != Some(direction) {
                return Err(PolicyError::WrongDirection(session));
            }
        }
        Ok(())
    }
}

/// Time and events.
impl Ipsec {
    /// Tells the time, which ends lifetimes, lets learned path MTUs be forgotten and ICMP errors be sent again. SAs
    /// live from the time told last before they were added. To be called before each burst or as often as the
    /// limits are to be exact; it costs a comparison unless something is due. Time never goes back.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if self.watch.advance(now) {
            self.pass_time();
        }
    }

    #[cold]
    fn pass_time(&mut self) {
        self.sad.pass_time(&mut self.watch);
        self.path_mtu.pass_time(&mut self.watch, &mut self.sad);
    }

    /// A number that changes whenever the SAs of packets may: see [`Ipsec::usual_sa`].
    #[inline]
    pub fn policies_state(&self) -> u64 {
        self.spd.state()
    }

    /// The outbound SA of every IPv4 packet with these addresses, if there is one for all of them and such a packet came lately.
    #[inline]
    pub fn usual_sa(&self, addresses: &Addresses) -> Option<SessionId> {
        self.spd.usual(addresses)
    }

    /// Whether anything has happened since [`Ipsec::events`] were taken.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.watch.has_events()
    }

    /// Takes what has happened since the last call, oldest first. At most 1,024 events wait here; further
    /// ones wait with their SAs until there is room, and none is lost.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        std::iter::from_fn(|| self.watch.take())
    }
}

/// Path MTUs.
impl Ipsec {
    /// The path MTU of an outbound SA at present, in bytes: as configured, as learned since, or as the SA leaves it
    /// that its packets go through next.
    pub fn path_mtu(&self, session: SessionId) -> Option<u16> {
        self.path_mtu.get(session)
    }

    /// Bytes up to which a sealed packet of an SA is sent whole; a longer one [`Ipsec::divide_sealed`] may divide.
    #[inline]
    pub fn whole_up_to(&self, session: SessionId) -> usize {
        self.path_mtu.get(session).map_or(usize::MAX, usize::from)
    }

    /// The longest packet with an IP header of `header_len` bytes that fits the path MTU of an outbound SA once
    /// it is protected, in bytes. `None` if the SA has no path MTU.
    pub fn effective_mtu(&self, session: SessionId, header_len: usize) -> Option<u16> {
        self.path_mtu.effective(session, header_len)
    }

    /// Lowers the path MTU of an outbound SA, never under 576 bytes over IPv4 and 1,280 over IPv6, until
    /// [`LEARNED_FOR`](crate::LEARNED_FOR) has passed; whether that changed anything.
    pub fn lower_path_mtu(&mut self, session: SessionId, mtu: u16) -> bool {
        self.path_mtu.lower(session, mtu, &mut self.watch, &mut self.sad)
    }

    /// Lowers a path MTU by an ICMP message that came from outside; the SA whose path MTU that changed. Nothing
    /// vouches for such a message (RFC 4301 8.2.1), so it is believed only if it quotes SPI, addresses and
    /// sequence number of a packet that was sent lately, and not below what every path takes.
    pub fn learn_path_mtu(&mut self, message: &[u8]) -> Option<SessionId> {
        self.path_mtu.learn(message, &mut self.watch, &mut self.sad)
    }

    /// The ICMP messages that [`Ipsec::learn_path_mtu`] ignored.
    pub fn path_mtu_counters(&self) -> PathMtuCounters {
        self.path_mtu.counters()
    }
}

/// SAs that aggregate (RFC 9347).
impl Ipsec {
    /// Whether there are outbound SAs that aggregate: if not, packets need not be asked about.
    #[inline]
    pub fn aggregates(&self) -> bool {
        self.iptfs.has_outbound()
    }

    /// An inbound SA whose payloads have waited long enough for one that is missing.
    pub fn poll_inner(&mut self, now: Time) -> Option<SessionId> {
        self.iptfs.due_inbound(now)
    }

    /// When [`Ipsec::poll_aggregate`] or [`Ipsec::poll_inner`] are to be asked next; [`Time::MAX`] for not
    /// before there is another packet.
    pub fn next_due(&self) -> Time {
        self.iptfs.next_due()
    }

    /// Bytes of inner packets that wait in the queues of outbound SAs.
    pub fn waiting(&self) -> usize {
        self.iptfs.waiting()
    }

    /// Counters of the packets that came out of an inbound SA that aggregates.
    pub fn iptfs_counters(&self, session: SessionId) -> Option<IptfsCounters> {
        self.iptfs.counters(session)
    }

    /// Payloads a second that an outbound SA at a fixed rate sends, as its path lets it now.
    pub fn iptfs_rate(&self, session: SessionId) -> Option<u64> {
        self.iptfs.rate(session)
    }
}
