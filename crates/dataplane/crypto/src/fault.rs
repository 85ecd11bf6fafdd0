//! Processors that misbehave on purpose, for fault runs.
//!
//! [`Faulty`] wraps any processor and behaves like it until a [`Fault`] is armed through its [`FaultControl`]. The
//! test keeps the control while another thread owns the processor. What goes wrong is a function of the jobs and the
//! control's seed alone, so that a run can be repeated exactly. The idea is that of smoltcp's stackable link wrappers
//! (its `phy::FaultInjector`).
//!
//! One fault cannot be injected: the same job delivered twice, because packets are owned values.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_time::{Duration, Time};

use crate::{Direction, Job, Processor, SaKeys, SessionError, SessionId, Verdict};

/// Jobs that a fault keeps back at most, where the processor's own queue is larger or has no limit.
pub const KEPT_MAX: usize = 65_536;

/// A way to misbehave. `every` counts from the arming, 1 is each, 0 none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A dead processor: takes jobs until its queue is full and gives nothing back. Once disarmed it
    /// does what it took and hands it over late: stale answers.
    Stop,
    /// Works `factor` times as long on each job, one job at a time, and says so in [`Job::took`]: a
    /// job comes `(factor - 1) * took` after the poll that found it finished, and not before those
    /// ahead of it. Where the processor says nothing, the time from submit to poll counts.
    Slow {
        /// At least 1, which is no fault.
        factor: u32,
    },
    /// Gives each job back later than it was finished, without doing less of them.
    Late {
        /// By how much.
        by: Duration,
    },
    /// Flips one bit in the ICV of sealed packets.
    CorruptIcv {
        /// Which of the sealed jobs.
        every: u64,
    },
    /// Says of opened packets whose ICV matches that it does not.
    RejectGood {
        /// Which of the opened jobs.
        every: u64,
    },
    /// Loses jobs, packet and all.
    DropJobs {
        /// Which of the finished jobs.
        every: u64,
    },
    /// Delivers jobs in another order: holds back some of the finished ones and delivers one drawn from the oldest
    /// `depth + 1`. All of them are delivered once no job is in flight.
    Reorder {
        /// Jobs kept; 0 is no fault.
        depth: usize,
    },
}

/// Arms and disarms the fault of one or several [`Faulty`] processors, from any thread; clones are
/// the same control.
#[derive(Clone, Debug)]
pub struct FaultControl(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    armed: Mutex<Armed>,
    seed: u64,
    struck: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    fault: Option<Fault>,
    /// How often the fault was changed, so that processors see an arming of the same fault again.
    changes: u64,
}

impl FaultControl {
    /// A control with nothing armed; `seed` decides what faults leave to chance (which bit, which order).
    pub fn new(seed: u64) -> FaultControl {
        FaultControl(Arc::new(Shared { armed: Mutex::default(), seed, struck: AtomicU64::new(0) }))
    }

    /// Arms `fault` in place of what was armed, from the processors' next call on; they count and draw anew.
    pub fn arm(&self, fault: Fault) {
        self.change(Some(fault));
    }

    /// Lets the processors work again.
    pub fn disarm(&self) {
        self.change(None);
    }

    /// The fault that is armed.
    pub fn fault(&self) -> Option<Fault> {
        self.armed().fault
    }

    /// How many jobs have met a fault, all processors and armings together.
    pub fn struck(&self) -> u64 {
        self.0.struck.load(Ordering::Relaxed)
    }

    fn change(&self, fault: Option<Fault>) {
        let mut armed = self.armed();
        *armed = Armed { fault, changes: armed.changes + 1 };
    }

    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.0.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strike(&self, jobs: usize) {
        self.0.struck.fetch_add(jobs as u64, Ordering::Relaxed);
    }
}

