//! The engine: it takes packets in, has their crypto done, and lets the packets out in order. A gateway has one engine
//! for each of its CPU cores; all of them use the same SAs.
//!
//! ```text
//! prepare_burst:  packets of each SA side by side, on this core                           (side_by_side.rs)
//!                 databases: gather -> prepare -> tickets                                       (admit.rs)
//! carry:          crypto in place, on this core                                                 (in_place.rs)
//!                    of several suites the fastest, the others at the next poll                 (by_suite.rs)
//!                 or, with other processors: slots, scheduler                                   (admit.rs)
//!                    poll: answers taken (collect.rs), shares placed and own share done (place.rs)
//!                 databases: ticket is next? complete -> outputs, or the next SA of a nest      (release.rs)
//!                            if not: parked for whoever completes the packets before            (tickets.rs)
//! ```
//!
//! Packets are handled in bursts. A core goes with its burst: no other core touches the packets' bytes until they are
//! sent. It uses the [`Databases`] twice a burst, each time alone and for a short moment ([`Turnstile`]). Another processor
//! works on copies of its packets; the originals stay intact with the submission. If the processor misses a deadline, or
//! if a check shows that a result is wrong, it is ejected and the running core does its jobs again. An answer that comes
//! later names an old generation of its slot and is ignored, so no packet is delivered twice.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, MutexGuard};

use forebay_crypto::{Direction, Job, Packet, SaKeys, SessionId};
use forebay_ipsec::{DropCounts, DropReason, Event, Ipsec};
use forebay_scheduler::{Config, ConfigError, Cost, DscpMap, Item, Scheduler};
use forebay_time::{Duration, Time};

use crate::buffers::Buffers;
use crate::by_suite::BySuite;
use crate::check::Check;
use crate::clock::Clock;
use crate::databases::{Databases, Keys};
use crate::edges::{Answer, Edges};
use crate::idle::Idle;
use crate::in_flight::InFlight;
use crate::key_sessions::KeySessions;
use crate::moving::Moving;
use crate::outputs::{Outputs, bit_of};
use crate::pace::Pace;
use crate::pool::Pool;
use crate::setup::{EngineError, Limits, ProcessorSetup, Scheduling, Settings};
use crate::side_by_side::SideBySide;
use crate::stats::{EngineStats, ProcessorStats};
use crate::tickets::{Order, Run, Tickets};
use crate::turnstile::Turnstile;

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

/// Packets side by side, and the runs that they are made of.
#[derive(Default)]
pub(crate) struct Done {
    pub jobs: Vec<Job>,
    pub runs: Vec<Run>,
}

/// Lists that the steps fill and empty again. They are kept so that their memory is reused.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Jobs for a processor, or done by one.
    pub jobs: Vec<Job>,
    /// A packet that is admitted by itself.
    pub one: Vec<Job>,
    /// Classes of the packets of the burst at hand, if there are several, and what the scheduler is to know of them.
    pub classes: Vec<u8>,
    pub items: Vec<Item>,
    /// Submissions of this round that are not handed over yet, by processor.
    pub open: Vec<u32>,
}

/// Spreads the crypto of many packets over many processors, in real time, on the calling thread. Engines of several
/// threads may share their SAs: see [`Engine::beside`].
pub struct Engine {
    pub(crate) shared: Arc<Turnstile<Databases>>,
    pub(crate) core: Core,
}

