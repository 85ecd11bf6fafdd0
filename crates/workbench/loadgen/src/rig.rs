//! An engine with packets at hand, driven as a gateway drives it.

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, Suite};
use forebay_engine::{Clock, Engine, Idle, Limits, Output, ProcessorSetup, Scheduling, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, miette};

use super::latency::{Arrivals, Latencies};
use super::order::Sequence;
use forebay_processors::Backend;

/// Packets admitted between two turns at most.
const BURST: usize = 64;
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

/// The engine, and where its packets are.
pub struct Rig<'a> {
    setting: &'a Setting<'a>,
    engine: Engine,
    idle: Idle,
    burst: Vec<Job>,
    free: Vec<Packet>,
    sequence: Sequence,
    /// Packets admitted and released so far.
    admitted: u64,
    released: u64,
    /// When a packet was last released.
    moved: Time,
}

impl<'a> Rig<'a> {
    /// An engine over `processors`, the running core first.
    pub fn new(setting: &'a Setting<'a>, processors: Vec<ProcessorSetup>) -> miette::Result<Rig<'a>> {
        let (sad, keys) = sas(setting.sas, setting.suite, Direction::Seal)?;
        let timeout = (setting.window > 1).then_some(WINDOW_TIMEOUT);
        let scheduling = Scheduling {
            policy: setting.policy,
            window: setting.window,
            timeout,
            // As the gateway has it by default.
            lateness: true,
            ..Scheduling::default()
        };
        let longest = setting.packets.iter().map(Vec::len).max().unwrap_or(0);
        let limits =
            Limits { in_flight: IN_FLIGHT, packet_capacity: longest + OVERHEAD, ..Limits::default() };
        let settings = Settings { scheduling, limits, ..Settings::default() };
        let engine = Engine::new(sad, &keys, processors, settings, setting.clock).into_diagnostic()?;
        Ok(Rig {
            setting,
            engine,
            idle: Idle::default(),
            burst: Vec::with_capacity(BURST),
            free: Vec::with_capacity(IN_FLIGHT),
            sequence: Sequence::default(),
            admitted: 0,
            released: 0,
            moved: setting.clock.now(),
        })
    }

    /// An engine that has run for a while, for a measurement of `length`.
    pub fn warm(
        setting: &'a Setting<'a>,
        processors: Vec<ProcessorSetup>,
        length: Duration,
    ) -> miette::Result<Rig<'a>> {
        let mut rig = Rig::new(setting, processors)?;
        rig.saturate(WARM_UP_MAX.min(Duration(length.0 / 2)))?;
        Ok(rig)
    }

    /// What the engine counts.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Keeps the engine full for `length`, or until a packet is released; packets released per second.
    pub fn saturate(&mut self, length: Duration) -> miette::Result<f64> {
        let (start, before) = (self.now(), self.released);
        loop {
            let count = self.engine.room().min(BURST);
            (0..count).for_each(|_| self.fill(0));
            let moved = self.go(|_| {})?;
            self.idle.after(moved);
            let elapsed = self.now().since(start);
            if elapsed >= length && self.released > before {
                return Ok((self.released - before) as f64 / elapsed.as_secs());
            }
        }
    }

    /// Offers `rate` packets per second at drawn times for `length`; how long each took from the time when it was
    /// due, whether it could be admitted then or not, until it was released.
    pub fn offer(&mut self, rate: f64, length: Duration, seed: u64) -> miette::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let clock = self.setting.clock;
        let mut arrivals = Arrivals::new(rate, clock.now(), length, seed);
        loop {
            let (now, room) = (clock.now(), self.engine.room().min(BURST));
            while self.burst.len() < room
                && let Some(due) = arrivals.due(now)
            {
                self.fill(due.0);
            }
            let mut seen = None;
            let moved = self.go(|output| {
                // One look at the clock for all that came out together, after the fact.
                let released = *seen.get_or_insert_with(|| clock.now());
                latencies.add(released.since(Time(output.tag)));
            })?;
            if arrivals.is_over() && self.engine.in_flight() == 0 {
                return Ok(latencies);
            }
            if !moved {
                // Not a sleep, which would be late for the next packet; but others on this core go first.
                std::thread::yield_now();
            }
        }
    }

    /// Waits for all packets that are in flight.
    ///
    /// # Errors
    /// If they do not come, or more or fewer than were admitted have.
    pub fn drain(&mut self) -> miette::Result<()> {
        while self.engine.in_flight() > 0 {
            let moved = self.go(|_| {})?;
            self.idle.after(moved);
        }
        self.take(&mut |_| {})?;
        if self.released != self.admitted {
            return Err(miette!(
                "{} packets were admitted and {} were returned",
                self.admitted,
                self.released
            ));
        }
        Ok(())
    }

    /// Seals some more packets and opens them with another engine: each has to be there, and as it was.
    pub fn verify(&mut self) -> miette::Result<()> {
        let mut sealed: Vec<(usize, Vec<u8>)> = Vec::new();
        while sealed.len() < VERIFIED {
            let count = self.engine.room().min(BURST);
            for _ in 0..count {
                let place = self.admitted as usize % self.setting.packets.len();
                self.fill(place as u64);
            }
            self.go(|output| sealed.push((output.tag as usize, output.packet.bytes().to_vec())))?;
        }
        while self.engine.in_flight() > 0 {
            self.go(|output| sealed.push((output.tag as usize, output.packet.bytes().to_vec())))?;
        }
        open(self.setting, &sealed)
    }

    fn now(&self) -> Time {
        self.setting.clock.now()
    }

    /// Puts the next packet into the burst.
    #[inline]
    fn fill(&mut self, tag: u64) {
        let plain = &self.setting.packets[self.admitted as usize % self.setting.packets.len()];
        let mut packet = self.engine.buffer();
        let fits = packet.fill(plain);
        debug_assert!(fits);
        self.burst.push(Job::new(packet, JobSpec::default(), tag));
        self.admitted += 1;
    }

    /// One round: the burst goes in, the engine turns until nothing moves, and what is through comes out. Whether
    /// anything moved.
    #[inline]
    fn go(&mut self, mut each: impl FnMut(&Output)) -> miette::Result<bool> {
        let mut moved = !self.burst.is_empty();
        if moved {
            self.engine.admit_burst(Direction::Seal, &mut self.burst);
            if let Some(refusal) = self.engine.refusals().next() {
                return Err(miette!("the engine rejected a packet: {}", refusal.reason.explanation()));
            }
        }
        while self.engine.poll() {
            moved = true;
        }
        moved |= self.take(&mut each)?;
        if !moved && self.engine.in_flight() > 0 {
            // Nothing more is at hand, so that no packet waits for the window to fill.
            self.engine.flush();
            moved |= self.engine.poll();
            moved |= self.take(&mut each)?;
            if !moved && self.now().since(self.moved) > STUCK {
                return Err(miette!("the engine stalled with {} packets in flight", self.engine.in_flight()));
            }
        }
        Ok(moved)
    }

    /// Takes what is through; whether there was anything.
    #[inline]
    fn take(&mut self, each: &mut impl FnMut(&Output)) -> miette::Result<bool> {
        for output in self.engine.outputs() {
            if let Err(reason) = output.result {
                return Err(miette!("a packet was dropped: {}", reason.explanation()));
            }
            let sa = output.session.map_or(usize::MAX, |session| session.0 as usize);
            let ordered = self.sequence.take(sa, output.packet.bytes());
            ordered.map_err(|why| miette!("SA {sa}: a packet is out of order: {why}"))?;
            each(&output);
            self.free.push(output.packet);
        }
        if self.free.is_empty() {
            return Ok(false);
        }
        self.released += self.free.len() as u64;
        self.free.drain(..).for_each(|packet| self.engine.recycle(packet));
        self.moved = self.setting.clock.now();
        Ok(true)
    }
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
        queue: BURST,
    };
    let longest = sealed.iter().map(|(_, packet)| packet.len()).max().unwrap_or(0);
    let limits = Limits { in_flight: IN_FLIGHT, packet_capacity: longest, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let mut engine = Engine::new(sad, &keys, vec![setup], settings, setting.clock).into_diagnostic()?;
    let mut identical = 0;
    for burst in sealed.chunks(BURST) {
        let mut jobs = Vec::with_capacity(BURST);
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
