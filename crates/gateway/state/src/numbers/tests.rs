#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{DropReason, Ipsec};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};

use super::*;
use forebay_config::Changes;
use forebay_sas::parse;
use forebay_worker::{Outside, OwnSettings, Poll, Port, Setup};

const FILE: &str = "[[sa]]\nname = \"out\"\ndirection = \"out\"\nspi = 0x1001\nproposal = \"aes128gcm16\"\n\
                    key = \"0707070707070707070707070707070707070707\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n";

/// What the two ends of the wire share.
#[derive(Default)]
struct Wire {
    inside: VecDeque<Vec<u8>>,
    /// Sequence numbers of what was sealed.
    sealed: Vec<u64>,
    /// Of those, how many were not noted when they were sent.
    unnoted: usize,
    /// Their IVs.
    ivs: Vec<u64>,
}

/// The inside gives packets, the other takes them.
struct End {
    wire: Arc<Mutex<Wire>>,
    fd: OwnedFd,
    directory: PathBuf,
    is_inside: bool,
}

impl Link for End {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut wire = self.wire.lock().unwrap();
        let count = if self.is_inside { room.min(wire.inside.len()) } else { 0 };
        wire.inside.drain(..count).for_each(|packet| take(&packet, &[]));
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut wire = self.wire.lock().unwrap();
        let (noted, ivs_noted) = (noted(&self.directory), ivs_noted(&self.directory));
        for packet in packets {
            let number = u64::from(u32::from_be_bytes(packet[24..28].try_into().unwrap()));
            let iv = u64::from_be_bytes(packet[28..36].try_into().unwrap());
            wire.unnoted += usize::from(number > noted || iv >= ivs_noted);
            wire.ivs.push(iv);
            wire.sealed.push(number);
        }
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn pending(&self) -> bool {
        self.is_inside && !self.wire.lock().unwrap().inside.is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// What the journal says last of a key that begins so.
fn last(directory: &Path, key: &str) -> u64 {
    let text = std::fs::read_to_string(directory.join("records.log")).unwrap_or_default();
    let line = text.lines().rev().find(|line| line.contains(&format!(" {key}")));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// The last sequence number that is recorded.
fn noted(directory: &Path) -> u64 {
    last(directory, "n/")
}

/// The first IV that is not reserved.
fn ivs_noted(directory: &Path) -> u64 {
    last(directory, &format!("i/{}", KeyId::of(&parse(FILE, "test").unwrap().entries[0].keys)))
}

/// A gateway with one outbound SA that numbers its packets in blocks of 16.
struct Bench {
    directory: tempfile::TempDir,
    wire: Arc<Mutex<Wire>>,
    handle: Handle,
    reserver: Arc<SequenceReserver>,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

fn bench(directory: tempfile::TempDir) -> Bench {
    bench_with(directory, IVS_PER_SA)
}

/// With so many IVs at first.
fn bench_with(directory: tempfile::TempDir, iv_reserve: u64) -> Bench {
    let wire = Arc::<Mutex<Wire>>::default();
    let end = |is_inside| {
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        Box::new(End { wire: wire.clone(), fd, directory: directory.path().to_owned(), is_inside })
    };
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
    let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
    let settings = Settings::default();
    let engine = Engine::new(Ipsec::default(), &[], vec![core], settings, Clock::start()).unwrap();
    let protocols = vec![forebay_wire::protocol::ESP];
    let setup = Setup {
        engine,
        inside: Port::new("inside", end(true), 64).into(),
        outside: vec![Outside { port: Port::new("raw", end(false), 64).into(), protocols, local: None }],
        icmp: vec![],
        own: OwnSettings { audit: (10, 10), processors: vec![0], ..OwnSettings::default() },
        wait: Box::new(Poll::default()),
    };
    let (mut worker, handle) = Worker::new(setup).unwrap();
    let store = IvStore::new(directory.path());
    let reserver = Arc::new(SequenceReserver {
        store,
        clock: || std::time::Duration::ZERO,
        sas: Sas::default(),
        block: 16,
    });
    reserver.keeper(&mut worker, handle.clone()).start().unwrap();
    let file = parse(FILE, "test").unwrap();
    let numbers = reserver.reserve(&file, &[true]).unwrap();
    let changes = Changes {
        kept: vec![None],
        moved: vec![],
        removed: vec![],
        policies: false,
        biases: vec![],
        log: false,
        taps: false,
        metrics: false,
        esp_sa_export: false,
        restart: vec![],
    };
    let range = reserver.store.ranges([&file.entries[0].keys], 0, iv_reserve).unwrap().remove(0);
    let (range, ivs) = Ivs::of(&file.entries[0], range, iv_reserve);
    worker.install(&file, &changes, vec![range]).unwrap();
    reserver.give(&mut worker, &file, numbers.with_ivs(vec![ivs]));
    let thread = std::thread::spawn(move || worker.run());
    Bench { directory, wire, handle, reserver, thread }
}

impl Bench {
    fn give(&self, count: usize) {
        let packet =
            [&[0x45, 0, 0, 20, 0, 7, 0, 0, 64, 59, 0x66, 0x7d, 10, 1, 0, 9, 10, 2, 0, 9][..]].concat();
        self.wire.lock().unwrap().inside.extend(std::iter::repeat_n(packet, count));
        self.handle.ask(|_| ());
    }

    fn sealed(&self) -> usize {
        self.wire.lock().unwrap().sealed.len()
    }

    /// The last number that the SA has been granted.
    fn granted(&self) -> u64 {
        lock(&self.reserver.sas)
            .values()
            .filter_map(|looked| looked.numbers)
            .map(|one| one.last)
            .max()
            .unwrap()
    }

    /// The first IV behind those that the SA was given last.
    fn ivs_end(&self) -> u64 {
        lock(&self.reserver.sas).values().find_map(|looked| Some(looked.ivs.as_ref()?.end)).unwrap_or(0)
    }

    /// Waits until so many are sealed.
    fn wait_for(&self, count: usize) -> bool {
        let begin = Instant::now();
        while self.sealed() < count && begin.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
        self.sealed() >= count
    }

    fn refused(&self) -> u64 {
        self.handle.ask(|worker| worker.engine().drops().get(DropReason::OutStateSeqError)).unwrap()
    }

    /// Ends it as a gateway does, or as one that is killed.
    fn end(self, clean: bool) -> tempfile::TempDir {
        let reserver = self.reserver.clone();
        let used = self.handle.ask(move |worker| {
            worker.stop();
            reserver.take_back(worker, |_| true)
        });
        if clean {
            self.reserver.settle(&used.unwrap());
        }
        self.thread.join().unwrap().unwrap();
        self.directory
    }
}

#[test]
fn numbers_are_noted_before_their_use_and_no_packet_waits_for_more() {
    let bench = bench(tempfile::tempdir().unwrap());
    for burst in 0..100 {
        bench.give(4);
        assert!(bench.wait_for(4 * (burst + 1)), "{} sealed", bench.sealed());
        // A disk is slower than this loop.
        let begin = Instant::now();
        while bench.granted() < 4 * (burst as u64 + 1) + 8 && begin.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
    }
    assert_eq!(bench.refused(), 0);
    let wire = bench.wire.lock().unwrap();
    assert_eq!(wire.unnoted, 0);
    assert!(wire.sealed.iter().copied().eq(1..=400));
}

#[test]
fn ivs_are_refilled_before_they_end_and_none_comes_twice() {
    let bench = bench_with(tempfile::tempdir().unwrap(), 64);
    let at_first = ivs_noted(bench.directory.path());
    for burst in 0..100 {
        bench.give(4);
        assert!(bench.wait_for(4 * (burst + 1)), "{} sealed", bench.sealed());
        let begin = Instant::now();
        let sent = 4 * (burst as u64 + 1);
        let is_behind = || {
            // They are noted first, and the SA has them a moment later.
            let noted = ivs_noted(bench.directory.path());
            noted < sent + 8 || (noted > at_first && bench.ivs_end() < noted) || bench.granted() < sent + 8
        };
        while is_behind() && begin.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
    }
    assert_eq!(bench.handle.ask(|worker| worker.engine().drops().total()), Some(0));
    let wire = bench.wire.lock().unwrap();
    assert_eq!((wire.unnoted, wire.sealed.len()), (0, 400));
    assert!(wire.ivs.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", wire.ivs);
}

#[test]
fn after_a_clean_stop_numbers_go_on_and_after_a_crash_behind_the_block() {
    let mut directory = tempfile::tempdir().unwrap();
    let mut before = 0;
    for (clean, gap) in [(true, 0), (false, 0), (true, 16), (true, 0)] {
        let bench = bench(directory);
        bench.give(5);
        assert!(bench.wait_for(5));
        let first = bench.wire.lock().unwrap().sealed[0];
        assert!((before + 1..=before + 1 + gap).contains(&first), "{first} behind {before}");
        assert!(gap == 0 || first > before + 1);
        before = first + 4;
        directory = bench.end(clean);
    }
}

/// Without room for its notes an SA stops at the end of what it has, and goes on when there is room again.
#[test]
fn a_full_disk_stops_an_sa_and_nothing_else() {
    let bench = bench(tempfile::tempdir().unwrap());
    let in_the_way = bench.directory.path().join("lock");
    std::fs::remove_file(&in_the_way).unwrap();
    std::fs::create_dir(&in_the_way).unwrap();
    for _ in 0..10 {
        bench.give(4);
        bench.handle.ask(|_| ());
    }
    assert!(bench.wait_for(16));
    let begin = Instant::now();
    while bench.refused() < 24 && begin.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    assert_eq!((bench.sealed(), bench.refused()), (16, 24));
    assert_eq!(bench.wire.lock().unwrap().unnoted, 0);
    std::fs::remove_dir(&in_the_way).unwrap();
    let begin = Instant::now();
    while noted(bench.directory.path()) <= 16 && begin.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    // The worker is notified a moment later.
    let begin = Instant::now();
    while bench.sealed() < 20 && begin.elapsed().as_secs() < 20 {
        bench.give(1);
    }
    assert!(bench.sealed() >= 20);
    assert!(bench.wire.lock().unwrap().sealed.windows(2).all(|pair| pair[0] < pair[1]));
}
