//! Tunnel headers by their rules, of ESP and AH, in all four pairs of families: RFC 6040's tables typed in from its text,
//! RFC 4301 5.1.2 and 8.1 field by field, and each rule the same in a run as packet by packet.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::pair::{PROTOCOLS, Pair, buffer, ipv4, ipv6, slow_checksum, speak, with_header};
use forebay_crypto::{Direction, Job, JobSpec};
use forebay_ipsec::{
    DontFragment, DropReason, Dscp, Ecn, Encapsulation, FlowLabel, HopLimit, InnerDscp, Protocol, SaConfig,
    TunnelRules,
};

const V4: bool = false;
const V6: bool = true;

/// Protocol, inner and outer family.
fn kinds() -> impl Iterator<Item = (Protocol, bool, bool)> {
    let families = [(V4, V4), (V4, V6), (V6, V4), (V6, V6)];
    PROTOCOLS.into_iter().flat_map(move |protocol| families.map(|(inner, outer)| (protocol, inner, outer)))
}

/// A table's rows for each protocol.
fn in_both<T: Copy>(table: &[T]) -> impl Iterator<Item = (Protocol, T)> {
    PROTOCOLS.into_iter().flat_map(move |protocol| table.iter().map(move |&row| (protocol, row)))
}

fn pair(protocol: Protocol, outer: bool, change: impl FnOnce(&mut SaConfig)) -> Pair {
    Pair::new(|config| {
        speak(protocol, config);
        if outer == V6 {
            let end = |end: u16| IpAddr::from([0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, end]);
            (config.local, config.remote) = (end(1), end(2));
        }
        change(config);
    })
}

/// A packet of a family with this traffic class, hop limit, flow label or DF.
fn plain(family: bool, class: u8, hops: u8, label: u32, df: bool) -> Vec<u8> {
    if family == V4 {
        with_header(ipv4(17, &[0x12, 0x34, 0, 80, 0, 8, 0, 0]), |header| {
            header[1] = class;
            header[6] = if df { 0x40 } else { 0 };
            header[8] = hops;
        })
    } else {
        let mut packet = ipv6(17, &[0x12, 0x34, 0, 80, 0, 8, 0, 0]);
        set_class(&mut packet, class);
        packet[1] |= (label >> 16) as u8;
        packet[2..4].copy_from_slice(&(label as u16).to_be_bytes());
        packet[7] = hops;
        packet
    }
}

fn class(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { packet[1] } else { packet[0] << 4 | packet[1] >> 4 }
}

/// As a router on the way does it.
fn set_class(packet: &mut Vec<u8>, class: u8) {
    if packet[0] >> 4 == 4 {
        *packet = with_header(packet.clone(), |header| header[1] = class);
    } else {
        packet[0] = 0x60 | class >> 4;
        packet[1] = packet[1] & 0x0f | class << 4;
    }
}

fn label(packet: &[u8]) -> u32 {
    u32::from_be_bytes([0, packet[1] & 15, packet[2], packet[3]])
}

fn header_is_sound(packet: &[u8]) {
    if packet[0] >> 4 == 4 {
        assert_eq!(slow_checksum(&packet[..20]), 0, "{:02x?}", &packet[..20]);
    }
}

const NOT_ECT: u8 = 0b00;
const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// RFC 6040 figure 3: incoming, outer in compatibility mode, outer in normal mode.
const FIGURE_3: [[u8; 3]; 4] =
    [[NOT_ECT, NOT_ECT, NOT_ECT], [ECT_0, NOT_ECT, ECT_0], [ECT_1, NOT_ECT, ECT_1], [CE, NOT_ECT, CE]];

/// RFC 6040 figure 4, as it is printed: the columns are Not-ECT, ECT(0), ECT(1), CE outside.
const FIGURE_4: &str = "
    | Not-ECT | Not-ECT |Not-ECT(!!!)|Not-ECT(!!!)| <drop>(!!!)|
    |  ECT(0) |  ECT(0) | ECT(0)     | ECT(1)     |     CE     |
    |  ECT(1) |  ECT(1) | ECT(1) (!) | ECT(1)     |     CE     |
    |    CE   |      CE |     CE     |     CE(!!!)|     CE     |";

fn codepoint(cell: &str) -> Option<u8> {
    match cell.split(&[' ', '(']).next() {
        Some("Not-ECT") => Some(NOT_ECT),
        Some("ECT") if cell.starts_with("ECT(0)") => Some(ECT_0),
        Some("ECT") if cell.starts_with("ECT(1)") => Some(ECT_1),
        Some("CE") => Some(CE),
        Some("<drop>") => None,
        _ => panic!("`{cell}`"),
    }
}

