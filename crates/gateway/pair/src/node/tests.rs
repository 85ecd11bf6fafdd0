#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use forebay_ipsec::Received;
use forebay_state::{PairNote, SequenceId, Wanted, WindowNote};

use super::*;

const END: u64 = u32::MAX as u64;

fn id(digit: char) -> SequenceId {
    digit.to_string().repeat(32).try_into().unwrap()
}

/// A gateway whose state is in a directory of this name. Times are for machines that do something else as well.
fn start(directory: &Path, number: u8, port: u16) -> Pair {
    let key_file = directory.join("pair.key");
    fs::write(&key_file, "0f".repeat(32)).unwrap();
    fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let config = forebay_config::Pair {
        number,
        preferred: number == 0,
        listen: vec![address],
        peers: vec![address],
        key_file,
        addresses: vec![],
        heartbeat: forebay_time::Duration::from_millis(50),
        silence: forebay_time::Duration::from_millis(2_000),
    };
    let store = IvStore::new(directory.join(format!("state-{number}")));
    let claim = store.claim().unwrap();
    Pair::start(&config, store, claim, || Duration::ZERO).unwrap()
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let end = clock() + Duration::from_secs(60);
    while !is_true() {
        assert!(clock() < end, "not in time: {what}");
        rest(Duration::from_millis(5));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn the_standby_has_every_record_that_was_used_and_takes_over_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let (zero, one) = (start(directory.path(), 0, port), start(directory.path(), 1, port));
    wait_until("the preferred gateway is active", || zero.verdict() == Verdict::Active);
    let (store, claim) = zero.prepare().unwrap();
    wait_until("the standby is in sync", || zero.status().in_sync && one.status().in_sync);
    assert_eq!(one.verdict(), Verdict::Standby);
    let wanted = Wanted { id: id('1'), count: 1_000, end: END };
    let block = store.reserve_sequences(&[wanted]).unwrap()[0];
    assert_eq!((block.after, block.last), (0, 1_000));
    let note = Record::Window { id: id('2'), top: 50, certain: 40, missing: vec![] };
    store.replica().begin(&[note]).unwrap().wait();
    assert_ne!(store.replica().ahead(), forebay_state::Ahead::DISK);
    // As if it was killed.
    drop((zero, store, claim));
    wait_until("the standby takes over", || one.verdict() == Verdict::Active);
    let (store, _claim) = one.prepare().unwrap();
    let block = store.reserve_sequences(&[wanted]).unwrap()[0];
    assert_eq!((block.after, block.last), ((1 << 22) - 1, (1 << 22) + 999));
    let windows = store.windows().unwrap();
    let received = Received { top: 50, certain: 40, missing: vec![] };
    assert_eq!(windows, [WindowNote { id: id('2'), received }]);
    // The other comes back, stands by, and knows all of this.
    let zero = start(directory.path(), 0, port);
    wait_until("the other is back", || one.status().in_sync && zero.status().in_sync);
    assert_eq!((zero.verdict(), one.verdict()), (Verdict::Standby, Verdict::Active));
    assert!(zero.status().term == one.status().term && one.status().take_overs == 1);
    // It is told to take over.
    one.stopped();
    one.resign();
    wait_until("it takes over again", || zero.verdict() == Verdict::Active);
    let (store, _claim) = zero.prepare().unwrap();
    assert_eq!(store.reserve_sequences(&[wanted]).unwrap()[0].after, (2 << 22) - 1);
}

#[test]
fn of_two_that_were_active_alone_one_starts_again_with_the_records_of_the_other() {
    let directory = tempfile::tempdir().unwrap();
    // They cannot reach each other, and an operator has them go on all the same.
    for number in 0..2 {
        IvStore::new(directory.path().join(format!("state-{number}"))).accept(0).unwrap();
    }
    let (zero, one) = (start(directory.path(), 0, free_port()), start(directory.path(), 1, free_port()));
    wait_until("both are active", || zero.verdict() == Verdict::Active && one.verdict() == Verdict::Active);
    let wanted = Wanted { id: id('1'), count: 1_000, end: END };
    let reserved = |pair: &Pair| pair.prepare().unwrap().0.reserve_sequences(&[wanted]).unwrap()[0];
    assert_eq!((reserved(&zero).last, reserved(&one).last), (1_000, (1 << 22) + 999));
    zero.stopped();
    one.stopped();
    drop((zero, one));
    let port = free_port();
    let (zero, one) = (start(directory.path(), 0, port), start(directory.path(), 1, port));
    wait_until("gateway 0 is active", || zero.verdict() == Verdict::Active);
    let (_, _claim) = zero.prepare().unwrap();
    wait_until("they agree", || zero.status().in_sync && one.status().in_sync);
    assert_eq!(one.verdict(), Verdict::Standby);
    // Behind what gateway 1 has used, in its own territory.
    assert_eq!(reserved(&zero).after, (2 << 22) - 1);
}

#[test]
fn connections_that_say_little_keep_the_peer_from_nothing() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let zero = start(directory.path(), 0, port);
    let end = Arc::new(AtomicBool::new(false));
    let ended = end.clone();
    // More than there are places for, each with a byte of a long frame now and then; those that are closed come again.
    let strangers = std::thread::spawn(move || {
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut all: Vec<_> = (0..24).map(|_| connect()).collect();
        while !ended.load(Ordering::Relaxed) {
            for stream in &mut all {
                if stream.write_all(&[0xff]).is_err() {
                    *stream = connect();
                }
            }
            rest(Duration::from_millis(50));
        }
    });
    rest(Duration::from_millis(300));
    let one = start(directory.path(), 1, port);
    wait_until("they are connected", || zero.status().links == 1 && one.status().links == 1);
    end.store(true, Ordering::Relaxed);
    strangers.join().unwrap();
    wait_until("they agree", || zero.verdict() == Verdict::Active && one.verdict() == Verdict::Standby);
}

