//! SAs within SAs whose paths are narrow and whose lives are short: a packet that is too big for any of them is
//! known to be at the first, while its source can be told.

use crate::pair::{ipv4, ipv6, with_header};
use crate::reference::{Gateway, ah, buffer, esp, keys, other_end};
use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::{
    DropReason, Event, EventKind, LEARNED_FOR, Mode, Next, Path, Prepared, Protocol, SaConfig,
};
use forebay_time::Time;
use forebay_wire::icmp::{self, TooBig};
use forebay_wire::{Fragments, Ip};

const HOSTS: [&str; 2] = ["10.1.0.1", "10.2.0.1"];
const GATES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const GATES_V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
const INNER: SessionId = SessionId(0);
const OUTER: SessionId = SessionId(1);

/// Gateways with one SA inside of the other.
fn pair(inner: &SaConfig, outer: &SaConfig) -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    for config in [inner, outer] {
        sealer.seals(config.clone(), keys(config.suite, 7));
        opener.opens(other_end(config), keys(config.suite, 7));
    }
    sealer.sad.nest(INNER, OUTER).expect("SAs that are there");
    opener.sad.nest(INNER, OUTER).expect("SAs that are there");
    (sealer, opener)
}

/// ESP in AH, and others, the inner one first; each in both modes where it can be.
fn nestings() -> Vec<[SaConfig; 2]> {
    use Mode::{Transport, Tunnel};
    vec![
        [esp("aes128gcm16", Tunnel, 0x1001, GATES), ah("sha256", Transport, 0x1002, GATES)],
        [esp("aes128gcm16", Tunnel, 0x1001, GATES_V6), ah("sha256", Transport, 0x1002, GATES_V6)],
        [esp("aes128gcm16", Tunnel, 0x1001, GATES), ah("sha512", Tunnel, 0x1002, GATES_V6)],
        [ah("sha1", Tunnel, 0x1001, GATES_V6), esp("aes128gcm16", Tunnel, 0x1002, GATES)],
        [ah("aes128gmac", Tunnel, 0x1001, GATES), esp("aes256gcm16", Transport, 0x1002, GATES)],
        [esp("aes128gcm16", Transport, 0x1001, HOSTS), ah("sha384", Transport, 0x1002, HOSTS)],
        [ah("sha256", Transport, 0x1001, HOSTS), esp("aes128gcm16", Transport, 0x1002, HOSTS)],
    ]
}

fn with_mtu(mut nesting: [SaConfig; 2], mtu: u16) -> [SaConfig; 2] {
    nesting[1].mtu = Some(mtu);
    nesting
}

fn whole(len: usize) -> Vec<u8> {
    with_header(ipv4(17, &vec![7; len - 20]), |header| header[6] = 0x40)
}

fn pieces(mut fragments: Fragments<'_>) -> Vec<Vec<u8>> {
    let mut room = vec![0; 65_535];
    std::iter::from_fn(|| fragments.next_into(&mut room).map(|len| room[..len].to_vec())).collect()
}

/// The inner SA's effective MTU is the longest packet that really goes through both and fits.
#[test]
fn the_effective_mtu_is_that_of_all_sas_on_the_way() {
    for nesting in nestings() {
        let (mut unlimited, _) = pair(&nesting[0], &nesting[1]);
        assert_eq!(unlimited.sad.effective_mtu(INNER, 20), None);
        let sealed: Vec<usize> = (1_200..1_500)
            .map(|len| unlimited.pass(Direction::Seal, &whole(len)).expect("sealed").len())
            .collect();
        for mtu in (1_400..1_416).chain([1_500]) {
            let [inner, outer] = with_mtu(nesting.clone(), mtu);
            let (mut sealer, mut opener) = pair(&inner, &outer);
            let tried = 1_200 + sealed.iter().rposition(|&len| len <= mtu.into()).expect("one fits");
            let told = usize::from(sealer.sad.effective_mtu(INNER, 20).expect("an MTU"));
            let exact = inner.mode == Mode::Tunnel || outer.protocol == Protocol::Ah;
            // Behind headers of unknown length the outer SA's padding is taken for as long as it may be.
            assert!(
                told == tried || !exact && (tried - 3..tried).contains(&told),
                "{told} {tried} {inner:?}"
            );
            let passed = sealer.pass(Direction::Seal, &whole(told)).expect("fits");
            assert!(passed.len() <= mtu.into());
            assert_eq!(opener.pass(Direction::Open, &passed).map(|opened| opened.len()), Ok(told));
            // Not a number is spent on what does not fit, and its source is told.
            let too_big = whole(told + 1);
            assert_eq!(sealer.pass(Direction::Seal, &too_big), Err(DropReason::OutPathMtu));
            assert_eq!(sealer.sad.iter().map(|(.., counters)| counters.packets).max(), Some(1));
            let mut room = [0; icmp::MAX_V4];
            let from = "10.1.0.254".parse().expect("an address");
            let len = sealer.sad.icmp_error(&too_big, from, &mut room).expect("an answer");
            assert_eq!(TooBig::parse(&room[..len]).map(|message| message.mtu), Some(told as u32));
        }
    }
}

