//! Two engines back to back, with a wire between them that loses, duplicates and reorders.
//!
//! ```text
//!            A: seal                       wire                        B: open
//! packet --> core, device, card, card --> loss, copies, order --> core, device, card, card --> the same packet
//! ```
//!
//! Everything that passes is checked on the spot: the order within each SA is that of admission, every
//! packet admitted comes out exactly once, and what B delivers is byte for byte what A was given.

use std::collections::VecDeque;

use forebay_crypto::fault::{Fault, FaultControl, Faulty};
use forebay_crypto::{Direction, Packet, Processor, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{Clock, Engine, Limits, ProcessorSetup, ProcessorStats, Settings};
use forebay_ipsec::{DropReason, Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};

/// The processors, by their place in each engine.
pub const DEVICE: usize = 1;
pub const CARDS: [usize; 2] = [2, 3];

/// One SA each; the second octet of the destination selects it.
pub const SUITES: [&str; 4] = ["aes128gcm16", "aes256gcm16", "aes128-sha256", "chacha20poly1305"];
/// What the two cards together have queued before the next waits.
const CARD_QUEUE: usize = 16;
/// Packets on the wire at most, before A is not given any more.
const WIRE: usize = 256;
/// Farther than this behind the others no packet arrives.
const HELD_BACK: usize = 32;

/// SplitMix64, so that a seed is a run.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Whether this is the one in `n`; never for zero.
    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.draw().is_multiple_of(n)
    }
}

/// Number `number` of the traffic: an IPv4 packet whose size, SA and bytes follow from the number.
pub fn plain(number: u64, bytes: &mut Vec<u8>) {
    let mut random = Random(number ^ 0x5eed);
    let sizes = [40, 64, 100, 576, 1_000, 1_400];
    let len = sizes[(random.draw() % sizes.len() as u64) as usize] + (random.draw() % 16) as usize;
    let sa = (random.draw() % SUITES.len() as u64) as u8;
    bytes.clear();
    bytes.resize(len, 0);
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&[10, 99, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, sa, 0, 1]);
    for chunk in bytes[20..].chunks_mut(8) {
        chunk.copy_from_slice(&random.draw().to_be_bytes()[..chunk.len()]);
    }
}

/// How often the wire does what; one in so many, zero for never.
#[derive(Clone, Copy)]
pub struct Wire {
    pub lose: u64,
    pub copy: u64,
    pub hold_back: u64,
    /// A changed copy is sent ahead of the packet, as an attacker would forge it.
    pub forge: u64,
}

impl Wire {
    pub const BAD: Wire = Wire { lose: 200, copy: 100, hold_back: 20, forge: 0 };
    pub const GOOD: Wire = Wire { lose: 0, copy: 0, hold_back: 0, forge: 0 };
}

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sealing,
    Opening,
}

/// An engine, with what it was given and has not given back.
pub struct End {
    pub engine: Engine,
    /// The faults of its processors, by place; the core's is never armed.
    pub faults: Vec<FaultControl>,
    /// Numbers in the order admitted, by SA.
    under_way: Vec<VecDeque<u64>>,
    pub admitted: u64,
    pub refused: u64,
    pub passed: u64,
    pub dropped: u64,
    /// Longest from admission to release.
    pub latency: Duration,
    /// Longest between two turns: what this thread was held up by others.
    pub gap: Duration,
    last_turn: Time,
}

impl End {
    fn new(direction: Direction, settings: Settings, clock: Clock, seed: u64) -> End {
        let (sad, keys) = sas(direction);
        let faults: Vec<FaultControl> = (0..4).map(|place| FaultControl::new(seed + place)).collect();
        let processors = processors(&faults);
        let engine = Engine::new(sad, &keys, processors, settings, clock).expect("an engine");
        End {
            engine,
            faults,
            under_way: vec![VecDeque::new(); SUITES.len()],
            admitted: 0,
            refused: 0,
            passed: 0,
            dropped: 0,
            latency: Duration::ZERO,
            gap: Duration::ZERO,
            last_turn: clock.now(),
        }
    }

