//! The input and output of the scheduler.

use forebay_time::{Duration, Time};

pub(crate) use crate::cost::Work;

/// A packet that needs crypto, as much of it as placement looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The driver's name for it, not looked at.
    pub id: u64,
    /// Security association: packets with the same number may be bundled.
    pub sa: u32,
    /// Service class, a number of [`crate::Config::classes`]; one beyond them counts as the last. Packets
    /// of one SA keep their order within a class only.
    pub class: u8,
    /// Suite: its bit in [`crate::ProcessorConfig::suites`], below 64, the same for all packets of an SA.
    pub suite: u8,
    /// Bytes the crypto covers.
    pub bytes: u32,
}

/// Properties of a job besides the ids of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobHead {
    /// Security association of all its packets.
    pub sa: u32,
    /// Service class of its first packet.
    pub class: u8,
    /// Suite, a bit index.
    pub suite: u8,
    /// Its work for a processor.
    pub work: Work,
    /// When its first packet was pushed.
    pub arrived: Time,
}

/// One packet, or several of one SA, that go to a processor together (a multi-packet, \[S\] III-B).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// SA, suite, work.
    pub head: JobHead,
    items: Vec<u64>,
    /// Of a share of a burst the work of each of its jobs.
    parts: Vec<Work>,
}

impl Job {
    pub(crate) fn with_capacity(packets: usize) -> Job {
        let head = JobHead { sa: 0, class: 0, suite: 0, work: Work::default(), arrived: Time::ZERO };
        Job { head, items: Vec::with_capacity(packets), parts: Vec::new() }
    }

    /// The ids of its packets, in the order in which they came.
    #[inline]
    pub fn items(&self) -> &[u64] {
        &self.items
    }

    /// The work of each of its jobs: of one, or of several that are placed together ([`crate::Config::batch`]).
    pub fn parts(&self) -> &[Work] {
        if self.parts.is_empty() { std::slice::from_ref(&self.head.work) } else { &self.parts }
    }

    /// Makes it a share of a burst.
    pub(crate) fn fill(&mut self, head: JobHead, items: &[u64], parts: impl Iterator<Item = Work>) {
        self.copy_from(head, items);
        self.parts.clear();
        self.parts.extend(parts);
    }

    /// Empties the job and makes `item` its first packet.
    #[inline]
    pub(crate) fn begin(&mut self, item: &Item, arrived: Time) {
        self.items.clear();
        self.items.push(item.id);
        let work = Work::packet(item.bytes);
        self.head = JobHead { sa: item.sa, class: item.class, suite: item.suite, work, arrived };
    }

    /// Adds a further packet.
    #[inline]
    pub(crate) fn add(&mut self, item: &Item) {
        self.items.push(item.id);
        self.head.work.add_packet(item.bytes);
    }

    /// Makes the job a copy of another, keeping its memory.
    pub(crate) fn copy_from(&mut self, head: JobHead, items: &[u64]) {
        self.head = head;
        self.items.clear();
        self.items.extend_from_slice(items);
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.items.capacity()
    }
}

/// When a job is expected to be served, without the factors that only steer the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// When it was made: the instant of the dispatch.
    pub at: Time,
    /// Waiting time w_i on the processor (\[H\] eq 2).
    pub wait: Duration,
    /// Processing time p_i on the processor (\[H\] eq 13).
    pub service: Duration,
}

impl Prediction {
    /// When its service should begin.
    #[inline]
    pub fn start(&self) -> Time {
        self.at + self.wait
    }

    /// When its service should end (\[H\] eq 5, as a point in time).
    #[inline]
    pub fn finish(&self) -> Time {
        self.start() + self.service
    }
}
