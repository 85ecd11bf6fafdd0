//! The security association database (RFC 4301 4.4.2): SAs, how packets and policies find them, and how they are nested.

pub(crate) mod entry;
pub(crate) mod error;
mod packets;
mod spi_map;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, SessionId};

use crate::ah::{InboundAh, OutboundAh};
use crate::esp::{InboundSa, OutboundSa};
use crate::iv::IvRange;
use crate::lifetime::{Life, Lived};
use crate::path_limit::PathLimit;
use crate::sa::{Encapsulation, Protocol, SaConfig, SaConfigError, Spi};
use crate::step::NEST_MAX;
use crate::watch::Watch;
use entry::{Entry, SaCounters, State};
use error::SadError;
use forebay_replay::{Received, ReplayWindow};
use forebay_spd::Seed;
use forebay_wire::Ip;
use spi_map::SpiMap;

/// The number of no SA, in place of one that was removed.
const GONE: u32 = u32::MAX;

/// All SAs of a gateway, both directions. An SA's number is also that of its key sessions.
///
/// The number of an SA that was removed is given to a new one only when every job prepared for the old
/// one has been completed (as [`DropReason::InStateInvalid`](crate::DropReason::InStateInvalid) or
/// [`DropReason::OutStateInvalid`](crate::DropReason::OutStateInvalid)), so that
/// none can be completed into its successor; a job that is never completed keeps the number out of use.
#[derive(Debug)]
pub struct Sad {
    /// What packets need of each SA.
    sas: Vec<Entry>,
    /// What only people need of it; `None` where there is no SA any more.
    configs: Vec<Option<SaConfig>>,
    /// Numbers to be used again, those that were given up first in front.
    free: VecDeque<u32>,
    by_spi: SpiMap,
    /// Outbound SAs by peer and SPI.
    by_peer: HashMap<(IpAddr, Spi), u32, Seed>,
    /// SAs in UDP by this side's address and the peer's place.
    by_place: HashMap<(IpAddr, SocketAddr), Vec<u32>, Seed>,
    /// This side's addresses that inbound SAs have, and how many have each.
    own: HashMap<IpAddr, Own, Seed>,
    /// SAs that are inside of others.
    nested: usize,
}

/// Inbound SAs that have one of this side's addresses.
#[derive(Debug, Default)]
struct Own {
    all: u32,
    /// Those of them in UDP.
    in_udp: u32,
}

impl Sad {
    /// An empty database.
    pub fn new(seed: Seed) -> Sad {
        Sad {
            sas: Vec::new(),
            configs: Vec::new(),
            free: VecDeque::new(),
            by_spi: SpiMap::new(seed),
            by_peer: HashMap::with_hasher(seed),
            by_place: HashMap::with_hasher(seed),
            own: HashMap::with_hasher(seed),
            nested: 0,
        }
    }

    /// Adds an outbound SA, which uses the IVs of `iv` and lives from the time that `watch` has.
    pub fn add_outbound(
        &mut self,
        config: SaConfig,
        iv: IvRange,
        watch: &mut Watch,
    ) -> Result<(SessionId, &SaConfig), SadError> {
        let session = self.check(Direction::Seal, &config)?;
        let state = match config.protocol {
            Protocol::Esp => State::Outbound(OutboundSa::new(&config, session, iv, watch)),
            Protocol::Ah => State::OutboundAh(Box::new(OutboundAh::new(&config, session, iv, watch))),
        };
        Ok((session, self.put(session, state, config)))
    }

    /// Adds an inbound SA, which lives from the time that `watch` has.
    pub fn add_inbound(
        &mut self,
        config: SaConfig,
        watch: &mut Watch,
    ) -> Result<(SessionId, &SaConfig), SadError> {
        let session = self.check(Direction::Open, &config)?;
        let state = match config.protocol {
            Protocol::Esp => State::Inbound(InboundSa::new(&config, session, watch)),
            Protocol::Ah => State::InboundAh(Box::new(InboundAh::new(&config, session, watch))),
        };
        Ok((session, self.put(session, state, config)))
    }