#[test]
fn fragments_of_the_plain_packet_fit_all_sas() {
    for nesting in nestings().into_iter().filter(|[inner, _]| inner.mode == Mode::Tunnel) {
        let [inner, outer] = with_mtu(nesting, 1_400);
        let (mut sealer, mut opener) = pair(&inner, &outer);
        let plain = ipv4(17, &vec![7; 4_000]);
        assert_eq!(sealer.pass(Direction::Seal, &plain), Err(DropReason::OutPathMtu));
        let mut payload = Vec::<u8>::new();
        for piece in pieces(sealer.sad.divide(&plain).expect("may be divided")) {
            let sealed = sealer.pass(Direction::Seal, &piece).expect("fits");
            assert!(sealed.len() <= 1_400);
            assert_eq!(opener.pass(Direction::Open, &sealed).as_ref(), Ok(&piece));
            payload.extend(&piece[20..]);
        }
        assert_eq!(payload, plain[20..]);
    }
}

/// Seals for the inner SA alone.
fn seal_inner(gateway: &mut Gateway, plain: &[u8]) -> (Packet, JobSpec) {
    let (mut packet, mut spec) = (buffer(plain), JobSpec::default());
    assert_eq!(gateway.sad.prepare(Direction::Seal, &mut packet, &mut spec), Ok(Prepared::Job));
    let verdict = gateway.work(&spec, &mut packet);
    assert_eq!(gateway.sad.complete(&mut packet, &spec, verdict), Ok(Next::Again));
    (packet, spec)
}

fn finish(gateway: &mut Gateway, packet: &mut Packet, spec: &JobSpec) -> Vec<u8> {
    let verdict = gateway.work(spec, packet);
    assert_eq!(verdict, Verdict::Done);
    assert_eq!(gateway.sad.complete(packet, spec, verdict), Ok(Next::Deliver));
    packet.bytes().to_vec()
}

/// RFC 2473 7.1 in depth: 1,280 bytes of IPv6 pass, whatever is around them. Behind a tunnel SA the inner SA's
/// packet is divided, and each fragment goes through the outer one; one in transport mode takes it whole, and
/// what comes out of that is divided.
#[test]
fn what_must_pass_does() {
    for nesting in nestings().into_iter().filter(|[inner, _]| inner.mode == Mode::Tunnel) {
        let [inner, outer] = with_mtu(nesting, 1_280);
        let (mut sealer, mut opener) = pair(&inner, &outer);
        let plain = ipv6(17, &vec![3; 1_240]);
        let (mut packet, mut spec) = seal_inner(&mut sealer, &plain);
        let sealed = packet.bytes().to_vec();
        if outer.mode == Mode::Transport {
            assert!(sealer.sad.divide_sealed(INNER, &sealed).is_none(), "taken whole");
            sealer.sad.again(&mut Path::default(), &mut packet, &mut spec).expect("taken whole");
            let all = finish(&mut sealer, &mut packet, &spec);
            let fragments = pieces(sealer.sad.divide_sealed(OUTER, &all).expect("too long"));
            assert!(fragments.len() == 2 && fragments.iter().all(|piece| piece.len() <= 1_280));
            assert_eq!(opener.pass(Direction::Open, &all), Ok(plain));
        } else {
            let mut carried = 0;
            for piece in pieces(sealer.sad.divide_sealed(INNER, &sealed).expect("too long")) {
                let (mut packet, mut spec) = (buffer(&piece), JobSpec::default());
                sealer.sad.prepare_with(OUTER, &mut packet, &mut spec).expect("fits");
                let sealed = finish(&mut sealer, &mut packet, &spec);
                assert!(sealed.len() <= 1_280);
                // A fragment of what is for the inner SA is to be put together before it is opened again.
                let (mut packet, mut spec) = (buffer(&sealed), JobSpec::default());
                let prepared = opener.sad.prepare(Direction::Open, &mut packet, &mut spec);
                assert_eq!(prepared, Ok(Prepared::Job));
                let verdict = opener.work(&spec, &mut packet);
                assert_eq!(opener.sad.complete(&mut packet, &spec, verdict), Ok(Next::Again));
                assert_eq!(packet.bytes(), piece);
                let again = opener.sad.again(&mut Path::default(), &mut packet, &mut spec);
                assert_eq!(again, Err(DropReason::InFragment), "alone it is no use");
                carried += 1;
            }
            assert_eq!(carried, 2);
        }
    }
}

