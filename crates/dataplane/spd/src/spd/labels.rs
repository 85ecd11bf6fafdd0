//! Numbers for the elements of an ordered list, so that an insertion renumbers few of them.

use std::collections::BTreeMap;

/// Labels are below this.
const END: u64 = 1 << 62;
/// Between one and the next that is put behind it.
const GAP: u64 = 1 << 32;

/// Things by label. Where no number is left between two, the smallest neighbourhood that is thinly
/// enough settled is spread out anew (Bender et al.: Two simplified algorithms for maintaining order
/// in a list, 2002), which is O(log n) a time on average, wherever things are put.
#[derive(Debug, Default)]
pub struct Labels(BTreeMap<u64, u32>);

impl Labels {
    /// Everything in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.values().copied()
    }

    /// The label of the thing behind the one labelled `label`.
    pub fn after(&self, label: u64) -> Option<u64> {
        self.0.range(label + 1..).next().map(|(&label, _)| label)
    }

    pub fn first(&self) -> Option<u64> {
        self.0.first_key_value().map(|(&label, _)| label)
    }

    pub fn remove(&mut self, label: u64) {
        self.0.remove(&label);
    }

    /// Puts `id` before the entry labelled `before`, or last; calls `moved` with labels that change.
    pub fn insert(&mut self, id: u32, before: Option<u64>, mut moved: impl FnMut(u32, u64)) -> u64 {
        let mut before = before.unwrap_or(END);
        loop {
            let below = self.0.range(..before).next_back().map_or(0, |(&label, _)| label);
            if before - below > 1 {
                let label = below + ((before - below) / 2).min(GAP);
                self.0.insert(label, id);
                return label;
            }
            before = self.spread(below, before, &mut moved);
        }
    }

    /// Spreads out what lies around `below`; the new label of what was labelled `before`.
    fn spread(&mut self, below: u64, before: u64, moved: &mut impl FnMut(u32, u64)) -> u64 {
        for bits in 3..=62 {
            let start = below >> bits << bits;
            let size = 1_u64 << bits;
            let count = self.0.range(start..start + size).count() as u64;
            // The larger the neighbourhood, the thinner: 1.5 to the power of its bits.
            if count as f64 + 1.0 > (4.0_f64 / 3.0).powi(bits) && bits < 62 {
                continue;
            }
            let step = size / (count + 1);
            let settled: Vec<(u64, u32)> =
                self.0.range(start..start + size).map(|(&label, &id)| (label, id)).collect();
            for (label, _) in &settled {
                self.0.remove(label);
            }
            let mut new = before;
            for (place, &(old, id)) in settled.iter().enumerate() {
                let label = start + (place as u64 + 1) * step;
                self.0.insert(label, id);
                if old == before {
                    new = label;
                }
                if old != label {
                    moved(id, label);
                }
            }
            return new;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Against a plain list: at the front, at the end, always in one place, all over.
    #[test]
    fn the_order_is_that_of_a_list() {
        for pattern in 0..4 {
            let (mut labels, mut list, mut by_id) = (Labels::default(), Vec::new(), HashMap::new());
            let mut moves = 0;
            for id in 0..3_000u32 {
                let place = match pattern {
                    0 => 0,
                    1 => list.len(),
                    2 => list.len().min(5),
                    _ => id.wrapping_mul(2_654_435_761) as usize % (list.len() + 1),
                };
                let before = list.get(place).map(|other: &u32| by_id[other]);
                let mut changed = Vec::new();
                let label = labels.insert(id, before, |id, label| changed.push((id, label)));
                moves += changed.len();
                by_id.extend(changed);
                by_id.insert(id, label);
                list.insert(place, id);
                if id % 7 == 3 {
                    let gone = list.remove(place / 2);
                    labels.remove(by_id[&gone]);
                }
            }
            assert!(labels.iter().eq(list.iter().copied()), "pattern {pattern}");
            assert!(list.windows(2).all(|pair| by_id[&pair[0]] < by_id[&pair[1]]), "pattern {pattern}");
            assert!(moves < 60 * 3_000, "pattern {pattern}: {moves} moves");
        }
    }
}
