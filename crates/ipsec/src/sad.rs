//! The security association database (RFC 4301 4.4.2) and the two steps around every job.

mod away;
mod iptfs;
mod nest;
mod path;
mod peer;
mod spi_map;
mod time;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Verdict};
use forebay_wire::{Ip, Ipv4};

pub use nest::{NEST_MAX, Next, Path};
pub(crate) use nest::{may_nest, names_ipsec};
use spi_map::SpiMap;

use crate::ah::{InboundAh, OutboundAh};
use crate::inbound::{EspAt, InboundSa};
use crate::lifetime::Watch;
use crate::outbound::OutboundSa;
use crate::rule::Rule;
use crate::spd::hash::Seed;
use crate::spd::{Decision, Spd};
use crate::tunnel::Inner;
use crate::{
    DropReason, IvRange, Policy, PolicyError, PolicyId, PolicyPlace, Protocol, SaConfig, SaConfigError, Spi,
};

/// Above so many SAs, which no second-level cache holds, a burst's are loaded before they are used.
const WARM_FROM: usize = 4096;
/// Packets whose loads are begun together.
const WARM_AT_ONCE: usize = 32;

/// All SAs of a gateway, both directions, and its policies. An SA's number is also that of its key
/// sessions.
///
/// The number of an SA that was removed is given to a new one only when every job prepared for the old
/// one has been completed (as [`DropReason::InStateInvalid`] or [`DropReason::OutStateInvalid`]), so that
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
    /// This side's addresses that inbound SAs have, and how many have each.
    own: HashMap<IpAddr, u32, Seed>,
    spd: Spd,
    /// SAs that are inside of others.
    nested: usize,
    iptfs: iptfs::Schedule,
    watch: Watch,
    answers: path::Rate,
    lessons: path::Rate,
}

/// In as few cache lines as may be: with very many SAs they are what a packet waits for.
#[derive(Debug)]
#[repr(C, align(64))]
struct Entry {
    /// Jobs prepared and not yet completed.
    in_flight: u32,
    /// The SA that its packets go through next, or come through before.
    outer: Option<u32>,
    counters: SaCounters,
    state: State,
}

const _: () = assert!(size_of::<Entry>() <= 256);

#[derive(Debug)]
enum State {
    Out(OutboundSa),
    In(InboundSa),
    OutAh(Box<OutboundAh>),
    InAh(Box<InboundAh>),
    /// Another core's: the one of this number does its packets.
    Away(Direction, u16),
    /// Removed.
    Gone(Direction),
}

/// What is left to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Prepared {
    /// The crypto job that was stated, then [`Sad::complete`].
    Job,
    /// Nothing: a policy lets the packet pass as it is, and no job was stated.
    Pass,
    /// All: its SA is at the core of this number ([`Sad::add_away`]), to which it is to be given as it is; no job was
    /// stated.
    Away(u16),
}

/// Why a step over a burst stopped at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A policy lets it pass as it is: it has no job.
    Pass,
    /// It is to be dropped.
    Drop(DropReason),
    /// Its SA is at another core: [`Prepared::Away`].
    Away(u16),
    /// It is complete for one SA and goes through another: [`Sad::again`].
    Again,
    /// It is complete, and what it brings is taken one by one: [`Next::Unpack`].
    Unpack,
}

/// What has gone through one SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaCounters {
    /// Packets that were sealed or opened.
    pub packets: u64,
    /// Their length in bytes, outside of the tunnel.
    pub bytes: u64,
    /// Packets whose ICV did not match.
    pub auth_failures: u64,
    /// Packets that the replay window refused.
    pub replays: u64,
}

/// SAs that cannot be in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SadError {
    /// The settings of SA number `index` contradict each other.
    Config {
        /// Position of the SA.
        index: usize,
        /// What is wrong.
        error: SaConfigError,
    },
    /// Two SAs of one direction that packets could not tell apart.
    OverlappingSpi {
        /// The earlier one's position.
        first: usize,
        /// The later one's position.
        second: usize,
        /// The SPI of both.
        spi: Spi,
    },
    /// Two SAs that cannot be one inside the other.
    CannotNest {
        /// The SA whose packets were to go through the other.
        inner: SessionId,
        /// The other.
        outer: SessionId,
    },
}

