//! SAs, policies and paths while running.

use std::net::SocketAddr;

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::{IvRange, Policy, PolicyError, PolicyId, PolicyPlace, SaConfig, SaCounters, SadError};
use forebay_scheduler::Cost;

use crate::engine::Engine;
use crate::key_sessions::AddSaError;
use crate::setup::EngineError;

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
        self.edges.pending.announce();
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

    /// Adds an SA that the engine of another core has: see [`Sad::add_away`](forebay_ipsec::Sad::add_away). No processor
    /// is told of it.
    pub fn add_away(
        &mut self,
        direction: Direction,
        config: SaConfig,
        core: u16,
    ) -> Result<SessionId, SadError> {
        let session = self.sad.add_away(direction, config, core)?;
        if direction == Direction::Open {
            self.edges.pending.announce();
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
        self.sessions.check(keys, self.sad.next_session(), &mut self.pool)
    }

    /// Removes an SA. Its packets under way are dropped as they complete; then every processor forgets its
    /// keys, which [`Engine::turn`] sees to.
    pub fn remove_sa(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let is_away = self.sad.away(session).is_some();
        let removed = self.sad.remove(session)?;
        if !is_away {
            self.sessions.end(session);
            self.close_ended();
        }
        Some(removed)
    }

    /// Lets an SA continue behind `sequence`: see [`Sad::continue_after`](forebay_ipsec::Sad::continue_after).
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        self.sad.continue_after(session, sequence);
    }

    /// Lets an outbound SA number its packets up to `last`: see [`Sad::grant`](forebay_ipsec::Sad::grant).
    pub fn grant(&mut self, session: SessionId, last: u64) {
        self.sad.grant(session, last);
    }

    /// Puts an SA inside another: see [`Sad::nest`](forebay_ipsec::Sad::nest).
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        self.sad.nest(inner, outer)
    }

    /// Opens the sessions of an SA, and its place in the order.
    pub(crate) fn open(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
    ) -> Result<(), EngineError> {
        self.sessions.open(session, direction, keys, &mut self.pool, &mut self.scheduler)?;
        self.in_flight.reorder.open(session.0);
        Ok(())
    }

    /// Lets every processor forget the sessions whose last job is through.
    #[inline]
    pub(crate) fn close_ended(&mut self) {
        if self.sessions.any_ending() {
            let sad = &self.sad;
            self.sessions.close_ended(|session| sad.in_flight(session), &mut self.pool);
        }
    }

    /// The cost that processor number `processor` is now taken to have for the suite of an SA.
    pub fn cost(&self, processor: usize, session: SessionId) -> Option<Cost> {
        self.pool.cost(processor, self.sessions.known_kind(session)?)
    }

    /// The distinct suites of the SAs that there are or were, for tables.
    pub fn suites(&self) -> Vec<Suite> {
        self.sessions.suites()
    }
}

/// Policies and paths: see the methods of [`Sad`](forebay_ipsec::Sad) by these names.
impl Engine {
    /// [`Sad::add_policy`](forebay_ipsec::Sad::add_policy).
    pub fn add_policy(&mut self, policy: Policy, place: PolicyPlace) -> Result<PolicyId, PolicyError> {
        self.sad.add_policy(policy, place)
    }

    /// [`Sad::remove_policy`](forebay_ipsec::Sad::remove_policy).
    pub fn remove_policy(&mut self, id: PolicyId) -> Option<Policy> {
        self.sad.remove_policy(id)
    }

    /// [`Sad::set_policy_sas`](forebay_ipsec::Sad::set_policy_sas).
    pub fn set_policy_sas(&mut self, id: PolicyId, sas: Vec<SessionId>) -> Result<(), PolicyError> {
        self.sad.set_policy_sas(id, sas)
    }

    /// [`Sad::put_policy_sa_first`](forebay_ipsec::Sad::put_policy_sa_first).
    pub fn put_policy_sa_first(&mut self, id: PolicyId, session: SessionId) -> Result<(), PolicyError> {
        self.sad.put_policy_sa_first(id, session)
    }

    /// [`Sad::move_peer`](forebay_ipsec::Sad::move_peer).
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        self.sad.move_peer(session, to)
    }

    /// [`Sad::learn_path_mtu`](forebay_ipsec::Sad::learn_path_mtu).
    pub fn learn_path_mtu(&mut self, message: &[u8]) -> Option<SessionId> {
        self.sad.learn_path_mtu(message)
    }

    /// [`Sad::lower_path_mtu`](forebay_ipsec::Sad::lower_path_mtu).
    pub fn lower_path_mtu(&mut self, session: SessionId, mtu: u16) -> bool {
        self.sad.lower_path_mtu(session, mtu)
    }
}