/// What a core has for itself.
pub(crate) struct Core {
    /// Its number among those that SAs may be bound to.
    pub cpu: u32,
    pub scheduler: Scheduler,
    pub pool: Pool,
    pub sessions: KeySessions,
    pub in_flight: InFlight,
    pub buffers: Buffers,
    pub scratch: Scratch,
    /// Packets that have left, as they were taken from the databases.
    pub outputs: Vec<Output>,
    pub refusals: Vec<Refusal>,
    /// The runs of the burst that was prepared last, until it is carried on.
    pub prepared: Vec<Run>,
    pub side_by_side: SideBySide,
    pub by_suite: BySuite,
    /// Packets whose crypto is done, to be completed together.
    pub done: Done,
    /// Packets that go through a further SA.
    pub again: Done,
    /// Packets of all cores that wait to be taken, and for their turn, when this core last saw the databases.
    pub untaken: usize,
    pub parked: usize,
    /// The lanes in which packets waited then, and whether there was something to tell: events of SAs, or answers.
    pub filled: u64,
    pub news: bool,
    /// Whether so many packets wait for their turn that the core which has it must have lost its CPU.
    pub is_held_up: bool,
    /// Slots whose jobs the running core is to do: `local` by the scheduler's choice, `retries` because another
    /// processor failed at them, or because the scheduler had no place for them.
    pub local: VecDeque<u32>,
    pub retries: VecDeque<u32>,
    /// Answers of others that the running core checks with its next burst.
    pub checks: Vec<Check>,
    /// Answers that came behind one that is to be checked, with their processors: they wait for what the check says.
    pub held: Vec<(usize, Job)>,
    pub limits: Limits,
    pub rules: Rules,
    pub clock: Clock,
    pub now: Time,
    /// When the processors were last asked for answers, and when before that.
    pub polled: Time,
    pub polled_before: Time,
    /// Until when nothing is due by time, as far as is known.
    pub rests_until: Time,
    pub moving: Moving,
    pub pace: Pace,
    pub drops: DropCounts,
    pub stats: EngineStats,
    /// Whether it counts what was dropped at the edges, which are everyone's.
    pub is_first: bool,
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
    /// An engine over `ipsec` with the running core and other processors; `keys` holds those of every
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
        ipsec: Ipsec,
        keys: &[SaKeys],
        processors: Vec<ProcessorSetup>,
        settings: Settings,
        clock: Clock,
    ) -> Result<Engine, EngineError> {
        let sas: Vec<_> = ipsec.iter().map(|(session, direction, ..)| (session, direction)).collect();
        if keys.len() != sas.len() {
            return Err(EngineError::Keys { sas: sas.len(), keys: keys.len() });
        }
        let Settings { scheduling, limits, order, addresses, seed } = settings;
        let (reassembly, capacity) = (limits.reassembly.clone(), limits.packet_capacity);
        let edges = Edges::new(reassembly, limits.pending_spi, seed, addresses, capacity);
        let (tickets, keys_of) = (Tickets::new(order), Keys::default());
        let outputs = Outputs::new(1);
        let (cores, spare) = (1, Vec::new());
        let databases = Databases { ipsec, tickets, edges, keys: keys_of, outputs, cores, spare };
        let side_by_side = SideBySide::new(order == Order::PerSa);
        let core =
            Core { is_first: true, side_by_side, ..Core::new(0, processors, scheduling, limits, clock)? };
        let mut engine = Engine { shared: Arc::new(Turnstile::new(databases)), core };
        for ((session, direction), keys) in sas.into_iter().zip(keys) {
            engine.open(session, direction, keys)?;
        }
        Ok(engine)
    }

    /// An engine for another thread that shares the SAs, policies and everything else that packets meet of this one, in
    /// the same order: each of the two takes whole bursts through all steps on its own processors, and what leaves does so
    /// through either, in the order of each SA. It is core number `cpu` among those that SAs may be bound to. Of the
    /// settings the order, the addresses, the seed and the limits of reassembly are those of this engine.
    ///
    /// # Errors
    /// As those of [`Engine::new`]; a processor that does not do a suite is found out when it has a packet of it.
    pub fn beside(
        &self,
        cpu: u32,
        processors: Vec<ProcessorSetup>,
        settings: Settings,
        clock: Clock,
    ) -> Result<Engine, EngineError> {
        let side_by_side = SideBySide::new(self.core.side_by_side.is_on());
        let mut core = Core::new(cpu, processors, settings.scheduling, settings.limits, clock)?;
        let pace = self.core.pace.beside(core.pool.core().processor.name());
        let core = Core { pace, side_by_side, ..core };
        self.shared.pass().cores += 1;
        Ok(Engine { shared: self.shared.clone(), core })
    }

    /// Admits the packets of `burst`, of whose jobs only `packet` and `token`, the caller's tag, are looked at,
    /// and leaves it empty. Packets that cannot be admitted are counted, and [`Engine::refusals`] gives them back.
    ///
    /// A burst that stays at the running core is done at once, except packets of slower suites, which wait for the next poll
    /// ([`Engine::puts_off`]), and its packets wait in [`Engine::outputs`]; any other burst moves on at the next
    /// [`Engine::poll`].
    ///
    /// One packet may become several outputs (fragments, the packets of an aggregate), and several packets may become
    /// one (a reassembled datagram, an aggregate), which then has the tag of the last one.
    pub fn admit_burst(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        self.prepare_burst(direction, burst);
        self.carry(burst);
    }

    /// The first part of [`Engine::admit_burst`], which gives packets their places in the order: sequence numbers and
    /// tickets. Where several cores take packets from one link, it is done before the next core may take some. The packets
    /// that have a job stay in `burst`, which is next to be given to [`Engine::carry`].
    #[inline]
    pub fn prepare_burst(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        self.core.side_by_side.arrange(direction, burst);
        self.core.prepare_burst(&mut self.shared.pass(), direction, burst);
    }

    /// The second part, which any number of cores do at the same time. Packets of a suite that takes long may be put off until the
    /// next call of this or of [`Engine::poll`]: see [`Engine::puts_off`].
    #[inline]
    pub fn carry(&mut self, burst: &mut Vec<Job>) {
        self.core.carry(&self.shared, burst);
    }

    /// Admits one packet, to be done at the next [`Engine::poll`] with others. A packet that cannot be admitted comes
    /// back with the reason, which is counted.
    pub fn admit(
        &mut self,
        direction: Direction,
        packet: Packet,
        tag: u64,
    ) -> Result<(), (Packet, DropReason)> {
        self.core.admit(&mut self.shared.pass(), direction, packet, tag)
    }

    /// One pass: collects answers, places jobs, does those of the running core, and watches deadlines. Returns whether
    /// anything moved; if not, the caller may sleep for a short time.
    pub fn poll(&mut self) -> bool {
        self.core.poll(&self.shared)
    }

    /// How many packets may be admitted now. The caller is expected to respect this limit: packets beyond it are
    /// refused. Packets that wait in [`Engine::outputs`] take up room.
    #[inline]
    pub fn room(&self) -> usize {
        self.core.room()
    }

    /// How many of `most` packets this core may take now: [`TAKE`](crate::TAKE), or half of it where more would not be worth it, and
    /// fewer if another core is faster and would have come to them and been done sooner, none if that one is free.
    #[inline]
    pub fn take_limit(&mut self, most: usize) -> usize {
        let most = most.min(self.core.pace.at_once());
        if self.core.pace.is_alone() { most } else { self.core.pace.limit(self.core.clock.now(), most) }
    }

    /// Whether packets of a suite that takes long wait for the next [`Engine::poll`], so that what is done should be taken before.
    #[inline]
    pub fn puts_off(&self) -> bool {
        self.core.by_suite.put_off() > 0
    }

    /// Whether the cryptography of so many packets, which begins now, will take this core longer than it takes to wake another
    /// one. If so, the others see it as [busy](Engine::is_busy).
    #[inline]
    pub fn takes_long(&mut self, packets: usize) -> bool {
        let takes_long = !self.core.pace.is_alone() && self.core.pace.takes_long(packets);
        if takes_long {
            self.core.pace.begins(self.core.clock.now(), packets);
        }
        takes_long
    }

    /// Whether another core, by its place among those that share their SAs, is predicted to be at its burst for a while, so
    /// that what comes to it meanwhile should be taken by others.
    pub fn is_busy(&self, core: usize) -> bool {
        self.core.pace.is_busy(core, self.core.clock.now())
    }

    /// Packets admitted and not yet released: those that are on their way here, and those of all cores whose turn to
    /// leave has not come.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.at_work() + self.core.parked
    }

    /// Packets of all cores that wait for their turn to leave, or to be taken.
    pub fn backlog(&self) -> usize {
        let db = self.shared.pass();
        db.tickets.parked() + db.outputs.len()
    }

    /// Packets on their way here whose crypto is not done.
    #[inline]
    pub fn at_work(&self) -> usize {
        self.core.in_flight.slots.in_use() + self.core.done.jobs.len() + self.core.by_suite.put_off()
    }

    /// The largest IP packet that a buffer of [`Engine::buffer`] holds, in bytes.
    #[inline]
    pub fn packet_capacity(&self) -> usize {
        self.core.buffers.capacity()
    }

    /// An empty packet buffer.
    #[inline]
    pub fn buffer(&mut self) -> Packet {
        self.core.buffers.take()
    }

    /// Takes back the buffer of a packet that is no longer needed.
    #[inline]
    pub fn recycle(&mut self, packet: Packet) {
        self.core.buffers.put(packet);
    }

    /// Packet buffers that are kept for use; at most three for each packet that may be in flight: itself, the copy that a processor
    /// works on, and one for a check.
    pub fn free_buffers(&self) -> usize {
        self.core.buffers.len()
    }

    /// Counts a packet that the caller had to drop before it could be admitted.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.core.drops.count(reason);
    }

    /// Says that no more packets are at hand, so that none waits for the window to fill.
    pub fn flush(&mut self) {
        self.core.scheduler.end_of_input();
    }

    /// Takes turns until nothing is in flight or `limit` has passed. Returns whether nothing is in flight.
    pub fn drain(&mut self, limit: Duration) -> bool {
        let end = self.core.clock.now() + limit;
        let mut idle = Idle::default();
        while self.in_flight() > 0 && self.core.now < end {
            self.flush();
            idle.after(self.poll());
        }
        self.in_flight() == 0
    }

    /// Takes the packets that have left, in the order of their release, whichever core had them; of several lanes one
    /// after the other.
    #[inline]
    pub fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        let db = &mut self.shared.pass();
        let by = self.core.cpu;
        (0..db.outputs.lanes()).for_each(|lane| db.outputs.take(by, lane, &mut self.core.outputs));
        self.core.look_at_backlog(db);
        self.core.outputs.drain(..)
    }

    /// Takes the packets that have left by lane number `lane`, and puts them behind those of `to`. `look` looks at the SAs with
    /// them, before anybody can change these.
    #[inline]
    pub fn take_outputs<R>(
        &mut self,
        lane: usize,
        to: &mut Vec<Output>,
        look: impl FnOnce(&Ipsec, &mut Vec<Output>) -> R,
    ) -> R {
        let db = &mut self.shared.pass();
        db.outputs.take(self.core.cpu, lane, to);
        self.core.look_at_backlog(db);
        look(&db.ipsec, to)
    }

    /// Packets that have left and were not taken, in all lanes, when this core last looked.
    #[inline]
    pub fn untaken(&self) -> usize {
        self.core.untaken
    }

    /// Has packets leave by lanes for so many cores, before there are SAs. Of n cores, n > 1, the first n lanes are for inbound SAs:
    /// each has the lane number SPI modulo n, which is where sockets deliver its packets. The other n are for outbound ones,
    /// by the same rule, so that a peer with as many cores has them steered alike.
    /// There is one lane for all to begin with.
    pub fn set_lanes(&mut self, cores: usize) {
        self.shared.pass().outputs = Outputs::new(cores);
    }

    /// The lane of an SA's packets.
    pub fn lane_of(&self, session: SessionId) -> usize {
        self.shared.pass().outputs.lane_of(Some(session))
    }

    /// Whether nothing waited in a lane to be taken, when this core last looked.
    #[inline]
    pub fn is_empty_lane(&self, lane: usize) -> bool {
        self.core.filled & bit_of(lane) == 0
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.shared.pass().outputs.lanes()
    }

    /// Takes the packets that [`Engine::admit_burst`] could not admit.
    pub fn refusals(&mut self) -> std::vec::Drain<'_, Refusal> {
        self.core.refusals.drain(..)
    }

    /// The SAs, for this thread alone as long as they are looked at.
    #[inline]
    pub fn sad(&self) -> impl Deref<Target = Ipsec> + use<'_> {
        Sas(self.shared.pass())
    }

    /// The clock that the engine uses.
    pub fn clock(&self) -> Clock {
        self.core.clock
    }

    /// The next time at which something is due without a packet; [`Time::MAX`] if nothing is. It is a time as SAs are
    /// told it ([`Engine::set_time`]). Packets that are [put off](Engine::puts_off) are not a matter of time: poll until there are
    /// none.
    pub fn next_due(&self) -> Time {
        let db = self.shared.pass();
        db.ipsec.next_due().min(db.edges.next_due()).min(db.tickets.next_due())
    }

    /// Whether anything happens to SAs or packets by time alone, so that it matters when exactly packets come.
    pub fn goes_by_time(&self) -> bool {
        let db = self.shared.pass();
        let due = db.ipsec.next_due().min(db.edges.next_due());
        db.ipsec.aggregates() || due < Time::MAX
    }

    /// Tells the SAs the time. From now on it replaces the time of the clock: packets of a file have their own times.
    pub fn set_time(&mut self, time: Time) {
        let db = &mut self.shared.pass();
        db.edges.told = Some(time);
        self.core.pass_time(db);
    }

    /// Bytes of inner packets that wait to be aggregated (IP-TFS).
    pub fn waiting(&self) -> usize {
        self.shared.pass().ipsec.waiting()
    }

    /// Takes the ICMP errors for the sources of packets that were larger than the path MTU, if there were any when this core
    /// last looked.
    pub fn answers(&mut self) -> Vec<Answer> {
        if !self.core.news {
            return Vec::new();
        }
        let db = &mut self.shared.pass();
        let answers = db.edges.answers().collect();
        self.core.news = db.has_news();
        answers
    }

    /// Takes what has happened to SAs, if there was anything when this core last looked: see
    /// [`Ipsec::events`](forebay_ipsec::Ipsec::events).
    pub fn events(&mut self) -> Vec<Event> {
        if !self.core.news {
            return Vec::new();
        }
        let db = &mut self.shared.pass();
        let events = db.ipsec.events().collect();
        self.core.news = db.has_news();
        events
    }
}

