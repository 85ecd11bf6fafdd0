//! Packets that must not pass: every reason to drop that the path from SA to SA has, what is left of
//! the packet and of the SA afterwards, and damage to each byte.

use crate::support;

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SaKeys, SecretBytes, SessionId, Suite, Verdict};
use forebay_ipsec::{DropReason, Encapsulation, Ipsec, IvRange, Mode, Prepared, SaConfig};
use support::{Gateway, backends, config};

use DropReason::*;

const SPI: u32 = 0x1001;

const REASSEMBLY: &str =
    "the reassembler, before there is an ESP packet: crates/dataplane/reassembly/tests/reassembly.rs";
const IPTFS: &str =
    "SAs that aggregate: crates/dataplane/iptfs/tests/iptfs.rs and ipsec/tests/suite/iptfs_sad.rs";

/// Reasons that are given elsewhere, and by whom.
const ELSEWHERE: &[(DropReason, &str)] = &[
    (NotIp, "the reader of captures, before there is a packet"),
    (Snapped, "the reader of captures, before there is a packet"),
    (TooLong, "the reader of captures; and here for a packet that has been sealed too often, see below"),
    (QueueFull, "the engine, before the SA is looked up"),
    (Overtaken, "several cores: cores.rs"),
    (InStateNotNoted, "the gateway's workers"),
    (DupFrag, REASSEMBLY),
    (FragError, REASSEMBLY),
    (FragOverlap, REASSEMBLY),
    (FragReasmTimeout, REASSEMBLY),
    (FragLimit, REASSEMBLY),
    (InIptfsError, IPTFS),
    (InIptfsLate, IPTFS),
    (InIptfsIncomplete, IPTFS),
    (OutStateModeError, IPTFS),
    (OutNoQueueSpace, IPTFS),
    (InStateExpired, "an SA with a hard lifetime: crates/dataplane/ipsec/tests/suite/lifetime.rs"),
    (OutStateExpired, "an SA with a hard lifetime: crates/dataplane/ipsec/tests/suite/lifetime.rs"),
    (InPadding, "a peer with other habits of padding: crates/dataplane/ipsec/tests/suite/scenarios.rs"),
    (OutPathMtu, "an SA with a path MTU: crates/dataplane/ipsec/tests/suite/path_mtu.rs"),
    (InBufferError, "SAs within SAs: crates/dataplane/ipsec/tests/suite/nest.rs"),
    (InIcmpQuote, "ICMP errors: crates/dataplane/ipsec/tests/suite/icmp_errors.rs"),
    (InTmplMismatch, "policies: crates/dataplane/ipsec/tests/suite/policies.rs"),
    (InNoPols, "policies"),
    (InPolBlock, "policies"),
    (InFragmentPorts, "policies"),
    (OutNoPols, "policies"),
    (OutPolBlock, "policies"),
    (OutFragmentPorts, "policies"),
    (InStateInvalid, "removal of SAs: crates/dataplane/ipsec/tests/suite/removal.rs"),
    (OutStateInvalid, "removal of SAs"),
];

/// A sealer and an opener of one SA, on the portable backend.
struct Pair {
    sealer: Gateway,
    opener: Gateway,
    out: SessionId,
    into: SessionId,
}

impl Pair {
    fn new(suite: &str, change: impl Fn(&mut SaConfig)) -> Pair {
        Pair::with_ivs(suite, IvRange::for_throwaway_key(), change)
    }

    fn with_ivs(suite: &str, ivs: IvRange, change: impl Fn(&mut SaConfig)) -> Pair {
        let suite: Suite = suite.parse().expect("a proposal");
        let [near, far]: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
        let mut sealing = config(suite, Mode::Tunnel, SPI, [near, far]);
        change(&mut sealing);
        let mut opening = SaConfig { local: sealing.remote, remote: sealing.local, ..sealing.clone() };
        (opening.local_ts, opening.remote_ts) = (sealing.remote_ts.clone(), sealing.local_ts.clone());
        let [mut sealer, mut opener] = [(); 2].map(|()| Gateway::new(backends()[0]));
        let out = sealer.add_outbound(sealing, &keys(suite), ivs);
        let into = opener.add_inbound(opening, &keys(suite));
        Pair { sealer, opener, out, into }
    }

    fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, DropReason> {
        self.sealer.pass(Direction::Seal, plain)
    }

    fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, DropReason> {
        self.opener.pass(Direction::Open, sealed)
    }

    /// What becomes of a good packet that `change` has been at on its way.
    fn open_changed(&mut self, change: impl Fn(&mut Vec<u8>)) -> DropReason {
        let mut sealed = self.seal(&ipv4(253, &[7; 40])).expect("a good packet");
        change(&mut sealed);
        self.open(&sealed).expect_err("dropped")
    }
}

fn transport(config: &mut SaConfig) {
    config.mode = Mode::Transport;
}

fn udp(config: &mut SaConfig) {
    config.encapsulation = Encapsulation::Udp;
}

fn keys(suite: Suite) -> SaKeys {
    let key = |len: usize| SecretBytes::new((0..len).map(|at| (at * 41 + 5) as u8).collect());
    let keys =
        SaKeys::new(suite, &key(suite.cipher_key_len() + suite.salt_len()), &key(suite.integrity_key_len()));
    keys.expect("keys of the suite's lengths")
}

/// An IPv4 packet from 10.1.0.1 to 10.2.0.1, whose checksum is not verified.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    [&header[..], payload].concat()
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x60, 0, 0, 0, high, low, protocol, 64]);
    [&header[..], payload].concat()
}

/// A datagram to port 4500.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let [high, low] = (8 + payload.len() as u16).to_be_bytes();
    [&[0x11, 0x94, 0x11, 0x94, high, low, 0, 0], payload].concat()
}

fn set_len(packet: &mut Vec<u8>, len: usize) {
    packet.truncate(len);
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
}

/// Prepares a good packet and completes it with a verdict that no processor here gives.
fn complete_with(gateway: &mut Gateway, direction: Direction, bytes: &[u8], verdict: Verdict) -> DropReason {
    let (mut packet, mut spec) = (Packet::with_capacity(2_048), JobSpec::default());
    assert!(packet.fill(bytes));
    assert_eq!(gateway.sad.prepare(direction, &mut packet, &mut spec), Ok(Prepared::Job), "a good packet");
    gateway.sad.complete(&mut packet, &spec, verdict).expect_err("dropped")
}

