//! `forebay bench esp`: whole packets through the data plane, in memory.
//!
//! Per packet: copy into the packet buffer, SA selection, sequence number, headers, padding, crypto,
//! ICV; inbound the same backwards, with SPI look-up and replay window. The limit in the same line is the
//! bare cipher on as many buffers of the packet's size. Both are measured in turn, slice by slice, so
//! that a machine that changes its speed changes it for both; the medians are reported.

use std::sync::Barrier;

use clap::{Args, ValueEnum};
use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Suite};
use forebay_engine::{BURST, BurstPath, Clock};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;

use crate::Answer;
use crate::backend::Backend;

/// Packets in flight in the bench: what a burst from each of two queues would be.
const PACKETS: usize = 2 * BURST;
/// More than any suite adds to a packet, in bytes.
const OVERHEAD: usize = 128;
/// Slices measured per figure; odd, so that there is a middle one.
const SLICES: usize = 15;

/// Arguments of `forebay bench esp`.
#[derive(Args)]
#[command(
    after_help = "Example: forebay bench esp --proposal aes128gcm16 --size 64,1408 --direction both --json"
)]
pub struct EspArgs {
    /// Suite, in swanctl's words.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Lengths of the plain IP packet, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "64,256,576,1408")]
    size: Vec<usize>,
    /// Seal, open, or both.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    direction: Which,
    /// Cores, each with a data path of its own.
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Crypto library.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Seconds per figure.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    Out,
    In,
    Both,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    proposal: String,
    cores: usize,
    results: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    size: usize,
    direction: &'static str,
    backend: String,
    packets_per_s: f64,
    bits_per_s: f64,
    cycles_per_packet: f64,
    limit_packets_per_s: f64,
}

/// Runs the command.
pub fn run(args: &EspArgs) -> miette::Result<Answer> {
    let suite: Suite = args.proposal.parse().map_err(|error: forebay_crypto::SuiteError| {
        miette!(help = format!("did you mean `{}`?", error.nearest), "{error}")
    })?;
    if args.cores == 0 || args.cores > 1024 {
        return Err(miette!("--cores {}: expected 1 to 1024", args.cores));
    }
    if let Some(size) = args.size.iter().find(|size| !(28..=9000).contains(*size)) {
        return Err(miette!("--size {size}: expected 28 (an empty UDP packet) to 9000 bytes"));
    }
    if !(0.01..=60.0).contains(&args.seconds) {
        return Err(miette!("--seconds {}: expected 0.01 to 60", args.seconds));
    }
    let directions: &[Direction] = match args.direction {
        Which::Out => &[Direction::Seal],
        Which::In => &[Direction::Open],
        Which::Both => &[Direction::Seal, Direction::Open],
    };
    let mut results = Vec::new();
    for &size in &args.size {
        for &direction in directions {
            let line = measure(args, suite, size, direction)?;
            if !args.json {
                print_line(&line, results.is_empty(), &args.proposal);
            }
            results.push(line);
        }
    }
    if args.json {
        let document = Document { schema: 1, proposal: suite.to_string(), cores: args.cores, results };
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    }
    Ok(Answer::Yes)
}

fn print_line(line: &Line, first: bool, proposal: &str) {
    if first {
        println!("{proposal}, tunnel, IPv4 in IPv4, {}", line.backend);
        println!(
            "{:>6}  {:<4} {:>12} {:>10} {:>8}  of the bare cipher's",
            "size", "", "Mpacket/s", "Gbit/s", "cycles"
        );
    }
    println!(
        "{:>6}  {:<4} {:>12.2} {:>10.2} {:>8.0}  {:.0} % of {:.2} Mpacket/s",
        line.size,
        line.direction,
        line.packets_per_s / 1e6,
        line.bits_per_s / 1e9,
        line.cycles_per_packet,
        100.0 * line.packets_per_s / line.limit_packets_per_s,
        line.limit_packets_per_s / 1e6,
    );
}

fn measure(args: &EspArgs, suite: Suite, size: usize, direction: Direction) -> miette::Result<Line> {
    let slice = Duration::from_secs(args.seconds / (2 * SLICES) as f64);
    let barrier = Barrier::new(args.cores);
    let rates: Vec<miette::Result<(String, f64, f64)>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.cores)
            .map(|core| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let bench = Core::new(args.backend, suite, size, direction, core);
                    barrier.wait();
                    bench.map(|mut bench| bench.run(slice))
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
        cycles_per_packet: cpu_hz() * args.cores as f64 / packets_per_s,
        limit_packets_per_s,
    })
}

/// The clock of the first core as the kernel states it, 0 where it does not.
fn cpu_hz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("cpu MHz"));
    line.and_then(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok()).unwrap_or(0.0) * 1e6
}

