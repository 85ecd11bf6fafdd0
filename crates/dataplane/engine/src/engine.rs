//! The engine: it takes packets in, gives their jobs to the processors that the scheduler chooses, and lets the packets
//! out in order.
//!
//! ```text
//! admit_burst:  gather -> prepare -+-> the running core alone: crypto in place, complete, outputs   (in_place.rs)
//!                                  |
//!                                  +-> in flight: a slot each, scheduler                            (admit.rs)
//! poll:  answers of other processors taken                                                          (collect.rs)
//!        shares placed: running core, or a copy to another processor                                (place.rs)
//!        the running core's share done in place                                                     (place.rs)
//!        done and first of its SA? complete -> outputs, or the next SA of a nest                    (release.rs)
//! ```
//!
//! Packets are handled in bursts. A burst that stays at the running core is done at once, in place, without a lock, an
//! allocation or a copy. Another processor works on copies of its packets; the originals stay intact with the
//! submission. If the processor misses a deadline, or if a check shows that a result is wrong, it is ejected and the
//! running core does its jobs again. An answer that comes later names an old generation of its slot and is ignored, so
//! no packet is delivered twice.

use std::collections::VecDeque;

use forebay_crypto::{Direction, Job, Packet, SaKeys, SessionId};
use forebay_ipsec::{DropCounts, DropReason, Event, Ipsec, Next};
use forebay_scheduler::{Config, ConfigError, Cost, DscpMap, Item, Scheduler};
use forebay_time::{Duration, Time};

use crate::buffers::Buffers;
use crate::check::Check;
use crate::clock::Clock;
use crate::edges::{Answer, Edges};
use crate::idle::Idle;
use crate::in_flight::InFlight;
use crate::key_sessions::KeySessions;
use crate::moving::Moving;
use crate::pool::Pool;
use crate::setup::{EngineError, Limits, ProcessorSetup, Scheduling, Settings};
use crate::stats::{EngineStats, ProcessorStats};

/// A packet that has left the engine: complete, or dropped.
#[derive(Debug)]
pub struct Output {
    /// The packet. If it was dropped, its content is undefined.
    pub packet: Packet,
    /// The tag that the caller gave with it.
    pub tag: u64,
    /// The SA it went through; `None` for a packet that a policy bypasses. Where order is kept per SA, bypassed packets
    /// overtake those that wait for their crypto, and keep their order only among each other.
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
pub struct RemotePacket {
    /// The number of that core.
    pub core: u16,
    /// The direction in which it was admitted here and is to be admitted there.
    pub direction: Direction,
    /// The packet as it came; reassembled, if it came in fragments.
    pub packet: Packet,
    /// The tag that the caller gave with the packet.
    pub tag: u64,
}

/// A packet that could not be admitted.
#[derive(Debug)]
pub struct Refusal {
    /// The packet as it came.
    pub packet: Packet,
    /// The tag that the caller gave with the packet.
    pub tag: u64,
    /// The reason, which is already counted.
    pub reason: DropReason,
}

/// Everything that waits to leave the engine.
#[derive(Default)]
pub(crate) struct Outward {
    pub outputs: Vec<Output>,
    pub remote_packets: Vec<RemotePacket>,
    pub refusals: Vec<Refusal>,
}

/// Lists that the steps fill and empty again. They are kept so that their memory is reused.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Jobs for a processor, or done by one.
    pub jobs: Vec<Job>,
    /// A packet that is admitted by itself.
    pub one: Vec<Job>,
    /// The fate of each packet of a burst that is not delivered as a whole.
    pub fates: Vec<Result<Next, DropReason>>,
    /// Packets that go through another SA, by their place in the burst.
    pub again: Vec<Job>,
    /// Classes of the packets of the burst at hand, if there are several, and what the scheduler is to know of them.
    pub classes: Vec<u8>,
    pub items: Vec<Item>,
    /// Submissions of this round that are not handed over yet, by processor.
    pub open: Vec<u32>,
    /// SAs of packets that were just done: the first packets of their queues may be ready for release.
    pub touched: Vec<u32>,
}

