//! SAs are added and removed while packets are in flight: a thousand rekeys lose no packet, every processor gets and
//! forgets each key, and a card without room leaves the work to others.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use forebay_crypto::{
    Direction, Job, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId, Suite, forward_processor,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{
    AddSaError, Clock, Engine, EngineError, Limits, PendingSpiLimits, ProcessorSetup, Settings,
};
use forebay_ipsec::{Action, DropReason, Ipsec, IvRange, Policy, PolicyId, PolicyPlace, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};

const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

/// AWS-LC that counts its sessions and takes no more of them than `room`.
struct Counting {
    inner: AwsLc,
    open: Arc<Mutex<Vec<SessionId>>>,
    room: usize,
    done: Arc<AtomicUsize>,
}

impl Processor for Counting {
    forward_processor!(inner: capabilities, poll);

    fn name(&self) -> &str {
        "counting"
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        let mut open = self.open.lock().unwrap();
        if !open.contains(&id) {
            if open.len() == self.room {
                return Err(SessionError::TableFull);
            }
            open.push(id);
        }
        self.inner.open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        self.open.lock().unwrap().retain(|&open| open != id);
        self.inner.close_session(id);
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.done.fetch_add(jobs.len(), Ordering::Relaxed);
        self.inner.submit(now, jobs);
    }
}

/// The sessions that a processor has open, and the jobs it was given.
#[derive(Clone, Default)]
struct Seen {
    open: Arc<Mutex<Vec<SessionId>>>,
    done: Arc<AtomicUsize>,
}

impl Seen {
    fn processor(&self, room: usize) -> Counting {
        Counting { inner: AwsLc::new(), open: self.open.clone(), room, done: self.done.clone() }
    }

    fn sessions(&self) -> usize {
        self.open.lock().unwrap().len()
    }
}

fn setup(processor: impl Processor + 'static, init_us: u64) -> ProcessorSetup {
    let cost = Cost { init: Duration::from_micros(init_us), ..Cost::default() };
    let (processor, kind) = (Box::new(processor), Kind::Cpu);
    ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 64 }
}

fn keys(suite: &str, number: u32) -> SaKeys {
    let suite: Suite = suite.parse().unwrap();
    let secret = |len: usize| SecretBytes::new((0..len).map(|at| (at as u32 + 7 * number) as u8).collect());
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).unwrap()
}

fn sa(suite: &str, number: u32) -> SaConfig {
    let spi = Spi::new(0x1000 + number).unwrap();
    SaConfig::new("sa", spi, suite.parse().unwrap(), NEAR, FAR)
}

/// The same seen from the other end.
fn mirrored(config: SaConfig) -> SaConfig {
    SaConfig { local: config.remote, remote: config.local, ..config }
}

fn plain(n: u64) -> Packet {
    let mut packet = Packet::with_capacity(2_048);
    let mut bytes = vec![0; 100];
    bytes[..12].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0, 0, 64, 253, 0, 0]);
    bytes[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 0, 0, 1]);
    bytes[20..28].copy_from_slice(&n.to_be_bytes());
    assert!(packet.fill(&bytes));
    packet
}

fn engine(processors: Vec<ProcessorSetup>) -> Engine {
    Engine::new(Ipsec::default(), &[], processors, Settings::default(), Clock::start())
        .expect("no SA is needed")
}

fn drain(engine: &mut Engine) {
    assert!(engine.drain(Duration::from_millis(20_000)), "{} packets are stuck", engine.in_flight());
}

fn protect(engine: &mut Engine, direction: Direction, sas: Vec<SessionId>) -> PolicyId {
    let policy = Policy::new("all", direction, Action::Protect(sas));
    engine.add_policy(policy, PolicyPlace::Last).expect("a policy")
}

