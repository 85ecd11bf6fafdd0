//! Whole packets through the data plane, in memory.
//!
//! Per packet: copy into a buffer of the engine, SA selection, sequence number, headers, padding, crypto,
//! ICV; inbound the same backwards, with SPI look-up and replay window. The engine is driven as a gateway
//! drives it: a burst is admitted, the engine turns until nothing moves, what is through is taken and its
//! buffers go back. The limit in the same line is the bare cipher on as many buffers of the packet's size.
//! Both are measured in turn, slice by slice, so that a machine that changes its speed changes it for both;
//! the medians are reported.

mod bare;

use std::ops::ControlFlow;
use std::sync::Barrier;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, Suite};
use forebay_engine::{BURST, Clock, Engine, Limits, Settings as EngineSettings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_loadgen::median::median;
use forebay_processors::{self as processors, Backend};
use forebay_time::Duration;
use miette::{IntoDiagnostic, miette};
use serde::Serialize;

use crate::Error;
use bare::Bare;

/// Packets in flight in the bench: what a burst from each of two queues would be.
const PACKETS: usize = 2 * BURST;
/// More than any suite adds to a packet, in bytes.
const OVERHEAD: usize = 128;
/// Slices measured per figure; odd, so that there is a middle one.
const SLICES: usize = 15;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Lengths of the cleartext IP packets, in bytes.
    pub sizes: Vec<usize>,
    /// The directions.
    pub directions: Vec<Direction>,
    /// Number of cores, each with its own data path.
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
    if let Some(size) = settings.sizes.iter().find(|size| !(28..=9000).contains(*size)) {
        return Err(Error::range("size", size, "28 (an empty UDP packet) to 9000 bytes"));
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
    Ok(Document { schema: 1, proposal: suite.to_string(), cores: settings.cores, results })
}

fn line(settings: &Settings, suite: Suite, size: usize, direction: Direction) -> miette::Result<Line> {
    let slice = Duration::from_secs(settings.seconds / (2 * SLICES) as f64);
    let barrier = Barrier::new(settings.cores);
    let rates: Vec<miette::Result<(String, f64, f64)>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..settings.cores)
            .map(|core| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let bench = Core::new(settings.backend, suite, size, direction, core);
                    barrier.wait();
                    bench?.run(slice)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(miette!("a core failed"))))
            .collect()
    });
    let mut total = (String::new(), 0.0, 0.0);
    for rate in rates {
        let (name, path, limit) = rate?;
        total = (name, total.1 + path, total.2 + limit);
    }
    let (backend, packets_per_s, limit_packets_per_s) = total;
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

/// One core's engine and the packets around it.
struct Core {
    clock: Clock,
    direction: Direction,
    backend: String,
    path: Path,
    /// The plain packets, each in memory of its own, as a network card would leave them.
    plain: Vec<Vec<u8>>,
    /// The same sealed, for the inbound direction.
    sealed: Vec<Vec<u8>>,
    bare: Bare,
}

impl Core {
    fn new(
        backend: Backend,
        suite: Suite,
        size: usize,
        direction: Direction,
        core: usize,
    ) -> miette::Result<Core> {
        let keys = throwaway_keys(suite)?;
        let name = backend.open()?.name().to_owned();
        let clock = Clock::start();
        Ok(Core {
            clock,
            direction,
            path: Path::new(backend, suite, &keys, size, core, clock)?,
            plain: (0..PACKETS).map(|_| plain_packet(size)).collect(),
            sealed: (0..PACKETS).map(|_| Vec::with_capacity(size + OVERHEAD)).collect(),
            bare: Bare::new(&name, suite, &keys, size, direction, backend)?,
            backend: name,
        })
    }

    /// Packets per second of the path and of the bare cipher: medians over slices taken in turn.
    fn run(&mut self, slice: Duration) -> miette::Result<(String, f64, f64)> {
        let (mut path, mut limit) = (Vec::new(), Vec::new());
        for _ in 0..SLICES {
            limit.push(self.bare.rate(slice, self.clock));
            path.push(if self.direction == Direction::Seal {
                self.seal_rate(slice)?
            } else {
                self.open_rate(slice)?
            });
        }
        Ok((self.backend.clone(), median(path), median(limit)))
    }

    fn seal_rate(&mut self, slice: Duration) -> miette::Result<f64> {
        let start = self.clock.now();
        let mut packets = 0;
        loop {
            for _ in 0..16 {
                for burst in self.plain.chunks(BURST) {
                    packets += self.path.pass(Direction::Seal, burst, |_, _| {})?;
                }
            }
            let elapsed = self.clock.now().since(start);
            if elapsed >= slice {
                return Ok(packets as f64 / elapsed.as_secs());
            }
        }
    }

