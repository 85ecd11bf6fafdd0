//! The order in which the packets of each SA leave, beside the order in which they came.
//!
//! The sequence numbers of an SA are given in the order of arrival. A packet is late if one with a higher number of its
//! SA has left before it, and its distance is how far the highest of those is ahead. A receiver whose replay window has
//! 64 places takes no packet at a distance of 64 or more (RFC 4303 3.4.3).

use std::collections::HashMap;

use crate::figures::{self, OrderFigures};

/// Places of the replay window that every receiver has to support (RFC 4303 3.4.3 asks for 32 at least, and for 64
/// by default).
const WINDOW: u32 = 64;
/// SAs with numbers below are looked up by index.
const DENSE: u32 = 1 << 16;

/// What is known of an SA. Numbers are counted modulo 2^32, and compared by their difference.
#[derive(Clone, Copy, Debug, Default)]
struct Sa {
    /// The number of the next packet that comes.
    next: u32,
    /// The number behind the highest one that has left.
    left: u32,
}

/// The numbers of all SAs, and what left late.
#[derive(Debug, Default)]
pub(crate) struct Order {
    dense: Vec<Sa>,
    others: HashMap<u32, Sa>,
    late: u64,
    beyond: u64,
    farthest: u32,
}

impl Order {
    /// A packet of an SA comes; returns its number.
    #[inline]
    pub(crate) fn arrive(&mut self, sa: u32) -> u32 {
        let of = self.of(sa);
        let number = of.next;
        of.next = number.wrapping_add(1);
        number
    }

    /// The packet of an SA that came last is turned away: its number is given once more.
    pub(crate) fn turn_away(&mut self, sa: u32) {
        let of = self.of(sa);
        of.next = of.next.wrapping_sub(1);
    }

    /// A packet leaves; `counts`: it counts in the figures.
    #[inline]
    pub(crate) fn leave(&mut self, sa: u32, number: u32, counts: bool) {
        let of = self.of(sa);
        let ahead = of.left.wrapping_sub(number.wrapping_add(1));
        // The difference of two numbers is negative if its highest bit is set.
        if ahead as i32 <= 0 {
            of.left = number.wrapping_add(1);
            return;
        }
        if counts {
            self.late += 1;
            self.beyond += u64::from(ahead >= WINDOW);
            self.farthest = self.farthest.max(ahead);
        }
    }

    /// The figures over so many packets.
    pub(crate) fn figures(&self, packets: u64) -> OrderFigures {
        let share = |part: u64| figures::ratio(part as f64, packets as f64);
        OrderFigures {
            late: self.late,
            late_share: share(self.late),
            distance_max: self.farthest,
            beyond_64_share: share(self.beyond),
            hold: None,
            release_latency: None,
        }
    }

    #[inline]
    fn of(&mut self, sa: u32) -> &mut Sa {
        if sa >= DENSE {
            return self.others.entry(sa).or_default();
        }
        let place = sa as usize;
        if place >= self.dense.len() {
            self.dense.resize(place + 1, Sa::default());
        }
        &mut self.dense[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of packets of one SA that leave in this order.
    fn of(leaving: &[u32], sa: u32, first: u32) -> OrderFigures {
        let mut order = Order::default();
        *order.of(sa) = Sa { next: first, left: first };
        for _ in leaving {
            order.arrive(sa);
        }
        leaving.iter().for_each(|number| order.leave(sa, first.wrapping_add(*number), true));
        order.figures(leaving.len() as u64)
    }

    #[test]
    fn a_packet_is_late_behind_a_later_one_of_its_sa() {
        for sa in [0, 70_000] {
            // The numbers wrap in between.
            for first in [0, u32::MAX - 1] {
                let found = of(&[2, 0, 3, 1, 4], sa, first);
                assert_eq!((found.late, found.distance_max), (2, 2), "{sa} {first}");
                assert_eq!((found.late_share, found.beyond_64_share), (0.4, 0.0));
            }
        }
        let mut order = Order::default();
        // Two SAs whose packets leave in turn, each in its order.
        let numbers: Vec<u32> = [5, 9, 5, 9].iter().map(|&sa| order.arrive(sa)).collect();
        assert_eq!(numbers, [0, 0, 1, 1]);
        [(9, 0), (5, 0), (9, 1), (5, 1)].iter().for_each(|&(sa, number)| order.leave(sa, number, true));
        assert_eq!(order.figures(4).late, 0);
    }

    #[test]
    fn a_window_of_64_takes_a_packet_63_behind_and_none_64_behind() {
        for (last, beyond) in [(63, 0.0), (64, 1.0 / 65.0)] {
            let leaving: Vec<u32> = (1..=last).chain([0]).collect();
            let found = of(&leaving, 0, 0);
            assert_eq!((found.late, found.distance_max), (1, last));
            assert_eq!(found.beyond_64_share, beyond);
        }
    }

    #[test]
    fn what_is_turned_away_or_does_not_count_is_in_no_figure() {
        let mut order = Order::default();
        assert_eq!((order.arrive(1), order.arrive(1)), (0, 1));
        order.turn_away(1);
        assert_eq!(order.arrive(1), 1);
        order.leave(1, 1, true);
        order.leave(1, 0, false);
        assert_eq!(order.figures(1), OrderFigures::default());
    }
}
