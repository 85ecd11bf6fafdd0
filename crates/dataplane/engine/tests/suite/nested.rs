//! Packets through more than one SA, in place and through the scheduler: all come through, in
//! order, on every kind of processor. What the backends lack is named and left out.

use forebay_crypto::{Direction, Job, JobSpec, Processor, SaKeys, SecretBytes, SessionId, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{BURST, Clock, Engine, Limits, Order, ProcessorSetup, Scheduling, Settings};
use forebay_ipsec::{DropReason, Ipsec, IvRange, Mode, Protocol, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind, Policy};
use forebay_time::Duration;

const PACKETS: usize = 1_000;
/// Flows, each with an innermost SA of its own.
const FLOWS: usize = 3;

/// One SA in a chain, the innermost first: proposal, protocol, mode, outer addresses.
type Link = (&'static str, Protocol, Mode, [&'static str; 2]);

const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

const CHAINS: [&[Link]; 4] = [
    &[("aes128gcm16", Protocol::Esp, Mode::Tunnel, V4), ("aes256gcm16", Protocol::Esp, Mode::Tunnel, V6)],
    &[("aes128gcm16", Protocol::Esp, Mode::Tunnel, V4), ("sha256", Protocol::Ah, Mode::Transport, V4)],
    &[("aes128gmac", Protocol::Ah, Mode::Tunnel, V6), ("sha1", Protocol::Ah, Mode::Tunnel, V4)],
    &[("sha512", Protocol::Ah, Mode::Tunnel, V4)],
];

fn keys(suite: Suite) -> SaKeys {
    let secret = |len| SecretBytes::new(vec![len as u8; len]);
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).expect("keys of the suite's lengths")
}

/// The chains of all flows, which share all SAs but the innermost where there is more than one; `None`
/// if the processors lack a suite.
fn sas(direction: Direction, chain: &[Link]) -> Option<(Ipsec, Vec<SaKeys>)> {
    let (mut sad, mut all) = (Ipsec::default(), Vec::new());
    let shared = chain.len() > 1;
    let mut add = |sad: &mut Ipsec, number: usize, link: &Link, flow: usize| {
        let (proposal, protocol, mode, ends) = *link;
        let suite: Suite = proposal.parse().expect("a proposal");
        if !AwsLc::new().capabilities().has(suite) {
            return None;
        }
        let [near, far] = ends.map(|end| end.parse().expect("an address"));
        let spi = Spi::new(0x1000 + number as u32).expect("not zero");
        let (hosts, peers) = (
            vec!["10.1.0.0/16".parse().expect("a network")],
            vec![format!("10.2.{flow}.0/24").parse().expect("a network")],
        );
        let any = number >= FLOWS;
        let config = match direction {
            Direction::Seal => SaConfig {
                local_ts: hosts,
                remote_ts: peers,
                ..SaConfig::new("sealing", spi, suite, near, far)
            },
            Direction::Open => SaConfig {
                local_ts: peers,
                remote_ts: hosts,
                ..SaConfig::new("opening", spi, suite, far, near)
            },
        };
        let mut config = SaConfig { protocol, mode, esn: true, replay_window: 4_096, ..config };
        if any {
            (config.local_ts, config.remote_ts) = (vec![], vec![]);
        }
        all.push(keys(suite));
        let session = match direction {
            Direction::Seal => sad.add_outbound(config, IvRange::for_throwaway_key()),
            Direction::Open => sad.add_inbound(config),
        };
        Some(session.expect("settings without fault"))
    };
    for flow in 0..FLOWS {
        add(&mut sad, flow, &chain[0], flow)?;
    }
    if shared {
        let outer = add(&mut sad, FLOWS, &chain[1], 0)?;
        (0..FLOWS as u32).for_each(|inner| sad.nest(SessionId(inner), outer).expect("SAs that are there"));
    }
    Some((sad, all))
}

/// Packet `number`, of a flow in turn, with its number in it.
fn plain(number: usize) -> Vec<u8> {
    let len = 60 + number * 37 % 900;
    let [high, low] = (len as u16).to_be_bytes();
    let mut packet =
        vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 1, 0, 1, 10, 2, (number % FLOWS) as u8, 1];
    packet.extend((number as u32).to_be_bytes());
    packet.resize(len, number as u8);
    packet
}

fn number(packet: &[u8]) -> usize {
    u32::from_be_bytes(packet[20..24].try_into().expect("four bytes")) as usize
}

fn processors() -> Vec<ProcessorSetup> {
    let setup = |processor, kind, init| ProcessorSetup {
        processor,
        kind,
        cost: Cost {
            init: Duration::from_nanos(init),
            packet: Duration::ZERO,
            block: Duration::from_nanos(5),
            submit: Duration::ZERO,
            wake: Duration::ZERO,
            lanes: 1,
        },
        alpha: 1.0,
        beta: Duration::ZERO,
        queue: 64,
    };
    let card =
        Card::new(CardConfig::paper_230_mbit(), &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new()));
    vec![
        setup(Box::new(AwsLc::new()), Kind::Cpu, 3_000),
        setup(Box::new(AwsLc::new()), Kind::Cpu, 300),
        setup(Box::new(card), Kind::Accelerator, 300),
    ]
}

/// How packets are admitted.
#[derive(Clone, Copy, Debug)]
enum By {
    One,
    Bursts,
}

