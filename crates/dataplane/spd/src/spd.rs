//! The security policy database (RFC 4301 4.4.1): ordered policies of both directions, and what they say
//! of a packet.
//!
//! The first policy in order that a packet matches decides; what matches none is dropped. While there
//! is no outbound policy, the outbound SAs' own selectors are policies that protect, in the order of the
//! SAs. While there is no inbound one, what an SA brings in passes if its selectors let it, and nothing
//! else does. Where policies are known to come from elsewhere ([`Spd::require_policies`]), having none
//! is no reason to do without: what matches none is dropped then, too.
//!
//! **Per-CPU SAs** (RFC 9611). Which SA a packet is for is decided as if there were none of this CPU; if that SA is not
//! bound to a CPU and this CPU has one with the same selectors and classes, among the same policy's SAs, the packet goes
//! through that. SAs of other CPUs are not for this one's packets.
//!
//! **ICMP errors** (RFC 4301 6.2). An outbound one that no SA and no policy is for goes through the SA of the return traffic of
//! the packet that it quotes. An inbound one must quote a packet whose return traffic the SA may carry, unless selectors that
//! name ICMP let it pass. Policies that discard it do so whatever it quotes.
//!
//! **Fragments.** One behind the first holds no ports. It matches only policies whose ports are ANY or
//! OPAQUE (RFC 4301 4.4.1.1), and where such a policy would let it pass *unprotected* although an earlier
//! one that does not bypass may have been meant, had its ports been seen, it is dropped under a reason of
//! its own: RFC 4301 7.4 describes the attack. There is no stateful fragment checking, so bypassing by
//! port lets no fragments pass but the first.

pub mod classify;
mod decision;
pub mod flow_cache;
mod labels;
mod per_cpu;
mod prefix_map;
mod sa_list;

use std::collections::HashMap;
use std::net::IpAddr;

use forebay_crypto::{Direction, SessionId};
use forebay_wire::{Addresses, Ip};

use crate::dscp::DscpSet;
use crate::hash::Seed;
use crate::headers::{Depth, Headers};
use crate::policy::PolicyPlace;
use crate::policy::{Action, Policy, PolicyError, PolicyId};
use crate::quoted::{Returning, may_be_icmp, returning};
use crate::rule::Rule;
use crate::usual::UsualSas;
use classify::Classifier;
pub use decision::Decision;
use flow_cache::{FlowCache, FlowPlace};
use forebay_drops::DropReason;
use labels::Labels;
use per_cpu::PerCpu;
use sa_list::{SaList, Turn};

/// Up to this many rules a look-up is as fast as the cache.
const SCAN_LIMIT: usize = 1;
/// Between outbound SAs in their order, into which nothing is ever put.
const SA_STEP: u64 = 1;

/// Order of the first SA that is bound to a CPU.
const BOUND: u64 = 1 << 62;

/// What was decided lately for the packets of one core.
#[derive(Debug)]
struct Recent {
    flows: FlowCache,
    /// The SAs of outbound packets, by their addresses alone.
    usual: UsualSas,
    /// Addresses of the last inner packet that was allowed through an SA.
    last_in: Option<(Addresses, SessionId)>,
}

impl Recent {
    fn new(seed: Seed) -> Recent {
        Recent { flows: FlowCache::new(seed), usual: UsualSas::default(), last_in: None }
    }
}

/// Policies, the SAs' own selectors, and the decisions for recent flows.
#[derive(Debug)]
pub struct Spd {
    /// By the number of the SA.
    sas: Classifier,
    next_sa: u64,
    /// Outbound SAs that are bound to CPUs, with their CPUs.
    bound: HashMap<u32, u32, Seed>,
    own: PerCpu,
    /// Whose packets are decided on now: a place in `cores`.
    cpu: usize,
    /// What was decided lately for the packets of each core.
    cores: Vec<Recent>,
    /// Policies whose packets want SAs of this CPU.
    per_cpu: usize,
    /// A flow of each policy that had to do with the fallback SA, and where that policy is.
    fallback_flows: Vec<(u32, IpAddr, IpAddr)>,
    outbound: Side,
    inbound: Side,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The policies that each SA stands in.
    used_by: HashMap<u32, Vec<u32>, Seed>,
    /// By SA and policy: where the one stands in the other.
    turns: HashMap<(u32, u32), Turn, Seed>,
    seed: Seed,
    /// SAs and policies that look at the class.
    by_dscp: usize,
    /// Counts the changes.
    state: u64,
    /// SAs' own selectors are no policies, even if there are none.
    strict: bool,
}

