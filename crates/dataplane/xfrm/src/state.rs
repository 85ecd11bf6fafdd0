//! What the kernel has, as far as has been heard, and what of it has been told.
//!
//! Messages go in, events come out: no I/O. A dump is compared with what is known already, so what an overrun has
//! swallowed comes out as the events that it makes a difference of; whatever was told since the dump began is newer than
//! the dump, since both come through one socket, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use forebay_crypto::Direction;

use crate::direction::Compass;
use crate::event::{Policy, PolicyIndex, Sa};
use crate::kernel::{KernelPolicy, KernelSa, Message};
use crate::shared_keys::{Fingerprint, KeyOwners};
use crate::{Event, Mark, Refusal, SaId};

/// Which SAs and policies are Forebay's; the others are left to the kernel as if they were not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those with exactly this mark; without, those that have none.
    pub mark: Option<Mark>,
    /// Only those with this interface ID; without, those that have none.
    pub if_id: Option<u32>,
    /// Whether suites are taken over that RFC 8221 says MUST NOT to.
    pub allow_weak: bool,
}

impl Filter {
    fn takes(&self, mark: Mark, if_id: u32) -> bool {
        // Two tenants whose selectors are alike differ in nothing else: what is not asked for must not mix with what is.
        self.mark.unwrap_or_default() == mark && self.if_id.unwrap_or_default() == if_id
    }
}

/// The mirror without its sockets.
#[derive(Debug, Default)]
pub struct State {
    filter: Filter,
    compass: Compass,
    sas: BTreeMap<SaId, SaEntry>,
    policies: BTreeMap<u32, PolicyEntry>,
    /// SAs whose direction is not known.
    waiting: BTreeSet<SaId>,
    keys: KeyOwners,
    /// Counts dumps.
    dump: u64,
}

#[derive(Debug)]
struct SaEntry {
    sa: KernelSa,
    standing: Standing,
    /// The cipher key that it owns.
    key: Option<Fingerprint>,
    /// The dump in which, or since which, it was heard of.
    seen: u64,
}

#[derive(Debug)]
struct PolicyEntry {
    policy: KernelPolicy,
    seen: u64,
}

/// How far an SA has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its direction is not known.
    Waiting,
    /// It was told as added.
    Told(Direction),
    /// It was told as refused.
    Refused,
}

impl State {
    /// One that knows nothing yet.
    pub fn new(filter: Filter) -> State {
        State { filter, ..State::default() }
    }

    /// What the kernel says of an SA.
    pub fn sa(&self, id: &SaId) -> Option<&KernelSa> {
        self.sas.get(id).map(|entry| &entry.sa)
    }

    /// What the kernel says of a policy.
    pub fn policy(&self, index: PolicyIndex) -> Option<&KernelPolicy> {
        self.policies.get(&index.0).map(|entry| &entry.policy)
    }

    /// SAs whose direction is not known yet.
    pub fn waiting(&self) -> impl Iterator<Item = &SaId> {
        self.waiting.iter()
    }

    /// A dump of everything begins.
    pub fn begin_dump(&mut self) {
        self.dump += 1;
    }

    /// All policies of the dump have been heard: the others are gone.
    pub fn end_policies(&mut self, events: &mut Vec<Event>) {
        let gone = |(index, entry): (&u32, &PolicyEntry)| (entry.seen < self.dump).then_some(*index);
        for index in self.policies.iter().filter_map(gone).collect::<Vec<_>>() {
            self.remove_policy(index, events);
        }
    }

    /// All SAs of the dump have been heard: the others are gone.
    pub fn end_sas(&mut self, events: &mut Vec<Event>) {
        let gone = |(id, entry): (&SaId, &SaEntry)| (entry.seen < self.dump).then_some(*id);
        for id in self.sas.iter().filter_map(gone).collect::<Vec<_>>() {
            self.remove_sa(&id, events);
        }
        self.take_freed(events);
    }

