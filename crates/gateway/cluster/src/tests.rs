//! Gateways over a store that loses, delays and cuts requests: no number is used twice and no packet is received twice, regardless of
//! faults; after the faults, one gateway serves each share.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_config::ShareBy;
use forebay_random::Random;
use forebay_state::{IvStore, Record, Replica, SequenceId};
use proptest::prelude::*;

use crate::etcd::Etcd;
use crate::fake::{FakeEtcd, Link, Network};
use crate::layout::Layout;
use crate::node::{ClusterError, Identity, Node, Served, Shared, Trouble, lock};
use crate::places::{Id, Places};
use crate::recorder::Recorder;
use crate::shares::{Shares, target};

const LEASE: Duration = Duration::from_secs(2);
const SHARES: u16 = 6;

/// The SA of a share in one of the two directions.
fn sa(share: u16, inbound: bool) -> SequenceId {
    format!("{:032x}", u32::from(share) * 2 + u32::from(inbound)).try_into().unwrap()
}

/// One SA in each direction, as an engine has them.
#[derive(Clone, Copy, Debug, Default)]
struct Sa {
    /// The last number that was sent, and that may be.
    sent: u64,
    granted: u64,
    /// The highest number received, and that may be.
    top: u64,
    limit: u64,
}

struct Gateway {
    name: String,
    link: Link,
    node: Node,
    recorder: Recorder,
    state: Shared,
    serving: Served,
    sas: BTreeMap<u16, Sa>,
    /// What the state directory has of shares that were served before, with their claims.
    kept: BTreeMap<u16, (u64, Sa)>,
    directory: tempfile::TempDir,
}

/// What is known from outside.
#[derive(Default)]
struct Judge {
    sent: HashSet<(u16, u64)>,
    received: HashSet<(u16, u64)>,
    /// The peer's last number of each share.
    peer: [u64; SHARES as usize],
}

impl Gateway {
    fn new(etcd: &FakeEtcd, name: &str, process: u64, directory: tempfile::TempDir) -> Gateway {
        let identity = Identity {
            name: name.to_owned(),
            process: format!("p{process}"),
            new_instance: format!("i{process}"),
            host: "here".to_owned(),
            shares: Shares { count: SHARES, by: ShareBy::Local },
            lease: LEASE,
        };
        let (link, state) = (etcd.link(), Shared::default());
        let store = IvStore::new(directory.path());
        let way: Arc<dyn Etcd> = Arc::new(link.clone());
        let all = (0..SHARES).flat_map(|share| [false, true].map(|inbound| (sa(share, inbound), share)));
        let all: Vec<_> = all.map(|(id, share)| (Id::Sa(id), share)).collect();
        let mut places = Places::default();
        places.assign(all.iter().copied()).unwrap();
        let recorder = Recorder {
            etcd: way.clone(),
            layout: Layout("/f/".to_owned()),
            owner: identity.owner(),
            state: state.clone(),
            places: Arc::new(Mutex::new(places)),
            ahead: Duration::from_secs(1),
            clock: || Duration::ZERO,
        };
        let node = Node::new(identity, "/f/", way, store, state.clone());
        let (name, serving, sas, kept) = (name.to_owned(), Served::new(), BTreeMap::new(), BTreeMap::new());
        Gateway { name, link, node, recorder, state, serving, sas, kept, directory }
    }

    fn step(&mut self, now: Duration) -> Result<(), Trouble> {
        self.node.step(now, now)
    }

    fn note(&self, records: &[Record]) -> bool {
        self.recorder.begin(records).is_ok()
    }

