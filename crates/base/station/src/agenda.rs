//! What is due, in order.

use forebay_time::Time;

/// Everything that is due, the first at the end of a sorted list.
///
/// Each processor has a few ends ahead of it at most, so the list is as short as the host is small, and
/// what is scheduled mostly comes soon: putting it in place moves a few entries, which is less than a
/// heap does.
#[derive(Debug, Default)]
pub(crate) struct Agenda<E> {
    entries: Vec<Entry<E>>,
    scheduled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    /// Keeps those of one instant in the order of scheduling.
    number: u64,
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
        self.insert(Entry { at, number, event }, |entry| entry.at <= at);
    }

    /// The same with a number taken before.
    pub(crate) fn put(&mut self, at: Time, number: u64, event: E) {
        self.insert(Entry { at, number, event }, |entry| (entry.at, entry.number) < (at, number));
    }

    /// Puts an entry behind those at the end that come `before` it.
    #[inline(always)]
    fn insert(&mut self, entry: Entry<E>, before: impl Fn(&Entry<E>) -> bool) {
        let mut place = self.entries.len();
        self.entries.push(entry);
        while place > 0 && before(&self.entries[place - 1]) {
            self.entries[place] = self.entries[place - 1];
            place -= 1;
            self.entries[place] = entry;
        }
    }

    /// When the first thing is due; `None` if nothing is.
    #[inline]
    pub(crate) fn first(&self) -> Option<Time> {
        self.entries.last().map(|entry| entry.at)
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
