//! `forebay seal` and `forebay open`: a capture through the engine into a capture.

mod pass;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_config::STATE_FILES;
use forebay_crypto::Direction;
use forebay_engine::{Addresses, Clock, Engine, Limits, Order, ProcessorSetup, Scheduling, Settings};
use forebay_links::capture::{Reader, Writer};
use forebay_processors::{self as processors, Backend};
use forebay_sas as sas;
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_state::{IVS_PER_SA, IvStore};
use forebay_terminal::host::{seed, unix_ns};
use forebay_terminal::{Answer, capture_error};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use serde_json::{Map, Value};

use self::pass::{Figures, Pass};

/// Packets in flight at once: enough for every core's queue; each has a buffer for the largest IP packet.
const IN_FLIGHT: usize = 1024;
/// The largest IP packet; IPv6 does not count its header.
const LARGEST: usize = 65_535 + 40;
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
    /// Directory that records used IVs, so that an IV never repeats [default: the user's state directory].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Capture file (raw IP) for ICMP errors to the sources of packets larger than the path MTU.
    #[arg(long, value_name = "FILE", requires = "address")]
    icmp: Option<PathBuf>,
    /// Source address of these ICMP errors: this gateway's address on the inside, one for each IP version.
    #[arg(long, value_name = "ADDRESS", requires = "icmp")]
    address: Vec<IpAddr>,
    /// List dropped packets with reasons.
    #[arg(short, long)]
    verbose: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    packets_in: u64,
    packets_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    answers: u64,
    drops: Map<String, Value>,
    processors: Vec<ProcessorLine>,
}

#[derive(Serialize)]
struct ProcessorLine {
    name: String,
    packets: u64,
    bytes: u64,
}

/// Runs the command.
pub fn run(args: &SealOpenArgs, direction: Direction) -> miette::Result<Answer> {
    let mut inputs = sas::files_named(&args.sas);
    inputs.push(args.input.clone());
    if direction == Direction::Seal {
        let store = open_state(args.state.as_deref())?;
        inputs.extend(STATE_FILES.map(|name| store.directory().join(name)));
    }
    forebay_terminal::refuse_inputs([&args.output].into_iter().chain(&args.icmp), inputs)?;
    let mut engines = build_engines(args, direction)?;
    // Both files are opened before a packet is touched: nothing is read for an output that cannot be.
    let mut writer = Writer::create(&args.output).map_err(capture_error)?;
    let reader = Reader::open(&args.input).map_err(capture_error)?;
    if let Some(link) = reader.link() {
        writer.declare(link.rewritten(), reader.resolution()).map_err(capture_error)?;
    }
    let mut icmp = args.icmp.as_ref().map(Writer::create).transpose().map_err(capture_error)?;
    if let Some(icmp) = &mut icmp {
        icmp.declare(forebay_links::LinkType::Raw, reader.resolution()).map_err(capture_error)?;
    }
    let size = std::fs::metadata(&args.input).map(|meta| meta.len()).unwrap_or(0);
    let pass = Pass::new((reader, size), (writer, icmp), direction, args.verbose);
    let mut figures = pass.run(&mut engines)?;
    engines.iter().for_each(|engine| figures.drops.add(&engine.drops()));
    print(args, &figures, &engines)?;
    Ok(if figures.drops.total() > 0 { Answer::No } else { Answer::Yes })
}

/// An engine for each core, which share the SAs of this direction.
fn build_engines(args: &SealOpenArgs, direction: Direction) -> miette::Result<Vec<Engine>> {
    if args.cores == 0 || args.cores > 256 {
        return Err(miette!("--cores {}: expected 1 to 256", args.cores));
    }
    if args.device.is_some() && args.cores > 1 {
        return Err(miette!(
            help = "leave out `--cores`: the device does the crypto, and one core feeds it",
            "--cores {} with `--device`: further cores would have nothing to do",
            args.cores
        ));
    }
    let mut file = sas::load(&args.sas)?;
    for warning in std::mem::take(&mut file.warnings) {
        eprintln!("{:?}", miette::Report::new(warning));
    }
    let file = file.only(direction);
    if file.entries.is_empty() {
        let word = if direction == Direction::Seal { "out" } else { "in" };
        return Err(miette!(
            help = format!("add `[[sa]]` with `direction = \"{word}\"`"),
            "{} has no SA for this direction",
            args.sas.display()
        ));
    }
    let seed = seed();
    let (sad, keys) = match direction {
        Direction::Seal => {
            refuse_rate(&file, &args.sas)?;
            let (store, now_ns) = (open_state(args.state.as_deref())?, unix_ns()?);
            let _claimed = store.claim_if_free()?;
            file.into_sad(seed, |keys| store.ranges(keys, now_ns, IVS_PER_SA))?
        }
        Direction::Open => file.into_inbound_sad(seed)?,
    };
    let clock = Clock::start();
    let mut processors = vec![processors::core(args.backend)?];
    let mut scheduling = Scheduling::default();
    if let Some(word) = &args.device {
        scheduling.policy = Policy::Single { processor: 1 };
        processors.push(open_device(word)?);
    }
    let settings = settings(args, scheduling, seed);
    let mut engines = vec![Engine::new(sad, &keys, processors, settings, clock).into_diagnostic()?];
    for cpu in 1..args.cores {
        let processors = vec![processors::core(args.backend)?];
        let settings = self::settings(args, Scheduling::default(), seed);
        engines.push(engines[0].beside(cpu as u32, processors, settings, clock).into_diagnostic()?);
    }
    Ok(engines)
}

/// Refuses SAs that send by the clock, whether packets come or not: a capture has only the packets that come.
fn refuse_rate(file: &sas::SasFile, path: &Path) -> miette::Result<()> {
    let has_rate =
        |entry: &&sas::SaEntry| entry.config.iptfs.as_ref().is_some_and(|iptfs| iptfs.rate.is_some());
    match file.entries.iter().find(has_rate) {
        None => Ok(()),
        Some(entry) => Err(miette!(
            help = "take `rate` away to aggregate by `max_delay`; the gateway sends at a rate",
            "{}: SA `{}` has a `rate`, which a capture cannot have: packets leave at it although none comes in",
            path.display(),
            sas::mask::shown(&entry.config.name)
        )),
    }
}

fn settings(args: &SealOpenArgs, scheduling: Scheduling, seed: u64) -> Settings {
    let limits = Limits { in_flight: IN_FLIGHT, packet_capacity: LARGEST, ..Limits::default() };
    let v4 = |address: &IpAddr| if let IpAddr::V4(v4) = address { Some(*v4) } else { None };
    let v6 = |address: &IpAddr| if let IpAddr::V6(v6) = address { Some(*v6) } else { None };
    let addresses = Addresses { v4: args.address.iter().find_map(v4), v6: args.address.iter().find_map(v6) };
    Settings { scheduling, limits, order: Order::Total, addresses, seed }
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

fn print(args: &SealOpenArgs, figures: &Figures, engines: &[Engine]) -> miette::Result<()> {
    if args.json {
        let drops = figures.drops.iter().map(|(reason, n)| (reason.name().to_owned(), n.into())).collect();
        let processors = engines.iter().enumerate().flat_map(|(core, engine)| {
            engine.processors().map(move |one| ProcessorLine {
                name: if core == 0 { one.name.clone() } else { format!("{}.{core}", one.name) },
                packets: one.packets,
                bytes: one.bytes,
            })
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
