//! Finds the first rule, in order, that a packet matches, among many thousands.
//!
//! Rules stand in buckets by the prefixes of their remote and, inside, local addresses; a crowded bucket
//! has the same for protocol and ports. A range is put under the two prefixes that cover it, so no rule
//! is in more than a few buckets, whatever its ranges, and what a bucket holds too much is sorted out
//! by looking at the rule itself. A look-up visits the buckets of a packet and in each the rules in order,
//! up to the best found so far.

use forebay_crypto::Direction;

use super::prefix_map::{Prefix, PrefixMap};
use crate::hash::Seed;
use crate::headers::{self, Headers, Port, UNKNOWN, has_type};
use crate::rule::{Match, Rule, Side, is_two_sided};

/// A bucket of more rules gets an index by protocol and ports.
const CROWDED: usize = 16;
/// A rule with more pairs of selectors stands in buckets by its remote addresses only.
const MAX_PAIRS: usize = 64;

/// Rules in order, each known by a number.
#[derive(Debug)]
pub struct Classifier {
    direction: Direction,
    seed: Seed,
    rules: Vec<Option<Ranked>>,
    len: usize,
    /// Rules that look at more than addresses.
    narrow: usize,
    v4: PrefixMap<Node>,
    v6: PrefixMap<Node>,
}

#[derive(Debug)]
struct Ranked {
    order: u64,
    rule: Rule,
    /// Whether a packet that may be meant must not be let by under a later rule.
    guards: bool,
}

#[derive(Debug, Default)]
struct Node {
    buckets: PrefixMap<Bucket>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// A copy of the first entry, which decides most look-ups without one more wait for memory.
    first: Option<Entry>,
    entries: Vec<Entry>,
    by_ports: Option<Box<PortIndex>>,
}

/// By protocol and remote port, then by local port.
type PortIndex = PrefixMap<PrefixMap<Vec<Entry>>>;

#[derive(Clone, Copy, Debug)]
struct Entry {
    order: u64,
    id: u32,
    /// Whether the bucket alone shows that the rule matches.
    exact: bool,
}

/// Where a rule stands.
struct Place {
    v6: bool,
    remote: Prefix,
    local: Prefix,
    exact: bool,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first rule that matches.
    pub id: Option<u32>,
    /// Whether every packet with these addresses would find the same.
    pub wide: bool,
    /// Whether an earlier guarding rule may match, which another fragment would decide.
    pub doubtful: bool,
}

/// A look-up in progress: the orders of the best rule and of rules that were passed over.
struct Search<'a> {
    headers: &'a Headers,
    rules: &'a [Option<Ranked>],
    best: u64,
    id: Option<u32>,
    wide: bool,
    narrow: u64,
    doubtful: u64,
}