#[test]
fn a_state_directory_of_the_other_gateway_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(start(directory.path(), 1, 9));
    fs::rename(directory.path().join("state-1"), directory.path().join("state-0")).unwrap();
    let store = IvStore::new(directory.path().join("state-0"));
    let claim = store.claim().unwrap();
    let config = forebay_config::Pair {
        number: 0,
        preferred: false,
        listen: vec![],
        peers: vec![],
        key_file: directory.path().join("pair.key"),
        addresses: vec![],
        heartbeat: forebay_time::Duration::from_millis(50),
        silence: forebay_time::Duration::from_millis(500),
    };
    let refused = Pair::start(&config, store, claim, || Duration::ZERO);
    assert!(matches!(refused.err(), Some(PairError::Number(1, 0))));
}

fn beat(active: bool, term: u64) -> Message {
    Message::Beat {
        active,
        term,
        preferred: false,
        unmerged: false,
        wants: false,
        session: (9, 0),
        open: false,
        blank: false,
        whole: false,
    }
}

/// A speaker to nobody.
struct Nobody;

impl Speaker for Nobody {
    fn say(&self, _message: &Message) -> bool {
        true
    }

    fn end(&self) {}
}

#[test]
fn one_that_has_stood_down_announces_nothing() {
    thread_local! {
        static NOW: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
    }
    let directory = tempfile::tempdir().unwrap();
    let config = forebay_config::Pair {
        number: 0,
        preferred: true,
        listen: vec![],
        peers: vec![],
        key_file: "/none".into(),
        addresses: vec![],
        heartbeat: forebay_time::Duration::from_millis(100),
        silence: forebay_time::Duration::from_millis(500),
    };
    let store = IvStore::new(directory.path().join("state"));
    store.accept(0).unwrap();
    let claim = store.claim().unwrap();
    let clocks = Clocks { monotonic: || NOW.get(), unix: || Duration::ZERO };
    let (pair, stepper) = Pair::stepped(&config, (store, claim), 1, clocks, Arc::new(|| {})).unwrap();
    assert_eq!(pair.announce_every(), None, "it stands by");
    for tick in 0..250 {
        NOW.set(TICK * tick);
        stepper.pass_time();
    }
    assert_eq!(pair.verdict(), Verdict::Active, "there is no peer");
    assert_eq!(pair.announce_every(), Some(ANNOUNCE_EVERY));
    let link = stepper.connect(Arc::new(Nobody));
    assert!(stepper.hear(link, beat(true, 99)));
    assert_eq!((pair.verdict(), pair.announce_every()), (Verdict::Standby, None));
}