impl fmt::Display for SadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SadError::Config { index, error } => write!(f, "SA number {}: {error}", index + 1),
            SadError::OverlappingSpi { first, second, spi } => {
                write!(f, "SAs number {} and {} both have SPI {spi}", first + 1, second + 1)
            }
            SadError::CannotNest { inner, outer } => {
                write!(f, "SA number {} cannot be inside number {}", inner.0 + 1, outer.0 + 1)
            }
        }
    }
}

impl std::error::Error for SadError {}

impl Default for Sad {
    /// A database with a hash that everyone knows: for tests. See [`Sad::seeded`].
    fn default() -> Sad {
        Sad::seeded(0)
    }
}

impl Sad {
    /// An empty database. `seed` keys the hash of all its tables: a number that nobody else can know, drawn
    /// once per process, lets nobody choose packets that all meet in one place.
    pub fn seeded(seed: u64) -> Sad {
        let seed = Seed::new(seed);
        Sad {
            sas: Vec::new(),
            configs: Vec::new(),
            free: VecDeque::new(),
            by_spi: SpiMap::new(seed),
            by_peer: HashMap::with_hasher(seed),
            own: HashMap::with_hasher(seed),
            spd: Spd::new(seed),
            nested: 0,
            iptfs: iptfs::Schedule::default(),
            watch: Watch::default(),
            answers: path::Rate::default(),
            lessons: path::Rate::default(),
        }
    }

    /// Adds an outbound SA, which uses the IVs of `iv`. While there are no outbound policies, packets try
    /// outbound SAs in the order added.
    pub fn add_outbound(&mut self, config: SaConfig, iv: IvRange) -> Result<SessionId, SadError> {
        let session = self.check(Direction::Seal, &config)?;
        self.name_outbound(session, &config);
        self.iptfs.add_outbound(session, &config);
        let state = match config.protocol {
            Protocol::Esp => State::Out(OutboundSa::new(&config, session, iv, &mut self.watch)),
            Protocol::Ah => State::OutAh(Box::new(OutboundAh::new(&config, session, iv, &mut self.watch))),
        };
        self.put(session, state, config);
        Ok(session)
    }

    /// Adds an inbound SA.
    pub fn add_inbound(&mut self, config: SaConfig) -> Result<SessionId, SadError> {
        let session = self.check(Direction::Open, &config)?;
        self.name_inbound(session, &config);
        self.iptfs.add_inbound(session, &config);
        let state = match config.protocol {
            Protocol::Esp => State::In(InboundSa::new(&config, session, &mut self.watch)),
            Protocol::Ah => State::InAh(Box::new(InboundAh::new(&config, session, &mut self.watch))),
        };
        self.put(session, state, config);
        Ok(session)
    }

    /// Lets packets find an outbound SA.
    fn name_outbound(&mut self, session: SessionId, config: &SaConfig) {
        self.spd.add_sa(session, Rule::new(&config.local_ts, &config.remote_ts, config.dscp));
        self.by_peer.insert((config.remote, config.spi), session.0);
    }

