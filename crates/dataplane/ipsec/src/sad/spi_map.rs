//! Inbound SAs by SPI: one array that is never more than half full, so that a packet waits for one cache line
//! of it and seldom for two.

use forebay_spd::Seed;

/// Fewest slots.
const MIN_SLOTS: usize = 16;

/// Open addressing with linear probing.
#[derive(Debug)]
pub struct SpiMap {
    seed: Seed,
    /// SPI and SA; the SPI zero, which no SA has (RFC 4303 2.1), where there is none.
    slots: Vec<(u32, u32)>,
    len: usize,
}

impl SpiMap {
    /// Without entries.
    pub fn new(seed: Seed) -> SpiMap {
        SpiMap { seed, slots: vec![(0, 0); MIN_SLOTS], len: 0 }
    }

    /// The SA with this SPI.
    #[inline]
    pub fn get(&self, spi: &u32) -> Option<&u32> {
        // Those from the home slot on, up to the first that is free, of which there is always one.
        let home = self.home(*spi);
        let probed = self.slots[home..].iter().chain(&self.slots[..home]);
        probed.take_while(|(found, _)| *found != 0).find_map(|(found, index)| (found == spi).then_some(index))
    }

    /// Loads where [`SpiMap::get`] will look.
    #[inline]
    pub fn touch(&self, spi: u32) {
        std::hint::black_box(self.slots.get(self.home(spi)).map_or(0, |slot| slot.0));
    }

    /// Adds an SPI that is not zero and not there yet.
    pub fn insert(&mut self, spi: u32, index: u32) {
        debug_assert!(spi != 0 && self.get(&spi).is_none());
        if (self.len + 1) * 2 > self.slots.len() {
            let more = vec![(0, 0); 2 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, more);
            old.into_iter().filter(|slot| slot.0 != 0).for_each(|slot| self.put(slot));
        }
        self.put((spi, index));
        self.len += 1;
    }

    fn put(&mut self, slot: (u32, u32)) {
        let mut at = self.home(slot.0);
        while self.slots[at].0 != 0 {
            at = self.next(at);
        }
        self.slots[at] = slot;
    }

    /// Takes an SPI out. Those behind it that it was in the way of move up, so that nothing is left to be
    /// probed over (Knuth: The Art of Computer Programming 3, 6.4, algorithm R).
    pub fn remove(&mut self, spi: &u32) -> Option<u32> {
        let mut free = self.home(*spi);
        while self.slots[free].0 != *spi {
            if self.slots[free].0 == 0 {
                return None;
            }
            free = self.next(free);
        }
        let (_, index) = self.slots[free];
        self.len -= 1;
        let mut at = self.next(free);
        while self.slots[at].0 != 0 {
            let home = self.home(self.slots[at].0);
            // How far each is behind the home slot, around the end.
            let behind = |place: usize| place.wrapping_sub(home) & (self.slots.len() - 1);
            if behind(free) < behind(at) {
                self.slots[free] = self.slots[at];
                free = at;
            }
            at = self.next(at);
        }
        self.slots[free] = (0, 0);
        Some(index)
    }

    #[inline]
    fn home(&self, spi: u32) -> usize {
        self.seed.hash(&[spi.into()]) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Few numbers, so that they come again, in a table that is small, so that they meet.
        #[test]
        fn as_a_hash_map(steps in prop::collection::vec((1u32..40, any::<bool>()), 0..400), seed: u64) {
            let (mut map, mut model) = (SpiMap::new(Seed::new(seed)), HashMap::new());
            for (n, (spi, add)) in steps.into_iter().enumerate() {
                if add && !model.contains_key(&spi) {
                    map.insert(spi, n as u32);
                    model.insert(spi, n as u32);
                } else if !add {
                    prop_assert_eq!(map.remove(&spi), model.remove(&spi));
                }
                for spi in 0..41 {
                    prop_assert_eq!(map.get(&spi), model.get(&spi));
                }
            }
        }
    }
}
