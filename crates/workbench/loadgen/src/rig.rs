//! Engines with packets at hand, driven as a gateway drives them: one for each core, which share their SAs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_crypto::{Direction, Job, JobSpec, SaKeys, SecretBytes, Suite};
use forebay_engine::{
    Clock, Engine, EngineStats, Idle, Limits, Output, ProcessorSetup, ProcessorStats, Scheduling, Settings,
    TAKE, Turnstile,
};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, miette};

use super::latency::{Arrivals, Latencies};
use super::order::Sequence;
use super::processors::Team;
use forebay_processors::Backend;

/// Packets in flight at most, as in `forebay seal`.
const IN_FLIGHT: usize = 1024;
/// The longest wait for the window to fill: the gateway's default.
pub const WINDOW_TIMEOUT: Duration = Duration::from_micros(50);
/// No packet takes so long: the engine stands still.
const STUCK: Duration = Duration::from_millis(10_000);
/// Packets that are opened and compared after each measurement.
const VERIFIED: usize = 256;
/// The longest that an engine runs before it is measured, so that it has learnt what jobs cost.
const WARM_UP_MAX: Duration = Duration::from_millis(250);
/// Room that a sealed packet needs beyond the plain one.
const OVERHEAD: usize = 128;

/// What is measured: packets, and who seals them by which rule.
pub struct Setting<'a> {
    /// The suite of the SAs.
    pub suite: Suite,
    /// How many SAs there are.
    pub sas: usize,
    /// The plain packets, in turn.
    pub packets: &'a [Vec<u8>],
    /// How packets find their processors.
    pub policy: Policy,
    /// Packets among which those of one SA are bundled.
    pub window: usize,
    /// The clock of the engine.
    pub clock: Clock,
}

/// The engines of all cores, which share their SAs, and where their packets are.
pub struct Rig<'a> {
    setting: &'a Setting<'a>,
    cores: Vec<Core>,
    /// The processors in the order in which they were asked for: see [`Team::places`].
    places: Vec<(usize, usize)>,
    /// Where packets come from, and where they go.
    source: Turnstile<Source>,
    sink: Turnstile<Sink>,
    /// Whether more packets are due than the first core takes at a time, so that others help, as the workers of a gateway do.
    crowded: AtomicBool,
    /// Packets released when the last offer ended.
    released_by_end: u64,
}

/// One core: its engine, and the lists that its packets go through.
struct Core {
    engine: Engine,
    /// How many bursts it is to take, beside the others; all are free to take any if the source says nothing.
    weight: u16,
    idle: Idle,
    /// Packets that are at hand before they are due, as in the queue of a link.
    stock: VecDeque<Job>,
    /// How many packets it has put there.
    stocked: usize,
    burst: Vec<Job>,
    outputs: Vec<Output>,
    latencies: Option<Latencies>,
}

/// Which packets come next, and whose they are.
#[derive(Default)]
struct Source {
    /// Packets admitted.
    admitted: u64,
    /// Bursts that each core is behind its weight: it is the turn of the one that is furthest behind.
    behind: Vec<i64>,
    arrivals: Option<Arrivals>,
}

/// What comes out.
struct Sink {
    sequence: Sequence,
    released: u64,
    /// When a packet was last released.
    moved: Time,
}

