//! Builds the SA database of the data plane from a file's entries.

use std::collections::HashSet;
use std::fmt;

use forebay_crypto::{Direction, SaKeys, SessionId};
use forebay_ipsec::{Action, Ipsec, IvRange, Policy, PolicyError, PolicyPlace, SaConfig, SadError};
use miette::Diagnostic;

use super::{PolicyEntry, SaEntry, SasFile};

/// Why SAs that were read could not be made ready for packets.
#[derive(Debug)]
#[non_exhaustive]
pub enum IntoSadError {
    /// No IVs for the outbound SAs.
    Ivs(Box<dyn Diagnostic + Send + Sync>),
    /// The database refuses an SA; the reader found no fault in it.
    Sad(SadError),
    /// The database refuses a policy; the reader found no fault in it.
    Policy(PolicyError),
}

impl fmt::Display for IntoSadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntoSadError::Ivs(error) => error.fmt(f),
            IntoSadError::Sad(error) => error.fmt(f),
            IntoSadError::Policy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IntoSadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IntoSadError::Ivs(error) => error.source(),
            IntoSadError::Sad(_) | IntoSadError::Policy(_) => None,
        }
    }
}

impl Diagnostic for IntoSadError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            IntoSadError::Ivs(error) => error.help(),
            IntoSadError::Sad(_) | IntoSadError::Policy(_) => None,
        }
    }
}

/// The policy of an SA's own selectors.
fn own_policy((place, entry): (usize, &SaEntry)) -> PolicyEntry {
    let SaConfig { name, local_ts, remote_ts, dscp, .. } = &entry.config;
    let action = Action::Protect(vec![SessionId(place as u32)]);
    let policy = Policy {
        local_ts: local_ts.clone(),
        remote_ts: remote_ts.clone(),
        dscp: *dscp,
        ..Policy::new(name, Direction::Seal, action)
    };
    PolicyEntry { policy, line: entry.line }
}

/// Whether there is an SA for what a policy protects.
fn protects(entry: &PolicyEntry) -> bool {
    matches!(&entry.policy.action, Action::Protect(sas) if !sas.is_empty())
}

impl SasFile {
    /// The SAs and policies of one direction; what they refer to stays right.
    #[must_use]
    pub fn only(mut self, direction: Direction) -> SasFile {
        self.policies.retain(|entry| entry.policy.direction == direction);
        let keeps: Vec<bool> = self.entries.iter().map(|entry| entry.direction == direction).collect();
        self.without_others(&keeps)
    }

    /// A copy with the SAs that `keeps` says, by their places, alone, and without warnings. A policy that loses all of its
    /// SAs discards what it is for: no other one decides about that.
    #[must_use]
    pub fn with(&self, keeps: &[bool]) -> SasFile {
        let had: Vec<bool> = self.policies.iter().map(protects).collect();
        let (entries, policies) = (self.entries.clone(), self.policies.clone());
        let mut file = SasFile { entries, policies, warnings: vec![] }.without_others(keeps);
        for (entry, had) in file.policies.iter_mut().zip(had) {
            if had && !protects(entry) {
                entry.policy.action = Action::Discard;
            }
        }
        file
    }

    /// The same file where outbound policies say what the selectors of the outbound SAs say, if they decide: one policy for
    /// each SA that is not around another, in their order. So packets of an SA that is left out go through no other.
    #[must_use]
    pub fn spelled_out(mut self) -> SasFile {
        if self.policies.iter().any(|entry| entry.policy.direction == Direction::Seal) {
            return self;
        }
        let outer: HashSet<usize> = self.entries.iter().filter_map(|entry| entry.outer).collect();
        let own =
            |(place, entry): &(usize, &SaEntry)| entry.direction == Direction::Seal && !outer.contains(place);
        // Those that are bound to CPUs only ever stand in for one of the others (RFC 9611).
        let (bound, others): (Vec<_>, Vec<_>) =
            self.entries.iter().enumerate().filter(own).partition(|(_, entry)| entry.config.cpu.is_some());
        let mut policies: Vec<PolicyEntry> = others.into_iter().map(own_policy).collect();
        for (place, entry) in bound {
            let (own, session) = (&entry.config, SessionId(place as u32));
            let is_its = |policy: &Policy| {
                (&policy.local_ts, &policy.remote_ts, policy.dscp)
                    == (&own.local_ts, &own.remote_ts, own.dscp)
            };
            match policies.iter_mut().find(|one| is_its(&one.policy)).map(|one| &mut one.policy.action) {
                Some(Action::Protect(sas)) => sas.push(session),
                _ => policies.push(own_policy((place, entry))),
            }
        }
        self.policies.extend(policies);
        self
    }