    fn admit(&mut self, direction: Direction, packet: Packet, number: u64) {
        let sa = SaOf(number).get();
        match self.engine.admit(direction, packet, number) {
            Ok(()) => {
                self.admitted += 1;
                self.under_way[sa].push_back(number);
            }
            Err((packet, reason)) => {
                assert_ne!(reason, DropReason::QueueFull, "there was room");
                self.refused += 1;
                self.engine.recycle(packet);
            }
        }
    }

    fn poll(&mut self) {
        let now = self.engine.clock().now();
        self.gap = self.gap.max(now.since(self.last_turn));
        self.last_turn = now;
        self.engine.poll();
    }

    /// What came out, checked to be what had to come out next.
    fn outputs(&mut self) -> Vec<forebay_engine::Output> {
        let outputs: Vec<_> = self.engine.outputs().collect();
        for output in &outputs {
            let session = output.session.expect("there are no policies");
            let expected = self.under_way[session.0 as usize].pop_front();
            assert_eq!(Some(output.tag), expected, "out of order, lost or twice on SA {:?}", output.session);
            self.latency = self.latency.max(output.released.since(output.admitted));
            match output.result {
                Ok(()) => self.passed += 1,
                Err(_) => self.dropped += 1,
            }
        }
        outputs
    }

    pub fn stats(&self, processor: usize) -> &ProcessorStats {
        self.engine.processors().nth(processor).expect("a processor")
    }

    /// What must be true at all times.
    fn check(&self, limits: &Limits) {
        assert_eq!(self.admitted, self.passed + self.dropped + self.engine.in_flight() as u64);
        assert_eq!(self.engine.drops().total(), self.dropped + self.refused);
        assert!(self.engine.free_buffers() <= 3 * limits.in_flight);
    }
}

/// The SA of a number.
struct SaOf(u64);

impl SaOf {
    fn get(&self) -> usize {
        let mut random = Random(self.0 ^ 0x5eed);
        random.draw();
        random.draw();
        (random.draw() % SUITES.len() as u64) as usize
    }
}

/// A, the wire, B.
pub struct Pair {
    pub clock: Clock,
    pub a: End,
    pub b: End,
    pub wire: Wire,
    limits: Limits,
    random: Random,
    /// Sealed packets in flight, in the order of arrival.
    on_wire: VecDeque<(Vec<u8>, u64)>,
    /// Packets that others overtake, each with the number of packets that still will.
    held_back: Vec<(usize, Vec<u8>, u64)>,
    offered: u64,
    /// By number: whether it was delivered.
    delivered: Vec<bool>,
    /// Those with an ICV that B refused, of whatever copy.
    icv_refused: Vec<u64>,
    /// Delivered, lost on the wire, copied by the wire, forged on it.
    pub arrived: u64,
    pub lost: u64,
    pub copied: u64,
    pub forged: u64,
    /// Packets that never arrived because B refused their ICV; known once all is over.
    pub icv_wrong: u64,
    plain: Vec<u8>,
}

