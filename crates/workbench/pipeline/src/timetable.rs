//! The event list: one time for each of a fixed number of sources, the earliest at hand.

use forebay_time::Time;

/// A tournament over the sources: each inner node holds the earlier of its two below.
///
/// Every source has at most one event ahead of it, so setting, moving and cancelling are the same
/// few comparisons up one path, and nothing is ever allocated.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    /// Time (upper half) and order of scheduling of each source; padded to a power of two. In one
    /// number, because comparing two then needs no branch, and which of two is earlier is anyone's guess.
    keys: Vec<u128>,
    /// The earliest source below each inner node; 1 is the root.
    winner: Vec<u32>,
    scheduled: u64,
}

impl Timetable {
    pub fn new(sources: usize) -> Timetable {
        let width = sources.next_power_of_two().max(2);
        let mut winner = vec![0; width];
        for node in (1..width).rev() {
            winner[node] = if 2 * node >= width { (2 * node - width) as u32 } else { winner[2 * node] };
        }
        Timetable { keys: vec![u128::MAX; width], winner, scheduled: 0 }
    }

    /// Sets the source's next event; [`Time::MAX`] is never. Among equal times, the first set comes first.
    #[inline]
    pub fn set(&mut self, source: usize, at: Time) {
        self.scheduled += 1;
        self.keys[source] = u128::from(at.0) << 64 | u128::from(self.scheduled);
        self.climb(source);
    }

    /// No event of this source is ahead.
    #[inline]
    pub fn cancel(&mut self, source: usize) {
        if self.at(source) != Time::MAX {
            self.set(source, Time::MAX);
        }
    }

    /// Takes the earliest event away. Its source must be [set](Self::set) or
    /// [left](Self::leave) before the next is asked for.
    #[inline]
    pub fn take(&mut self, source: usize) {
        self.keys[source] = u128::MAX;
    }

    /// The source whose event was taken has none ahead, if it has not been set since.
    #[inline]
    pub fn leave(&mut self, source: usize) {
        if self.at(source) == Time::MAX {
            self.climb(source);
        }
    }

    /// Plays the matches above a source again, as far as they may come out otherwise.
    #[inline]
    fn climb(&mut self, source: usize) {
        let width = self.winner.len();
        let mut node = (source + width) / 2;
        while node >= 1 {
            let (left, right) = match 2 * node >= width {
                true => ((2 * node - width) as u32, (2 * node + 1 - width) as u32),
                false => (self.winner[2 * node], self.winner[2 * node + 1]),
            };
            let first = self.keys[left as usize] <= self.keys[right as usize];
            let wins = if first { left } else { right };
            let won = std::mem::replace(&mut self.winner[node], wins);
            if won == wins && wins as usize != source {
                return;
            }
            node /= 2;
        }
    }

    /// When the source's next event is.
    #[inline]
    pub fn at(&self, source: usize) -> Time {
        Time((self.keys[source] >> 64) as u64)
    }

    /// The earliest event: its time and source. [`Time::MAX`] if there is none.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let source = self.winner[1] as usize;
        (self.at(source), source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_list_searched_through(
            sources in 1..20usize,
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..6u64), 1..200),
        ) {
            let mut table = Timetable::new(sources);
            let mut list = vec![(Time::MAX, 0); sources];
            for (order, (source, time)) in steps.into_iter().enumerate() {
                let source = source.index(sources);
                let at = if time == 5 { Time::MAX } else { Time(time) };
                // Now and then an event happens: its source and another are set anew, or it alone is not.
                let (now, first) = table.first();
                if order % 3 == 0 && now != Time::MAX {
                    table.take(first);
                    list[first] = (Time::MAX, 0);
                    table.set(source, at);
                    list[source] = (at, order + 1);
                    table.leave(first);
                } else {
                    table.set(source, at);
                    list[source] = (at, order + 1);
                }
                let least = list.iter().enumerate().min_by_key(|(_, key)| **key).unwrap();
                prop_assert_eq!(table.first().0, least.1.0);
                if least.1.0 != Time::MAX {
                    prop_assert_eq!(table.first().1, least.0);
                }
            }
        }
    }
}
