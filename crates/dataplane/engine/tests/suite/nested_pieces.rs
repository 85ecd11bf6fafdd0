//! Nested SAs whose outer path takes some packets only in pieces: those that have to get through whole are divided between
//! the two SAs, and put together between the two at the far end.

use forebay_crypto::{Direction, Job, JobSpec, SaKeys, SecretBytes, SessionId, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{
    Addresses, Clock, Engine, Limits, Order, ProcessorSetup, Refusal, Scheduling, Settings,
};
use forebay_ipsec::{DropReason, Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use forebay_wire::Ip;
use forebay_wire::icmp::TooBig;

const GATES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const GATES_V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
/// What every IPv6 path takes, and so must a tunnel (RFC 8200 5).
const LEAST: u16 = 1_280;

fn keys(suite: Suite) -> SaKeys {
    let secret = |len| SecretBytes::new(vec![len as u8; len]);
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).expect("keys of the suite's lengths")
}

/// SA number `number` of a chain; the outermost is the one with a path MTU.
fn config(direction: Direction, number: u32, (ends, encapsulation): Link, mtu: Option<u16>) -> SaConfig {
    let [near, far] = ends.map(|end| end.parse().expect("an address"));
    let suite = "aes128gcm16".parse().expect("a proposal");
    let spi = Spi::new(0x1000 + number).expect("not zero");
    let (local, remote) = if direction == Direction::Seal { (near, far) } else { (far, near) };
    SaConfig {
        encapsulation,
        mtu,
        replay_window: 4_096,
        ..SaConfig::new("nested", spi, suite, local, remote)
    }
}

type Link = ([&'static str; 2], Encapsulation);

fn engine(direction: Direction, chain: &[Link], order: Order, lone: bool) -> Engine {
    engine_from(direction, 0, chain, order, lone)
}

/// An engine with the SAs of `chain`, which are numbered from `first` on.
fn engine_from(direction: Direction, first: u32, chain: &[Link], order: Order, lone: bool) -> Engine {
    let (mut sad, mut all) = (Ipsec::default(), Vec::new());
    for (place, link) in chain.iter().enumerate() {
        let outermost = place + 1 == chain.len();
        let config = config(direction, first + place as u32, *link, outermost.then_some(LEAST));
        all.push(keys(config.suite));
        let session = match direction {
            Direction::Seal => sad.add_outbound(config, IvRange::for_throwaway_key()),
            Direction::Open => sad.add_inbound(config),
        };
        let SessionId(outer) = session.expect("settings without fault");
        if outer > 0 {
            sad.nest(SessionId(outer - 1), SessionId(outer)).expect("SAs that are there");
        }
    }
    let clock = Clock::start();
    let setup = |processor, kind| {
        let cost =
            Cost { init: Duration::from_nanos(300), block: Duration::from_nanos(5), ..Cost::default() };
        ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 64 }
    };
    let mut processors = vec![setup(Box::new(AwsLc::new()), Kind::Cpu)];
    if !lone {
        processors.push(setup(Box::new(AwsLc::new()), Kind::Cpu));
        let bus = Bus::new(BusConfig::pci_66());
        let card = Card::new(CardConfig::paper_230_mbit(), &bus, Box::new(AwsLc::new()));
        processors.push(setup(Box::new(card), Kind::Accelerator));
    }
    let limits = Limits { in_flight: 128, packet_capacity: 4_096, ..Limits::default() };
    let addresses = Addresses { v4: None, v6: Some("2001:db8:1::ff".parse().expect("an address")) };
    let scheduling = Scheduling { window: if lone { 1 } else { 8 }, ..Scheduling::default() };
    let settings = Settings { limits, order, addresses, scheduling, ..Settings::default() };
    Engine::new(sad, &all, processors, settings, clock).expect("an engine")
}

/// An IPv6 packet of `len` bytes with its number in it.
fn plain(number: u32, len: usize) -> Vec<u8> {
    let [high, low] = (len as u16 - 40).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, 253, 64];
    packet.extend([0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0x20, 1, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend(number.to_be_bytes());
    packet.resize(len, number as u8);
    packet
}

fn pass(engine: &mut Engine, direction: Direction, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<DropReason>) {
    let (mut out, mut dropped) = (Vec::new(), Vec::new());
    let mut take = |engine: &mut Engine| {
        for output in engine.outputs().collect::<Vec<_>>() {
            match output.result {
                Ok(()) => out.push(output.packet.bytes().to_vec()),
                Err(reason) => dropped.push(reason),
            }
            engine.recycle(output.packet);
        }
    };
    let mut burst = Vec::new();
    for packets in packets.chunks(8) {
        // Pieces take slots that were not asked for.
        while engine.room() < 64 {
            engine.flush();
            engine.poll();
            take(engine);
        }
        for bytes in packets {
            let mut packet = engine.buffer();
            assert!(packet.fill(bytes));
            burst.push(Job::new(packet, JobSpec::default(), 0));
        }
        engine.admit_burst(direction, &mut burst);
        take(engine);
    }
    assert!(engine.drain(Duration::from_millis(20_000)), "{} are stuck", engine.in_flight());
    take(engine);
    let refused: Vec<Refusal> = engine.refusals().collect();
    for Refusal { packet, reason, .. } in refused {
        dropped.push(reason);
        engine.recycle(packet);
    }
    (out, dropped)
}

const PLAIN: Encapsulation = Encapsulation::None;
const UDP: Encapsulation = Encapsulation::Udp;
const CHAINS: [&[Link]; 5] = [
    &[(GATES, PLAIN), (GATES_V6, PLAIN)],
    &[(GATES_V6, PLAIN), (GATES, PLAIN)],
    &[(GATES, UDP), (GATES_V6, PLAIN)],
    &[(GATES_V6, UDP), (GATES, UDP)],
    &[(GATES_V6, PLAIN), (GATES, PLAIN), (GATES_V6, PLAIN)],
];

#[test]
fn what_must_get_through_whole_does_in_pieces() {
    for chain in CHAINS {
        for (order, lone) in
            [(Order::PerSa, true), (Order::PerSa, false), (Order::Total, true), (Order::Total, false)]
        {
            // Some fit, some have to be divided; all of them a tunnel must take.
            let plains: Vec<_> =
                (0..300).map(|n| plain(n, [1_280, 60, 1_279, 1_100][n as usize % 4])).collect();
            let (sealed, dropped) =
                pass(&mut engine(Direction::Seal, chain, order, lone), Direction::Seal, &plains);
            assert_eq!(dropped, [], "{chain:?}");
            assert!(sealed.len() >= plains.len() * 3 / 2, "{} packets", sealed.len());
            for packet in &sealed {
                assert_eq!(Ip::parse(packet).expect("a packet").bytes().len(), packet.len());
                assert!(packet.len() <= LEAST.into(), "{} bytes on a path of {LEAST}", packet.len());
            }
            let mut far = engine(Direction::Open, chain, order, lone);
            let (opened, dropped) = pass(&mut far, Direction::Open, &sealed);
            assert_eq!(dropped, []);
            assert_eq!(opened, plains, "{chain:?} {order:?} {lone}");
            assert_eq!(far.drops().total(), 0);
        }
    }
}

/// A packet that need not get through whole is refused by the first SA already, with the length that fits them all.
#[test]
fn what_is_longer_is_refused_with_the_length_that_fits() {
    for chain in CHAINS {
        let mut near = engine(Direction::Seal, chain, Order::PerSa, true);
        let (sealed, dropped) = pass(&mut near, Direction::Seal, &[plain(1, 1_281)]);
        assert_eq!((sealed.len(), dropped), (0, vec![DropReason::OutPathMtu]));
        let answers: Vec<_> = near.answers();
        let told: Vec<u32> =
            answers.iter().filter_map(|answer| Some(TooBig::parse(&answer.message)?.mtu)).collect();
        // No tunnel may ask for less than IPv6 demands of every path.
        assert_eq!(told, [u32::from(LEAST)]);
    }
}

/// Pieces are put together only with pieces that have come through the same SA: others could be anybody's.
#[test]
fn pieces_from_outside_do_not_join_those_from_inside() {
    let chain = CHAINS[0];
    let mut near = engine(Direction::Seal, chain, Order::PerSa, true);
    let pieces = pass(&mut near, Direction::Seal, &[plain(1, 1_280)]).0;
    assert_eq!(pieces.len(), 2);
    // The very pieces: without an SA that is nested in the outer one they pass as they are.
    let mut outer = engine_from(Direction::Open, 1, &chain[1..], Order::PerSa, true);
    let bare = pass(&mut outer, Direction::Open, &pieces).0;
    assert!(bare.len() == 2 && bare.iter().all(|piece| piece[9] == 50), "fragments of ESP");
    let mut far = engine(Direction::Open, chain, Order::PerSa, true);
    let (opened, dropped) = pass(&mut far, Direction::Open, &[pieces[0].clone(), bare[1].clone()]);
    assert_eq!((opened.len(), dropped), (0, vec![]));
    let (opened, dropped) = pass(&mut far, Direction::Open, &[pieces[1].clone()]);
    assert_eq!((opened, dropped), (vec![plain(1, 1_280)], vec![]));
}