impl Pair {
    pub fn new(settings: Settings, wire: Wire, seed: u64) -> Pair {
        let clock = Clock::start();
        Pair {
            clock,
            a: End::new(Direction::Seal, settings.clone(), clock, seed),
            b: End::new(Direction::Open, settings.clone(), clock, seed + 100),
            wire,
            limits: settings.limits,
            random: Random(seed),
            on_wire: VecDeque::new(),
            held_back: Vec::new(),
            offered: 0,
            delivered: Vec::new(),
            icv_refused: Vec::new(),
            arrived: 0,
            lost: 0,
            copied: 0,
            forged: 0,
            icv_wrong: 0,
            plain: Vec::new(),
        }
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Sealing => &mut self.a,
            Side::Opening => &mut self.b,
        }
    }

    /// As much traffic as fits, for `time` or until `enough`; packets that arrived.
    pub fn run_until(&mut self, time: Duration, mut enough: impl FnMut(&mut Pair) -> bool) -> u64 {
        let (end, before) = (self.clock.now() + time, self.arrived);
        while self.clock.now() < end && !enough(self) {
            for _ in 0..forebay_engine::BURST {
                if self.a.engine.room() == 0 || self.on_wire.len() + self.held_back.len() >= WIRE {
                    break;
                }
                self.offer();
            }
            self.step();
        }
        self.arrived - before
    }

    pub fn run(&mut self, time: Duration) -> u64 {
        self.run_until(time, |_| false)
    }

    /// Arms a fault for `time`; packets that arrived meanwhile.
    pub fn run_with(&mut self, side: Side, processor: usize, fault: Fault, time: Duration) -> u64 {
        self.end(side).faults[processor].arm(fault);
        let arrived = self.run(time);
        self.end(side).faults[processor].disarm();
        arrived
    }

    /// Lets everything out and checks the books.
    pub fn finish(&mut self, limit: Duration) {
        let end = self.clock.now() + limit;
        while !self.is_empty() {
            assert!(
                self.clock.now() < end,
                "{} and {} in flight",
                self.a.engine.in_flight(),
                self.b.engine.in_flight()
            );
            self.a.engine.flush();
            self.b.engine.flush();
            while let Some((_, bytes, number)) = self.held_back.pop() {
                self.on_wire.push_back((bytes, number));
            }
            self.step();
        }
        self.icv_refused.sort();
        self.icv_refused.dedup();
        let missing = self.icv_refused.iter().filter(|&&number| !self.delivered[number as usize]);
        self.icv_wrong = missing.count() as u64;
        let drops = self.b.engine.drops();
        assert_eq!(self.a.dropped + self.a.refused, 0, "{:?}", self.a.engine.drops());
        assert_eq!(self.a.passed, self.offered);
        // All that the wire brought was delivered, or refused for a reason that is counted.
        assert_eq!(self.arrived, self.offered - self.lost - self.icv_wrong);
        let reasons: u64 =
            [DropReason::InStateSeqError, DropReason::InStateProtoError].map(|r| drops.get(r)).iter().sum();
        assert_eq!(drops.total(), reasons, "{drops:?}");
        assert!(drops.get(DropReason::InStateSeqError) <= self.copied + self.forged);
        self.a.check(&self.limits);
        self.b.check(&self.limits);
    }

    fn is_empty(&self) -> bool {
        let in_flight = self.a.engine.in_flight() + self.b.engine.in_flight();
        in_flight + self.on_wire.len() + self.held_back.len() == 0
    }

    /// No packet took longer than a processor may keep it and what this thread was held up.
    pub fn check_latency(&self) {
        for (name, end) in [("A", &self.a), ("B", &self.b)] {
            let margin = Duration::from_millis(50) + end.gap.times(2);
            let limit = self.limits.hold + margin;
            assert!(end.latency <= limit, "{name} held a packet for {:?}, limit {limit:?}", end.latency);
        }
    }

    fn offer(&mut self) {
        plain(self.offered, &mut self.plain);
        let mut packet = self.a.engine.buffer();
        assert!(packet.fill(&self.plain));
        self.a.admit(Direction::Seal, packet, self.offered);
        self.offered += 1;
        self.delivered.push(false);
    }

    fn step(&mut self) {
        self.a.poll();
        for output in self.a.outputs() {
            if output.result.is_ok() {
                self.send(output.packet.bytes().to_vec(), output.tag);
            }
            self.a.engine.recycle(output.packet);
        }
        while self.b.engine.room() > 0
            && let Some((bytes, number)) = self.on_wire.pop_front()
        {
            let mut packet = self.b.engine.buffer();
            assert!(packet.fill(&bytes));
            self.b.admit(Direction::Open, packet, number);
        }
        self.b.poll();
        for output in self.b.outputs() {
            match output.result {
                Ok(()) => {
                    plain(output.tag, &mut self.plain);
                    assert_eq!(output.packet.bytes(), self.plain, "packet {} has changed", output.tag);
                    let before = std::mem::replace(&mut self.delivered[output.tag as usize], true);
                    assert!(!before, "packet {} was delivered twice", output.tag);
                    self.arrived += 1;
                }
                Err(DropReason::InStateProtoError) => self.icv_refused.push(output.tag),
                Err(_) => {}
            }
            self.b.engine.recycle(output.packet);
        }
        self.a.check(&self.limits);
        self.b.check(&self.limits);
    }

    /// Puts a sealed packet on the wire, where things happen to it.
    fn send(&mut self, bytes: Vec<u8>, number: u64) {
        if self.random.one_in(self.wire.lose) {
            self.lost += 1;
            return;
        }
        if self.random.one_in(self.wire.forge) {
            let mut forged = bytes.clone();
            *forged.last_mut().expect("an ICV") ^= 1;
            self.forged += 1;
            self.on_wire.push_back((forged, number));
        }
        if self.random.one_in(self.wire.copy) {
            self.copied += 1;
            self.on_wire.push_back((bytes.clone(), number));
        }
        if self.random.one_in(self.wire.hold_back) {
            let others = 1 + (self.random.draw() % HELD_BACK as u64) as usize;
            self.held_back.push((others, bytes, number));
        } else {
            self.on_wire.push_back((bytes, number));
        }
        for held in &mut self.held_back {
            held.0 -= 1;
        }
        for (_, bytes, number) in self.held_back.extract_if(.., |held| held.0 == 0) {
            self.on_wire.push_back((bytes, number));
        }
    }
}