/// Packets of one SA that must be dropped for `reason`, each in its own way; what became of them.
fn provoke(reason: DropReason) -> Vec<DropReason> {
    let gcm = || Pair::new("aes128gcm16", |_| {});
    let open = |bytes: &[u8]| gcm().open(bytes).expect_err("dropped");
    let seal = |bytes: &[u8]| gcm().seal(bytes).expect_err("dropped");
    match reason {
        InHdrError => vec![
            open(&[]),
            open(&[0x45; 19]),
            open(&ipv4(50, &[1; 7])),
            gcm().open_changed(|sealed| sealed[0] = 0x55),
            gcm().open_changed(|sealed| set_len(sealed, 20 + 8 + 8 + 1 + 16)),
            Pair::new("aes128-sha256", |_| {}).open_changed(|sealed| {
                let len = sealed.len() - 1;
                set_len(sealed, len);
            }),
            Pair::new("aes128gcm16", udp).open_changed(|sealed| sealed[25] = 200),
            open(&ipv6(43, &[50, 9, 0, 0, 0, 0, 0, 0])),
            open(&ipv6(0, &[0; 8 * 20])),
        ],
        InFragment => vec![
            gcm().open_changed(|sealed| sealed[6] = 0x20),
            gcm().open_changed(|sealed| sealed[7] = 1),
            Pair::new("aes128gcm16", udp).open_changed(|sealed| sealed[6] = 0x20),
            open(&ipv6(44, &[50, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4])),
        ],
        InNoIpsec => {
            vec![open(&ipv4(6, &[0; 20])), open(&ipv4(17, &[0, 53, 0, 53, 0, 8, 0, 0])), open(&ipv6(59, &[]))]
        }
        InIke => vec![open(&ipv4(17, &datagram(&[0, 0, 0, 0, 1, 2, 3])))],
        InNatKeepalive => vec![open(&ipv4(17, &datagram(&[0xff])))],
        InNoStates => vec![
            gcm().open_changed(|sealed| sealed[23] ^= 1),
            // Another destination: not this gateway's end of the tunnel.
            gcm().open_changed(|sealed| sealed[19] ^= 1),
        ],
        InStateMismatch => vec![
            // ESP in UDP for an SA without, and the other way round.
            {
                let sealed = Pair::new("aes128gcm16", udp).seal(&ipv4(253, &[])).expect("sealed");
                open(&sealed)
            },
            {
                let sealed = gcm().seal(&ipv4(253, &[])).expect("sealed");
                Pair::new("aes128gcm16", udp).open(&sealed).expect_err("dropped")
            },
            // Outside of the opener's selectors, in both modes.
            outside_selectors(|_| {}),
            outside_selectors(transport),
        ],
        InStateSeqError => vec![
            gcm().open_changed(|sealed| sealed[24..28].fill(0)),
            {
                let mut pair = gcm();
                let sealed = pair.seal(&ipv4(253, &[])).expect("sealed");
                pair.open(&sealed).expect("the first time");
                pair.open(&sealed).expect_err("dropped")
            },
            {
                let mut pair = gcm();
                pair.opener.sad.continue_after(pair.into, 65);
                pair.open_changed(|_| {})
            },
            settled_between(),
        ],
        InStateProtoError => vec![gcm().open_changed(|sealed| *sealed.last_mut().unwrap() ^= 0x80)],
        InStateModeError => vec![
            // Transport in a tunnel: next header 253, and one that lies.
            {
                let sealed =
                    Pair::new("aes128gcm16", transport).seal(&to_tunnel_end(253, &[1; 30])).expect("sealed");
                open(&sealed)
            },
            {
                let sealed = Pair::new("aes128gcm16", transport)
                    .seal(&to_tunnel_end(41, &ipv4(253, &[])))
                    .expect("sealed");
                open(&sealed)
            },
            {
                let sealed =
                    Pair::new("aes128gcm16", transport).seal(&to_tunnel_end(4, &[0x45; 19])).expect("sealed");
                open(&sealed)
            },
        ],
        // A congested router's mark, on a packet whose sender does not know such marks.
        InEcn => vec![gcm().open_changed(|sealed| sealed[1] |= 3)],
        InDummy => vec![
            {
                let sealed =
                    Pair::new("aes128gcm16", transport).seal(&to_tunnel_end(59, &[])).expect("sealed");
                open(&sealed)
            },
            {
                let sealed = Pair::new("aes128gcm16", transport).seal(&ipv4(59, &[9; 99])).expect("sealed");
                Pair::new("aes128gcm16", transport).open(&sealed).expect_err("dropped")
            },
        ],
        InError => {
            let sealed = gcm().seal(&ipv4(253, &[])).expect("sealed");
            [Verdict::Failed, Verdict::Pending]
                .map(|verdict| complete_with(&mut gcm().opener, Direction::Open, &sealed, verdict))
                .to_vec()
        }
        OutHdrError => vec![
            seal(&[]),
            seal(&[0x45; 19]),
            seal(&[0x70; 60]),
            seal(&ipv4(253, &[1])[..20]),
            Pair::new("aes128gcm16", transport).seal(&ipv6(0, &[1])).expect_err("dropped"),
        ],
        OutFragment => vec![
            {
                let mut first = ipv4(253, &[1; 8]);
                first[6] = 0x20;
                Pair::new("aes128gcm16", transport).seal(&first).expect_err("dropped")
            },
            {
                let last = ipv6(44, &[253, 0, 0, 8, 0, 0, 0, 0]);
                Pair::new("aes128gcm16", transport).seal(&last).expect_err("dropped")
            },
        ],
        OutNoStates => vec![
            Pair::new("aes128gcm16", |config| config.remote_ts = vec!["10.3.0.0/16".parse().unwrap()])
                .seal(&ipv4(253, &[]))
                .expect_err("dropped"),
            // Inbound SAs seal nothing.
            gcm().opener.pass(Direction::Seal, &ipv4(253, &[])).expect_err("dropped"),
        ],
        OutStateSeqError => vec![{
            let mut pair = gcm();
            pair.sealer.sad.continue_after(pair.out, u32::MAX.into());
            pair.seal(&ipv4(253, &[])).expect_err("dropped")
        }],
        OutStateIvError => vec![
            Pair::with_ivs("aes128gcm16", IvRange::share(5, 5, 0, 1), |_| {})
                .seal(&ipv4(253, &[]))
                .expect_err("dropped"),
        ],
        OutTooBig => vec![
            seal(&ipv4(253, &vec![0; 65_515])),
            Pair::new("aes128gcm16", transport).seal(&ipv4(253, &vec![0; 65_515])).expect_err("dropped"),
            Pair::new("aes128gcm16", transport).seal(&ipv6(253, &vec![0; 65_535])).expect_err("dropped"),
        ],
        OutError => [Verdict::Failed, Verdict::Pending, Verdict::AuthFailed]
            .map(|verdict| complete_with(&mut gcm().sealer, Direction::Seal, &ipv4(253, &[]), verdict))
            .to_vec(),
        _ => vec![],
    }
}