#[test]
fn ecn_into_a_tunnel_as_in_figure_3() {
    for (protocol, inner, outer) in kinds() {
        for [incoming, compatibility, normal] in FIGURE_3 {
            for (mode, expected) in [(Ecn::Compatibility, compatibility), (Ecn::Normal, normal)] {
                let mut pair = pair(protocol, outer, |config| config.tunnel.ecn = mode);
                let plain = plain(inner, 0xb8 | incoming, 9, 0, false);
                let sealed = pair.seal(&plain).expect("sealed");
                assert_eq!(class(&sealed), 0xb8 | expected, "{incoming:02b}, {mode:?}");
                header_is_sound(&sealed);
                assert_eq!(pair.open(&sealed), Ok(plain), "the inner header is not changed");
            }
        }
    }
}

#[test]
fn ecn_out_of_a_tunnel_as_in_figure_4() {
    let columns = [NOT_ECT, ECT_0, ECT_1, CE];
    let mut combinations = 0;
    for row in FIGURE_4.lines().filter(|line| !line.is_empty()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let incoming = codepoint(cells[0]).expect("a codepoint");
        for (cell, mark) in cells[1..].iter().zip(columns) {
            for (protocol, inner, outer) in kinds() {
                let mut pair = pair(protocol, outer, |_| {});
                let plain = plain(inner, 0x28 | incoming, 9, 0x12345, true);
                let mut sealed = pair.seal(&plain).expect("sealed");
                let dscp = class(&sealed) & 0xfc;
                set_class(&mut sealed, dscp | mark);
                let opened = pair.open(&sealed);
                match codepoint(cell) {
                    None => assert_eq!(opened, Err(DropReason::InEcn)),
                    Some(expected) => {
                        let mut changed = plain.clone();
                        set_class(&mut changed, 0x28 | expected);
                        assert_eq!(opened, Ok(changed), "{incoming:02b} in {mark:02b}");
                        header_is_sound(&opened.expect("looked at"));
                        assert_eq!(
                            pair.opener.ecn_odd(pair.session),
                            u64::from(cell.contains("!")),
                            "{cell}"
                        );
                    }
                }
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 16 * 4 * 2);
}

/// A checksum that was wrong stays wrong, so that the receiver detects the error.
#[test]
fn a_changed_mark_does_not_mend_a_checksum() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, V4, |_| {});
        let mut plain = plain(V4, ECT_0, 9, 0, false);
        plain[10] ^= 0x11;
        let mut sealed = pair.seal(&plain).expect("sealed");
        set_class(&mut sealed, CE);
        let opened = pair.open(&sealed).expect("opened");
        assert_eq!(opened[1], CE);
        assert_ne!(slow_checksum(&opened[..20]), 0);
    }
}

#[test]
fn dscp_copied_or_set_outside_kept_or_taken_inside() {
    for (protocol, inner, outer) in kinds() {
        for dscp in 0..64u8 {
            for (rule, outside) in [(Dscp::Copy, dscp), (Dscp::Set(46), 46), (Dscp::Set(0), 0)] {
                for (inner_rule, on_the_way) in [(InnerDscp::Keep, 5), (InnerDscp::FromOuter, 5)] {
                    let mut pair = pair(protocol, outer, |config| {
                        (config.tunnel.dscp, config.tunnel.inner_dscp) = (rule, inner_rule);
                    });
                    let mut plain = plain(inner, dscp << 2 | ECT_0, 9, 0, false);
                    let mut sealed = pair.seal(&plain).expect("sealed");
                    assert_eq!(class(&sealed), outside << 2 | ECT_0);
                    set_class(&mut sealed, on_the_way << 2 | ECT_0);
                    if inner_rule == InnerDscp::FromOuter {
                        set_class(&mut plain, on_the_way << 2 | ECT_0);
                    }
                    assert_eq!(pair.open(&sealed), Ok(plain));
                }
            }
        }
    }
}