thread_local! {
    static TIME: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// A gateway of a pair whose time and connections are the test's.
fn stepped(state: &Path, number: u8) -> (Pair, Stepper) {
    let config = forebay_config::Pair {
        number,
        preferred: number == 0,
        listen: vec![],
        peers: vec![],
        key_file: "/none".into(),
        addresses: vec![],
        heartbeat: forebay_time::Duration::from_millis(100),
        silence: forebay_time::Duration::from_millis(500),
    };
    let store = IvStore::new(state);
    let claim = store.claim().unwrap();
    let clocks = Clocks { monotonic: || TIME.get(), unix: || Duration::ZERO };
    Pair::stepped(&config, (store, claim), number.into(), clocks, Arc::new(|| {})).unwrap()
}

fn pass(steppers: &[&Stepper], seconds: u32) {
    for _ in 0..seconds * 100 {
        TIME.set(TIME.get() + TICK);
        steppers.iter().for_each(|stepper| stepper.pass_time());
    }
}

/// What one says is heard by the other, later.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<Vec<Message>>>);

impl Speaker for Line {
    fn say(&self, message: &Message) -> bool {
        lock(&self.0).push(message.clone());
        true
    }

    fn end(&self) {}
}

/// Two gateways with a connection.
fn talk([one, two]: [&Stepper; 2], seconds: u32) {
    let lines = [Line::default(), Line::default()];
    let links = [one.connect(Arc::new(lines[0].clone())), two.connect(Arc::new(lines[1].clone()))];
    for _ in 0..seconds * 100 {
        pass_once(&[one, two]);
        for (from, to, link) in [(0, two, links[1]), (1, one, links[0])] {
            for message in std::mem::take(&mut *lock(&lines[from].0)) {
                to.hear(link, message);
            }
        }
    }
    one.disconnect(links[0]);
    two.disconnect(links[1]);
}

fn pass_once(steppers: &[&Stepper]) {
    TIME.set(TIME.get() + TICK);
    steppers.iter().for_each(|stepper| stepper.pass_time());
}

/// The audit's two attacks: a gateway that was replaced, with an empty directory and the link late; and a standby that was stopped while
/// its peer went on, and starts alone when that one has gone.
#[test]
fn a_gateway_that_may_lack_records_is_not_active_alone() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (new, stepper) = stepped(&state("replaced"), 0);
    pass(&[&stepper], 10);
    assert_eq!(
        (new.verdict(), new.status().waits),
        (Verdict::Standby, Some("no peer was heard since the start"))
    );

    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 3);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
    drop(zero.prepare().unwrap());
    drop((one, ones));
    // The active one goes on without it.
    pass(&[&zeros], 2);
    let (store, claim) = zero.prepare().unwrap();
    store.reserve_sequences(&[Wanted { id: id('1'), count: 10, end: END }]).unwrap();
    assert!(zeros.is_unmerged());
    drop((zero, zeros, store, claim));
    let (one, ones) = stepped(&state("1"), 1);
    pass(&[&ones], 10);
    assert_eq!(one.verdict(), Verdict::Standby, "it was not there when its peer went on");
    assert!(one.status().waits.is_some());
    // The one that went on alone may start alone; the other is active behind it only when it has everything.
    let (zero, zeros) = stepped(&state("0"), 0);
    pass(&[&zeros, &ones], 4);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
    drop(zero.prepare().unwrap());
    talk([&zeros, &ones], 3);
    drop((zero, zeros));
    pass(&[&ones], 2);
    assert_eq!(one.verdict(), Verdict::Active);
    let records = IvStore::new(state("1")).records().unwrap();
    assert!(records.contains(&Record::Numbers { id: id('1'), last: 10 }));
    // An operator accepts the records while it waits.
    IvStore::new(state("replaced")).accept(0).unwrap();
    pass(&[&stepper], 3);
    assert_eq!(new.verdict(), Verdict::Active);
}