impl Core {
    fn new(
        cpu: u32,
        processors: Vec<ProcessorSetup>,
        scheduling: Scheduling,
        mut limits: Limits,
        clock: Clock,
    ) -> Result<Core, EngineError> {
        limits.burst = limits.burst.max(1);
        limits.overtake = limits.overtake.max(limits.hold.times(2));
        let (mut pool, configs) = Pool::new(processors, limits.in_flight);
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
        Ok(Core {
            cpu,
            scheduler: Scheduler::new(config).map_err(EngineError::Scheduler)?,
            in_flight: InFlight::new(room, batch.max(window).min(crate::BURST)),
            clock,
            now: clock.now(),
            polled: clock.now(),
            rests_until: Time::ZERO,
            polled_before: clock.now(),
            scratch: Scratch::new(limits.burst, processors),
            pace: Pace::first(pool.core().processor.name()),
            pool,
            sessions: KeySessions::default(),
            local: VecDeque::with_capacity(room),
            retries: VecDeque::with_capacity(room),
            checks: Vec::new(),
            held: Vec::new(),
            buffers: Buffers::new(limits.packet_capacity, 3 * room, processors),
            outputs: Vec::with_capacity(room),
            refusals: Vec::new(),
            prepared: Vec::with_capacity(limits.burst),
            side_by_side: SideBySide::new(false),
            by_suite: BySuite::new(limits.burst),
            done: Done { jobs: Vec::with_capacity(room), runs: Vec::with_capacity(room) },
            again: Done::default(),
            untaken: 0,
            parked: 0,
            filled: 0,
            news: false,
            is_held_up: false,
            moving: Moving::default(),
            drops: DropCounts::default(),
            stats: EngineStats::default(),
            rules,
            limits,
            is_first: false,
        })
    }