#[test]
fn df_copied_set_or_cleared() {
    // Inner family, inner DF, rule, outer DF (RFC 4301 8.1; IPv6 counts as never to be fragmented).
    let table = [
        (V4, false, DontFragment::Copy, false),
        (V4, true, DontFragment::Copy, true),
        (V4, false, DontFragment::Set, true),
        (V4, true, DontFragment::Set, true),
        (V4, false, DontFragment::Clear, false),
        (V4, true, DontFragment::Clear, false),
        (V6, true, DontFragment::Copy, true),
        (V6, true, DontFragment::Set, true),
        (V6, true, DontFragment::Clear, false),
    ];
    for (protocol, (inner, df, rule, expected)) in in_both(&table) {
        let mut pair = pair(protocol, V4, |config| config.tunnel.dont_fragment = rule);
        let plain = plain(inner, 0, 9, 0, df);
        let mut identifications = HashSet::new();
        for _ in 0..3 {
            let sealed = pair.seal(&plain).expect("sealed");
            assert_eq!(sealed[6] & 0x40 != 0, expected, "{df}, {rule:?}");
            assert_eq!((sealed[6] & 0xbf, sealed[7]), (0, 0));
            header_is_sound(&sealed);
            identifications.insert([sealed[4], sealed[5]]);
            assert_eq!(pair.open(&sealed).as_ref(), Ok(&plain));
        }
        // RFC 6864 4: what may be fragmented needs a number of its own, what may not needs none.
        assert_eq!(identifications.len(), if expected { 1 } else { 3 });
    }
}

#[test]
fn hop_limit_fixed_or_copied_and_never_changed_inside() {
    for (protocol, inner, outer) in kinds() {
        for (rule, hops, expected) in [
            (HopLimit::Fixed(64), 3, 64),
            (HopLimit::Fixed(255), 3, 255),
            (HopLimit::Copy, 1, 1),
            (HopLimit::Copy, 200, 200),
        ] {
            let mut pair = pair(protocol, outer, |config| config.tunnel.hop_limit = rule);
            let plain = plain(inner, 0, hops, 0, false);
            let sealed = pair.seal(&plain).expect("sealed");
            assert_eq!(sealed[if outer == V4 { 8 } else { 7 }], expected);
            header_is_sound(&sealed);
            assert_eq!(pair.open(&sealed), Ok(plain));
        }
    }
}

#[test]
fn flow_label_zero_fixed_or_copied() {
    for (rule, v4, v6) in [
        (FlowLabel::Zero, 0, 0),
        (FlowLabel::Fixed(0xfffff), 0xfffff, 0xfffff),
        (FlowLabel::Fixed(7), 7, 7),
        (FlowLabel::Copy, 0, 0xabcde),
    ] {
        for (protocol, (inner, expected)) in in_both(&[(V4, v4), (V6, v6)]) {
            let mut pair = pair(protocol, V6, |config| config.tunnel.flow_label = rule);
            let plain = plain(inner, 0xff, 9, 0xabcde, false);
            let sealed = pair.seal(&plain).expect("sealed");
            assert_eq!((label(&sealed), class(&sealed)), (expected, 0xff));
            assert_eq!(pair.open(&sealed), Ok(plain));
        }
    }
}

/// RFC 6437 2, 3 and RFC 6438 3: the same for a flow, another one for another flow, spread evenly, never zero.
#[test]
fn flow_label_from_the_inner_flow() {
    PROTOCOLS.into_iter().for_each(labels_follow_flows);
}

fn labels_follow_flows(protocol: Protocol) {
    let mut pair = pair(protocol, V6, |config| config.tunnel.flow_label = FlowLabel::Hash);
    let mut label_of = |plain: &[u8]| label(&pair.seal(plain).expect("sealed"));
    let flow = |port: u16, more: &[u8]| {
        let mut payload = vec![0x12, 0x34];
        payload.extend(port.to_be_bytes());
        payload.extend([0, 8 + more.len() as u8, 0, 0]);
        payload.extend(more);
        payload
    };
    for family in [V4, V6] {
        let build = |payload: &[u8]| if family == V4 { ipv4(17, payload) } else { ipv6(17, payload) };
        let mut buckets = [0u32; 16];
        let mut seen = HashSet::new();
        for port in 0..1_600 {
            let label = label_of(&build(&flow(port, b"")));
            assert_ne!(label, 0);
            assert_eq!(label, label_of(&build(&flow(port, b"more of it"))), "the same flow");
            buckets[label as usize >> 16] += 1;
            seen.insert(label);
        }
        // A hundred each, give or take six times the standard deviation.
        assert!(buckets.iter().all(|&count| (40..160).contains(&count)), "{buckets:?}");
        // Of 1,600 among a million 1.2 pairs are alike in the mean.
        assert!(seen.len() > 1_590, "{}", seen.len());
    }
    // Fragments: the later ones have no ports, so the first must not count its own.
    let fragment = |offset: u8, payload: &[u8]| {
        with_header(ipv4(17, payload), |header| (header[6], header[7]) = (0x20, offset))
    };
    assert_eq!(label_of(&fragment(0, &flow(80, b""))), label_of(&fragment(1, &[9; 8])));
    // A host's own label stands for its flow, whatever the ports.
    let labelled = |label: u8, port| {
        let mut packet = ipv6(17, &flow(port, b""));
        packet[3] = label;
        packet
    };
    assert_eq!(label_of(&labelled(5, 1)), label_of(&labelled(5, 2)));
    assert_ne!(label_of(&labelled(5, 1)), label_of(&labelled(6, 1)));
}

