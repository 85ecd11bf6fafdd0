//! The SAs of one policy, in order, and the first of them that a packet may use.

use std::collections::BTreeMap;

use forebay_crypto::{Direction, SessionId};

use super::classify::Classifier;
use crate::hash::Seed;
use crate::headers::Headers;
use crate::rule::{Match, Rule};

/// Up to this many a scan is as fast as a classifier.
const SCAN_LIMIT: usize = 8;
/// The order of the first; later ones go to either side.
const MIDDLE: u64 = 1 << 63;

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

    /// Puts an SA before or behind all others; inbound ones have no rule.
    pub fn add(&mut self, session: SessionId, rule: Option<&Rule>, first: bool) -> Turn {
        let order = match first {
            true => self.order.first_key_value().map_or(MIDDLE, |(order, _)| order - 1),
            false => self.order.last_key_value().map_or(MIDDLE, |(order, _)| order + 1),
        };
        self.order.insert(order, session.0);
        let place = self.index.as_mut().zip(rule).map(|(index, rule)| index.add(session.0, order, rule));
        Turn { order, place }
    }

    pub fn remove(&mut self, turn: Turn) {
        self.order.remove(&turn.order);
        if let (Some(index), Some(place)) = (&mut self.index, turn.place) {
            index.classifier.remove(place);
            index.free.push(place);
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

    /// The first SA that is for the packet, and whether it is for every packet with its addresses.
    pub fn choose<'a>(
        &self,
        headers: &Headers,
        rule_of: impl Fn(u32) -> Option<&'a Rule>,
    ) -> Option<(u32, bool)> {
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
