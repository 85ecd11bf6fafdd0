//! The engine: packets in, jobs to every processor by the scheduler's word, packets out in order.
//!
//! ```text
//! admit: prepare --> flight (slot, packet) --> scheduler
//! turn:  scheduler --> group --> running core: in place, on the packet itself
//!                            \-> lane or card: on a copy; the packet stays intact in its slot
//!        answers --> flight done --> first of its SA? --> complete --> outputs
//!                                                                  \-> next SA: scheduler again
//! ```
//!
//! A processor that misses a deadline, or whose work a sample shows to be wrong, is taken out; what it
//! had is done again by the running core from the intact packets. Answers that come after that name an
//! old generation of their slot and count for nothing, so no packet is delivered twice.

use std::collections::VecDeque;

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SessionId, Verdict};
use forebay_ipsec::{DropCounts, DropReason, Ipsec, Path, Prepared};
use forebay_scheduler::fit::Fit;
use forebay_scheduler::{
    Config, ConfigError, Cost, DscpMap, Item, ProcessorConfig, Progress, Scheduler, Work,
};
use forebay_time::{Duration, Time};
use forebay_wire::Ip;

use crate::clock::Clock;
use crate::edges::{Edges, Gathered};
use crate::flight::{Flights, Groups, ReleaseQueues};
use crate::health::Health;
use crate::idle::Idle;
use crate::sessions::Sessions;
use crate::setup::{EngineError, Limits, ProcessorSetup, Scheduling, Settings};
use crate::stats::{EngineStats, ProcessorStats};
use crate::strangers::Strangers;

/// The running core's place among the processors.
pub const RUNNING_CORE: usize = 0;

/// A packet that is through.
#[derive(Debug)]
pub struct Output {
    /// The packet; whatever state it was in, if it was dropped.
    pub packet: Packet,
    /// What the caller gave with it.
    pub tag: u64,
    /// The SA it went through; `None` for a packet that a policy lets pass as it is. Where order is kept per
    /// SA that overtakes those that wait for their crypto, and keeps its order only among its like.
    pub session: Option<SessionId>,
    /// Whether it passed, or why not.
    pub result: Result<(), DropReason>,
    /// When it was admitted.
    pub admitted: Time,
    /// When it was released.
    pub released: Time,
}

/// A packet whose SA is at the engine of another core: see [`Ipsec::add_remote`].
#[derive(Debug)]
pub struct HandOver {
    /// The number of that core.
    pub core: u16,
    /// How it was admitted here, and is to be there.
    pub direction: Direction,
    /// The packet as it came; if it came in fragments, put together.
    pub packet: Packet,
    /// What the caller gave with it.
    pub tag: u64,
}

/// A packet that could not be admitted.
#[derive(Debug)]
pub struct Refusal {
    /// The packet as it came.
    pub packet: Packet,
    /// What the caller gave with it.
    pub tag: u64,
    /// Why; counted already.
    pub reason: DropReason,
}

/// One attached processor.
pub(crate) struct Attached {
    pub processor: Box<dyn Processor>,
    pub health: Health,
    /// What a job costs there until measurements say otherwise.
    pub expected: Cost,
    /// One fit per kind of job, and the costs that the scheduler last had of them.
    pub fits: Vec<Fit>,
    pub costs: Vec<Cost>,
    /// Jobs measured since then.
    pub measured: u32,
    /// Its groups in the order submitted.
    pub groups: VecDeque<u32>,
    pub stats: ProcessorStats,
}

/// What the running core did of one kind of job in one burst.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub jobs: u32,
    pub work: Work,
    pub took: Duration,
}

/// Spreads the crypto of many packets over many processors, in real time, on the calling thread.
pub struct Engine {
    pub(crate) sad: Ipsec,
    pub(crate) clock: Clock,
    pub(crate) now: Time,
    /// When the processors were last asked for answers, and when before that.
    pub(crate) polled: Time,
    pub(crate) polled_before: Time,
    pub(crate) limits: Limits,
    pub(crate) scheduler: Scheduler,
    /// Whether it is told what is done late: where there is a choice.
    pub(crate) lateness: bool,
    pub(crate) attached: Vec<Attached>,
    pub(crate) sessions: Sessions,
    pub(crate) flights: Flights,
    pub(crate) groups: Groups,
    pub(crate) order: ReleaseQueues,
    /// Flights for the running core: the scheduler's choice, and those that others were given first.
    pub(crate) own: VecDeque<u32>,
    pub(crate) rescued: VecDeque<u32>,
    pool: Vec<Packet>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) done: Vec<Job>,
    /// Holds the job of an audit while it is done.
    pub(crate) audited: Vec<Job>,
    pub(crate) outputs: Vec<Output>,
    hand_overs: Vec<HandOver>,
    refused: Vec<Refusal>,
    /// Flights of the scheduler's job at hand, copied out of it.
    pub(crate) members: Vec<u32>,
    /// By kind of job.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) drops: DropCounts,
    pub(crate) stats: EngineStats,
    pub(crate) edges: Edges,
    pub(crate) strangers: Strangers,
    /// Class of each DSCP outbound, if there are several.
    dscp: Option<DscpMap>,
}

