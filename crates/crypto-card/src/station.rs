//! What one card of the model holds: queue, prefetch places, compute unit, write buffer.

use std::collections::VecDeque;

use forebay_time::{Duration, Time};

use crate::CardConfig;

/// A submission as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Bytes over the bus, each way.
    pub(crate) bytes: u64,
    /// t_enc.
    pub(crate) time: Duration,
    /// When the card has heard the doorbell.
    pub(crate) rung: Time,
}

/// The compute unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Idle,
    Computing {
        work: Work,
        until: Time,
    },
    /// Blocked: the finished submission waits for a place in the write buffer, or, where there is
    /// none, for the end of its write-back.
    Finished(Work),
}

/// A way over the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Fetch,
    WriteBack,
}

/// One card. Submissions go through it in order:
///
/// ```text
/// waiting -> fetching -> prefetched -> unit -> write_buffer -> delivered
/// ```
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) doorbell: Duration,
    queue: usize,
    prefetch_places: usize,
    write_places: usize,
    /// Submitted and not yet asked the bus for; of these, how many at the front the card has heard of.
    pub(crate) waiting: VecDeque<Work>,
    pub(crate) heard: usize,
    /// The submission whose fetch is asked for or under way, at most one.
    pub(crate) fetching: Option<Work>,
    pub(crate) prefetched: VecDeque<Work>,
    pub(crate) unit: Unit,
    /// Finished submissions; each keeps its place until its write-back has ended.
    pub(crate) write_buffer: VecDeque<Work>,
    /// Whether a write-back is asked for or under way, at most one.
    pub(crate) writing: bool,
    /// When each submission that has not been collected was written back.
    pub(crate) delivered: VecDeque<Time>,
}

impl Station {
    pub(crate) fn new(config: &CardConfig) -> Station {
        Station {
            doorbell: config.doorbell,
            queue: config.queue,
            prefetch_places: config.prefetch,
            write_places: config.write_buffer,
            waiting: VecDeque::new(),
            heard: 0,
            fetching: None,
            prefetched: VecDeque::new(),
            unit: Unit::Idle,
            write_buffer: VecDeque::new(),
            writing: false,
            delivered: VecDeque::new(),
        }
    }

    /// Whether one more submission is taken: into the queue, or past an empty one.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < self.queue || (self.waiting.is_empty() && self.may_fetch())
    }

    /// Whether the next submission may be fetched: into the unit, or ahead.
    fn may_fetch(&self) -> bool {
        let idle = matches!(self.unit, Unit::Idle);
        self.fetching.is_none() && (idle || self.prefetched.len() < self.prefetch_places)
    }

    /// Moves a finished submission out of the unit if the write buffer has a place for it.
    pub(crate) fn unblock(&mut self) {
        if let Unit::Finished(work) = self.unit
            && self.write_buffer.len() < self.write_places
        {
            self.write_buffer.push_back(work);
            self.unit = Unit::Idle;
        }
    }

    /// Starts a prefetched submission if the unit is idle; returns when it will be computed.
    pub(crate) fn start(&mut self, now: Time) -> Option<Time> {
        if !matches!(self.unit, Unit::Idle) {
            return None;
        }
        let work = self.prefetched.pop_front()?;
        let until = now + work.time;
        self.unit = Unit::Computing { work, until };
        Some(until)
    }

    /// Takes the next submission out of the queue if it may be fetched; returns its bytes.
    pub(crate) fn ask_fetch(&mut self) -> Option<u64> {
        if self.heard == 0 || !self.may_fetch() {
            return None;
        }
        self.fetching = self.waiting.pop_front();
        self.heard -= 1;
        self.fetching.map(|work| work.bytes)
    }

    /// The bytes of the oldest finished submission if its write-back is still to be asked for.
    pub(crate) fn ask_write_back(&mut self) -> Option<u64> {
        if self.writing {
            return None;
        }
        let work = match self.unit {
            Unit::Finished(work) if self.write_places == 0 => work,
            _ => *self.write_buffer.front()?,
        };
        self.writing = true;
        Some(work.bytes)
    }

    /// A fetch has ended.
    pub(crate) fn fetched(&mut self) {
        // Also where there is no prefetch place: an idle unit takes it out again at once.
        self.prefetched.extend(self.fetching.take());
    }

    /// The unit has finished computing.
    pub(crate) fn computed(&mut self) {
        if let Unit::Computing { work, .. } = self.unit {
            self.unit = Unit::Finished(work);
        }
    }

    /// A write-back has ended: the submission leaves.
    pub(crate) fn written_back(&mut self, now: Time) {
        self.writing = false;
        if self.write_buffer.pop_front().is_none() {
            self.unit = Unit::Idle;
        }
        self.delivered.push_back(now);
    }
}