impl<'a> Rig<'a> {
    /// Engines over the processors of `team`.
    pub fn new(setting: &'a Setting<'a>, team: Team) -> miette::Result<Rig<'a>> {
        let Team { engines, places } = team;
        let (sad, keys) = sas(setting.sas, setting.suite, Direction::Seal)?;
        let longest = setting.packets.iter().map(Vec::len).max().unwrap_or(0);
        let limits =
            Limits { in_flight: IN_FLIGHT, packet_capacity: longest + OVERHEAD, ..Limits::default() };
        let mut first = Some((sad, keys));
        let mut cores: Vec<Core> = vec![];
        let dealt = dealt(setting.policy, &places, engines.len());
        for (cpu, (processors, (policy, weight))) in engines.into_iter().zip(dealt).enumerate() {
            let scheduling = Scheduling {
                policy,
                window: setting.window,
                timeout: (setting.window > 1).then_some(WINDOW_TIMEOUT),
                // As the gateway has it by default.
                lateness: true,
                ..Scheduling::default()
            };
            let settings = Settings { scheduling, limits: limits.clone(), ..Settings::default() };
            let engine = match (first.take(), cores.first()) {
                (Some((sad, keys)), _) => Engine::new(sad, &keys, processors, settings, setting.clock),
                (None, Some(first)) => first.engine.beside(cpu as u32, processors, settings, setting.clock),
                (None, None) => return Err(miette!("no core")),
            };
            let (burst, outputs) = (Vec::with_capacity(TAKE), Vec::with_capacity(IN_FLIGHT));
            cores.push(Core {
                engine: engine.into_diagnostic()?,
                weight,
                idle: Idle::default(),
                stock: VecDeque::with_capacity(TAKE),
                // So that sizes that come in turn come at all cores at different times.
                stocked: cpu * setting.packets.len() / 2,
                burst,
                outputs,
                latencies: None,
            });
        }
        let moved = setting.clock.now();
        Ok(Rig {
            setting,
            source: Turnstile::new(Source { behind: vec![0; cores.len()], ..Source::default() }),
            sink: Turnstile::new(Sink { sequence: Sequence::default(), released: 0, moved }),
            crowded: AtomicBool::new(false),
            released_by_end: 0,
            cores,
            places,
        })
    }

    /// Engines that have run for a while, for a measurement of `length`.
    pub fn warm(setting: &'a Setting<'a>, team: Team, length: Duration) -> miette::Result<Rig<'a>> {
        let mut rig = Rig::new(setting, team)?;
        rig.saturate(WARM_UP_MAX.min(Duration(length.0 / 2)))?;
        Ok(rig)
    }

    /// The engine of the first core.
    pub fn engine(&self) -> &Engine {
        &self.cores[0].engine
    }

    /// How many cores take bursts.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// What each processor has done, in the order in which they were asked for.
    pub fn processors(&self) -> impl Iterator<Item = &ProcessorStats> {
        let stats = |&(core, place): &(usize, usize)| self.cores[core].engine.processors().nth(place);
        self.places.iter().filter_map(stats)
    }

    /// What each engine has counted.
    pub fn stats(&self) -> impl Iterator<Item = &EngineStats> {
        self.cores.iter().map(|core| core.engine.stats())
    }

    /// Keeps the engines full for `length`, or until a packet is released; packets released per second.
    pub fn saturate(&mut self, length: Duration) -> miette::Result<f64> {
        let before = self.sink.get_mut().released;
        let start = self.now();
        self.run(length, Core::saturate)?;
        let elapsed = self.now().since(start);
        Ok((self.sink.get_mut().released - before) as f64 / elapsed.as_secs())
    }

    /// Packets per second that it takes of more than it can, as [`Rig::offer`] has it: fewer than by [`Rig::saturate`], because
    /// the arrival of each packet is looked up and its latency is noted.
    pub fn carries(&mut self, more: f64, length: Duration) -> miette::Result<f64> {
        let before = self.sink.get_mut().released;
        let latencies = self.offer(more, length, 0)?;
        // Those that were in flight at the end have left later.
        let within = latencies.count().min(self.released_by_end - before);
        Ok(within as f64 / length.as_secs())
    }

    /// Offers `rate` packets per second at drawn times for `length`; how long each took from the time when it was
    /// due, whether it could be admitted then or not, until it was released.
    pub fn offer(&mut self, rate: f64, length: Duration, seed: u64) -> miette::Result<Latencies> {
        for core in &mut self.cores {
            core.latencies = Some(Latencies::new()?);
        }
        let arrivals = Arrivals::new(rate, length, seed);
        self.source.get_mut().arrivals = Some(arrivals.begin(self.setting.clock.now()));
        self.run(length, Core::offer)?;
        self.released_by_end = self.sink.get_mut().released;
        self.source.get_mut().arrivals = None;
        self.drain_all()?;
        let mut all = Latencies::new()?;
        self.cores.iter_mut().filter_map(|core| core.latencies.take()).for_each(|one| all.add_all(&one));
        Ok(all)
    }

    /// Has all cores take their steps until `length` has passed, each on a thread of its own.
    fn run(
        &mut self,
        length: Duration,
        step: fn(&mut Core, &Hall<'_>) -> miette::Result<bool>,
    ) -> miette::Result<()> {
        let end = self.setting.clock.now() + length;
        let before = self.sink.get_mut().released;
        let weights: Vec<u16> = self.cores.iter().map(|core| core.weight).collect();
        let Rig { setting, cores, source, sink, crowded, .. } = self;
        let weights = weights.as_slice();
        let hall = |core| Hall { setting, core, weights, source, sink, crowded, end, before };
        let mut cores = cores.iter_mut().enumerate().filter(|(_, core)| core.weight > 0);
        let Some((first, mine)) = cores.next() else { return Ok(()) };
        std::thread::scope(|scope| {
            let others: Vec<_> = cores
                .map(|(place, core)| {
                    let hall = hall(place);
                    scope.spawn(move || core.work(&hall, step))
                })
                .collect();
            let done = mine.work(&hall(first), step);
            let ended = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|_| Err(miette!("a core failed"))));
            ended.collect::<Vec<_>>().into_iter().collect::<miette::Result<()>>().and(done)
        })
    }

    /// Waits for all packets that are in flight.
    ///
    /// # Errors
    /// If they do not come, or more or fewer than were admitted have.
    pub fn drain(&mut self) -> miette::Result<()> {
        self.drain_all()?;
        let (admitted, released) = (self.source.get_mut().admitted, self.sink.get_mut().released);
        if released != admitted {
            return Err(miette!("{admitted} packets were admitted and {released} were returned"));
        }
        Ok(())
    }

    fn drain_all(&mut self) -> miette::Result<()> {
        let Rig { setting, cores, source, sink, crowded, .. } = self;
        let weights = [];
        let end = setting.clock.now();
        sink.get_mut().moved = end;
        loop {
            let mut moved = false;
            for (place, core) in cores.iter_mut().enumerate() {
                let (weights, before) = (&weights[..], u64::MAX);
                let hall = Hall { setting, core: place, weights, source, sink, crowded, end, before };
                core.engine.flush();
                moved |= core.engine.poll();
                moved |= core.take(&hall)?;
            }
            if cores.iter().all(|core| core.engine.in_flight() == 0) {
                return Ok(());
            }
            if !moved && setting.clock.now().since(sink.get_mut().moved) > STUCK {
                return Err(miette!("the engine stalled with packets in flight"));
            }
        }
    }

    /// Seals some more packets, by each core in turn, and opens them with another engine: each has to be there, and as it
    /// was.
    pub fn verify(&mut self) -> miette::Result<()> {
        let mut sealed: Vec<(usize, Vec<u8>)> = Vec::new();
        let computing = self.cores.iter_mut().filter(|core| core.weight > 0);
        for core in computing {
            let share = sealed.len() + VERIFIED;
            while sealed.len() < share || core.engine.in_flight() > 0 {
                let source = self.source.get_mut();
                let count = core.engine.room().min(TAKE).min(share.saturating_sub(sealed.len()));
                for _ in 0..count {
                    let place = source.admitted as usize % self.setting.packets.len();
                    core.fill(&self.setting.packets[place], place as u64);
                    source.admitted += 1;
                }
                core.admit()?;
                core.engine.flush();
                while core.engine.poll() {}
                for output in core.engine.outputs() {
                    sealed.push((output.tag as usize, output.packet.bytes().to_vec()));
                }
            }
        }
        open(self.setting, &sealed)
    }

    fn now(&self) -> Time {
        self.setting.clock.now()
    }
}