    /// Lets packets find an inbound SA.
    fn name_inbound(&mut self, session: SessionId, config: &SaConfig) {
        self.by_spi.insert(config.spi.get(), session.0);
        *self.own.entry(config.local).or_default() += 1;
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

    fn put(&mut self, session: SessionId, state: State, config: SaConfig) {
        let entry = Entry { state, counters: SaCounters::default(), outer: None, in_flight: 0 };
        if self.free.pop_front().is_some() {
            self.sas[session.0 as usize] = entry;
            self.configs[session.0 as usize] = Some(config);
        } else {
            self.sas.push(entry);
            self.configs.push(Some(config));
        }
    }

    /// Removes an SA, from the policies too: they protect by what other SAs they have, and drop where
    /// there are none. Its jobs under way end in drops.
    pub fn remove(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let config = self.configs.get_mut(session.0 as usize)?.take()?;
        let entry = &mut self.sas[session.0 as usize];
        let direction = entry.state.direction();
        entry.state = State::Gone(direction);
        let counters = entry.counters;
        if entry.in_flight == 0 {
            self.free.push_back(session.0);
        }
        match direction {
            Direction::Seal => drop(self.by_peer.remove(&(config.remote, config.spi))),
            Direction::Open => {
                self.by_spi.remove(&config.spi.get());
                if let Some(count) = self.own.get_mut(&config.local) {
                    *count -= 1;
                    if *count == 0 {
                        self.own.remove(&config.local);
                    }
                }
            }
        }
        self.spd.remove_sa(session);
        self.iptfs.remove(session);
        self.unnest(session);
        Some((config, counters))
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

    /// The policy with this id.
    pub fn policy(&self, id: PolicyId) -> Option<Policy> {
        self.spd.get(id)
    }

    /// The policies of a direction in order.
    pub fn policies(&self, direction: Direction) -> impl Iterator<Item = (PolicyId, Policy)> {
        self.spd.iter(direction)
    }

    fn check_sas(&self, direction: Direction, sas: &[SessionId]) -> Result<(), PolicyError> {
        for &session in sas {
            self.config(session).ok_or(PolicyError::NoSuchSa(session))?;
            if self.sas[session.0 as usize].state.direction() != direction {
                return Err(PolicyError::WrongDirection(session));
            }
        }
        Ok(())
    }

    /// All SAs with their settings and counters, by number.
    pub fn iter(&self) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        self.sas.iter().zip(&self.configs).enumerate().filter_map(|(index, (entry, config))| {
            let direction = entry.state.direction();
            Some((SessionId(index as u32), direction, config.as_ref()?, &entry.counters))
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

    /// What has gone through the SA with this number.
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
        match &self.sas.get(session.0 as usize)?.state {
            State::Out(sa) => Some(sa.sequence),
            State::OutAh(sa) => Some(sa.sequence()),
            State::In(sa) => Some(sa.replay.top()),
            State::InAh(sa) => Some(sa.top()),
            State::Away(..) | State::Gone(_) => None,
        }
    }

    /// Lets an SA continue behind `sequence`: as if that had been sent, or received and verified.
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        match self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state) {
            Some(State::Out(sa)) => sa.continue_after(sequence),
            Some(State::In(sa)) => sa.continue_after(sequence),
            Some(State::OutAh(sa)) => sa.continue_after(sequence),
            Some(State::InAh(sa)) => sa.continue_after(sequence),
            Some(State::Away(..) | State::Gone(_)) | None => {}
        }
    }

    /// Lets an outbound SA number its packets up to `last` and no further, until it is granted more; at half of the
    /// way there it asks by [`EventKind::SequenceWanted`](crate::EventKind::SequenceWanted). So numbers can be
    /// noted durably before their use. An SA that was never granted any goes to the end.
    pub fn grant(&mut self, session: SessionId, last: u64) {
        match self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state) {
            Some(State::Out(sa)) => sa.grant(last),
            Some(State::OutAh(sa)) => sa.grant(last),
            Some(State::In(_) | State::InAh(_) | State::Away(..) | State::Gone(_)) | None => {}
        }
    }

