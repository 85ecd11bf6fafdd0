//! SAs, policies and paths while running.

use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::{
    IvRange, Lived, Policy, PolicyError, PolicyId, PolicyPlace, Received, SaConfig, SaCounters, SadError,
};
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

    /// Adds an SA that the engine of another core owns: see [`Ipsec::add_remote`](forebay_ipsec::Ipsec::add_remote).
    /// No processor gets its keys.
    pub fn add_remote(
        &mut self,
        direction: Direction,
        config: SaConfig,
        core: u16,
    ) -> Result<SessionId, SadError> {
        let session = self.sad.add_remote(direction, config, core)?;
        if direction == Direction::Open {
            self.edges.pending.announce();
        }
        Ok(session)
    }

    /// Whether SAs with these keys may be added, as far as that depends on the processors.
    ///
    /// # Errors
    /// As those of adding them; nothing is changed.
    pub fn check_keys<'k>(
        &mut self,
        keys: impl Iterator<Item = (Direction, &'k SaKeys)>,
    ) -> Result<(), EngineError> {
        self.sessions.check(keys, self.sad.next_session(), &mut self.pool)
    }

    /// Removes an SA. Its packets in flight are dropped when they complete. After the last of them [`Engine::poll`]
    /// closes the SA's sessions at every processor.
    pub fn remove_sa(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        let is_away = self.sad.remote(session).is_some();
        let removed = self.sad.remove(session)?;
        if !is_away {
            self.sessions.end(session);
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

    /// Lets a new SA go on with a life that was lived before: see
    /// [`Ipsec::resume_life`](forebay_ipsec::Ipsec::resume_life).
    pub fn resume_life(&mut self, session: SessionId, lived: &Lived) {
        self.sad.resume_life(session, lived);
    }

    /// Lets an inbound SA continue with what was received before: see
    /// [`Ipsec::restore_window`](forebay_ipsec::Ipsec::restore_window).
    pub fn restore_window(&mut self, session: SessionId, received: &Received) {
        self.sad.restore_window(session, received);
    }

    /// Takes note that all numbers of an inbound SA up to `limit` are kept durably: see
    /// [`Ipsec::note_window`](forebay_ipsec::Ipsec::note_window).
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.sad.note_window(session, limit);
    }

    /// Puts an SA inside another: see [`Ipsec::nest`](forebay_ipsec::Ipsec::nest).
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

/// Policies and paths: see the methods of [`Ipsec`](forebay_ipsec::Ipsec) by these names.
impl Engine {
    /// [`Ipsec::set_cpu`](forebay_ipsec::Ipsec::set_cpu).
    pub fn set_cpu(&mut self, cpu: u32) {
        self.sad.set_cpu(cpu);
    }

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

    /// [`Ipsec::take_fallback_flows`](forebay_ipsec::Ipsec::take_fallback_flows).
    pub fn take_fallback_flows(&mut self) -> Vec<(IpAddr, IpAddr)> {
        self.sad.take_fallback_flows()
    }

    /// [`Ipsec::forget_decisions`](forebay_ipsec::Ipsec::forget_decisions).
    pub fn forget_decisions(&mut self) {
        self.sad.forget_decisions();
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
