//! Two workers on threads of their own, joined in memory, and a key exchange that never rests: SAs are replaced as fast
//! as orders are obeyed while packets flow, and every packet arrives, once and in order. What is left afterwards is
//! what was there at first.

#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use forebay_crypto::{Direction, SaKeys, SecretBytes, SessionId};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Action, Ipsec, IvRange, Policy, PolicyId, PolicyPlace, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_worker::{Handle, Outside, OwnSettings, Poll, Port, Setup, Worker};

/// Rekeys: `FOREBAY_REKEYS` changes it, for longer runs.
const REKEYS: u32 = 2_000;
/// Packets that may be in flight: fewer than any queue has room for.
const UNDER_WAY: u64 = 512;

/// One direction of a cable.
#[derive(Clone)]
struct Cable(Arc<Mutex<VecDeque<Vec<u8>>>>, Arc<OwnedFd>);

impl Cable {
    fn new() -> Cable {
        let flags = rustix::event::EventfdFlags::NONBLOCK;
        Cable(Arc::default(), Arc::new(rustix::event::eventfd(0, flags).unwrap()))
    }

    fn put(&self, packet: Vec<u8>) {
        self.0.lock().unwrap().push_back(packet);
        let _ = rustix::io::write(&*self.1, &1_u64.to_ne_bytes());
    }
}

/// An end of two cables.
struct End {
    from: Cable,
    to: Cable,
}