/// The policies of one direction.
#[derive(Debug)]
struct Side {
    policies: Classifier,
    order: Labels,
    depth: Depth,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    label: u64,
    /// Without its SAs, which are beside it.
    policy: Option<Policy>,
    sas: SaList,
}

impl Slot {
    /// The policy with its SAs.
    fn whole(&self) -> Option<Policy> {
        let mut policy = self.policy.clone()?;
        if let Action::Protect(sas) = &mut policy.action {
            sas.extend(self.sas.iter());
        }
        Some(policy)
    }
}

impl Spd {
    /// Without policies and SAs; `seed` is the key of the hash of its tables.
    pub fn new(seed: Seed) -> Spd {
        let side = |direction| Side {
            policies: Classifier::new(direction, seed),
            order: Labels::default(),
            depth: Depth { upper: false, dscp: false },
        };
        Spd {
            sas: Classifier::new(Direction::Seal, seed),
            next_sa: 0,
            bound: HashMap::with_hasher(seed),
            own: PerCpu::new(seed),
            cpu: 0,
            cores: vec![Recent::new(seed)],
            per_cpu: 0,
            fallback_flows: Vec::new(),
            outbound: side(Direction::Seal),
            inbound: side(Direction::Open),
            slots: Vec::new(),
            free: Vec::new(),
            used_by: HashMap::with_hasher(seed),
            turns: HashMap::with_hasher(seed),
            seed,
            by_dscp: 0,
            state: 1,
            strict: false,
        }
    }

    /// Decides on the packets of core number `cpu` from now on: they go through outbound SAs that are bound to it in the
    /// place of the fallback SA, and through none of those that are bound to others.
    #[inline]
    pub fn set_cpu(&mut self, cpu: usize) {
        self.cpu = cpu;
        while self.cores.len() <= cpu {
            self.cores.push(Recent::new(self.seed));
            self.changed();
        }
    }

    /// Lets only policies decide: without any, what is to be protected is dropped, and so is what an SA brings in.
    pub fn require_policies(&mut self) {
        self.strict = true;
        self.changed();
    }

    /// Adds the selectors of an outbound SA behind those of all others.
    pub fn add_sa(&mut self, session: SessionId, rule: Rule) {
        self.by_dscp += usize::from(rule.dscp != DscpSet::ALL);
        self.next_sa += SA_STEP;
        // Behind all that are for any CPU: it only ever stands in for one of these.
        let behind = if self.bound.contains_key(&session.0) { BOUND } else { 0 };
        self.sas.insert(session.0, behind + self.next_sa, rule, true);
        self.changed();
    }

    /// Takes an SA out, of the policies too.
    pub fn remove_sa(&mut self, session: SessionId) {
        for index in self.used_by.remove(&session.0).unwrap_or_default() {
            if let Some(turn) = self.turns.remove(&(session.0, index)) {
                self.take_from_list(index, session, turn);
            }
        }
        let was_own = self.bound.remove(&session.0).is_some();
        if let Some(rule) = self.sas.remove(session.0) {
            self.by_dscp -= usize::from(rule.dscp != DscpSet::ALL);
            if was_own {
                self.own.remove(&rule, session.0);
            }
        }
        self.changed();
    }

