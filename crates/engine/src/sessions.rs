//! SAs while running: what opens and closes their key sessions at every processor, and policies.

use std::fmt;
use std::net::SocketAddr;

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::{IvRange, Policy, PolicyError, PolicyId, PolicyPlace, SaConfig, SaCounters, SadError};
use forebay_scheduler::Cost;
use forebay_scheduler::fit::Fit;

use crate::engine::{Engine, RUNNING_CORE, Tally};
use crate::setup::{EngineError, SUITES_MAX};

/// Jobs after which a measurement has faded from a processor's cost.
const FIT_MEMORY: u32 = 4096;

/// What key sessions there are. Jobs that the same processors do by the same suite are of one *kind*, which
/// the scheduler knows as a bit: a card whose table is full does the suite, but not for this SA.
#[derive(Debug, Default)]
pub struct Sessions {
    kinds: Vec<Kind>,
    /// The kind of each session's jobs, by its number.
    kind_of: Vec<u8>,
    /// Sessions of SAs that were removed while jobs of theirs were under way.
    ending: Vec<SessionId>,
}

#[derive(Debug)]
struct Kind {
    suite: Suite,
    /// For each processor whether it does them.
    by: Vec<bool>,
}

impl Sessions {
    /// The kind of a session's jobs.
    #[inline]
    pub fn kind(&self, session: SessionId) -> u8 {
        self.kind_of[session.0 as usize]
    }

    fn core_does(&self, session: SessionId) -> bool {
        self.kinds[self.kind(session) as usize].by[RUNNING_CORE]
    }
}

/// An SA that could not be added.
#[derive(Debug)]
#[non_exhaustive]
pub enum AddSaError {
    /// The database refuses it.
    Sad(SadError),
    /// No processor takes it.
    Engine(EngineError),
}

impl fmt::Display for AddSaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddSaError::Sad(error) => error.fmt(f),
            AddSaError::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AddSaError {}

/// SAs.
impl Engine {
    /// Adds an outbound SA, which uses the IVs of `iv`, for packets admitted from now on.
    pub fn add_outbound(
        &mut self,
        config: SaConfig,
        iv: IvRange,
        keys: &SaKeys,
    ) -> Result<SessionId, AddSaError> {
        let session = self.sad.add_outbound(config, iv).map_err(AddSaError::Sad)?;
        self.open_or_remove(session, Direction::Seal, keys)
    }

    /// Adds an inbound SA, for packets admitted from now on.
    pub fn add_inbound(&mut self, config: SaConfig, keys: &SaKeys) -> Result<SessionId, AddSaError> {
        let session = self.sad.add_inbound(config).map_err(AddSaError::Sad)?;
        self.open_or_remove(session, Direction::Open, keys)?;
        self.strangers.announce();
        Ok(session)
    }

    fn open_or_remove(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
    ) -> Result<SessionId, AddSaError> {
        self.open(session, direction, keys).map_err(|error| {
            self.sad.remove(session);
            AddSaError::Engine(error)
        })?;
        Ok(session)
    }

    /// Adds an SA that the engine of another core has: see [`Ipsec::add_remote`](forebay_ipsec::Ipsec::add_remote). No processor
    /// is told of it.
    pub fn add_away(
        &mut self,
        direction: Direction,
        config: SaConfig,
        core: u16,
    ) -> Result<SessionId, SadError> {
        let session = self.sad.add_remote(direction, config, core)?;
        if direction == Direction::Open {
            self.strangers.announce();
        }
        Ok(session)
    }

    /// Whether SAs with these keys may be added, as far as processors have a say in it.
    ///
    /// # Errors
    /// As those of adding them; nothing is changed.
    pub fn check_keys<'k>(
        &mut self,
        keys: impl Iterator<Item = (Direction, &'k SaKeys)>,
    ) -> Result<(), EngineError> {
        let mut kinds: Vec<Suite> = self.sessions.kinds.iter().map(|kind| kind.suite).collect();
        let number = self.sad.next_session();
        for (direction, keys) in keys {
            let suite = keys.suite();
            if !self.attached.iter().any(|one| one.processor.capabilities().has(suite)) {
                return Err(EngineError::NoProcessor(suite));
            }
            if !kinds.contains(&suite) {
                kinds.push(suite);
            }
            if kinds.len() > SUITES_MAX {
                return Err(EngineError::TooManySuites(kinds.len()));
            }
            let core = &mut self.attached[RUNNING_CORE].processor;
            if core.capabilities().has(suite) {
                let opened = core.open_session(number, keys, direction);
                core.close_session(number);
                let name = core.name().to_owned();
                opened.map_err(|error| EngineError::Session { processor: name, error })?;
            }
        }
        Ok(())
    }

    /// Removes an SA. Its packets under way are dropped as they complete; then every processor forgets its
    /// keys, which [`Engine::turn`] sees to.
    pub fn remove_sa(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let is_away = self.sad.remote(session).is_some();
        let removed = self.sad.remove(session)?;
        if !is_away {
            self.sessions.ending.push(session);
            self.close_ended();
        }
        Some(removed)
    }