/// A message about a packet on the wire names the outer SA; the inner one follows, and both forget.
#[test]
fn what_the_outer_sa_learns_the_inner_one_follows() {
    for nesting in nestings() {
        let [inner, outer] = with_mtu(nesting, 1_500);
        let (mut sealer, _) = pair(&inner, &outer);
        let before = sealer.sad.effective_mtu(INNER, 20).expect("an MTU");
        let sealed = sealer.pass(Direction::Seal, &whole(before.into())).expect("fits as yet");
        let mut room = [0; icmp::MAX_V6];
        let from = match Ip::parse(&sealed).expect("a packet") {
            Ip::V4(_) => "203.0.113.9".parse().expect("an address"),
            Ip::V6(_) => "2001:db8:9::9".parse().expect("an address"),
        };
        let len = icmp::packet_too_big(&sealed, 1_400, from, &mut room).expect("a message");
        assert_eq!(sealer.sad.learn_path_mtu(&room[..len]), Some(OUTER));
        let learned = sealer.sad.effective_mtu(INNER, 20).expect("an MTU");
        assert!((before - 108..=before - 92).contains(&learned), "{before} {learned}");
        assert_eq!(sealer.pass(Direction::Seal, &whole(before.into())), Err(DropReason::OutPathMtu));
        sealer.sad.advance(Time(LEARNED_FOR.0 - 1));
        assert_eq!(sealer.sad.effective_mtu(INNER, 20), Some(learned));
        sealer.sad.advance(Time(LEARNED_FOR.0));
        assert_eq!(sealer.sad.effective_mtu(INNER, 20), Some(before));
    }
}

/// A chain of three, tied together in each order, and one SA inside that is narrower by itself.
#[test]
fn a_chain_follows_its_outermost_sa() {
    let chain = [
        esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES),
        ah("sha256", Mode::Transport, 0x1002, GATES),
        SaConfig { mtu: Some(1_500), ..ah("sha256", Mode::Tunnel, 0x1003, GATES_V6) },
    ];
    for order in [[(0, 1), (1, 2)], [(1, 2), (0, 1)]] {
        let mut sealer = Gateway::default();
        chain.iter().for_each(|config| _ = sealer.seals(config.clone(), keys(config.suite, 7)));
        for (inner, outer) in order {
            sealer.sad.nest(SessionId(inner), SessionId(outer)).expect("SAs that are there");
        }
        // 40 + 32 of AH over IPv6; 28 of AH; 20 + 8 + 8 + 16 of ESP, and padding to four with two of trailer.
        assert_eq!(sealer.sad.path_mtu(SessionId(1)), Some(1_428));
        assert_eq!(sealer.sad.path_mtu(SessionId(0)), Some(1_400));
        assert_eq!(sealer.sad.effective_mtu(SessionId(0), 20), Some(1_346));
        let sealed = sealer.pass(Direction::Seal, &whole(1_346)).expect("fits");
        assert_eq!(sealed.len(), 1_500);
        assert!(sealer.sad.lower_path_mtu(SessionId(2), 1_300));
        assert_eq!(sealer.sad.effective_mtu(SessionId(0), 20), Some(1_146));
        assert!(sealer.sad.lower_path_mtu(SessionId(0), 1_000));
        assert_eq!(sealer.sad.path_mtu(SessionId(0)), Some(1_000));
        assert_eq!(sealer.sad.path_mtu(SessionId(1)), Some(1_228));
    }
}

/// Each SA has its own life; a packet that the outer one does not take any more has cost the inner one's.
#[test]
fn lifetimes_of_nested_sas_end_each_for_itself() {
    for nesting in nestings() {
        for (inner_packets, outer_packets, passes) in
            [(Some(3), None, 3), (None, Some(2), 2), (Some(4), Some(2), 2)]
        {
            let [mut inner, mut outer] = nesting.clone();
            inner.lifetime.hard.packets = inner_packets;
            outer.lifetime.hard.packets = outer_packets;
            let (mut sealer, mut opener) = pair(&inner, &outer);
            let (mut free, _) = pair(&nesting[0], &nesting[1]);
            for n in 0..6 {
                let sealed = sealer.pass(Direction::Seal, &whole(100));
                assert_eq!(sealed.is_ok(), n < passes, "{n}");
                assert!(n < passes || sealed == Err(DropReason::OutStateExpired));
                let sealed = free.pass(Direction::Seal, &whole(100)).expect("without end");
                let opened = opener.pass(Direction::Open, &sealed);
                assert_eq!(opened.is_ok(), n < passes, "{n}");
                assert!(n < passes || opened == Err(DropReason::InStateExpired));
            }
            let ended = |packets: Option<u64>, session| {
                packets.filter(|&packets| packets <= 4).map(|_| Event { session, kind: EventKind::Hard })
            };
            let first = ended(outer_packets, OUTER).or(ended(inner_packets, INNER));
            assert_eq!(sealer.sad.events().next(), first);
            assert_eq!(opener.sad.events().next(), first);
        }
    }
}