    /// Serves what is wanted: what goes is settled first, and what comes begins with its records.
    fn follow(&mut self) {
        let wanted = lock(&self.state).wanted();
        let goes = |share: &u16| wanted.get(share) != self.serving.get(share);
        let going: Vec<u16> = self.serving.keys().copied().filter(goes).collect();
        for share in going {
            let Sa { sent, granted, top, limit } = self.sas.remove(&share).unwrap();
            let term = self.serving.remove(&share).unwrap();
            let settled = self.note(&[Record::Numbers { id: sa(share, false), last: sent }]);
            let last = if settled { sent } else { granted };
            let window = Record::Window { id: sa(share, true), top, certain: top, missing: vec![] };
            let received = if self.note(&[window]) { top } else { limit };
            self.kept.insert(share, (term, Sa { sent: last, granted: last, top: received, limit: received }));
        }
        lock(&self.state).serve(self.serving.clone());
        let new: BTreeSet<u16> =
            wanted.keys().copied().filter(|share| !self.serving.contains_key(share)).collect();
        let records = lock(&self.state).records(&new);
        for &share in &new {
            // Under the same claim nobody else has had it.
            let kept = self.kept.remove(&share).filter(|(term, _)| *term == wanted[&share]);
            let mut begun = kept.map_or_else(Sa::default, |(_, kept)| kept);
            for record in &records {
                match record {
                    Record::Numbers { id, last } if *id == sa(share, false) => {
                        (begun.sent, begun.granted) = (*last, *last);
                    }
                    Record::Window { id, top, .. } if *id == sa(share, true) => {
                        (begun.top, begun.limit) = (*top, *top);
                    }
                    _ => {}
                }
            }
            self.sas.insert(share, begun);
            self.serving.insert(share, wanted[&share]);
        }
        lock(&self.state).serve(self.serving.clone());
    }

    /// Sends a packet and receives one of each share, new or replayed.
    fn traffic(&mut self, judge: &mut Judge, rng: &mut Random) {
        for share in self.serving.keys().copied().collect::<Vec<_>>() {
            let mut at = self.sas[&share];
            if at.sent == at.granted {
                let last = at.sent + 1 + rng.below(5);
                if self.note(&[Record::Numbers { id: sa(share, false), last }]) {
                    at.granted = last;
                }
            }
            if at.sent < at.granted {
                at.sent += 1;
                assert!(
                    judge.sent.insert((share, at.sent)),
                    "{}: number {} twice in share {share}",
                    self.name,
                    at.sent
                );
            }
            let peer = &mut judge.peer[usize::from(share)];
            let number = if rng.below(3) == 0 { rng.below(*peer + 1) } else { *peer + 1 };
            *peer = (*peer).max(number);
            if number > at.top {
                if number > at.limit {
                    let limit = number + rng.below(4);
                    let note =
                        Record::Window { id: sa(share, true), top: limit, certain: at.top, missing: vec![] };
                    if self.note(&[note]) {
                        at.limit = limit;
                    }
                }
                if number <= at.limit {
                    at.top = number;
                    assert!(
                        judge.received.insert((share, number)),
                        "{}: packet {number} twice in share {share}",
                        self.name
                    );
                }
            }
            self.sas.insert(share, at);
        }
    }
}

/// Gateways and time.
struct World {
    etcd: FakeEtcd,
    gateways: Vec<Option<Gateway>>,
    /// State directories of gateways that were killed.
    left: Vec<Option<tempfile::TempDir>>,
    now: Duration,
    processes: u64,
    judge: Judge,
}

impl World {
    fn new(count: usize) -> World {
        let mut world = World {
            etcd: FakeEtcd::default(),
            gateways: (0..count).map(|_| None).collect(),
            left: (0..count).map(|_| None).collect(),
            now: Duration::from_secs(1),
            processes: 0,
            judge: Judge::default(),
        };
        (0..count).for_each(|at| world.start(at));
        world
    }

    fn start(&mut self, at: usize) {
        self.processes += 1;
        let directory = self.left[at].take().unwrap_or_else(|| tempfile::tempdir().unwrap());
        self.gateways[at] = Some(Gateway::new(&self.etcd, &format!("gw-{at}"), self.processes, directory));
    }

