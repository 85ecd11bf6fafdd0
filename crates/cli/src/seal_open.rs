//! `forebay seal` and `forebay open`: a capture through the engine into a capture.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_crypto::{Direction, Job, JobSpec, Packet};
use forebay_engine::{
    Addresses, BURST, Clock, Engine, Limits, Order, ProcessorSetup, Refusal, Scheduling, Settings,
};
use forebay_ipsec::{DropCounts, DropReason};
use forebay_links::LinkType;
use forebay_links::capture::{CaptureError, Reader, Writer};
use forebay_links::frame::{IpAt, locate, reframe};
use forebay_sas as sas;
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_state::{IVS_PER_SA, IvStore};
use forebay_time::{Duration, Time};
use forebay_wire::{Ip, Malformed};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use serde_json::{Map, Value};

use forebay_processors::Backend;
use forebay_processors::{self as processors, Costs};
use forebay_terminal::host::{seed, unix_ns};
use forebay_terminal::progress::{self, Progress};
use forebay_terminal::{Answer, capture_error};

/// Packets in flight at once: enough for every core's queue; each has a buffer for the largest IP packet.
const IN_FLIGHT: usize = 1024;
/// The largest IP packet; IPv6 does not count its header.
const LARGEST: usize = 65_535 + 40;
/// Room that a packet may need: it may be cut into many.
const ROOM: usize = 256;
/// Packets further apart than this, in the capture, are not of one burst.
const SAME_TIME: Duration = Duration::from_millis(1);
const PS_PER_NS: u64 = 1_000;
/// Packets between two looks at interrupts and the progress bar.
const LOOK_EVERY: u64 = 1024;
/// Longest wait for the last packets: far beyond what any processor is given.
const DRAIN_MAX: Duration = Duration::from_millis(10_000);