/// One core's data path and the buffers around it.
struct Core {
    clock: Clock,
    suite: Suite,
    direction: Direction,
    backend: String,
    path: BurstPath,
    /// The plain packets, each in memory of its own, as a network card would leave them.
    plain: Vec<Vec<u8>>,
    /// The same sealed, for the inbound direction.
    sealed: Vec<Vec<u8>>,
    jobs: Vec<Job>,
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
        let mut processor = backend.open()?;
        let name = processor.name().to_owned();
        let mut sad = Ipsec::default();
        let config = |outbound| tunnel(suite, outbound, core);
        let out = sad.add_outbound(config(true), IvRange::for_throwaway_key()).into_diagnostic()?;
        let inbound = sad.add_inbound(config(false)).into_diagnostic()?;
        processor.open_session(out, &keys, Direction::Seal).into_diagnostic()?;
        processor.open_session(inbound, &keys, Direction::Open).into_diagnostic()?;
        let job = || Job::new(Packet::with_capacity(size + OVERHEAD), JobSpec::default(), 0);
        Ok(Core {
            clock: Clock::start(),
            suite,
            direction,
            path: BurstPath::new(sad, processor),
            plain: (0..PACKETS).map(|_| plain_packet(size)).collect(),
            sealed: (0..PACKETS).map(|_| Vec::with_capacity(size + OVERHEAD)).collect(),
            jobs: (0..BURST).map(|_| job()).collect(),
            bare: Bare::new(&name, suite, &keys, size, direction, backend)?,
            backend: name,
        })
    }

    /// Packets a second of the path and of the bare cipher: medians over slices taken in turn.
    fn run(&mut self, slice: Duration) -> (String, f64, f64) {
        let (mut path, mut limit) = (Vec::new(), Vec::new());
        for _ in 0..SLICES {
            limit.push(self.bare.rate(slice, self.clock));
            path.push(if self.direction == Direction::Seal {
                self.seal_rate(slice)
            } else {
                self.open_rate(slice)
            });
        }
        let drops = self.path.drops().total();
        assert!(drops == 0, "the bench of {} lost {drops} packets: {:?}", self.suite, self.path.drops());
        (self.backend.clone(), median(path), median(limit))
    }

    fn seal_rate(&mut self, slice: Duration) -> f64 {
        let start = self.clock.now();
        let mut packets = 0u64;
        loop {
            for _ in 0..16 {
                for burst in self.plain.chunks(BURST) {
                    seal(&mut self.path, &mut self.jobs, burst);
                }
            }
            packets += 16 * PACKETS as u64;
            let elapsed = self.clock.now().since(start);
            if elapsed >= slice {
                return packets as f64 / elapsed.as_secs();
            }
        }
    }

    /// Every packet can be opened once only, so rounds of sealing, not timed, come in between.
    fn open_rate(&mut self, slice: Duration) -> f64 {
        let mut timed = Duration::ZERO;
        let mut packets = 0u64;
        while timed < slice {
            for (burst, sealed) in self.plain.chunks(BURST).zip(self.sealed.chunks_mut(BURST)) {
                seal(&mut self.path, &mut self.jobs, burst);
                for (job, sealed) in self.jobs.iter().zip(sealed) {
                    sealed.clear();
                    sealed.extend_from_slice(job.packet.bytes());
                }
            }
            let start = self.clock.now();
            for burst in self.sealed.chunks(BURST) {
                fill(&mut self.jobs, burst);
                self.path.run(Direction::Open, &mut self.jobs, &mut Vec::new());
            }
            timed += self.clock.now().since(start);
            packets += PACKETS as u64;
        }
        packets as f64 / timed.as_secs()
    }
}

#[inline]
fn fill(jobs: &mut [Job], packets: &[Vec<u8>]) {
    for (job, packet) in jobs.iter_mut().zip(packets) {
        let fits = job.packet.fill(packet);
        debug_assert!(fits);
    }
}

#[inline]
fn seal(path: &mut BurstPath, jobs: &mut Vec<Job>, packets: &[Vec<u8>]) {
    fill(jobs, packets);
    path.run(Direction::Seal, jobs, &mut Vec::new());
}

/// The bare cipher: for AES-GCM by ipsec-mb a loop in C around the library's own call, for everything
/// else jobs submitted again and again; those always seal, because a backend that verifies first
/// would be done with a made-up packet at once.
enum Bare {
    Gcm(forebay_crypto_ipsec_mb::BareGcm),
    Jobs { processor: Box<dyn Processor>, jobs: Vec<Job> },
}

impl Bare {
    fn new(
        name: &str,
        suite: Suite,
        keys: &SaKeys,
        size: usize,
        direction: Direction,
        backend: Backend,
    ) -> miette::Result<Bare> {
        if name == "ipsec-mb" && matches!(suite.cipher(), forebay_crypto::Cipher::AesGcm(_)) {
            let open = direction == Direction::Open;
            let buffers = vec![vec![0x5a; size]; PACKETS];
            let bare = forebay_crypto_ipsec_mb::BareGcm::new(keys.cipher(), suite.icv_len(), open, buffers);
            return bare.map(Bare::Gcm).ok_or_else(|| miette!("ipsec-mb is not usable"));
        }
        let mut processor = backend.open()?;
        processor.open_session(SessionId(0), keys, Direction::Seal).into_diagnostic()?;
        let jobs = (0..PACKETS).map(|_| forebay_engine::esp_job(SessionId(0), suite, size as u32)).collect();
        Ok(Bare::Jobs { processor, jobs })
    }

    fn rate(&mut self, slice: Duration, clock: Clock) -> f64 {
        let start = clock.now();
        let mut packets = 0u64;
        loop {
            match self {
                Bare::Gcm(bare) => {
                    bare.run(64);
                    packets += 64 * PACKETS as u64;
                }
                Bare::Jobs { processor, jobs } => {
                    processor.submit(Time::ZERO, jobs);
                    processor.poll(Time::ZERO, jobs);
                    packets += PACKETS as u64;
                }
            }
            let elapsed = clock.now().since(start);
            if elapsed >= slice {
                return packets as f64 / elapsed.as_secs();
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
