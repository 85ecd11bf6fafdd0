//! The security association database (RFC 4301 4.4.2) and the two steps around every job.

mod nest;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Verdict};
use forebay_wire::{Ip, Ipv4};

pub use nest::{NEST_MAX, Next, Path, Stop};
pub(crate) use nest::{may_nest, names_ipsec};

use crate::ah::{InboundAh, OutboundAh};
use crate::inbound::{EspAt, InboundSa};
use crate::outbound::{Inner, OutboundSa};
use crate::select::{Selection, Selectors};
use crate::{DropReason, IvRange, Protocol, SaConfig, SaConfigError, Spi};

/// All SAs of a gateway, both directions. An SA's position is also the number of its key sessions.
#[derive(Debug, Default)]
pub struct Sad {
    sas: Vec<Entry>,
    by_spi: HashMap<u32, u32, BuildHasherDefault<SpiHasher>>,
    selection: Selection,
}

#[derive(Debug)]
struct Entry {
    config: SaConfig,
    state: State,
    counters: SaCounters,
    /// The SA that its packets go through next, or come through before.
    outer: Option<u32>,
}

#[derive(Debug)]
enum State {
    Out(OutboundSa),
    In(InboundSa),
    OutAh(OutboundAh),
    InAh(InboundAh),
}

impl State {
    fn direction(&self) -> Direction {
        match self {
            State::Out(_) | State::OutAh(_) => Direction::Seal,
            State::In(_) | State::InAh(_) => Direction::Open,
        }
    }
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

impl Sad {
    /// Adds an outbound SA, which uses the IVs of `iv`; packets try outbound SAs in the order added.
    pub fn add_outbound(&mut self, config: SaConfig, iv: IvRange) -> Result<SessionId, SadError> {
        let session = self.check(Direction::Seal, &config)?;
        self.selection.push(Selectors::new(&config), session.0);
        let state = match config.protocol {
            Protocol::Esp => State::Out(OutboundSa::new(&config, session, iv)),
            Protocol::Ah => State::OutAh(OutboundAh::new(&config, session, iv)),
        };
        self.sas.push(Entry { config, state, counters: SaCounters::default(), outer: None });
        Ok(session)
    }

    /// Adds an inbound SA.
    pub fn add_inbound(&mut self, config: SaConfig) -> Result<SessionId, SadError> {
        let session = self.check(Direction::Open, &config)?;
        self.by_spi.insert(config.spi.get(), session.0);
        let state = match config.protocol {
            Protocol::Esp => State::In(InboundSa::new(&config, session)),
            Protocol::Ah => State::InAh(InboundAh::new(&config, session)),
        };
        self.sas.push(Entry { config, state, counters: SaCounters::default(), outer: None });
        Ok(session)
    }

    /// Whether an SA may be added, and the number it would get.
    fn check(&self, direction: Direction, config: &SaConfig) -> Result<SessionId, SadError> {
        let index = self.sas.len();
        config.check().map_err(|error| SadError::Config { index, error })?;
        let clash = self.sas.iter().position(|other| {
            let same_direction = other.state.direction() == direction;
            // A receiver chooses its SPIs, so there they must differ; two peers may choose alike.
            let same_receiver = direction == Direction::Open || other.config.remote == config.remote;
            same_direction && same_receiver && other.config.spi == config.spi
        });
        match clash {
            Some(first) => Err(SadError::OverlappingSpi { first, second: index, spi: config.spi }),
            None => Ok(SessionId(index as u32)),
        }
    }

    /// All SAs with their settings and counters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SessionId, Direction, &SaConfig, &SaCounters)> {
        self.sas.iter().enumerate().map(|(index, entry)| {
            (SessionId(index as u32), entry.state.direction(), &entry.config, &entry.counters)
        })
    }

    /// The settings of the SA with this number.
    pub fn config(&self, session: SessionId) -> Option<&SaConfig> {
        self.sas.get(session.0 as usize).map(|entry| &entry.config)
    }

