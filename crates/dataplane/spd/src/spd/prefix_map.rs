//! A map from prefixes to values that returns the values of all prefixes of a number.
//!
//! A few are scanned. Many are hashed by (prefix, length), and a look-up asks once for each length
//! that occurs: of those there are one to three in most networks, and never more than the bits of an
//! address, however many prefixes there are (Srinivasan, Suri, Varghese: Packet classification using
//! tuple space search, 1999).

use std::collections::HashMap;

use crate::hash::Seed;

/// Up to this many a scan is faster.
const FEW: usize = 8;

/// The first `len` bits of a number, aligned left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    bits: u128,
    len: u8,
}

impl Prefix {
    pub const ANY: Prefix = Prefix { bits: 0, len: 0 };

    /// The first `len` bits of `number`, 128 at most.
    #[inline]
    pub fn new(number: u128, len: u32) -> Prefix {
        Prefix { bits: number & mask(len), len: len as u8 }
    }

    #[cfg(test)]
    fn has(&self, number: u128) -> bool {
        number & mask(self.len.into()) == self.bits
    }

    /// At most two prefixes that hold all numbers from `first` to `last`, and whether they hold no
    /// other. Each holds at most twice as many as are meant.
    pub fn cover(first: u128, last: u128) -> ([Option<Prefix>; 2], bool) {
        if first > last {
            return ([None; 2], true);
        }
        let common = (first ^ last).leading_zeros();
        let whole = Prefix::new(first, common);
        if first == whole.bits && last == whole.bits | !mask(common) {
            return ([Some(whole), None], true);
        }
        // The range crosses the middle of `whole`: each half lies against the middle.
        let middle = last & mask(common + 1);
        let half = |a: u128, b: u128| Prefix::new(a, (a ^ b).leading_zeros());
        ([Some(half(first, middle - 1)), Some(half(middle, last))], false)
    }
}

#[inline]
fn mask(len: u32) -> u128 {
    if len == 0 { 0 } else { u128::MAX << (128 - len.min(128)) }
}

/// Values by prefix.
#[derive(Debug)]
pub struct PrefixMap<V> {
    /// In place, because most maps have one value only and a look-up would wait for it elsewhere.
    first: Option<Few<V>>,
    few: Vec<Few<V>>,
    many: Option<Box<Many<V>>>,
}

/// One of a few, its mask worked out.
#[derive(Debug)]
struct Few<V> {
    mask: u128,
    prefix: Prefix,
    value: V,
}

#[derive(Debug)]
struct Many<V> {
    map: HashMap<Prefix, V, Seed>,
    /// Lengths that occur, the longest first, and how often.
    lengths: Vec<(u8, u32)>,
}

impl<V> Default for PrefixMap<V> {
    fn default() -> PrefixMap<V> {
        PrefixMap { first: None, few: Vec::new(), many: None }
    }
}

