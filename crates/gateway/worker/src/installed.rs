//! The SAs and policies of the file in the engine.

use std::fmt;

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{AddSaError, Engine, EngineError};
use forebay_ipsec::{Action, Ipsec, IvRange, Policy, PolicyError, PolicyId, PolicyPlace, SadError};

use forebay_config::Changes;
use forebay_sas::{SaEntry, SasFile};

/// Where the file's SAs and policies are, by their places in it.
#[derive(Debug, Default)]
pub struct Installed {
    sas: Vec<SessionId>,
    policies: Vec<PolicyId>,
}

/// An SA or policy that the engine refuses; the reader found no fault in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// An SA.
    Sa {
        /// Its name.
        name: String,
        /// Why.
        error: AddSaError,
    },
    /// The processors, for some SA's keys.
    Keys(EngineError),
    /// An SA inside another.
    Nest(SadError),
    /// A policy.
    Policy {
        /// Its name.
        name: String,
        /// Why.
        error: PolicyError,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::Sa { name, error } => write!(f, "SA {name}: {error}"),
            InstallError::Keys(error) => error.fmt(f),
            InstallError::Nest(error) => error.fmt(f),
            InstallError::Policy { name, error } => write!(f, "policy {name}: {error}"),
        }
    }
}

impl std::error::Error for InstallError {}

/// Whether packets of an SA take IVs that must never come again.
pub fn takes_ivs(entry: &SaEntry) -> bool {
    entry.direction == Direction::Seal && entry.config.suite.iv_len() > 0
}

/// Whether a file's SAs and policies fit together, as the engine sees it: what [`Installed::change`] would say of them in
/// an engine that is empty.
///
/// # Errors
/// At the first that does not.
pub fn check(file: &SasFile) -> Result<(), InstallError> {
    let mut sad = Ipsec::default();
    let mut sas = Vec::with_capacity(file.entries.len());
    for entry in &file.entries {
        let added = match entry.direction {
            Direction::Open => sad.add_inbound(entry.config.clone()),
            Direction::Seal => sad.add_outbound(entry.config.clone(), IvRange::for_throwaway_key()),
        };
        let refused =
            |error| InstallError::Sa { name: entry.config.name.clone(), error: AddSaError::Sad(error) };
        sas.push(added.map_err(refused)?);
    }
    for (inner, entry) in file.entries.iter().enumerate() {
        if let Some(outer) = entry.outer {
            sad.nest(sas[inner], sas[outer]).map_err(InstallError::Nest)?;
        }
    }
    for entry in &file.policies {
        let put = sad.add_policy(with_sessions(&entry.policy, &sas), PolicyPlace::Last);
        put.map_err(|error| InstallError::Policy { name: entry.policy.name.clone(), error })?;
    }
    Ok(())
}

/// A policy of the file with its SAs' numbers.
fn with_sessions(policy: &Policy, sessions: &[SessionId]) -> Policy {
    let mut policy = policy.clone();
    if let Action::Protect(sas) = &mut policy.action {
        *sas = sas.iter().filter_map(|place| sessions.get(place.0 as usize)).copied().collect();
    }
    policy
}

impl Installed {
    /// The file's SAs in the engine, in the order of the file.
    pub fn sas(&self) -> &[SessionId] {
        &self.sas
    }

    /// Makes the engine's SAs and policies those of `file`, between two packets. SAs that stay keep their
    /// numbers and counters. `ivs` are for the SAs that are new and take some, in order.
    ///
    /// # Errors
    /// At the first that the engine refuses. Then nothing of the file is in the engine any more: with some of the
    /// policies packets could pass that all of them would not let.
    pub fn change(
        &mut self,
        engine: &mut Engine,
        file: &SasFile,
        changes: &Changes,
        ivs: Vec<IvRange>,
    ) -> Result<(), InstallError> {
        let before = self.sas.clone();
        self.try_change(engine, file, changes, ivs).inspect_err(|_| {
            for session in before {
                engine.remove_sa(session);
            }
            self.clear(engine);
        })
    }

    /// Takes all of the file out.
    pub fn clear(&mut self, engine: &mut Engine) {
        for session in self.sas.drain(..) {
            engine.remove_sa(session);
        }
        for policy in self.policies.drain(..) {
            engine.remove_policy(policy);
        }
    }

    fn try_change(
        &mut self,
        engine: &mut Engine,
        file: &SasFile,
        changes: &Changes,
        ivs: Vec<IvRange>,
    ) -> Result<(), InstallError> {
        if changes.policies {
            for policy in self.policies.drain(..) {
                engine.remove_policy(policy);
            }
        }
        // First: what comes may have the SPI of what goes.
        for &place in &changes.removed {
            if let Some(&session) = self.sas.get(place) {
                engine.remove_sa(session);
            }
        }
        let old = std::mem::take(&mut self.sas);
        let mut ivs = ivs.into_iter();
        let mut nested = Vec::new();
        for (entry, kept) in file.entries.iter().zip(&changes.kept) {
            let session = match kept.and_then(|place| old.get(place)) {
                Some(&session) => session,
                None => {
                    if let Some(outer) = entry.outer {
                        nested.push((self.sas.len(), outer));
                    }
                    add(engine, entry, &mut ivs)?
                }
            };
            self.sas.push(session);
        }
        for (inner, outer) in nested {
            engine.nest(self.sas[inner], self.sas[outer]).map_err(InstallError::Nest)?;
        }
        if changes.policies {
            for entry in &file.policies {
                let policy = with_sessions(&entry.policy, &self.sas);
                let put = engine.add_policy(policy, PolicyPlace::Last);
                let refused = |error| InstallError::Policy { name: entry.policy.name.clone(), error };
                self.policies.push(put.map_err(refused)?);
            }
        }
        Ok(())
    }
}

fn add(
    engine: &mut Engine,
    entry: &SaEntry,
    ivs: &mut impl Iterator<Item = IvRange>,
) -> Result<SessionId, InstallError> {
    let config = entry.config.clone();
    // Numbers that no packet carries need no reservation.
    let unused = IvRange::share(0, u64::MAX, 0, 1);
    let added = match entry.direction {
        Direction::Open => engine.add_inbound(config, &entry.keys),
        Direction::Seal => {
            let iv = if takes_ivs(entry) { ivs.next().unwrap_or(IvRange::share(0, 0, 0, 1)) } else { unused };
            engine.add_outbound(config, iv, &entry.keys)
        }
    };
    added.map_err(|error| InstallError::Sa { name: entry.config.name.clone(), error })
}
