//! Packets through more than one SA, on the burst path and through the scheduler: all come through, in
//! order, on every kind of processor. What the backends lack is named and left out.

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{
    BURST, BurstPath, Clock, Engine, Lane, Limits, Order, ProcessorSetup, Scheduling, Settings,
};
use forebay_ipsec::{Ipsec, IvRange, Mode, Protocol, SaConfig, Spi};
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

fn processors(clock: Clock) -> Vec<ProcessorSetup> {
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
    let lane = Lane::new(Box::new(AwsLc::new()), "lane", clock).expect("a thread");
    let card =
        Card::new(CardConfig::paper_230_mbit(), &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new()));
    vec![
        setup(Box::new(AwsLc::new()), Kind::Cpu, 3_000),
        setup(Box::new(lane), Kind::Cpu, 300),
        setup(Box::new(card), Kind::Accelerator, 300),
    ]
}

/// Takes `packets` through an engine; what came out, in order.
fn pass(
    direction: Direction,
    chain: &[Link],
    order: Order,
    window: usize,
    packets: Vec<Vec<u8>>,
) -> Option<Vec<Vec<u8>>> {
    let (sad, keys) = sas(direction, chain)?;
    let clock = Clock::start();
    let scheduling = Scheduling { policy: Policy::FinishTime, window, ..Scheduling::default() };
    let limits = Limits { in_flight: 128, audit_every: 4, ..Limits::default() };
    let settings = Settings { scheduling, limits, order, ..Settings::default() };
    let mut engine = Engine::new(sad, &keys, processors(clock), settings, clock).expect("an engine");
    let mut out = Vec::new();
    let mut take = |engine: &mut Engine| {
        let outputs: Vec<_> = engine.outputs().collect();
        for output in outputs {
            assert_eq!(output.result, Ok(()));
            out.push(output.packet.bytes().to_vec());
            engine.recycle(output.packet);
        }
    };
    for bytes in packets {
        while engine.room() == 0 {
            engine.flush();
            engine.turn();
            take(&mut engine);
        }
        let mut packet = engine.buffer();
        assert!(packet.fill(&bytes));
        engine.admit(direction, packet, 0).map_err(|(_, reason)| reason).expect("room, and a good packet");
        engine.turn();
    }
    assert!(engine.drain(Duration::from_millis(20_000)), "{} are stuck", engine.in_flight());
    take(&mut engine);
    let passed: u64 = engine.sad().iter().map(|(.., counters)| counters.packets).sum();
    assert_eq!(passed, (PACKETS * chain.len()) as u64);
    Some(out)
}

#[test]
fn through_the_scheduler_in_either_order() {
    for chain in CHAINS {
        for order in [Order::PerSa, Order::Total] {
            for window in [1, 8] {
                let plains: Vec<Vec<u8>> = (0..PACKETS).map(plain).collect();
                let Some(sealed) = pass(Direction::Seal, chain, order, window, plains) else {
                    eprintln!("not run, a suite is lacking: {chain:?}");
                    continue;
                };
                let opened = pass(Direction::Open, chain, order, window, sealed).expect("the same suites");
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
fn on_the_burst_path() {
    for chain in CHAINS {
        let path = |direction| {
            let (sad, keys) = sas(direction, chain)?;
            let mut processor = AwsLc::new();
            for ((session, direction, ..), keys) in sad.iter().zip(&keys) {
                processor.open_session(session, keys, direction).expect("a session");
            }
            Some(BurstPath::new(sad, Box::new(processor)))
        };
        let (Some(mut seal), Some(mut open)) = (path(Direction::Seal), path(Direction::Open)) else {
            eprintln!("not run, a suite is lacking: {chain:?}");
            continue;
        };
        let mut burst: Vec<Job> =
            (0..BURST).map(|_| Job::new(Packet::with_capacity(2_048), JobSpec::default(), 0)).collect();
        let mut dropped = Vec::new();
        for first in (0..PACKETS).step_by(BURST) {
            burst.iter_mut().zip(first..).for_each(|(job, n)| assert!(job.packet.fill(&plain(n))));
            seal.run(Direction::Seal, &mut burst, &mut dropped);
            // One that is forged in its outer SA, and nothing else, is dropped.
            let last = burst[7].packet.len() - 1;
            burst[7].packet.bytes_mut()[last] ^= 1;
            open.run(Direction::Open, &mut burst, &mut dropped);
            let came: Vec<usize> = burst.iter().map(|job| number(job.packet.bytes())).collect();
            assert!(came.iter().copied().eq((first..first + BURST).filter(|n| *n != first + 7)), "{came:?}");
            assert!(burst.iter().all(|job| job.packet.bytes() == plain(number(job.packet.bytes()))));
            assert_eq!(dropped.len(), 1);
            burst.append(&mut dropped);
        }
        assert!(open.drops().iter().all(|(reason, _)| reason.name() == "in_state_proto_error"));
    }
}
