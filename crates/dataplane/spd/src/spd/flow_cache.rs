//! Cached decisions for recent flows: exact match, set-associative, bounded.
//!
//! An entry is used only for the very key it was stored for, compared in full, and only while nothing
//! has been changed since: each carries the generation of the databases that it was found in. So none can
//! be another flow's or an old one, whatever is added, removed or added again.

use super::decision::Decision;
use crate::hash::Seed;
use crate::headers::Headers;
use forebay_crypto::Direction;

/// Entries that a flow may be in.
const WAYS: usize = 4;
/// Fewest entries, so that a few SAs with many flows are served too: 128 KiB for IPv4.
const MIN_ENTRIES: usize = 4096;
/// Most entries of each IP version: 16 MiB for IPv4, 32 MiB for IPv6.
const MAX_ENTRIES: usize = 1 << 19;
/// Entries for each rule: with fewer too many sets have more flows than ways, and each such flow costs a
/// whole look-up.
const ENTRIES_PER_RULE: usize = 4;

/// Decisions by keys of `N` words.
#[derive(Debug)]
struct Table<const N: usize> {
    sets: Vec<Set<N>>,
    /// The way of a full set that is evicted next.
    victim: usize,
}

/// From the begin of a cache line on, and filled from there: for IPv4 most flows are found in the first of two.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set<const N: usize>([Entry<N>; WAYS]);

#[derive(Clone, Copy, Debug)]
struct Entry<const N: usize> {
    key: [u64; N],
    /// Zero: never used.
    generation: u32,
    wide: bool,
    decision: Decision,
}

impl<const N: usize> Table<N> {
    fn resize(&mut self, entries: usize) {
        let unused = Entry { key: [0; N], generation: 0, wide: false, decision: Decision::Bypass };
        self.sets.clear();
        self.sets.resize(entries / WAYS, Set([unused; WAYS]));
    }

    #[inline]
    fn set(&self, hash: u64) -> usize {
        // The number of sets is a power of two.
        hash as usize & self.sets.len().wrapping_sub(1)
    }

    #[inline]
    fn get(&self, key: &[u64; N], hash: u64, generation: u32) -> Option<(Decision, bool)> {
        let Set(set) = self.sets.get(self.set(hash))?;
        let entry = set.iter().find(|entry| entry.generation == generation && entry.key == *key)?;
        Some((entry.decision, entry.wide))
    }

    fn put(&mut self, hash: u64, entry: Entry<N>) {
        let at = self.set(hash);
        let Some(Set(set)) = self.sets.get_mut(at) else { return };
        let old = set.iter().position(|other| other.generation != entry.generation);
        let way = old.unwrap_or_else(|| {
            self.victim = self.victim.wrapping_add(1);
            self.victim % WAYS
        });
        set[way] = entry;
    }
}

/// A set of a table.
#[derive(Clone, Copy, Debug)]
pub struct FlowPlace {
    v6: bool,
    set: usize,
}

/// The flows of both IP versions and directions.
#[derive(Debug)]
pub struct FlowCache {
    seed: Seed,
    generation: u32,
    v4: Table<2>,
    v6: Table<5>,
}

impl FlowCache {
    /// Without entries, and without room for any.
    pub fn new(seed: Seed) -> FlowCache {
        FlowCache {
            seed,
            generation: 1,
            v4: Table { sets: Vec::new(), victim: 0 },
            v6: Table { sets: Vec::new(), victim: 0 },
        }
    }

    /// Makes everything stored so far count no more, and room for the flows of so many rules.
    pub fn changed(&mut self, rules: usize) {
        let entries = (ENTRIES_PER_RULE * rules).next_power_of_two().clamp(MIN_ENTRIES, MAX_ENTRIES);
        let (resized, wrapped) = (entries > self.v4.sets.len() * WAYS, self.generation == u32::MAX);
        if resized || wrapped {
            // Generations begin again only over empty tables.
            self.v4.resize(entries);
            self.v6.resize(entries);
        }
        self.generation = if wrapped { 1 } else { self.generation + 1 };
    }

    /// The cached decision for packets with these values.
    #[inline]
    pub fn get(&self, direction: Direction, headers: &Headers) -> Option<(Decision, bool)> {
        if headers.v6 {
            let key = key_v6(direction, headers);
            self.v6.get(&key, self.seed.hash(&key), self.generation)
        } else {
            let key = key_v4(direction, headers);
            self.v4.get(&key, self.seed.hash(&key), self.generation)
        }
    }