impl Classifier {
    /// No rules yet, for packets of one direction.
    pub fn new(direction: Direction, seed: Seed) -> Classifier {
        Classifier {
            direction,
            seed,
            rules: Vec::new(),
            len: 0,
            narrow: 0,
            v4: PrefixMap::default(),
            v6: PrefixMap::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no rule looks at anything but addresses.
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.narrow == 0
    }

    /// The rule with this number.
    #[inline]
    pub fn rule(&self, id: u32) -> Option<&Rule> {
        self.rules.get(id as usize)?.as_ref().map(|ranked| &ranked.rule)
    }

    /// Puts a rule in under a number that is free, at its place in the order; orders differ.
    pub fn insert(&mut self, id: u32, order: u64, rule: Rule, guards: bool) {
        let at = id as usize;
        if at >= self.rules.len() {
            self.rules.resize_with(at + 1, || None);
        }
        self.len += 1;
        self.narrow += usize::from(!rule.wide);
        self.rules[at] = Some(Ranked { order, rule, guards });
        self.index(id);
    }

    /// Takes a rule out.
    pub fn remove(&mut self, id: u32) -> Option<Rule> {
        self.unindex(id);
        let ranked = self.rules.get_mut(id as usize)?.take()?;
        self.len -= 1;
        self.narrow -= usize::from(!ranked.rule.wide);
        Some(ranked.rule)
    }

    /// Gives rules, by number, other places in the order.
    pub fn reorder(&mut self, moved: &[(u32, u64)]) {
        // All leave their old places before any takes a new one, which may be another's old one.
        moved.iter().for_each(|&(id, _)| self.unindex(id));
        for &(id, order) in moved {
            if let Some(Some(ranked)) = self.rules.get_mut(id as usize) {
                ranked.order = order;
                self.index(id);
            }
        }
    }

    fn index(&mut self, id: u32) {
        let Some(Some(ranked)) = self.rules.get(id as usize) else { return };
        for place in places(&ranked.rule) {
            let table = if place.v6 { &mut self.v6 } else { &mut self.v4 };
            let bucket = table.entry(place.remote, self.seed).buckets.entry(place.local, self.seed);
            let entry = Entry { order: ranked.order, id, exact: place.exact };
            add(&mut bucket.entries, entry);
            bucket.first = bucket.entries.first().copied();
            match &mut bucket.by_ports {
                Some(index) => add_by_ports(index, &ranked.rule, entry, self.direction, self.seed),
                None if bucket.entries.len() > CROWDED => {
                    let index = bucket.by_ports.insert(Box::default());
                    for &entry in &bucket.entries {
                        if let Some(Some(other)) = self.rules.get(entry.id as usize) {
                            add_by_ports(index, &other.rule, entry, self.direction, self.seed);
                        }
                    }
                }
                None => {}
            }
        }
    }

    fn unindex(&mut self, id: u32) {
        let Some(Some(ranked)) = self.rules.get(id as usize) else { return };
        for place in places(&ranked.rule) {
            let table = if place.v6 { &mut self.v6 } else { &mut self.v4 };
            let Some(node) = table.get_mut(place.remote) else { continue };
            let Some(bucket) = node.buckets.get_mut(place.local) else { continue };
            take(&mut bucket.entries, ranked.order);
            bucket.first = bucket.entries.first().copied();
            if bucket.entries.len() <= CROWDED / 2 {
                bucket.by_ports = None;
            }
            if let Some(index) = &mut bucket.by_ports {
                take_by_ports(index, &ranked.rule, ranked.order, self.direction);
            }
            if bucket.entries.is_empty() {
                node.buckets.remove(place.local);
            }
            if node.buckets.is_empty() {
                table.remove(place.remote);
            }
        }
    }

    /// The first rule that a packet matches.
    #[inline]
    pub fn find(&self, headers: &Headers) -> Found {
        let mut search = Search {
            headers,
            rules: &self.rules,
            best: u64::MAX,
            id: None,
            wide: true,
            narrow: u64::MAX,
            doubtful: u64::MAX,
        };
        let table = if headers.v6 { &self.v6 } else { &self.v4 };
        table.visit(headers.remote, 128, |node| {
            node.buckets.visit(headers.local, 128, |bucket| search.look_into(bucket));
        });
        Found {
            id: search.id,
            wide: search.id.is_some() && search.wide && search.narrow > search.best,
            doubtful: search.doubtful < search.best,
        }
    }
}

impl Search<'_> {
    #[inline]
    fn look_into(&mut self, bucket: &Bucket) {
        let Some(first) = bucket.first.filter(|first| first.order < self.best) else { return };
        if first.exact {
            return self.take(&first, true);
        }
        let Some(index) = &bucket.by_ports else { return self.scan(&bucket.entries) };
        let Some([outer, inner]) = port_keys(self.headers) else { return self.scan(&bucket.entries) };
        // Rules passed over by the index are not seen here.
        self.narrow = self.narrow.min(first.order);
        index.visit(outer.0, outer.1, |inside| {
            inside.visit(inner.0, inner.1, |entries| self.scan(entries));
        });
    }

    #[inline]
    fn scan(&mut self, entries: &[Entry]) {
        for entry in entries {
            if entry.order >= self.best {
                return;
            }
            if entry.exact {
                return self.take(entry, true);
            }
            let Some(Some(ranked)) = self.rules.get(entry.id as usize) else { continue };
            match ranked.rule.matches(self.headers) {
                Match::Yes => return self.take(entry, ranked.rule.wide),
                Match::Maybe if ranked.guards => self.doubtful = self.doubtful.min(entry.order),
                Match::Maybe | Match::No => {}
            }
            if !ranked.rule.wide {
                self.narrow = self.narrow.min(entry.order);
            }
        }
    }

    #[inline]
    fn take(&mut self, entry: &Entry, wide: bool) {
        (self.best, self.id, self.wide) = (entry.order, Some(entry.id), wide);
    }
}

