//! Packets per second, and CPU time of each, of workers that send without end: by an SA for each, by handoff to the owner
//! of one SA, and of one worker alone or with a lane on another core.
//!
//! ```text
//! per_cpu one|lane|handoff|per-cpu SECONDS BYTES [WORKERS]
//! ```
//!
//! Workers, 2 unless given, are those of `handoff` and `per-cpu`.

#![allow(clippy::disallowed_methods)] // it measures time

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use forebay_crypto::{Direction, Processor, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, Lane, ProcessorSetup, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handoff, Outside, Paths, Poll, Port, Setup, Worker, WorkerIndex, Workers};

/// A link that always has a packet, or takes every one.
struct Endless {
    packet: Vec<u8>,
    readable: OwnedFd,
}

impl Endless {
    fn new(packet: Vec<u8>) -> Endless {
        let flags = rustix::event::EventfdFlags::NONBLOCK;
        let readable = rustix::event::eventfd(u32::from(!packet.is_empty()), flags).expect("a descriptor");
        Endless { packet, readable }
    }
}

impl Link for Endless {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        if self.packet.is_empty() {
            return Ok(0);
        }
        (0..room).for_each(|_| take(&self.packet, &[]));
        Ok(room)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn pending(&self) -> bool {
        !self.packet.is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// A packet of this length whose addresses are those of worker number `worker`'s flow.
fn plain(len: usize, worker: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 7, 0, 0, 64, 253, 0, 0];
    packet.extend([10, 1, 0, worker as u8 + 1, 10, 2, 0, worker as u8 + 1]);
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

/// A worker with `processors` that has the SAs of the set that `per_cpu` says.
fn worker(
    index: WorkerIndex,
    handoff: Handoff,
    paths: Arc<Paths>,
    len: usize,
    workers: usize,
    per_cpu: bool,
    processors: usize,
) -> (Worker, forebay_worker::Handle) {
    let clock = Clock::start();
    let lane = |_| processor(Box::new(Lane::new(Box::new(AwsLc::new()), "lane", clock).expect("a thread")));
    let cores = std::iter::once(processor(Box::new(AwsLc::new()))).chain((1..processors).map(lane)).collect();
    let engine = Engine::new(Ipsec::default(), &[], cores, Settings::default(), clock);
    let (mut worker, handle) = Worker::new(Setup {
        engine: engine.expect("an engine"),
        inside: Port::new("inside", Box::new(Endless::new(plain(len, index.get()))), 4096),
        outside: vec![Outside {
            port: Port::new("outside", Box::new(Endless::new(vec![])), 4096),
            protocols: vec![50],
            local: None,
        }],
        icmp: vec![],
        mss_clamp: None,
        mss_by_path: false,
        keepalive: None,
        audit: (0, 0),
        window_waits: false,
        index,
        handoff,
        paths,
        processors: (0..processors).collect(),
        wait: Box::new(Poll::default()),
    });
    let own = (0..workers as u32).filter(|_| per_cpu).map(Some);
    for (n, cpu) in std::iter::once(None).chain(own).enumerate() {
        let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let spi = Spi::new(0x1000 + n as u32).expect("not zero");
        let suite = "aes128gcm16".parse().expect("a suite");
        let config = SaConfig { cpu, esn: true, ..SaConfig::new("sa", spi, suite, near.into(), far.into()) };
        let owner = cpu.map_or(WorkerIndex::new(0, workers), |cpu| WorkerIndex::new(cpu as usize, workers));
        let engine = worker.engine();
        let added = match index.remote(owner) {
            Some(owner) => engine.add_remote(Direction::Seal, config, owner).map(drop).is_ok(),
            None => {
                let iv = IvRange::for_throwaway_key();
                engine.add_outbound(config, iv, &keys(n as u8 + 1)).map(drop).is_ok()
            }
        };
        assert!(added, "an SA without fault");
    }
    (worker, handle)
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
    let usage = "per_cpu one|lane|handoff|per-cpu SECONDS BYTES [WORKERS]";
    let [_, mode, seconds, len, more @ ..] = &words[..] else { panic!("{usage}") };
    let (seconds, len) = (seconds.parse().expect(usage), len.parse().expect(usage));
    let several = more.first().map_or(2, |workers| workers.parse().expect(usage));
    let (workers, processors) = match mode.as_str() {
        "one" => (1, 1),
        "lane" => (1, 2),
        _ => (several, 1),
    };
    let paths = Arc::new(Paths::new(workers));
    let (mut handles, mut threads) = (vec![], vec![]);
    for (place, handoff) in Handoff::between(workers).expect("descriptors").into_iter().enumerate() {
        let index = WorkerIndex::new(place, workers);
        let per_cpu = mode == "per-cpu";
        let (mut worker, handle) = worker(index, handoff, paths.clone(), len, workers, per_cpu, processors);
        handles.push(handle);
        threads.push(std::thread::spawn(move || worker.run()));
    }
    let workers = Workers::new(handles);
    let sent = || -> u64 {
        let counted = workers.ask(|worker| {
            worker.engine().sad().iter().map(|(_, _, _, counters)| counters.packets).sum::<u64>()
        });
        counted.expect("workers that run").into_iter().sum()
    };
    // What is learned at the start is not measured.
    std::thread::sleep(StdDuration::from_millis(500));
    let (begin, cpu, before) = (Instant::now(), cpu_s(), sent());
    std::thread::sleep(StdDuration::from_secs_f64(seconds));
    let (packets, cpu, took) = (sent() - before, cpu_s() - cpu, begin.elapsed().as_secs_f64());
    println!(
        "{mode} {len} {:.0} packets/s {:.3} us/packet {:.2} cores",
        packets as f64 / took,
        cpu * 1e6 / packets as f64,
        cpu / took
    );
    workers.ask(Worker::stop).expect("workers that run");
    threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("no error"));
}