    /// Where [`FlowCache::get`] will look.
    #[inline]
    pub fn place(&self, direction: Direction, headers: &Headers) -> FlowPlace {
        let (v6, hash) = match headers.v6 {
            true => (true, self.seed.hash(&key_v6(direction, headers))),
            false => (false, self.seed.hash(&key_v4(direction, headers))),
        };
        let set = if v6 { self.v6.set(hash) } else { self.v4.set(hash) };
        FlowPlace { v6, set }
    }

    /// Loads what is there.
    #[inline]
    pub fn touch(&self, place: FlowPlace) {
        std::hint::black_box(match place.v6 {
            true => self.v6.sets.get(place.set).map_or(0, |Set(set)| set[0].generation ^ set[2].generation),
            false => self.v4.sets.get(place.set).map_or(0, |Set(set)| set[0].generation),
        });
    }

    /// Stores what was decided; `wide` as in [`Found`](super::classify::Found).
    pub fn put(&mut self, direction: Direction, headers: &Headers, decision: Decision, wide: bool) {
        let generation = self.generation;
        if headers.v6 {
            let key = key_v6(direction, headers);
            self.v6.put(self.seed.hash(&key), Entry { key, generation, wide, decision });
        } else {
            let key = key_v4(direction, headers);
            self.v4.put(self.seed.hash(&key), Entry { key, generation, wide, decision });
        }
    }
}

#[inline]
fn key_v4(direction: Direction, headers: &Headers) -> [u64; 2] {
    [(headers.local >> 64) as u64 | (headers.remote >> 96) as u64, word(direction, headers)]
}

#[inline]
fn key_v6(direction: Direction, headers: &Headers) -> [u64; 5] {
    let Headers { local, remote, .. } = *headers;
    [(local >> 64) as u64, local as u64, (remote >> 64) as u64, remote as u64, word(direction, headers)]
}

/// Everything but the addresses.
#[inline]
fn word(direction: Direction, headers: &Headers) -> u64 {
    u64::from(headers.local_port) << 34
        | u64::from(headers.remote_port) << 16
        | u64::from(headers.protocol & 0x1ff) << 7
        | u64::from(headers.dscp & 0x3f) << 1
        | u64::from(direction == Direction::Seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(n: u32) -> Headers {
        Headers {
            v6: false,
            local: u128::from(n) << 96,
            remote: 7 << 96,
            protocol: 17,
            local_port: 1,
            remote_port: 2,
            dscp: 0,
        }
    }

    #[test]
    fn flows_that_meet_in_a_set_are_told_apart() {
        let mut cache = FlowCache::new(Seed::new(1));
        cache.changed(1);
        // Eight times as many flows as entries, so that every set holds others' flows.
        for n in 0..8 * MIN_ENTRIES as u32 {
            cache.put(Direction::Seal, &flow(n), Decision::Protect(n), true);
        }
        let mut kept = 0;
        for n in 0..16 * MIN_ENTRIES as u32 {
            if let Some((decision, _)) = cache.get(Direction::Seal, &flow(n)) {
                assert_eq!(decision, Decision::Protect(n));
                kept += 1;
            }
        }
        assert!(kept > MIN_ENTRIES / 2 && kept <= MIN_ENTRIES, "{kept}");
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let base = flow(9);
        let others = [
            Headers { local: 8 << 96, ..base },
            Headers { remote: 8 << 96, ..base },
            Headers { protocol: 6, ..base },
            Headers { protocol: crate::headers::UNKNOWN, ..base },
            Headers { local_port: 2, ..base },
            Headers { local_port: crate::headers::HIDDEN, ..base },
            Headers { remote_port: 1, ..base },
            Headers { dscp: 1, ..base },
            Headers { v6: true, ..base },
        ];
        let mut cache = FlowCache::new(Seed::new(1));
        cache.changed(1);
        cache.put(Direction::Seal, &base, Decision::Protect(1), false);
        assert_eq!(cache.get(Direction::Seal, &base), Some((Decision::Protect(1), false)));
        assert_eq!(cache.get(Direction::Open, &base), None);
        for other in others {
            assert_eq!(cache.get(Direction::Seal, &other), None, "{other:?}");
        }
        cache.changed(1);
        assert_eq!(cache.get(Direction::Seal, &base), None, "stale");
    }

    #[test]
    fn generations_that_begin_again_revive_nothing() {
        let mut cache = FlowCache::new(Seed::new(1));
        cache.changed(1);
        let first = cache.generation;
        cache.put(Direction::Seal, &flow(1), Decision::Bypass, false);
        cache.generation = u32::MAX;
        while cache.generation != first {
            cache.changed(1);
            assert_eq!(cache.get(Direction::Seal, &flow(1)), None);
        }
    }
}