    /// Lets an SA continue behind `sequence`: see [`Ipsec::continue_after`](forebay_ipsec::Ipsec::continue_after).
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        self.sad.continue_after(session, sequence);
    }

    /// Lets an outbound SA number its packets up to `last`: see [`Ipsec::grant`](forebay_ipsec::Ipsec::grant).
    pub fn grant(&mut self, session: SessionId, last: u64) {
        self.sad.grant(session, last);
    }

    /// Puts an SA inside another: see [`Ipsec::nest`](forebay_ipsec::Ipsec::nest).
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        self.sad.nest(inner, outer)
    }

    /// Opens an SA's session at every processor that does its suite. A card that refuses does without; the
    /// running core must not, and somebody must do it.
    pub(crate) fn open(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
    ) -> Result<(), EngineError> {
        // The number may be that of a removed SA, whose sessions are replaced now.
        self.sessions.ending.retain(|&ending| ending != session);
        let mut by = vec![false; self.attached.len()];
        for (index, does) in by.iter_mut().enumerate() {
            let processor = &mut self.attached[index].processor;
            if !processor.capabilities().has(keys.suite()) {
                continue;
            }
            match processor.open_session(session, keys, direction) {
                Ok(()) => *does = true,
                Err(error) if index == RUNNING_CORE => {
                    return Err(EngineError::Session { processor: processor.name().to_owned(), error });
                }
                Err(_) => processor.close_session(session),
            }
        }
        if !by.contains(&true) {
            return Err(EngineError::NoProcessor(keys.suite()));
        }
        let kind = self.kind_for(keys.suite(), by).inspect_err(|_| {
            self.attached.iter_mut().for_each(|one| one.processor.close_session(session));
        })?;
        let number = session.0 as usize;
        if self.sessions.kind_of.len() <= number {
            self.sessions.kind_of.resize(number + 1, kind);
        }
        self.sessions.kind_of[number] = kind;
        self.order.open(session.0);
        Ok(())
    }

    /// The kind of jobs of `suite` that are done `by` these processors, a new one if need be.
    fn kind_for(&mut self, suite: Suite, by: Vec<bool>) -> Result<u8, EngineError> {
        let kinds = &mut self.sessions.kinds;
        if let Some(known) = kinds.iter().position(|kind| kind.suite == suite && kind.by == by) {
            return Ok(known as u8);
        }
        if kinds.len() == SUITES_MAX {
            return Err(EngineError::TooManySuites(SUITES_MAX + 1));
        }
        let kind = kinds.len() as u8;
        // What is known of the suite holds whoever else does it.
        let like = kinds.iter().position(|kind| kind.suite == suite);
        for (index, attached) in self.attached.iter_mut().enumerate() {
            let cost = like.map_or(attached.expected, |like| attached.costs[like]);
            attached.fits.push(Fit::new(cost, FIT_MEMORY));
            attached.costs.push(cost);
            self.scheduler.set_suite_cost(index, kind, cost);
            if by[index] {
                self.scheduler.add_suite(index, kind);
            }
        }
        self.tallies.push(Tally::default());
        self.sessions.kinds.push(Kind { suite, by });
        Ok(kind)
    }

    /// Lets every processor forget the sessions whose last job is through.
    pub(crate) fn close_ended(&mut self) {
        if self.sessions.ending.is_empty() {
            return;
        }
        let (sad, attached) = (&self.sad, &mut self.attached);
        self.sessions.ending.retain(|&session| {
            let ended = sad.in_flight(session) == 0;
            if ended {
                attached.iter_mut().for_each(|one| one.processor.close_session(session));
            }
            !ended
        });
    }

    /// Whether the running core does the jobs of a session.
    pub(crate) fn core_does(&self, session: SessionId) -> bool {
        self.sessions.core_does(session)
    }

    /// The cost that processor number `processor` is now taken to have for the suite of an SA.
    pub fn cost(&self, processor: usize, session: SessionId) -> Option<Cost> {
        let kind = *self.sessions.kind_of.get(session.0 as usize)?;
        Some(self.attached.get(processor)?.fits.get(kind as usize)?.cost())
    }

    /// The distinct suites of the SAs that there are or were, for tables.
    pub fn suites(&self) -> Vec<Suite> {
        let mut suites: Vec<Suite> = self.sessions.kinds.iter().map(|kind| kind.suite).collect();
        suites.sort();
        suites.dedup();
        suites
    }
}

/// Policies and paths: see the methods of [`Ipsec`](forebay_ipsec::Ipsec) by these names.
impl Engine {
    /// [`Ipsec::add_policy`](forebay_ipsec::Ipsec::add_policy).
    pub fn add_policy(&mut self, policy: Policy, place: PolicyPlace) -> Result<PolicyId, PolicyError> {
        self.sad.add_policy(policy, place)
    }

    /// [`Ipsec::remove_policy`](forebay_ipsec::Ipsec::remove_policy).
    pub fn remove_policy(&mut self, id: PolicyId) -> Option<Policy> {
        self.sad.remove_policy(id)
    }

    /// [`Ipsec::set_policy_sas`](forebay_ipsec::Ipsec::set_policy_sas).
    pub fn set_policy_sas(&mut self, id: PolicyId, sas: Vec<SessionId>) -> Result<(), PolicyError> {
        self.sad.set_policy_sas(id, sas)
    }

    /// [`Ipsec::put_policy_sa_first`](forebay_ipsec::Ipsec::put_policy_sa_first).
    pub fn put_policy_sa_first(&mut self, id: PolicyId, session: SessionId) -> Result<(), PolicyError> {
        self.sad.put_policy_sa_first(id, session)
    }

    /// [`Ipsec::move_peer`](forebay_ipsec::Ipsec::move_peer).
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        self.sad.move_peer(session, to)
    }

    /// [`Ipsec::learn_path_mtu`](forebay_ipsec::Ipsec::learn_path_mtu).
    pub fn learn_path_mtu(&mut self, message: &[u8]) -> Option<SessionId> {
        self.sad.learn_path_mtu(message)
    }

    /// [`Ipsec::lower_path_mtu`](forebay_ipsec::Ipsec::lower_path_mtu).
    pub fn lower_path_mtu(&mut self, session: SessionId, mtu: u16) -> bool {
        self.sad.lower_path_mtu(session, mtu)
    }
}