    fn kill(&mut self, at: usize) {
        self.left[at] = self.gateways[at].take().map(|gateway| gateway.directory);
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.etcd.set_time(self.now);
    }

    /// Everything works, for long enough.
    fn calm(&mut self, rng: &mut Random) {
        for gateway in self.gateways.iter().flatten() {
            gateway.link.set(Network::Works);
        }
        for _ in 0..60 {
            self.pass(200);
            for gateway in self.gateways.iter_mut().flatten() {
                let _ = gateway.step(self.now);
                gateway.follow();
                gateway.traffic(&mut self.judge, rng);
            }
        }
    }

    /// Each share is served by the gateway that should serve it, and by no other.
    fn assert_settled(&self) {
        let names: Vec<&str> = self.gateways.iter().flatten().map(|gateway| gateway.name.as_str()).collect();
        for gateway in self.gateways.iter().flatten() {
            let own: Vec<u16> = (0..SHARES)
                .filter(|&share| target(share, names.iter().copied()) == Some(gateway.name.as_str()))
                .collect();
            assert_eq!(gateway.serving.keys().copied().collect::<Vec<_>>(), own, "{}", gateway.name);
            assert!(!gateway.node.expects());
        }
    }
}

#[test]
fn gateways_share_and_take_over() {
    let mut rng = Random::seeded(1);
    let mut world = World::new(3);
    world.calm(&mut rng);
    world.assert_settled();
    // One is killed: within its lease and a beat the others have its shares.
    let before = world.judge.sent.len();
    world.kill(1);
    world.calm(&mut rng);
    world.assert_settled();
    assert!(world.judge.sent.len() > before + 60 * usize::from(SHARES) / 2);
    // It comes again, and has them again.
    world.start(1);
    world.calm(&mut rng);
    world.assert_settled();
    // One says that it leaves: the others have its shares before it has gone.
    lock(&world.gateways[0].as_ref().unwrap().state).leaves = true;
    for _ in 0..8 {
        world.pass(200);
        for gateway in world.gateways.iter_mut().flatten() {
            gateway.step(world.now).unwrap();
            gateway.follow();
            gateway.traffic(&mut world.judge, &mut rng);
        }
    }
    assert_eq!(world.gateways[0].as_ref().unwrap().serving, Served::new());
    let gone = world.gateways[0].take().unwrap();
    world.left[0] = Some(gone.directory);
    world.start(0);
    world.calm(&mut rng);
    world.assert_settled();
    // One leaves that could not say so, and the others need not wait.
    let mut leaving = world.gateways[0].take().unwrap();
    let shares: Vec<u16> = leaving.serving.keys().copied().collect();
    lock(&leaving.state).serve(Served::new());
    leaving.node.leave().unwrap();
    for gateway in world.gateways.iter_mut().flatten() {
        gateway.step(world.now).unwrap();
        gateway.step(world.now).unwrap();
        gateway.follow();
    }
    world.assert_settled();
    assert!(!shares.is_empty());
    assert!(world.etcd.value("/f/members/gw-0").is_none());
}

#[test]
fn a_gateway_goes_on_without_a_break_if_nobody_took_its_shares() {
    let mut rng = Random::seeded(2);
    let mut world = World::new(1);
    world.calm(&mut rng);
    let served = world.gateways[0].as_ref().unwrap().serving.clone();
    // No majority for longer than the lease.
    let gateway = world.gateways[0].as_mut().unwrap();
    gateway.link.set(Network::Cut);
    world.now += Duration::from_secs(30);
    world.etcd.set_time(world.now);
    let gateway = world.gateways[0].as_mut().unwrap();
    assert!(matches!(gateway.step(world.now), Err(Trouble::Etcd(_))));
    gateway.follow();
    assert_eq!(gateway.serving, served);
    assert!(!gateway.note(&[Record::Numbers { id: sa(0, false), last: 1 << 40 }]));
    gateway.link.set(Network::Works);
    for _ in 0..3 {
        gateway.step(world.now).unwrap();
        gateway.follow();
        // The same claims: the data plane was not disturbed.
        assert_eq!(gateway.serving, served);
    }
    assert!(gateway.note(&[Record::Numbers { id: sa(0, false), last: 1 << 40 }]));
}