#[test]
fn a_thousand_rekeys_under_traffic_lose_no_packet_and_leave_no_key() {
    let seen = [(); 4].map(|()| Seen::default());
    let mut sealer = engine(vec![setup(seen[0].processor(64), 1), setup(seen[1].processor(64), 1)]);
    let mut opener = engine(vec![setup(seen[2].processor(64), 1), setup(seen[3].processor(64), 1)]);
    let suites = ["aes128gcm16", "aes256-sha256", "chacha20poly1305"];
    let begin = |engine: &mut Engine, number: u32, direction| {
        let suite = suites[number as usize % suites.len()];
        let (config, keys) = (sa(suite, number), keys(suite, number));
        match direction {
            Direction::Seal => engine.add_outbound(config, IvRange::for_throwaway_key(), &keys),
            Direction::Open => engine.add_inbound(mirrored(config), &keys),
        }
        .expect("an SA")
    };
    let mut ins = vec![begin(&mut opener, 0, Direction::Open)];
    let mut out = begin(&mut sealer, 0, Direction::Seal);
    let policy = protect(&mut sealer, Direction::Seal, vec![out]);
    let (mut sent, mut heard) = (0_u64, Vec::new());
    for number in 1..=1_000 {
        // Both ends have packets of the old SA in flight while the new one begins, inbound first.
        for _ in 0..3 {
            sealer.admit(Direction::Seal, plain(sent), sent).expect("room");
            sent += 1;
        }
        sealer.poll();
        ins.push(begin(&mut opener, number, Direction::Open));
        let old = std::mem::replace(&mut out, begin(&mut sealer, number, Direction::Seal));
        sealer.put_policy_sa_first(policy, out).expect("an SA of this direction");
        sealer.admit(Direction::Seal, plain(sent), sent).expect("room");
        sent += 1;
        drain(&mut sealer);
        assert!(sealer.remove_sa(old).is_some());
        let sealed: Vec<_> = sealer.outputs().collect();
        for output in sealed {
            assert_eq!(output.result, Ok(()));
            opener.admit(Direction::Open, output.packet, output.tag).expect("room");
        }
        drain(&mut opener);
        for output in opener.outputs() {
            assert_eq!(output.result, Ok(()), "packet {}", output.tag);
            heard.push(output.tag);
        }
        assert!(opener.remove_sa(ins.remove(0)).is_some());
    }
    heard.sort_unstable();
    assert!(heard.into_iter().eq(0..sent));
    assert_eq!(seen.each_ref().map(Seen::sessions), [1; 4], "only the last SA's keys are left");
}

#[test]
fn packets_of_an_sa_that_is_removed_are_dropped_and_its_number_is_free_again() {
    let mut sealer = engine(vec![setup(AwsLc::new(), 1)]);
    let add = |engine: &mut Engine, number| {
        let keys = keys("aes128gcm16", number);
        engine.add_outbound(sa("aes128gcm16", number), IvRange::for_throwaway_key(), &keys).expect("an SA")
    };
    let first = add(&mut sealer, 1);
    sealer.admit(Direction::Seal, plain(0), 0).expect("room");
    sealer.remove_sa(first);
    let second = add(&mut sealer, 2);
    assert_ne!(second, first, "a packet under way still has it");
    sealer.admit(Direction::Seal, plain(1), 1).expect("room");
    drain(&mut sealer);
    let mut results: Vec<_> = sealer.outputs().map(|output| (output.tag, output.result)).collect();
    results.sort_by_key(|(tag, _)| *tag);
    assert_eq!(results, [(0, Err(DropReason::OutStateInvalid)), (1, Ok(()))]);
    assert_eq!(add(&mut sealer, 3), first);
}