fn keys(suite: Suite, sa: usize) -> SaKeys {
    let secret = |len: usize| SecretBytes::new((0..len).map(|k| (k * 7 + sa) as u8).collect());
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).expect("keys of the right length")
}

/// The SAs of one side.
pub fn sas(direction: Direction) -> (Ipsec, Vec<SaKeys>) {
    let (mut sad, mut all) = (Ipsec::default(), Vec::new());
    for (sa, word) in SUITES.into_iter().enumerate() {
        let suite: Suite = word.parse().expect("a suite");
        let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let selector = |second: usize| format!("10.{second}.0.0/16").parse().expect("a selector");
        let spi = Spi::new(0x1000 + sa as u32).expect("not zero");
        let config = |local: [u8; 4], remote: [u8; 4], local_ts, remote_ts| SaConfig {
            esn: sa % 2 == 1,
            replay_window: 1024,
            encapsulation: if sa == 2 { Encapsulation::Udp } else { Encapsulation::None },
            local_ts: vec![local_ts],
            remote_ts: vec![remote_ts],
            ..SaConfig::new(word, spi, suite, local.into(), remote.into())
        };
        match direction {
            Direction::Seal => {
                sad.add_outbound(config(near, far, selector(99), selector(sa)), IvRange::for_throwaway_key())
            }
            Direction::Open => sad.add_inbound(config(far, near, selector(sa), selector(99))),
        }
        .expect("an SA");
        all.push(keys(suite, sa));
    }
    (sad, all)
}

/// A core, a device that answers at once and two cards on one bus, all but the core able to go wrong.
fn processors(faults: &[FaultControl]) -> Vec<ProcessorSetup> {
    let core_cost =
        Cost { init: Duration::from_nanos(1_500), block: Duration::from_nanos(10), ..Cost::default() };
    let device = Box::new(Faulty::new(AwsLc::new(), faults[DEVICE].clone()));
    // The cores are to be spared, so that every processor has work whichever direction is the faster.
    let mut setups = vec![
        ProcessorSetup { alpha: 8.0, ..setup(Box::new(AwsLc::new()), Kind::Cpu, core_cost) },
        ProcessorSetup { alpha: 4.0, ..setup(device, Kind::Cpu, core_cost) },
    ];
    let bus = Bus::new(BusConfig::pci_66());
    for place in CARDS {
        let config = CardConfig {
            init: Duration::from_micros(1),
            block: Duration::from_nanos(40),
            queue: CARD_QUEUE,
            ..CardConfig::paper_230_mbit()
        };
        let cost = Cost { init: config.init, block: config.block, ..Cost::default() };
        let card = Card::new(config, &bus, Box::new(AwsLc::new()));
        let faulty = Faulty::new(card, faults[place].clone());
        setups.push(ProcessorSetup { queue: CARD_QUEUE, ..setup(Box::new(faulty), Kind::Accelerator, cost) });
    }
    setups
}

pub fn setup(processor: Box<dyn Processor>, kind: Kind, cost: Cost) -> ProcessorSetup {
    ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 64 }
}