/// A gateway that an operator let go on with an old directory, and its peer that knows better: both go on with the union.
#[test]
fn a_gateway_with_an_older_directory_does_not_put_its_peer_back() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (good, old) = (IvStore::new(state("1")), IvStore::new(state("0")));
    let window =
        |top: u64| WindowNote { id: id('2'), received: Received { top, certain: top, missing: vec![] } };
    good.put_windows(&[window(4_000)], 0, &|_| true).unwrap();
    old.put_windows(&[window(10)], 0, &|_| true).unwrap();
    let mut note = PairNote::new(1);
    note.term = 7;
    note.completed(7);
    good.remember_pair(&note).unwrap();
    old.accept(0).unwrap();
    let (zero, zeros) = stepped(&state("0"), 0);
    pass(&[&zeros], 5);
    assert_eq!(zero.verdict(), Verdict::Active);
    drop(zero.prepare().unwrap());
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 1);
    assert_eq!(zero.verdict(), Verdict::Restart, "it begins again with what its peer has");
    drop(zero.prepare().unwrap());
    for store in [&good, &old] {
        assert_eq!(store.windows().unwrap(), [window(4_000)]);
    }
    assert_eq!(one.verdict(), Verdict::Standby);
}

/// Two connections come at once, and the records of the peer by the one that is faster: what the other one brings is older.
#[test]
fn a_heartbeat_that_is_older_than_the_records_does_not_make_them_incomplete() {
    let directory = tempfile::tempdir().unwrap();
    let (pair, stepper) = stepped(&directory.path().join("state"), 1);
    let [fast, slow] = [(); 2].map(|()| stepper.connect(Arc::new(Nobody)));
    let said = |unmerged, session, open| match beat(true, 3) {
        Message::Beat { active, term, preferred, .. } => Message::Beat {
            active,
            term,
            preferred,
            unmerged,
            wants: false,
            session: (9, session),
            open,
            blank: false,
            whole: true,
        },
        other => other,
    };
    let merge = Message::Merge { records: vec![], active: true, term: 3, number: 1, last: true };
    stepper.hear(fast, said(true, 0, false));
    stepper.hear(fast, Message::Session { process: 9, number: 1 });
    stepper.hear(fast, merge);
    stepper.hear(fast, said(false, 1, true));
    assert!(pair.status().in_sync);
    stepper.hear(slow, said(true, 0, false));
    assert!(pair.status().in_sync, "it was said before the session began");
    // One that is not older: the session has ended, and the peer goes on alone.
    stepper.hear(slow, said(true, 1, false));
    assert!(!pair.status().in_sync);
    stepper.hear(slow, said(false, 1, true));
    assert!(!pair.status().in_sync, "what it did alone is not here");
}

/// Terms never wrap, and one that cannot be is refused and counted.
#[test]
fn an_implausible_term_is_refused_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (pair, stepper) = stepped(&directory.path().join("state"), 0);
    let link = stepper.connect(Arc::new(Nobody));
    for (term, refused) in [(u64::MAX, 1), (1 << 63, 2), (1 << 40, 3), (5, 3), (1 << 40, 4)] {
        assert!(stepper.hear(link, beat(true, term)));
        assert_eq!(pair.status().refused, refused, "{term}");
    }
    assert_eq!(pair.status().term, 5);
}

/// Gateway 1 is down, gateway 0 goes on alone, and loses its directory: what it used nobody knows.
#[test]
fn a_stale_and_an_empty_gateway_are_not_complete_together() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 3);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
    drop((one, ones));
    pass(&[&zeros], 2);
    drop((zero, zeros));
    let (zero, zeros) = stepped(&state("empty"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 5);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Standby; 2]);
    // Nor does the empty one count as whole when they meet again.
    talk([&zeros, &ones], 5);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Standby; 2]);
    // An operator says that gateway 1 has what there is; the other one, which is preferred, is active behind it.
    IvStore::new(state("1")).accept(0).unwrap();
    talk([&zeros, &ones], 10);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
}

/// The same where the stale one is preferred.
#[test]
fn an_operator_decides_between_a_stale_and_an_empty_gateway_whichever_is_preferred() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 3);
    drop((zero, zeros));
    pass(&[&ones], 2);
    assert_eq!(one.verdict(), Verdict::Active);
    drop((one, ones));
    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("empty"), 1);
    talk([&zeros, &ones], 5);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Standby; 2]);
    IvStore::new(state("0")).accept(0).unwrap();
    talk([&zeros, &ones], 12);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
    assert!(zero.status().in_sync && one.status().in_sync || !zeros.is_unmerged());
}