/// What a router may change, it may change: TTL, DSCP, flow label, DF (RFC 4302 3.3.3.1).
#[test]
fn what_changes_on_the_way_is_not_covered_by_ah() {
    for (protocol, inner, outer) in kinds() {
        let mut pair = pair(protocol, outer, |_| {});
        let plain = plain(inner, ECT_0, 9, 0, false);
        for change in 0..3u8 {
            let mut sealed = pair.seal(&plain).expect("sealed");
            set_class(&mut sealed, 0x74 | ECT_0);
            if outer == V4 {
                sealed = with_header(sealed, |header| (header[8], header[6]) = (1 + change, 0x40));
            } else {
                (sealed[2], sealed[3], sealed[7]) = (change, 0x55, 1 + change);
            }
            assert_eq!(pair.open(&sealed).as_ref(), Ok(&plain));
            // And nothing else: neither address, nor length, nor identification, which ESP leaves open.
            let mut sealed = pair.seal(&plain).expect("sealed");
            let at = if outer == V4 { 12 + usize::from(change) } else { 8 + usize::from(change) };
            sealed[at] ^= 1;
            assert_eq!(pair.open(&sealed).is_ok(), protocol == Protocol::Esp);
        }
    }
}

fn every_rule() -> Vec<TunnelRules> {
    let mut all = Vec::new();
    for dscp in [Dscp::Copy, Dscp::Set(46)] {
        for ecn in [Ecn::Normal, Ecn::Compatibility] {
            for dont_fragment in [DontFragment::Copy, DontFragment::Set, DontFragment::Clear] {
                for flow_label in
                    [FlowLabel::Zero, FlowLabel::Fixed(0x54321), FlowLabel::Copy, FlowLabel::Hash]
                {
                    for hop_limit in [HopLimit::Fixed(17), HopLimit::Copy] {
                        let inner_dscp = InnerDscp::Keep;
                        all.push(TunnelRules { dscp, ecn, dont_fragment, flow_label, hop_limit, inner_dscp });
                    }
                }
            }
        }
    }
    all
}

/// The fast path makes the bytes of the slow one under each combination of rules, TFC padding included.
#[test]
fn a_run_follows_every_rule() {
    for rules in every_rule() {
        for outer in [V4, V6] {
            for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
                for tfc in [forebay_ipsec::Tfc::None, forebay_ipsec::Tfc::PadTo(44)] {
                    let settings = |config: &mut SaConfig| {
                        (config.tunnel, config.encapsulation, config.tfc) = (rules, encapsulation, tfc);
                    };
                    let (mut slow, mut fast) =
                        (pair(Protocol::Esp, outer, settings), pair(Protocol::Esp, outer, settings));
                    let packets: Vec<Vec<u8>> = (0..6u8)
                        .map(|n| {
                            let payload: Vec<u8> = (0..8 + 9 * n).map(|at| at ^ n).collect();
                            with_header(ipv4(17, &payload), |header| {
                                header[1] = 0x91 ^ (0x23 * n);
                                header[6] = if n % 3 == 1 { 0x40 } else { 0 };
                                header[8] = 100 + n;
                            })
                        })
                        .collect();
                    let mut jobs: Vec<Job> = packets
                        .iter()
                        .map(|packet| Job::new(buffer(packet), JobSpec::default(), 0))
                        .collect();
                    fast.sealer.prepare_burst(Direction::Seal, &mut jobs).expect("prepared");
                    for (job, plain) in jobs.into_iter().zip(&packets) {
                        let spec = job.spec;
                        let sealed = slow.seal(plain).expect("sealed");
                        assert_eq!(fast.finish_seal(job.packet, &spec), sealed, "{rules:?}");
                        let opened = slow.open(&sealed).expect("opened");
                        assert_eq!(&opened[2..], &plain[2..], "{rules:?}");
                    }
                }
            }
        }
    }
}