    /// Does everything to a packet that comes before the crypto and needs order, and states in
    /// `spec` the job that is left, which may be done anywhere and at any time. A packet that a policy
    /// lets pass as it is has no job.
    #[inline]
    pub fn prepare(
        &mut self,
        direction: Direction,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<Prepared, DropReason> {
        match direction {
            Direction::Seal => self.prepare_seal(packet, spec),
            Direction::Open => self.prepare_open(packet, spec, None),
        }
    }

    /// Prepares the packets of `jobs` in order, trains of one flow together. At a packet that has no job
    /// it stops, with the packet's place and the reason; those before it are prepared.
    #[inline]
    pub fn prepare_burst(&mut self, direction: Direction, jobs: &mut [Job]) -> Result<(), (usize, Stop)> {
        self.warm(direction, jobs);
        let mut next = 0;
        while let Some(job) = jobs.get(next) {
            let addresses = Ipv4::parse(job.packet.bytes()).map(|ip| ip.raw_addresses());
            if let (Direction::Seal, Ok(addresses)) = (direction, addresses)
                && let Some(index) = self.spd.recent(addresses)
                && let Some(Entry { state: State::Out(sa), in_flight, .. }) = self.sas.get_mut(index as usize)
            {
                // The train of the last burst goes on.
                let more = sa.prepare_train(&mut jobs[next..], addresses);
                *in_flight += more as u32;
                if more > 0 {
                    next += more;
                    continue;
                }
            }
            let Some((job, rest)) = jobs.get_mut(next..).and_then(<[Job]>::split_first_mut) else { break };
            match self.prepare(direction, &mut job.packet, &mut job.spec) {
                Ok(Prepared::Job) => next += 1,
                Ok(Prepared::Pass) => return Err((next, Stop::Pass)),
                Ok(Prepared::Away(core)) => return Err((next, Stop::Away(core))),
                Err(reason) => return Err((next, Stop::Drop(reason))),
            }
            let (Ok(addresses), Some(entry)) = (addresses, self.sas.get_mut(job.spec.session.0 as usize))
            else {
                continue;
            };
            let more = match &mut entry.state {
                // Only while any packet with these addresses goes the same way.
                State::Out(sa) if self.spd.recent(addresses) == Some(job.spec.session.0) => {
                    sa.prepare_train(rest, addresses)
                }
                State::In(sa) => sa.prepare_train(rest, addresses),
                State::Out(_) | State::OutAh(_) | State::InAh(_) | State::Away(..) | State::Gone(_) => 0,
            };
            entry.in_flight += more as u32;
            next += more;
        }
        Ok(())
    }

    /// With many SAs, what a packet needs of them is seldom in the cache: loads it for a whole burst, so
    /// that the packets do not wait one behind the other. Nothing is decided here.
    #[inline]
    fn warm(&self, direction: Direction, jobs: &[Job]) {
        if self.sas.len() <= WARM_FROM || jobs.len() < 2 {
            return;
        }
        match direction {
            Direction::Seal => self.warm_outbound(jobs),
            Direction::Open => self.warm_inbound(jobs),
        }
    }

    /// Each step for all packets before the next, and no step with more in it than the loads of one kind: a
    /// core looks ahead by instructions, and so has the more loads under way the fewer stand between them.
    #[inline(never)]
    fn warm_outbound(&self, jobs: &[Job]) {
        let mut last = None;
        for jobs in jobs.chunks(WARM_AT_ONCE) {
            let mut flows = [None; WARM_AT_ONCE];
            for (job, flow) in jobs.iter().zip(&mut flows) {
                let Ok(ip) = Ip::parse(job.packet.bytes()) else { continue };
                // The packets of a train need the same.
                let addresses = if let Ip::V4(ip) = ip { Some(ip.raw_addresses()) } else { None };
                if addresses.is_some() && std::mem::replace(&mut last, addresses) == addresses {
                    continue;
                }
                let headers = self.spd.outbound_headers(&ip);
                *flow = Some((headers, self.spd.place(&headers)));
            }
            flows.iter().flatten().for_each(|(_, place)| self.spd.touch(*place));
            let mut sessions = [u32::MAX; WARM_AT_ONCE];
            for (flow, session) in flows.iter().zip(&mut sessions) {
                *session = flow.and_then(|(headers, _)| self.spd.peek(&headers)).unwrap_or(u32::MAX);
            }
            sessions.into_iter().for_each(|session| self.touch(session));
        }
    }

    #[inline(never)]
    fn warm_inbound(&self, jobs: &[Job]) {
        let mut last = 0;
        for jobs in jobs.chunks(WARM_AT_ONCE) {
            let mut spis = [0; WARM_AT_ONCE];
            for (job, spi) in jobs.iter().zip(&mut spis) {
                let found = Ip::parse(job.packet.bytes()).ok().and_then(|ip| EspAt::find(&ip).ok());
                let found = found.map_or(0, |found| found.spi);
                if std::mem::replace(&mut last, found) != found {
                    *spi = found;
                }
            }
            spis.iter().for_each(|spi| self.by_spi.touch(*spi));
            let mut sessions = [u32::MAX; WARM_AT_ONCE];
            for (spi, session) in spis.iter().zip(&mut sessions) {
                *session = self.by_spi.get(spi).copied().unwrap_or(u32::MAX);
            }
            sessions.into_iter().for_each(|session| self.touch(session));
            for session in sessions {
                if let Some(Entry { state: State::In(sa), .. }) = self.sas.get(session as usize) {
                    sa.touch_window();
                }
            }
        }
    }

    #[inline]
    fn touch(&self, session: u32) {
        let Some(entry) = self.sas.get(session as usize) else { return };
        std::hint::black_box(entry.in_flight);
        match &entry.state {
            State::Out(sa) => sa.touch(),
            State::In(sa) => sa.touch(),
            State::OutAh(_) | State::InAh(_) | State::Away(..) | State::Gone(_) => {}
        }
    }

    /// Completes `jobs` in order. At a packet that is not simply to be delivered it stops, with the packet's place
    /// and what it stopped for; those before it are complete.
    #[inline]
    pub fn complete_burst(&mut self, jobs: &mut [Job]) -> Result<(), (usize, Stop)> {
        let policies = self.spd.state();
        let mut next = 0;
        while let Some(job) = jobs.get(next) {
            let index = job.spec.session.0 as usize;
            if let Some(entry) = self.sas.get_mut(index) {
                let (done, bytes) = match &mut entry.state {
                    State::Out(sa) if entry.outer.is_none() => sa.complete_train(&mut jobs[next..]),
                    State::In(sa) => sa.complete_train(&mut jobs[next..], policies),
                    _ => (0, 0),
                };
                entry.counters.packets += done as u64;
                entry.counters.bytes += bytes;
                entry.in_flight = entry.in_flight.saturating_sub(done as u32);
                next += done;
                if done > 0 {
                    continue;
                }
            }
            // What is not simply done goes the long way.
            let Some(job) = jobs.get_mut(next) else { break };
            let completed = self.complete(&mut job.packet, &job.spec, job.verdict);
            stop_unless_delivered(completed).map_err(|stop| (next, stop))?;
            next += 1;
        }
        Ok(())
    }

    #[inline]
    fn prepare_seal(&mut self, packet: &mut Packet, spec: &mut JobSpec) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        let session = match self.spd.decide_outbound(&ip) {
            Decision::Protect(session) => session,
            Decision::Pass => {
                let len = ip.bytes().len();
                packet.truncate(len);
                return Ok(Prepared::Pass);
            }
            Decision::Drop(reason) => return Err(reason),
        };
        let inner = Inner::of(&ip);
        let entry = &mut self.sas[session as usize];
        match &mut entry.state {
            State::Out(sa) => sa.prepare(packet, &inner, spec, &mut self.watch)?,
            State::OutAh(sa) => sa.prepare(packet, &inner, spec, &mut self.watch)?,
            State::Away(_, core) => return Ok(Prepared::Away(*core)),
            State::In(_) | State::InAh(_) | State::Gone(_) => return Err(DropReason::OutNoStates),
        }
        entry.in_flight += 1;
        Ok(Prepared::Job)
    }