    /// Lets an SA continue behind `sequence`: as if that had been sent, or received and verified.
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        match self.sas.get_mut(session.0 as usize).map(|entry| &mut entry.state) {
            Some(State::Out(sa)) => sa.continue_after(sequence),
            Some(State::In(sa)) => sa.continue_after(sequence),
            Some(State::OutAh(sa)) => sa.continue_after(sequence),
            Some(State::InAh(sa)) => sa.continue_after(sequence),
            None => {}
        }
    }

    /// Does everything to a packet that comes before the crypto and needs order, and states in
    /// `spec` the job that is left, which may be done anywhere and at any time.
    #[inline]
    pub fn prepare(
        &mut self,
        direction: Direction,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        match direction {
            Direction::Seal => self.prepare_seal(packet, spec),
            Direction::Open => self.prepare_open(packet, spec, None),
        }
    }

    /// Prepares the packets of `jobs` in order, trains of one flow together. At a packet that cannot
    /// be prepared it stops, with the packet's place and the reason; those before it are prepared.
    #[inline]
    pub fn prepare_burst(
        &mut self,
        direction: Direction,
        jobs: &mut [Job],
    ) -> Result<(), (usize, DropReason)> {
        let mut next = 0;
        while let Some(job) = jobs.get(next) {
            let addresses = Ipv4::parse(job.packet.bytes()).map(|ip| ip.raw_addresses());
            if let (Direction::Seal, Ok(addresses)) = (direction, addresses)
                && let Some(index) = self.selection.recent(addresses)
                && let Some(State::Out(sa)) = self.sas.get_mut(index as usize).map(|entry| &mut entry.state)
            {
                // The train of the last burst goes on.
                let more = sa.prepare_train(&mut jobs[next..], addresses);
                if more > 0 {
                    next += more;
                    continue;
                }
            }
            let Some((job, rest)) = jobs.get_mut(next..).and_then(<[Job]>::split_first_mut) else { break };
            self.prepare(direction, &mut job.packet, &mut job.spec).map_err(|reason| (next, reason))?;
            next += 1;
            let (Ok(addresses), Some(entry)) = (addresses, self.sas.get_mut(job.spec.session.0 as usize))
            else {
                continue;
            };
            next += match &mut entry.state {
                State::Out(sa) => sa.prepare_train(rest, addresses),
                State::In(sa) => sa.prepare_train(rest, addresses, entry.config.spi.get()),
                State::OutAh(_) | State::InAh(_) => 0,
            };
        }
        Ok(())
    }

    /// Completes `jobs` in order. At a packet that is to be dropped, or to go through another SA, it stops,
    /// with the packet's place and what it stopped for; those before it are complete.
    #[inline]
    pub fn complete_burst(&mut self, jobs: &mut [Job]) -> Result<(), (usize, Stop)> {
        let mut next = 0;
        while let Some(job) = jobs.get(next) {
            let session = job.spec.session;
            let entry =
                self.sas.get_mut(session.0 as usize).ok_or((next, Stop::Drop(DropReason::InError)))?;
            let is_last = entry.outer.is_none();
            let (mut packets, mut bytes) = (0, 0);
            let (mut stop, mut inside) = (None, false);
            // All of the SA's packets in a row at once; what is not simply done goes the long way.
            for job in jobs[next..].iter_mut() {
                if job.spec.session != session || job.verdict != Verdict::Done {
                    break;
                }
                bytes += job.packet.len() as u64;
                match &mut entry.state {
                    State::Out(sa) if is_last => sa.complete(&mut job.packet, &job.spec),
                    State::In(sa) => {
                        let outer_len = job.packet.len() as u64;
                        match sa.complete(&mut job.packet, &job.spec) {
                            Ok(Next::Deliver) => {}
                            Ok(Next::Again) => inside = true,
                            Err(reason) => {
                                bytes -= outer_len;
                                stop = Some(reason);
                                break;
                            }
                        }
                    }
                    _ => {
                        bytes -= job.packet.len() as u64;
                        break;
                    }
                }
                packets += 1;
                if inside {
                    break;
                }
            }
            entry.counters.packets += packets;
            entry.counters.bytes += bytes;
            next += packets as usize;
            if let Some(reason) = stop {
                entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
                return Err((next, Stop::Drop(reason)));
            }
            if inside {
                let packet = &jobs[next - 1].packet;
                let arrived = self.arrive(session.0, Next::Again, &Path::default(), packet);
                stop_unless_delivered(arrived).map_err(|stop| (next - 1, stop))?;
            }
            if packets == 0 {
                let job = &mut jobs[next];
                let completed = self.complete(&mut job.packet, &job.spec, job.verdict);
                stop_unless_delivered(completed).map_err(|stop| (next, stop))?;
                next += 1;
            }
        }
        Ok(())
    }

    #[inline]
    fn prepare_seal(&mut self, packet: &mut Packet, spec: &mut JobSpec) -> Result<(), DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::OutHdrError)?;
        let index = self.selection.find(&ip).ok_or(DropReason::OutNoStates)?;
        let inner = Inner::of(&ip);
        match &mut self.sas[index as usize].state {
            State::Out(sa) => sa.prepare(packet, &inner, spec),
            State::OutAh(sa) => sa.prepare(packet, &inner, spec),
            State::In(_) | State::InAh(_) => Err(DropReason::OutNoStates),
        }
    }

    /// Prepares a packet for opening that came out of SA number `through`, if out of any.
    #[inline]
    fn prepare_open(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        through: Option<u32>,
    ) -> Result<(), DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(|_| DropReason::InHdrError)?;
        let found = match EspAt::find(&ip) {
            Err(DropReason::InNoIpsec) => return self.prepare_ah(packet, spec, through),
            found => found?,
        };
        let index = *self.by_spi.get(&found.spi).ok_or(DropReason::InNoStates)?;
        let entry = &mut self.sas[index as usize];
        let State::In(sa) = &entry.state else { return Err(DropReason::InNoStates) };
        entry.comes_through(through)?;
        sa.accepts(&found, &ip)?;
        sa.prepare(packet, &found, spec).inspect_err(|&reason| {
            entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
        })
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
        match (&mut entry.state, verdict) {
            (State::Out(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::OutAh(sa), Verdict::Done) => sa.complete(packet, spec),
            (State::Out(_) | State::OutAh(_), _) => return Err(DropReason::OutError),
            (State::In(_) | State::InAh(_), Verdict::Done) => {
                let (outer_len, opened) = match &mut entry.state {
                    State::In(sa) => (packet.len(), sa.complete(packet, spec)),
                    State::InAh(sa) => (sa.len_of(spec), sa.complete(packet, spec)),
                    State::Out(_) | State::OutAh(_) => return Err(DropReason::InError),
                };
                let next = opened.inspect_err(|&reason| {
                    entry.counters.replays += u64::from(reason == DropReason::InStateSeqError);
                })?;
                entry.counters.packets += 1;
                entry.counters.bytes += outer_len as u64;
                return self.arrive(spec.session.0, next, path, packet);
            }
            (State::In(_) | State::InAh(_), Verdict::AuthFailed) => {
                entry.counters.auth_failures += 1;
                return Err(DropReason::InStateProtoError);
            }
            (State::In(_) | State::InAh(_), Verdict::Pending | Verdict::Failed) => {
                return Err(DropReason::InError);
            }
        }
        entry.counters.packets += 1;
        entry.counters.bytes += packet.len() as u64;
        Ok(if entry.outer.is_some() { Next::Again } else { Next::Deliver })
    }
}

#[inline]
fn stop_unless_delivered(completed: Result<Next, DropReason>) -> Result<(), Stop> {
    match completed {
        Ok(Next::Deliver) => Ok(()),
        Ok(Next::Again) => Err(Stop::Again),
        Err(reason) => Err(Stop::Drop(reason)),
    }
}

/// Spreads SPIs over the table. Senders cannot put entries into it, so they gain nothing from
/// knowing the function.
#[derive(Default)]
struct SpiHasher(u64);

impl Hasher for SpiHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
