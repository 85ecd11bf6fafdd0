//! Gateways of several workers, whose links are sockets of this process.

#![allow(dead_code)] // each program of tests needs some of it

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handle, Handoff, Outside, Paths, Poll, Port, Setup, Worker, WorkerIndex, Workers};

/// A link that can be slept for.
pub struct Pipe(UnixDatagram);

/// Its two ends: a link, and what a program or peer has.
pub fn pipe() -> (Pipe, UnixDatagram) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_read_timeout(Some(StdDuration::from_secs(20))).unwrap();
    (Pipe(near), far)
}

impl Link for Pipe {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut buffer = [0; 2_048];
        for given in 0..room {
            match self.0.recv(&mut buffer) {
                Ok(len) => take(&buffer[..len], &[]),
                Err(_) => return Ok(given),
            }
        }
        Ok(room)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let taken = packets.iter().take_while(|packet| self.0.send(packet).is_ok()).count();
        TxReport { taken, would_block: packets.len() - taken, ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// The workers of a gateway, and what is on the other side of their links.
pub struct Gateway {
    pub workers: Vec<Worker>,
    pub handles: Vec<Handle>,
    pub programs: Vec<UnixDatagram>,
    pub peers: Vec<UnixDatagram>,
}

/// SA number `n`: to and from 10.(n+2).0.0/16; of two workers, number `n % 2` has it.
pub fn sa(n: u32) -> SaConfig {
    let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let spi = Spi::new(0x1000 + n).unwrap();
    SaConfig {
        encapsulation: Encapsulation::Udp,
        remote_ts: vec![format!("10.{}.0.0/16", n + 2).parse().unwrap()],
        ..SaConfig::new(&format!("sa-{n}"), spi, "aes128gcm16".parse().unwrap(), near.into(), far.into())
    }
}

pub fn keys() -> SaKeys {
    let suite: Suite = "aes128gcm16".parse().unwrap();
    SaKeys::new(suite, &SecretBytes::new(vec![7; 20]), &SecretBytes::new(vec![])).unwrap()
}

/// A gateway of `count` workers with room for `room` packets between each two, and `sas` SAs in each of `directions`.
pub fn gateway(count: usize, room: usize, directions: &[Direction], sas: u32) -> Gateway {
    let (mut workers, mut handles, mut programs, mut peers) = (vec![], vec![], vec![], vec![]);
    let paths = Arc::new(Paths::new(count));
    for (place, handoff) in Handoff::with_room(count, room).unwrap().into_iter().enumerate() {
        let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
        let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
        let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
        let engine =
            Engine::new(Ipsec::default(), &[], vec![core], Settings::default(), Clock::start()).unwrap();
        let ((plain, program), (udp, peer)) = (pipe(), pipe());
        let port = |name, link: Pipe| Port::new(name, Box::new(link), 4_096);
        let index = WorkerIndex::new(place, count);
        let (mut worker, handle) = Worker::new(Setup {
            engine,
            inside: port("inside", plain),
            outside: vec![Outside { port: port("udp", udp), protocols: vec![17], local: None }],
            icmp: vec![],
            mss_clamp: None,
            mss_by_path: false,
            keepalive: None,
            audit: (0, 0),
            window_waits: false,
            index,
            handoff,
            paths: paths.clone(),
            processors: vec![0],
            wait: Box::new(Poll::default()),
        });
        for (&direction, n) in directions.iter().flat_map(|direction| (0..sas).map(move |n| (direction, n))) {
            let (engine, config) = (worker.engine(), sa(n));
            match (direction, index.remote_by_spi(config.spi)) {
                (_, Some(owner)) => drop(engine.add_remote(direction, config, owner).unwrap()),
                (Direction::Seal, None) => {
                    engine.add_outbound(config, IvRange::for_throwaway_key(), &keys()).map(drop).unwrap();
                }
                (Direction::Open, None) => engine.add_inbound(config, &keys()).map(drop).unwrap(),
            }
        }
        workers.push(worker);
        handles.push(handle);
        programs.push(program);
        peers.push(peer);
    }
    for (place, worker) in workers.iter_mut().enumerate() {
        let others = handles.iter().enumerate().filter(|(other, _)| *other != place);
        worker.meet(others.map(|(_, handle)| handle.clone()).collect());
    }
    Gateway { workers, handles, programs, peers }
}

impl Gateway {
    pub fn run(&mut self) -> (Workers, Vec<JoinHandle<io::Result<()>>>) {
        let run = |mut worker: Worker| std::thread::spawn(move || worker.run());
        let threads = self.workers.drain(..).map(run).collect();
        (Workers::new(self.handles.clone()), threads)
    }
}

pub fn end(workers: &Workers, threads: Vec<JoinHandle<io::Result<()>>>) {
    assert!(workers.ask(Worker::stop).is_some());
    threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
}

/// Packet `number` of a flow of SA `n`.
pub fn plain(n: u32, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 60, 0, 7, 0, 0, 64, 253, 0, 0, 10, 1, 0, 9, 10, n as u8 + 2, 0, 9];
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.resize(60, 0);
    packet
}

pub fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(*packet[20..].first_chunk().unwrap())
}

pub fn receive(socket: &UnixDatagram) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let len = socket.recv(&mut buffer).unwrap();
    buffer[..len].to_vec()
}

/// SPI and sequence number of ESP in UDP.
pub fn spi_and_sequence(packet: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(*packet[at..].first_chunk().unwrap());
    (word(28), word(32))
}

pub fn rounds(worker: &mut Worker) {
    while worker.round() || worker.engine().in_flight() > 0 {}
}