#[test]
fn after_a_failure_of_etcd_the_first_gateway_does_not_take_everything() {
    let mut rng = Random::seeded(6);
    let mut world = World::new(3);
    world.calm(&mut rng);
    let served: Vec<Served> = world.gateways.iter().flatten().map(|one| one.serving.clone()).collect();
    // All leases end; then one gateway after the other comes back.
    world.pass(30_000);
    for _ in 0..4 {
        for gateway in world.gateways.iter_mut().flatten() {
            gateway.step(world.now).unwrap();
            gateway.follow();
        }
        world.pass(400);
    }
    assert_eq!(served, world.gateways.iter().flatten().map(|one| one.serving.clone()).collect::<Vec<_>>());
}

#[test]
fn a_full_store_stops_what_is_not_reserved_and_nothing_else() {
    let mut rng = Random::seeded(3);
    let mut world = World::new(2);
    world.calm(&mut rng);
    let served: Vec<Served> = world.gateways.iter().flatten().map(|one| one.serving.clone()).collect();
    for gateway in world.gateways.iter().flatten() {
        gateway.link.set(Network::Full);
    }
    for _ in 0..20 {
        world.pass(500);
        for gateway in world.gateways.iter_mut().flatten() {
            gateway.step(world.now).unwrap();
            gateway.follow();
            gateway.traffic(&mut world.judge, &mut rng);
        }
    }
    assert_eq!(served, world.gateways.iter().flatten().map(|one| one.serving.clone()).collect::<Vec<_>>());
    world.calm(&mut rng);
    world.assert_settled();
}

#[test]
fn who_may_not_join_is_told_why() {
    let mut rng = Random::seeded(4);
    let mut world = World::new(1);
    world.calm(&mut rng);
    let join = |etcd: &FakeEtcd, name: &str, shares: u16| {
        let mut gateway = Gateway::new(etcd, name, 99, tempfile::tempdir().unwrap());
        let identity = Identity {
            name: name.to_owned(),
            process: "p99".to_owned(),
            new_instance: "i99".to_owned(),
            host: "there".to_owned(),
            shares: Shares { count: shares, by: ShareBy::Local },
            lease: LEASE,
        };
        let store = IvStore::new(gateway.directory.path());
        gateway.node =
            Node::new(identity, "/f/", Arc::new(gateway.link.clone()), store, gateway.state.clone());
        let outcome = gateway.step(Duration::from_secs(1));
        (outcome, gateway)
    };
    let (taken, _) = join(&world.etcd, "gw-0", SHARES);
    assert!(
        matches!(&taken, Err(Trouble::Fault(ClusterError::NameTaken(name, host))) if name == "gw-0" && host == "here")
    );
    let (other, _) = join(&world.etcd, "gw-1", SHARES + 1);
    let Err(Trouble::Fault(error @ ClusterError::Settings(..))) = other else { panic!("{other:?}") };
    assert!(
        error.to_string().contains("\"shares\":6") && error.to_string().contains("\"shares\":7"),
        "{error}"
    );
    // A store that was set up anew, or restored.
    let gateway = world.gateways[0].take().unwrap();
    world.left[0] = Some(gateway.directory);
    world.etcd.set_identity("another", 1_000_000);
    world.start(0);
    let outcome = world.gateways[0].as_mut().unwrap().step(world.now);
    assert!(matches!(outcome, Err(Trouble::Fault(ClusterError::OtherStore(..)))), "{outcome:?}");
    world.etcd.set_identity("", 1);
    let outcome = world.gateways[0].as_mut().unwrap().step(world.now);
    assert!(matches!(outcome, Err(Trouble::Fault(ClusterError::OlderStore(..)))), "{outcome:?}");
    // An operator's acceptance stays until what follows from it is written.
    let directory = world.gateways[0].as_ref().unwrap().directory.path().to_owned();
    let state = IvStore::new(&directory);
    state.accept(0).unwrap();
    let in_the_way = directory.join("manifest.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    let outcome = world.gateways[0].as_mut().unwrap().step(world.now);
    assert!(matches!(outcome, Err(Trouble::Fault(ClusterError::State(_)))), "{outcome:?}");
    assert!(state.provenance().unwrap().accepted);
    std::fs::remove_dir(&in_the_way).unwrap();
    world.gateways[0].as_mut().unwrap().step(world.now).unwrap();
    assert!(!state.provenance().unwrap().accepted);
}

#[test]
fn a_damaged_record_is_not_served() {
    let mut rng = Random::seeded(5);
    let mut world = World::new(1);
    let key = format!("/f/records/0003/n/{}", sa(3, false));
    world.etcd.put(&key, "many");
    world.calm(&mut rng);
    let gateway = world.gateways[0].as_mut().unwrap();
    assert_eq!(gateway.serving.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 4, 5]);
    assert!(matches!(gateway.step(world.now), Err(Trouble::Damaged(damaged)) if damaged == key));
    world.etcd.put(&key, "7");
    world.calm(&mut rng);
    world.assert_settled();
}

