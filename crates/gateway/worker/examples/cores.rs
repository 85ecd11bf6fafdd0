//! Packets per second, and CPU time of each, of workers that seal without end: of one, of several that share their SAs with
//! a queue each or one queue for all, and of several with an SA each.
//!
//! ```text
//! cores shared|one-queue|per-cpu SECONDS BYTES [WORKERS [SAS [BURST]]]
//! ```
//!
//! WORKERS is 2 unless given; SAS, 1 unless given, are equally likely; a link gives BURST packets at most at a time.

#![allow(clippy::disallowed_methods)] // it measures time

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration as StdDuration, Instant};

use forebay_crypto::{Processor, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handle, Outside, OwnSettings, Poll, Port, Setup, Worker, Workers};

/// A link that always has packets, or takes every one.
struct Endless {
    packets: Vec<Vec<u8>>,
    next: usize,
    burst: usize,
    readable: OwnedFd,
}

impl Endless {
    fn new(packets: Vec<Vec<u8>>, burst: usize) -> Endless {
        let flags = rustix::event::EventfdFlags::NONBLOCK;
        let readable = rustix::event::eventfd(u32::from(!packets.is_empty()), flags).expect("a descriptor");
        Endless { packets, next: 0, burst, readable }
    }
}

impl Link for Endless {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        if self.packets.is_empty() {
            return Ok(0);
        }
        let count = room.min(self.burst);
        for _ in 0..count {
            self.next = (self.next + 1) % self.packets.len();
            take(&self.packets[self.next], &[]);
        }
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn pending(&self) -> bool {
        !self.packets.is_empty()
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
        // In an order that neither the caches nor the runs of an SA foresee.
        let packets = (0..4_096).map(|n| plain(case.len, (n * 7_919 + place * 31) % case.sas));
        let packets = packets.filter(|_| has_packets).collect();
        setups.push(Setup {
            engine: engine.expect("an engine"),
            inside: Port::new("inside", Box::new(Endless::new(packets, case.burst)), 4096).into(),
            outside: vec![Outside {
                port: Port::new("outside", Box::new(Endless::new(vec![], 0)), 4096).into(),
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
    for (n, (sa, cpu)) in bound.chain((1..case.sas).map(|sa| (sa, None))).enumerate() {
        let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let spi = Spi::new(0x1000 + n as u32).expect("not zero");
        let suite = "aes128gcm16".parse().expect("a suite");
        let remote_ts = vec![format!("10.{}.{}.0/24", sa / 256, sa % 256).parse().expect("a network")];
        let config = SaConfig {
            cpu,
            esn: true,
            remote_ts,
            ..SaConfig::new("sa", spi, suite, near.into(), far.into())
        };
        let iv = IvRange::for_throwaway_key();
        workers[0].engine().add_outbound(config, iv, &keys(n as u8 | 1)).expect("an SA without fault");
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
    let usage = "cores shared|one-queue|per-cpu SECONDS BYTES [WORKERS [SAS [BURST]]]";
    let [_, mode, seconds, len, more @ ..] = &words[..] else { panic!("{usage}") };
    let (seconds, len) = (seconds.parse().expect(usage), len.parse().expect(usage));
    let more = |at: usize, default| more.get(at).map_or(default, |word: &String| word.parse().expect(usage));
    let (per_cpu, one_queue) = (mode == "per-cpu", mode == "one-queue");
    let case = Case {
        len,
        workers: more(0, 2),
        sas: more(1, 1),
        burst: more(2, forebay_engine::TAKE),
        per_cpu,
        one_queue,
    };
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
    // What is learned at the start is not measured.
    std::thread::sleep(StdDuration::from_millis(500));
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
    workers.ask(Worker::stop).expect("workers that run");
    threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("no error"));
}
