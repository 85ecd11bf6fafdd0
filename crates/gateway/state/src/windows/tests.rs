#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::collections::HashSet;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use forebay_crypto::{Job, JobSpec};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{DropReason, Ipsec, IvRange};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;

use super::*;
use crate::recorder::Recorder;
use crate::{Ahead, Alone, IvStore, NotNoted, Noting, Record, Replica};
use forebay_config::Changes;
use forebay_sas::parse;
use forebay_worker::{Outside, OwnSettings, Poll, Port, Setup};

/// An SA of ESP, as its sender and as its receiver have it.
fn file(direction: &str, more: &str) -> SasFile {
    let [local, remote] = if direction == "out" { ["1", "2"] } else { ["2", "1"] };
    let text = format!(
        "[[sa]]\nname = \"sa\"\ndirection = \"{direction}\"\nspi = 0x1001\nproposal = \"aes128gcm16\"\n\
         key = \"0707070707070707070707070707070707070707\"\nlocal = \"192.0.2.{local}\"\nremote = \"192.0.2.{remote}\"\n{more}"
    );
    parse(&text, "test").unwrap()
}

/// What the two links of the receiver share.
#[derive(Default)]
struct Wire {
    /// What it is to receive.
    sealed: VecDeque<Vec<u8>>,
    /// Sequence numbers of what it has delivered.
    delivered: Vec<u64>,
    /// Of those, how many were not noted then.
    unnoted: usize,
    /// The interface to the inside has been deleted.
    is_gone: bool,
}

struct End {
    wire: Arc<Mutex<Wire>>,
    fd: OwnedFd,
    store: PathBuf,
    is_inside: bool,
}