    /// Prepares a packet for opening that came out of SA number `through`, if out of any.
    #[inline]
    fn prepare_open(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let found = match EspAt::find(&ip) {
            Ok(found) => found,
            Err(DropReason::InNoIpsec) => return self.prepare_ah(packet, spec, through),
            Err(reason) => return self.pass_cleartext(packet, reason),
        };
        let Some(&index) = self.by_spi.get(&found.spi) else {
            return self.pass_cleartext(packet, DropReason::InNoStates);
        };
        let entry = &mut self.sas[index as usize];
        entry.comes_through(through)?;
        let State::In(sa) = &mut entry.state else { return entry.state.away() };
        match sa.accepts(&found, &ip) {
            // Somebody else's packet may have any SPI.
            Err(DropReason::InNoStates) => return self.pass_cleartext(packet, DropReason::InNoStates),
            accepted => accepted?,
        }
        sa.prepare(packet, &found, spec).inspect_err(|&reason| {
            entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
        })?;
        entry.in_flight += 1;
        Ok(Prepared::Job)
    }

    /// What no inbound SA is for, which `reason` says why: the inbound policies decide, if there are any, on
    /// what is not IPsec and on what is not for this gateway (RFC 4301 5.2 step 2).
    #[cold]
    fn pass_cleartext(&mut self, packet: &mut Packet, reason: DropReason) -> Result<Prepared, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let cleartext = match reason {
            DropReason::InNoIpsec | DropReason::InIke => true,
            // A fragment of ours may be one of ESP, and an unknown SPI to us is an error.
            DropReason::InFragment | DropReason::InNoStates => !self.own.contains_key(&ip.destination()),
            _ => false,
        };
        if !cleartext || !self.spd.has_inbound() {
            return Err(reason);
        }
        self.spd.check_cleartext(&ip)?;
        let len = ip.bytes().len();
        packet.truncate(len);
        Ok(Prepared::Pass)
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
        let entry = self.sas.get_mut(spec.session.0 as usize).ok_or(DropReason::InError)?;
        let was_last = entry.in_flight == 1;
        entry.in_flight = entry.in_flight.saturating_sub(1);
        match (&mut entry.state, verdict) {
            (State::Gone(direction), _) => {
                // The last of a removed SA's jobs sets its number free.
                if was_last {
                    self.free.push_back(spec.session.0);
                }
                return Err(match direction {
                    Direction::Seal => DropReason::OutStateInvalid,
                    Direction::Open => DropReason::InStateInvalid,
                });
            }
            (State::Out(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::OutAh(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::Out(_) | State::OutAh(_) | State::Away(Direction::Seal, _), _) => {
                return Err(DropReason::OutError);
            }
            (State::In(_) | State::InAh(_), Verdict::Done) => {
                let (outer_len, opened) = match &mut entry.state {
                    State::In(sa) => (packet.len(), sa.complete(packet, spec, &mut self.watch)),
                    State::InAh(sa) => (sa.len_of(spec), sa.complete(packet, spec, &mut self.watch)),
                    State::Out(_) | State::OutAh(_) | State::Away(..) | State::Gone(_) => {
                        return Err(DropReason::InError);
                    }
                };
                let next = opened.inspect_err(|&reason| {
                    entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
                })?;
                entry.counters.packets += 1;
                entry.counters.bytes += outer_len as u64;
                let next = self.arrive(spec.session.0, next, path, packet)?;
                if next == Next::Deliver {
                    self.remember(spec.session, packet);
                }
                return Ok(next);
            }
            (State::In(_) | State::InAh(_), Verdict::AuthFailed) => {
                match &mut entry.state {
                    State::In(sa) => sa.auth_failed(),
                    State::InAh(sa) => sa.auth_failed(),
                    State::Out(_) | State::OutAh(_) | State::Away(..) | State::Gone(_) => {}
                }
                entry.counters.auth_failures += 1;
                return Err(DropReason::InStateProtoError);
            }
            (State::In(_) | State::InAh(_), Verdict::Pending | Verdict::Failed)
            | (State::Away(Direction::Open, _), _) => {
                return Err(DropReason::InError);
            }
        }
        entry.counters.packets += 1;
        entry.counters.bytes += packet.len() as u64;
        Ok(if entry.outer.is_some() { Next::Again } else { Next::Deliver })
    }
}

impl Sad {
    /// Lets the packets behind one that has been delivered do without what it was asked, if they are alike.
    #[inline]
    fn remember(&mut self, session: SessionId, packet: &Packet) {
        if let Some(Entry { state: State::In(sa), outer: None, .. }) = self.sas.get_mut(session.0 as usize)
            && let Ok(addresses) = Ipv4::parse(packet.bytes()).map(|ip| ip.raw_addresses())
            && sa.passed == Some(addresses)
            && self.spd.passes_all(addresses, session)
        {
            sa.pass_all(self.spd.state());
        }
    }
}

#[inline]
fn stop_unless_delivered(completed: Result<Next, DropReason>) -> Result<(), Stop> {
    match completed {
        Ok(Next::Deliver) => Ok(()),
        Ok(Next::Unpack) => Err(Stop::Unpack),
        Ok(Next::Again) => Err(Stop::Again),
        Err(reason) => Err(Stop::Drop(reason)),
    }
}

impl State {
    fn direction(&self) -> Direction {
        match self {
            State::Out(_) | State::OutAh(_) => Direction::Seal,
            State::In(_) | State::InAh(_) => Direction::Open,
            State::Away(direction, _) | State::Gone(direction) => *direction,
        }
    }
}
