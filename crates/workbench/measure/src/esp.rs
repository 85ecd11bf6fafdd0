//! Whole packets through the data plane, in memory.
//!
//! Per packet: copy into a buffer of the engine, SA selection, sequence number, headers, padding, crypto,
//! ICV; inbound the same backwards, with SPI look-up and replay window. The engine is driven as a gateway
//! drives it: a burst is admitted, the engine turns until nothing moves, what is through is taken and its
//! buffers go back. The limit in the same line is the bare cipher on as many buffers of the packet's size.
//! Several cores share one SA in each direction, and its packets leave in strict order.
//! Both are measured in turn, slice by slice, so that a machine that changes its speed changes it for both;
//! the medians are reported.

mod bare;

use std::net::Ipv6Addr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, Suite};
use forebay_engine::{Clock, Engine, Limits, Settings as EngineSettings};
use forebay_ipsec::{Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_loadgen::median::median;
use forebay_processors::{self as processors, Backend};
use forebay_time::Duration;
use forebay_wire::{Family, ipv4, ipv6, protocol, udp};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;

use crate::Error;
use bare::Bare;

/// Packets of a burst: as many as a core of a gateway takes at a time where more would spare little.
pub(crate) const BURST: usize = forebay_engine::TAKE / 2;
/// Packets of a core that are passed on again and again.
const PACKETS: usize = 4 * BURST;
/// More than any suite adds to a packet, in bytes.
const OVERHEAD: usize = 128;
/// Slices measured per figure; odd, so that there is a middle one.
const SLICES: usize = 15;
/// How often a core looks for its turn before it lets others have its CPU.
const LOOKS: u32 = 2_000;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Lengths of the cleartext IP packets, in bytes.
    pub sizes: Vec<usize>,
    /// The directions.
    pub directions: Vec<Direction>,
    /// Version of IP, inside of the tunnel and outside.
    pub family: Family,
    /// Number of cores, which share one SA in each direction.
    pub cores: usize,
    /// Crypto library.
    pub backend: Backend,
    /// Measuring time per figure, in seconds.
    pub seconds: f64,
}

/// What was measured, as it is written to JSON.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Version of this layout.
    pub schema: u32,
    /// The suite.
    pub proposal: String,
    /// Version of IP, inside of the tunnel and outside: `ipv4` or `ipv6`.
    pub family: &'static str,
    /// The number of cores.
    pub cores: usize,
    /// By size and direction.
    pub results: Vec<Line>,
}

/// One size in one direction.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Length of the cleartext IP packets, in bytes.
    pub size: usize,
    /// `out` or `in`.
    pub direction: &'static str,
    /// The crypto library.
    pub backend: String,
    /// Packets per second through the data plane, of all cores together.
    pub packets_per_s: f64,
    /// The same in bits of cleartext packets.
    pub bits_per_s: f64,
    /// Cycles of a core per packet; 0 if the kernel does not state its clock.
    pub cycles_per_packet: f64,
    /// Packets per second of the bare cipher in the same run.
    pub limit_packets_per_s: f64,
}

/// Measures each size in each direction; `watch` is called with each line, and returns whether to go on.
///
/// # Errors
/// If a setting is out of range, a processor cannot be used or a packet is dropped; [`Error::Cancelled`] if `watch` stops
/// the work.
pub fn measure(
    settings: &Settings,
    mut watch: impl FnMut(&Line) -> ControlFlow<()>,
) -> Result<Document, Error> {
    let suite: Suite = settings.proposal.parse()?;
    if settings.cores == 0 || settings.cores > 1024 {
        return Err(Error::range("cores", settings.cores, "1 to 1024"));
    }
    let least = settings.family.header_len() + udp::HEADER;
    if let Some(size) = settings.sizes.iter().find(|size| !(least..=9000).contains(*size)) {
        return Err(Error::range("size", size, format!("{least} (an empty UDP packet) to 9000 bytes")));
    }
    if !(0.01..=60.0).contains(&settings.seconds) {
        return Err(Error::range("seconds", settings.seconds, "0.01 to 60"));
    }
    let mut results = Vec::new();
    for &size in &settings.sizes {
        for &direction in &settings.directions {
            let line = line(settings, suite, size, direction)?;
            if watch(&line).is_break() {
                return Err(Error::Cancelled);
            }
            results.push(line);
        }
    }
    let family = if settings.family == Family::V4 { "ipv4" } else { "ipv6" };
    Ok(Document { schema: 1, proposal: suite.to_string(), family, cores: settings.cores, results })
}