    #[inline]
    pub fn room(&self) -> usize {
        self.free_slots().min(self.scheduler.input_room())
    }

    /// Slots that packets may be admitted to: as many as there are packets that wait to leave stay free.
    #[inline]
    fn free_slots(&self) -> usize {
        self.in_flight.slots.free().saturating_sub(self.untaken + self.parked + self.by_suite.put_off())
    }

    /// Whether any packet could be admitted, as far as memory goes.
    pub fn has_slots(&self) -> bool {
        self.free_slots() > 0
    }

    #[inline]
    pub fn recycle(&mut self, packet: Packet) {
        self.buffers.put(packet);
    }

    /// Notes how much waits at the databases.
    #[inline]
    pub fn look_at_backlog(&mut self, db: &mut Databases) {
        (self.untaken, self.parked) = (db.outputs.len(), db.tickets.parked());
        (self.filled, self.news) = (db.outputs.filled(), db.has_news());
        if db.cores > 1 {
            // More than a burst of each core waits for its turn only if a core has lost its CPU.
            self.is_held_up = self.parked > db.cores * crate::TAKE;
            self.buffers.even_out(&mut db.spare);
        }
    }

    /// Lets another thread have this CPU if all wait for one that has none. Without it, where there are more threads than
    /// CPUs, packets pile up for as long as the system lets this one run.
    #[inline]
    pub fn give_way(&self) {
        if self.is_held_up {
            std::thread::yield_now();
        }
    }

