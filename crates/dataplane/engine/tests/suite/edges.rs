//! One packet into several and several into one, through a whole engine with a second library and a card: aggregation,
//! fragments before and behind IPsec, answers to sources, policies that let packets pass, classes.

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{Addresses, Clock, Engine, Limits, Order, ProcessorSetup, Scheduling, Settings};
use forebay_ipsec::{
    Action, DropReason, DscpSet, Encapsulation, Ipsec, Iptfs, IvRange, Policy, PolicyPlace, SaConfig, Spi,
};
use forebay_scheduler::{ClassConfig, Cost, DscpMap, Kind, Service};
use forebay_time::{Duration, Time};
use forebay_wire::{Fragments, Ip};

const SUITE: &str = "aes128gcm16";

fn keys() -> SaKeys {
    let suite: Suite = SUITE.parse().expect("a proposal");
    let key = SecretBytes::new(vec![7; suite.cipher_key_len() + suite.salt_len()]);
    SaKeys::new(suite, &key, &SecretBytes::new(vec![])).expect("a key of its length")
}

fn config(direction: Direction, spi: u32) -> SaConfig {
    let (near, far) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let (local, remote) = if direction == Direction::Seal { (near, far) } else { (far, near) };
    let suite = SUITE.parse().expect("a proposal");
    let spi = Spi::new(spi).expect("not zero");
    SaConfig { replay_window: 4_096, ..SaConfig::new("edge", spi, suite, local, remote) }
}

fn engine(sad: Ipsec, settings: Settings) -> Engine {
    let clock = Clock::start();
    let setup = |processor, kind| {
        let cost =
            Cost { init: Duration::from_nanos(300), block: Duration::from_nanos(5), ..Cost::default() };
        ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 64 }
    };
    let bus = Bus::new(BusConfig::pci_66());
    let card = Card::new(CardConfig::paper_230_mbit(), &bus, Box::new(AwsLc::new()));
    let processors = vec![
        setup(Box::new(AwsLc::new()), Kind::Cpu),
        setup(Box::new(AwsLc::new()), Kind::Cpu),
        setup(Box::new(card), Kind::Accelerator),
    ];
    let keys: Vec<SaKeys> = sad.iter().map(|_| keys()).collect();
    Engine::new(sad, &keys, processors, settings, clock).expect("an engine")
}

fn settings() -> Settings {
    let limits = Limits { in_flight: 256, packet_capacity: 65_575, ..Limits::default() };
    let addresses = Addresses { v4: Some([10, 1, 0, 254].into()), v6: None };
    Settings { limits, order: Order::Total, addresses, ..Settings::default() }
}

fn one(direction: Direction, change: impl FnOnce(&mut SaConfig)) -> Ipsec {
    let mut sad = Ipsec::default();
    let mut config = config(direction, 0x1001);
    change(&mut config);
    let added = match direction {
        Direction::Seal => sad.add_outbound(config, IvRange::for_throwaway_key()),
        Direction::Open => sad.add_inbound(config),
    };
    added.expect("settings without fault");
    sad
}

