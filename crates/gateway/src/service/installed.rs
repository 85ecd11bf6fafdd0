//! The SAs and policies of the file in the engine.

use std::fmt;

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{AddSaError, Engine};
use forebay_ipsec::{Action, IvRange, Policy, PolicyError, PolicyId, PolicyPlace, SadError};

use crate::config::Changes;
use crate::sas::{SaEntry, SasFile};

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
            for session in before.into_iter().chain(self.sas.drain(..)) {
                engine.remove_sa(session);
            }
            for policy in self.policies.drain(..) {
                engine.remove_policy(policy);
            }
        })
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
                let policy = self.in_engine(&entry.policy);
                let put = engine.add_policy(policy, PolicyPlace::Last);
                let refused = |error| InstallError::Policy { name: entry.policy.name.clone(), error };
                self.policies.push(put.map_err(refused)?);
            }
        }
        Ok(())
    }

    /// A policy of the file with its SAs' numbers in the engine.
    fn in_engine(&self, policy: &Policy) -> Policy {
        let mut policy = policy.clone();
        if let Action::Protect(sas) = &mut policy.action {
            *sas = sas.iter().filter_map(|place| self.sas.get(place.0 as usize)).copied().collect();
        }
        policy
    }
}

fn add(
    engine: &mut Engine,
    entry: &SaEntry,
    ivs: &mut impl Iterator<Item = IvRange>,
) -> Result<SessionId, InstallError> {
    let config = entry.config.clone();
    let added = match entry.direction {
        Direction::Open => engine.add_inbound(config, &entry.keys),
        Direction::Seal => {
            // Numbers that no packet carries need no reservation.
            let unused = IvRange::share(0, u64::MAX, 0, 1);
            let iv = if takes_ivs(entry) { ivs.next().unwrap_or(IvRange::share(0, 0, 0, 1)) } else { unused };
            engine.add_outbound(config, iv, &entry.keys)
        }
    };
    added.map_err(|error| InstallError::Sa { name: entry.config.name.clone(), error })
}