fn line(settings: &Settings, suite: Suite, size: usize, direction: Direction) -> miette::Result<Line> {
    let slice = Duration::from_secs(settings.seconds / (2 * SLICES) as f64);
    let cores = cores(settings, suite, size, direction)?;
    let backend = cores.first().map(|core| core.backend.clone()).unwrap_or_default();
    let course = Course::new(cores.len(), size);
    let rates: Vec<miette::Result<Rates>> = std::thread::scope(|scope| {
        let run = |core: Core| scope.spawn(|| core.run(&course, slice));
        let threads: Vec<_> = cores.into_iter().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(miette!("a core failed"))))
            .collect()
    });
    let mut all = Rates::default();
    for rates in rates {
        let Rates { path, limit, missing } = rates?;
        all = Rates { path: all.path + path, limit: all.limit + limit, missing: all.missing + missing };
    }
    if all.missing != 0 {
        return Err(miette!("{} packets were not returned", all.missing));
    }
    let (packets_per_s, limit_packets_per_s) = (all.path, all.limit);
    Ok(Line {
        size,
        direction: if direction == Direction::Seal { "out" } else { "in" },
        backend,
        packets_per_s,
        bits_per_s: packets_per_s * size as f64 * 8.0,
        cycles_per_packet: cpu_hz() * settings.cores as f64 / packets_per_s,
        limit_packets_per_s,
    })
}

/// The clock of the first core as the kernel states it, 0 where it does not.
fn cpu_hz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("cpu MHz"));
    line.and_then(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok()).unwrap_or(0.0) * 1e6
}

/// Packets per second of one core: of the path and of the bare cipher. And how many more went in than this core took out.
#[derive(Clone, Copy, Default)]
struct Rates {
    path: f64,
    limit: f64,
    missing: i64,
}

/// What the cores do together: rounds begin at the same time, and bursts are opened in the order in which they were sealed. Which
/// core has which burst is not fixed: whoever is free takes the next, so that nobody waits for a core that has lost its CPU.
struct Course {
    barrier: Barrier,
    cores: usize,
    /// Bursts of a round, sealed.
    sealed: Vec<Mutex<Vec<Vec<u8>>>>,
    /// Cores that have come to the next round, bursts that have been taken, and that have had their turn.
    arrived: AtomicU64,
    taken: AtomicU64,
    turn: AtomicU64,
    is_over: AtomicBool,
    failed: AtomicBool,
}

impl Course {
    fn new(cores: usize, size: usize) -> Course {
        let (arrived, taken, turn, is_over, failed) = Default::default();
        let burst = || (0..BURST).map(|_| Vec::with_capacity(size + OVERHEAD)).collect();
        let sealed = (0..cores * PACKETS / BURST).map(|_| Mutex::new(burst())).collect();
        Course { barrier: Barrier::new(cores), cores, sealed, arrived, taken, turn, is_over, failed }
    }

    /// Takes the next burst of round number `round`: its place in the order of all, and its packets.
    fn take(&self, round: u64) -> Option<(u64, MutexGuard<'_, Vec<Vec<u8>>>)> {
        let bursts = self.sealed.len() as u64;
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            (taken < (round + 1) * bursts).then_some(taken + 1)
        });
        let place = taken.ok()?;
        let burst = self.sealed[(place % bursts) as usize].lock();
        Some((place, burst.unwrap_or_else(PoisonError::into_inner)))
    }

    /// Waits until a number has come that other cores count up to; they are on their way.
    fn wait(&self, counter: &AtomicU64, until: u64) -> miette::Result<()> {
        let mut looks = 0_u32;
        while counter.load(Ordering::Acquire) < until {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop()
            } else {
                std::thread::yield_now()
            }
            if self.failed.load(Ordering::Relaxed) {
                return Err(miette!("another core failed"));
            }
        }
        Ok(())
    }

    /// Waits until all cores have come here, for the `round`th time, counted from one.
    fn meet(&self, round: u64) -> miette::Result<()> {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        self.wait(&self.arrived, round * self.cores as u64)
    }
}

/// The paths of `cores` cores, whose engines share an SA in each direction.
pub(crate) fn paths(
    cores: usize,
    backend: Backend,
    (suite, encapsulation, family): (Suite, Encapsulation, Family),
    size: usize,
    clock: Clock,
) -> miette::Result<Vec<Path>> {
    let keys = throwaway_keys(suite)?;
    let mut sad = Ipsec::default();
    let sa = |outbound| SaConfig { encapsulation, ..tunnel(suite, family, outbound) };
    sad.add_outbound(sa(true), IvRange::for_throwaway_key()).into_diagnostic()?;
    sad.add_inbound(sa(false)).into_diagnostic()?;
    let limits = Limits { packet_capacity: size + OVERHEAD, ..Limits::default() };
    let with = EngineSettings { limits, ..EngineSettings::default() };
    let processors = || processors::core(backend).map(|core| vec![core]);
    let both = [keys.clone(), keys];
    let mut engines = vec![Engine::new(sad, &both, processors()?, with.clone(), clock).into_diagnostic()?];
    for cpu in 1..cores {
        let beside = engines[0].beside(cpu as u32, processors()?, with.clone(), clock);
        engines.push(beside.into_diagnostic()?);
    }
    let path = |engine| Path {
        engine,
        jobs: Vec::with_capacity(BURST),
        free: Vec::with_capacity(BURST),
        missing: 0,
    };
    Ok(engines.into_iter().map(path).collect())
}

