//! The state of SAs in processors: keys that have a place there, or have to be loaded again.
//!
//! A card with few key slots loads the keys of an SA that it does not hold, in the place of those that were used the
//! longest time ago, and a session is created at the first job of an SA. Processors work in the order of placement, so
//! what a job will find there is known when it is placed.

use std::collections::{HashMap, HashSet};

use forebay_time::Duration;

/// Ends a list of places.
const NONE: u32 = u32::MAX;

/// What it costs a processor to have the state of an SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCost {
    /// SAs whose keys it holds at once; 0: no limit.
    pub slots: u32,
    /// Time to load the keys of an SA that it does not hold.
    pub load: Duration,
    /// Time of the first job of an SA besides that.
    pub session: Duration,
}

/// The SAs whose keys a processor holds once it has done all that was placed there.
#[derive(Debug)]
pub struct Keys {
    cost: KeyCost,
    /// By SA, its place in `held`.
    places: HashMap<u32, u32>,
    held: Vec<Held>,
    newest: u32,
    oldest: u32,
    /// SAs that have a session; none where that costs nothing.
    sessions: HashSet<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    sa: u32,
    newer: u32,
    older: u32,
}

impl Keys {
    /// A processor that holds no keys.
    pub fn new(cost: KeyCost) -> Keys {
        let (places, held, sessions) = (HashMap::new(), Vec::new(), HashSet::new());
        Keys { cost, places, held, newest: NONE, oldest: NONE, sessions }
    }

    /// The time that a job of an SA would take for its keys if it were placed now.
    #[inline]
    pub fn time(&self, sa: u32) -> Duration {
        let load = if self.places.contains_key(&sa) { Duration::ZERO } else { self.cost.load };
        let is_new = self.cost.session > Duration::ZERO && !self.sessions.contains(&sa);
        load + if is_new { self.cost.session } else { Duration::ZERO }
    }

    /// [`Keys::time`] on one of some processors, of which those whose list is shorter have no keys.
    #[inline]
    pub(crate) fn time_on(all: &[Option<Keys>], processor: usize, sa: u32) -> Duration {
        all.get(processor).and_then(Option::as_ref).map_or(Duration::ZERO, |keys| keys.time(sa))
    }

    /// The time that some jobs would take for their keys one after the other, of at most as many SAs as there are slots.
    pub(crate) fn time_of(&self, sas: impl Iterator<Item = u32>) -> Duration {
        let mut seen = HashSet::new();
        sas.filter(|sa| seen.insert(*sa)).fold(Duration::ZERO, |sum, sa| sum + self.time(sa))
    }

    /// A job of an SA is placed: the time that it takes for its keys, which are held from then on.
    pub fn place(&mut self, sa: u32) -> Duration {
        let time = self.time(sa);
        if self.cost.session > Duration::ZERO {
            self.sessions.insert(sa);
        }
        let place = match self.places.get(&sa) {
            Some(&place) if place == self.newest => return time,
            Some(&place) => {
                self.unlink(place);
                place
            }
            None => self.free_place(),
        };
        self.held[place as usize] = Held { sa, newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = place,
            newest => self.held[newest as usize].newer = place,
        }
        self.newest = place;
        self.places.insert(sa, place);
        time
    }

    /// All of it is lost.
    pub(crate) fn clear(&mut self) {
        *self = Keys::new(self.cost);
    }

    /// A place for the keys of one more SA; if all are taken, that of the SA whose keys were used the longest time ago.
    fn free_place(&mut self) -> u32 {
        let slots = if self.cost.slots == 0 { NONE as usize } else { self.cost.slots as usize };
        if self.held.len() < slots {
            self.held.push(Held { sa: 0, newer: NONE, older: NONE });
            return (self.held.len() - 1) as u32;
        }
        let place = self.oldest;
        self.places.remove(&self.held[place as usize].sa);
        self.unlink(place);
        place
    }

    fn unlink(&mut self, place: u32) {
        let Held { newer, older, .. } = self.held[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.held[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.held[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list that is searched.
    #[test]
    fn keys_are_loaded_where_the_list_of_those_last_used_does_not_have_them() {
        for slots in 0..5u32 {
            let (load, session) = (Duration(7), Duration(100));
            let mut keys = Keys::new(KeyCost { slots, load, session });
            let (mut list, mut seen, mut state): (Vec<u32>, Vec<u32>, u32) = (Vec::new(), Vec::new(), 1);
            for _ in 0..2_000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let sa = (state >> 24) % 7;
                let mut expected = 0;
                match list.iter().position(|held| *held == sa) {
                    Some(at) => drop(list.remove(at)),
                    None => expected += 7,
                }
                list.push(sa);
                if slots > 0 && list.len() > slots as usize {
                    list.remove(0);
                }
                if !seen.contains(&sa) {
                    seen.push(sa);
                    expected += 100;
                }
                assert_eq!(keys.time(sa), Duration(expected));
                assert_eq!(keys.place(sa), Duration(expected));
                assert_eq!(keys.time(sa), Duration::ZERO);
            }
        }
    }

    #[test]
    fn jobs_of_one_sa_load_its_keys_once() {
        let cost = KeyCost { slots: 2, load: Duration(7), session: Duration::ZERO };
        let mut keys = Keys::new(cost);
        assert_eq!(keys.time_of([1, 1, 2, 1].into_iter()), Duration(14));
        keys.place(1);
        assert_eq!(keys.time_of([1, 1, 2, 1].into_iter()), Duration(7));
        keys.clear();
        assert_eq!(keys.time(1), Duration(7));
    }
}
