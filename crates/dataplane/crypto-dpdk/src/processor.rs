//! A queue pair as a [`Processor`]: jobs are copied into the device's buffers, and out of them when they come back.

use std::ptr::{NonNull, null};
use std::sync::Arc;

use dpdk_sys as sys;
use forebay_crypto::{
    Capabilities, Cipher, Direction, Integrity, Job, JobSpec, Layout, Processor, SaKeys, SessionError,
    SessionId, Suite, Verdict,
};
use forebay_time::Time;

use crate::device::Device;
use crate::session::{Algorithms, Form, Session};
use crate::{Config, Unavailable};

/// Most sessions one processor keeps: bounds the table against a runaway number.
const MAX_SESSIONS: usize = 1 << 20;
/// Longest part of a packet that goes to a device, in bytes: jumbo frames, and what ESP adds.
const LONGEST: usize = 10_240;
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
    /// Jobs that the device has, by slot.
    held: Vec<Option<Held>>,
    /// Slots that no job has.
    free: Vec<u32>,
    /// How many jobs the device has been given.
    given: u64,
    /// Sessions that were closed while the device had jobs, and how many it had been given then.
    closed: Vec<(u64, Session)>,
    /// Jobs with a verdict that the device does not get.
    settled: Vec<Job>,
    scratch: Scratch,
}

/// A job that the device has.
struct Held {
    job: Job,
    part: Part,
    /// How many the device was given before it.
    number: u64,
}

/// What is made anew for each submission, in memory that stays.
struct Scratch {
    jobs: Vec<sys::Job>,
    parts: Vec<Part>,
    /// Which of the submitted jobs each is.
    places: Vec<usize>,
    aads: Vec<[u8; sys::AAD_MAX]>,
    done: Vec<sys::Done>,
}

/// What the device has of a packet, and what of that it changes: positions in the packet's buffer.
#[derive(Clone, Copy, Default)]
struct Part {
    start: usize,
    cipher: (usize, usize),
    icv: (usize, usize),
    is_sealed: bool,
}

// SAFETY: the queue belongs to this processor alone; the pointers in `scratch` are used only within one call of `submit`.
unsafe impl Send for Dpdk {}

impl Dpdk {
    /// The next queue pair of the device.
    pub fn open(config: &Config) -> Result<Dpdk, Unavailable> {
        let device = Device::of(config)?;
        let pair = device.take_pair()?;
        let slots = config.queue.max(1) as u32;
        // SAFETY: a queue pair that the device was readied with and that nobody else has.
        let queue = unsafe { sys::fb_dpdk_queue(device.number, pair, slots, LONGEST as u32 + 4) };
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
        let blank = sys::Done { slot: 0, status: 0, data: null(), icv: null() };
        Ok(Dpdk {
            name: config.name.clone(),
            pair,
            queue,
            capabilities,
            sessions: Vec::new(),
            held: (0..slots).map(|_| None).collect(),
            free: (0..slots).rev().collect(),
            given: 0,
            closed: Vec::new(),
            settled: Vec::new(),
            scratch: Scratch {
                jobs: Vec::new(),
                parts: Vec::new(),
                places: Vec::new(),
                aads: Vec::new(),
                done: vec![blank; slots as usize],
            },
            device,
        })
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.held.len()
    }

    /// Puts what the device has done into `done`; how many.
    fn collect(&mut self, done: &mut Vec<Job>) -> usize {
        let room = &mut self.scratch.done;
        // SAFETY: the room that it is told; the queue is this processor's.
        let n = unsafe { sys::fb_dpdk_dequeue(self.queue.as_ptr(), room.as_mut_ptr(), room.len() as u32) };
        for answer in &room[..n as usize] {
            let Some(Held { mut job, part, .. }) =
                self.held.get_mut(answer.slot as usize).and_then(Option::take)
            else {
                continue;
            };
            job.verdict = match answer.status {
                sys::DONE => Verdict::Done,
                sys::AUTH_FAILED => Verdict::AuthFailed,
                _ => Verdict::Failed,
            };
            if job.verdict == Verdict::Done {
                // SAFETY: the slot's buffer and ICV, as long as what was copied in, which stay until the slot is used
                // again.
                unsafe { part.take_back(answer, job.packet.buffer_mut()) };
            }
            self.free.push(answer.slot);
            done.push(job);
        }
        n as usize
    }
}