/// Arguments of `forebay seal` and `forebay open`.
#[derive(Args)]
pub struct SealOpenArgs {
    /// Security associations (TOML).
    #[arg(long, value_name = "SAS.toml")]
    sas: PathBuf,
    /// The capture to read: pcap or pcapng, raw IP or Ethernet among others.
    input: PathBuf,
    /// The capture to write: pcapng if its name ends so, otherwise pcap.
    #[arg(short, long)]
    output: PathBuf,
    /// Number of cores to use.
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Crypto library.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Device that does all crypto that it supports, such as `dpdk:crypto_openssl0` or `gpu:0`; the core does the rest.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// File of measured costs (`forebay bench processors --save`) [default: costs are measured at start].
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Directory that records used IVs, so that an IV never repeats [default: the user's state directory].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Capture file (raw IP) for ICMP errors to the sources of packets larger than the path MTU.
    #[arg(long, value_name = "FILE", requires = "address")]
    icmp: Option<PathBuf>,
    /// Source address of these ICMP errors: this gateway's address on the inside, one for each IP version.
    #[arg(long, value_name = "ADDRESS")]
    address: Vec<IpAddr>,
    /// List dropped packets with reasons.
    #[arg(short, long)]
    verbose: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// What is kept of a record while its packet is in flight.
struct Record {
    number: u64,
    timestamp_ns: u64,
    link: LinkType,
    at: IpAt,
    prefix: [u8; forebay_links::frame::MAX_PREFIX],
}

#[derive(Default)]
struct Figures {
    packets_in: u64,
    packets_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// ICMP messages to sources.
    answers: u64,
    /// Drops that never reached the engine.
    drops: DropCounts,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    packets_in: u64,
    packets_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    answers: u64,
    drops: Map<String, Value>,
    processors: Vec<ProcessorLine<'a>>,
}

#[derive(Serialize)]
struct ProcessorLine<'a> {
    name: &'a str,
    packets: u64,
    bytes: u64,
}

/// Runs the command.
pub fn run(args: &SealOpenArgs, direction: Direction) -> miette::Result<Answer> {
    let mut engine = build_engine(args, direction)?;
    // Both files are opened before a packet is touched: nothing is read for an output that cannot be.
    let mut writer = create(args).map_err(capture_error)?;
    let mut reader = Reader::open(&args.input).map_err(capture_error)?;
    if let Some(link) = reader.link() {
        writer.declare(link.rewritten(), reader.resolution()).map_err(capture_error)?;
    }
    let mut icmp = args.icmp.as_ref().map(Writer::create).transpose().map_err(capture_error)?;
    if let Some(icmp) = &mut icmp {
        icmp.declare(LinkType::Raw, reader.resolution()).map_err(capture_error)?;
    }
    let mut pass = Pass {
        direction,
        verbose: args.verbose,
        writer: &mut writer,
        icmp: icmp.as_mut(),
        waiting: VecDeque::new(),
        begin_ns: None,
        frame: Vec::new(),
        burst_time: Time::ZERO,
        burst: Vec::with_capacity(2 * BURST),
        free: Vec::with_capacity(IN_FLIGHT),
        figures: Figures::default(),
    };
    let size = std::fs::metadata(&args.input).map(|meta| meta.len()).unwrap_or(0);
    let mut progress =
        Progress::bytes(if direction == Direction::Seal { "sealing" } else { "opening" }, size);
    while let Some(record) = reader.next_record().map_err(capture_error)? {
        pass.admit(&mut engine, &record)?;
        if record.number.is_multiple_of(LOOK_EVERY) {
            progress.at(record.offset);
            if progress::is_interrupted() {
                return Err(progress::Interrupted.into());
            }
        }
    }
    pass.drain(&mut engine)?;
    // No packets follow, so the time is advanced until those that wait for others are released. When sealing, this
    // ends as soon as none waits, because a tunnel of a fixed rate sends empty packets without end.
    while engine.waiting() > 0 || (direction == Direction::Open && engine.next_due() < Time::MAX) {
        engine.set_time(engine.next_due());
        pass.drain(&mut engine)?;
    }
    progress.finish();
    let mut figures = pass.figures;
    if let Some(icmp) = icmp {
        icmp.finish().map_err(capture_error)?;
    }
    writer.finish().map_err(capture_error)?;
    figures.drops.add(&engine.drops());
    print(args, &figures, &engine)?;
    Ok(if figures.drops.total() > 0 { Answer::No } else { Answer::Yes })
}

/// The capture to be written. With several cores the system copies its bytes on another than the one that moves packets.
fn create(args: &SealOpenArgs) -> Result<Writer, CaptureError> {
    if args.cores > 1 { Writer::create_with_thread(&args.output) } else { Writer::create(&args.output) }
}

fn build_engine(args: &SealOpenArgs, direction: Direction) -> miette::Result<Engine> {
    if args.cores == 0 || args.cores > 256 {
        return Err(miette!("--cores {}: expected 1 to 256", args.cores));
    }
    let mut file = sas::load(&args.sas)?;
    for warning in std::mem::take(&mut file.warnings) {
        eprintln!("{:?}", miette::Report::new(warning));
    }
    let file = file.only(direction);
    let Some(suite) = file.entries.first().map(|entry| entry.config.suite) else {
        let word = if direction == Direction::Seal { "out" } else { "in" };
        return Err(miette!(
            help = format!("add `[[sa]]` with `direction = \"{word}\"`"),
            "{} has no SA for this direction",
            args.sas.display()
        ));
    };
    let seed = seed();
    let costs = args.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let (sad, keys) = match direction {
        Direction::Seal => {
            let (store, now_ns) = (open_state(args.state.as_deref())?, unix_ns()?);
            file.into_sad(seed, |keys| store.ranges(keys, now_ns, IVS_PER_SA))?
        }
        Direction::Open => file.into_inbound_sad(seed)?,
    };
    let clock = Clock::start();
    let mut processors = processors::cores(args.cores, args.backend, suite, &costs, clock)?;
    let mut scheduling = Scheduling::default();
    if let Some(word) = &args.device {
        scheduling.policy = Policy::Single { processor: processors.len() };
        processors.push(open_device(word)?);
    }
    let limits = Limits { in_flight: IN_FLIGHT, packet_capacity: LARGEST, ..Limits::default() };
    let addresses = Addresses {
        v4: args
            .address
            .iter()
            .find_map(|address| if let IpAddr::V4(v4) = address { Some(*v4) } else { None }),
        v6: args
            .address
            .iter()
            .find_map(|address| if let IpAddr::V6(v6) = address { Some(*v6) } else { None }),
    };
    let settings = Settings { scheduling, limits, order: Order::Total, addresses, seed };
    Engine::new(sad, &keys, processors, settings, clock).into_diagnostic()
}

fn open_device(word: &str) -> miette::Result<ProcessorSetup> {
    let device = processors::device(word).ok_or_else(|| {
        let kinds = processors::kinds().iter().map(|kind| kind.word).collect::<Vec<_>>().join(", ");
        miette!(
            help = format!("use one of {kinds}, with a colon and its name"),
            "--device {word}: unknown device"
        )
    })?;
    let processor = processors::open_alone(&*device, word)?;
    let queue = processor.capabilities().queue;
    Ok(ProcessorSetup { queue, ..ProcessorSetup::new(processor, Kind::Accelerator, Cost::default()) })
}

/// The store of IVs in `dir`, or in the user's state directory.
pub fn open_state(dir: Option<&Path>) -> miette::Result<IvStore> {
    match dir {
        Some(dir) => Ok(IvStore::new(dir)),
        None => Ok(IvStore::of_user()?),
    }
}

/// One run through a capture.
struct Pass<'a> {
    direction: Direction,
    verbose: bool,
    writer: &'a mut Writer,
    icmp: Option<&'a mut Writer>,
    /// Records whose packets may still come out of the engine, which releases them in this order: one packet,
    /// several, or none of its own where it went into another's.
    waiting: VecDeque<Record>,
    /// The first record's time: SAs live from there.
    begin_ns: Option<u64>,
    frame: Vec<u8>,
    /// The time that SAs are told for the packets of the burst.
    burst_time: Time,
    /// Packets that are admitted together.
    burst: Vec<Job>,
    free: Vec<Packet>,
    figures: Figures,
}

