//! One timer for each of a few thousand SAs: which is due first.

use forebay_time::Time;

/// A binary heap of timers that can be set again, numbered from zero; [`Time::MAX`] is "off".
#[derive(Debug, Default)]
pub struct Timers {
    due: Vec<Time>,
    /// Numbers of all timers, as a heap by due time.
    heap: Vec<u32>,
    /// Where each number stands in the heap.
    place: Vec<u32>,
}

impl Timers {
    /// The number of a new timer, which is off.
    pub fn add(&mut self) -> u32 {
        let number = self.due.len() as u32;
        self.due.push(Time::MAX);
        self.heap.push(number);
        self.place.push(number);
        number
    }

    /// Sets timer `number`, in time proportional to the logarithm of their count.
    #[inline]
    pub fn set(&mut self, number: u32, due: Time) {
        let before = std::mem::replace(&mut self.due[number as usize], due);
        let at = self.place[number as usize] as usize;
        if due < before {
            self.rise(at);
        } else if due > before {
            self.sink(at);
        }
    }

    /// The timer that is due first, if any is on.
    #[inline]
    pub fn first(&self) -> Option<(u32, Time)> {
        let &number = self.heap.first()?;
        let due = self.due[number as usize];
        (due < Time::MAX).then_some((number, due))
    }

    fn due_at(&self, at: usize) -> Time {
        self.due[self.heap[at] as usize]
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.due_at(at) < self.due_at((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.due_at(child)) else { return };
            if self.due_at(at) <= self.due_at(least) {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.place[self.heap[one] as usize] = one as u32;
        self.place[self.heap[other] as usize] = other as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(steps in prop::collection::vec((0u32..20, 0u64..50), 1..400)) {
            let mut timers = Timers::default();
            let mut plain = [Time::MAX; 20];
            (0..20).for_each(|_| { timers.add(); });
            for (number, due) in steps {
                let due = if due == 49 { Time::MAX } else { Time(due) };
                timers.set(number, due);
                plain[number as usize] = due;
                let least = plain.iter().min().copied().filter(|&due| due < Time::MAX);
                prop_assert_eq!(timers.first().map(|(_, due)| due), least);
                if let Some((number, due)) = timers.first() {
                    prop_assert_eq!(plain[number as usize], due);
                }
            }
        }
    }
}