/// The peer came back before the word was needed: a gateway that leaves the pair years later is to ask again.
#[test]
fn an_operators_word_that_was_not_needed_is_gone_with_the_take_over() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 3);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
    // The standby lacks nothing, and waits for nobody.
    let store = IvStore::new(state("1"));
    store.accept(0).unwrap();
    talk([&zeros, &ones], 3);
    assert!(store.provenance().unwrap().accepted);
    drop((zero, zeros));
    pass(&[&ones], 2);
    assert_eq!(one.verdict(), Verdict::Active);
    assert!(!store.provenance().unwrap().accepted);
}

/// The active gateway fails before it hears that its records were merged: it counts as the one that went on alone, and may start so.
#[test]
fn of_two_only_one_counts_as_the_one_that_went_on_alone() {
    let directory = tempfile::tempdir().unwrap();
    let state = |name: &str| directory.path().join(name);
    let (zero, zeros) = stepped(&state("0"), 0);
    let (one, ones) = stepped(&state("1"), 1);
    talk([&zeros, &ones], 3);
    drop((one, ones));
    pass(&[&zeros], 2);
    let (store, claim) = zero.prepare().unwrap();
    store.reserve_sequences(&[Wanted { id: id('1'), count: 10, end: END }]).unwrap();
    assert!(zeros.is_unmerged());
    let (one, ones) = stepped(&state("1"), 1);
    let lines = [Line::default(), Line::default()];
    let links = [zeros.connect(Arc::new(lines[0].clone())), ones.connect(Arc::new(lines[1].clone()))];
    for _ in 0..300 {
        pass_once(&[&zeros, &ones]);
        for message in std::mem::take(&mut *lock(&lines[0].0)) {
            ones.hear(links[1], message);
        }
        for message in std::mem::take(&mut *lock(&lines[1].0)) {
            if !matches!(message, Message::Merged { .. }) {
                zeros.hear(links[0], message);
            }
        }
    }
    assert!(zeros.is_unmerged());
    drop((zero, zeros, store, claim));
    ones.disconnect(links[1]);
    pass(&[&ones], 5);
    assert_eq!((one.verdict(), one.status().waits), (Verdict::Standby, Some("the peer is silent")));
    let (zero, zeros) = stepped(&state("0"), 0);
    talk([&zeros, &ones], 5);
    assert_eq!([zero.verdict(), one.verdict()], [Verdict::Active, Verdict::Standby]);
}

/// An active gateway hears of a higher term, and fails before it has the records of that.
#[test]
fn a_term_that_was_heard_is_not_complete() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("0");
    IvStore::new(&state).accept(0).unwrap();
    let (zero, zeros) = stepped(&state, 0);
    pass(&[&zeros], 5);
    assert_eq!(zero.verdict(), Verdict::Active);
    let link = zeros.connect(Arc::new(Nobody));
    assert!(zeros.hear(link, beat(false, 99)));
    assert_eq!(zero.verdict(), Verdict::Active, "its peer stands by");
    drop((zero, zeros));
    let (zero, zeros) = stepped(&state, 0);
    pass(&[&zeros], 5);
    assert_eq!(zero.verdict(), Verdict::Standby, "what was used in that term is not here");
}

/// What the peer acknowledged while both were active, it need not have kept.
#[test]
fn a_gateway_that_stands_down_sends_everything_again() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("0");
    IvStore::new(&state).accept(0).unwrap();
    let (zero, zeros) = stepped(&state, 0);
    pass(&[&zeros], 5);
    drop(zero.prepare().unwrap());
    let line = Line::default();
    let link = zeros.connect(Arc::new(line.clone()));
    pass(&[&zeros], 1);
    let sent = |active: bool| {
        let is =
            |message: &Message| matches!(message, Message::Merge { active: said, .. } if *said == active);
        std::mem::take(&mut *lock(&line.0)).iter().any(is)
    };
    assert!(sent(true));
    assert!(zeros.hear(link, beat(true, 99)));
    assert_eq!(zero.verdict(), Verdict::Standby);
    zero.stopped();
    zeros.hear(link, beat(true, 99));
    pass_once(&[&zeros]);
    assert!(sent(false) && zeros.is_unmerged());
}