/// An IPv4 packet whose destination is the opener's end of the tunnel.
fn to_tunnel_end(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = ipv4(protocol, payload);
    packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    packet
}

fn outside_selectors(mode: fn(&mut SaConfig)) -> DropReason {
    let sealed = Pair::new("aes128gcm16", mode).seal(&ipv4(253, &[])).expect("sealed");
    let mut opener = Pair::new("aes128gcm16", |config| {
        mode(config);
        config.local_ts = vec!["10.9.0.0/16".parse().unwrap()];
    });
    opener.open(&sealed).expect_err("dropped")
}

/// Two copies of a packet that are in flight at once: the one that arrives second is dropped at its end.
fn settled_between() -> DropReason {
    let mut pair = Pair::new("aes128gcm16", |_| {});
    let sealed = pair.seal(&ipv4(253, &[])).expect("sealed");
    let (mut packet, mut spec) = (Packet::with_capacity(2_048), JobSpec::default());
    assert!(packet.fill(&sealed));
    let prepared = pair.opener.sad.prepare(Direction::Open, &mut packet, &mut spec);
    assert_eq!(prepared, Ok(Prepared::Job), "not seen before");
    pair.open(&sealed).expect("the copy that is first");
    pair.opener.sad.complete(&mut packet, &spec, Verdict::Done).expect_err("dropped")
}

#[test]
fn every_reason_is_given_for_what_it_says() {
    for &reason in DropReason::ALL {
        let given = provoke(reason);
        let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == reason);
        assert_eq!(given.is_empty(), elsewhere.is_some(), "{reason}: {elsewhere:?}");
        for (way, given) in given.iter().enumerate() {
            assert_eq!(*given, reason, "way {way} to {reason}");
        }
    }
}

/// A packet, and where it stands in its buffer.
fn state(packet: &Packet) -> (usize, Vec<u8>) {
    (packet.offset(), packet.bytes().to_vec())
}

/// Prepares a packet of 33 bytes to be sealed, which must fail and change nothing.
fn refused_unharmed(sad: &mut Ipsec) -> DropReason {
    let (mut packet, mut spec) = (Packet::with_capacity(64), JobSpec::default());
    assert!(packet.fill(&ipv4(253, &[1; 13])));
    let before = state(&packet);
    let reason = sad.prepare(Direction::Seal, &mut packet, &mut spec).expect_err("refused");
    assert_eq!(state(&packet), before, "{reason}");
    reason
}