impl Pass<'_> {
    fn admit(
        &mut self,
        engine: &mut Engine,
        record: &forebay_links::capture::Record<'_>,
    ) -> miette::Result<()> {
        self.figures.packets_in += 1;
        self.figures.bytes_in += record.data.len() as u64;
        let Ok(at) = locate(record.link, record.data) else {
            return self.drop_early(record.number, DropReason::NotIp);
        };
        let bytes = &record.data[at.start..];
        let cut = record.data.len() < record.original_len as usize;
        if cut && matches!(Ip::parse(bytes), Err(Malformed::Truncated)) {
            return self.drop_early(record.number, DropReason::Snapped);
        }
        let begin_ns = *self.begin_ns.get_or_insert(record.timestamp_ns);
        let since = record.timestamp_ns.saturating_sub(begin_ns);
        let time = Time(since.saturating_mul(PS_PER_NS));
        // Packets of a burst are of one time, as far as SAs can tell: exactly, where something goes by time.
        let apart = if engine.goes_by_time() { Duration::ZERO } else { SAME_TIME };
        if !self.burst.is_empty() && time.since(self.burst_time) > apart {
            self.send_burst(engine)?;
        }
        if self.burst.is_empty() {
            self.burst_time = time;
        }
        let mut packet = engine.buffer();
        if !packet.fill(bytes) {
            engine.recycle(packet);
            return self.drop_early(record.number, DropReason::TooLong);
        }
        let mut prefix = [0; forebay_links::frame::MAX_PREFIX];
        prefix[..at.start].copy_from_slice(&record.data[..at.start]);
        let (number, timestamp_ns, link) = (record.number, record.timestamp_ns, record.link);
        self.waiting.push_back(Record { number, timestamp_ns, link, at, prefix });
        self.burst.push(Job::new(packet, JobSpec::default(), record.number));
        if self.burst.len() < 2 * BURST { Ok(()) } else { self.send_burst(engine) }
    }

    /// Admits the packets that have been gathered.
    fn send_burst(&mut self, engine: &mut Engine) -> miette::Result<()> {
        while engine.room() < ROOM && engine.in_flight() > 0 {
            engine.poll();
            self.take_outputs(engine)?;
        }
        engine.set_time(self.burst_time);
        engine.admit_burst(self.direction, &mut self.burst);
        for Refusal { packet, tag, reason } in engine.refusals() {
            self.free.push(packet);
            if self.verbose {
                name_drop(tag, reason);
            }
        }
        engine.poll();
        self.take_outputs(engine)
    }

    /// Waits until nothing is in the engine.
    fn drain(&mut self, engine: &mut Engine) -> miette::Result<()> {
        if !self.burst.is_empty() {
            self.send_burst(engine)?;
        }
        while engine.in_flight() > 0 {
            if !engine.drain(DRAIN_MAX) {
                return Err(miette!("{} packets were not returned by their processors", engine.in_flight()));
            }
        }
        self.take_outputs(engine)
    }

    fn take_outputs(&mut self, engine: &mut Engine) -> miette::Result<()> {
        for output in engine.outputs() {
            self.forget_before(output.tag);
            let record = self.waiting.front().filter(|record| record.number == output.tag);
            let record = record.ok_or_else(|| miette!("packet {} is out of order", output.tag))?;
            match output.result {
                Ok(()) => {
                    self.frame.clear();
                    let link = record.link.rewritten();
                    reframe(
                        &record.at,
                        &record.prefix[..record.at.start],
                        output.packet.bytes(),
                        &mut self.frame,
                    )
                    .map_err(|error| miette!("packet {}: {error}", record.number))?;
                    let len = self.frame.len() as u32;
                    self.writer.write(link, record.timestamp_ns, len, &self.frame).map_err(capture_error)?;
                    self.figures.packets_out += 1;
                    self.figures.bytes_out += u64::from(len);
                }
                Err(reason) => self.name_drop(record.number, reason),
            }
            self.free.push(output.packet);
        }
        self.free.drain(..).for_each(|packet| engine.recycle(packet));
        for answer in engine.answers() {
            self.figures.answers += 1;
            let stamp = self.waiting.iter().find(|record| record.number == answer.tag);
            let stamp = stamp.or(self.waiting.back()).map_or(0, |record| record.timestamp_ns);
            if let Some(icmp) = &mut self.icmp {
                let len = answer.message.len() as u32;
                icmp.write(LinkType::Raw, stamp, len, &answer.message).map_err(capture_error)?;
            }
        }
        Ok(())
    }

    fn forget_before(&mut self, number: u64) {
        while self.waiting.front().is_some_and(|record| record.number < number) {
            self.waiting.pop_front();
        }
    }

    fn drop_early(&mut self, number: u64, reason: DropReason) -> miette::Result<()> {
        self.figures.drops.count(reason);
        self.name_drop(number, reason);
        Ok(())
    }

    fn name_drop(&self, number: u64, reason: DropReason) {
        if self.verbose {
            name_drop(number, reason);
        }
    }
}

