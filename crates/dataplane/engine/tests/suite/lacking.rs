//! A running core that lacks a suite: others do those jobs, and what one fails at goes to another.

use forebay_crypto::fault::{Fault, FaultControl, Faulty};
use forebay_crypto::{
    Capabilities, Direction, Fallback, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId,
    Suite, forward_processor,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, EngineError, Limits, ProcessorSetup, SUITES_MAX, Settings};
use forebay_ipsec::{DropReason, Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;

/// AWS-LC without some of its suites.
struct Lacking {
    inner: AwsLc,
    capabilities: Capabilities,
}

impl Lacking {
    fn new(lacks: fn(&Suite) -> bool) -> Lacking {
        let inner = AwsLc::new();
        let mut capabilities = inner.capabilities().clone();
        capabilities.suites.retain(|suite| !lacks(suite));
        Lacking { inner, capabilities }
    }
}

impl Processor for Lacking {
    forward_processor!(inner: close_session, submit, poll);

    fn name(&self) -> &str {
        "lacking"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(&mut self, id: SessionId, keys: &SaKeys, way: Direction) -> Result<(), SessionError> {
        match self.capabilities.has(keys.suite()) {
            true => self.inner.open_session(id, keys, way),
            false => Err(SessionError::Unsupported(keys.suite())),
        }
    }
}

/// The suite that running cores lack here.
fn is_ccm(suite: &Suite) -> bool {
    suite.to_string().contains("ccm")
}

const SUITES: [&str; 2] = ["aes128gcm16", "aes192ccm16"];

fn keys(suite: Suite) -> SaKeys {
    let secret = |len: usize| SecretBytes::new((0..len).map(|at| at as u8).collect());
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).expect("keys of the suite's lengths")
}

/// An SA of each suite, for 10.0.n.0/24.
fn sas(direction: Direction, suites: &[Suite]) -> (Ipsec, Vec<SaKeys>) {
    let mut sad = Ipsec::default();
    for (n, &suite) in suites.iter().enumerate() {
        let spi = Spi::new(0x1000 + n as u32).expect("not zero");
        let selector = vec![format!("10.0.{n}.0/24").parse().expect("a prefix")];
        let (near, far) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        match direction {
            Direction::Seal => {
                let config = SaConfig { remote_ts: selector, ..SaConfig::new("out", spi, suite, near, far) };
                sad.add_outbound(config, IvRange::for_throwaway_key())
            }
            Direction::Open => {
                let config = SaConfig { local_ts: selector, ..SaConfig::new("in", spi, suite, far, near) };
                sad.add_inbound(config)
            }
        }
        .expect("an SA");
    }
    (sad, suites.iter().map(|&suite| keys(suite)).collect())
}

fn plain(n: usize) -> Vec<u8> {
    let mut packet = vec![n as u8; 100];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0, 0, 64, 253, 0, 0]);
    packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 0, (n % SUITES.len()) as u8, 1]);
    packet
}

fn setup(processor: impl Processor + 'static) -> ProcessorSetup {
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(processor), Kind::Accelerator);
    ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 64 }
}