    /// Takes in a message.
    pub fn apply(&mut self, message: Message, events: &mut Vec<Event>) {
        self.hear(message, events);
        self.take_freed(events);
    }

    fn hear(&mut self, message: Message, events: &mut Vec<Event>) {
        match message {
            Message::SaAdded(sa) => self.put_sa(*sa, events),
            Message::SaUpdated(sa) => self.update_sa(*sa, events),
            Message::SaDeleted(id) => self.remove_sa(&id, events),
            Message::SaExpired { id, hard } => self.expire(id, hard, events),
            Message::SasFlushed(protocol) => {
                // Zero and IPSEC_PROTO_ANY are all.
                let flushed = |id: &&SaId| [0, 0xff, id.protocol].contains(&protocol);
                for id in self.sas.keys().filter(flushed).copied().collect::<Vec<_>>() {
                    self.remove_sa(&id, events);
                }
                events.push(Event::SasFlushed);
            }
            Message::Policy(policy) => self.put_policy(*policy, events),
            Message::PolicyDeleted(index) => self.remove_policy(index, events),
            Message::PoliciesFlushed(0) => {
                for index in self.policies.keys().copied().collect::<Vec<_>>() {
                    self.remove_policy(index, events);
                }
                events.push(Event::PoliciesFlushed);
            }
            Message::PoliciesFlushed(_)
            | Message::Migrated
            | Message::DumpEnd { .. }
            | Message::Refused { .. }
            | Message::Other => {}
        }
    }

    /// An interface of this machine has an address, or has it no more.
    pub fn set_address(&mut self, interface: u32, address: IpAddr, present: bool, events: &mut Vec<Event>) {
        self.compass.set_address(interface, address, present);
        self.settle(events);
    }

    /// Forgets all addresses, before they are told anew.
    pub fn forget_addresses(&mut self) {
        self.compass.forget_addresses();
    }

    fn put_sa(&mut self, mut sa: KernelSa, events: &mut Vec<Event>) {
        if !self.filter.takes(sa.id.mark, sa.if_id) || sa.is_larval() {
            return;
        }
        let id = sa.id;
        let mut told = None;
        if let Some(known) = self.sas.get_mut(&id) {
            known.seen = self.dump;
            if known.sa.is_set_like(&sa) {
                return;
            }
            if known.sa.has_other_keys(&sa) {
                // Another SA by the same name: the end of the first was not heard.
                self.remove_sa(&id, events);
            } else {
                // Counters go on from where they were when it was first heard of.
                (sa.usage, sa.sequence) = (known.sa.usage, known.sa.sequence);
                told = match known.standing {
                    Standing::Told(direction) => Some(direction),
                    Standing::Waiting | Standing::Refused => None,
                };
            }
        }
        self.place(sa, told, events);
    }

    /// Puts an SA into the table and tells of it, if its direction, which `told` is where it was told before, is known.
    fn place(&mut self, sa: KernelSa, told: Option<Direction>, events: &mut Vec<Event>) {
        let id = sa.id;
        let (standing, key) = match told.or_else(|| self.compass.direction(&sa)) {
            None => {
                self.waiting.insert(id);
                (Standing::Waiting, None)
            }
            Some(direction) => self.tell(&sa, direction, told.is_some(), events),
        };
        self.sas.insert(id, SaEntry { sa, standing, key, seen: self.dump });
    }

    /// Tells of an SA: how far it has got now, and the cipher key that it owns.
    fn tell(
        &mut self,
        sa: &KernelSa,
        direction: Direction,
        known: bool,
        events: &mut Vec<Event>,
    ) -> (Standing, Option<Fingerprint>) {
        let taken = Sa::of(sa, direction, self.filter.allow_weak).and_then(|ours| {
            let key = self.keys.claim(sa.id, &ours.keys).map_err(Refusal::SharedKey)?;
            Ok((ours, key))
        });
        match taken {
            Ok((ours, key)) => {
                let ours = Box::new(ours);
                events.push(if known { Event::SaUpdated(ours) } else { Event::SaAdded(ours) });
                (Standing::Told(direction), key)
            }
            Err(reason) => {
                // What it had of a key before an update is free.
                if !matches!(reason, Refusal::SharedKey(_)) {
                    let before = self.sas.get(&sa.id).and_then(|entry| entry.key);
                    self.keys.release(&sa.id, before);
                }
                events.push(Event::SaRefused { id: sa.id, reason });
                (Standing::Refused, None)
            }
        }
    }