fn name_drop(number: u64, reason: DropReason) {
    eprintln!("packet {number}: {}: {}", reason.name(), reason.explanation());
}

fn print(args: &SealOpenArgs, figures: &Figures, engine: &Engine) -> miette::Result<()> {
    if args.json {
        let drops = figures.drops.iter().map(|(reason, n)| (reason.name().to_owned(), n.into())).collect();
        let line = |one: &'_ forebay_engine::ProcessorStats| (one.name.clone(), one.packets, one.bytes);
        let lines: Vec<_> = engine.processors().map(line).collect();
        let processors = lines.iter().map(|(name, packets, bytes)| ProcessorLine {
            name,
            packets: *packets,
            bytes: *bytes,
        });
        let document = Document {
            schema: 1,
            packets_in: figures.packets_in,
            packets_out: figures.packets_out,
            bytes_in: figures.bytes_in,
            bytes_out: figures.bytes_out,
            answers: figures.answers,
            drops,
            processors: processors.collect(),
        };
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
        return Ok(());
    }
    println!("{} of {} packets to {}", figures.packets_out, figures.packets_in, args.output.display());
    for (reason, n) in figures.drops.iter() {
        println!("{n:>9}  {}: {}", reason.name(), reason.explanation());
    }
    if figures.drops.total() > 0 && !args.verbose {
        println!("(-v lists these packets)");
    }
    Ok(())
}
