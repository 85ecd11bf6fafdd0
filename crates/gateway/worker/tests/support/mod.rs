//! Gateways of several workers, whose links are sockets of this process.

#![allow(dead_code)] // each program of tests needs some of it

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handle, Outside, OwnSettings, Poll, Port, PortOf, Setup, Worker, Workers};

/// A link that can be slept for: what it receives comes by one socket, and what it sends goes to another that all workers
/// share, so that the order in which they send is seen.
pub struct Pipe {
    from: UnixDatagram,
    to: UnixDatagram,
}

fn pair() -> (UnixDatagram, UnixDatagram) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_read_timeout(Some(StdDuration::from_secs(20))).unwrap();
    (near, far)
}

impl Link for Pipe {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut buffer = [0; 2_048];
        for given in 0..room {
            match self.from.recv(&mut buffer) {
                Ok(len) => take(&buffer[..len], &[]),
                Err(_) => return Ok(given),
            }
        }
        Ok(room)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        // A receiver that is behind is waited for: poll(2) knows nothing of it.
        let send = |packet: &&&[u8]| {
            while self.to.send(packet).is_err() {
                std::thread::yield_now();
            }
            true
        };
        let taken = packets.iter().take_while(send).count();
        TxReport { taken, would_block: packets.len() - taken, ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
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
    /// By which programs and peers send to each worker.
    pub programs: Vec<UnixDatagram>,
    pub peers: Vec<UnixDatagram>,
    /// Where all packets arrive, at the programs and at the peers.
    pub lan: UnixDatagram,
    pub wire: UnixDatagram,
}

/// SA number `n`: to and from 10.(n+2).0.0/16.
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

/// A gateway of `count` workers with `sas` SAs in each of `directions`.
pub fn gateway(count: usize, directions: &[Direction], sas: u32) -> Gateway {
    gateway_of(count, count, directions, sas)
}

/// The same with so many queues of each link: further workers have none of their own.
pub fn gateway_of(count: usize, queues: usize, directions: &[Direction], sas: u32) -> Gateway {
    let (mut setups, mut programs, mut peers): (Vec<Setup>, _, _) = (vec![], vec![], vec![]);
    let ((to_lan, lan), (to_wire, wire)) = (pair(), pair());
    let clock = Clock::start();
    for place in 0..count {
        let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
        let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
        let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
        let engine = match setups.first() {
            None => Engine::new(Ipsec::default(), &[], vec![core], Settings::default(), clock),
            Some(first) => first.engine.beside(place as u32, vec![core], Settings::default(), clock),
        };
        let ((plain, program), (udp, peer)) = (pair(), pair());
        let pipe = |from, to: &UnixDatagram| Pipe { from, to: to.try_clone().unwrap() };
        let port = |name, link: Pipe| match place < queues {
            true => PortOf::Own(Port::new(name, Box::new(link), 4_096)),
            false => PortOf::Worker(place % queues),
        };
        setups.push(Setup {
            engine: engine.unwrap(),
            inside: port("inside", pipe(plain, &to_lan)),
            outside: vec![Outside {
                port: port("udp", pipe(udp, &to_wire)),
                protocols: vec![17],
                local: None,
            }],
            icmp: vec![],
            own: OwnSettings { processors: vec![0], ..OwnSettings::default() },
            wait: Box::new(Poll::default()),
        });
        if place < queues {
            programs.push(program);
            peers.push(peer);
        }
    }
    let (mut workers, handles) = Worker::all(setups).unwrap();
    for (&direction, n) in directions.iter().flat_map(|direction| (0..sas).map(move |n| (direction, n))) {
        let (engine, config) = (workers[0].engine(), sa(n));
        match direction {
            Direction::Seal => engine.add_outbound(config, IvRange::for_throwaway_key(), &keys()),
            Direction::Open => engine.add_inbound(config, &keys()),
        }
        .unwrap();
    }
    Gateway { workers, handles, programs, peers, lan, wire }
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