    /// The time that SAs use.
    #[inline]
    pub fn sa_time(&self, db: &Databases) -> Time {
        db.edges.told.unwrap_or(self.now)
    }
}

/// The SAs, while this thread is at the databases.
struct Sas<'a>(MutexGuard<'a, Databases>);

impl Deref for Sas<'_> {
    type Target = Ipsec;

    fn deref(&self) -> &Ipsec {
        &self.0.ipsec
    }
}

/// Statistics, and changes to the scheduler at run time.
impl Engine {
    /// Packets dropped so far, by reason; fragments that were held and dropped later among them.
    pub fn drops(&self) -> DropCounts {
        let mut drops = self.core.drops.clone();
        if self.core.is_first {
            drops.add(self.shared.pass().edges.reassembler.drops());
        }
        drops
    }

    /// Counts of the engine as a whole, apart from packets passed on.
    pub fn stats(&self) -> &EngineStats {
        &self.core.stats
    }

    /// Statistics of each processor, the running core first.
    pub fn processors(&self) -> impl Iterator<Item = &ProcessorStats> {
        self.core.pool.iter().map(|one| &one.stats)
    }

    /// Jobs that wait in the queue of a processor.
    pub fn waiting_at(&self, processor: usize) -> usize {
        self.core.scheduler.waiting(processor)
    }