    /// The number that the next SA gets.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.free.front().copied().unwrap_or(self.sas.len() as u32))
    }

    /// Whether an SA may be added, and the number it would get.
    fn check(&self, direction: Direction, config: &SaConfig) -> Result<SessionId, SadError> {
        let SessionId(number) = self.next_session();
        let index = number as usize;
        config.check().map_err(|error| SadError::Config { index, error })?;
        let clash = match direction {
            // A receiver chooses its SPIs, so there they must differ; two peers may choose alike.
            Direction::Open => self.by_spi.get(&config.spi.get()),
            Direction::Seal => self.by_peer.get(&(config.remote, config.spi)),
        };
        match clash {
            Some(&first) => {
                Err(SadError::OverlappingSpi { first: first as usize, second: index, spi: config.spi })
            }
            None => Ok(SessionId(number)),
        }
    }

    /// Puts an SA at its number, and lets packets find it.
    fn put(&mut self, session: SessionId, state: State, config: SaConfig) -> &SaConfig {
        match state.direction() {
            Direction::Seal => drop(self.by_peer.insert((config.remote, config.spi), session.0)),
            Direction::Open => {
                self.by_spi.insert(config.spi.get(), session.0);
                let own = self.own.entry(config.local).or_default();
                own.all += 1;
                own.in_udp += u32::from(config.encapsulation == Encapsulation::Udp);
            }
        }
        self.place(session, &config);
        let entry = Entry { state, counters: SaCounters::default(), outer: None, in_flight: 0 };
        let index = session.0 as usize;
        if self.free.pop_front().is_some() {
            self.sas[index] = entry;
            self.configs[index] = None;
        } else {
            self.sas.push(entry);
            self.configs.push(None);
        }
        self.configs[index].insert(config)
    }

    /// Removes an SA. Its jobs in flight end in drops.
    pub fn remove(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let config = self.configs.get_mut(session.0 as usize)?.take()?;
        let entry = &mut self.sas[session.0 as usize];
        let direction = entry.state.direction();
        entry.state = State::Removed(direction);
        let counters = entry.counters;
        take_from(&mut self.by_place, session, &config);
        let entry = &mut self.sas[session.0 as usize];
        if entry.in_flight == 0 {
            self.free.push_back(session.0);
        }
        match direction {
            Direction::Seal => drop(self.by_peer.remove(&(config.remote, config.spi))),
            Direction::Open => {
                self.by_spi.remove(&config.spi.get());
                if let Some(own) = self.own.get_mut(&config.local) {
                    own.all -= 1;
                    own.in_udp -= u32::from(config.encapsulation == Encapsulation::Udp);
                    if own.all == 0 {
                        self.own.remove(&config.local);
                    }
                }
            }
        }
        self.unnest(session);
        Some((config, counters))
    }

    /// All SAs with their settings and counters, by number.
    pub fn iter(&self) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        self.iter_from(SessionId(0))
    }

    /// The same from a number on, without a look at those before.
    pub fn iter_from(
        &self,
        first: SessionId,
    ) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        let at = (first.0 as usize).min(self.sas.len()).min(self.configs.len());
        let all = self.sas[at..].iter().zip(&self.configs[at..]).zip(first.0..);
        all.filter_map(|((entry, config), index)| {
            let direction = entry.state.direction();
            Some((SessionId(index), direction, config.as_ref()?, &entry.counters))
        })
    }

    /// The settings of the SA with this number.
    pub fn config(&self, session: SessionId) -> Option<&SaConfig> {
        self.configs.get(session.0 as usize)?.as_ref()
    }

    /// Whether the SA with this number is outbound ([`Direction::Seal`]) or inbound; that of a removed SA holds
    /// until its number is given to another.
    pub fn direction(&self, session: SessionId) -> Option<Direction> {
        self.sas.get(session.0 as usize).map(|entry| entry.state.direction())
    }

    /// Counters of the packets that went through the SA with this number.
    pub fn counters(&self, session: SessionId) -> Option<&SaCounters> {
        self.config(session)?;
        self.sas.get(session.0 as usize).map(|entry| &entry.counters)
    }

    /// Jobs of this number that were prepared and not completed, of an SA that has been removed too.
    pub fn in_flight(&self, session: SessionId) -> u32 {
        self.sas.get(session.0 as usize).map_or(0, |entry| entry.in_flight)
    }

    /// The last sequence number that an outbound SA has given out, or the highest that an inbound one has verified.
    pub fn sequence(&self, session: SessionId) -> Option<u64> {
        let state = self.state(session)?;
        state.numbers().map(|numbers| numbers.sequence).or_else(|| Some(state.window()?.top()))
    }

    fn state(&self, session: SessionId) -> Option<&State> {
        self.sas.get(session.0 as usize).map(|entry| &entry.state)
    }

    fn state_mut(&mut self, session: SessionId) -> Option<&mut State> {
        self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state)
    }

    fn window(&self, session: SessionId) -> Option<&ReplayWindow> {
        self.state(session)?.window()
    }

    fn window_mut(&mut self, session: SessionId) -> Option<&mut ReplayWindow> {
        self.state_mut(session)?.window_mut()
    }

    /// The numbers that an inbound SA has received; `None` for one that has no replay window here.
    pub fn received(&self, session: SessionId) -> Option<Received> {
        self.window(session).filter(|window| window.is_on()).map(ReplayWindow::received)
    }

    /// Lets an inbound SA continue with what was received before.
    pub fn restore_window(&mut self, session: SessionId, received: &Received) {
        if let Some(window) = self.window_mut(session) {
            window.restore(received);
        }
    }

    /// Takes note that all numbers of an inbound SA up to `limit` are kept durably as received.
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        if let Some(window) = self.window_mut(session) {
            window.note(limit);
        }
    }

    /// The highest number that an inbound SA has received, and the one up to which its numbers are noted; of nested SAs,
    /// those of the innermost that has a replay window. `None` if nothing was ever noted of it.
    pub fn noted(&self, session: SessionId) -> Option<(u64, u64)> {
        let outer = |session: &SessionId| self.outer(*session);
        let nest = std::iter::successors(Some(session), outer).take(NEST_MAX);
        let window = nest.filter_map(|session| self.window(session)).find(|window| window.is_on())?;
        Some((window.top(), window.limit()?))
    }

    /// Packets of an inbound SA that were refused because they may have been received before a crash.
    pub fn unsure(&self, session: SessionId) -> u64 {
        self.window(session).map_or(0, ReplayWindow::unsure)
    }

    fn life(&self, session: SessionId) -> Option<&Life> {
        self.state(session)?.life()
    }

    /// How far an SA has come in its life by the time of `watch`; `None` if it is not there.
    pub fn lived(&self, session: SessionId, watch: &Watch) -> Option<Lived> {
        self.life(session).map(|life| life.lived(watch.now()))
    }

    /// Lets a new SA go on with a life that was lived under its keys before.
    pub fn resume_life(&mut self, session: SessionId, lived: &Lived, watch: &mut Watch) {
        let Some(state) = self.state_mut(session) else { return };
        if let Some(numbers) = state.numbers_mut() {
            numbers.resume_life(lived, watch);
        } else if let Some(life) = state.life_mut() {
            life.resume(lived, watch);
        }
    }

    /// Packets that an SA has counted for its lifetime.
    pub fn admitted(&self, session: SessionId) -> u64 {
        self.life(session).map_or(0, Life::packets)
    }

    /// The next IV of an outbound SA that no packet has used; `None` for other SAs.
    pub fn next_iv(&self, session: SessionId) -> Option<u64> {
        self.state(session)?.numbers().map(|numbers| numbers.iv.peek().0)
    }

    /// Lets an SA continue behind `sequence`: as if that had been sent, or received and verified.
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        let Some(state) = self.state_mut(session) else { return };
        if let Some(numbers) = state.numbers_mut() {
            numbers.continue_after(sequence);
        } else if let Some(window) = state.window_mut() {
            window.settle(sequence);
        }
    }

    /// Lets an outbound SA number its packets up to `last` and no further, until it is granted more; at half of the
    /// way there it asks by [`EventKind::SequenceWanted`](crate::EventKind::SequenceWanted). So numbers can be
    /// noted durably before their use. An SA that was never granted any goes to the end.
    pub fn grant(&mut self, session: SessionId, last: u64) {
        if let Some(numbers) = self.state_mut(session).and_then(State::numbers_mut) {
            numbers.grant(last);
        }
    }

    /// Does what is due by the time of `watch` for every SA.
    pub fn pass_time(&mut self, watch: &mut Watch) {
        self.sas.iter_mut().filter_map(|entry| entry.state.life_mut()).for_each(|life| life.pass_time(watch));
    }

    /// Sets how long packets of an outbound SA may be.
    pub fn set_path_limit(&mut self, session: SessionId, limit: PathLimit) {
        match self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state) {
            Some(State::Outbound(sa)) => sa.limit = limit,
            Some(State::OutboundAh(sa)) => sa.limit = limit,
            Some(State::Inbound(_) | State::InboundAh(_) | State::Removed(_)) | None => {}
        }
    }

    /// The outbound SA to `peer` with this SPI.
    pub fn outbound_to(&self, peer: IpAddr, spi: u32) -> Option<SessionId> {
        self.by_peer.get(&(peer, Spi::new(spi)?)).copied().map(SessionId)
    }

    /// The SAs in UDP between a local address and a peer's place.
    pub fn sas_at(&self, local: IpAddr, peer: SocketAddr) -> Vec<SessionId> {
        self.by_place.get(&(local, peer)).into_iter().flatten().copied().map(SessionId).collect()
    }

    /// Lets an SA in UDP be found by its peer's place.
    fn place(&mut self, session: SessionId, config: &SaConfig) {
        if let Some(place) = place_of(config) {
            self.by_place.entry(place).or_default().push(session.0);
        }
    }

    /// Gives the peer of an SA in UDP another address and port, as after
    /// [`EventKind::Moved`](crate::EventKind::Moved): an outbound SA sends there from now on, and an inbound SA that follows its peer
    /// does so from there, so that its next genuine packet from elsewhere, also from where the peer was at first, moves it again.
    /// Whether that is another than before.
    ///
    /// # Errors
    /// If the address is of the other IP version, or another SA of that peer has the SPI.
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        let is_in_udp = |config: &SaConfig| config.encapsulation == Encapsulation::Udp;
        if self.config(session).is_some_and(is_in_udp) { self.set_peer(session, to) } else { Ok(false) }
    }

    /// The same for any SA, in UDP or not, as a configuration says.
    ///
    /// # Errors
    /// As [`Sad::move_peer`].
    pub fn set_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        let index = session.0 as usize;
        let Some(Some(config)) = self.configs.get_mut(index) else { return Ok(false) };
        let Some(state) = self.sas.get_mut(index).map(|entry| &mut entry.state) else { return Ok(false) };
        let here = SocketAddr::new(config.remote, config.udp.remote);
        if here == to {
            return Ok(false);
        }
        if config.local.is_ipv4() != to.is_ipv4() {
            return Err(SadError::Config { index, error: SaConfigError::MixedFamilies });
        }
        if state.direction() == Direction::Seal && here.ip() != to.ip() {
            if let Some(&first) = self.by_peer.get(&(to.ip(), config.spi)) {
                let (first, spi) = (first as usize, config.spi);
                return Err(SadError::OverlappingSpi { first, second: index, spi });
            }
            self.by_peer.remove(&(config.remote, config.spi));
            self.by_peer.insert((to.ip(), config.spi), session.0);
        }
        take_from(&mut self.by_place, session, config);
        (config.remote, config.udp.remote) = (to.ip(), to.port());
        if let Some(place) = place_of(config) {
            self.by_place.entry(place).or_default().push(session.0);
        }
        match state {
            State::Outbound(sa) => sa.lay_out_template(config),
            State::OutboundAh(sa) => sa.remote = to.ip(),
            State::Inbound(sa) => sa.peer.iter_mut().for_each(|peer| peer.at = to),
            State::InboundAh(_) | State::Removed(_) => {}
        }
        Ok(true)
    }

    /// Lets the packets of `inner` go through `outer` next: outbound, all that `inner` has sealed; inbound,
    /// `inner` takes only what has come through `outer`.
    ///
    /// # Errors
    /// If there are no such SAs, they are not of one direction, or more than [`NEST_MAX`]
    /// would be in a row.
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        let error = SadError::CannotNest { inner, outer };
        let direction = |session: SessionId| {
            self.config(session)?;
            Some(self.sas.get(session.0 as usize)?.state.direction())
        };
        if inner == outer || direction(inner).is_none() || direction(inner) != direction(outer) {
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
        Ok(())
    }

    /// Lets nothing through the SAs whose packets went through `removed`: without it they would go less
    /// protected than was asked for, or through whatever has its number next.
    fn unnest(&mut self, removed: SessionId) {
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

    /// The SA that the packets of another go through next, or come through before.
    pub fn outer(&self, session: SessionId) -> Option<SessionId> {
        self.sas.get(session.0 as usize)?.outer.map(SessionId)
    }

    /// The SAs right inside of another.
    pub fn inside(&self, outer: SessionId) -> Vec<SessionId> {
        if self.nested == 0 {
            return Vec::new();
        }
        let inside = self.sas.iter().enumerate().filter(|(_, entry)| entry.outer == Some(outer.0));
        inside.map(|(index, _)| SessionId(index as u32)).collect()
    }

    /// Whether an inbound SA has this as its own address.
    pub fn is_local(&self, address: &IpAddr) -> bool {
        self.own.contains_key(address)
    }

    /// Inbound SAs in UDP that have this as their own address.
    pub fn in_udp_at(&self, address: &IpAddr) -> u32 {
        self.own.get(address).map_or(0, |own| own.in_udp)
    }

    /// Whether an inbound SA between the addresses of `ip` accepts only what has come through SA `outer`.
    pub fn is_inside(&self, outer: SessionId, ip: &Ip<'_>) -> bool {
        if self.nested == 0 || !self.is_local(&ip.destination()) {
            return false;
        }
        let mut inside = self.sas.iter().zip(&self.configs).filter(|(entry, _)| entry.outer == Some(outer.0));
        inside.any(|(_, config)| {
            let config = config.as_ref();
            config.is_some_and(|config| (config.remote, config.local) == (ip.source(), ip.destination()))
        })
    }
}

/// This side's address and the peer's place, of an SA in UDP.
fn place_of(config: &SaConfig) -> Option<(IpAddr, SocketAddr)> {
    let is_in_udp = config.encapsulation == Encapsulation::Udp;
    is_in_udp.then(|| (config.local, SocketAddr::new(config.remote, config.udp.remote)))
}

fn take_from(
    by_place: &mut HashMap<(IpAddr, SocketAddr), Vec<u32>, Seed>,
    session: SessionId,
    config: &SaConfig,
) {
    let Some(place) = place_of(config) else { return };
    let Some(there) = by_place.get_mut(&place) else { return };
    if let Some(at) = there.iter().position(|one| *one == session.0) {
        there.swap_remove(at);
    }
    if there.is_empty() {
        by_place.remove(&place);
    }
}
