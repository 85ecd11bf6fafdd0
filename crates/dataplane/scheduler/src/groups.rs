//! Which packets of the window belong to one SA: a fixed hash table from SA to its last packet.

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The packets of one SA in the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    sa: u32,
    /// Slot of its last packet; [`NONE`] marks a free place of the table.
    pub(crate) last: u32,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
}

const FREE: Group = Group { sa: 0, last: NONE, bytes: 0 };

/// Linear probing at a load of at most one half; removal closes the gap, so that there are no
/// tombstones and the steady state stays as quick as the first lookup.
#[derive(Debug)]
pub(crate) struct Groups {
    places: Vec<Group>,
}

impl Groups {
    /// A table for at most `groups` groups at a time.
    pub(crate) fn new(groups: usize) -> Groups {
        Groups { places: vec![FREE; (2 * groups).next_power_of_two()] }
    }

    #[inline]
    fn home(&self, sa: u32) -> usize {
        // Fibonacci hashing: neighbouring numbers, the usual ones, land far apart.
        (u64::from(sa).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.places.len() - 1)
    }

    /// The place of `sa`'s group, or the free place where it would stand.
    #[inline]
    pub(crate) fn place_of(&self, sa: u32) -> usize {
        let mut at = self.home(sa);
        while self.places[at].last != NONE && self.places[at].sa != sa {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }

    /// The group at a place, if one is there.
    #[inline]
    pub(crate) fn get(&mut self, place: usize) -> Option<&mut Group> {
        Some(&mut self.places[place]).filter(|group| group.last != NONE)
    }

    /// Bytes of `sa`'s packets in the window.
    #[inline]
    pub(crate) fn bytes_of(&self, sa: u32) -> u64 {
        self.places[self.place_of(sa)].bytes
    }

    /// Puts a group of one packet into the free place that [`Groups::place_of`] gave.
    #[inline]
    pub(crate) fn put(&mut self, place: usize, sa: u32, slot: u32, bytes: u64) {
        self.places[place] = Group { sa, last: slot, bytes };
    }

    /// Removes the group at `place`, moving up those that probing would no longer find.
    #[inline]
    pub(crate) fn remove(&mut self, place: usize) {
        let mask = self.places.len() - 1;
        let mut gap = place;
        let mut at = (place + 1) & mask;
        while self.places[at].last != NONE {
            let home = self.home(self.places[at].sa);
            // It may move if the gap lies on its way from home: not further from `at` than home is.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.places[gap] = self.places[at];
                gap = at;
            }
            at = (at + 1) & mask;
        }
        self.places[gap] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u32..12, any::<bool>()), 0..200)) {
            let mut groups = Groups::new(8);
            let mut map = HashMap::new();
            for (number, (key, insert)) in steps.into_iter().enumerate() {
                let sa = key.wrapping_mul(0x1000_0001);
                let place = groups.place_of(sa);
                if insert && map.len() < 8 && !map.contains_key(&sa) {
                    groups.put(place, sa, number as u32, 1);
                    map.insert(sa, number as u32);
                } else if !insert && map.remove(&sa).is_some() {
                    groups.remove(place);
                }
                for key in 0..12u32 {
                    let sa = key.wrapping_mul(0x1000_0001);
                    let place = groups.place_of(sa);
                    prop_assert_eq!(groups.get(place).map(|group| group.last), map.get(&sa).copied());
                }
            }
        }
    }
}