/// The cores, whose engines share their SAs.
fn cores(settings: &Settings, suite: Suite, size: usize, direction: Direction) -> miette::Result<Vec<Core>> {
    let keys = throwaway_keys(suite)?;
    let name = settings.backend.open()?.name().to_owned();
    let clock = Clock::start();
    let core = |(place, path)| {
        Ok(Core {
            place,
            clock,
            direction,
            path,
            plain: (0..PACKETS).map(|_| plain_packet(settings.family, size)).collect(),
            bare: Bare::new(&name, suite, &keys, size, direction, settings.backend)?,
            backend: name.clone(),
            meetings: 0,
            rounds: 0,
        })
    };
    let of = (suite, Encapsulation::None, settings.family);
    paths(settings.cores, settings.backend, of, size, clock)?.into_iter().enumerate().map(core).collect()
}

/// One core's engine and the packets around it.
struct Core {
    place: usize,
    clock: Clock,
    direction: Direction,
    backend: String,
    path: Path,
    /// The plain packets, each in memory of its own, as a network card would leave them.
    plain: Vec<Vec<u8>>,
    bare: Bare,
    /// Meetings of the cores, and rounds of sealing or opening, up to now.
    meetings: u64,
    rounds: u64,
}

impl Core {
    /// Packets per second of the path and of the bare cipher: medians over slices taken in turn.
    fn run(mut self, course: &Course, slice: Duration) -> miette::Result<Rates> {
        let (mut path, mut limit) = (Vec::new(), Vec::new());
        course.barrier.wait();
        for _ in 0..SLICES {
            limit.push(self.bare.rate(slice, self.clock));
            let rate = match self.direction {
                Direction::Seal => self.seal_rate(course, slice),
                Direction::Open => self.open_rate(course, slice),
            };
            path.push(rate.inspect_err(|_| course.failed.store(true, Ordering::Relaxed))?);
        }
        self.meet(course)?;
        self.path.carry(|_, _| {})?;
        Ok(Rates { path: median(path), limit: median(limit), missing: self.path.missing })
    }

    fn meet(&mut self, course: &Course) -> miette::Result<()> {
        self.meetings += 1;
        course.meet(self.meetings)
    }

    fn seal_rate(&mut self, course: &Course, slice: Duration) -> miette::Result<f64> {
        self.meet(course)?;
        let start = self.clock.now();
        let mut packets = 0;
        let rate = loop {
            for _ in 0..4 {
                for burst in self.plain.chunks(BURST) {
                    self.path.fill(burst, 0)?;
                    self.path.prepare(Direction::Seal);
                    self.path.carry(|_, _| {})?;
                    packets += burst.len();
                }
            }
            let elapsed = self.clock.now().since(start);
            if elapsed >= slice {
                break packets as f64 / elapsed.as_secs();
            }
        };
        self.meet(course)?;
        Ok(rate)
    }

    /// Every packet can be opened once only, so rounds of sealing, not timed, come in between: each core seals what it opens. A
    /// round ends for all when the last core is done.
    fn open_rate(&mut self, course: &Course, slice: Duration) -> miette::Result<f64> {
        let mut timed = Duration::ZERO;
        let mut packets = 0;
        loop {
            // All cores take part in as many rounds: the first one's time decides.
            if self.place == 0 {
                course.is_over.store(timed >= slice, Ordering::Release);
            }
            self.meet(course)?;
            if course.is_over.load(Ordering::Acquire) {
                // The first core does not begin again before all have seen that this is over.
                self.meet(course)?;
                return Ok(packets as f64 / timed.as_secs());
            }
            self.seal_round(course)?;
            self.meet(course)?;
            let start = self.clock.now();
            self.open_round(course)?;
            self.meet(course)?;
            timed += self.clock.now().since(start);
            packets += PACKETS;
        }
    }

    /// The bursts of a round, each through the whole path before the next.
    fn seal_round(&mut self, course: &Course) -> miette::Result<()> {
        while let Some((place, mut sealed)) = course.take(self.rounds) {
            course.wait(&course.turn, place)?;
            self.path.fill(&self.plain[..BURST], 0)?;
            self.path.prepare(Direction::Seal);
            self.path.carry(|place, packet| {
                sealed[place].clear();
                sealed[place].extend_from_slice(packet.bytes());
            })?;
            course.turn.store(place + 1, Ordering::Release);
        }
        self.rounds += 1;
        Ok(())
    }

