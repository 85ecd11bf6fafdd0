//! A queue pair as a [`Processor`]: software devices work on packets where they are, others on copies.

use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys as sys;
use forebay_crypto::{
    Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Suite, Verdict,
};
use forebay_time::Time;

use crate::batches::{Batches, Place, runs};
use crate::device::Device;
use crate::session::{Algorithms, Session};
use crate::{Config, Unavailable};

/// Most sessions one processor keeps: bounds the table against a runaway number.
const MAX_SESSIONS: usize = 1 << 20;
/// Longest part of a packet that is copied for a device, in bytes: jumbo frames, and what ESP adds.
const LONGEST: usize = 10_240;
/// Longest part of a packet that a device works on where it is, in bytes: DPDK's buffers count in 16 bits.
const LONGEST_IN_PLACE: usize = 65_000;
/// Polls for the jobs that a queue still has when it is closed, at most.
const DRAIN_POLLS: usize = 1_000_000;

/// A queue pair of a crypto device.
pub struct Dpdk {
    name: String,
    device: Arc<Device>,
    pair: u16,
    queue: NonNull<sys::Queue>,
    capabilities: Capabilities,
    sessions: Vec<Option<Session>>,
    /// Longest part of a packet that the device takes, in bytes.
    longest: usize,
    /// Jobs that the device has.
    batches: Batches,
    /// Where each of them is, by slot.
    places: Vec<Place>,
    /// The same jobs in the shim's words, by slot.
    jobs: Vec<sys::Job>,
    /// Slots that no job has.
    free: Vec<u32>,
    /// How many jobs the device has been given.
    given: u64,
    /// Sessions that were closed while the device had jobs, and how many it had been given then.
    closed: Vec<(u64, Session)>,
    /// Jobs with a verdict that the device does not get.
    settled: Vec<Job>,
    /// Slots of one submission.
    slots: Vec<u32>,
    /// Answers of one poll, and the places of their jobs.
    answers: Vec<sys::Done>,
    answered: Vec<Place>,
}

// SAFETY: the queue belongs to this processor alone, and the pointers in `jobs` are to sessions and packets that it owns.
unsafe impl Send for Dpdk {}

impl Dpdk {
    /// The next queue pair of the device.
    pub fn open(config: &Config) -> Result<Dpdk, Unavailable> {
        let device = Device::of(config)?;
        let pair = device.take_pair()?;
        let slots = device.queue.min(config.queue.max(1) as u32);
        let copies = config.copies || !device.is_software();
        // SAFETY: a queue pair that the device was readied with and that nobody else has.
        let queue = unsafe { sys::fb_dpdk_queue(device.number, pair, slots, LONGEST as u32, copies.into()) };
        let Some(queue) = NonNull::new(queue) else {
            device.give_back(pair);
            return Err(Unavailable::NoMemory { device: config.device.clone() });
        };
        let has = |suite: &Suite| Algorithms::of(*suite).is_some_and(|algorithms| algorithms.are_of(&device));
        let capabilities = Capabilities {
            suites: Suite::all().filter(has).collect(),
            best_burst: 32,
            queue: slots as usize,
        };
        Ok(Dpdk {
            name: config.name.clone(),
            pair,
            queue,
            capabilities,
            sessions: Vec::new(),
            longest: if copies { LONGEST } else { LONGEST_IN_PLACE },
            batches: Batches::default(),
            places: vec![Place::default(); slots as usize],
            jobs: vec![sys::Job::NONE; slots as usize],
            free: (0..slots).rev().collect(),
            given: 0,
            closed: Vec::new(),
            settled: Vec::new(),
            slots: Vec::new(),
            answers: vec![sys::Done { slot: 0, status: 0 }; slots as usize],
            answered: Vec::new(),
            device,
        })
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.jobs.len()
    }

    /// Readies a job for the device, where it stays until it comes back.
    #[inline]
    fn ready(&mut self, place: Place, slot: u32) -> Result<(), Verdict> {
        let job = &mut self.batches.jobs(place.batch)[place.index as usize];
        let session = self.sessions.get_mut(job.spec.session.0 as usize).and_then(Option::as_mut);
        session.ok_or(Verdict::Failed)?.prepare(job, self.longest, &mut self.jobs[slot as usize])?;
        self.places[slot as usize] = place;
        Ok(())
    }