/// A UDP packet of `len` bytes, numbered, from 10.1.0.1 to 10.2.0.1.
fn plain(number: u32, len: usize, tos: u8, dont_fragment: bool) -> Vec<u8> {
    let mut packet = vec![number as u8; len];
    packet[..20].copy_from_slice(&[0x45, tos, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    packet[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    if dont_fragment {
        packet[6] = 0x40;
    }
    forebay_wire::ipv4::rewrite(&mut packet, 20, len as u16, 17);
    packet
}

/// Packets that came out, with their tags.
type Passed = Vec<(u64, Vec<u8>)>;
/// Packets that did not get in, with the reasons.
type Refused = Vec<(u64, DropReason)>;

/// Admits `packets`, a millisecond apart, and gives what comes out with its tag; the reasons of what did not get in.
fn pass(engine: &mut Engine, direction: Direction, packets: &[Vec<u8>]) -> (Passed, Refused) {
    pass_in(engine, direction, packets, |engine, bytes| {
        let mut packet = engine.buffer();
        assert!(packet.fill(bytes));
        packet
    })
}

/// The same in other buffers.
fn pass_in(
    engine: &mut Engine,
    direction: Direction,
    packets: &[Vec<u8>],
    buffer: impl Fn(&mut Engine, &[u8]) -> Packet,
) -> (Passed, Refused) {
    let (mut out, mut refused) = (Vec::new(), Vec::new());
    let mut take = |engine: &mut Engine| {
        let outputs: Vec<_> = engine.outputs().collect();
        for output in outputs {
            assert_eq!(output.result, Ok(()));
            out.push((output.tag, output.packet.bytes().to_vec()));
            engine.recycle(output.packet);
        }
    };
    for (tag, bytes) in packets.iter().enumerate() {
        engine.set_time(Time::ZERO + Duration::from_millis(tag as u64));
        while engine.room() < 64 {
            engine.poll();
            take(engine);
        }
        let packet = buffer(engine, bytes);
        if let Err((packet, reason)) = engine.admit(direction, packet, tag as u64) {
            engine.recycle(packet);
            refused.push((tag as u64, reason));
        }
    }
    loop {
        assert!(engine.drain(Duration::from_millis(20_000)), "{} are stuck", engine.in_flight());
        take(engine);
        if engine.waiting() == 0 && (direction == Direction::Seal || engine.next_due() == Time::MAX) {
            break;
        }
        engine.set_time(engine.next_due());
    }
    (out, refused)
}

#[test]
fn many_small_packets_in_one_and_back_in_order() {
    let iptfs = Iptfs { max_delay: Duration::from_millis(5), ..Iptfs::default() };
    let mut near = engine(one(Direction::Seal, |sa| sa.iptfs = Some(iptfs.clone())), settings());
    let plains: Vec<Vec<u8>> = (0..2_000).map(|n| plain(n, 60 + n as usize % 700, 0, false)).collect();
    let (sealed, refused) = pass(&mut near, Direction::Seal, &plains);
    assert_eq!(refused, []);
    assert!(sealed.len() < plains.len() / 2, "{} aggregates", sealed.len());
    let sealed: Vec<Vec<u8>> = sealed.into_iter().map(|(_, packet)| packet).collect();

    let mut far = engine(one(Direction::Open, |sa| sa.iptfs = Some(iptfs)), settings());
    let (opened, refused) = pass(&mut far, Direction::Open, &sealed);
    assert_eq!(refused, []);
    assert!(opened.iter().map(|(_, packet)| packet).eq(&plains));
    assert_eq!(far.drops().total(), 0);
}

/// Bursts are taken packet by packet where SAs aggregate, so that all keep their order.
#[test]
fn bursts_are_aggregated_too() {
    let iptfs = Iptfs { max_delay: Duration::from_millis(5), ..Iptfs::default() };
    let mut near = engine(one(Direction::Seal, |sa| sa.iptfs = Some(iptfs.clone())), settings());
    let plains: Vec<Vec<u8>> = (0..64).map(|n| plain(n, 60 + n as usize, 0, false)).collect();
    let mut sealed = Vec::new();
    for burst in plains.chunks(16) {
        let mut jobs: Vec<Job> =
            burst.iter().map(|_| Job::new(near.buffer(), JobSpec::default(), 7)).collect();
        jobs.iter_mut().zip(burst).for_each(|(job, bytes)| assert!(job.packet.fill(bytes)));
        near.admit_burst(Direction::Seal, &mut jobs);
        assert!(jobs.is_empty());
    }
    near.set_time(Time::ZERO + Duration::from_millis(50));
    assert!(near.drain(Duration::from_millis(20_000)));
    sealed.extend(near.outputs().map(|output| output.packet.bytes().to_vec()));
    assert!(!sealed.is_empty() && sealed.len() < 16, "{} aggregates", sealed.len());
    assert!(near.free_buffers() > 0, "buffers of what was aggregated come back");
    let mut far = engine(one(Direction::Open, |sa| sa.iptfs = Some(iptfs)), settings());
    let (opened, refused) = pass(&mut far, Direction::Open, &sealed);
    assert_eq!(refused, []);
    assert!(opened.iter().map(|(_, packet)| packet).eq(&plains));
}

#[test]
fn a_lost_aggregate_takes_only_what_it_carried() {
    let iptfs = Iptfs { max_delay: Duration::from_millis(5), ..Iptfs::default() };
    let mut near = engine(one(Direction::Seal, |sa| sa.iptfs = Some(iptfs.clone())), settings());
    let plains: Vec<Vec<u8>> = (0..200).map(|n| plain(n, 300, 0, false)).collect();
    let (sealed, _) = pass(&mut near, Direction::Seal, &plains);
    let mut sealed: Vec<Vec<u8>> = sealed.into_iter().map(|(_, packet)| packet).collect();
    sealed.remove(10);
    let mut far = engine(one(Direction::Open, |sa| sa.iptfs = Some(iptfs)), settings());
    let (opened, _) = pass(&mut far, Direction::Open, &sealed);
    assert!((plains.len() - 7..plains.len()).contains(&opened.len()), "{}", opened.len());
    let mut rest = plains.iter();
    assert!(opened.iter().all(|(_, packet)| rest.any(|plain| plain == packet)), "in order, each once");
}

#[test]
fn fragments_of_esp_are_put_together_and_inner_fragments_pass() {
    for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
        let set = |sa: &mut SaConfig| sa.encapsulation = encapsulation;
        let mut near = engine(one(Direction::Seal, set), settings());
        let whole = plain(1, 3_000, 0, false);
        let mut room = vec![0; 1_500];
        let ip = Ip::parse(&whole).expect("sound");
        let mut inner = Fragments::new(&ip, 1_300, 0).expect("may be divided");
        let mut plains = vec![whole.clone()];
        while let Some(len) = inner.next_into(&mut room) {
            plains.push(room[..len].to_vec());
        }
        let (sealed, refused) = pass(&mut near, Direction::Seal, &plains);
        assert_eq!((sealed.len(), refused), (plains.len(), vec![]));
        let mut wire = Vec::new();
        for (_, packet) in &sealed {
            let mut divisible = packet.clone();
            divisible[6] &= !0x40;
            let (len, protocol) = (divisible.len() as u16, divisible[9]);
            forebay_wire::ipv4::rewrite(&mut divisible, 20, len, protocol);
            let ip = Ip::parse(&divisible).expect("sound");
            let mut outer = Fragments::new(&ip, 600, 0).expect("may be divided");
            let mut pieces = Vec::new();
            while let Some(len) = outer.next_into(&mut room) {
                pieces.push(room[..len].to_vec());
            }
            pieces.reverse();
            wire.append(&mut pieces);
        }
        assert!(wire.len() > 2 * sealed.len());
        let mut far = engine(one(Direction::Open, set), settings());
        let (opened, refused) = pass(&mut far, Direction::Open, &wire);
        assert_eq!(refused, []);
        assert!(opened.iter().map(|(_, packet)| packet).eq(&plains), "{encapsulation:?}");
        // In buffers of a link, which are too small for whole datagrams.
        let mut far = engine(one(Direction::Open, set), settings());
        let (opened, refused) =
            pass_in(&mut far, Direction::Open, &wire, |_, bytes| Packet::lent_copy(bytes));
        assert_eq!(refused, []);
        assert!(opened.iter().map(|(_, packet)| packet).eq(&plains), "{encapsulation:?}, lent");
    }
}

#[test]
fn a_fragment_that_never_comes_is_counted() {
    let mut near = engine(one(Direction::Seal, |_| {}), settings());
    let (sealed, _) = pass(&mut near, Direction::Seal, &[plain(1, 1_000, 0, false)]);
    let ip = Ip::parse(&sealed[0].1).expect("sound");
    let mut room = vec![0; 700];
    let len = Fragments::new(&ip, 600, 0).expect("may be divided").next_into(&mut room).expect("one");
    let mut far = engine(one(Direction::Open, |_| {}), settings());
    let (opened, refused) = pass(&mut far, Direction::Open, &[room[..len].to_vec()]);
    assert_eq!((opened.len(), refused.len()), (0, 0));
    assert_eq!(far.drops().get(DropReason::FragReasmTimeout), 1);
}

#[test]
fn too_big_for_the_path_is_divided_or_answered() {
    let mut near = engine(one(Direction::Seal, |sa| sa.mtu = Some(1_400)), settings());
    let plains = [plain(1, 3_000, 0, false), plain(2, 1_400, 0, true), plain(3, 200, 0, true)];
    let (sealed, refused) = pass(&mut near, Direction::Seal, &plains);
    assert_eq!(refused, [(1, DropReason::OutPathMtu)]);
    assert!(sealed.iter().all(|(_, packet)| packet.len() <= 1_400));
    assert_eq!(sealed.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [0, 0, 0, 2]);
    let answers: Vec<_> = near.answers();
    let [answer] = &answers[..] else { panic!("{} answers", answers.len()) };
    let message = &answer.message;
    // ICMP (1) from the gateway to the source; destination unreachable (3), fragmentation needed (4); the
    // longest packet that fits: 1400 - 20 - 8 - 8 - 16 = 1348, a multiple of four, less the trailer.
    assert_eq!((message[9], &message[12..20]), (1, &[10, 1, 0, 254, 10, 1, 0, 1][..]));
    assert_eq!((message[20], message[21], &message[26..28]), (3, 4, &1_346u16.to_be_bytes()[..]));
    assert_eq!((answer.tag, &message[28..48]), (1, &plains[1][..20]));

    let mut far = engine(one(Direction::Open, |_| {}), settings());
    let wire: Vec<Vec<u8>> = sealed.into_iter().map(|(_, packet)| packet).collect();
    let (opened, refused) = pass(&mut far, Direction::Open, &wire);
    assert_eq!((opened.len(), refused.len()), (4, 0));
}

#[test]
fn what_a_policy_lets_pass_keeps_its_place_among_all() {
    let mut sad = one(Direction::Seal, |_| {});
    let session = sad.iter().next().expect("one SA").0;
    let mut add = |name: &str, ts: &str, action| {
        let remote_ts = vec![ts.parse().expect("a selector")];
        let policy = Policy { remote_ts, ..Policy::new(name, Direction::Seal, action) };
        sad.add_policy(policy, PolicyPlace::Last).expect("a policy");
    };
    add("dns passes", "10.2.0.0/16[udp/53]", Action::Bypass);
    add("not that", "10.2.0.0/16[udp/99]", Action::Discard);
    add("all else", "10.2.0.0/16", Action::Protect(vec![session]));
    let mut near = engine(sad, settings());
    let plains: Vec<Vec<u8>> = (0..300)
        .map(|n| {
            let mut packet = plain(n, 100, 0, false);
            let port: u16 = [53, 80, 99][n as usize % 3];
            packet[22..24].copy_from_slice(&port.to_be_bytes());
            packet
        })
        .collect();
    let (out, refused) = pass(&mut near, Direction::Seal, &plains);
    assert!(refused.iter().map(|(tag, _)| *tag).eq((2..300).step_by(3)));
    assert!(refused.iter().all(|(_, reason)| *reason == DropReason::OutPolBlock));
    assert!(out.iter().map(|(tag, _)| *tag).eq((0..300).filter(|tag| tag % 3 != 2)));
    for (tag, packet) in out {
        assert_eq!(packet == plains[tag as usize], tag % 3 == 0, "packet {tag}");
    }
}

#[test]
fn an_sa_for_each_class_and_no_packet_lost() {
    let mut sad = Ipsec::default();
    let classes = [(0x1001, DscpSet::of([46])), (0x1002, DscpSet::ALL)];
    for (spi, dscp) in classes {
        let config = SaConfig { dscp, ..config(Direction::Seal, spi) };
        sad.add_outbound(config, IvRange::for_throwaway_key()).expect("an SA");
    }
    let mut dscp = DscpMap::one_class(1);
    dscp.set(46, 0);
    let scheduling = Scheduling {
        classes: vec![
            ClassConfig { input: 128, ..ClassConfig::new(Service::Strict) },
            ClassConfig { input: 128, window: 8, ..ClassConfig::new(Service::Weighted { weight: 1 }) },
        ],
        dscp,
        ..Scheduling::default()
    };
    let settings = Settings { scheduling, order: Order::PerSa, ..settings() };
    let mut near = engine(sad, settings);
    let plains: Vec<Vec<u8>> =
        (0..1_000).map(|n| plain(n, 200, if n % 4 == 0 { 46 << 2 } else { 0 }, false)).collect();
    let (sealed, refused) = pass(&mut near, Direction::Seal, &plains);
    assert_eq!((sealed.len(), refused.len()), (1_000, 0));
    for (spi, remainder) in [(0x1001u32, true), (0x1002, false)] {
        let tags: Vec<u64> = sealed
            .iter()
            .filter(|(_, packet)| packet[20..24] == spi.to_be_bytes())
            .map(|(tag, _)| *tag)
            .collect();
        assert!(tags.iter().all(|tag| (tag % 4 == 0) == remainder));
        assert!(tags.is_sorted(), "in order within the SA");
    }
}
