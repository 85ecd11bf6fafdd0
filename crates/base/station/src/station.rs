//! What one processor holds: queue, places ahead, unit, write buffer.

use std::collections::VecDeque;

use forebay_time::{Duration, Time};

use crate::bus::Speed;

/// The figures of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationConfig {
    /// The bus it stands behind; `None`: a core, which needs none.
    pub bus: Option<usize>,
    /// w: finished jobs that wait for the bus, or cross it, while the next one is computed.
    pub write_buffer: usize,
    /// k: jobs fetched ahead while the unit is not idle.
    pub prefetch: usize,
    /// From submission to the processor's notice of it; delays a job but occupies nothing.
    pub doorbell: Duration,
    /// What an idle processor, one without any job, needs besides to begin with what is submitted; zero in
    /// the papers.
    pub wake: Duration,
}

/// A job as the processor sees it, with the data that its driver needs when it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work<T> {
    /// Bytes over the bus, each way.
    pub bytes: u64,
    /// t_enc.
    pub time: Duration,
    /// The driver's, not looked at.
    pub tag: T,
}

/// A job on its way through a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<T> {
    pub(crate) work: Work<T>,
    /// t_bus of its fetch, which brings its followers too.
    pub(crate) inward: Duration,
    /// t_bus of its write-back.
    pub(crate) outward: Duration,
    /// Jobs behind it that were submitted with it and are fetched with it; none for those themselves.
    pub(crate) followers: u32,
    /// Whether it is fetched with one before it.
    pub(crate) follows: bool,
}

/// A doorbell on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) at: Time,
    /// That of its event.
    pub(crate) number: u64,
    /// The jobs that it announces.
    pub(crate) jobs: usize,
}

/// Where a processor meets its bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) speed: Speed,
    /// The lines that its fetches and its write-backs take.
    pub(crate) inward: usize,
    pub(crate) outward: usize,
}

/// The compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Idle,
    Computing,
    /// Blocked: the finished job waits for a place in the write buffer, or, where there is none,
    /// for the end of its write-back.
    Finished,
}

/// One processor. Its jobs go through it in order, so they stay where they are in one queue and only
/// the borders between them move:
///
/// ```text
/// front [ buffered | unit | ahead | fetching | waiting ] back
/// ```
#[derive(Debug)]
pub(crate) struct Station<T> {
    pub(crate) config: StationConfig,
    /// `None`: a core.
    pub(crate) port: Option<Port>,
    pub(crate) jobs: VecDeque<Held<T>>,
    /// Finished jobs; each keeps its place until its write-back has ended.
    pub(crate) buffered: usize,
    pub(crate) unit: Unit,
    /// When the unit's last job was or will be computed.
    pub(crate) until: Time,
    /// Jobs fetched and not begun, and how many of them are no followers: the submissions that `prefetch` limits.
    pub(crate) ahead: usize,
    pub(crate) ahead_leaders: usize,
    /// Jobs of the fetch that is requested or in progress, of which there is at most one; 0 if there is none.
    pub(crate) fetching: usize,
    /// Whether a write-back is requested or in progress, of which there is at most one.
    pub(crate) writing: bool,
    /// How many of the waiting jobs, from the front, the processor has been notified of.
    pub(crate) heard: usize,
    /// When it is notified of the others.
    pub(crate) bells: VecDeque<Ring>,
}

impl<T: Copy> Station<T> {
    pub(crate) fn new(config: StationConfig, port: Option<Port>) -> Station<T> {
        Station {
            config,
            port,
            jobs: VecDeque::new(),
            buffered: 0,
            unit: Unit::Idle,
            until: Time::ZERO,
            ahead: 0,
            ahead_leaders: 0,
            fetching: 0,
            writing: false,
            heard: 0,
            bells: VecDeque::new(),
        }
    }

    /// Where the oldest job stands that has not begun to be computed.
    #[inline]
    fn unbegun(&self) -> usize {
        self.buffered + usize::from(self.unit != Unit::Idle)
    }

    /// Where the oldest waiting job stands.
    #[inline]
    pub(crate) fn first_waiting(&self) -> usize {
        self.unbegun() + self.ahead + self.fetching
    }

    /// Jobs submitted and not yet taken.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.len() - self.first_waiting()
    }

    /// Whether the next job may be fetched: into the unit, or ahead.
    #[inline]
    pub(crate) fn may_fetch(&self) -> bool {
        self.fetching == 0 && (self.unit == Unit::Idle || self.ahead_leaders < self.config.prefetch)
    }

    /// Moves a finished job out of the unit if the write buffer has a place for it.
    #[inline]
    pub(crate) fn unblock(&mut self) {
        if self.unit == Unit::Finished && self.buffered < self.config.write_buffer {
            self.buffered += 1;
            self.unit = Unit::Idle;
        }
    }

    /// Begins a fetched job if the unit is idle; returns when it will be computed.
    #[inline]
    pub(crate) fn start(&mut self, now: Time) -> Option<Time> {
        if self.unit != Unit::Idle || self.ahead == 0 {
            return None;
        }
        let job = &self.jobs[self.buffered];
        self.ahead -= 1;
        self.ahead_leaders -= usize::from(!job.follows);
        self.unit = Unit::Computing;
        self.until = now + job.work.time;
        Some(self.until)
    }

    /// Takes the next job, with its followers, out of the queue if it may be fetched; returns its t_bus.
    #[inline]
    pub(crate) fn ask_fetch(&mut self) -> Option<Duration> {
        if self.heard == 0 || !self.may_fetch() {
            return None;
        }
        let Held { inward, followers, .. } = self.jobs[self.first_waiting()];
        self.fetching = 1 + followers as usize;
        self.heard -= self.fetching;
        Some(inward)
    }

    /// The t_bus of the oldest finished job if its write-back is still to be asked for.
    #[inline]
    pub(crate) fn ask_write_back(&mut self) -> Option<Duration> {
        let unbuffered = self.config.write_buffer == 0 && self.unit == Unit::Finished;
        if self.writing || (self.buffered == 0 && !unbuffered) {
            return None;
        }
        self.writing = true;
        Some(self.jobs[0].outward)
    }

    /// The unit's job is computed; whether it leaves: not before it is written back, where there is a bus.
    #[inline]
    pub(crate) fn computed(&mut self) -> bool {
        let leaves = self.port.is_none();
        self.unit = if leaves { Unit::Idle } else { Unit::Finished };
        leaves
    }

    /// A fetch has ended. Also where there is no place ahead: an idle unit begins it at once.
    #[inline]
    pub(crate) fn fetched(&mut self) {
        self.ahead += self.fetching;
        self.ahead_leaders += 1;
        self.fetching = 0;
    }

    /// A write-back has ended: the job's place is free.
    #[inline]
    pub(crate) fn written_back(&mut self) {
        self.writing = false;
        match self.buffered {
            0 => self.unit = Unit::Idle,
            _ => self.buffered -= 1,
        }
    }

    /// The oldest job leaves.
    #[inline]
    pub(crate) fn leave(&mut self) -> Work<T> {
        self.jobs.pop_front().expect("a job that ends was there").work
    }

    /// A core takes its next job and begins it if it is idle; returns when it will be computed.
    #[inline]
    pub(crate) fn take(&mut self, now: Time) -> Option<Time> {
        if self.unit != Unit::Idle || self.heard == 0 {
            return None;
        }
        self.heard -= 1;
        self.unit = Unit::Computing;
        self.until = now + self.jobs[0].work.time;
        Some(self.until)
    }
}
