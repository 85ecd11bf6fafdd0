//! A lane: a processor on a thread of its own, seen from the engine as a processor.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{JoinHandle, Thread};
use std::time::Duration as StdDuration;

use forebay_crypto::{
    Capabilities, Direction, Job, Packet, Processor, SaKeys, SessionError, SessionId, copy_all,
};
use forebay_time::{Duration, Time};

use crate::BURST;
use crate::clock::Clock;
use crate::doorbell::{Doorbell, Until};

/// Submissions that may be on their way to a lane, and back: bounds what a lane that stopped holds.
const RING: usize = 1024;
/// Maximum time that the lane polls an empty ring before it sleeps. It polls for twice the time that it recently
/// waited for work, so that it is awake when the next burst comes; if that is more than this maximum, it polls only for
/// [`SPIN_MIN`]. Waking takes ten to fifty microseconds, on some machines most of them the waker's.
const SPIN_MAX: Duration = Duration::from_micros(250);
/// And at least: about as long as waking takes, so that what polling may waste is no more than what it may save.
const SPIN_MIN: Duration = Duration::from_micros(50);
/// A new wait counts for one in so many of the usual one.
const WAIT_FADES: u64 = 8;
/// Longest sleep without being rung; only a safeguard.
const SLEEP_MAX: StdDuration = StdDuration::from_millis(100);
/// First sleep while the processor has jobs and does not say when one will be finished; doubled as long
/// as none is.
const SLEEP_MIN: StdDuration = StdDuration::from_micros(50);
/// How long a lane that is dropped is waited for before it is left to itself.
const JOIN_MAX: StdDuration = StdDuration::from_millis(500);

/// A processor running on a thread of its own.
pub struct Lane {
    name: String,
    capabilities: Capabilities,
    to: rtrb::Producer<Handed>,
    from: rtrb::Consumer<Vec<Job>>,
    /// Emptied batches, to be used again.
    spare: Vec<Vec<Job>>,
    control: mpsc::Sender<Control>,
    bell: Arc<Doorbell<Thread>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The other side of a lane without a thread.
    stepped: Option<LaneSteps>,
}

/// The processor's side of a lane that has no thread: see [`Lane::stepped`].
#[derive(Clone)]
pub struct LaneSteps(Arc<Mutex<Worker>>);

impl LaneSteps {
    /// Does what a lane's thread does between two looks at its ring: obeys, takes one submission, and returns what is
    /// finished. Returns whether there was anything to do.
    pub fn step(&self) -> bool {
        let mut worker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        worker.poll().0
    }
}

/// A submission on its way to the lane.
struct Handed {
    jobs: Vec<Job>,
    /// Where their packets are to be copied from, if that is still to be done.
    sources: Option<Arc<Vec<Packet>>>,
}

/// Requests to a lane that are not packets.
enum Control {
    Open(SessionId, SaKeys, Direction, mpsc::Sender<Result<(), SessionError>>),
    Close(SessionId),
}

impl Lane {
    /// Moves `processor` to a new thread.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn new(
        processor: Box<dyn Processor>,
        name: impl Into<String>,
        clock: Clock,
    ) -> std::io::Result<Lane> {
        Lane::on_thread(processor, name, clock, || Ok(()))
    }

    /// Moves `processor` to a new thread, which does `begin` first: what a thread has to do to itself, such as
    /// choosing its CPUs.
    ///
    /// # Errors
    /// If the system has no thread left, and those of `begin`.
    pub fn on_thread(
        processor: Box<dyn Processor>,
        name: impl Into<String>,
        clock: Clock,
        begin: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> std::io::Result<Lane> {
        let name = name.into();
        let mut capabilities = processor.capabilities().clone();
        capabilities.queue = capabilities.queue.min(RING);
        let (to, rx) = rtrb::RingBuffer::new(RING);
        let (tx, from) = rtrb::RingBuffer::new(RING);
        let (control, orders) = mpsc::channel();
        let (bell_tx, bell_rx) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let their_stop = stop.clone();
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
            let bell = Arc::new(Doorbell::new(std::thread::current()));
            let begun = begin();
            let may_run = begun.is_ok();
            if bell_tx.send(begun.map(|()| bell.clone())).is_ok() && may_run {
                Worker::new(processor, (rx, tx), orders, bell, their_stop, clock).run();
            }
        })?;
        let bell = bell_rx.recv().map_err(|_| std::io::Error::other("the lane's thread ended at once"))??;
        Ok(Lane {
            name,
            capabilities,
            to,
            from,
            spare: Vec::new(),
            control,
            bell,
            stop,
            thread: Some(thread),
            stepped: None,
        })
    }

    /// A lane without a thread, for simulations: its processor works only when the caller says
    /// [`LaneSteps::step`], at a time of the caller's choice.
    pub fn stepped(
        processor: Box<dyn Processor>,
        name: impl Into<String>,
        clock: Clock,
    ) -> (Lane, LaneSteps) {
        let mut capabilities = processor.capabilities().clone();
        capabilities.queue = capabilities.queue.min(RING);
        let (to, rx) = rtrb::RingBuffer::new(RING);
        let (tx, from) = rtrb::RingBuffer::new(RING);
        let (control, orders) = mpsc::channel();
        let bell = Arc::new(Doorbell::new(std::thread::current()));
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker::new(processor, (rx, tx), orders, bell.clone(), stop.clone(), clock);
        let steps = LaneSteps(Arc::new(Mutex::new(worker)));
        let lane = Lane {
            name: name.into(),
            capabilities,
            to,
            from,
            spare: Vec::new(),
            control,
            bell,
            stop,
            thread: None,
            stepped: Some(steps.clone()),
        };
        (lane, steps)
    }
}