/// Where the cores of a rig meet, as one of them sees it.
struct Hall<'a> {
    setting: &'a Setting<'a>,
    core: usize,
    weights: &'a [u16],
    source: &'a Turnstile<Source>,
    sink: &'a Turnstile<Sink>,
    crowded: &'a AtomicBool,
    /// When the measurement ends, if a packet has been released by then beyond these.
    end: Time,
    before: u64,
}

impl Hall<'_> {
    /// Whether bursts are dealt out by a fixed rule.
    fn is_dealt(&self) -> bool {
        matches!(self.setting.policy, Policy::RoundRobin | Policy::Split { .. }) && self.weights.len() > 1
    }

    fn is_over(&self) -> bool {
        self.setting.clock.now() >= self.end && self.sink.pass().released > self.before
    }
}

impl Source {
    /// Whether the next burst is for this core, by the weights of all. If it is, it is taken.
    fn is_turn_of(&mut self, core: usize, weights: &[u16]) -> bool {
        let ahead = |place: &usize| self.behind[*place] + i64::from(weights[*place]);
        let next = (0..weights.len()).filter(|place| weights[*place] > 0).max_by_key(ahead);
        if next != Some(core) {
            return false;
        }
        let all: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
        self.behind.iter_mut().zip(weights).for_each(|(behind, weight)| *behind += i64::from(*weight));
        self.behind[core] -= all;
        true
    }
}

