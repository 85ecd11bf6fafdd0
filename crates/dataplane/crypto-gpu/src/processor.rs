//! A device as a [`Processor`]: jobs are gathered in slots, each slot is one launch.
//!
//! A submission is launched at once while the device has little to do. When all but one of the slots are in flight, the last
//! one is filled by further submissions until a launch ends: the busier the device, the larger its batches.

use forebay_crypto::{Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Verdict};
use forebay_time::{Duration, Time};
use zeroize::Zeroizing;

use crate::keys::{RECORD_LEN, record};
use crate::pack::{Added, Batch, Session, sizes};
use crate::runtime::{Lost, Runtime, Sizes};

/// Most sessions one processor keeps: bounds the table against a runaway number.
const MAX_SESSIONS: usize = 1 << 20;
/// Records that may be on their way to the device: bounds what a device that hangs makes the host keep.
const MAX_WRITING: usize = 1 << 14;
/// Polls for the launches that are still in flight when a processor is closed, at most, and the time between them: two seconds
/// in all.
const DRAIN_POLLS: usize = 20_000;
const DRAIN_PAUSE: std::time::Duration = std::time::Duration::from_micros(100);
/// Slots: with two, copies overlap with kernels; more let small launches run side by side.
const SLOTS: std::ops::RangeInclusive<usize> = 2..=16;

/// What a processor is made with besides its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets of a launch, at most.
    pub batch: usize,
    /// Most jobs between submit and poll.
    pub queue: usize,
    /// Most sessions.
    pub sessions: usize,
    /// After this time a launch counts as hung.
    pub timeout: Duration,
}

impl Limits {
    /// The buffers that a device needs.
    pub fn sizes(&self) -> Sizes {
        let slots = self.queue.div_ceil(self.batch.max(1)).clamp(*SLOTS.start(), *SLOTS.end());
        sizes(self.batch.max(1), slots, self.sessions.clamp(1, MAX_SESSIONS))
    }
}

/// A device.
pub struct Gpu {
    name: String,
    /// `None` once the processor is dropped.
    runtime: Option<Box<dyn Runtime>>,
    limits: Limits,
    sizes: Sizes,
    capabilities: Capabilities,
    sessions: Vec<Option<Session>>,
    /// Records that no session has.
    records: Vec<u32>,
    /// Records of closed sessions, and the last launch that may use each.
    closed: Vec<(u64, u32)>,
    slots: Vec<Slot>,
    /// The slot that is being filled.
    filling: Option<usize>,
    /// Number of the next launch.
    next: u64,
    /// Jobs in slots.
    held: usize,
    /// Jobs with a verdict that the device does not get.
    settled: Vec<Job>,
    /// Why the device does nothing any more.
    lost: Option<Lost>,
}

#[derive(Default)]
struct Slot {
    batch: Batch,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Free, or being filled.
    #[default]
    Idle,
    /// In flight: number of the launch, and since when.
    Flying(u64, Time),
    /// Its jobs were answered as failed, and the device may still write.
    Hung(u64),
}

impl Gpu {
    /// A processor on a device whose buffers are as `limits` ask.
    pub fn new(name: &str, runtime: Box<dyn Runtime>, limits: Limits) -> Gpu {
        let sizes = limits.sizes();
        Gpu {
            name: name.to_owned(),
            runtime: Some(runtime),
            capabilities: Capabilities {
                suites: crate::suites(),
                best_burst: limits.batch,
                queue: limits.queue,
            },
            sessions: Vec::new(),
            records: (0..sizes.records as u32).rev().collect(),
            closed: Vec::new(),
            slots: (0..sizes.slots).map(|_| Slot::default()).collect(),
            filling: None,
            next: 0,
            held: 0,
            settled: Vec::new(),
            lost: None,
            limits,
            sizes,
        }
    }

    fn runtime(&mut self) -> &mut dyn Runtime {
        &mut **self.runtime.as_mut().expect("it is taken only when the processor is dropped")
    }

    /// The slot to be filled, if one is free.
    fn slot(&mut self) -> Option<usize> {
        let is_free = |slot: &Slot| slot.state == State::Idle;
        self.filling = self.filling.or_else(|| self.slots.iter().position(is_free));
        self.filling
    }