#[test]
fn sequence_numbers_end_and_do_not_begin_again() {
    for (esn, last) in [(false, u64::from(u32::MAX)), (true, u64::MAX)] {
        for mode in [Mode::Tunnel, Mode::Transport] {
            let mut pair = Pair::new("aes128gcm16", |config| (config.esn, config.mode) = (esn, mode));
            let plain = ipv4(253, &[1; 13]);
            pair.sealer.sad.continue_after(pair.out, last - 2);
            pair.opener.sad.continue_after(pair.into, last - 2);
            for _ in 0..2 {
                let sealed = pair.seal(&plain).expect("one of the last two numbers");
                let opened = pair.open(&sealed).expect("a number that is new");
                assert_eq!(opened[20..], plain[20..]);
            }
            for _ in 0..3 {
                assert_eq!(refused_unharmed(&mut pair.sealer.sad), OutStateSeqError, "{mode:?}, ESN {esn}");
            }
        }
    }
}

/// ESN goes on where 32 bits end (RFC 4303 2.2.1).
#[test]
fn extended_numbers_cross_a_border_of_subspaces() {
    for suite in Suite::all() {
        let mut pair = Pair::new(&suite.to_string(), |config| config.esn = true);
        pair.sealer.sad.continue_after(pair.out, u64::from(u32::MAX) - 3);
        pair.opener.sad.continue_after(pair.into, u64::from(u32::MAX) - 3);
        let plain = ipv4(253, &[1; 13]);
        let sealed: Vec<Vec<u8>> = (0..8).map(|_| pair.seal(&plain).expect("sealed")).collect();
        // Out of order over the border, both ways.
        for n in [4, 0, 7, 3, 5, 1, 2, 6] {
            assert_eq!(pair.open(&sealed[n]).as_ref(), Ok(&plain), "{suite}, packet {n}");
        }
        for packet in &sealed {
            assert_eq!(pair.open(packet), Err(InStateSeqError), "{suite}");
        }
    }
}

#[test]
fn ivs_end_and_do_not_begin_again() {
    for suite in ["aes128gcm16", "aes128-sha256"] {
        for mode in [Mode::Tunnel, Mode::Transport] {
            let ivs = IvRange::share(1, 4, 0, 1);
            let mut pair = Pair::with_ivs(suite, ivs, |config| config.mode = mode);
            let plain = ipv4(253, &[1; 13]);
            let sealed: Vec<Vec<u8>> = (0..3).map(|_| pair.seal(&plain).expect("an IV each")).collect();
            for _ in 0..3 {
                assert_eq!(refused_unharmed(&mut pair.sealer.sad), OutStateIvError, "{suite} {mode:?}");
            }
            // No number was used up by those that were refused.
            assert_eq!(sealed[2][27], 3, "{suite} {mode:?}");
        }
    }
}

#[test]
fn the_longest_packets_fit_and_the_next_do_not() {
    let largest = |suite: &str, change: fn(&mut SaConfig), packet: fn(u8, &[u8]) -> Vec<u8>| {
        let mut pair = Pair::new(suite, change);
        let fits = |pair: &mut Pair, len: usize| match pair.seal(&packet(253, &vec![3; len])) {
            Ok(sealed) => {
                let payload = pair.open(&sealed).expect("what was sealed opens");
                let plain = packet(253, &vec![3; len]);
                // All but the checksum, which the plain packet lacks.
                assert!(payload[12..] == plain[12..] && payload[..10] == plain[..10], "{len} bytes");
                true
            }
            Err(reason) => {
                assert_eq!(reason, OutTooBig);
                false
            }
        };
        // Up to the longest payload that the plain packet may have.
        let most = if packet(0, &[]).len() == 20 { 65_515 } else { 65_535 };
        let found = (most - 120..=most).rev().find(|&len| fits(&mut pair, len));
        found.expect("all but the longest fit")
    };
    // IPv4 in all: 65535. Tunnel: 20 + 8 + 8 + 16 around text and trailer, of whole words.
    assert_eq!(largest("aes128gcm16", |_| {}, ipv4), 65_480 - 2 - 20);
    assert_eq!(largest("aes128gcm16", |_| {}, ipv6), 65_480 - 2 - 40);
    // Transport: no second header.
    assert_eq!(largest("aes128gcm16", transport, ipv4), 65_480 - 2);
    // IPv6 does not count its own header.
    assert_eq!(largest("aes128gcm16", transport, ipv6), 65_500 - 2);
}