#[test]
fn a_card_without_room_for_an_sa_leaves_its_packets_to_others() {
    let card = Seen::default();
    // Ten times as fast as the core by its word.
    let mut sealer = engine(vec![setup(AwsLc::new(), 10), setup(card.processor(1), 1)]);
    for number in 0..2_u32 {
        let config = SaConfig {
            remote_ts: vec![format!("10.0.{number}.0/24").parse().unwrap()],
            ..sa("aes128gcm16", number)
        };
        let keys = keys("aes128gcm16", number);
        sealer.add_outbound(config, IvRange::for_throwaway_key(), &keys).expect("an SA");
    }
    assert_eq!(card.sessions(), 1);
    let mut send = |third: u8| {
        let before = card.done.load(Ordering::Relaxed);
        let mut packet = plain(0);
        packet.bytes_mut()[18] = third;
        sealer.admit(Direction::Seal, packet, 0).expect("room");
        drain(&mut sealer);
        assert!(sealer.outputs().all(|output| output.result.is_ok()));
        card.done.load(Ordering::Relaxed) - before
    };
    assert_eq!((send(0), send(1)), (1, 0));
    assert_eq!(sealer.stats().redone, 0);
}

#[test]
fn an_sa_that_nobody_can_do_is_refused_whole() {
    let full = Seen::default();
    let mut sealer = engine(vec![setup(full.processor(1), 1)]);
    let mut add = |number| {
        let keys = keys("aes128gcm16", number);
        sealer.add_outbound(sa("aes128gcm16", number), IvRange::for_throwaway_key(), &keys)
    };
    let first = add(1).expect("room for one");
    let refused = add(2).expect_err("and no more");
    assert!(matches!(refused, AddSaError::Engine(EngineError::Session { .. })), "{refused}");
    assert!(matches!(add(1), Err(AddSaError::Sad(_))), "the SPI is taken");
    assert_eq!(sealer.sad().iter().count(), 1);
    sealer.remove_sa(first);
    assert_eq!(full.sessions(), 0);
}

#[test]
fn packets_that_come_before_their_sa_wait_for_it_a_little() {
    let mut sealer = engine(vec![setup(AwsLc::new(), 1)]);
    let mut sealed = Vec::new();
    for number in [1, 2] {
        let keys = keys("aes128gcm16", number);
        let session = sealer.add_outbound(sa("aes128gcm16", number), IvRange::for_throwaway_key(), &keys);
        for n in 0..3 {
            sealer.admit(Direction::Seal, plain(n), n).expect("room");
        }
        drain(&mut sealer);
        sealed.extend(sealer.outputs().map(|output| output.packet));
        sealer.remove_sa(session.expect("an SA"));
    }
    let wait = Duration::from_millis(50);
    let limits = Limits { pending_spi: PendingSpiLimits { packets: 5, wait }, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let processors = vec![setup(AwsLc::new(), 1)];
    let mut opener = Engine::new(Ipsec::default(), &[], processors, settings, Clock::start()).expect("no SA");
    let last = sealed.pop().expect("six packets");
    for (tag, packet) in sealed.into_iter().enumerate() {
        opener.admit(Direction::Open, packet, tag as u64).expect("they wait");
    }
    let refused = opener.admit(Direction::Open, last, 9).expect_err("there is no room for more");
    assert_eq!(refused.1, DropReason::InNoStates);
    let keys = keys("aes128gcm16", 1);
    opener.add_inbound(mirrored(sa("aes128gcm16", 1)), &keys).expect("an SA");
    let end = opener.clock().now() + Duration::from_millis(20_000);
    let mut heard = Vec::new();
    while heard.len() < 5 && opener.clock().now() < end {
        opener.poll();
        heard.extend(opener.outputs().map(|output| (output.tag, output.result)));
        std::thread::yield_now();
    }
    let unknown = Err(DropReason::InNoStates);
    assert_eq!(heard, [(0, Ok(())), (1, Ok(())), (2, Ok(())), (3, unknown), (4, unknown)]);
    assert_eq!(opener.stats().pending_spi, 3);
    assert_eq!(opener.drops().get(DropReason::InNoStates), 3);
    assert_eq!(opener.next_due(), Time::MAX);
}