/// Spreads the crypto of many packets over many processors, in real time, on the calling thread.
pub struct Engine {
    pub(crate) sad: Ipsec,
    pub(crate) scheduler: Scheduler,
    pub(crate) pool: Pool,
    pub(crate) sessions: KeySessions,
    pub(crate) in_flight: InFlight,
    pub(crate) edges: Edges,
    pub(crate) buffers: Buffers,
    pub(crate) outward: Outward,
    pub(crate) scratch: Scratch,
    /// Slots whose jobs the running core is to do: `local` by the scheduler's choice, `retries` because another
    /// processor failed at them, or because the scheduler had no place for them.
    pub(crate) local: VecDeque<u32>,
    pub(crate) retries: VecDeque<u32>,
    /// Answers of others that the running core checks with its next burst.
    pub(crate) checks: Vec<Check>,
    /// Answers that came behind one that is to be checked, with their processors: they wait for what the check says.
    pub(crate) held: Vec<(usize, Job)>,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) clock: Clock,
    pub(crate) now: Time,
    /// When the processors were last asked for answers, and when before that.
    pub(crate) polled: Time,
    pub(crate) polled_before: Time,
    pub(crate) moving: Moving,
    pub(crate) drops: DropCounts,
    pub(crate) stats: EngineStats,
}

/// The settings that the steps look at.
pub(crate) struct Rules {
    /// Whether lateness is reported to the scheduler, which is done where there is a choice of processors.
    pub lateness: bool,
    /// Whether every burst may be done in place without asking the scheduler: one processor, one class, no window.
    pub alone: bool,
    /// Whether a burst may be done in place if the scheduler agrees.
    pub may_keep: bool,
    /// Class of each DSCP outbound, if there are several.
    pub dscp: Option<DscpMap>,
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
        let Settings { scheduling, mut limits, order, addresses, seed } = settings;
        limits.burst = limits.burst.max(1);
        let (pool, configs) = Pool::new(processors, limits.in_flight);
        let rules = Rules::new(&scheduling, pool.len());
        let Scheduling { policy, window, timeout, max_bytes, classes, batch, .. } = scheduling;
        let (input, host) = (limits.in_flight, Some(crate::pool::RUNNING_CORE));
        let trials = configs.len() > 1;
        let config = Config {
            policy,
            window,
            timeout,
            max_bytes,
            input,
            classes,
            batch,
            trials,
            host,
            ..Config::new(configs)
        };
        let (room, processors) = (limits.in_flight, pool.len());
        let mut engine = Engine {
            scheduler: Scheduler::new(config).map_err(EngineError::Scheduler)?,
            in_flight: InFlight::new(order, sas.len(), room, batch.max(window).min(crate::BURST)),
            sad,
            clock,
            now: clock.now(),
            polled: clock.now(),
            polled_before: clock.now(),
            scratch: Scratch::new(limits.burst, room, processors),
            pool,
            sessions: KeySessions::default(),
            local: VecDeque::with_capacity(room),
            retries: VecDeque::with_capacity(room),
            checks: Vec::new(),
            held: Vec::new(),
            buffers: Buffers::new(limits.packet_capacity, 3 * room, processors),
            outward: Outward { outputs: Vec::with_capacity(room), ..Outward::default() },
            moving: Moving::default(),
            drops: DropCounts::default(),
            stats: EngineStats::default(),
            edges: Edges::new(
                limits.reassembly.clone(),
                limits.pending_spi,
                seed,
                addresses,
                limits.packet_capacity,
            ),
            rules,
            limits,
        };
        for ((session, direction), keys) in sas.into_iter().zip(keys) {
            engine.open(session, direction, keys)?;
        }
        Ok(engine)
    }

    /// How many packets may be admitted now. The caller is expected to respect this limit: packets beyond it are
    /// refused. Packets that wait in [`Engine::outputs`] take up room.
    #[inline]
    pub fn room(&self) -> usize {
        let slots = self.in_flight.slots.free().saturating_sub(self.outward.outputs.len());
        slots.min(self.scheduler.input_room())
    }

    /// Packets admitted and not yet released.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight.slots.in_use()
    }

    /// An empty packet buffer.
    #[inline]
    pub fn buffer(&mut self) -> Packet {
        self.buffers.take()
    }

    /// Takes back the buffer of a packet that is no longer needed.
    #[inline]
    pub fn recycle(&mut self, packet: Packet) {
        self.buffers.put(packet);
    }

    /// Packet buffers that are kept for use; at most three for each packet that may be in flight: itself, the copy that a processor
    /// works on, and one for a check.
    pub fn free_buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Counts a packet that the caller had to drop before it could be admitted.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }

    /// Says that no more packets are at hand, so that none waits for the window to fill.
    pub fn flush(&mut self) {
        self.scheduler.end_of_input();
    }

    /// Takes turns until nothing is in flight or `limit` has passed. Returns whether nothing is in flight.
    pub fn drain(&mut self, limit: Duration) -> bool {
        let end = self.clock.now() + limit;
        let mut idle = Idle::default();
        while self.in_flight() > 0 && self.now < end {
            self.flush();
            idle.after(self.poll());
        }
        self.in_flight() == 0
    }

    /// Takes the packets that have left, in the order of their release.
    #[inline]
    pub fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.outward.outputs.drain(..)
    }

    /// Packets admitted since the last call that are for the engines of other cores, in their order. They take up no
    /// room here; to be taken after each burst.
    pub fn remote_packets(&mut self) -> std::vec::Drain<'_, RemotePacket> {
        self.outward.remote_packets.drain(..)
    }

    /// Takes the packets that [`Engine::admit_burst`] could not admit.
    pub fn refusals(&mut self) -> std::vec::Drain<'_, Refusal> {
        self.outward.refusals.drain(..)
    }

    /// The SAs.
    #[inline]
    pub fn sad(&self) -> &Ipsec {
        &self.sad
    }

    /// The clock that the engine uses.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The next time at which something is due without a packet; [`Time::MAX`] if nothing is. It is a time as SAs are
    /// told it ([`Engine::set_time`]).
    pub fn next_due(&self) -> Time {
        self.sad.next_due().min(self.edges.next_due())
    }

    /// Bytes of inner packets that wait to be aggregated (IP-TFS).
    pub fn waiting(&self) -> usize {
        self.sad.waiting()
    }

    /// Takes the ICMP errors for the sources of packets that were larger than the path MTU.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.edges.answers()
    }

    /// Takes what has happened to SAs: see [`Ipsec::events`](forebay_ipsec::Ipsec::events).
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        self.sad.events()
    }

    /// The time that SAs use.
    #[inline]
    pub(crate) fn sa_time(&self) -> Time {
        self.edges.told.unwrap_or(self.now)
    }
}