/// Some day SAs may be nested; no packet has room for more than a few, and none may do harm.
#[test]
fn a_packet_without_room_left_is_refused_unharmed() {
    let ends: [[IpAddr; 2]; 2] = [
        ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()],
        ["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()],
    ];
    for suite in Suite::all() {
        for (ends, mode) in
            ends.into_iter().flat_map(|ends| [Mode::Tunnel, Mode::Transport].map(|mode| (ends, mode)))
        {
            let mut sad = Ipsec::default();
            let config = config(suite, mode, SPI, ends);
            sad.add_outbound(config, IvRange::for_throwaway_key()).expect("settings without fault");
            let (mut packet, mut spec) = (Packet::with_capacity(64), JobSpec::default());
            assert!(packet.fill(&ipv4(253, &[])));
            let mut layers = 0;
            let reason = loop {
                let before = state(&packet);
                match sad.prepare(Direction::Seal, &mut packet, &mut spec) {
                    Ok(_) => layers += 1,
                    Err(reason) => {
                        assert_eq!(state(&packet), before, "{suite} {mode:?}");
                        break reason;
                    }
                }
                assert!(layers < 64);
            };
            assert_eq!(reason, TooLong);
            assert!(layers >= 1, "{suite} {mode:?}");
        }
    }
}

/// The suites whose ICV tells damage.
fn with_integrity() -> impl Iterator<Item = Suite> {
    Suite::all().filter(|suite| suite.icv_len() > 0)
}

/// In each byte, behind the outer IP header, of packets in both modes, with and without UDP and ESN.
#[test]
fn damage_to_any_byte_drops_the_packet() {
    let mut damaged = 0;
    for suite in with_integrity() {
        for case in 0..8 {
            let mut pair = Pair::new(&suite.to_string(), |config| {
                config.mode = if case & 1 == 0 { Mode::Tunnel } else { Mode::Transport };
                config.encapsulation = if case & 2 == 0 { Encapsulation::None } else { Encapsulation::Udp };
                config.esn = case & 4 != 0;
            });
            let sealed = pair.seal(&ipv4(253, &[5; 21])).expect("sealed");
            let esp = if case & 2 == 0 { 20 } else { 28 };
            for at in 20..sealed.len() {
                // One of the ports is enough, and the checksum may be none (RFC 3948 2.1).
                if at < esp && matches!(at, 20..24 | 26 | 27) {
                    continue;
                }
                let mut broken = sealed.clone();
                broken[at] ^= 1 << (at % 8);
                let result = pair.open(&broken);
                let expected: &[DropReason] = match at.checked_sub(esp) {
                    None => &[InHdrError, InStateProtoError],
                    Some(0..4) => &[InNoStates, InIke],
                    Some(4..8) => &[InStateProtoError, InStateSeqError],
                    Some(_) => &[InStateProtoError],
                };
                let expected = result.as_ref().is_err_and(|reason| expected.contains(reason));
                assert!(expected, "{suite}, case {case}, byte {at}: {result:?}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 78 * 8 * 40, "{damaged}");
}

/// As it may come off a wire or out of a capture: the IP header says more than there is, or as much.
#[test]
fn a_packet_cut_short_anywhere_is_dropped() {
    for suite in with_integrity() {
        for change in [|_: &mut SaConfig| {}, transport, udp] {
            let mut pair = Pair::new(&suite.to_string(), change);
            let sealed = pair.seal(&ipv4(253, &[5; 21])).expect("sealed");
            for len in 0..sealed.len() {
                assert_eq!(pair.open(&sealed[..len]), Err(InHdrError), "{suite}, {len} bytes");
                if len >= 20 {
                    let mut short = sealed.clone();
                    set_len(&mut short, len);
                    let reason = pair.open(&short).expect_err("dropped");
                    assert!(
                        matches!(reason, InHdrError | InStateProtoError),
                        "{suite}, {len} bytes: {reason}"
                    );
                }
            }
            assert!(pair.open(&sealed).is_ok(), "{suite}: all that was refused has changed nothing");
        }
    }
}
