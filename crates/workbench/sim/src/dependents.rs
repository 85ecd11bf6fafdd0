//! Packets that need the result of another job, where they wait for it (\[H\] 3.2.1: "schedule a packet only when all data that
//! are needed are available").
//!
//! A packet of a dependent SA stays before the scheduler's input while one before it is not done, and a packet with several
//! passes comes to the end of the input again when a pass is done.

use std::collections::{HashMap, VecDeque};

use forebay_scheduler::Item;
use forebay_time::Time;

use crate::scenario::{Dependent, Scenario};

/// Packets that wait for others, and what is still to be done with those in flight.
pub(crate) struct Dependents {
    /// SAs with numbers below depend on themselves.
    sas: u32,
    /// The suites of all passes; empty: one pass.
    passes: Vec<u8>,
    /// By dependent SA of which a packet is in flight: those behind it.
    behind: HashMap<u32, VecDeque<Item>>,
    /// By id.
    packets: Vec<Packet>,
}

#[derive(Clone, Copy)]
struct Packet {
    item: Item,
    /// Passes that are done.
    done: usize,
    /// When the processor of its first pass was chosen.
    chosen: Time,
}

/// What follows from a job's end.
pub(crate) enum Then {
    /// The packet needs another pass.
    Again(Item),
    /// It is complete, and the one behind it, if there is one, may be placed.
    Complete(Option<Item>),
}

impl Dependents {
    /// None if no packet waits for another job.
    pub(crate) fn of(scenario: &Scenario) -> Option<Box<Dependents>> {
        let (sas, passes) = (scenario.traffic.dependent_sas, scenario.traffic.passes.clone());
        let waits = scenario.scheduler.dependent == Dependent::WhenReady && (sas > 0 || !passes.is_empty());
        waits.then(|| Box::new(Dependents { sas, passes, behind: HashMap::new(), packets: Vec::new() }))
    }

    /// A packet comes; returned if it may be placed.
    pub(crate) fn arrive(&mut self, item: Item) -> Option<Item> {
        let id = item.id as usize;
        let packet = Packet { item, done: 0, chosen: Time::MAX };
        if id >= self.packets.len() {
            self.packets.resize(id + 1, packet);
        }
        self.packets[id] = packet;
        if item.sa >= self.sas {
            return Some(item);
        }
        match self.behind.get_mut(&item.sa) {
            Some(behind) => {
                behind.push_back(item);
                None
            }
            None => {
                self.behind.insert(item.sa, VecDeque::new());
                Some(item)
            }
        }
    }

    /// A processor was chosen for a packet; returns when that was for its first pass.
    pub(crate) fn choose(&mut self, id: u64, chosen: Time) -> Time {
        let packet = &mut self.packets[id as usize];
        packet.chosen = packet.chosen.min(chosen);
        packet.chosen
    }

    /// The job of a packet is done.
    pub(crate) fn finish(&mut self, id: u64) -> Then {
        let packet = &mut self.packets[id as usize];
        packet.done += 1;
        if let Some(&suite) = self.passes.get(packet.done) {
            return Then::Again(Item { suite, ..packet.item });
        }
        let sa = packet.item.sa;
        let next = self.behind.get_mut(&sa).and_then(VecDeque::pop_front);
        if next.is_none() {
            self.behind.remove(&sa);
        }
        Then::Complete(next)
    }

    /// Whether a processor's event may let a packet go.
    pub(crate) fn any(&self) -> bool {
        !self.passes.is_empty() || !self.behind.is_empty()
    }
}