/// A file whose only SAs, one in each direction, have this address: it says their share.
fn file_with(local: &str) -> forebay_sas::SasFile {
    let sa = |direction: &str, spi: u32, ends: [&str; 2]| {
        let key = format!("{spi:08x}").repeat(5);
        format!(
            "[[sa]]\nname = \"{direction}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{key}\"\n\
             local = \"{}\"\nremote = \"{}\"\n",
            ends[0], ends[1]
        )
    };
    let text = sa("out", 0x1001, [local, "198.51.100.1"]) + &sa("in", 0x1002, [local, "198.51.100.1"]);
    forebay_sas::parse(&text, "test").unwrap()
}

/// The audit's attack: a reload moves an SA to another share, by another `local`, with keys and SPI as they were. One gateway that has had
/// it is reloaded, another one has the new file from the start, a third has it and takes the share over.
#[test]
fn an_sa_with_records_is_not_moved_to_another_share() {
    let shares = Shares { count: SHARES, by: ShareBy::Local };
    let (old, new) = (file_with("192.0.2.1"), file_with("192.0.2.2"));
    let (from, to) = (shares.of_file(&old)[0], shares.of_file(&new)[0]);
    assert_ne!(from, to, "choose other addresses");
    let etcd = FakeEtcd::default();
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let start = |number: usize| stepped(&etcd, number as u64, IvStore::new(directories[number].path()));
    let one = start(0);
    one.step(Duration::ZERO).1.unwrap();
    one.step(Duration::ZERO).1.unwrap();
    let (mut served, wanted) = (Served::new(), one.wanted());
    assert_eq!(one.assign(&new).unwrap(), [to, to], "nothing was recorded of it: it may be corrected");
    assert_eq!(one.assign(&old).unwrap(), [from, from]);
    one.follow::<forebay_state::IvStoreError>(&mut served, wanted, &mut |_| Ok(())).unwrap();
    let id = SequenceId::of(&old.entries[0].keys, old.entries[0].config.spi);
    let wants = [forebay_state::Wanted { id, count: 100, end: u64::MAX }];
    let block = one.store().reserve_sequences(&wants).unwrap()[0];
    assert_eq!((block.after, block.last), (0, 100));

    let refused = one.assign(&new).unwrap_err();
    assert!(
        matches!(&refused, ClusterError::Moved(name, moved) if name == "out" && (moved.from, moved.to) == (from, to))
    );
    assert!(miette::Diagnostic::help(&refused).unwrap().to_string().contains("new keys"), "{refused}");
    assert_eq!(one.store().reserve_sequences(&wants).unwrap()[0].after, 100, "it goes on in its share");

    // One that has the new file, and no memory of the old one.
    one.leave();
    let two = start(1);
    for _ in 0..3 {
        two.step(Duration::ZERO).1.unwrap();
        NOW.set(NOW.get() + LEASE);
    }
    two.assign(&new).unwrap();
    let (mut served, wanted) = (Served::new(), two.wanted());
    assert!(wanted.contains_key(&to), "{wanted:?}");
    let refused =
        two.follow::<forebay_state::IvStoreError>(&mut served, wanted, &mut |_| Ok(())).unwrap_err();
    assert!(refused.to_string().contains("would be moved to share"), "{refused}");
    assert!(
        two.store().reserve_sequences(&wants).is_err(),
        "no number is used that the other share does not know"
    );

    // The file is corrected: new keys in the share that the SA was to move to, or the SA where it was.
    let keys = forebay_sas::SasFile { entries: vec![], ..file_with("192.0.2.2") };
    for corrected in [keys, old] {
        two.assign(&corrected).unwrap();
        let (mut served, wanted) = (Served::new(), two.wanted());
        two.follow::<forebay_state::IvStoreError>(&mut served, wanted, &mut |_| Ok(())).unwrap();
        assert!(served.contains_key(&to));
    }
}

