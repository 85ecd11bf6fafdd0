//! The order of release.

use forebay_planted::{Fault, planted};

/// Which packets are released in the order in which they were admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The packets of an SA: what IPsec needs.
    PerSa,
    /// All packets: what a file needs.
    Total,
}

/// A queue per domain of order; a packet leaves when it is first and done.
///
/// The queues are chained through one table of all slots, so that memory is set aside once,
/// however the packets are spread over the SAs.
#[derive(Debug)]
pub struct ReorderBuffer {
    order: Order,
    queues: Vec<Ends>,
    /// By slot: the one behind it in its queue.
    behind: Vec<u32>,
}

/// First and last of a queue.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

impl ReorderBuffer {
    pub fn new(order: Order, sas: usize, packets: usize) -> ReorderBuffer {
        let domains = if order == Order::PerSa { sas } else { 1 };
        let queues = vec![Ends { first: NONE, last: NONE }; domains];
        ReorderBuffer { order, queues, behind: vec![NONE; packets] }
    }

    /// Whether all packets keep their order.
    pub fn is_total(&self) -> bool {
        self.order == Order::Total
    }

    /// Makes room for the queue of one more SA.
    pub fn open(&mut self, session: u32) {
        let domain = self.domain(session);
        if domain >= self.queues.len() {
            self.queues.resize(domain + 1, Ends { first: NONE, last: NONE });
        }
    }

    #[inline]
    fn domain(&self, session: u32) -> usize {
        if self.order == Order::PerSa { session as usize } else { 0 }
    }

    #[inline]
    pub fn admit(&mut self, session: u32, slot: u32) {
        if planted(Fault::OrderLost) {
            return self.put_back(session, slot);
        }
        let domain = self.domain(session);
        let ends = &mut self.queues[domain];
        match ends.first {
            NONE => ends.first = slot,
            _ => self.behind[ends.last as usize] = slot,
        }
        ends.last = slot;
        self.behind[slot as usize] = NONE;
    }

    /// Puts a slot right behind another of the domain that `session` is in.
    pub fn admit_behind(&mut self, session: u32, before: u32, slot: u32) {
        let domain = self.domain(session);
        let ends = &mut self.queues[domain];
        self.behind[slot as usize] = std::mem::replace(&mut self.behind[before as usize], slot);
        if ends.last == before {
            ends.last = slot;
        }
    }

    /// Moves the first slot of one SA behind those of another, whose job is its next; in total order it
    /// keeps its place, and those behind it wait.
    pub fn go_on(&mut self, from: u32, to: u32, slot: u32) {
        if self.order == Order::PerSa {
            self.release(from);
            self.admit(to, slot);
        }
    }

    /// The slot that must leave before any other of the domain that `session` is in.
    #[inline]
    pub fn first(&self, session: u32) -> Option<u32> {
        let first = self.queues[self.domain(session)].first;
        (first != NONE).then_some(first)
    }

    /// Puts a slot that has left back in front of its queue.
    pub fn put_back(&mut self, session: u32, slot: u32) {
        let domain = self.domain(session);
        let ends = &mut self.queues[domain];
        self.behind[slot as usize] = ends.first;
        if ends.first == NONE {
            ends.last = slot;
        }
        ends.first = slot;
    }

    /// Releases slots from the front of a queue as long as `leaves` says so of them.
    #[inline]
    pub fn release_while(&mut self, session: u32, mut leaves: impl FnMut(u32) -> bool) {
        let domain = self.domain(session);
        let mut first = self.queues[domain].first;
        while first != NONE && leaves(first) {
            first = self.behind[first as usize];
        }
        self.queues[domain].first = first;
    }

    #[inline]
    pub fn release(&mut self, session: u32) {
        let domain = self.domain(session);
        let first = self.queues[domain].first;
        self.queues[domain].first = self.behind[first as usize];
    }
}