impl Part {
    /// Copies what the device has changed into the packet's buffer.
    ///
    /// # Safety
    /// `answer` points at the buffer that the part was copied into, and at an ICV of the suite's length.
    unsafe fn take_back(&self, answer: &sys::Done, buffer: &mut [u8]) {
        let (from, to) = self.cipher;
        // SAFETY: the caller's; the text lies in what was copied.
        let text = unsafe { std::slice::from_raw_parts(answer.data.add(from - self.start), to - from) };
        buffer[from..to].copy_from_slice(text);
        if self.is_sealed {
            let (from, to) = self.icv;
            // SAFETY: the caller's.
            let icv = unsafe { std::slice::from_raw_parts(answer.icv, to - from) };
            buffer[from..to].copy_from_slice(icv);
        }
    }
}

/// The job as the device is to have it, for this slot; a verdict if it needs none: there is nothing to do, or it is a bad
/// one. Its AAD goes into `aad`.
fn prepare(
    session: &mut Session,
    job: &Job,
    slot: u32,
    aad: &mut [u8; sys::AAD_MAX],
) -> Result<(sys::Job, Part), Verdict> {
    let (spec, buffer) = (&job.spec, job.packet.buffer());
    let (suite, direction) = (session.suite, session.direction);
    let at = Layout::check(spec, suite, direction, buffer.len()).ok_or(Verdict::Failed)?;
    if suite.integrity() == Integrity::None && at.cipher.is_empty() {
        return Err(Verdict::Done);
    }
    let seals = direction == Direction::Seal;
    let field = &buffer[at.iv.clone()];
    let mut iv = [0; 16];
    match suite.cipher() {
        // Sealing, the chain starts from zero and the IV field is the first block (see JobSpec::cipher).
        Cipher::AesCbc(_) | Cipher::TripleDesCbc if seals => {}
        Cipher::AesCbc(_) | Cipher::TripleDesCbc => iv[..field.len()].copy_from_slice(field),
        Cipher::Null => {}
        _ => {
            iv[..4].copy_from_slice(&session.salt);
            iv[4..12].copy_from_slice(field);
            // Of AES-CTR the block counter, which starts at one (RFC 3686 4).
            iv[15] = 1;
        }
    }
    let (high, aead) = (spec.seq_hi.map(u32::to_be_bytes), suite.is_aead());
    let mut aad_len = 0;
    if aead {
        let given = &buffer[at.auth.clone()];
        // Between the SPI and the low half (RFC 4106 5).
        let (front, behind) = given.split_at(if high.is_some() { 4 } else { given.len() });
        for part in [front, high.as_ref().map_or(&[], |high| &high[..]), behind] {
            aad.get_mut(aad_len..aad_len + part.len()).ok_or(Verdict::Failed)?.copy_from_slice(part);
            aad_len += part.len();
        }
    }
    let is_covered = !aead && suite.icv_len() > 0;
    let (start, end) = match (at.cipher.is_empty(), is_covered) {
        (false, true) => (at.cipher.start.min(at.auth.start), at.cipher.end.max(at.auth.end)),
        (true, true) => (at.auth.start, at.auth.end),
        _ => (at.cipher.start, at.cipher.end),
    };
    let len = end - start;
    if len > LONGEST {
        return Err(Verdict::Failed);
    }
    let form = match (aead, at.cipher.is_empty() && suite.cipher() != Cipher::Null) {
        (true, _) => Form::Aad(aad_len),
        (false, false) => Form::Separate,
        (false, true) => Form::AuthOnly,
    };
    let cipher_start = if at.cipher.is_empty() { 0 } else { at.cipher.start - start };
    let prepared = sys::Job {
        session: session.of(form).ok_or(Verdict::Failed)?.as_ptr(),
        data: buffer[start..end].as_ptr(),
        aad: aad.as_ptr(),
        icv: if seals || suite.icv_len() == 0 { null() } else { buffer[at.icv.clone()].as_ptr() },
        len: len as u32,
        cipher_start: cipher_start as u32,
        cipher_len: at.cipher.len() as u32,
        auth_start: if is_covered { (at.auth.start - start) as u32 } else { 0 },
        auth_len: if is_covered { at.auth.len() as u32 } else { 0 },
        slot,
        iv,
        aad_len: aad_len as u16,
        icv_len: suite.icv_len() as u8,
        aead: u8::from(aead),
        seq_hi_len: if is_covered && high.is_some() { JobSpec::SEQ_HI_LEN as u8 } else { 0 },
        seq_hi: high.unwrap_or_default(),
    };
    // Without encryption nothing but the ICV changes.
    let cipher = if suite.cipher() == Cipher::Null {
        (start, start)
    } else {
        (start + cipher_start, start + cipher_start + at.cipher.len())
    };
    Ok((prepared, Part { start, cipher, icv: (at.icv.start, at.icv.end), is_sealed: seals }))
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
        let Scratch { jobs: prepared, parts, places, aads, .. } = &mut self.scratch;
        prepared.clear();
        parts.clear();
        places.clear();
        let room = self.free.len().min(jobs.len());
        if aads.len() < room {
            aads.resize(room, [0; sys::AAD_MAX]);
        }
        for (place, job) in jobs[..room].iter_mut().enumerate() {
            job.verdict = Verdict::Failed;
            let Some(Some(session)) = self.sessions.get_mut(job.spec.session.0 as usize) else { continue };
            let slot = self.free[self.free.len() - 1 - prepared.len()];
            match prepare(session, job, slot, &mut aads[prepared.len()]) {
                Ok((job, part)) => {
                    prepared.push(job);
                    parts.push(part);
                    places.push(place);
                }
                Err(verdict) => job.verdict = verdict,
            }
        }
        // SAFETY: jobs, AADs and sessions are neither moved nor changed until the call returns, with which the queue has
        // copied all that they point at but the sessions, which live until the device has returned their jobs. Slots are
        // free ones.
        let n =
            unsafe { sys::fb_dpdk_enqueue(self.queue.as_ptr(), prepared.as_ptr(), prepared.len() as u32) };
        let n = n as usize;
        // Those from the first on that the device had no room for are left.
        let taken = places.get(n).copied().unwrap_or(room);
        jobs[taken..room].iter_mut().for_each(|job| job.verdict = Verdict::Pending);
        self.free.truncate(self.free.len() - n);
        let mut next = places.iter().zip(prepared.iter().zip(parts.iter())).peekable();
        for (place, job) in jobs.drain(..taken).enumerate() {
            match next.next_if(|(of, _)| **of == place) {
                Some((_, (prepared, part))) => {
                    let held = Held { job, part: *part, number: self.given };
                    self.held[prepared.slot as usize] = Some(held);
                    self.given += 1;
                }
                None => self.settled.push(job),
            }
        }
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        done.append(&mut self.settled);
        while !self.is_empty() && self.collect(done) > 0 {}
        if !self.closed.is_empty() {
            let oldest = self.held.iter().flatten().map(|held| held.number).min().unwrap_or(u64::MAX);
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
            // A device that answers no more may still write: its buffers, sessions and queue pair are never used again.
            let closed = self.closed.drain(..).map(|(_, session)| session);
            self.sessions.drain(..).flatten().chain(closed).for_each(std::mem::forget);
            return;
        }
        // SAFETY: the device has none of the queue's buffers, and the pointer is not used again.
        unsafe { sys::fb_dpdk_queue_free(self.queue.as_ptr()) };
        self.device.give_back(self.pair);
    }
}
