//! Packets leave in the order in which they came, those of each SA.

use std::collections::{HashMap, VecDeque};

use forebay_time::{Duration, Time};

use crate::latencies::Latencies;

/// Packets of all SAs that have been taken and not released.
#[derive(Debug)]
pub(crate) struct Reorder {
    sas: HashMap<u32, Queue>,
    /// By the place of a packet: its SA, and its number there.
    packets: Vec<(u32, u64)>,
    /// From completion to release, and from arrival to release.
    pub(crate) latencies: Latencies,
}

/// The packets of an SA in the order in which they were taken.
#[derive(Debug, Default)]
struct Queue {
    /// The first one's number.
    first: u64,
    waiting: VecDeque<Option<Done>>,
}

/// A packet that is complete.
#[derive(Clone, Copy, Debug)]
struct Done {
    arrived: Time,
    completed: Time,
    counts: bool,
}

impl Reorder {
    pub(crate) fn new(latencies: Latencies) -> Reorder {
        Reorder { sas: HashMap::new(), packets: Vec::new(), latencies }
    }

    /// The packet at a place is the next one of an SA.
    pub(crate) fn admit(&mut self, place: usize, sa: u32) {
        let queue = self.sas.entry(sa).or_default();
        if place >= self.packets.len() {
            self.packets.resize(place + 1, (0, 0));
        }
        self.packets[place] = (sa, queue.first + queue.waiting.len() as u64);
        queue.waiting.push_back(None);
    }

    /// The packet at a place, the last one of its SA, is turned away.
    pub(crate) fn turn_away(&mut self, place: usize) {
        if let Some(queue) = self.sas.get_mut(&self.packets[place].0) {
            queue.waiting.pop_back();
        }
    }

    /// The packet at a place is complete now; `counts`: it counts in the figures. It is released with those behind
    /// it that waited for it, or when the last one before it is complete.
    pub(crate) fn complete(&mut self, place: usize, arrived: Time, now: Time, counts: bool) {
        let (sa, number) = self.packets[place];
        let Some(queue) = self.sas.get_mut(&sa) else { return };
        queue.waiting[(number - queue.first) as usize] = Some(Done { arrived, completed: now, counts });
        while let Some(&Some(done)) = queue.waiting.front() {
            queue.waiting.pop_front();
            queue.first += 1;
            if done.counts {
                let Duration(held) = now.since(done.completed);
                self.latencies.add(held, now.since(done.arrived).0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latencies::{Which, latency};

    #[test]
    fn packets_wait_for_those_before_them_of_their_sa_only() {
        let mut reorder = Reorder::new(Latencies::new(Some(0)));
        for (place, sa) in [(0, 7), (1, 7), (2, 9), (3, 7)] {
            reorder.admit(place, sa);
        }
        let mut complete = |place, now| reorder.complete(place, Time(10), Time(now), place != 3);
        complete(1, 100); // held until 300
        complete(2, 200); // not held
        complete(0, 300); // not held
        complete(3, 400); // does not count
        let of = |which| latency(&[&reorder.latencies], which).mean_s * 3e12;
        assert!((of(Which::Processing) - 200.0).abs() < 1e-6);
        assert!((of(Which::Total) - (290.0 + 190.0 + 290.0)).abs() < 1e-6);
        assert!(reorder.sas.values().all(|queue| queue.waiting.is_empty()));
    }
}