impl Engine {
    /// An engine over `sad` with the running core and other processors; `keys` holds those of every
    /// SA, in the order of the SAs.
    ///
    /// # Errors
    /// If there are not as many keys as SAs, no processor does a suite or there are too many of them, the
    /// running core refuses a session, or the scheduler its settings: among them a limit of packets in flight
    /// below the window.
    ///
    /// The running core, which has the last word about what others fail at, should do every suite. For one
    /// that it lacks, others are taken at their word, and what one fails at goes to another if there is one.
    pub fn new(
        sad: Ipsec,
        keys: &[SaKeys],
        processors: Vec<ProcessorSetup>,
        settings: Settings,
        clock: Clock,
    ) -> Result<Engine, EngineError> {
        let sas: Vec<_> = sad.iter().map(|(session, direction, ..)| (session, direction)).collect();
        if keys.len() != sas.len() {
            return Err(EngineError::Keys { sas: sas.len(), keys: keys.len() });
        }
        let mut attached = Vec::with_capacity(processors.len());
        let mut configs = Vec::with_capacity(processors.len());
        for (index, setup) in processors.into_iter().enumerate() {
            configs.push(ProcessorConfig {
                kind: setup.kind,
                alpha: setup.alpha,
                beta: setup.beta,
                // What it does not take would come back at once, for the running core to do.
                queue: setup.queue.min(setup.processor.capabilities().queue),
                // Of each kind of job it is said when it first occurs.
                suites: 0,
                progress: Progress::InOrder,
                ..ProcessorConfig::cpu(setup.cost)
            });
            attached.push(Attached {
                stats: ProcessorStats::new(setup.processor.name()),
                processor: setup.processor,
                health: Health::new(index),
                expected: setup.cost,
                fits: vec![],
                costs: vec![],
                measured: 0,
                groups: VecDeque::with_capacity(settings.limits.in_flight),
            });
        }
        let Settings { scheduling, mut limits, order, addresses, seed } = settings;
        limits.burst = limits.burst.max(1);
        let Scheduling { policy, window, timeout, max_bytes, classes, dscp, lateness } = scheduling;
        let widest = classes.iter().map(|class| class.window).max().unwrap_or(window);
        let classed = !classes.is_empty() && dscp.classes() > 1;
        let input = limits.in_flight;
        let config = Config { policy, window, timeout, max_bytes, input, classes, ..Config::new(configs) };
        let mut engine = Engine {
            scheduler: Scheduler::new(config).map_err(EngineError::Scheduler)?,
            lateness: lateness && attached.len() > 1,
            order: ReleaseQueues::new(order, sas.len(), limits.in_flight),
            sad,
            clock,
            now: clock.now(),
            polled: clock.now(),
            polled_before: clock.now(),
            tallies: vec![],
            attached,
            sessions: Sessions::default(),
            flights: Flights::new(limits.in_flight),
            groups: Groups::new(limits.in_flight, widest.min(crate::BURST)),
            own: VecDeque::with_capacity(limits.in_flight),
            rescued: VecDeque::with_capacity(limits.in_flight),
            pool: Vec::with_capacity(2 * limits.in_flight),
            jobs: Vec::with_capacity(limits.burst),
            done: Vec::with_capacity(limits.in_flight),
            audited: Vec::with_capacity(1),
            outputs: Vec::with_capacity(limits.in_flight),
            hand_overs: vec![],
            refused: vec![],
            members: Vec::with_capacity(widest),
            drops: DropCounts::default(),
            stats: EngineStats::default(),
            edges: Edges::new(limits.reassembly.clone(), seed, addresses, limits.packet_capacity),
            strangers: Strangers::new(limits.strangers),
            dscp: classed.then_some(dscp),
            limits,
        };
        for ((session, direction), keys) in sas.into_iter().zip(keys) {
            engine.open(session, direction, keys)?;
        }
        Ok(engine)
    }

    /// How many packets may be admitted now: back-pressure is the caller's to heed, and a packet
    /// admitted beyond it is refused. Packets that wait in [`Engine::outputs`] take up room.
    pub fn room(&self) -> usize {
        self.flights.free().saturating_sub(self.outputs.len()).min(self.scheduler.input_room())
    }