    /// Every packet can be opened once only, so rounds of sealing, not timed, come in between.
    fn open_rate(&mut self, slice: Duration) -> miette::Result<f64> {
        let mut timed = Duration::ZERO;
        let mut packets = 0;
        while timed < slice {
            for (burst, sealed) in self.plain.chunks(BURST).zip(self.sealed.chunks_mut(BURST)) {
                self.path.pass(Direction::Seal, burst, |place, packet| {
                    sealed[place].clear();
                    sealed[place].extend_from_slice(packet.bytes());
                })?;
            }
            let start = self.clock.now();
            for burst in self.sealed.chunks(BURST) {
                packets += self.path.pass(Direction::Open, burst, |_, _| {})?;
            }
            timed += self.clock.now().since(start);
        }
        Ok(packets as f64 / timed.as_secs())
    }
}

/// An engine of one core, both ends of a tunnel, and the lists that its packets go through.
struct Path {
    engine: Engine,
    jobs: Vec<Job>,
    free: Vec<Packet>,
}

impl Path {
    fn new(
        backend: Backend,
        suite: Suite,
        keys: &SaKeys,
        size: usize,
        core: usize,
        clock: Clock,
    ) -> miette::Result<Path> {
        let mut sad = Ipsec::default();
        sad.add_outbound(tunnel(suite, true, core), IvRange::for_throwaway_key()).into_diagnostic()?;
        sad.add_inbound(tunnel(suite, false, core)).into_diagnostic()?;
        let processors = vec![processors::core(backend)?];
        let limits = Limits { packet_capacity: size + OVERHEAD, ..Limits::default() };
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let keys = [keys.clone(), keys.clone()];
        let engine = Engine::new(sad, &keys, processors, settings, clock).into_diagnostic()?;
        Ok(Path { engine, jobs: Vec::with_capacity(BURST), free: Vec::with_capacity(BURST) })
    }

    /// Takes a burst through the engine; `each` is told what came out, with its place in the burst. How many
    /// packets that was: all of them, or it is an error.
    #[inline]
    fn pass(
        &mut self,
        direction: Direction,
        burst: &[Vec<u8>],
        mut each: impl FnMut(usize, &Packet),
    ) -> miette::Result<u64> {
        for (place, bytes) in burst.iter().enumerate() {
            let mut packet = self.engine.buffer();
            let fits = packet.fill(bytes);
            debug_assert!(fits);
            self.jobs.push(Job::new(packet, JobSpec::default(), place as u64));
        }
        self.engine.admit_burst(direction, &mut self.jobs);
        while self.engine.poll() {}
        for output in self.engine.outputs() {
            if let Err(reason) = output.result {
                return Err(miette!("the benchmark dropped a packet: {}", reason.explanation()));
            }
            each(output.tag as usize, &output.packet);
            self.free.push(output.packet);
        }
        if self.free.len() != burst.len() {
            return Err(miette!("{} of {} packets were returned", self.free.len(), burst.len()));
        }
        self.free.drain(..).for_each(|packet| self.engine.recycle(packet));
        Ok(burst.len() as u64)
    }
}

fn throwaway_keys(suite: Suite) -> miette::Result<SaKeys> {
    let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let key = filler(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &filler(suite.integrity_key_len())).into_diagnostic()
}

/// One end of a tunnel between two networks.
fn tunnel(suite: Suite, outbound: bool, core: usize) -> SaConfig {
    let address = |text: &str| text.parse().unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    let network = |text: &str| text.parse().into_iter().collect();
    let (east, west) = (address("192.0.2.1"), address("192.0.2.2"));
    let (local, remote) = if outbound { (east, west) } else { (west, east) };
    let (local_ts, remote_ts) = match outbound {
        true => (network("10.1.0.0/16"), network("10.2.0.0/16")),
        false => (network("10.2.0.0/16"), network("10.1.0.0/16")),
    };
    let spi = Spi::new(0x1001 + core as u32).unwrap_or(Spi::MIN);
    SaConfig { local_ts, remote_ts, ..SaConfig::new("bench", spi, suite, local, remote) }
}

/// A UDP packet of `size` bytes from 10.1.0.1 to 10.2.0.1.
fn plain_packet(size: usize) -> Vec<u8> {
    let mut packet = vec![0x5a; size];
    packet[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    forebay_wire::ipv4::rewrite(&mut packet, 20, size as u16, 17);
    packet
}