impl Link for End {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let _ = rustix::io::read(&*self.from.1, &mut [0; 8]);
        let mut waiting = self.from.0.lock().unwrap();
        let count = room.min(waiting.len());
        waiting.drain(..count).for_each(|packet| take(&packet, &[]));
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        packets.iter().for_each(|packet| self.to.put(packet.to_vec()));
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.from.1.as_fd()
    }

    fn pending(&self) -> bool {
        !self.from.0.lock().unwrap().is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

struct Gateway {
    handle: Handle,
    thread: JoinHandle<io::Result<()>>,
}

fn gateway(plain: End, wire: End) -> Gateway {
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
    let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
    let engine = Engine::new(Ipsec::default(), &[], vec![core], Settings::default(), Clock::start()).unwrap();
    let setup = Setup {
        engine,
        inside: Port::new("inside", Box::new(plain), 4096).into(),
        outside: vec![Outside {
            port: Port::new("wire", Box::new(wire), 4096).into(),
            protocols: vec![50],
            local: None,
        }],
        icmp: vec![],
        own: OwnSettings { audit: (10, 10), processors: vec![0], ..OwnSettings::default() },
        wait: Box::new(Poll::default()),
    };
    let (mut worker, handle) = Worker::new(setup).unwrap();
    Gateway { handle, thread: std::thread::spawn(move || worker.run()) }
}

impl Gateway {
    fn end(self) {
        self.handle.ask(Worker::stop);
        self.thread.join().unwrap().unwrap();
    }
}

fn keys(number: u32) -> SaKeys {
    let mut key = vec![7; 20];
    key[..4].copy_from_slice(&number.to_be_bytes());
    SaKeys::new("aes128gcm16".parse().unwrap(), &SecretBytes::new(key), &SecretBytes::new(vec![])).unwrap()
}

fn sa(number: u32, outbound: bool) -> SaConfig {
    let ends = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
    let [local, remote] = if outbound { ends } else { [ends[1], ends[0]] };
    let spi = Spi::new(0x1000 + number).unwrap();
    SaConfig {
        replay_window: 1024,
        ..SaConfig::new("sa", spi, "aes128gcm16".parse().unwrap(), local, remote)
    }
}

/// A packet with its number behind the header.
fn plain(number: u64) -> Vec<u8> {
    let len = 28 + (number % 1_200) as usize;
    let mut packet =
        vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 7, 0, 0, 64, 253, 0, 0, 10, 1, 0, 9, 10, 2, 0, 9];
    packet.extend(number.to_be_bytes());
    packet.resize(len, 0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

/// The two ends' SAs of one pair.
struct Installed {
    out: SessionId,
    into: SessionId,
}

/// As an IKE daemon does: the inbound SA first, then the outbound one in front of its policy.
fn install(near: &Handle, far: &Handle, policy: PolicyId, number: u32) -> Installed {
    let into = far.ask(move |worker| worker.engine().add_inbound(sa(number, false), &keys(number)).unwrap());
    let out = near.ask(move |worker| {
        let engine = worker.engine();
        let iv = IvRange::for_throwaway_key();
        let out = engine.add_outbound(sa(number, true), iv, &keys(number)).unwrap();
        engine.put_policy_sa_first(policy, out).unwrap();
        out
    });
    Installed { out: out.unwrap(), into: into.unwrap() }
}

/// Resident memory of this process in pages.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn rekeys_under_traffic_lose_nothing() {
    let rekeys: u32 = std::env::var("FOREBAY_REKEYS").map_or(REKEYS, |count| count.parse().unwrap());
    let [programs, there, back, hosts] = [(); 4].map(|()| Cable::new());
    let near = gateway(
        End { from: programs.clone(), to: Cable::new() },
        End { from: back.clone(), to: there.clone() },
    );
    let far = gateway(End { from: Cable::new(), to: hosts.clone() }, End { from: there, to: back });
    let policy = near.handle.ask(|worker| {
        let policy = Policy::new("all", Direction::Seal, Action::Protect(vec![]));
        worker.engine().add_policy(policy, PolicyPlace::Last).unwrap()
    });
    let policy = policy.unwrap();
    let mut used = install(&near.handle, &far.handle, policy, 0);

    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(AtomicU64::new(0));
    // Programs, and who counts at the other end: the next number is the only one that is right.
    let traffic = std::thread::spawn({
        let (stop, heard) = (stop.clone(), heard.clone());
        move || {
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                match sent - heard.load(Ordering::Relaxed) < UNDER_WAY {
                    true => programs.put(plain(sent)),
                    false => {
                        std::thread::yield_now();
                        continue;
                    }
                }
                sent += 1;
            }
            sent
        }
    });
    let all = Arc::new(AtomicU64::new(u64::MAX));
    let counter = std::thread::spawn({
        let (heard, all) = (heard.clone(), all.clone());
        move || {
            let mut next = 0;
            let mut end = End { from: hosts, to: Cable::new() };
            let mut idle_since = std::time::Instant::now();
            while next < all.load(Ordering::Relaxed) && idle_since.elapsed().as_secs() < 30 {
                let taken = end.receive(usize::MAX, &mut |packet, _| {
                    assert_eq!(
                        packet,
                        plain(next),
                        "packet {next} is lost, or comes too late, or is changed"
                    );
                    next += 1;
                });
                heard.store(next, Ordering::Relaxed);
                match taken.unwrap() {
                    0 => std::thread::yield_now(),
                    _ => idle_since = std::time::Instant::now(),
                }
            }
            next
        }
    });

    let begin = std::time::Instant::now();
    let (mut warm, mut sessions) = (0, 0);
    for number in 1..=rekeys {
        let new = install(&near.handle, &far.handle, policy, number);
        let old = std::mem::replace(&mut used, new);
        let sent = near.handle.ask(move |worker| {
            let sent = worker.engine().sad().sequence(old.out).unwrap();
            worker.finish(&[old.out]);
            assert!(worker.remove_sa(old.out));
            sent
        });
        let sent = sent.unwrap();
        // Both daemons delete the old pair; this one waits until it has had all that was sent, as some seconds do.
        while far.handle.ask(move |worker| worker.engine().sad().counters(old.into).unwrap().packets)
            < Some(sent)
        {
            std::thread::yield_now();
            assert!(!counter.is_finished(), "a packet is lost");
        }
        far.handle.ask(move |worker| assert!(worker.remove_sa(old.into)));
        sessions = sessions.max(used.out.0).max(used.into.0);
        if number == rekeys / 4 {
            warm = resident();
        }
    }
    let took = begin.elapsed();
    stop.store(true, Ordering::Relaxed);
    let sent = traffic.join().unwrap();
    all.store(sent, Ordering::Relaxed);
    assert_eq!(counter.join().unwrap(), sent, "packets that arrived, of those sent");
    assert!(sent > u64::from(rekeys), "{sent} packets are no traffic");

    for gateway in [&near, &far] {
        let (sas, drops) = gateway
            .handle
            .ask(|worker| {
                let sas = worker.engine().sad().iter().count();
                (sas, worker.engine().drops().total())
            })
            .unwrap();
        assert_eq!((sas, drops), (1, 0));
    }
    assert!(sessions <= 4, "numbers of SAs are used again: {sessions}");
    let grown = resident().saturating_sub(warm) * 4096;
    assert!(grown < 8 << 20, "{grown} bytes more than after a quarter of the rekeys");
    let rate = f64::from(rekeys) / took.as_secs_f64();
    println!("{rekeys} rekeys, {rate:.0} a second, under {sent} packets; memory grew by {grown} bytes");
    near.end();
    far.end();
}