impl Link for End {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut wire = self.wire.lock().unwrap();
        if self.is_inside && wire.is_gone {
            return Err(rustix::io::Errno::BADFD.into());
        }
        let count = if self.is_inside { 0 } else { room.min(wire.sealed.len()) };
        wire.sealed.drain(..count).for_each(|packet| take(&packet, &[]));
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let noted = noted(&self.store);
        let mut wire = self.wire.lock().unwrap();
        for packet in packets {
            let number = u64::from_be_bytes(packet[20..28].try_into().unwrap());
            wire.unnoted += usize::from(number > noted);
            wire.delivered.push(number);
        }
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn pending(&self) -> bool {
        !self.is_inside && !self.wire.lock().unwrap().sealed.is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// The number up to which all are noted, of the only SA that has any.
fn noted(store: &PathBuf) -> u64 {
    let notes = IvStore::new(store).windows().unwrap_or_default();
    notes.iter().map(|note| note.received.top).max().unwrap_or(0)
}

fn unix_time() -> std::time::Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

fn engine() -> Engine {
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
    let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
    Engine::new(Ipsec::default(), &[], vec![core], Settings::default(), Clock::start()).unwrap()
}

/// So many sealed packets, with their sequence numbers as payload.
fn sealed(count: u64) -> Vec<Vec<u8>> {
    let mut engine = engine();
    let sa = file("out", "").entries.remove(0);
    engine.add_outbound(sa.config, IvRange::for_throwaway_key(), &sa.keys).unwrap();
    let mut packets = vec![];
    for number in 1..=count {
        let header = [0x45, 0, 0, 28, 0, 7, 0, 0, 64, 253, 0x65, 0xb3, 10, 1, 0, 9, 10, 2, 0, 9];
        let mut packet = engine.buffer();
        assert!(packet.fill(&[&header[..], &number.to_be_bytes()].concat()));
        engine.admit_burst(Direction::Seal, &mut vec![Job::new(packet, JobSpec::default(), number)]);
        packets.extend(engine.outputs().map(|output| output.packet.bytes().to_vec()));
    }
    assert_eq!(packets.len() as u64, count);
    packets
}

fn changes(removed: Vec<usize>) -> Changes {
    Changes {
        kept: vec![None],
        moved: vec![],
        removed,
        policies: false,
        biases: vec![],
        log: false,
        taps: false,
        metrics: false,
        esp_sa_export: false,
        restart: vec![],
    }
}

/// A gateway with one inbound SA.
struct Bench {
    directory: tempfile::TempDir,
    wire: Arc<Mutex<Wire>>,
    handle: Handle,
    windows: Windows,
    failed: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

fn bench(directory: tempfile::TempDir) -> Bench {
    bench_with(directory, "")
}

fn bench_with(directory: tempfile::TempDir, more: &str) -> Bench {
    let store = IvStore::new(directory.path());
    bench_on(directory, store, more)
}

fn bench_on(directory: tempfile::TempDir, store: IvStore, more: &str) -> Bench {
    let wire = Arc::<Mutex<Wire>>::default();
    let (mut worker, handle) = worker(&directory, &wire);
    let (windows, keeper) = Windows::new(store, unix_time, handle.clone());
    keeper.start().unwrap();
    windows.attend(&mut worker);
    begin(&mut worker, &windows, &file("in", more));
    let failed = Arc::<AtomicBool>::default();
    let fails = failed.clone();
    let thread = std::thread::spawn(move || worker.run_until_stopped(&fails));
    Bench { directory, wire, handle, windows, failed, thread }
}

/// Installs the only SA of a file.
fn begin(worker: &mut Worker, windows: &Windows, file: &SasFile) {
    windows.open_file(file).unwrap();
    worker.install(file, &changes(vec![]), vec![]).unwrap();
    windows.give_file(worker, file);
}

fn worker(directory: &tempfile::TempDir, wire: &Arc<Mutex<Wire>>) -> (Worker, Handle) {
    let end = |is_inside| {
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        Box::new(End { wire: wire.clone(), fd, store: directory.path().to_owned(), is_inside })
    };
    let setup = Setup {
        engine: engine(),
        inside: Port::new("inside", end(true), 4_096).into(),
        outside: vec![Outside {
            port: Port::new("raw", end(false), 64).into(),
            protocols: vec![forebay_wire::protocol::ESP],
            local: None,
        }],
        icmp: vec![],
        own: OwnSettings { audit: (0, 0), processors: vec![0], ..OwnSettings::default() },
        wait: Box::new(Poll::default()),
    };
    Worker::new(setup).unwrap()
}

fn within_seconds(what: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !what() && begin.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    what()
}

impl Bench {
    fn give(&self, packets: &[Vec<u8>]) {
        self.wire.lock().unwrap().sealed.extend(packets.iter().cloned());
        self.handle.ask(|_| ());
    }

    fn delivered(&self) -> Vec<u64> {
        self.wire.lock().unwrap().delivered.clone()
    }

    /// Gives packets, and waits until each is delivered or refused; how many were refused.
    fn pass(&self, packets: &[Vec<u8>]) -> u64 {
        let (delivered, refused) = (self.delivered().len() as u64, self.refused());
        self.give(packets);
        let all = delivered + refused + packets.len() as u64;
        let have = || self.delivered().len() as u64 + self.refused();
        assert!(within_seconds(|| have() == all), "{} of {all}", have());
        self.refused() - refused
    }

    fn refused(&self) -> u64 {
        self.handle.ask(|worker| worker.engine().drops().get(DropReason::InStateSeqError)).unwrap()
    }

    fn unsure(&self) -> u64 {
        let unsure = |worker: &mut Worker| {
            let session = worker.sessions()[0];
            worker.engine().sad().unsure(session)
        };
        self.handle.ask(unsure).unwrap()
    }

    fn held(&self) -> u64 {
        self.handle.ask(|worker| worker.counts().held).unwrap()
    }

    fn noted(&self) -> u64 {
        noted(&self.directory.path().to_owned())
    }

    /// Replaces the SA by one with another setting, as a reload does.
    fn reload(&self, more: &str) {
        let file = file("in", more);
        self.windows.open_file(&file).unwrap();
        let (windows, what) = (self.windows.clone(), changes(vec![0]));
        let reload = move |worker: &mut Worker| {
            let going = worker.removed(&what);
            worker.finish(&going);
            let taken = windows.take_back(worker, &going);
            worker.install(&file, &what, vec![]).unwrap();
            windows.give_file(worker, &file);
            windows.abandon(worker, &taken);
        };
        self.handle.ask(reload).unwrap();
        self.windows.settle();
    }

    /// Deletes the interface to the inside, and waits until the worker has failed.
    fn fail(&self) {
        self.wire.lock().unwrap().is_gone = true;
        self.handle.ask(|_| ());
        assert!(within_seconds(|| self.failed.load(Ordering::Acquire)));
    }

    /// Ends it as a gateway does, or as one that is killed.
    fn end(self, clean: bool) -> tempfile::TempDir {
        let windows = self.windows.clone();
        let stop = move |worker: &mut Worker| {
            worker.stop();
            if clean {
                windows.take_back_all(worker);
            }
        };
        self.handle.ask(stop);
        if clean {
            self.windows.end();
        }
        let failed = self.failed.load(Ordering::Acquire);
        assert_eq!(self.thread.join().unwrap().is_err(), failed);
        let wire = std::mem::take(&mut *self.wire.lock().unwrap());
        assert_eq!(wire.unnoted, 0, "delivered before they were noted");
        assert_eq!(
            wire.delivered.iter().collect::<HashSet<_>>().len(),
            wire.delivered.len(),
            "delivered twice"
        );
        self.directory
    }
}

#[test]
fn numbers_are_noted_before_packets_are_delivered_and_none_is_lost() {
    let packets = sealed(6_000);
    let bench = bench(tempfile::tempdir().unwrap());
    let mut from = 0;
    // Single ones, bursts, a gap, and a flood.
    for (skipped, count) in [(0, 1), (0, 1), (0, 30), (0, 300), (1_000, 1), (0, 100), (0, 4_000)] {
        from += skipped;
        assert_eq!(bench.pass(&packets[from..from + count]), 0);
        from += count;
    }
    let delivered = bench.delivered();
    assert!(delivered.iter().copied().eq((1..=332).chain(1_333..=5_433)));
    assert!(bench.held() > 0, "nothing was held; the test is worth nothing");
    assert!(bench.noted() >= 5_433);
    bench.end(true);
}

#[test]
fn after_a_clean_stop_what_was_received_is_refused_and_all_else_passes() {
    let packets = sealed(400);
    let first = bench(tempfile::tempdir().unwrap());
    assert_eq!(first.pass(&packets[..190]), 0);
    assert_eq!(first.pass(&packets[191..200]), 0);
    let second = bench(first.end(true));
    assert_eq!(second.pass(&packets[..190]), 190);
    assert_eq!(second.pass(&packets[191..200]), 9);
    assert_eq!(second.pass(&packets[190..191]), 0, "late since the life before");
    assert_eq!(second.pass(&packets[200..300]), 0);
    let third = bench(second.end(true));
    assert_eq!(third.pass(&packets[..300]), 300);
    assert_eq!(third.pass(&packets[300..]), 0);
    assert_eq!(third.unsure(), 0);
    third.end(true);
}

#[test]
fn a_failed_worker_moves_nothing_and_its_windows_are_saved_as_at_a_clean_stop() {
    let packets = sealed(400);
    let first = bench(tempfile::tempdir().unwrap());
    assert_eq!(first.pass(&packets[..190]), 0);
    assert_eq!(first.pass(&packets[191..200]), 0);
    first.fail();
    first.give(&packets[200..300]);
    assert_eq!((first.delivered().len(), first.refused()), (199, 0));
    let second = bench(first.end(true));
    assert_eq!(second.pass(&packets[..190]), 190, "received before the failure");
    assert_eq!(second.pass(&packets[190..191]), 0, "a gap of the window");
    assert_eq!(second.pass(&packets[200..]), 0, "never received");
    assert_eq!(second.unsure(), 0);
    second.end(true);
}

#[test]
fn after_a_crash_all_that_may_have_been_received_is_refused_and_counted() {
    let packets = sealed(9_000);
    let mut directory = tempfile::tempdir().unwrap();
    let mut from = 0;
    for count in [1, 40, 1_000, 3_000] {
        let bench = bench(directory);
        let unsure = bench.unsure();
        assert_eq!(bench.pass(&packets[..from]), from as u64, "recorded");
        let until = from + count;
        let refused = bench.pass(&packets[from..until + 100]);
        // No more than were received lately; of those before everything was quick, so all count.
        assert!(refused <= (from as u64).max(Ahead::DISK.least), "{refused} refused behind {from}");
        assert!(bench.unsure() - unsure >= refused);
        let expected = from as u64 + refused + 1..=until as u64 + 100;
        assert!(bench.delivered().iter().copied().eq(expected));
        from = until + 100;
        directory = bench.end(false);
    }
}

#[test]
fn a_reload_refuses_what_was_received_and_loses_nothing() {
    let packets = sealed(2_000);
    let bench = bench(tempfile::tempdir().unwrap());
    for round in 0..10 {
        let from = 200 * round;
        assert_eq!(bench.pass(&packets[from..from + 200]), 0);
        bench.reload(["life_packets = 1_000_000", ""][round % 2]);
        assert_eq!(bench.pass(&packets[..from + 200]), from as u64 + 200);
        assert_eq!(bench.unsure(), 0);
    }
    assert_eq!(bench.delivered().len(), 2_000);
    let directory = bench.end(true);
    let bench = bench_with(directory, "replay_window = 1024");
    assert_eq!(bench.pass(&packets), 2_000);
    bench.end(true);
}

/// New keys are a new SA, and the old ones go on where they were.
#[test]
fn a_rekey_begins_anew_and_the_old_keys_go_on_if_they_come_back() {
    let packets = sealed(300);
    let bench = bench(tempfile::tempdir().unwrap());
    assert_eq!(bench.pass(&packets[..200]), 0);
    let [old, new] = [0x1001, 0x1002]
        .map(|spi| SequenceId::of(&file("in", "").entries[0].keys, forebay_ipsec::Spi::new(spi).unwrap()));
    let other = |text: &str| {
        let mut file = file("in", text);
        file.entries[0].config.spi = forebay_ipsec::Spi::new(0x1002).unwrap();
        file
    };
    let swap = |file: SasFile| {
        bench.windows.open_file(&file).unwrap();
        let (windows, what) = (bench.windows.clone(), changes(vec![0]));
        let swap = move |worker: &mut Worker| {
            let taken = windows.take_back(worker, &worker.removed(&what));
            worker.install(&file, &what, vec![]).unwrap();
            windows.give_file(worker, &file);
            windows.abandon(worker, &taken);
        };
        bench.handle.ask(swap).unwrap();
        bench.windows.settle();
    };
    swap(other(""));
    let session = bench.handle.ask(|worker| worker.sessions()[0]).unwrap();
    let received = bench.handle.ask(move |worker| worker.engine().sad().received(session)).unwrap();
    assert_eq!(received, Some(Received::default()));
    let store = IvStore::new(bench.directory.path());
    assert_eq!(
        store.windows_of(&[old, new]).unwrap(),
        [WindowNote { id: old, received: Received::up_to(200) }]
    );
    swap(file("in", ""));
    assert_eq!(bench.pass(&packets[..200]), 200);
    assert_eq!(bench.pass(&packets[200..]), 0);
    bench.end(true);
}

/// What cannot be noted is not delivered, and is when it can.
#[test]
fn a_full_disk_holds_packets_until_there_is_room() {
    let packets = sealed(100);
    let bench = bench(tempfile::tempdir().unwrap());
    let in_the_way = bench.directory.path().join("lock");
    std::fs::remove_file(&in_the_way).unwrap();
    std::fs::create_dir(&in_the_way).unwrap();
    bench.give(&packets[..50]);
    assert!(within_seconds(|| bench.held() == 50));
    assert!(bench.delivered().is_empty());
    // A reload takes them along.
    bench.reload("life_packets = 1_000_000");
    assert!(bench.delivered().is_empty());
    std::fs::remove_dir(&in_the_way).unwrap();
    assert!(within_seconds(|| bench.delivered().len() == 50));
    assert_eq!(bench.pass(&packets), 50);
    assert!(bench.delivered().iter().copied().eq(1..=100));
    bench.end(true);
}

/// After a pause the limit is what was received, so that a crash at rest costs nothing.
#[test]
fn limits_come_back_when_it_is_quiet() {
    let packets = sealed(3_000);
    let first = bench(tempfile::tempdir().unwrap());
    first.pass(&packets[..2_000]);
    assert!(within_seconds(|| first.noted() == 2_000), "{}", first.noted());
    let next = bench(first.end(false));
    let refused = next.pass(&packets[2_000..]);
    assert_eq!((refused, next.unsure()), (0, 0));
    next.end(true);
}

/// Another place of records whose answers are lost: what takes limits back is done there, what raises them is not.
#[derive(Debug, Default)]
struct Unanswered {
    is_silent: AtomicBool,
    limit: AtomicU64,
    asked: AtomicU64,
}

impl Replica for Unanswered {
    fn begin(&self, records: &[Record]) -> Result<Box<dyn Noting>, NotNoted> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        let is_silent = self.is_silent.load(Ordering::Acquire);
        for note in records.iter().filter_map(WindowNote::of) {
            if !is_silent || note.received.top < self.limit.load(Ordering::Acquire) {
                self.limit.store(note.received.top, Ordering::Release);
            }
        }
        if is_silent { Err(NotNoted("no answer".to_owned())) } else { Ok(Box::new(Alone)) }
    }

    fn ahead(&self) -> Ahead {
        Ahead { look: std::time::Duration::from_millis(50), ..Ahead::DISK }
    }

    fn epoch(&self) -> u64 {
        0
    }
}

/// Otherwise whoever takes over by these records accepts packets that were delivered here.
#[test]
fn a_limit_that_was_taken_back_is_not_granted_again_while_its_record_is_in_doubt() {
    let packets = sealed(2_200);
    let directory = tempfile::tempdir().unwrap();
    let replica = Arc::<Unanswered>::default();
    let store = IvStore::new(directory.path()).with_replica(replica.clone());
    let bench = bench_on(directory, store, "");
    bench.pass(&packets[..2_000]);
    replica.is_silent.store(true, Ordering::Release);
    let limit = || replica.limit.load(Ordering::Acquire);
    assert!(within_seconds(|| limit() < 2_100), "{}", limit());
    let stay_held = || {
        let asked = replica.asked.load(Ordering::Acquire);
        assert!(within_seconds(|| replica.asked.load(Ordering::Acquire) > asked + 6));
        assert!(bench.delivered().len() as u64 <= limit());
    };
    bench.give(&packets[2_000..]);
    stay_held();
    bench.reload("life_packets = 1_000_000");
    stay_held();
    replica.is_silent.store(false, Ordering::Release);
    assert!(within_seconds(|| bench.delivered().len() == 2_200));
    assert!(limit() >= 2_200);
    bench.end(true);
}

/// Limits are looked at each second, and at once after the clock was set back.
#[test]
fn limits_are_looked_at_each_second_of_a_clock_that_may_be_set_back() {
    let directory = tempfile::tempdir().unwrap();
    let ms = std::time::Duration::from_millis;
    let store = IvStore::new(directory.path());
    let wire = Arc::<Mutex<Wire>>::default();
    let (_worker, handle) = worker(&directory, &wire);
    let (_windows, mut keeper) = Windows::new(store, || std::time::Duration::from_secs(10), handle);
    for (looked, then) in
        [(9_001, 9_001), (9_000, 10_000), (8_000, 10_000), (10_001, 10_000), (99_000, 10_000)]
    {
        keeper.looked = ms(looked);
        keeper.work();
        assert_eq!(keeper.looked, ms(then), "looked at {looked} ms");
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_the_rate() {
    let second = |second: u64| std::time::Duration::from_secs(second);
    let mut rate = Rate::default();
    for now in 1_000..1_010 {
        rate.lately(second(now), 10 * (now - 1_000));
    }
    // An hour back: ten packets a second are ten packets a second.
    let rates: Vec<u64> = (1..20).map(|now| rate.lately(second(now), 90 + 10 * now)).collect();
    assert!(rates.iter().all(|lately| *lately <= 30), "{rates:?}");
}

/// Otherwise a limit is not taken back while records fail.
#[test]
fn what_was_counted_earlier_is_no_news() {
    let second = |second: u64| std::time::Duration::from_secs(second);
    let mut rate = Rate::default();
    let rates: Vec<u64> =
        (1..20).map(|now| rate.lately(second(now), 1_500).max(rate.lately(second(now), 2_000))).collect();
    assert!(rates[3..].iter().all(|lately| *lately == 0), "{rates:?}");
}

#[test]
fn a_message_about_an_sa_that_is_gone_is_not_about_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let (mut worker, handle) = worker(&directory, &Arc::default());
    let store = IvStore::new(directory.path());
    let (windows, mut keeper) = Windows::new(store, unix_time, handle);
    windows.attend(&mut worker);
    begin(&mut worker, &windows, &file("in", ""));
    let session = worker.sessions()[0];
    let removals = worker.removals();
    windows.take_back(&mut worker, &[session]);
    worker.uninstall();
    // Other keys, and the number of the one before.
    let mut other = file("in", "");
    other.entries[0].config.spi = forebay_ipsec::Spi::new(0x2002).unwrap();
    begin(&mut worker, &windows, &other);
    assert_eq!(worker.sessions(), [session]);
    let wanted = |removals| Word::Wanted { session, top: 1_000_000, packets: 2_000_000, removals };
    keeper.take(wanted(removals));
    assert!(keeper.wanted.is_empty());
    let removals = worker.removals();
    keeper.take(wanted(removals));
    assert_eq!(keeper.wanted.len(), 1);
    // Nor is one that could not be recorded while the SA was there.
    windows.take_back(&mut worker, &[session]);
    worker.uninstall();
    begin(&mut worker, &windows, &other);
    keeper.work();
    let id = inbound_id(&other.entries[0]).unwrap();
    assert!(keeper.wanted.is_empty() && noted_of(&directory, id) == 0);
}

/// What is noted of an SA.
fn noted_of(directory: &tempfile::TempDir, id: SequenceId) -> u64 {
    let notes = IvStore::new(directory.path()).windows_of(&[id]).unwrap();
    notes.first().map_or(0, |note| note.received.top)
}

/// An SA comes after another gateway has had it; `before` is what has happened here until then. It begins where that gateway ended.
fn is_read_again(before: impl FnOnce(&Windows, &mut Worker, &SasFile)) {
    let directory = tempfile::tempdir().unwrap();
    let (mut worker, handle) = worker(&directory, &Arc::default());
    let store = IvStore::new(directory.path());
    let (windows, _keeper) = Windows::new(store.clone(), unix_time, handle);
    windows.attend(&mut worker);
    let file = file("in", "");
    let id = inbound_id(&file.entries[0]).unwrap();
    let note = |top| WindowNote { id, received: Received::up_to(top) };
    store.put_windows(&[note(100)], 0, &|_| true).unwrap();
    before(&windows, &mut worker, &file);
    store.put_windows(&[note(5_000)], 0, &|_| true).unwrap();
    begin(&mut worker, &windows, &file);
    let session = worker.sessions()[0];
    assert_eq!(worker.engine().sad().sequence(session), Some(5_000));
}

#[test]
fn what_was_read_for_an_sa_that_was_not_installed_is_read_again() {
    is_read_again(|windows, _, file| {
        windows.open_file(file).unwrap();
        windows.forget_file(file);
    });
}

#[test]
fn after_a_reload_that_failed_the_window_of_an_sa_that_goes_is_read_again_when_it_comes_back() {
    is_read_again(|windows, worker, file| {
        begin(worker, windows, file);
        // A reload reads what it needs, and is not made; the SA stays.
        windows.open_file(file).unwrap();
        windows.forget_file(file);
        let session = worker.sessions()[0];
        windows.take_back(worker, &[session]);
        worker.uninstall();
        windows.settle();
    });
}
