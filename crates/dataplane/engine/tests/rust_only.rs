//! Two engines back to back whose processors are Rust alone: two cores, the second of
//! which answers later, and an emulated card. So they run under Miri, which checks the rings and the card's thread for data
//! races (`make miri`).

use forebay_crypto::{
    Capabilities, Direction, Job, Packet, Processor, SaKeys, SecretBytes, SessionError, SessionId, Suite,
    Verdict,
};
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{Clock, Engine, Limits, ProcessorSetup, Scheduling, Settings};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::{Duration, Time};

const SAS: usize = 3;
/// Few under Miri, which takes a thousand times as long.
const BURSTS: u64 = if cfg!(miri) { 6 } else { 400 };
const BURST: u64 = 8;

/// A processor with a toy for a cipher: it protects nothing, but what one direction does the other undoes, and an ICV
/// depends on every byte.
struct Toy {
    capabilities: Capabilities,
    sessions: Vec<Option<(u8, Direction)>>,
    done: Vec<Job>,
}

impl Toy {
    fn new() -> Toy {
        let capabilities = Capabilities { suites: vec![suite()], best_burst: 4, queue: 64 };
        Toy { capabilities, sessions: vec![], done: vec![] }
    }

    fn run(&self, job: &mut Job) -> Verdict {
        let Some(Some((key, direction))) = self.sessions.get(job.spec.session.0 as usize).copied() else {
            return Verdict::Failed;
        };
        let spec = job.spec;
        let buffer = job.packet.buffer_mut();
        let icv = spec.icv as usize..spec.icv as usize + suite().icv_len();
        let tag = |buffer: &[u8]| {
            let covered = buffer[spec.auth.range()].iter().chain(&buffer[spec.cipher.range()]);
            covered.fold(key, |sum, byte| sum.rotate_left(3).wrapping_mul(5) ^ byte)
        };
        let encipher =
            |buffer: &mut [u8]| buffer[spec.cipher.range()].iter_mut().for_each(|byte| *byte ^= key);
        if direction == Direction::Seal {
            encipher(buffer);
            let tag = tag(buffer);
            buffer[icv].fill(tag);
        } else {
            let tag = tag(buffer);
            if buffer[icv].iter().any(|byte| *byte != tag) {
                return Verdict::AuthFailed;
            }
            encipher(buffer);
        }
        Verdict::Done
    }
}

impl Processor for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        let index = id.0 as usize;
        self.sessions.resize(self.sessions.len().max(index + 1), None);
        self.sessions[index] = Some((keys.cipher()[0], direction));
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        self.sessions[id.0 as usize] = None;
    }

    fn submit(&mut self, _: Time, jobs: &mut Vec<Job>) {
        for job in jobs.iter_mut() {
            job.verdict = self.run(job);
        }
        self.done.append(jobs);
    }

    fn poll(&mut self, _: Time, done: &mut Vec<Job>) {
        done.append(&mut self.done);
    }
}

fn suite() -> Suite {
    "aes128gcm16".parse().expect("a suite")
}