    /// The same bursts inbound: only their places in the order are given to them in turn.
    fn open_round(&mut self, course: &Course) -> miette::Result<()> {
        while let Some((place, sealed)) = course.take(self.rounds) {
            self.path.fill(&sealed, 0)?;
            course.wait(&course.turn, place)?;
            self.path.prepare(Direction::Open);
            course.turn.store(place + 1, Ordering::Release);
            self.path.carry(|_, _| {})?;
        }
        self.rounds += 1;
        Ok(())
    }
}

/// An engine of one core, and the lists that its packets go through.
pub(crate) struct Path {
    engine: Engine,
    jobs: Vec<Job>,
    free: Vec<Packet>,
    /// Packets that went in here, less those that were taken out here.
    pub(crate) missing: i64,
}

impl Path {
    /// Copies a burst into the engine's buffers, when there is room: another core may hold up what is done. Its packets are
    /// numbered from `first` on.
    #[inline]
    pub(crate) fn fill(&mut self, burst: &[Vec<u8>], first: u64) -> miette::Result<()> {
        while self.engine.room() < burst.len() {
            std::thread::yield_now();
            self.carry(|_, _| {})?;
        }
        self.missing += burst.len() as i64;
        for (place, bytes) in burst.iter().enumerate() {
            let mut packet = self.engine.buffer();
            let fits = packet.fill(bytes);
            debug_assert!(fits);
            self.jobs.push(Job::new(packet, JobSpec::default(), first + place as u64));
        }
        Ok(())
    }

    /// Whether there are buffers for so many packets.
    pub(crate) fn has_room(&self, packets: usize) -> bool {
        self.engine.room() >= packets
    }

    /// Gives the burst its places in the order.
    #[inline]
    pub(crate) fn prepare(&mut self, direction: Direction) {
        self.engine.prepare_burst(direction, &mut self.jobs);
    }

    /// Takes the burst through its crypto; `each` is told what has left by then, with its place in its burst.
    #[inline]
    pub(crate) fn carry(&mut self, mut each: impl FnMut(usize, &Packet)) -> miette::Result<()> {
        self.engine.carry(&mut self.jobs);
        while self.engine.poll() {}
        if let Some(refusal) = self.engine.refusals().next() {
            return Err(miette!("the benchmark dropped a packet: {}", refusal.reason.explanation()));
        }
        for output in self.engine.outputs() {
            if let Err(reason) = output.result {
                return Err(miette!("the benchmark dropped a packet: {}", reason.explanation()));
            }
            each(output.tag as usize, &output.packet);
            self.free.push(output.packet);
        }
        self.missing -= self.free.len() as i64;
        self.free.drain(..).for_each(|packet| self.engine.recycle(packet));
        Ok(())
    }
}

pub(crate) fn throwaway_keys(suite: Suite) -> miette::Result<SaKeys> {
    let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let key = filler(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &filler(suite.integrity_key_len())).into_diagnostic()
}

/// One end of a tunnel between two networks.
fn tunnel(suite: Suite, family: Family, outbound: bool) -> SaConfig {
    let address = |text: &str| text.parse().unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    let network = |text: &str| text.parse().into_iter().collect();
    let [east, west, near, far] = match family {
        Family::V4 => ["192.0.2.1", "192.0.2.2", "10.1.0.0/16", "10.2.0.0/16"],
        Family::V6 => ["2001:db8::1", "2001:db8::2", "fd00:1::/32", "fd00:2::/32"],
    };
    let (east, west) = (address(east), address(west));
    let (local, remote) = if outbound { (east, west) } else { (west, east) };
    let (local_ts, remote_ts) = match outbound {
        true => (network(near), network(far)),
        false => (network(far), network(near)),
    };
    let spi = Spi::new(0x1001).unwrap_or(Spi::MIN);
    SaConfig { local_ts, remote_ts, ..SaConfig::new("bench", spi, suite, local, remote) }
}

/// A UDP packet of `size` bytes from 10.1.0.1 to 10.2.0.1, or from fd00:1::1 to fd00:2::1.
pub(crate) fn plain_packet(family: Family, size: usize) -> Vec<u8> {
    let mut packet = vec![0x5a; size];
    match family {
        Family::V4 => {
            let header = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
            packet[..20].copy_from_slice(&header);
            ipv4::rewrite(&mut packet, 20, size as u16, protocol::UDP);
        }
        Family::V6 => {
            let ends = [1, 2].map(|end| Ipv6Addr::new(0xfd00, end, 0, 0, 0, 0, 0, 1));
            let payload_len = (size - ipv6::HEADER) as u16;
            let header = ipv6::Header {
                payload_len,
                next_header: protocol::UDP,
                hop_limit: 64,
                ..ipv6::Header::between(ends[0], ends[1])
            };
            packet[..ipv6::HEADER].copy_from_slice(&header.bytes());
        }
    }
    packet
}