    /// The factor on a processor's finishing time as it is now.
    pub fn alpha(&self, processor: usize) -> f64 {
        self.core.scheduler.alpha(processor)
    }

    /// Whether the scheduler's policy goes by the load of the running core: see [`Engine::report_load`].
    #[inline]
    pub fn follows_load(&self) -> bool {
        self.core.scheduler.follows_load()
    }

    /// Says for which share of the time the running core's CPU was busy since the last report, 0 to 1, with crypto and all else.
    pub fn report_load(&mut self, load: f64) {
        let now = self.core.clock.now();
        self.core.scheduler.report_whole_load(crate::RUNNING_CORE, now, load);
    }

    /// The usual lateness of a processor's jobs, which is added to their predicted finishing times.
    pub fn lateness(&self, processor: usize) -> Duration {
        self.core.scheduler.lateness(processor)
    }

    /// Time that the running core spends on a packet besides cryptography, as measured last.
    pub fn moving(&self) -> Duration {
        self.core.moving.per_packet()
    }

    /// Time that the running core spends to hand jobs to a processor and take them back, as measured last.
    pub fn feed(&self, processor: usize) -> Cost {
        self.core.pool.get(processor).feed()
    }

    /// Changes alpha, the factor on a processor's finishing time, and beta, the time that is added before the factor.
    ///
    /// # Errors
    /// If the factor is below 1, or too large.
    pub fn set_bias(&mut self, processor: usize, alpha: f64, beta: Duration) -> Result<(), ConfigError> {
        self.core.scheduler.set_bias(processor, alpha, beta)
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
    fn new(burst: usize, processors: usize) -> Scratch {
        Scratch {
            jobs: Vec::with_capacity(burst),
            one: Vec::with_capacity(1),
            classes: Vec::new(),
            items: Vec::with_capacity(burst),
            open: vec![crate::in_flight::NONE; processors],
        }
    }
}