fn engine(direction: Direction, clock: Clock) -> Engine {
    let (mut ipsec, mut keys) = (Ipsec::default(), Vec::new());
    for sa in 0..SAS as u8 {
        let spi = Spi::new(0x1000 + u32::from(sa)).expect("not zero");
        let networks = |second: u8| vec![format!("10.{second}.0.0/16").parse().expect("a selector")];
        let config = |local: [u8; 4], remote: [u8; 4], from, to| SaConfig {
            replay_window: 1024,
            local_ts: networks(from),
            remote_ts: networks(to),
            ..SaConfig::new("toy", spi, suite(), local.into(), remote.into())
        };
        let (a, b) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        match direction {
            Direction::Seal => ipsec.add_outbound(config(a, b, 99, sa), IvRange::for_throwaway_key()),
            Direction::Open => ipsec.add_inbound(config(b, a, sa, 99)),
        }
        .expect("an SA");
        let key = SecretBytes::new(vec![7 + sa; suite().cipher_key_len() + suite().salt_len()]);
        keys.push(SaKeys::new(suite(), &key, &SecretBytes::new(vec![])).expect("keys"));
    }
    let cost = Cost { init: Duration::from_nanos(1_000), ..Cost::default() };
    let setup = |processor: Box<dyn Processor>, kind| ProcessorSetup {
        processor,
        kind,
        cost,
        alpha: 1.0,
        beta: Duration::ZERO,
        queue: 16,
    };
    let bus = Bus::new(BusConfig::pci_66());
    let card = Card::new(CardConfig::paper_230_mbit(), &bus, Box::new(Toy::new()));
    let processors = vec![
        setup(Box::new(Toy::new()), Kind::Cpu),
        setup(Box::new(Toy::new()), Kind::Cpu),
        setup(Box::new(card), Kind::Accelerator),
    ];
    // What is late is so because of Miri, or of a busy machine.
    let (hold, slack) = (Duration::from_millis(60_000), Duration::from_millis(60_000));
    let limits = Limits { in_flight: 64, packet_capacity: 256, hold, slack, ..Limits::default() };
    // In turn: by finishing time, what Miri takes to hand a job over would have the core do everything.
    let scheduling = Scheduling { policy: Policy::RoundRobin, ..Scheduling::default() };
    Engine::new(ipsec, &keys, processors, Settings { scheduling, limits, ..Settings::default() }, clock)
        .expect("an engine")
}

fn plain(number: u64) -> Vec<u8> {
    let len = 28 + (number % 5) as usize * 16;
    let mut bytes = vec![0; len];
    bytes[..4].copy_from_slice(&[0x45, 0, 0, len as u8]);
    bytes[8..10].copy_from_slice(&[64, 17]);
    bytes[12..20].copy_from_slice(&[10, 99, 0, 1, 10, (number % SAS as u64) as u8, 0, 1]);
    bytes[20..28].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Takes packets through an engine, and gives what comes out.
fn pass(engine: &mut Engine, direction: Direction, packets: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    let expected = packets.len();
    let mut burst: Vec<Job> = packets
        .into_iter()
        .map(|(number, bytes)| {
            let mut packet: Packet = engine.buffer();
            assert!(packet.fill(&bytes));
            Job::new(packet, Default::default(), number)
        })
        .collect();
    engine.admit_burst(direction, &mut burst);
    let mut out = Vec::new();
    while out.len() < expected {
        engine.poll();
        let outputs: Vec<_> = engine.outputs().collect();
        for output in outputs {
            assert_eq!(output.result, Ok(()), "packet {}", output.tag);
            out.push((output.tag, output.packet.bytes().to_vec()));
            engine.recycle(output.packet);
        }
        std::thread::yield_now();
    }
    out
}

#[test]
fn packets_cross_two_engines_unchanged_and_in_their_sas_order() {
    let clock = Clock::start();
    let (mut a, mut b) = (engine(Direction::Seal, clock), engine(Direction::Open, clock));
    let mut next = [0_u64; SAS];
    for burst in 0..BURSTS {
        let numbers = burst * BURST..(burst + 1) * BURST;
        let sealed = pass(&mut a, Direction::Seal, numbers.map(|n| (n, plain(n))).collect());
        for (number, bytes) in pass(&mut b, Direction::Open, sealed) {
            assert_eq!(bytes, plain(number));
            let sa = (number % SAS as u64) as usize;
            assert!(number >= next[sa], "packet {number} overtook another one of its SA");
            next[sa] = number + 1;
        }
    }
    let used: Vec<u64> = a.processors().map(|one| one.packets).collect();
    assert!(used.iter().all(|&packets| packets > 0), "one did nothing: {used:?}");
    assert_eq!(used.iter().sum::<u64>(), BURSTS * BURST);
}