impl Core {
    fn work(
        &mut self,
        hall: &Hall<'_>,
        step: fn(&mut Core, &Hall<'_>) -> miette::Result<bool>,
    ) -> miette::Result<()> {
        loop {
            let moved = step(self, hall)?;
            self.idle.after(moved);
            if hall.is_over() {
                return Ok(());
            }
        }
    }

    /// A burst of packets of its own, which are copied before there is anything in order, as a link's queue would be.
    fn saturate(&mut self, hall: &Hall<'_>) -> miette::Result<bool> {
        let packets = hall.setting.packets;
        let mut count = self.engine.room().min(TAKE);
        if !hall.is_dealt() {
            count = self.engine.take_limit(count);
        }
        if count == 0 {
            std::thread::yield_now();
        }
        let mut source = None;
        if hall.is_dealt() {
            let mut dealt = hall.source.pass();
            if count < TAKE || !dealt.is_turn_of(hall.core, hall.weights) {
                drop(dealt);
                std::thread::yield_now();
                let moved = self.engine.poll();
                return Ok(moved | self.take(hall)?);
            }
            source = Some(dealt);
        }
        let number = |source: &mut Source| {
            let from = source.admitted;
            source.admitted += count as u64;
            from
        };
        let from = match &mut source {
            Some(source) => number(source),
            None => number(&mut hall.source.pass()),
        };
        for n in from..from + count as u64 {
            self.fill(&packets[n as usize % packets.len()], 0);
        }
        self.engine.prepare_burst(Direction::Seal, &mut self.burst);
        // Whose burst is next is decided when this one has its places in the order.
        drop(source);
        self.carry()?;
        self.turn(hall, count > 0)
    }

    /// The packets that are due. As of a link's queue, they are in memory before, and are prepared in the order in which they are
    /// taken. The queue is the first core's: others take from it while more are due than it takes at a time, or it is at a burst that
    /// takes long.
    fn offer(&mut self, hall: &Hall<'_>) -> miette::Result<bool> {
        let packets = hall.setting.packets;
        let mut room = self.engine.room().min(TAKE);
        let first = hall.weights.iter().position(|weight| *weight > 0).unwrap_or(0);
        let is_own = hall.is_dealt() || hall.core == first;
        if !hall.is_dealt() {
            room = self.engine.take_limit(room).max(usize::from(is_own && room > 0));
        }
        while self.stock.len() < room {
            let mut packet = self.engine.buffer();
            let fits = packet.fill(&packets[self.stocked % packets.len()]);
            debug_assert!(fits);
            self.stocked += 1;
            self.stock.push_back(Job::new(packet, JobSpec::default(), 0));
        }
        let source = match is_own {
            true => Some(hall.source.pass()),
            false if room > 0 && (hall.crowded.load(Ordering::Relaxed) || self.engine.is_busy(first)) => {
                hall.source.try_pass()
            }
            false => None,
        };
        let mut taken = false;
        if let Some(mut source) = source {
            let now = hall.setting.clock.now();
            let may_take = !hall.is_dealt() || source.is_turn_of(hall.core, hall.weights);
            while may_take
                && self.burst.len() < room
                && let Some(due) = source.arrivals.as_mut().and_then(|arrivals| arrivals.due(now))
                && let Some(job) = self.stock.pop_front()
            {
                self.burst.push(Job { token: due.0, ..job });
            }
            taken = !self.burst.is_empty();
            source.admitted += self.burst.len() as u64;
            let crowded = self.burst.len() == room;
            if hall.crowded.load(Ordering::Relaxed) != crowded {
                hall.crowded.store(crowded, Ordering::Relaxed);
            }
            self.engine.prepare_burst(Direction::Seal, &mut self.burst);
        }
        self.carry()?;
        let moved = self.turn(hall, taken)?;
        if !moved {
            // Not a sleep, which would be late for the next packet; but others on this core go first.
            std::thread::yield_now();
        }
        // It never rests: a packet may be due at any time.
        Ok(true)
    }

    /// Puts a packet into the burst.
    #[inline]
    fn fill(&mut self, plain: &[u8], tag: u64) {
        let mut packet = self.engine.buffer();
        let fits = packet.fill(plain);
        debug_assert!(fits);
        self.burst.push(Job::new(packet, JobSpec::default(), tag));
    }

    fn admit(&mut self) -> miette::Result<()> {
        self.engine.prepare_burst(Direction::Seal, &mut self.burst);
        self.carry()
    }

    #[inline]
    fn carry(&mut self) -> miette::Result<()> {
        self.engine.carry(&mut self.burst);
        match self.engine.refusals().next() {
            Some(refusal) => Err(miette!("the engine rejected a packet: {}", refusal.reason.explanation())),
            None => Ok(()),
        }
    }

    /// The engine turns until nothing moves, and what is through comes out. Whether anything moved.
    #[inline]
    fn turn(&mut self, hall: &Hall<'_>, mut moved: bool) -> miette::Result<bool> {
        if self.engine.follows_load() {
            // It never sleeps.
            self.engine.report_load(1.0);
        }
        loop {
            if self.engine.puts_off() {
                moved |= self.take(hall)?;
            }
            if !self.engine.poll() {
                break;
            }
            moved = true;
        }
        moved |= self.take(hall)?;
        if !moved && self.engine.at_work() > 0 {
            // Nothing more is at hand, so that no packet waits for the window to fill.
            self.engine.flush();
            moved |= self.engine.poll();
            moved |= self.take(hall)?;
        }
        if !moved && self.engine.in_flight() > 0 {
            let last = hall.sink.pass().moved;
            if hall.setting.clock.now().since(last) > STUCK {
                return Err(miette!("the engine stalled with {} packets in flight", self.engine.in_flight()));
            }
        }
        Ok(moved)
    }

    /// Takes what is through, unless another core does; whether there was anything.
    #[inline]
    fn take(&mut self, hall: &Hall<'_>) -> miette::Result<bool> {
        if self.engine.untaken() == 0 {
            return Ok(false);
        }
        let Some(mut sink) = hall.sink.try_pass() else { return Ok(false) };
        self.engine.take_outputs(0, &mut self.outputs, |_, _| {});
        let released = hall.setting.clock.now();
        sink.moved = released;
        sink.released += self.outputs.len() as u64;
        for output in &self.outputs {
            if let Err(reason) = output.result {
                return Err(miette!("a packet was dropped: {}", reason.explanation()));
            }
            let sa = output.session.map_or(usize::MAX, |session| session.0 as usize);
            let ordered = sink.sequence.take(sa, output.packet.bytes());
            ordered.map_err(|why| miette!("SA {sa}: a packet is out of order: {why}"))?;
        }
        drop(sink);
        if let Some(latencies) = &mut self.latencies {
            self.outputs.iter().for_each(|output| latencies.add(released.since(Time(output.tag))));
        }
        let any = !self.outputs.is_empty();
        self.outputs.drain(..).for_each(|output| self.engine.recycle(output.packet));
        Ok(any)
    }
}

/// Of each core the policy among its own processors, and how many bursts it is to take beside the others: 0 for none.
fn dealt(policy: Policy, places: &[(usize, usize)], cores: usize) -> Vec<(Policy, u16)> {
    let of = |core: usize| {
        let own = || places.iter().enumerate().filter(move |(_, (at, _))| *at == core);
        match policy {
            _ if cores == 1 => (policy, 1),
            Policy::Single { processor } => match places.get(processor) {
                Some(&(at, processor)) if at == core => (Policy::Single { processor }, 1),
                _ => (Policy::FinishTime, 0),
            },
            Policy::RoundRobin => (Policy::RoundRobin, own().count() as u16),
            Policy::Split { weights } => {
                let mut of_own = [0; 8];
                for (place, (_, at)) in own() {
                    of_own[*at] = weights[place];
                }
                (Policy::Split { weights: of_own }, of_own.iter().sum())
            }
            // Between cores nothing is chosen by size: whoever is free takes the next burst.
            Policy::SizeThreshold { .. } => (Policy::FinishTime, 1),
            policy => (policy, 1),
        }
    };
    (0..cores).map(of).collect()
}

/// Opens sealed packets, each with the place of the plain one, in one engine of one core.
fn open(setting: &Setting<'_>, sealed: &[(usize, Vec<u8>)]) -> miette::Result<()> {
    let (sad, keys) = sas(setting.sas, setting.suite, Direction::Open)?;
    // Preferably by another library than the one that sealed.
    let other = Backend::AwsLc.open()?;
    let has_suite = other.capabilities().has(setting.suite);
    let setup = ProcessorSetup {
        processor: if has_suite { other } else { Backend::Auto.open()? },
        kind: Kind::Cpu,
        cost: Cost::default(),
        alpha: 1.0,
        beta: Duration::ZERO,
        queue: TAKE,
    };
    let longest = sealed.iter().map(|(_, packet)| packet.len()).max().unwrap_or(0);
    let limits = Limits { in_flight: IN_FLIGHT, packet_capacity: longest, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let mut engine = Engine::new(sad, &keys, vec![setup], settings, setting.clock).into_diagnostic()?;
    let mut identical = 0;
    for burst in sealed.chunks(TAKE) {
        let mut jobs = Vec::with_capacity(TAKE);
        for (place, bytes) in burst {
            let mut packet = engine.buffer();
            packet.fill(bytes);
            jobs.push(Job::new(packet, JobSpec::default(), *place as u64));
        }
        engine.admit_burst(Direction::Open, &mut jobs);
        engine.drain(STUCK);
        for output in engine.outputs() {
            let plain = &setting.packets[output.tag as usize];
            if let Err(reason) = output.result {
                return Err(miette!(
                    "a protected packet failed inbound processing: {}",
                    reason.explanation()
                ));
            }
            identical += usize::from(output.packet.bytes() == plain.as_slice());
        }
    }
    match identical == sealed.len() {
        true => Ok(()),
        false => Err(miette!("{identical} of {} packets are identical after decryption", sealed.len())),
    }
}

/// SAs with keys of their own, told apart by the second octet of the destination.
fn sas(count: usize, suite: Suite, direction: Direction) -> miette::Result<(Ipsec, Vec<SaKeys>)> {
    let (mut sad, mut all) = (Ipsec::default(), Vec::new());
    let filler = |n: usize, from: usize| SecretBytes::new((0..n).map(|at| (at + from) as u8).collect());
    let (near, far) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    for sa in 0..count {
        let spi = Spi::new(0x1000 + sa as u32).unwrap_or(Spi::MIN);
        let networks = (vec!["10.250.0.0/16".parse().into_diagnostic()?], {
            vec![format!("10.{sa}.0.0/16").parse().into_diagnostic()?]
        });
        match direction {
            Direction::Seal => {
                let (local_ts, remote_ts) = networks;
                let config =
                    SaConfig { local_ts, remote_ts, ..SaConfig::new("bench", spi, suite, near, far) };
                sad.add_outbound(config, IvRange::for_throwaway_key()).into_diagnostic()?;
            }
            Direction::Open => {
                let (remote_ts, local_ts) = networks;
                let config =
                    SaConfig { local_ts, remote_ts, ..SaConfig::new("bench", spi, suite, far, near) };
                sad.add_inbound(config).into_diagnostic()?;
            }
        }
        let key = filler(suite.cipher_key_len() + suite.salt_len(), sa);
        all.push(SaKeys::new(suite, &key, &filler(suite.integrity_key_len(), sa)).into_diagnostic()?);
    }
    Ok((sad, all))
}
