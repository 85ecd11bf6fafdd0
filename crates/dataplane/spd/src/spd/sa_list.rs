//! The SAs of one policy, in order, and the first of them that a packet may use.

use std::collections::BTreeMap;

use forebay_crypto::{Direction, SessionId};

use super::classify::Classifier;
use super::per_cpu::PerCpu;
use crate::hash::Seed;
use crate::headers::Headers;
use crate::rule::{Match, Rule};

/// Up to this many a scan is as fast as a classifier.
const SCAN_LIMIT: usize = 8;
/// The order of the first; later ones go to either side.
const MIDDLE: u64 = 1 << 62;
/// From here on those stand that are bound to CPUs: they only ever stand in for one of the others.
const BOUND: u64 = 1 << 63;

/// Where an SA stands in a list.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    order: u64,
    /// Its number in the index, if there is one.
    place: Option<u32>,
}

/// SAs in order. A policy for very many (every host behind it with its own SA) has an index of them.
#[derive(Debug, Default)]
pub struct SaList {
    order: BTreeMap<u64, u32>,
    index: Option<Box<Index>>,
    /// Those that are bound to CPUs, if there are any.
    own: Option<Box<PerCpu>>,
}

#[derive(Debug)]
struct Index {
    classifier: Classifier,
    /// SAs by their number in the classifier.
    sessions: Vec<u32>,
    free: Vec<u32>,
}

impl SaList {
    pub fn iter(&self) -> impl Iterator<Item = SessionId> {
        self.order.values().map(|&session| SessionId(session))
    }

    /// Puts an SA before or behind all others of those that are, or are not, bound to CPUs; inbound ones have no rule.
    pub fn add(&mut self, session: SessionId, rule: Option<&Rule>, first: bool, is_bound: bool) -> Turn {
        let (mut alike, middle) = match is_bound {
            true => (self.order.range(BOUND..), BOUND + MIDDLE),
            false => (self.order.range(..BOUND), MIDDLE),
        };
        let order = match first {
            true => alike.next().map_or(middle, |(order, _)| order - 1),
            false => alike.next_back().map_or(middle, |(order, _)| order + 1),
        };
        self.order.insert(order, session.0);
        let place = self.index.as_mut().zip(rule).map(|(index, rule)| index.add(session.0, order, rule));
        Turn { order, place }
    }

    /// Lets an SA that is bound to a CPU, and in the list, stand in for the others with its rule.
    pub fn prefer(&mut self, session: SessionId, rule: &Rule, first: bool, cpu: u32, seed: Seed) {
        let own = self.own.get_or_insert_with(|| Box::new(PerCpu::new(seed)));
        own.add(rule, session.0, cpu, first);
    }

    /// Takes an SA out; `own` is the rule of one that is bound to a CPU.
    pub fn remove(&mut self, session: SessionId, turn: Turn, own: Option<&Rule>) {
        self.order.remove(&turn.order);
        if let (Some(index), Some(place)) = (&mut self.index, turn.place) {
            index.classifier.remove(place);
            index.free.push(place);
        }
        if let (Some(list), Some(rule)) = (&mut self.own, own) {
            list.remove(rule, session.0);
        }
    }

    /// Whether the list has become so long that it should have an index.
    pub fn wants_index(&self) -> bool {
        self.index.is_none() && self.order.len() > SCAN_LIMIT
    }

    /// Makes the index, and reports the new position of each SA.
    pub fn make_index<'a>(
        &mut self,
        seed: Seed,
        rule_of: impl Fn(u32) -> Option<&'a Rule>,
        mut moved: impl FnMut(u32, Turn),
    ) {
        let classifier = Classifier::new(Direction::Seal, seed);
        let mut index = Index { classifier, sessions: Vec::new(), free: Vec::new() };
        for (&order, &session) in &self.order {
            let place = rule_of(session).map(|rule| index.add(session, order, rule));
            moved(session, Turn { order, place });
        }
        self.index = Some(Box::new(index));
    }

    /// The first SA that is for the packet, or the one of its CPU that stands in for it, and whether it is for every
    /// packet with its addresses.
    pub fn choose<'a>(
        &self,
        headers: &Headers,
        cpu: u32,
        rule_of: impl Fn(u32) -> Option<&'a Rule>,
    ) -> Option<(u32, bool)> {
        let (session, wide) = self.first(headers, &rule_of)?;
        let own = self.own.as_ref().zip(rule_of(session)).and_then(|(own, rule)| own.stand_in(rule, cpu));
        Some((own.unwrap_or(session), wide))
    }

    fn first<'a>(&self, headers: &Headers, rule_of: impl Fn(u32) -> Option<&'a Rule>) -> Option<(u32, bool)> {
        if let Some(index) = &self.index {
            let found = index.classifier.find(headers);
            return found.id.map(|place| (index.sessions[place as usize], found.wide));
        }
        let mut wide = true;
        for &session in self.order.values() {
            let Some(rule) = rule_of(session) else { continue };
            wide &= rule.wide;
            if rule.matches(headers) == Match::Yes {
                return Some((session, wide));
            }
        }
        None
    }
}

impl Index {
    fn add(&mut self, session: u32, order: u64, rule: &Rule) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(session);
            self.sessions.len() as u32 - 1
        });
        self.sessions[place as usize] = session;
        self.classifier.insert(place, order, rule.clone(), false);
        place
    }
}