    /// Puts what the device has done into `done`; how many.
    fn collect(&mut self, done: &mut Vec<Job>) -> usize {
        let (queue, jobs, room) = (self.queue.as_ptr(), self.jobs.as_mut_ptr(), &mut self.answers);
        // SAFETY: the room that it is told, and a job for each slot. The packets of the jobs that the device has are in
        // `batches`, where they were pointed at, and nothing else looks at them meanwhile.
        let n = unsafe { sys::fb_dpdk_dequeue(queue, jobs, room.as_mut_ptr(), room.len() as u32) } as usize;
        self.answered.clear();
        for answer in &room[..n] {
            let verdict = match answer.status {
                sys::DONE => Verdict::Done,
                sys::AUTH_FAILED => Verdict::AuthFailed,
                sys::NOT_HELD => continue,
                _ => Verdict::Failed,
            };
            let place = self.places[answer.slot as usize];
            self.batches.settle(place, verdict);
            self.free.push(answer.slot);
            self.answered.push(place);
        }
        for run in runs(&self.answered) {
            let run = &self.answered[run];
            self.batches.give(run[0].batch, run, done);
        }
        n
    }
}

impl Processor for Dpdk {
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
        let session = Session::open(&self.device, keys, direction).ok_or(SessionError::TableFull)?;
        let index = id.0 as usize;
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some(session);
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id.0 as usize).and_then(Option::take) else { return };
        // The device may be working with it.
        if !self.is_empty() {
            self.closed.push((self.given, session));
        }
    }

    fn submit(&mut self, _now: Time, jobs: &mut Vec<Job>) {
        let room = self.free.len().min(jobs.len());
        if room == 0 {
            return;
        }
        let batch = self.batches.hold(jobs, room, self.given);
        self.slots.clear();
        for index in 0..room as u32 {
            let (place, slot) = (Place { batch, index }, self.free[self.free.len() - 1 - self.slots.len()]);
            match self.ready(place, slot) {
                Ok(()) => self.slots.push(slot),
                Err(verdict) => self.settled.push(Job { verdict, ..self.batches.take(place) }),
            }
        }
        let (queue, prepared, slots) = (self.queue.as_ptr(), self.jobs.as_mut_ptr(), &self.slots);
        // SAFETY: slots that no job of the device has. Their jobs are in `batches`, from where their packets are not moved
        // and where nothing looks at them until the device has given them back; so it is with their sessions.
        let n = unsafe { sys::fb_dpdk_enqueue(queue, prepared, slots.as_ptr(), slots.len() as u32) } as usize;
        self.given += n as u64;
        self.free.truncate(self.free.len() - n);
        // Those that the device had no room for are left.
        if n < slots.len() {
            let left = slots[n..].iter().map(|slot| self.batches.take(self.places[*slot as usize]));
            jobs.splice(..0, left);
        }
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        done.append(&mut self.settled);
        while !self.is_empty() && self.collect(done) > 0 {}
        if !self.closed.is_empty() {
            let oldest = self.batches.oldest().unwrap_or(u64::MAX);
            self.closed.retain(|(given, _)| *given > oldest);
        }
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        let mut done = Vec::new();
        for _ in 0..DRAIN_POLLS {
            if self.is_empty() {
                break;
            }
            self.collect(&mut done);
        }
        if !self.is_empty() {
            // A device that answers no more may still write: its packets, buffers, sessions and queue pair are never used
            // again.
            self.batches.forget();
            let closed = self.closed.drain(..).map(|(_, session)| session);
            self.sessions.drain(..).flatten().chain(closed).for_each(mem::forget);
            return;
        }
        // SAFETY: the device has none of the queue's buffers, and the pointer is not used again.
        unsafe { sys::fb_dpdk_queue_free(self.queue.as_ptr()) };
        self.device.give_back(self.pair);
    }
}