impl<V: Default> PrefixMap<V> {
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.many.is_none()
    }

    /// Shows `visit` every value whose prefix `number` has and that is no longer than `longest`.
    #[inline]
    pub fn visit(&self, number: u128, longest: u32, mut visit: impl FnMut(&V)) {
        for one in self.first.iter().chain(&self.few) {
            if number & one.mask == one.prefix.bits && u32::from(one.prefix.len) <= longest {
                visit(&one.value);
            }
        }
        let Some(many) = &self.many else { return };
        for &(len, _) in &many.lengths {
            if u32::from(len) <= longest
                && let Some(value) = many.map.get(&Prefix::new(number, len.into()))
            {
                visit(value);
            }
        }
    }

    pub fn get_mut(&mut self, prefix: Prefix) -> Option<&mut V> {
        match &mut self.many {
            Some(many) => many.map.get_mut(&prefix),
            None => {
                let few = self.first.iter_mut().chain(&mut self.few);
                few.into_iter().find(|one| one.prefix == prefix).map(|one| &mut one.value)
            }
        }
    }

    /// The value of `prefix`, a new one if there is none.
    pub fn entry(&mut self, prefix: Prefix, seed: Seed) -> &mut V {
        let is_new = self.get_mut(prefix).is_none();
        if is_new && self.many.is_none() && self.few.len() + 1 == FEW {
            let mut many = Many { map: HashMap::with_hasher(seed), lengths: Vec::new() };
            for one in self.first.take().into_iter().chain(std::mem::take(&mut self.few)) {
                many.count(one.prefix.len);
                many.map.insert(one.prefix, one.value);
            }
            self.many = Some(Box::new(many));
        }
        if let Some(many) = &mut self.many {
            if is_new {
                many.count(prefix.len);
            }
            return many.map.entry(prefix).or_default();
        }
        let one = || Few { mask: mask(prefix.len.into()), prefix, value: V::default() };
        let first = self.first.get_or_insert_with(one);
        if first.prefix == prefix {
            return &mut first.value;
        }
        let place = self.few.iter().position(|one| one.prefix == prefix).unwrap_or(self.few.len());
        if is_new {
            self.few.push(one());
        }
        &mut self.few[place].value
    }

    pub fn remove(&mut self, prefix: Prefix) {
        let Some(many) = &mut self.many else {
            match &self.first {
                Some(first) if first.prefix == prefix => self.first = self.few.pop(),
                _ => self.few.retain(|one| one.prefix != prefix),
            }
            return;
        };
        if many.map.remove(&prefix).is_some() {
            many.lengths.iter_mut().for_each(|(len, count)| *count -= u32::from(*len == prefix.len));
            many.lengths.retain(|&(_, count)| count > 0);
        }
        if many.map.is_empty() {
            self.many = None;
        }
    }
}

impl<V> Many<V> {
    fn count(&mut self, len: u8) {
        match self.lengths.binary_search_by(|(other, _)| len.cmp(other)) {
            Ok(place) => self.lengths[place].1 += 1,
            Err(place) => self.lengths.insert(place, (len, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every number of the range is held, and the cover is at most twice the range.
        #[test]
        fn a_cover_holds_the_range_and_little_else(a in any::<u16>(), b in any::<u16>(), probe in any::<u16>()) {
            let (first, last) = (a.min(b), a.max(b));
            let wide = |n: u16| u128::from(n) << 112;
            let (prefixes, exact) = Prefix::cover(wide(first), wide(last) | (u128::MAX >> 16));
            let prefixes: Vec<Prefix> = prefixes.into_iter().flatten().collect();
            let held = prefixes.iter().any(|prefix| prefix.has(wide(probe)));
            let meant = (first..=last).contains(&probe);
            prop_assert!(held || !meant);
            prop_assert!(!exact || held == meant);
            let size: u32 = prefixes.iter().map(|prefix| 1u32 << (16 - u32::from(prefix.len))).sum();
            prop_assert!(size <= 2 * (u32::from(last - first) + 1));
        }

        /// Against a list, through growth into a hash table and back.
        #[test]
        fn as_a_list(steps in prop::collection::vec((any::<bool>(), 0u128..64, 0u32..7), 0..80), probe in 0u128..64) {
            let (mut map, mut list) = (PrefixMap::<u64>::default(), Vec::<Prefix>::new());
            for (add, number, len) in steps {
                let prefix = Prefix::new(number << 122, len);
                if add {
                    *map.entry(prefix, Seed::new(7)) = prefix.bits as u64 ^ u64::from(prefix.len);
                    if !list.contains(&prefix) { list.push(prefix); }
                } else {
                    map.remove(prefix);
                    list.retain(|other| *other != prefix);
                }
            }
            let mut found = 0;
            map.visit(probe << 122, 128, |_| found += 1);
            prop_assert_eq!(found, list.iter().filter(|prefix| prefix.has(probe << 122)).count());
            prop_assert_eq!(map.is_empty(), list.is_empty());
        }
    }
}
