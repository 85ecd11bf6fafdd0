//! SAs, policies and paths while running.

use std::net::{IpAddr, SocketAddr};

use forebay_crypto::{Direction, SaKeys, SessionId, Suite};
use forebay_ipsec::{
    IvRange, Lived, Policy, PolicyError, PolicyId, PolicyPlace, Received, SaConfig, SaCounters, SadError,
};
use forebay_scheduler::Cost;

use std::sync::MutexGuard;

use crate::databases::Databases;
use crate::engine::{Core, Engine};
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
        let session = self.change().ipsec.add_outbound(config, iv).map_err(AddSaError::Sad)?;
        self.open_or_remove(session, Direction::Seal, keys)
    }

    /// Adds an inbound SA, for packets admitted from now on.
    pub fn add_inbound(&mut self, config: SaConfig, keys: &SaKeys) -> Result<SessionId, AddSaError> {
        let session = self.change().ipsec.add_inbound(config).map_err(AddSaError::Sad)?;
        self.open_or_remove(session, Direction::Open, keys)?;
        self.shared.pass().edges.pending.announce();
        Ok(session)
    }

    /// The databases, to change something of which there may be something to tell.
    fn change(&mut self) -> MutexGuard<'_, Databases> {
        self.core.news = true;
        self.shared.pass()
    }

    fn open_or_remove(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
    ) -> Result<SessionId, AddSaError> {
        self.open(session, direction, keys).map_err(|error| {
            self.change().ipsec.remove(session);
            AddSaError::Engine(error)
        })?;
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
        let next = self.shared.pass().ipsec.next_session();
        self.core.sessions.check(keys, next, &mut self.core.pool)
    }

    /// Removes an SA. Its packets in flight are dropped when they complete. After the last of them [`Engine::poll`]
    /// closes the SA's sessions at every processor of each core.
    pub fn remove_sa(&mut self, session: SessionId) -> Option<(SaConfig, SaCounters)> {
        self.core.news = true;
        let db = &mut self.shared.pass();
        let removed = db.ipsec.remove(session)?;
        db.keys.remove(session);
        self.core.close_removed(db);
        Some(removed)
    }

    /// Lets an SA continue behind `sequence`: see [`Ipsec::continue_after`](forebay_ipsec::Ipsec::continue_after).
    pub fn continue_after(&mut self, session: SessionId, sequence: u64) {
        self.change().ipsec.continue_after(session, sequence);
    }

    /// Lets an outbound SA number its packets up to `last`: see [`Ipsec::grant`](forebay_ipsec::Ipsec::grant).
    pub fn grant(&mut self, session: SessionId, last: u64) {
        self.change().ipsec.grant(session, last);
    }

    /// Lets a new SA go on with a life that was lived before: see
    /// [`Ipsec::resume_life`](forebay_ipsec::Ipsec::resume_life).
    pub fn resume_life(&mut self, session: SessionId, lived: &Lived) {
        self.change().ipsec.resume_life(session, lived);
    }

    /// Lets an inbound SA continue with what was received before: see
    /// [`Ipsec::restore_window`](forebay_ipsec::Ipsec::restore_window).
    pub fn restore_window(&mut self, session: SessionId, received: &Received) {
        self.change().ipsec.restore_window(session, received);
    }

    /// Takes note that all numbers of an inbound SA up to `limit` are kept durably: see
    /// [`Ipsec::note_window`](forebay_ipsec::Ipsec::note_window).
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.change().ipsec.note_window(session, limit);
    }

    /// Puts an SA inside another: see [`Ipsec::nest`](forebay_ipsec::Ipsec::nest).
    pub fn nest(&mut self, inner: SessionId, outer: SessionId) -> Result<(), SadError> {
        self.change().ipsec.nest(inner, outer)
    }

    /// Opens the sessions of a new SA, and its line in the order; the other cores open theirs when they have a packet of it.
    pub(crate) fn open(
        &mut self,
        session: SessionId,
        direction: Direction,
        keys: &SaKeys,
    ) -> Result<(), EngineError> {
        let db = &mut self.shared.pass();
        let Core { sessions, pool, scheduler, .. } = &mut self.core;
        sessions.open(session, direction, keys, pool, scheduler)?;
        db.keys.put(session, direction, keys);
        sessions.opened(session, db.keys.generation(session));
        db.tickets.open(session.0);
        let spi = db.ipsec.config(session).map_or(0, |config| config.spi.get());
        db.outputs.open(session, direction, spi);
        Ok(())
    }

    /// The cost that processor number `processor` is now taken to have for the suite of an SA.
    pub fn cost(&self, processor: usize, session: SessionId) -> Option<Cost> {
        self.core.pool.cost(processor, self.core.sessions.known_kind(session)?)
    }

    /// The distinct suites of the SAs that there are or were, for tables.
    pub fn suites(&self) -> Vec<Suite> {
        self.core.sessions.suites().into_keys().collect()
    }

    /// The costs that processor number `processor` is now taken to have, by the suites of the SAs that there are or were. However many
    /// SAs there are, this takes no longer.
    pub fn costs(&self, processor: usize) -> Vec<(Suite, Cost)> {
        let suites = self.core.sessions.suites().into_iter();
        suites.filter_map(|(suite, kind)| Some((suite, self.core.pool.cost(processor, kind)?))).collect()
    }
}