/// Statistics, and changes to the scheduler at run time.
impl Engine {
    /// Packets dropped so far, by reason; fragments that were held and dropped later among them.
    pub fn drops(&self) -> DropCounts {
        let mut drops = self.drops.clone();
        drops.add(self.edges.reassembler.drops());
        drops
    }

    /// Counts of the engine as a whole, apart from packets passed on.
    pub fn stats(&self) -> &EngineStats {
        &self.stats
    }

    /// Statistics of each processor, the running core first.
    pub fn processors(&self) -> impl Iterator<Item = &ProcessorStats> {
        self.pool.iter().map(|one| &one.stats)
    }

    /// Jobs that wait in the queue of a processor.
    pub fn waiting_at(&self, processor: usize) -> usize {
        self.scheduler.waiting(processor)
    }

    /// The factor on a processor's finishing time as it is now.
    pub fn alpha(&self, processor: usize) -> f64 {
        self.scheduler.alpha(processor)
    }

    /// The usual lateness of a processor's jobs, which is added to their predicted finishing times.
    pub fn lateness(&self, processor: usize) -> Duration {
        self.scheduler.lateness(processor)
    }

    /// Time that the running core spends on a packet besides cryptography, as measured last.
    pub fn moving(&self) -> Duration {
        self.moving.per_packet()
    }

    /// Time that the running core spends to hand jobs to a processor and take them back, as measured last.
    pub fn feed(&self, processor: usize) -> Cost {
        self.pool.get(processor).feed()
    }

    /// Changes alpha, the factor on a processor's finishing time, and beta, the time that is added before the factor.
    ///
    /// # Errors
    /// If the factor is below 1, or too large.
    pub fn set_bias(&mut self, processor: usize, alpha: f64, beta: Duration) -> Result<(), ConfigError> {
        self.scheduler.set_bias(processor, alpha, beta)
    }
}

impl Rules {
    fn new(scheduling: &Scheduling, processors: usize) -> Rules {
        let Scheduling { window, classes, dscp, lateness, batch, .. } = scheduling;
        let classed = !classes.is_empty() && dscp.classes() > 1;
        let bundles =
            if classes.is_empty() { *window > 1 } else { classes.iter().any(|class| class.window > 1) };
        Rules {
            lateness: *lateness && processors > 1,
            alone: processors == 1 && !classed && !bundles,
            may_keep: *batch > 1 && !classed && !bundles,
            dscp: classed.then_some(*dscp),
        }
    }
}

impl Scratch {
    fn new(burst: usize, in_flight: usize, processors: usize) -> Scratch {
        Scratch {
            jobs: Vec::with_capacity(burst),
            one: Vec::with_capacity(1),
            fates: Vec::with_capacity(burst),
            again: Vec::new(),
            classes: Vec::new(),
            items: Vec::with_capacity(burst),
            open: vec![crate::in_flight::NONE; processors],
            touched: Vec::with_capacity(in_flight),
        }
    }
}