    fn take_from_list(&mut self, index: u32, session: SessionId, turn: Turn) {
        let own = self.bound.contains_key(&session.0).then(|| self.sas.rule(session.0)).flatten();
        self.slots[index as usize].sas.remove(session, turn, own);
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// [`PolicyError::NoSuchPolicy`] if the one beside which it is to stand is not of its direction.
    pub fn add(&mut self, mut policy: Policy, place: PolicyPlace) -> Result<PolicyId, PolicyError> {
        let direction = policy.direction;
        let label_of = |id: PolicyId| match self.slot(id) {
            Some(slot) if slot.policy.as_ref().is_some_and(|other| other.direction == direction) => {
                Ok(slot.label)
            }
            _ => Err(PolicyError::NoSuchPolicy(id)),
        };
        let order = &self.side(direction).order;
        let before = match place {
            PolicyPlace::First => order.first(),
            PolicyPlace::Last => None,
            PolicyPlace::Before(id) => Some(label_of(id)?),
            PolicyPlace::After(id) => order.after(label_of(id)?),
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let mut moved = Vec::new();
        let side = self.side_mut(direction);
        let label = side.order.insert(index, before, |index, label| moved.push((index, label)));
        side.policies.reorder(&moved);
        let rule = Rule::new(&policy.local_ts, &policy.remote_ts, policy.dscp);
        side.policies.insert(index, label, rule, policy.action != Action::Bypass);
        for (index, label) in moved {
            self.slots[index as usize].label = label;
        }
        self.by_dscp += usize::from(policy.dscp != DscpSet::ALL);
        self.per_cpu += usize::from(policy.per_cpu);
        let sas = match &mut policy.action {
            Action::Protect(sas) => std::mem::take(sas),
            Action::Bypass | Action::Discard => vec![],
        };
        let slot = &mut self.slots[index as usize];
        (slot.label, slot.policy) = (label, Some(policy));
        let generation = slot.generation;
        sas.into_iter().for_each(|session| self.link(index, session, false));
        self.changed();
        Ok(PolicyId { index, generation })
    }

    /// Takes a policy out; `None` if there is no such one.
    pub fn remove(&mut self, id: PolicyId) -> Option<Policy> {
        let policy = self.slot(id)?.whole()?;
        self.unlink_all(id.index);
        let slot = &mut self.slots[id.index as usize];
        (slot.policy, slot.sas) = (None, SaList::default());
        let label = slot.label;
        // After four thousand million policies in one place a number might come again: it is left unused.
        if slot.generation < u32::MAX {
            slot.generation += 1;
            self.free.push(id.index);
        }
        self.by_dscp -= usize::from(policy.dscp != DscpSet::ALL);
        self.per_cpu -= usize::from(policy.per_cpu);
        self.fallback_flows.retain(|(policy, ..)| *policy != id.index);
        let side = self.side_mut(policy.direction);
        side.order.remove(label);
        side.policies.remove(id.index);
        self.changed();
        Some(policy)
    }

    /// Gives a policy that protects other SAs.
    ///
    /// # Errors
    /// If there is no such policy, and if it does not protect.
    pub fn set_sas(&mut self, id: PolicyId, sas: Vec<SessionId>) -> Result<(), PolicyError> {
        self.check_protects(id)?;
        self.unlink_all(id.index);
        self.slots[id.index as usize].sas = SaList::default();
        sas.into_iter().for_each(|session| self.link(id.index, session, false));
        self.changed();
        Ok(())
    }

    /// Puts an SA before all others of a policy that protects, from wherever it is there.
    ///
    /// # Errors
    /// As [`Spd::set_sas`].
    pub fn put_sa_first(&mut self, id: PolicyId, session: SessionId) -> Result<(), PolicyError> {
        self.check_protects(id)?;
        if let Some(turn) = self.unlink(id.index, session) {
            self.take_from_list(id.index, session, turn);
        }
        self.link(id.index, session, true);
        self.changed();
        Ok(())
    }

    fn check_protects(&self, id: PolicyId) -> Result<(), PolicyError> {
        let slot = self.slot(id).ok_or(PolicyError::NoSuchPolicy(id))?;
        match slot.policy.as_ref().map(|policy| &policy.action) {
            Some(Action::Protect(_)) => Ok(()),
            _ => Err(PolicyError::NotProtecting(id)),
        }
    }

    fn slot(&self, id: PolicyId) -> Option<&Slot> {
        let slot = self.slots.get(id.index as usize)?;
        (slot.generation == id.generation && slot.policy.is_some()).then_some(slot)
    }

    /// The direction of a policy.
    pub fn direction(&self, id: PolicyId) -> Option<Direction> {
        self.slot(id)?.policy.as_ref().map(|policy| policy.direction)
    }

    /// A policy with its SAs.
    pub fn get(&self, id: PolicyId) -> Option<Policy> {
        self.slot(id)?.whole()
    }

    /// The policies of a direction in order.
    pub fn iter(&self, direction: Direction) -> impl Iterator<Item = (PolicyId, Policy)> {
        self.iter_behind(direction, 0)
    }

    /// The same behind the first so many, which are not copied.
    pub fn iter_behind(
        &self,
        direction: Direction,
        count: usize,
    ) -> impl Iterator<Item = (PolicyId, Policy)> {
        self.side(direction).order.iter().skip(count).filter_map(|index| {
            let slot = self.slots.get(index as usize)?;
            Some((PolicyId { index, generation: slot.generation }, slot.whole()?))
        })
    }

    /// Whether inbound policies decide.
    #[inline]
    pub fn has_inbound(&self) -> bool {
        self.strict || self.inbound.policies.len() > 0
    }

    /// Puts an SA into a policy, once.
    fn link(&mut self, index: u32, session: SessionId, first: bool) {
        if self.turns.contains_key(&(session.0, index)) {
            return;
        }
        let list = &mut self.slots[index as usize].sas;
        let rule = self.sas.rule(session.0);
        let cpu = self.bound.get(&session.0).copied();
        self.turns.insert((session.0, index), list.add(session, rule, first, cpu.is_some()));
        if let (Some(rule), Some(cpu)) = (rule, cpu) {
            list.prefer(session, rule, first, cpu, self.seed);
        }
        self.used_by.entry(session.0).or_default().push(index);
        // Only outbound there is anything to choose.
        if list.wants_index() && rule.is_some() {
            let (sas, turns) = (&self.sas, &mut self.turns);
            list.make_index(
                self.seed,
                |session| sas.rule(session),
                |session, turn| {
                    turns.insert((session, index), turn);
                },
            );
        }
    }

    fn unlink(&mut self, index: u32, session: SessionId) -> Option<Turn> {
        let turn = self.turns.remove(&(session.0, index))?;
        let users = self.used_by.get_mut(&session.0)?;
        users.retain(|user| *user != index);
        if users.is_empty() {
            self.used_by.remove(&session.0);
        }
        Some(turn)
    }

    fn unlink_all(&mut self, index: u32) {
        let sas: Vec<SessionId> = self.slots[index as usize].sas.iter().collect();
        for session in sas {
            self.unlink(index, session);
        }
    }

    fn side(&self, direction: Direction) -> &Side {
        if direction == Direction::Seal { &self.outbound } else { &self.inbound }
    }

    fn side_mut(&mut self, direction: Direction) -> &mut Side {
        if direction == Direction::Seal { &mut self.outbound } else { &mut self.inbound }
    }

    /// Forgets every decision, and works out what decisions look at from now on.
    fn changed(&mut self) {
        self.state += 1;
        let dscp = self.by_dscp > 0;
        let upper = !(self.sas.is_wide() && self.outbound.policies.is_wide());
        self.outbound.depth = Depth { upper, dscp };
        self.inbound.depth = Depth { upper: !self.inbound.policies.is_wide(), dscp };
        let rules = self.sas.len() + self.outbound.policies.len() + self.inbound.policies.len();
        for core in &mut self.cores {
            core.usual.forget();
            core.last_in = None;
            if rules > SCAN_LIMIT {
                core.flows.changed(rules);
            }
        }
    }

    /// The SA of a recent outbound packet with these addresses, if any with them would get it.
    #[inline]
    pub fn usual(&self, addresses: &Addresses) -> Option<SessionId> {
        self.cores[self.cpu].usual.get(addresses)
    }

    /// Decides on an outbound packet.
    #[inline]
    pub fn decide_outbound(&mut self, ip: &Ip<'_>) -> Decision {
        let Some(addresses) = Addresses::of(ip) else { return self.look_up(Direction::Seal, ip).0 };
        if let Some(session) = self.usual(&addresses) {
            return Decision::Protect(session.0);
        }
        let (decision, wide) = self.look_up(Direction::Seal, ip);
        if let (Decision::Protect(session), true) = (decision, wide) {
            self.cores[self.cpu].usual.put(&addresses, SessionId(session));
        }
        decision
    }

    /// Whether a packet that came out of an inbound SA may have (RFC 4301 5.2 step 4): the policy that it
    /// matches must be one that protects by that SA. Of an ICMP error the return traffic of what it quotes counts, too (6.2).
    #[inline]
    pub fn check_opened(&mut self, ip: &Ip<'_>, session: SessionId) -> Result<(), DropReason> {
        if may_be_icmp(ip) {
            return self.check_icmp(ip, session);
        }
        self.check_header(ip, session)
    }

    #[inline]
    fn check_header(&mut self, ip: &Ip<'_>, session: SessionId) -> Result<(), DropReason> {
        let addresses = Addresses::of(ip);
        if let (Some(addresses), Some(last)) = (addresses, self.cores[self.cpu].last_in)
            && last == (addresses, session)
        {
            return Ok(());
        }
        let (decision, wide) = self.look_up(Direction::Open, ip);
        match decision {
            Decision::Protect(index) if self.protects(index, session) => {
                self.cores[self.cpu].last_in =
                    addresses.filter(|_| wide).map(|addresses| (addresses, session));
                Ok(())
            }
            Decision::Protect(_) | Decision::Bypass => Err(DropReason::InTmplMismatch),
            Decision::Drop(reason) => Err(reason),
        }
    }

    /// As an SA's own selectors, see [`Rule::admits_quoting`]. A policy that discards the message itself has the last word.
    #[inline(never)]
    fn check_icmp(&mut self, ip: &Ip<'_>, session: SessionId) -> Result<(), DropReason> {
        let by_header = self.check_header(ip, session);
        if !matches!(by_header, Ok(()) | Err(DropReason::InNoPols | DropReason::InTmplMismatch)) {
            return by_header;
        }
        let Some(Returning { headers, suffices }) = returning(ip, Direction::Open, self.inbound.depth) else {
            return by_header;
        };
        let admits = headers.is_some_and(|returning| match self.decide(Direction::Open, &returning).0 {
            Decision::Protect(index) => self.protects(index, session),
            _ => false,
        });
        let by_quote = admits && (suffices || by_header.is_ok());
        let is_named = || {
            let headers = Headers::of(ip, Direction::Open, Depth { upper: true, dscp: true });
            match self.decide(Direction::Open, &headers).0 {
                Decision::Protect(index) => {
                    self.inbound.policies.rule(index).is_some_and(|rule| rule.names(&headers))
                }
                _ => false,
            }
        };
        if by_quote || by_header.is_ok() && is_named() { Ok(()) } else { Err(DropReason::InIcmpQuote) }
    }

    /// The SA for an ICMP error that nothing else is for: that of the return traffic of what it quotes (RFC 4301 6.2).
    #[cold]
    fn decide_by_quote(&self, ip: &Ip<'_>) -> Option<Decision> {
        let Returning { headers, suffices } = returning(ip, Direction::Seal, self.outbound.depth)?;
        let (decision, _) = self.decide(Direction::Seal, &headers.filter(|_| suffices)?);
        matches!(decision, Decision::Protect(_)).then_some(decision)
    }

    /// Whether an outbound packet of this decision is for no SA and no policy.
    fn is_for_nothing(&self, direction: Direction, decision: Decision) -> bool {
        // A policy that protects has its SA made, and is no reason to take another.
        let no_sa = decision == Decision::Drop(DropReason::OutNoStates) && self.outbound.policies.len() == 0;
        direction == Direction::Seal && (no_sa || decision == Decision::Drop(DropReason::OutNoPols))
    }

    /// A number that changes whenever decisions may change; never zero.
    #[inline]
    pub fn state(&self) -> u64 {
        self.state
    }

    /// Whether every packet with the addresses that an SA's packet had passes as that did.
    #[inline]
    pub fn passes_all(&self, addresses: &Addresses, session: SessionId) -> bool {
        !self.has_inbound() || self.cores[self.cpu].last_in == Some((*addresses, session))
    }

    /// Whether a packet that came in without protection may pass.
    pub fn check_cleartext(&mut self, ip: &Ip<'_>) -> Result<(), DropReason> {
        match self.look_up(Direction::Open, ip).0 {
            Decision::Bypass => Ok(()),
            Decision::Protect(_) => Err(DropReason::InTmplMismatch),
            Decision::Drop(reason) => Err(reason),
        }
    }

    /// Where a recent decision on an outbound packet stands.
    #[inline]
    pub fn place(&self, headers: &Headers) -> FlowPlace {
        self.cores[self.cpu].flows.place(Direction::Seal, headers)
    }

    /// Loads it, so that decisions need not wait for each other.
    #[inline]
    pub fn touch(&self, place: FlowPlace) {
        self.cores[self.cpu].flows.touch(place);
    }

    /// The SA that a recent decision names for an outbound packet.
    #[inline]
    pub fn peek(&self, headers: &Headers) -> Option<u32> {
        match self.cores[self.cpu].flows.get(Direction::Seal, headers)? {
            (Decision::Protect(session), _) => Some(session),
            _ => None,
        }
    }

    /// The headers that decisions on outbound packets depend on.
    #[inline]
    pub fn outbound_headers(&self, ip: &Ip<'_>) -> Headers {
        Headers::of(ip, Direction::Seal, self.outbound.depth)
    }

    fn protects(&self, index: u32, session: SessionId) -> bool {
        self.turns.contains_key(&(session.0, index))
    }

    /// The decision, and whether every packet with these addresses would get the same.
    fn look_up(&mut self, direction: Direction, ip: &Ip<'_>) -> (Decision, bool) {
        let headers = Headers::of(ip, direction, self.side(direction).depth);
        let rules = match direction {
            Direction::Seal => self.sas.len() + self.outbound.policies.len(),
            Direction::Open => self.inbound.policies.len(),
        };
        if rules <= SCAN_LIMIT && self.per_cpu == 0 {
            let decided = self.decide(direction, &headers);
            if self.is_for_nothing(direction, decided.0) {
                return (self.decide_by_quote(ip).unwrap_or(decided.0), false);
            }
            return decided;
        }
        if let Some(decided) = self.cores[self.cpu].flows.get(direction, &headers) {
            return decided;
        }
        let (decision, wide) = self.decide(direction, &headers);
        if self.per_cpu > 0 && direction == Direction::Seal {
            self.note_fallback(ip, &headers, decision);
        }
        if self.is_for_nothing(direction, decision) {
            return (self.decide_by_quote(ip).unwrap_or(decision), false);
        }
        // What matches nothing is not remembered, so that a flood of it drives nothing else out.
        if !matches!(
            decision,
            Decision::Drop(DropReason::OutNoStates | DropReason::OutNoPols | DropReason::InNoPols)
        ) {
            self.cores[self.cpu].flows.put(direction, &headers, decision, wide);
        }
        (decision, wide)
    }

    /// Whether an SA is bound to another CPU than the packets at hand.
    fn is_bound_elsewhere(&self, session: u32) -> bool {
        self.bound.get(&session).is_some_and(|cpu| *cpu as usize != self.cpu)
    }

    fn decide(&self, direction: Direction, headers: &Headers) -> (Decision, bool) {
        let (no_policy, blocked, fragment) = match direction {
            Direction::Seal => (DropReason::OutNoPols, DropReason::OutPolBlock, DropReason::OutFragmentPorts),
            Direction::Open => (DropReason::InNoPols, DropReason::InPolBlock, DropReason::InFragmentPorts),
        };
        let policies = &self.side(direction).policies;
        if direction == Direction::Seal && policies.len() == 0 && !self.strict {
            let found = self.sas.find(headers);
            return match found.id {
                Some(session) => {
                    let own =
                        self.sas.rule(session).and_then(|rule| self.own.stand_in(rule, self.cpu as u32));
                    match own {
                        Some(own) => (Decision::Protect(own), found.wide),
                        // Bound to another CPU, and no other SA is for the packet.
                        None if self.bound.contains_key(&session) => {
                            (Decision::Drop(DropReason::OutNoStates), false)
                        }
                        None => (Decision::Protect(session), found.wide),
                    }
                }
                None if found.doubtful => (Decision::Drop(fragment), false),
                None => (Decision::Drop(DropReason::OutNoStates), false),
            };
        }
        let found = policies.find(headers);
        let slot = found.id.and_then(|index| self.slots.get(index as usize));
        let (Some(index), Some(Slot { policy: Some(policy), sas, .. })) = (found.id, slot) else {
            return (Decision::Drop(if found.doubtful { fragment } else { no_policy }), false);
        };
        match &policy.action {
            Action::Protect(_) if direction == Direction::Open => (Decision::Protect(index), found.wide),
            Action::Protect(_) => {
                match sas.choose(headers, self.cpu as u32, |session| self.sas.rule(session)) {
                    Some((session, _)) if self.is_bound_elsewhere(session) => {
                        (Decision::Drop(DropReason::OutNoStates), false)
                    }
                    Some((session, wide)) => (Decision::Protect(session), found.wide && wide),
                    None => (Decision::Drop(DropReason::OutNoStates), false),
                }
            }
            Action::Bypass if found.doubtful => (Decision::Drop(fragment), false),
            Action::Bypass => (Decision::Bypass, found.wide),
            Action::Discard => (Decision::Drop(blocked), found.wide),
        }
    }
}