/// A processor that behaves like the one inside until its control arms a fault; wraps itself, too.
///
/// A job that the processor inside loses for good leaks a few bytes here.
#[derive(Debug)]
pub struct Faulty<P> {
    inner: P,
    control: FaultControl,
    armed: Armed,
    /// Jobs that `every` has counted.
    counted: u64,
    /// State of the generator.
    random: u64,
    /// Direction and ICV length in bytes of the open sessions.
    sessions: BTreeMap<SessionId, (Direction, usize)>,
    tickets: Tickets,
    /// The time last told.
    now: Time,
    /// Taken while stopped, not given to `inner` yet.
    swallowed: Vec<Job>,
    /// Finished, to be given back at their time.
    held: Vec<(Time, Job)>,
    /// When a slowed processor has done its work so far.
    busy_until: Time,
    /// Finished, to be given back in another order.
    shuffled: Vec<Job>,
    /// Emptied after each use.
    batch: Vec<Job>,
}

impl<P: Processor> Faulty<P> {
    /// Wraps `inner`, under `control`.
    pub fn new(inner: P, control: FaultControl) -> Faulty<P> {
        Faulty {
            inner,
            random: control.0.seed,
            control,
            armed: Armed::default(),
            counted: 0,
            sessions: BTreeMap::new(),
            tickets: Tickets::default(),
            now: Time::ZERO,
            swallowed: Vec::new(),
            held: Vec::new(),
            busy_until: Time::ZERO,
            shuffled: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// What both submit and poll begin with.
    fn begin(&mut self, now: Time) {
        self.now = now;
        let armed = *self.control.armed();
        if armed.changes != self.armed.changes {
            (self.armed, self.counted, self.random) = (armed, 0, self.control.0.seed);
        }
        if self.armed.fault != Some(Fault::Stop) && !self.swallowed.is_empty() {
            self.pass_on(now, true);
        }
    }

    /// Gives `inner` what it takes of the swallowed jobs, or of the batch; the rest stays there.
    fn pass_on(&mut self, now: Time, swallowed: bool) {
        let jobs = if swallowed { &mut self.swallowed } else { &mut self.batch };
        jobs.iter_mut().for_each(|job| self.tickets.issue(job, now));
        self.inner.submit(now, jobs);
        jobs.iter_mut().for_each(|job| _ = self.tickets.redeem(job));
    }

    /// Jobs of the next submission that may be taken: all, until what is kept back fills the processor's queue.
    fn room(&self) -> usize {
        let kept = self.swallowed.len() + self.held.len() + self.shuffled.len();
        if kept < self.inner.capabilities().queue.min(KEPT_MAX) { usize::MAX } else { 0 }
    }

    /// Does to a finished job what the armed fault does, and puts it where it belongs.
    fn finish(&mut self, mut job: Job, submitted: Time, done: &mut Vec<Job>) {
        match self.armed.fault {
            Some(Fault::Slow { factor }) => return self.slow_down(job, submitted, u64::from(factor.max(1))),
            Some(Fault::Late { by }) => {
                self.control.strike(1);
                return self.held.push((self.now + by, job));
            }
            Some(Fault::CorruptIcv { every }) => self.corrupt_icv(&mut job, every),
            Some(Fault::RejectGood { every }) => self.reject_good(&mut job, every),
            Some(Fault::DropJobs { every }) => {
                if self.hits(every) {
                    return;
                }
            }
            Some(Fault::Reorder { .. }) => return self.shuffled.push(job),
            Some(Fault::Stop) | None => {}
        }
        done.push(job);
    }

    fn slow_down(&mut self, mut job: Job, submitted: Time, factor: u64) {
        let due = if job.took == Duration::ZERO {
            submitted + self.now.since(submitted).times(factor)
        } else {
            let alone = self.now + job.took.times(factor - 1);
            job.took = job.took.times(factor);
            // One after the other, and none begun before it was there: a slow processor does less, too.
            self.busy_until = self.busy_until.max(submitted) + job.took;
            alone.max(self.busy_until)
        };
        if due > self.now {
            self.control.strike(1);
        }
        self.held.push((due, job));
    }

    fn corrupt_icv(&mut self, job: &mut Job, every: u64) {
        let Some(&(Direction::Seal, icv_len)) = self.sessions.get(&job.spec.session) else { return };
        if job.verdict != Verdict::Done || icv_len == 0 || !self.hits(every) {
            return;
        }
        let bit = self.draw(8 * icv_len);
        if let Some(byte) = job.packet.buffer_mut().get_mut(job.spec.icv as usize + bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }

    fn reject_good(&mut self, job: &mut Job, every: u64) {
        let opened = matches!(self.sessions.get(&job.spec.session), Some((Direction::Open, _)));
        if opened && job.verdict == Verdict::Done && self.hits(every) {
            job.verdict = Verdict::AuthFailed;
        }
    }

    /// Gives back shuffled jobs, in an order that is drawn.
    fn release_shuffled(&mut self, done: &mut Vec<Job>) {
        let depth = match self.armed.fault {
            Some(Fault::Reorder { depth }) => depth,
            _ => 0,
        };
        let keep = if self.tickets.out() > 0 { depth } else { 0 };
        while self.shuffled.len() > keep {
            let drawn = self.draw(self.shuffled.len().min(depth.saturating_add(1)));
            self.control.strike(usize::from(drawn > 0));
            done.push(self.shuffled.remove(drawn));
        }
    }

    /// Counts one job; whether it is one to hit.
    fn hits(&mut self, every: u64) -> bool {
        self.counted += 1;
        let hit = self.counted.is_multiple_of(every);
        self.control.strike(usize::from(hit));
        hit
    }

    /// A number below `end` (SplitMix64).
    fn draw(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

impl<P: Processor> Processor for Faulty<P> {
    crate::forward_processor!(inner: name, capabilities);

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        self.inner.open_session(id, keys, direction)?;
        self.sessions.insert(id, (direction, keys.suite().icv_len()));
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        self.inner.close_session(id);
        self.sessions.remove(&id);
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.begin(now);
        let take = self.room().min(jobs.len());
        if self.armed.fault == Some(Fault::Stop) {
            self.control.strike(take);
            self.swallowed.extend(jobs.drain(..take));
        } else if self.swallowed.is_empty() {
            // Else those taken before have to go first.
            self.batch.extend(jobs.drain(..take));
            self.pass_on(now, false);
            jobs.splice(0..0, self.batch.drain(..));
        }
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        self.begin(now);
        if self.armed.fault == Some(Fault::Stop) {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.inner.poll(now, &mut batch);
        for mut job in batch.drain(..) {
            let submitted = self.tickets.redeem(&mut job);
            self.finish(job, submitted, done);
        }
        self.batch = batch;
        self.release_shuffled(done);
        done.extend(self.held.extract_if(.., |(due, _)| *due <= now).map(|(_, job)| job));
    }

    fn next_due(&self) -> Option<Time> {
        if self.control.fault() == Some(Fault::Stop) {
            return None;
        }
        let due = self.held.iter().map(|(due, _)| *due).chain(self.inner.next_due()).min();
        // What was swallowed is passed on by the next call, if nothing inside has to leave first.
        due.or_else(|| (!self.swallowed.is_empty()).then_some(self.now))
    }
}

/// Submission time of each job in flight. The number of a job's ticket replaces its token, which the inner processor
/// does not read, so that a job is identified in whatever order it returns.
#[derive(Debug, Default)]
struct Tickets {
    issued: Vec<(u64, Time)>,
    free: Vec<usize>,
}

impl Tickets {
    /// Number of jobs in flight.
    fn out(&self) -> usize {
        self.issued.len() - self.free.len()
    }

    fn issue(&mut self, job: &mut Job, now: Time) {
        let ticket = (job.token, now);
        let number = match self.free.pop() {
            Some(number) => {
                self.issued[number] = ticket;
                number
            }
            None => {
                self.issued.push(ticket);
                self.issued.len() - 1
            }
        };
        job.token = number as u64;
    }

    /// Gives the job its token back; when it was submitted.
    fn redeem(&mut self, job: &mut Job) -> Time {
        let number = job.token as usize;
        // A processor that makes jobs or tokens up is worse than any fault here; its jobs pass as they are.
        let Some(&(token, submitted)) = self.issued.get(number) else { return Time::ZERO };
        self.free.push(number);
        job.token = token;
        submitted
    }
}