/// Another gateway claimed the share while this one could not renew its lease, used numbers, and hands it back before this one has looked: the
/// claim says this gateway's name again, and is no renewal of its own.
#[test]
fn a_share_that_was_handed_back_is_not_gone_on_with() {
    let file = file_with("192.0.2.1");
    let share = Shares { count: SHARES, by: ShareBy::Local }.of_file(&file)[0];
    let (etcd, directory) = (FakeEtcd::default(), tempfile::tempdir().unwrap());
    let one = stepped(&etcd, 1, IvStore::new(directory.path()));
    one.assign(&file).unwrap();
    for _ in 0..3 {
        one.step(Duration::ZERO).1.unwrap();
        NOW.set(NOW.get() + LEASE);
    }
    let wanted = one.wanted();
    one.follow::<forebay_state::IvStoreError>(&mut Served::new(), wanted, &mut |_| Ok(())).unwrap();
    let id = SequenceId::of(&file.entries[0].keys, file.entries[0].config.spi);
    let wants = [forebay_state::Wanted { id, count: 100, end: u64::MAX }];
    assert_eq!(one.store().reserve_sequences(&wants).unwrap()[0].last, 100);
    let claim = format!("/f/claims/{share:04x}");
    let said = etcd.value(&claim).unwrap();
    etcd.put(&format!("/f/records/{share:04x}/n/{id}"), "5000");
    etcd.put(&claim, &said);
    assert!(one.store().reserve_sequences(&wants).is_err(), "numbers up to 5,000 were used");
}

/// A client with write access to etcd, or a restored disk of it, puts a window back: what this gateway has received stays received.
#[test]
fn a_store_does_not_put_back_what_was_certainly_received() {
    let file = file_with("192.0.2.1");
    let share = Shares { count: SHARES, by: ShareBy::Local }.of_file(&file)[1];
    let id = SequenceId::of(&file.entries[1].keys, file.entries[1].config.spi);
    let (etcd, directory) = (FakeEtcd::default(), tempfile::tempdir().unwrap());
    let store = IvStore::new(directory.path());
    let note = |top: u64| forebay_state::WindowNote { id, received: forebay_ipsec::Received::up_to(top) };
    store.put_windows(&[note(4_275)], 0, &|_| true).unwrap();
    for (said, known) in [("1 1", 4_275), ("5000 4900", 5_000)] {
        etcd.put(&format!("/f/records/{share:04x}/w/{id}"), said);
        let restarted = stepped(&etcd, known, IvStore::new(directory.path()));
        restarted.assign(&file).unwrap();
        for _ in 0..3 {
            restarted.step(Duration::ZERO).1.unwrap();
            NOW.set(NOW.get() + LEASE);
        }
        let wanted = restarted.wanted();
        restarted.follow::<forebay_state::IvStoreError>(&mut Served::new(), wanted, &mut |_| Ok(())).unwrap();
        assert_eq!(store.windows().unwrap()[0].received.top, known);
        restarted.leave();
    }
}