/// The buckets of a rule.
fn places(rule: &Rule) -> Vec<Place> {
    let crowd = rule.local.len() * rule.remote.len() > MAX_PAIRS;
    let mut places = Vec::new();
    for remote in &rule.remote {
        let any: &[Side] = &[Side { first: 0, last: u128::MAX, protocol: 0, ..*remote }];
        for local in if crowd { any } else { &rule.local } {
            if remote.common_protocol(local).is_none() {
                continue;
            }
            let (remote_prefixes, remote_exact) = Prefix::cover(remote.first, remote.last);
            let (local_prefixes, local_exact) = Prefix::cover(local.first, local.last);
            let exact = rule.wide && remote_exact && local_exact && !crowd;
            for v6 in
                [false, true].into_iter().filter(|&v6| remote.families.has(v6) && local.families.has(v6))
            {
                for remote in remote_prefixes.into_iter().flatten() {
                    let place = |local| Place { v6, remote, local, exact };
                    places.extend(local_prefixes.into_iter().flatten().map(place));
                }
            }
        }
    }
    places
}

/// Adds a rule at its place; one that is there is seen by its bucket alone if either of both is.
fn add(entries: &mut Vec<Entry>, entry: Entry) {
    match entries.binary_search_by_key(&entry.order, |other| other.order) {
        Ok(at) => entries[at].exact |= entry.exact,
        Err(at) => entries.insert(at, entry),
    }
}

fn take(entries: &mut Vec<Entry>, order: u64) {
    if let Ok(at) = entries.binary_search_by_key(&order, |other| other.order) {
        entries.remove(at);
    }
}

/// Protocol and port in the upper 24 bits of a number.
fn outer_key(protocol: u16, port: Port) -> u128 {
    u128::from(protocol & 0xff) << 120 | u128::from(port & 0xffff) << 104
}

fn inner_key(port: Port) -> u128 {
    u128::from(port & 0xffff) << 112
}

/// The keys of a packet and how long the prefixes may be that are looked for; `None` if what the keys
/// are made of cannot be seen.
fn port_keys(headers: &Headers) -> Option<[(u128, u32); 2]> {
    if headers.protocol == UNKNOWN || [headers.local_port, headers.remote_port].contains(&headers::HIDDEN) {
        return None;
    }
    let bits = |port: Port| if port > 0xffff { 0 } else { 16 };
    Some([
        (outer_key(headers.protocol, headers.remote_port), 8 + bits(headers.remote_port)),
        (inner_key(headers.local_port), bits(headers.local_port)),
    ])
}

/// The prefixes of a rule in an index of ports.
fn port_places(rule: &Rule, direction: Direction) -> Vec<(Prefix, Prefix)> {
    let mut places = Vec::new();
    for remote in &rule.remote {
        for local in &rule.local {
            let Some(protocol) = remote.common_protocol(local) else { continue };
            // Of a type, which a packet has once, only the sender's selector counts; any other, and one
            // that is never met with a number, stands under every number.
            let counts = |side: &Side, sends: bool| {
                protocol != 0
                    && side.ports.first() <= side.ports.last()
                    && (is_two_sided(protocol) || (has_type(protocol.into()) && sends))
            };
            let outer = match (protocol, counts(remote, direction == Direction::Open)) {
                (0, _) => [Some(Prefix::ANY), None],
                (_, false) => [Some(Prefix::new(outer_key(protocol.into(), 0), 8)), None],
                (_, true) => {
                    let key = |port: u16| outer_key(protocol.into(), port.into());
                    Prefix::cover(key(remote.ports.first()), key(remote.ports.last()) | u128::MAX >> 24).0
                }
            };
            let inner = match counts(local, direction == Direction::Seal) {
                false => [Some(Prefix::ANY), None],
                true => {
                    let key = |port: u16| inner_key(port.into());
                    Prefix::cover(key(local.ports.first()), key(local.ports.last()) | u128::MAX >> 16).0
                }
            };
            for outer in outer.into_iter().flatten() {
                places.extend(inner.into_iter().flatten().map(|inner| (outer, inner)));
            }
        }
    }
    places
}

fn add_by_ports(index: &mut PortIndex, rule: &Rule, entry: Entry, direction: Direction, seed: Seed) {
    for (outer, inner) in port_places(rule, direction) {
        add(index.entry(outer, seed).entry(inner, seed), entry);
    }
}

fn take_by_ports(index: &mut PortIndex, rule: &Rule, order: u64, direction: Direction) {
    for (outer, inner) in port_places(rule, direction) {
        let Some(inside) = index.get_mut(outer) else { continue };
        let Some(entries) = inside.get_mut(inner) else { continue };
        take(entries, order);
        if entries.is_empty() {
            inside.remove(inner);
        }
        if inside.is_empty() {
            index.remove(outer);
        }
    }
}