impl Lane {
    fn dispatch(&mut self, sources: Option<&Arc<Vec<Packet>>>, jobs: &mut Vec<Job>) {
        // A lane whose thread has panicked takes nothing more.
        if jobs.is_empty() || self.to.slots() == 0 || self.to.is_abandoned() {
            return;
        }
        // Moved, not swapped for the list: the caller's would become small, and grow again and again.
        let mut batch = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BURST));
        batch.append(jobs);
        match self.to.push(Handed { jobs: batch, sources: sources.cloned() }) {
            Ok(()) => self.bell.ring(),
            // This cannot happen: room was checked above and no other thread fills the ring. The jobs stay with the
            // caller.
            Err(rtrb::PushError::Full(mut handed)) => jobs.append(&mut handed.jobs),
        }
    }
}

impl Processor for Lane {
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
        let gone = |_| SessionError::Backend("the lane's thread has ended".into());
        let (reply, answer) = mpsc::channel();
        self.control
            .send(Control::Open(id, keys.clone(), direction, reply))
            .map_err(|_| gone(mpsc::RecvError))?;
        self.bell.wake();
        if let Some(LaneSteps(worker)) = &self.stepped {
            worker.lock().unwrap_or_else(PoisonError::into_inner).obey();
        }
        answer.recv().map_err(gone)?
    }

    fn close_session(&mut self, id: SessionId) {
        if self.control.send(Control::Close(id)).is_ok() {
            self.bell.wake();
        }
    }

    fn submit(&mut self, _now: Time, jobs: &mut Vec<Job>) {
        self.dispatch(None, jobs);
    }

    fn submit_copies(&mut self, _now: Time, sources: &Arc<Vec<Packet>>, jobs: &mut Vec<Job>) {
        self.dispatch(Some(sources), jobs);
    }

    fn is_asleep(&self) -> bool {
        self.bell.is_asleep()
    }

    fn poll(&mut self, _now: Time, done: &mut Vec<Job>) {
        while let Ok(mut batch) = self.from.pop() {
            done.append(&mut batch);
            // A lane that answers job by job gives back more than it gets.
            if self.spare.len() < RING {
                self.spare.push(batch);
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.bell.wake();
        let Some(thread) = self.thread.take() else { return };
        // A thread that hangs inside its processor must not hang the program.
        for _ in 0..JOIN_MAX.as_millis() {
            if thread.is_finished() {
                let _ = thread.join();
                return;
            }
            std::thread::park_timeout(StdDuration::from_millis(1));
        }
    }
}

/// The lane's side of the rings.
struct Worker {
    processor: Box<dyn Processor>,
    rx: rtrb::Consumer<Handed>,
    tx: rtrb::Producer<Vec<Job>>,
    orders: mpsc::Receiver<Control>,
    bell: Arc<Doorbell<Thread>>,
    stop: Arc<AtomicBool>,
    clock: Clock,
    /// Finished batches that found no room on the way back.
    back: VecDeque<Vec<Job>>,
    /// Emptied batches, to be used again.
    spare: Vec<Vec<Job>>,
    /// Jobs that the processor has.
    under_way: usize,
    /// What it has not taken of the last submission.
    waiting: Vec<Job>,
}

impl Worker {
    fn new(
        processor: Box<dyn Processor>,
        (rx, tx): (rtrb::Consumer<Handed>, rtrb::Producer<Vec<Job>>),
        orders: mpsc::Receiver<Control>,
        bell: Arc<Doorbell<Thread>>,
        stop: Arc<AtomicBool>,
        clock: Clock,
    ) -> Worker {
        let (back, spare, waiting) = (VecDeque::new(), Vec::new(), Vec::new());
        Worker { processor, rx, tx, orders, bell, stop, clock, back, spare, under_way: 0, waiting }
    }

    fn run(mut self) {
        let (mut looks, mut since, mut nap) = (0u32, self.clock.now(), SLEEP_MIN);
        let (mut usual, mut spin) = (SPIN_MIN, SPIN_MIN);
        while !self.stop.load(Ordering::Acquire) {
            let (worked, start) = self.poll();
            if worked {
                if looks > 0 {
                    let wait = start.since(since).min(SPIN_MAX.times(2));
                    usual = Duration((usual.0 * (WAIT_FADES - 1) + wait.0) / WAIT_FADES);
                    spin = if usual <= SPIN_MAX { usual.times(2).max(SPIN_MIN) } else { SPIN_MIN };
                }
                (looks, nap) = (0, SLEEP_MIN);
                continue;
            }
            if looks == 0 {
                since = start;
            }
            looks += 1;
            if start.since(since) < spin {
                std::hint::spin_loop();
            } else {
                self.sleep(!self.waiting.is_empty() || !self.back.is_empty(), nap);
                // Once more round is enough to see whether there is anything now.
                nap = (2 * nap).min(SLEEP_MAX);
            }
        }
    }

    /// Obeys, takes a submission if none is left over, and works; whether there was anything to do, and
    /// when the work began.
    fn poll(&mut self) -> (bool, Time) {
        let ordered = self.obey();
        let start = self.clock.now();
        let mut waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty()
            && let Ok(Handed { jobs, sources }) = self.rx.pop()
        {
            self.keep(std::mem::replace(&mut waiting, jobs));
            if let Some(sources) = sources {
                copy_all(&sources, &mut waiting);
            }
        }
        let worked = self.work(&mut waiting, start);
        self.waiting = waiting;
        (worked || ordered, start)
    }

    /// One submission and one poll; whether there was anything to do.
    fn work(&mut self, waiting: &mut Vec<Job>, start: Time) -> bool {
        let submitted = waiting.len();
        if submitted > 0 {
            self.processor.submit(start, waiting);
            self.under_way += submitted - waiting.len();
        }
        let in_place = submitted > 0 && waiting.is_empty();
        // For a processor that does its jobs in submit the batch goes around: no memory is taken or given.
        let mut done = if in_place { std::mem::take(waiting) } else { self.spare.pop().unwrap_or_default() };
        if self.under_way > 0 {
            self.processor.poll(self.clock.now(), &mut done);
        }
        if done.is_empty() {
            self.keep(done);
            self.send_back();
            return submitted > waiting.len();
        }
        self.under_way = self.under_way.saturating_sub(done.len());
        if in_place && submitted == done.len() && done.iter().all(|job| job.took == Duration::ZERO) {
            let took = self.clock.now().since(start);
            let share = Duration(took.0 / done.len() as u64);
            done.iter_mut().for_each(|job| job.took = share);
        }
        self.back.push_back(done);
        self.send_back();
        true
    }

    fn keep(&mut self, batch: Vec<Job>) {
        if batch.capacity() > 0 && self.spare.len() < RING {
            self.spare.push(batch);
        }
    }

    fn send_back(&mut self) {
        while let Some(batch) = self.back.pop_front() {
            if let Err(rtrb::PushError::Full(batch)) = self.tx.push(batch) {
                self.back.push_front(batch);
                return;
            }
        }
    }

    fn obey(&mut self) -> bool {
        let mut any = false;
        while let Ok(order) = self.orders.try_recv() {
            any = true;
            match order {
                Control::Open(id, keys, direction, reply) => {
                    // The caller may have stopped waiting for the reply.
                    let _ = reply.send(self.processor.open_session(id, &keys, direction));
                }
                Control::Close(id) => self.processor.close_session(id),
            }
        }
        any
    }

    /// Sleeps until the next job is due, or for a nap if there are jobs and it is not known when.
    fn sleep(&self, stuck: bool, nap: StdDuration) {
        let due = self.processor.next_due().map(|due| due.since(self.clock.now()));
        let limit = match due.map(|due| StdDuration::from_nanos(due.as_nanos())) {
            Some(due) if stuck => due.min(nap),
            Some(due) => due.min(SLEEP_MAX),
            None if stuck || self.under_way > 0 => nap,
            None => SLEEP_MAX,
        };
        let has_work = || !self.rx.is_empty() || self.stop.load(Ordering::Acquire);
        if self.bell.falls_asleep(Until::Work, has_work) {
            // Ringing the bell unparks this thread, and a park after that returns at once. Callers look for work in
            // any case.
            std::thread::park_timeout(limit);
            self.bell.wakes();
        }
    }
}