    /// Takes over SAs that were refused for a cipher key that no other SA has any more, as the one that the kernel
    /// makes of another when a tunnel's end moves.
    fn take_freed(&mut self, events: &mut Vec<Event>) {
        while let Some(id) = self.keys.next_free() {
            let Some(sa) = self.sas.get(&id).map(|entry| entry.sa.clone()) else { continue };
            self.place(sa, None, events);
        }
    }

    /// An update of a known SA says what was asked for, not what it is: keys stay as they were.
    fn update_sa(&mut self, mut sa: KernelSa, events: &mut Vec<Event>) {
        if let Some(known) = self.sas.get(&sa.id) {
            sa.aead.clone_from(&known.sa.aead);
            sa.cipher.clone_from(&known.sa.cipher);
            sa.integrity.clone_from(&known.sa.integrity);
            sa.replay_window = known.sa.replay_window;
        }
        self.put_sa(sa, events);
    }

    fn expire(&mut self, id: SaId, hard: bool, events: &mut Vec<Event>) {
        let told = self.sas.get(&id).is_some_and(|entry| matches!(entry.standing, Standing::Told(_)));
        if hard {
            let key = self.sas.remove(&id).and_then(|entry| entry.key);
            self.keys.release(&id, key);
            self.waiting.remove(&id);
        }
        if told {
            events.push(Event::SaExpired { id, hard });
        }
    }

    fn remove_sa(&mut self, id: &SaId, events: &mut Vec<Event>) {
        self.waiting.remove(id);
        let Some(entry) = self.sas.remove(id) else { return };
        self.keys.release(id, entry.key);
        if let Standing::Told(_) = entry.standing {
            events.push(Event::SaDeleted(*id));
        }
    }

    fn put_policy(&mut self, policy: KernelPolicy, events: &mut Vec<Event>) {
        if !self.filter.takes(policy.mark, policy.if_id) {
            return;
        }
        let mut told = false;
        if let Some(known) = self.policies.get_mut(&policy.index) {
            known.seen = self.dump;
            if known.policy == policy {
                return;
            }
            told = true;
            self.compass.remove_policy(&known.policy);
        }
        self.compass.add_policy(&policy);
        let index = policy.index;
        events.push(match Policy::of(&policy) {
            Ok(policy) if told => Event::PolicyUpdated(Box::new(policy)),
            Ok(policy) => Event::PolicyAdded(Box::new(policy)),
            Err(reason) => Event::PolicyRefused { policy: Box::new(Policy::refused(&policy)), reason },
        });
        self.policies.insert(index, PolicyEntry { policy, seen: self.dump });
        self.settle(events);
    }

    fn remove_policy(&mut self, index: u32, events: &mut Vec<Event>) {
        if let Some(entry) = self.policies.remove(&index) {
            self.compass.remove_policy(&entry.policy);
            events.push(Event::PolicyDeleted(PolicyIndex(index)));
        }
    }

    /// Tells the SAs whose direction has become known.
    fn settle(&mut self, events: &mut Vec<Event>) {
        if self.waiting.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.waiting) {
            let Some(sa) = self.sas.get(&id).map(|entry| &entry.sa) else { continue };
            let Some(direction) = self.compass.direction(sa) else {
                self.waiting.insert(id);
                continue;
            };
            let sa = sa.clone();
            let (standing, key) = self.tell(&sa, direction, false, events);
            if let Some(entry) = self.sas.get_mut(&id) {
                (entry.standing, entry.key) = (standing, key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