    /// Removes SAs, and has the others refer to each other by their new places.
    fn without_others(mut self, keeps: &[bool]) -> SasFile {
        let mut kept = 0..;
        let places: Vec<Option<usize>> =
            keeps.iter().map(|&keeps| if keeps { kept.next() } else { None }).collect();
        let place = |old: usize| places.get(old).copied().flatten();
        let mut keeps = places.iter().map(Option::is_some);
        self.entries.retain(|_| keeps.next().unwrap_or(false));
        for entry in &mut self.entries {
            entry.outer = entry.outer.and_then(place);
        }
        for entry in &mut self.policies {
            if let Action::Protect(sas) = &mut entry.policy.action {
                let found = sas.iter().filter_map(|session| place(session.0 as usize));
                *sas = found.map(|place| SessionId(place as u32)).collect();
            }
        }
        self
    }

    /// The database of these SAs and policies, and the keys, in the order of the file: an SA's position is the number
    /// of its key session.
    ///
    /// `reserve` is given the keys of the outbound SAs whose suites have IVs, and returns a range of IVs for each, in
    /// their order. No IV may be used twice with one key, also not after a restart, so they are to be reserved durably
    /// before it returns. `seed` must be a number that no other party can know ([`Ipsec::seeded`]).
    ///
    /// # Errors
    /// If IVs cannot be reserved, and if the database refuses an SA or a policy.
    ///
    /// # Panics
    /// If `reserve` returns fewer ranges than it was given keys.
    pub fn into_sad<E: Diagnostic + Send + Sync + 'static>(
        self,
        seed: u64,
        reserve: impl FnOnce(Vec<&SaKeys>) -> Result<Vec<IvRange>, E>,
    ) -> Result<(Ipsec, Vec<SaKeys>), IntoSadError> {
        let has_ivs =
            |entry: &&SaEntry| entry.direction == Direction::Seal && entry.config.suite.iv_len() > 0;
        let keys = self.entries.iter().filter(has_ivs).map(|entry| &entry.keys).collect();
        let mut ivs = reserve(keys).map_err(|error| IntoSadError::Ivs(Box::new(error)))?.into_iter();
        self.build(seed, |entry| match entry.config.suite.iv_len() {
            // Numbers that no packet carries need no reservation.
            0 => IvRange::share(0, u64::MAX, 0, 1),
            _ => ivs.next().expect("one range for each outbound SA with IVs"),
        })
    }

    /// The same for the inbound SAs and policies alone, which need no IVs; outbound ones are left out.
    pub fn into_inbound_sad(self, seed: u64) -> Result<(Ipsec, Vec<SaKeys>), IntoSadError> {
        // Without outbound SAs nothing asks for an IV.
        self.only(Direction::Open).build(seed, |_| IvRange::share(0, 0, 0, 1))
    }

    fn build(
        self,
        seed: u64,
        mut iv: impl FnMut(&SaEntry) -> IvRange,
    ) -> Result<(Ipsec, Vec<SaKeys>), IntoSadError> {
        let (mut sad, mut keys) = (Ipsec::seeded(seed), Vec::with_capacity(self.entries.len()));
        let mut outers = Vec::new();
        for entry in self.entries {
            let session = match entry.direction {
                Direction::Open => sad.add_inbound(entry.config),
                Direction::Seal => {
                    let iv = iv(&entry);
                    sad.add_outbound(entry.config, iv)
                }
            };
            let session = session.map_err(IntoSadError::Sad)?;
            outers.extend(entry.outer.map(|outer| (session, SessionId(outer as u32))));
            keys.push(entry.keys);
        }
        for (inner, outer) in outers {
            sad.nest(inner, outer).map_err(IntoSadError::Sad)?;
        }
        for entry in self.policies {
            sad.add_policy(entry.policy, PolicyPlace::Last).map_err(IntoSadError::Policy)?;
        }
        Ok((sad, keys))
    }
}
