//! What is due, in a flat list with a place for everything that can be due.

use forebay_time::Time;

/// Nothing is due at this place.
const NOTHING: u128 = u128::MAX;

/// One place for each unit and each line of a bus, since each has at most one end ahead of it.
///
/// With the few processors of a host, looking through all places is faster than keeping a heap.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The time, and below it the number that keeps those of one instant in the order of scheduling.
    due: Vec<u128>,
    /// The least of them and its place.
    least: u128,
    holder: usize,
    scheduled: u64,
}

impl Default for Agenda {
    fn default() -> Agenda {
        Agenda { due: Vec::new(), least: NOTHING, holder: 0, scheduled: 0 }
    }
}

impl Agenda {
    /// A new place; returns its index.
    pub(crate) fn add_place(&mut self) -> usize {
        self.due.push(NOTHING);
        self.due.len() - 1
    }

    /// The number of what is scheduled next, for what has to wait for its place.
    #[inline]
    pub(crate) fn number(&mut self) -> u64 {
        self.scheduled += 1;
        self.scheduled
    }

    /// Puts what is due at `at` on a place.
    #[inline]
    pub(crate) fn schedule(&mut self, place: usize, at: Time) {
        let number = self.number();
        self.put(place, at, number);
    }

    /// The same with a number taken before.
    #[inline]
    pub(crate) fn put(&mut self, place: usize, at: Time, number: u64) {
        debug_assert_eq!(self.due[place], NOTHING, "place {place} is taken");
        let due = u128::from(at.0) << 64 | u128::from(number);
        self.due[place] = due;
        if due < self.least {
            (self.least, self.holder) = (due, place);
        }
    }

    /// When the first thing is due; `None` if nothing is.
    #[inline]
    pub(crate) fn first(&self) -> Option<Time> {
        (self.least != NOTHING).then_some(Time((self.least >> 64) as u64))
    }

    /// Takes the first thing out if it is due by `to`: its place, and when it is due.
    #[inline]
    pub(crate) fn take(&mut self, to: Time) -> Option<(usize, Time)> {
        let at = self.first().filter(|&at| at <= to)?;
        let place = self.holder;
        self.due[place] = NOTHING;
        self.least = NOTHING;
        for (place, &due) in self.due.iter().enumerate() {
            self.holder = if due < self.least { place } else { self.holder };
            self.least = self.least.min(due);
        }
        Some((place, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_one_instant_comes_in_the_order_of_scheduling() {
        let mut agenda = Agenda::default();
        let places: Vec<usize> = (0..4).map(|_| agenda.add_place()).collect();
        assert_eq!(agenda.first(), None);
        let reserved = agenda.number();
        for (place, at) in [(2, 7), (0, 7), (3, 5)] {
            agenda.schedule(places[place], Time(at));
        }
        agenda.put(places[1], Time(7), reserved);
        let mut order = Vec::new();
        assert_eq!(agenda.take(Time(4)), None);
        while let Some((place, _)) = agenda.take(Time(7)) {
            order.push(place);
        }
        assert_eq!(order, [3, 1, 2, 0]);
    }
}