/// Takes `packets` through an engine; what came out, in order, and what was dropped.
fn pass_on(
    processors: Vec<ProcessorSetup>,
    clock: Clock,
    direction: Direction,
    chain: &[Link],
    (order, window, by): (Order, usize, By),
    packets: Vec<Vec<u8>>,
) -> Option<(Vec<Vec<u8>>, Vec<DropReason>)> {
    let (sad, keys) = sas(direction, chain)?;
    let scheduling = Scheduling { policy: Policy::FinishTime, window, ..Scheduling::default() };
    let limits = Limits { in_flight: 128, audit_every: 4, ..Limits::default() };
    let settings = Settings { scheduling, limits, order, ..Settings::default() };
    let mut engine = Engine::new(sad, &keys, processors, settings, clock).expect("an engine");
    let (mut out, mut dropped) = (Vec::new(), Vec::new());
    let mut take = |engine: &mut Engine| {
        let outputs: Vec<_> = engine.outputs().collect();
        for output in outputs {
            match output.result {
                Ok(()) => out.push(output.packet.bytes().to_vec()),
                Err(reason) => dropped.push(reason),
            }
            engine.recycle(output.packet);
        }
    };
    let at_once = if let By::Bursts = by { BURST } else { 1 };
    let mut burst = Vec::new();
    for packets in packets.chunks(at_once) {
        while engine.room() < at_once {
            engine.flush();
            engine.poll();
            take(&mut engine);
        }
        for bytes in packets {
            let mut packet = engine.buffer();
            assert!(packet.fill(bytes));
            burst.push(Job::new(packet, JobSpec::default(), 0));
        }
        match by {
            By::Bursts => engine.admit_burst(direction, &mut burst),
            By::One => burst.drain(..).for_each(|job| {
                let admitted = engine.admit(direction, job.packet, 0);
                admitted.map_err(|(_, reason)| reason).expect("room, and a good packet");
            }),
        }
        assert_eq!(engine.refusals().count(), 0);
        engine.poll();
    }
    assert!(engine.drain(Duration::from_millis(20_000)), "{} are stuck", engine.in_flight());
    take(&mut engine);
    let passed: u64 = engine.sad().iter().map(|(.., counters)| counters.packets).sum();
    assert!(!dropped.is_empty() || passed == (PACKETS * chain.len()) as u64);
    Some((out, dropped))
}

fn pass(
    direction: Direction,
    chain: &[Link],
    how: (Order, usize, By),
    packets: Vec<Vec<u8>>,
) -> Option<Vec<Vec<u8>>> {
    let clock = Clock::start();
    let (out, dropped) = pass_on(processors(), clock, direction, chain, how, packets)?;
    assert_eq!(dropped, []);
    Some(out)
}

#[test]
fn through_the_scheduler_in_either_order() {
    for chain in CHAINS {
        for order in [Order::PerSa, Order::Total] {
            for (window, by) in [(1, By::One), (8, By::One), (1, By::Bursts), (8, By::Bursts)] {
                let how = (order, window, by);
                let plains: Vec<Vec<u8>> = (0..PACKETS).map(plain).collect();
                let Some(sealed) = pass(Direction::Seal, chain, how, plains) else {
                    eprintln!("not run, a suite is lacking: {chain:?}");
                    continue;
                };
                let opened = pass(Direction::Open, chain, how, sealed).expect("the same suites");
                assert_eq!(opened.len(), PACKETS);
                assert!(opened.iter().all(|packet| *packet == plain(number(packet))));
                for flow in 0..FLOWS {
                    let numbers = || opened.iter().map(|packet| number(packet)).filter(|n| n % FLOWS == flow);
                    assert!(numbers().is_sorted(), "{order:?} {chain:?}");
                }
                if order == Order::Total {
                    assert!(opened.iter().map(|packet| number(packet)).eq(0..PACKETS));
                }
            }
        }
    }
}

#[test]
fn a_lone_core_does_nests_in_place() {
    for chain in CHAINS {
        let lone = |direction, packets| {
            let core = processors().swap_remove(0);
            let how = (Order::PerSa, 1, By::Bursts);
            pass_on(vec![core], Clock::start(), direction, chain, how, packets)
        };
        let Some((mut sealed, dropped)) = lone(Direction::Seal, (0..PACKETS).map(plain).collect()) else {
            eprintln!("not run, a suite is lacking: {chain:?}");
            continue;
        };
        assert_eq!((sealed.len(), dropped), (PACKETS, vec![]));
        // One of each burst is forged in its outer SA, and nothing else is dropped.
        for packet in sealed.iter_mut().skip(7).step_by(BURST) {
            *packet.last_mut().expect("a packet") ^= 1;
        }
        let (opened, dropped) = lone(Direction::Open, sealed).expect("the same suites");
        let mut numbers: Vec<_> = opened.iter().map(|packet| number(packet)).collect();
        for flow in 0..FLOWS {
            assert!(numbers.iter().filter(|n| *n % FLOWS == flow).is_sorted());
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), PACKETS - dropped.len());
        assert!(opened.iter().all(|packet| *packet == plain(number(packet))));
        assert_eq!(dropped, vec![DropReason::InStateProtoError; PACKETS.div_ceil(BURST)]);
    }
}