thread_local! {
    static NOW: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// A gateway without threads, whose clock is [`NOW`].
fn stepped(etcd: &FakeEtcd, number: u64, store: IvStore) -> crate::Cluster {
    let config = forebay_config::Cluster {
        name: format!("gw-{number}"),
        endpoints: vec![],
        ca_file: None,
        certificate_file: None,
        private_key_file: None,
        prefix: "/f/".into(),
        shares: SHARES,
        share_by: ShareBy::Local,
        lease: forebay_time::Duration::from_millis(2_000),
        ahead: forebay_time::Duration::from_millis(1_000),
        stops_alone: false,
        addresses: vec![],
    };
    let names = [format!("p{number}"), format!("i{number}")];
    crate::Cluster::stepped(&config, store, Arc::new(etcd.link()), names, || NOW.get())
}

/// Three gateways with faults drawn from a seed.
fn nothing_is_used_twice(seed: u64) {
    let mut rng = Random::seeded(seed);
    let mut world = World::new(3);
    world.calm(&mut rng);
    for _ in 0..300 {
        world.pass([1, 20, 100, 500, 2_500][rng.below(5) as usize]);
        let at = rng.below(3) as usize;
        match rng.below(24) {
            0 => world.kill(at),
            1..=2 if world.gateways[at].is_none() => world.start(at),
            // On another host, without what the other one has left.
            3 if world.gateways[at].is_none() => {
                world.left[at] = None;
                world.start(at);
            }
            4..=6 => world.etcd.deliver(rng.bits()),
            7..=10 => {
                if let Some(gateway) = &world.gateways[at] {
                    let networks =
                        [Network::Cut, Network::AnswerLost, Network::Lost, Network::Late, Network::Full];
                    gateway.link.set(networks[rng.below(5) as usize]);
                }
            }
            11..=14 => {
                if let Some(gateway) = &world.gateways[at] {
                    gateway.link.set(Network::Works);
                }
            }
            _ => {}
        }
        // A gateway that is not looked at is suspended; its data plane may be not.
        for gateway in world.gateways.iter_mut().flatten() {
            if rng.below(4) > 0 {
                let _ = gateway.step(world.now);
            }
            if rng.below(4) > 0 {
                gateway.follow();
            }
            if rng.below(4) > 0 {
                gateway.traffic(&mut world.judge, &mut rng);
            }
        }
    }
    for at in 0..3 {
        if world.gateways[at].is_none() {
            world.start(at);
        }
    }
    world.calm(&mut rng);
    world.assert_settled();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_used_twice_whatever_happens(seed in any::<u64>()) {
        nothing_is_used_twice(seed);
    }
}

/// `make planted-faults`: each fault is found by one of a thousand seeds.
#[cfg(feature = "planted")]
#[test]
fn planted_faults_are_found() {
    use forebay_planted::{Fault, Kind, plant};
    // A fault that panics is found, and needs no backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    // Routes are not of this crate.
    let is_ours = |fault: Fault| {
        matches!(fault.kind(), Kind::Cluster | Kind::Store) && fault != Fault::DiscardsServedOnly
    };
    for fault in Fault::ALL.iter().copied().filter(|fault| is_ours(*fault)) {
        plant(Some(fault));
        let found =
            (0..1_000).find(|&seed| std::panic::catch_unwind(|| nothing_is_used_twice(seed)).is_err());
        plant(None);
        let Some(seed) = found else { panic!("no seed finds: {}", fault.explanation()) };
        println!("| {} | {} |", fault.explanation(), seed + 1);
    }
}