    /// Packets admitted and not yet released.
    pub fn in_flight(&self) -> usize {
        self.flights.in_use()
    }

    /// An empty packet buffer.
    pub fn buffer(&mut self) -> Packet {
        self.pool.pop().unwrap_or_else(|| Packet::with_capacity(self.limits.packet_capacity))
    }

    /// Takes back the buffer of a packet that is no longer needed.
    pub fn recycle(&mut self, packet: Packet) {
        // A smaller one, which is not from here, would not hold every packet.
        let fits = packet.capacity() >= self.limits.packet_capacity;
        if fits && self.pool.len() < 2 * self.limits.in_flight {
            self.pool.push(packet);
        }
    }

    /// Packet buffers that are kept for use; at most two for each packet that may be in flight.
    pub fn free_buffers(&self) -> usize {
        self.pool.len()
    }

    /// Admits a packet: it gets its place in the order, and its job goes to the scheduler. A packet
    /// that cannot be admitted comes back with the reason, which is counted.
    ///
    /// One packet may become several outputs (fragments, what was aggregated) and several one (a datagram, an
    /// aggregate), which then has the last one's tag.
    pub fn admit(
        &mut self,
        direction: Direction,
        mut packet: Packet,
        tag: u64,
    ) -> Result<(), (Packet, DropReason)> {
        if self.room() == 0 {
            return self.refuse(packet, DropReason::QueueFull);
        }
        if packet.len() > self.limits.packet_capacity {
            return self.refuse(packet, DropReason::TooLong);
        }
        match self.gather(direction, &mut packet, tag) {
            Ok(Gathered::Go) => self.enter(direction, packet, tag),
            Ok(Gathered::Kept) => {
                self.recycle(packet);
                Ok(())
            }
            Err(reason) => self.refuse(packet, reason),
        }
    }

    /// Admits the packets of `burst`, of whose jobs only `packet` and `token`, the caller's tag, are looked at,
    /// and leaves it empty. Packets that cannot be admitted are counted, and [`Engine::refusals`] gives them back.
    pub fn admit_burst(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        for job in burst.drain(..) {
            if let Err((packet, reason)) = self.admit(direction, job.packet, job.token) {
                self.refused.push(Refusal { packet, tag: job.token, reason });
            }
        }
    }

