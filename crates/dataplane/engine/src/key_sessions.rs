//! Key sessions: which processors have the keys of which SA.

use std::collections::BTreeMap;
use std::fmt;

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::SadError;
use forebay_scheduler::Scheduler;

use crate::databases::Keys;
use crate::pool::{Pool, RUNNING_CORE};
use crate::setup::{EngineError, SUITES_MAX};

/// All key sessions. Jobs of one suite that the same processors can do are of one *kind*, which is what the scheduler
/// calls a suite. Two SAs of one suite can be of different kinds: a card whose session table is full has the suite, but
/// not the keys of the second SA.
#[derive(Debug, Default)]
pub struct KeySessions {
    kinds: Vec<Kind>,
    /// The kind of each session's jobs, by its number.
    kind_of: Vec<u8>,
    /// Which SA it is whose sessions are open, by its number: see [`Keys::generation`]. Zero for none.
    open: Vec<u32>,
    /// Removals of SAs that were looked at.
    removals: u64,
}

#[derive(Debug)]
struct Kind {
    suite: Suite,
    /// For each processor whether it does them.
    by: Vec<bool>,
}

impl KeySessions {
    /// The kind of a session's jobs.
    #[inline]
    pub fn kind(&self, session: SessionId) -> u8 {
        // A core that could not open a session has its jobs fail as of whatever kind.
        self.kind_of.get(session.0 as usize).copied().unwrap_or(0)
    }

    /// Whether there are, or were, sessions of several kinds.
    #[inline]
    pub fn has_kinds(&self) -> bool {
        self.kinds.len() > 1
    }

    /// The kind of the jobs of a session that may be unknown.
    pub fn known_kind(&self, session: SessionId) -> Option<u8> {
        self.kind_of.get(session.0 as usize).copied()
    }

    /// Whether the running core does the jobs of a session.
    #[inline]
    pub fn core_does(&self, session: SessionId) -> bool {
        self.kinds.get(usize::from(self.kind(session))).is_none_or(|kind| kind.by[RUNNING_CORE])
    }

    /// The distinct suites of the sessions that there are or were, each with its first kind, for tables.
    pub fn suites(&self) -> BTreeMap<Suite, u8> {
        let kinds = self.kinds.iter().enumerate().rev();
        kinds.map(|(number, kind)| (kind.suite, number as u8)).collect()
    }

    /// Whether sessions with these keys may be opened. `spare` is an unused session number for trying.
    pub fn check<'k>(
        &self,
        keys: impl Iterator<Item = (Direction, &'k SaKeys)>,
        spare: SessionId,
        pool: &mut Pool,
    ) -> Result<(), EngineError> {
        let mut kinds: Vec<Suite> = self.kinds.iter().map(|kind| kind.suite).collect();
        for (direction, keys) in keys {
            let suite = keys.suite();
            if !pool.iter().any(|one| one.processor.capabilities().has(suite)) {
                return Err(EngineError::NoProcessor(suite));
            }
            if !kinds.contains(&suite) {
                kinds.push(suite);
            }
            if kinds.len() > SUITES_MAX {
                return Err(EngineError::TooManySuites(kinds.len()));
            }
            let core = &mut pool.core().processor;
            if core.capabilities().has(suite) {
                let opened = core.open_session(spare, keys, direction);
                core.close_session(spare);
                let name = core.name().to_owned();
                opened.map_err(|error| EngineError::Session { processor: name, error })?;
            }
        }
        Ok(())
    }

    /// Opens a session at every processor that has its suite. A card may refuse; it is an error if the running core
    /// refuses, or if no processor accepts.
    pub fn open(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
        pool: &mut Pool,
        scheduler: &mut Scheduler,
    ) -> Result<(), EngineError> {
        let mut by = vec![false; pool.len()];
        for (index, (attached, does)) in pool.iter_mut().zip(&mut by).enumerate() {
            let processor = &mut attached.processor;
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
        let kind = match self.kind_for(keys.suite(), by, pool, scheduler) {
            Ok(kind) => kind,
            Err(error) => {
                pool.close_session(session);
                return Err(error);
            }
        };
        let number = session.0 as usize;
        if self.kind_of.len() <= number {
            self.kind_of.resize(number + 1, kind);
        }
        self.kind_of[number] = kind;
        Ok(())
    }

    /// The kind of jobs of `suite` that are done `by` these processors, a new one if need be.
    fn kind_for(
        &mut self,
        suite: Suite,
        by: Vec<bool>,
        pool: &mut Pool,
        scheduler: &mut Scheduler,
    ) -> Result<u8, EngineError> {
        if let Some(known) = self.kinds.iter().position(|kind| kind.suite == suite && kind.by == by) {
            return Ok(known as u8);
        }
        if self.kinds.len() == SUITES_MAX {
            return Err(EngineError::TooManySuites(SUITES_MAX + 1));
        }
        let kind = self.kinds.len() as u8;
        // The costs measured for a suite hold for every set of processors that supports it.
        let like = self.kinds.iter().position(|kind| kind.suite == suite);
        pool.add_kind(kind, &by, like, scheduler);
        self.kinds.push(Kind { suite, by });
        Ok(kind)
    }

    /// Whether the sessions of SA number `session` are those of `generation`.
    #[inline]
    pub fn is_open(&self, session: SessionId, generation: u32) -> bool {
        self.open.get(session.0 as usize).is_some_and(|open| *open == generation)
    }

    /// Notes whose sessions are open under a number.
    pub fn opened(&mut self, session: SessionId, generation: u32) {
        let number = session.0 as usize;
        if self.open.len() <= number {
            self.open.resize(number + 1, 0);
        }
        self.open[number] = generation;
    }

    /// Lets every processor forget the sessions of removed SAs whose last job is through; `in_flight` says how many jobs a
    /// number still has.
    #[inline]
    pub fn close_removed(&mut self, keys: &Keys, in_flight: impl Fn(SessionId) -> u32, pool: &mut Pool) {
        if self.removals != keys.removals() {
            self.close_all_removed(keys, in_flight, pool);
        }
    }

    /// Whether no SA has been removed whose session is still to be closed.
    pub fn has_closed(&self, keys: &Keys) -> bool {
        self.removals == keys.removals()
    }

    #[cold]
    fn close_all_removed(&mut self, keys: &Keys, in_flight: impl Fn(SessionId) -> u32, pool: &mut Pool) {
        let mut is_over = true;
        for (number, open) in self.open.iter_mut().enumerate().filter(|(_, open)| **open != 0) {
            let session = SessionId(number as u32);
            let is_removed = keys.get(session).is_none();
            if is_removed && in_flight(session) > 0 {
                is_over = false;
            } else if is_removed {
                pool.close_session(session);
                *open = 0;
            }
        }
        if is_over {
            self.removals = keys.removals();
        }
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