    fn flying(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot.state, State::Flying(..))).count()
    }

    /// Launches the slot that is being filled.
    fn launch(&mut self, now: Time) {
        let Some(index) = self.filling.take_if(|index| self.slots[*index].batch.len() > 0) else { return };
        let runtime = self.runtime.as_mut().expect("as in `runtime`");
        let launch = self.slots[index].batch.close(runtime.input(index));
        self.slots[index].state = State::Flying(self.next, now);
        self.next += 1;
        if let Err(lost) = runtime.launch(index, &launch) {
            self.lose(lost);
        }
    }

    /// Launches what is there unless the device has enough to do.
    fn launch_if_idle(&mut self, now: Time) {
        if self.flying() + 1 < self.slots.len() {
            self.launch(now);
        }
    }

    /// Gives the device up, and all that it has.
    fn lose(&mut self, lost: Lost) {
        for slot in &mut self.slots {
            if let State::Flying(number, _) = slot.state {
                slot.state = State::Hung(number);
            }
            slot.batch.fail(&mut self.settled);
        }
        (self.filling, self.held) = (None, 0);
        self.lost.get_or_insert(lost);
    }

    /// Looks whether a slot's launch has ended, or has hung.
    fn look(&mut self, index: usize, now: Time, done: &mut Vec<Job>) -> Result<(), Lost> {
        let state = self.slots[index].state;
        if state == State::Idle {
            return Ok(());
        }
        let is_done = self.runtime().is_done(index)?;
        let slot = &mut self.slots[index];
        match state {
            State::Flying(..) if is_done => {
                self.held -= slot.batch.len();
                let runtime = self.runtime.as_ref().expect("as in `runtime`");
                slot.batch.finish(runtime.output(index), done);
                slot.state = State::Idle;
            }
            State::Flying(number, since) if now.since(since) > self.limits.timeout => {
                self.held -= slot.batch.len();
                slot.batch.fail(done);
                slot.state = State::Hung(number);
            }
            State::Hung(_) if is_done => slot.state = State::Idle,
            _ => {}
        }
        Ok(())
    }

    /// Wipes records of closed sessions that no launch uses any more.
    fn wipe_closed(&mut self) -> Result<(), Lost> {
        if self.closed.is_empty() {
            return Ok(());
        }
        let numbers = self.slots.iter().map(|slot| match slot.state {
            State::Flying(number, _) | State::Hung(number) => number,
            State::Idle => self.next,
        });
        let oldest = numbers.min().unwrap_or(self.next);
        // What is being filled is the next launch.
        let is_filling = self.filling.is_some_and(|index| self.slots[index].batch.len() > 0);
        let unused = if is_filling { oldest } else { oldest.saturating_add(u64::from(oldest == self.next)) };
        let mut at = 0;
        while at < self.closed.len() && self.runtime().writing() < MAX_WRITING {
            if self.closed[at].0 >= unused {
                at += 1;
                continue;
            }
            let (_, record) = self.closed.swap_remove(at);
            self.runtime().write_record(record, Zeroizing::new([0; RECORD_LEN]))?;
            self.records.push(record);
        }
        Ok(())
    }

    fn try_open(&mut self, id: SessionId, keys: &SaKeys, direction: Direction) -> Result<(), SessionError> {
        let failed = |lost: &Lost| SessionError::Backend(lost.to_string());
        if let Some(lost) = &self.lost {
            return Err(failed(lost));
        }
        if self.runtime().writing() >= MAX_WRITING {
            return Err(SessionError::TableFull);
        }
        let number = self.records.pop().ok_or(SessionError::TableFull)?;
        if let Err(lost) = self.runtime().write_record(number, record(keys)) {
            let error = failed(&lost);
            self.lose(lost);
            return Err(error);
        }
        let index = id.0 as usize;
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some(Session { suite: keys.suite(), direction, record: number });
        Ok(())
    }

    /// Puts a job into a slot; gives it back if there is no room.
    fn take(&mut self, job: Job, now: Time) -> Option<Job> {
        let mut job = job;
        let session = self.sessions.get(job.spec.session.0 as usize).copied().flatten();
        let (None, Some(session)) = (&self.lost, session) else {
            job.verdict = Verdict::Failed;
            self.settled.push(job);
            return None;
        };
        loop {
            let room = self.held < self.limits.queue;
            let Some(index) = self.slot().filter(|_| room) else { return Some(job) };
            let runtime = self.runtime.as_mut().expect("as in `runtime`");
            let batch = &mut self.slots[index].batch;
            let added = match batch.len() < self.limits.batch {
                true => batch.add(&session, job, runtime.input(index), &self.sizes),
                false => Added::Full(job),
            };
            match added {
                Added::Taken => {
                    self.held += 1;
                    return None;
                }
                Added::Settled(job) => {
                    self.settled.push(job);
                    return None;
                }
                Added::Full(left) => {
                    job = left;
                    self.launch(now);
                    if self.lost.is_some() {
                        job.verdict = Verdict::Failed;
                        self.settled.push(job);
                        return None;
                    }
                }
            }
        }
    }
}

impl Processor for Gpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        if !self.capabilities.has(keys.suite()) {
            return Err(SessionError::Unsupported(keys.suite()));
        }
        if id.0 as usize >= MAX_SESSIONS {
            return Err(SessionError::TableFull);
        }
        self.close_session(id);
        self.try_open(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id.0 as usize).and_then(Option::take) else { return };
        // A launch in flight may use it, and so may the next one, which is being filled.
        self.closed.push((self.next, session.record));
        if self.lost.is_none()
            && let Err(lost) = self.wipe_closed()
        {
            self.lose(lost);
        }
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        let mut taken = 0;
        for place in jobs.iter_mut() {
            if let Some(left) = self.take(std::mem::take(place), now) {
                *place = left;
                break;
            }
            taken += 1;
        }
        jobs.drain(..taken);
        self.launch_if_idle(now);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        for index in 0..self.slots.len() {
            if self.lost.is_some() {
                break;
            }
            if let Err(lost) = self.look(index, now, done) {
                self.lose(lost);
            }
        }
        if self.lost.is_none() {
            self.launch_if_idle(now);
            if let Err(lost) = self.wipe_closed() {
                self.lose(lost);
            }
        }
        done.append(&mut self.settled);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let Some(mut runtime) = self.runtime.take() else { return };
        let mut flying: Vec<usize> = (0..self.slots.len()).collect();
        flying.retain(|&index| self.slots[index].state != State::Idle);
        for poll in 0..DRAIN_POLLS {
            flying.retain(|&index| !matches!(runtime.is_done(index), Ok(true)));
            if self.lost.is_some() || flying.is_empty() {
                break;
            }
            if poll > 0 {
                #[allow(
                    clippy::disallowed_methods,
                    reason = "nothing else is done by then, and the wait is bounded"
                )]
                std::thread::sleep(DRAIN_PAUSE);
            }
        }
        if self.lost.is_none() && flying.is_empty() && runtime.wipe().is_ok() {
            return;
        }
        // A device that answers no more may still write: its buffers are never used again.
        std::mem::forget(runtime);
    }
}
