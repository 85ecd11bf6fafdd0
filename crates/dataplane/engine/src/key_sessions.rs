//! Key sessions: which processors have the keys of which SA.

use std::fmt;

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::SadError;
use forebay_scheduler::Scheduler;

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
    /// Sessions of SAs that were removed while jobs of theirs were in flight.
    ending: Vec<SessionId>,
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
        self.kind_of[session.0 as usize]
    }

    /// The same, of a session that may be unknown.
    pub fn known_kind(&self, session: SessionId) -> Option<u8> {
        self.kind_of.get(session.0 as usize).copied()
    }

    /// Whether the running core does the jobs of a session.
    #[inline]
    pub fn core_does(&self, session: SessionId) -> bool {
        self.kinds[usize::from(self.kind(session))].by[RUNNING_CORE]
    }

    /// The distinct suites of the sessions that there are or were, for tables.
    pub fn suites(&self) -> Vec<Suite> {
        let mut suites: Vec<Suite> = self.kinds.iter().map(|kind| kind.suite).collect();
        suites.sort();
        suites.dedup();
        suites
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
        // The number may be that of a removed SA, whose sessions are replaced now.
        self.ending.retain(|&ending| ending != session);
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

    /// Closes the session of a removed SA as soon as its last job is through.
    pub fn end(&mut self, session: SessionId) {
        self.ending.push(session);
    }

    /// Whether sessions wait for their last job.
    #[inline]
    pub fn any_ending(&self) -> bool {
        !self.ending.is_empty()
    }

    /// Lets every processor forget the sessions that have ended; `in_flight` says how many jobs one still has.
    pub fn close_ended(&mut self, in_flight: impl Fn(SessionId) -> u32, pool: &mut Pool) {
        self.ending.retain(|&session| {
            let ended = in_flight(session) == 0;
            if ended {
                pool.close_session(session);
            }
            !ended
        });
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