/// Policies and paths: see the methods of [`Ipsec`](forebay_ipsec::Ipsec) by these names.
impl Engine {
    /// [`Ipsec::add_policy`](forebay_ipsec::Ipsec::add_policy).
    pub fn add_policy(&mut self, policy: Policy, place: PolicyPlace) -> Result<PolicyId, PolicyError> {
        self.change().ipsec.add_policy(policy, place)
    }

    /// [`Ipsec::remove_policy`](forebay_ipsec::Ipsec::remove_policy).
    pub fn remove_policy(&mut self, id: PolicyId) -> Option<Policy> {
        self.change().ipsec.remove_policy(id)
    }

    /// [`Ipsec::set_policy_sas`](forebay_ipsec::Ipsec::set_policy_sas).
    pub fn set_policy_sas(&mut self, id: PolicyId, sas: Vec<SessionId>) -> Result<(), PolicyError> {
        self.change().ipsec.set_policy_sas(id, sas)
    }

    /// [`Ipsec::put_policy_sa_first`](forebay_ipsec::Ipsec::put_policy_sa_first).
    pub fn put_policy_sa_first(&mut self, id: PolicyId, session: SessionId) -> Result<(), PolicyError> {
        self.change().ipsec.put_policy_sa_first(id, session)
    }

    /// [`Ipsec::take_fallback_flows`](forebay_ipsec::Ipsec::take_fallback_flows).
    pub fn take_fallback_flows(&mut self) -> Vec<(IpAddr, IpAddr)> {
        self.shared.pass().ipsec.take_fallback_flows()
    }

    /// [`Ipsec::forget_decisions`](forebay_ipsec::Ipsec::forget_decisions).
    pub fn forget_decisions(&mut self) {
        self.change().ipsec.forget_decisions();
    }

    /// [`Ipsec::move_peer`](forebay_ipsec::Ipsec::move_peer).
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        self.change().ipsec.move_peer(session, to)
    }

    /// [`Ipsec::set_peer`](forebay_ipsec::Ipsec::set_peer).
    pub fn set_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        self.change().ipsec.set_peer(session, to)
    }

    /// [`Ipsec::learn_path_mtu`](forebay_ipsec::Ipsec::learn_path_mtu).
    pub fn learn_path_mtu(&mut self, message: &[u8]) -> Option<SessionId> {
        self.change().ipsec.learn_path_mtu(message)
    }

    /// [`Ipsec::lower_path_mtu`](forebay_ipsec::Ipsec::lower_path_mtu).
    pub fn lower_path_mtu(&mut self, session: SessionId, mtu: u16) -> bool {
        self.change().ipsec.lower_path_mtu(session, mtu)
    }
}

impl Core {
    /// Sees to it that this core's processors have the keys of an SA.
    #[inline]
    pub(crate) fn open_here(&mut self, db: &Databases, session: SessionId) {
        let generation = db.keys.generation(session);
        if !self.sessions.is_open(session, generation) {
            self.open_first(db, session, generation);
        }
    }

    /// A core meets an SA for the first time. The core that the SA was added at has shown that its keys are good; what
    /// fails here fails as jobs without a session do.
    #[cold]
    fn open_first(&mut self, db: &Databases, session: SessionId, generation: u32) {
        let Some((direction, keys)) = db.keys.get(session) else { return };
        let Core { sessions, pool, scheduler, .. } = self;
        if sessions.open(session, direction, &keys, pool, scheduler).is_ok() {
            sessions.opened(session, generation);
        }
    }

    /// Lets every processor forget the sessions of removed SAs whose last job is through.
    #[inline]
    pub(crate) fn close_removed(&mut self, db: &Databases) {
        self.sessions.close_removed(&db.keys, |session| db.ipsec.in_flight(session), &mut self.pool);
    }
}
