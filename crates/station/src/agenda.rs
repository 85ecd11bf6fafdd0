//! What is due, in order.

use forebay_time::Time;

/// Everything that is due, the first at the end of a sorted list.
///
/// Each unit and each line of a bus has at most one end ahead of it, so the list is as short as the host
/// is small, and what is scheduled mostly comes soon: putting it in place moves a few entries, which
/// is less than a heap does.
#[derive(Debug, Default)]
pub(crate) struct Agenda<E> {
    entries: Vec<Entry<E>>,
    scheduled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// The time, and below it the number that keeps those of one instant in the order of scheduling.
    due: u128,
    event: E,
}

impl<E: Copy> Agenda<E> {
    pub(crate) fn new() -> Agenda<E> {
        Agenda { entries: Vec::new(), scheduled: 0 }
    }

    /// The number of what is scheduled next, for what has to wait before it may be put in.
    #[inline]
    pub(crate) fn number(&mut self) -> u64 {
        self.scheduled += 1;
        self.scheduled
    }

    /// Puts in what is due at `at`.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: E) {
        let number = self.number();
        self.put(at, number, event);
    }

    /// The same with a number taken before.
    #[inline]
    pub(crate) fn put(&mut self, at: Time, number: u64, event: E) {
        let due = u128::from(at.0) << 64 | u128::from(number);
        let mut place = self.entries.len();
        self.entries.push(Entry { due, event });
        while place > 0 && self.entries[place - 1].due < due {
            self.entries[place] = self.entries[place - 1];
            place -= 1;
        }
        self.entries[place] = Entry { due, event };
    }

    /// When the first thing is due; `None` if nothing is.
    #[inline]
    pub(crate) fn first(&self) -> Option<Time> {
        self.entries.last().map(|entry| Time((entry.due >> 64) as u64))
    }

    /// Takes the first thing out if it is due by `to`: when, and what.
    #[inline]
    pub(crate) fn take(&mut self, to: Time) -> Option<(Time, E)> {
        let at = self.first().filter(|&at| at <= to)?;
        self.entries.pop().map(|entry| (at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_one_instant_comes_in_the_order_of_scheduling() {
        let mut agenda = Agenda::new();
        assert_eq!(agenda.first(), None);
        let reserved = agenda.number();
        for (event, at) in [(2, 7), (0, 7), (3, 5), (4, 9)] {
            agenda.schedule(Time(at), event);
        }
        agenda.put(Time(7), reserved, 1);
        let mut order = Vec::new();
        assert_eq!(agenda.take(Time(4)), None);
        while let Some((_, event)) = agenda.take(Time(8)) {
            order.push(event);
        }
        assert_eq!((order, agenda.first()), (vec![3, 1, 2, 0], Some(Time(9))));
    }
}
