//! A cache's lines, without their bytes: which are there.

use super::config::{CacheConfig, Replacement};

/// Which lines a cache holds.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Line number, doubled, plus one if it has been written; a set's lines stand together, the one that goes
    /// last first.
    lines: Vec<u32>,
    ways: usize,
    set_mask: u32,
    shift: u32,
    replacement: Replacement,
    state: u32,
}

/// No line. A number that no address has: lines are at least 4 bytes.
const EMPTY: u32 = u32::MAX - 1;

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    /// If the shape has a number that is no power of two, a line of less than 4 bytes, or no set.
    pub fn new(config: CacheConfig) -> Cache {
        let CacheConfig { size, ways, line, replacement } = config;
        let sets = size / (ways * line).max(1);
        assert!(line >= 4 && [ways, line, sets].iter().all(|one| one.is_power_of_two()), "{config:?}");
        let state = match replacement {
            // The generator must not begin at 0, where it would stay.
            Replacement::Random(seed) => seed ^ 0x9e37_79b9 | 1,
            _ => 0,
        };
        Cache {
            lines: vec![EMPTY; (sets * ways) as usize],
            ways: ways as usize,
            set_mask: sets - 1,
            shift: line.trailing_zeros(),
            replacement,
            state,
        }
    }

    /// The number of the line at an address.
    #[inline(always)]
    pub fn line(&self, address: u32) -> u32 {
        address >> self.shift
    }

    /// Uses a line if it is there; `write` marks it as written.
    #[inline(always)]
    pub fn touch(&mut self, line: u32, write: bool) -> bool {
        let from = (line & self.set_mask) as usize * self.ways;
        if self.ways == 1 {
            let place = &mut self.lines[from];
            let hit = *place & !1 == line << 1;
            if hit && write {
                *place |= 1;
            }
            return hit;
        }
        let lru = self.replacement == Replacement::Lru;
        let set = &mut self.lines[from..from + self.ways];
        let Some(at) = set.iter().position(|&one| one & !1 == line << 1) else { return false };
        if write {
            set[at] |= 1;
        }
        if lru && at != 0 {
            set[..=at].rotate_right(1);
        }
        true
    }

    /// Brings a line in that is not there. If the line that makes room has been written, returns its number.
    pub fn fill(&mut self, line: u32, write: bool) -> Option<u32> {
        let from = (line & self.set_mask) as usize * self.ways;
        let set = &mut self.lines[from..from + self.ways];
        let new = line << 1 | u32::from(write);
        let free = set.iter().position(|&one| one == EMPTY);
        let at = match (free, self.replacement) {
            (Some(at), _) => at,
            (None, Replacement::Random(_)) => {
                // Marsaglia's xorshift, 32 bits.
                self.state ^= self.state << 13;
                self.state ^= self.state >> 17;
                self.state ^= self.state << 5;
                (self.state >> 8) as usize % self.ways
            }
            (None, _) => self.ways - 1,
        };
        let old = std::mem::replace(&mut set[at], new);
        if !matches!(self.replacement, Replacement::Random(_)) {
            set[..=at].rotate_right(1);
        }
        (old != EMPTY && old & 1 != 0).then_some(old >> 1)
    }
}