    /// Takes the packets that [`Engine::admit_burst`] could not admit.
    pub fn refusals(&mut self) -> std::vec::Drain<'_, Refusal> {
        self.refused.drain(..)
    }

    /// Counts a packet that the caller had to drop before it could be admitted.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }

    pub(crate) fn refuse(&mut self, packet: Packet, reason: DropReason) -> Result<(), (Packet, DropReason)> {
        self.drops.count(reason);
        Err((packet, reason))
    }

    /// Prepares a whole packet.
    pub(crate) fn enter(
        &mut self,
        direction: Direction,
        mut packet: Packet,
        tag: u64,
    ) -> Result<(), (Packet, DropReason)> {
        let class = self.class_of(direction, &packet);
        let mut spec = JobSpec::default();
        match self.sad.prepare(direction, &mut packet, &mut spec) {
            Ok(Prepared::Job) => self.start(packet, spec, tag, class),
            Ok(Prepared::Bypass) => {
                self.bypass(packet, tag);
                Ok(())
            }
            Ok(Prepared::Remote(core)) => {
                self.hand_overs.push(HandOver { core, direction, packet, tag });
                Ok(())
            }
            Err(DropReason::OutPathMtu) => self.too_big(packet, tag),
            Err(DropReason::InNoStates) => self.keep_stranger(packet, tag),
            Err(reason) => self.refuse(packet, reason),
        }
    }

    /// Outbound by the packet's DSCP, inbound the first: what is opened was classed by its sender.
    fn class_of(&self, direction: Direction, packet: &Packet) -> u8 {
        match &self.dscp {
            Some(dscp) if direction == Direction::Seal => {
                Ip::parse(packet.bytes()).map_or(0, |ip| dscp.class_of_octet(ip.traffic_class()))
            }
            _ => 0,
        }
    }

    /// Gives a prepared packet its place in the order.
    pub(crate) fn start(
        &mut self,
        packet: Packet,
        spec: JobSpec,
        tag: u64,
        class: u8,
    ) -> Result<(), (Packet, DropReason)> {
        let Some(index) = self.flights.take() else {
            return self.refuse(packet, DropReason::QueueFull);
        };
        let flight = self.flights.get_mut(index);
        flight.path = Path::default();
        flight.tag = tag;
        flight.class = class;
        flight.bypass = false;
        flight.admitted = self.now;
        self.order.admit(spec.session.0, index);
        self.launch(index, packet, spec);
        Ok(())
    }

    /// Lets a packet through as it is: in its place where all packets keep their order, else at once.
    fn bypass(&mut self, packet: Packet, tag: u64) {
        let (admitted, released) = (self.now, self.now);
        let Some(index) = (self.order.is_total()).then(|| self.flights.take()).flatten() else {
            self.outputs.push(Output { packet, tag, session: None, result: Ok(()), admitted, released });
            return;
        };
        let flight = self.flights.get_mut(index);
        flight.tag = tag;
        flight.bypass = true;
        flight.admitted = admitted;
        flight.spec = JobSpec::default();
        flight.packet = Some(packet);
        flight.verdict = Verdict::Done;
        self.order.admit(0, index);
        self.release(index);
    }

    /// Sends flight `index` on its way through the crypto of one SA.
    pub(crate) fn launch(&mut self, index: u32, packet: Packet, spec: JobSpec) {
        let flight = self.flights.get_mut(index);
        flight.len = packet.len() as u32;
        flight.packet = Some(packet);
        flight.spec = spec;
        flight.tries = 0;
        // There is room on admission, `room` has looked; for the next SA's turn there may be none.
        if !self.schedule(index) {
            self.rescued.push_back(index);
        }
    }

    /// Gives a flight to the scheduler; `false` if that is full.
    pub(crate) fn schedule(&mut self, index: u32) -> bool {
        let flight = self.flights.get(index);
        let sa = flight.spec.session.0;
        let suite = self.sessions.kind(flight.spec.session);
        let item = Item { id: index.into(), sa, class: flight.class, suite, bytes: flight.len };
        self.scheduler.push(self.now, item).is_ok()
    }

    /// Says that no more packets are at hand, so that none waits for the window to fill.
    pub fn flush(&mut self) {
        self.scheduler.end_of_input();
    }

    /// One turn of the loop: takes answers, places jobs, does the running core's own, sees to
    /// deadlines. Returns whether anything moved; if not, the caller may rest a little.
    pub fn turn(&mut self) -> bool {
        self.now = self.clock.now();
        self.polled_before = std::mem::replace(&mut self.polled, self.now);
        let mut moved = self.pass_time();
        moved |= self.collect();
        if self.lateness {
            self.see_overdue();
        }
        moved |= self.place();
        moved |= self.work();
        self.watch();
        self.close_ended();
        moved
    }

    /// Takes turns until nothing is in flight or `limit` has passed; whether nothing is.
    pub fn drain(&mut self, limit: Duration) -> bool {
        let end = self.clock.now() + limit;
        let mut idle = Idle::default();
        while self.in_flight() > 0 && self.now < end {
            self.flush();
            idle.after(self.turn());
        }
        self.in_flight() == 0
    }

    /// The packets that are through, in the order of release.
    pub fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.outputs.drain(..)
    }

    /// Packets admitted since the last call that are for the engines of other cores, in their order. They take up no
    /// room here; to be taken after each burst.
    pub fn hand_overs(&mut self) -> std::vec::Drain<'_, HandOver> {
        self.hand_overs.drain(..)
    }

    /// The SAs.
    pub fn sad(&self) -> &Ipsec {
        &self.sad
    }

    /// The clock that the engine goes by.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Packets dropped so far, by reason; fragments that were held and dropped later among them.
    pub fn drops(&self) -> DropCounts {
        let mut drops = self.drops.clone();
        drops.add(self.edges.reassembler.drops());
        drops
    }

    /// What the engine as a whole did beyond passing packets on.
    pub fn stats(&self) -> &EngineStats {
        &self.stats
    }

    /// Jobs that wait in the queue of a processor.
    pub fn waiting_at(&self, processor: usize) -> usize {
        self.scheduler.waiting(processor)
    }

    /// The factor on a processor's finishing time as it is now.
    pub fn alpha(&self, processor: usize) -> f64 {
        self.scheduler.alpha(processor)
    }

    /// What a processor's jobs have been late by: added to the times when they are expected to be done.
    pub fn lateness(&self, processor: usize) -> Duration {
        self.scheduler.lateness(processor)
    }

    /// Changes the factor and what is added before it.
    ///
    /// # Errors
    /// If the factor is below 1, or too large.
    pub fn set_bias(&mut self, processor: usize, alpha: f64, beta: Duration) -> Result<(), ConfigError> {
        self.scheduler.set_bias(processor, alpha, beta)
    }

    /// What each processor did, the running core first.
    pub fn processors(&self) -> impl Iterator<Item = &ProcessorStats> {
        self.attached.iter().map(|one| &one.stats)
    }
}
