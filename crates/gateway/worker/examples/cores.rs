//! Packets per second, and CPU time of each, of workers that seal without end: of one, of several that share their SAs with
//! a queue each or one queue for all, and of several with an SA each. Or of workers that open what comes to one queue, which was
//! sealed before: as many as are opened in SECONDS at 8 million per second, in 4 GiB at most.
//!
//! ```text
//! cores shared|one-queue|per-cpu|inbound SECONDS BYTES [WORKERS [SAS [BURST]]]
//! ```
//!
//! WORKERS is 2 unless given; SAS, 1 unless given, are equally likely; a link gives BURST packets at most at a time.

#![allow(clippy::disallowed_methods)] // it measures time

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration as StdDuration, Instant};

use forebay_crypto::{Direction, Job, JobSpec, Processor, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handle, Outside, OwnSettings, Poll, Port, Setup, Worker, Workers};

/// Bytes that packets which were sealed before may take.
const SEALED_MAX: usize = 4 << 30;

/// A link that always has packets, or each of them once, and takes every one.
struct Endless {
    packets: Vec<Vec<u8>>,
    next: usize,
    burst: usize,
    is_endless: bool,
    readable: OwnedFd,
}

impl Endless {
    fn new(packets: Vec<Vec<u8>>, burst: usize) -> Endless {
        let flags = rustix::event::EventfdFlags::NONBLOCK;
        let readable = rustix::event::eventfd(u32::from(!packets.is_empty()), flags).expect("a descriptor");
        Endless { packets, next: 0, burst, is_endless: true, readable }
    }

    fn once(packets: Vec<Vec<u8>>, burst: usize) -> Endless {
        Endless { is_endless: false, ..Endless::new(packets, burst) }
    }
}