/// An engine whose running core lacks AES-CCM.
fn engine(direction: Direction, others: Vec<ProcessorSetup>) -> Engine {
    let (sad, keys) = sas(direction, &SUITES.map(|word| word.parse().expect("a suite")));
    let processors = [setup(Lacking::new(is_ccm))].into_iter().chain(others).collect();
    let limits = Limits { hold: Duration::from_millis(20), slack: Duration::ZERO, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    Engine::new(sad, &keys, processors, settings, Clock::start()).expect("an engine")
}

/// Takes packets through; what became of each, in order.
fn pass(engine: &mut Engine, direction: Direction, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, DropReason>> {
    for (n, bytes) in packets.iter().enumerate() {
        let mut packet = Packet::with_capacity(2_048);
        assert!(packet.fill(bytes));
        engine.admit(direction, packet, n as u64).expect("room");
    }
    assert!(engine.drain(Duration::from_millis(20_000)), "{} packets are stuck", engine.in_flight());
    let mut outputs: Vec<_> = engine.outputs().collect();
    outputs.sort_by_key(|output| output.tag);
    outputs.into_iter().map(|output| output.result.map(|()| output.packet.bytes().to_vec())).collect()
}

fn seal(count: usize) -> Vec<Vec<u8>> {
    let packets: Vec<_> = (0..count).map(plain).collect();
    let sealed = pass(&mut engine(Direction::Seal, vec![setup(AwsLc::new())]), Direction::Seal, &packets);
    sealed.into_iter().map(|sealed| sealed.expect("sealed")).collect()
}

#[test]
fn others_do_what_it_lacks_and_are_taken_at_their_word() {
    let mut sealed = seal(400);
    // A forged packet of each suite.
    for forged in &mut sealed[10..12] {
        *forged.last_mut().expect("an ICV") ^= 1;
    }
    let mut opener = engine(Direction::Open, vec![setup(AwsLc::new())]);
    for (n, opened) in pass(&mut opener, Direction::Open, &sealed).into_iter().enumerate() {
        match n {
            10 | 11 => assert_eq!(opened, Err(DropReason::InStateProtoError), "packet {n}"),
            _ => assert_eq!(opened, Ok(plain(n)), "packet {n}"),
        }
    }
    assert_eq!(opener.processors().map(|one| one.removals).sum::<u64>(), 0);
}

#[test]
fn what_one_fails_at_goes_to_another() {
    let sealed = seal(64);
    let control = FaultControl::new(1);
    let dead = Faulty::new(AwsLc::new(), control.clone());
    let mut opener = engine(Direction::Open, vec![setup(dead), setup(AwsLc::new())]);
    control.arm(Fault::Stop);
    let opened = pass(&mut opener, Direction::Open, &sealed);
    assert!(opened.into_iter().enumerate().all(|(n, opened)| opened == Ok(plain(n))));
    assert!(control.struck() > 0 && opener.stats().redone > 0);
}

#[test]
fn without_another_it_is_an_error_of_the_packet_alone() {
    let sealed = seal(64);
    let control = FaultControl::new(1);
    let dead = Faulty::new(AwsLc::new(), control.clone());
    let mut opener = engine(Direction::Open, vec![setup(dead)]);
    control.arm(Fault::Stop);
    for (n, opened) in pass(&mut opener, Direction::Open, &sealed).into_iter().enumerate() {
        match n % 2 {
            0 => assert_eq!(opened, Ok(plain(n)), "packet {n}"),
            _ => assert_eq!(opened, Err(DropReason::InError), "packet {n}"),
        }
    }
}

#[test]
fn a_second_library_on_the_core_fills_the_gap() {
    let (sad, keys) = sas(Direction::Open, &SUITES.map(|word| word.parse().expect("a suite")));
    let core = Fallback::new(Lacking::new(is_ccm), AwsLc::new());
    let mut opener = Engine::new(sad, &keys, vec![setup(core)], Settings::default(), Clock::start())
        .expect("an engine of the core alone");
    let opened = pass(&mut opener, Direction::Open, &seal(64));
    assert!(opened.into_iter().enumerate().all(|(n, opened)| opened == Ok(plain(n))));
}

#[test]
fn what_nobody_does_is_an_error_and_so_are_more_suites_than_bits() {
    let new = |suites: &[Suite], core: Box<dyn Processor>| {
        let (sad, keys) = sas(Direction::Seal, suites);
        Engine::new(sad, &keys, vec![setup(core)], Settings::default(), Clock::start()).err()
    };
    let ccm: Suite = SUITES[1].parse().expect("a suite");
    let error = new(&[ccm], Box::new(Lacking::new(is_ccm)));
    assert!(matches!(error, Some(EngineError::NoProcessor(suite)) if suite == ccm), "{error:?}");
    let all: Vec<Suite> = Suite::all().collect();
    assert!(new(&all[..SUITES_MAX], Box::new(AwsLc::new())).is_none());
    let error = new(&all[..SUITES_MAX + 1], Box::new(AwsLc::new()));
    assert!(matches!(error, Some(EngineError::TooManySuites(65))), "{error:?}");
}

/// What stands in the place of a device that could not be opened.
#[test]
fn a_processor_without_suites_is_out_and_stays_so() {
    let suites: Vec<Suite> = vec![SUITES[0].parse().expect("a suite")];
    let (sad, keys) = sas(Direction::Seal, &suites);
    let setup = |processor: Box<dyn Processor>, kind| ProcessorSetup::new(processor, kind, Cost::default());
    let processors = vec![
        setup(Box::new(AwsLc::new()), Kind::Cpu),
        setup(Box::new(Lacking::new(|_| true)), Kind::Accelerator),
    ];
    let mut settings = Settings::default();
    settings.scheduling.policy = forebay_scheduler::Policy::RoundRobin;
    let mut engine = Engine::new(sad, &keys, processors, settings, Clock::start()).expect("an engine");
    let mut bytes = [0; 40];
    (bytes[0], bytes[3], bytes[8], bytes[18]) = (0x45, 40, 64, 0);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 1]);
    for number in 0..100 {
        let mut packet = engine.buffer();
        assert!(packet.fill(&bytes));
        assert!(engine.admit(Direction::Seal, packet, number).is_ok());
        engine.poll();
        let outputs: Vec<_> = engine.outputs().collect();
        assert!(outputs.iter().all(|output| output.result.is_ok()));
        outputs.into_iter().for_each(|output| engine.recycle(output.packet));
    }
    let out: Vec<bool> = engine.processors().map(|stats| stats.out).collect();
    let jobs: Vec<u64> = engine.processors().map(|stats| stats.packets).collect();
    assert_eq!((out, jobs), (vec![false, true], vec![100, 0]));
}