impl Link for Endless {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        if self.packets.is_empty() {
            return Ok(0);
        }
        let mut count = room.min(self.burst);
        if !self.is_endless {
            count = count.min(self.packets.len() - self.next);
        } else if self.next + count > self.packets.len() {
            self.next = 0;
        }
        self.packets[self.next..self.next + count].iter().for_each(|packet| take(packet, &[]));
        self.next += count;
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn pending(&self) -> bool {
        self.next < self.packets.len() || self.is_endless && !self.packets.is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// A packet of this length for SA number `sa`.
fn plain(len: usize, sa: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 7, 0, 0, 64, 253, 0, 0];
    packet.extend([172, 16, 0, 1, 10, (sa / 256) as u8, (sa % 256) as u8, 1]);
    packet.resize(len, 0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

fn keys(n: u8) -> SaKeys {
    let suite: Suite = "aes128gcm16".parse().expect("a suite");
    SaKeys::new(suite, &SecretBytes::new(vec![n; 20]), &SecretBytes::new(vec![])).expect("keys of its length")
}

fn processor(processor: Box<dyn Processor>) -> ProcessorSetup {
    let cost = Cost { init: Duration::from_nanos(300), block: Duration::from_nanos(5), ..Cost::default() };
    ProcessorSetup { processor, kind: Kind::Cpu, cost, alpha: 1.0, beta: Duration::ZERO, queue: 1_024 }
}

/// What is run.
struct Case {
    len: usize,
    workers: usize,
    sas: usize,
    burst: usize,
    per_cpu: bool,
    one_queue: bool,
    /// How many are opened.
    inbound: Option<usize>,
}

/// In an order that neither the caches nor the runs of an SA foresee.
fn plain_packets(case: &Case, place: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..4_096).map(move |n| plain(case.len, (n * 7_919 + place * 31) % case.sas))
}

/// SA number `n` of those that seal.
fn sa(n: usize) -> SaConfig {
    let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let spi = Spi::new(0x1000 + n as u32).expect("not zero");
    let suite = "aes128gcm16".parse().expect("a suite");
    let remote_ts = vec![format!("10.{}.{}.0/24", n / 256, n % 256).parse().expect("a network")];
    SaConfig { esn: true, remote_ts, ..SaConfig::new("sa", spi, suite, near.into(), far.into()) }
}

/// The packets that such SAs make, one burst after the other.
fn sealed(case: &Case, count: usize) -> Vec<Vec<u8>> {
    let cores = vec![processor(Box::new(AwsLc::new()))];
    let engine = Engine::new(Ipsec::default(), &[], cores, Settings::default(), Clock::start());
    let mut engine = engine.expect("an engine");
    for n in 0..case.sas {
        engine
            .add_outbound(sa(n), IvRange::for_throwaway_key(), &keys(n as u8 | 1))
            .expect("an SA without fault");
    }
    let plain: Vec<Vec<u8>> = plain_packets(case, 0).collect();
    let mut made = Vec::with_capacity(count);
    for burst in plain.chunks(forebay_engine::BURST).cycle() {
        let mut jobs: Vec<Job> = Vec::with_capacity(burst.len());
        for bytes in burst {
            let mut packet = engine.buffer();
            assert!(packet.fill(bytes));
            jobs.push(Job::new(packet, JobSpec::default(), 0));
        }
        engine.prepare_burst(Direction::Seal, &mut jobs);
        engine.carry(&mut jobs);
        let packets: Vec<_> = engine.outputs().map(|output| output.packet).collect();
        for packet in packets {
            made.push(packet.bytes().to_vec());
            engine.recycle(packet);
        }
        if made.len() >= count {
            return made;
        }
    }
    made
}

fn set_up(case: &Case) -> (Vec<Worker>, Vec<Handle>) {
    let clock = Clock::start();
    let mut setups: Vec<Setup> = vec![];
    for place in 0..case.workers {
        let cores = vec![processor(Box::new(AwsLc::new()))];
        let engine = match setups.first() {
            None => Engine::new(Ipsec::default(), &[], cores, Settings::default(), clock),
            Some(first) => first.engine.beside(place as u32, cores, Settings::default(), clock),
        };
        let has_packets = place == 0 || !case.one_queue;
        let packets = plain_packets(case, place).filter(|_| has_packets && case.inbound.is_none()).collect();
        let outside = case.inbound.filter(|_| place == 0).map_or(vec![], |count| sealed(case, count));
        setups.push(Setup {
            engine: engine.expect("an engine"),
            inside: Port::new("inside", Box::new(Endless::new(packets, case.burst)), 4096).into(),
            outside: vec![Outside {
                port: Port::new("outside", Box::new(Endless::once(outside, case.burst)), 4096).into(),
                protocols: vec![50],
                local: None,
            }],
            icmp: vec![],
            own: OwnSettings { processors: vec![0], ..OwnSettings::default() },
            wait: Box::new(Poll::default()),
        });
    }
    let (mut workers, handles) = Worker::all(setups).expect("descriptors");
    let cpus = (0..case.workers as u32).filter(|_| case.per_cpu).map(Some);
    let bound = std::iter::once(None).chain(cpus).map(|cpu| (0, cpu));
    for (n, (number, cpu)) in bound.chain((1..case.sas).map(|sa| (sa, None))).enumerate() {
        let spi = Spi::new(0x1000 + n as u32).expect("not zero");
        let config = SaConfig { cpu, spi, ..sa(number) };
        let keys = keys(n as u8 | 1);
        if case.inbound.is_some() {
            let SaConfig { local, remote, remote_ts, .. } = config;
            let config =
                SaConfig { local: remote, remote: local, local_ts: remote_ts, remote_ts: vec![], ..config };
            workers[0].engine().add_inbound(config, &keys).expect("an SA without fault");
        } else {
            let iv = IvRange::for_throwaway_key();
            workers[0].engine().add_outbound(config, iv, &keys).expect("an SA without fault");
        }
    }
    (workers, handles)
}

/// CPU time of the process, in seconds, to a hundredth.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc(5)");
    // Behind the name, which may hold anything: user and system time, fields 14 and 15.
    let fields = stat.rsplit(')').next().expect("a line").split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let usage = "cores shared|one-queue|per-cpu|inbound SECONDS BYTES [WORKERS [SAS [BURST]]]";
    let [_, mode, seconds, len, more @ ..] = &words[..] else { panic!("{usage}") };
    let (seconds, len): (f64, usize) = (seconds.parse().expect(usage), len.parse().expect(usage));
    // What is learned at the start is not measured.
    let warm_up = if mode == "inbound" { 0.1 } else { 0.5 };
    let more = |at: usize, default| more.get(at).map_or(default, |word: &String| word.parse().expect(usage));
    let (per_cpu, one_queue) = (mode == "per-cpu", mode == "one-queue");
    let case = Case {
        len,
        workers: more(0, 2),
        sas: more(1, 1),
        burst: more(2, forebay_engine::TAKE),
        per_cpu,
        one_queue,
        inbound: (mode == "inbound").then_some(((warm_up + seconds) * 8e6) as usize),
    };
    // The ESP header, IV, padding and ICV of each are at most 64 bytes, with the outer header.
    let sealed = case.inbound.unwrap_or(0).saturating_mul(len.saturating_add(64 + size_of::<Vec<u8>>()));
    if sealed > SEALED_MAX {
        eprintln!(
            "cores: the packets for {seconds} s would take {:.1} GiB before the run, more than 4 GiB: give fewer SECONDS or BYTES",
            sealed as f64 / f64::from(1 << 30)
        );
        std::process::exit(2);
    }
    let (workers, handles) = set_up(&case);
    let run = |mut worker: Worker| std::thread::spawn(move || worker.run());
    let threads: Vec<_> = workers.into_iter().map(run).collect();
    let workers = Workers::new(handles);
    let sent = || -> u64 {
        let counted = workers.first(|worker| {
            worker.engine().sad().iter().map(|(_, _, _, counters)| counters.packets).sum::<u64>()
        });
        counted.expect("workers that run")
    };
    std::thread::sleep(StdDuration::from_secs_f64(warm_up));
    let (begin, cpu, before) = (Instant::now(), cpu_s(), sent());
    std::thread::sleep(StdDuration::from_secs_f64(seconds));
    let (packets, cpu, took) = (sent() - before, cpu_s() - cpu, begin.elapsed().as_secs_f64());
    println!(
        "{mode} of {} workers, {len} bytes, {} SAs: {:.0} packets/s {:.3} us/packet {:.2} cores",
        case.workers,
        case.sas,
        packets as f64 / took,
        cpu * 1e6 / packets as f64,
        cpu / took
    );
    assert!(
        case.inbound.is_none_or(|count| before + packets < count as u64),
        "all were opened before the end"
    );
    workers.ask(Worker::stop).expect("workers that run");
    threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("no error"));
}
