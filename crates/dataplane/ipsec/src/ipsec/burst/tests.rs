//! Packets of a flow are worked on in runs, and whole ones: a run that ended early would change no packet, so that no
//! other test would notice. What runs do to packets is in `tests/suite/segment_run.rs`.

use forebay_crypto::{JobSpec, Packet, SessionId, Verdict};
use forebay_tunnel::{FlowLabel, TunnelRules};

use super::*;
use forebay_wire::Family;

use crate::iv::IvRange;
use crate::sa::{Encapsulation, SaConfig, Spi, Tfc, UdpPorts};

const SESSION: SessionId = SessionId(0);
/// AEAD and not, IVs of 8, 16 and no bytes.
const SUITES: [&str; 4] = ["aes128gcm16", "aes128-sha256", "aes128ctr-sha512", "null-sha256"];

/// A packet of UDP that starts at `offset` of its buffer.
fn packet(version: Family, payload: usize, offset: usize) -> Packet {
    let mut bytes = match version {
        Family::V4 => {
            let [high, low] = (20 + payload as u16).to_be_bytes();
            vec![0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]
        }
        Family::V6 => {
            let [high, low] = (payload as u16).to_be_bytes();
            [&[0x60, 0, 0, 0, high, low, 17, 64][..], &[0xfd; 32]].concat()
        }
    };
    bytes.extend((0..payload).map(|n| n as u8));
    let mut packet = Packet::with_capacity(2_048);
    assert!(packet.fill(&bytes));
    let (start, end) = (packet.offset(), packet.offset() + bytes.len());
    packet.buffer_mut().copy_within(start..end, start + offset);
    packet.set_bounds(start + offset, end + offset);
    packet
}

const VERSIONS: [Family; 2] = [Family::V4, Family::V6];

/// Eight packets: alike, of two lengths in turn, or in two places of their buffers in turn.
fn flows() -> Vec<Vec<Job>> {
    let pairs = [[(100, 0), (100, 0)], [(100, 0), (1_200, 0)], [(64, 0), (64, 16)], [(0, 0), (1, 0)]];
    let flow = |version: Family, two: [(usize, usize); 2]| {
        let job = |(payload, offset)| Job::new(packet(version, payload, offset), JobSpec::default(), 0);
        two.into_iter().cycle().take(8).map(job).collect()
    };
    VERSIONS.into_iter().flat_map(|version| pairs.map(|two| flow(version, two))).collect()
}

fn over_ipv6(config: &mut SaConfig) {
    [config.local, config.remote] =
        ["2001:db8::1", "2001:db8::2"].map(|end| end.parse().expect("an address"));
}

/// Two ends of an SA that `change` has changed at both.
fn gateways(change: impl Fn(&mut SaConfig)) -> (Ipsec, Ipsec) {
    let [local, remote] = ["192.0.2.1", "192.0.2.2"].map(|end| end.parse().expect("an address"));
    let suite = SUITES[0].parse().expect("a proposal");
    let mut config = SaConfig::new("", Spi::new(0x1001).expect("not zero"), suite, local, remote);
    change(&mut config);
    let (mut sealer, mut opener) = (Ipsec::default(), Ipsec::default());
    assert_eq!(sealer.add_outbound(config.clone(), IvRange::for_throwaway_key()), Ok(SESSION));
    std::mem::swap(&mut config.local, &mut config.remote);
    std::mem::swap(&mut config.udp.local, &mut config.udp.remote);
    assert_eq!(opener.add_inbound(config), Ok(SESSION));
    (sealer, opener)
}

fn done(jobs: &mut [Job]) {
    jobs.iter_mut().for_each(|job| job.verdict = Verdict::Done);
}

/// Seals a flow; the first packet by itself, all others have to be one run.
fn seal(sealer: &mut Ipsec, jobs: &mut [Job]) {
    let (first, rest) = jobs.split_first_mut().expect("a packet");
    let addresses = &Addresses::of_packet(first.packet.bytes()).expect("a flow");
    assert_eq!(sealer.prepare(Direction::Seal, &mut first.packet, &mut first.spec), Ok(Prepared::Job));
    assert_eq!(sealer.spd.usual(addresses), Some(SESSION));
    assert_eq!(sealer.sad.prepare_outbound_run(SESSION, rest, addresses), rest.len());
    assert_eq!(sealer.sad.in_flight(SESSION), jobs.len() as u32);
    done(jobs);
    let policies = sealer.spd.state();
    assert_eq!(sealer.sad.complete_run(jobs, policies), jobs.len());
    assert_eq!(sealer.sad.in_flight(SESSION), 0);
}

/// Opens what was sealed likewise. The processor does nothing, so the text is as plain as it was.
fn open(opener: &mut Ipsec, jobs: &mut [Job]) {
    let sealed: usize = jobs.iter().map(|job| job.packet.len()).sum();
    let (first, rest) = jobs.split_first_mut().expect("a packet");
    assert_eq!(opener.prepare(Direction::Open, &mut first.packet, &mut first.spec), Ok(Prepared::Job));
    assert_eq!(opener.sad.prepare_inbound_run(SESSION, first.packet.bytes(), rest), rest.len());
    assert_eq!(opener.sad.in_flight(SESSION), 1 + rest.len() as u32);
    assert_eq!(opener.complete(&mut first.packet, &first.spec, Verdict::Done), Ok(Next::Deliver));
    done(rest);
    let policies = opener.spd.state();
    assert_eq!(opener.sad.complete_run(rest, policies), rest.len());
    assert_eq!(opener.sad.in_flight(SESSION), 0);
    let counters = opener.sad.counters(SESSION).expect("an SA");
    assert_eq!((counters.packets as usize % jobs.len(), counters.bytes > 0), (0, sealed > 0));
}

#[test]
fn a_flow_is_sealed_and_opened_in_runs() {
    for (suite, bits) in SUITES.into_iter().flat_map(|suite| (0..16).map(move |bits| (suite, bits))) {
        let [esn, check_padding, udp, ipv6] = [1, 2, 4, 8].map(|bit| bits & bit > 0);
        let encapsulation = if udp { Encapsulation::Udp } else { Encapsulation::None };
        let (mut sealer, mut opener) = gateways(|config| {
            config.suite = suite.parse().expect("a proposal");
            (config.encapsulation, config.esn) = (encapsulation, esn);
            config.udp = UdpPorts { local: 4500, remote: 1234 };
            config.check_padding = check_padding;
            if ipv6 {
                over_ipv6(config);
            }
        });
        for mut jobs in flows() {
            let plain: Vec<Vec<u8>> = jobs.iter().map(|job| job.packet.bytes().to_vec()).collect();
            seal(&mut sealer, &mut jobs);
            open(&mut opener, &mut jobs);
            let opened: Vec<Vec<u8>> = jobs.iter().map(|job| job.packet.bytes().to_vec()).collect();
            assert_eq!(opened, plain, "{suite}, {encapsulation:?}, over IPv6: {ipv6}");
        }
    }
}

/// Outer IPv6, padding for confidentiality and rules for flow labels take no packet out of a run.
#[test]
fn a_flow_is_sealed_in_runs_whatever_the_tunnel_header() {
    let padded = |config: &mut SaConfig| config.tfc = Tfc::PadTo(1_300);
    let labelled = |config: &mut SaConfig| {
        config.tunnel = TunnelRules { flow_label: FlowLabel::Fixed(0x12345), ..TunnelRules::default() };
    };
    for (ipv6, tfc, udp) in (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0)) {
        let (mut sealer, _) = gateways(|config| {
            if ipv6 {
                over_ipv6(config);
                labelled(config);
            }
            if tfc {
                padded(config);
            }
            config.encapsulation = if udp { Encapsulation::Udp } else { Encapsulation::None };
        });
        flows().iter_mut().for_each(|jobs| seal(&mut sealer, jobs));
    }
}

/// The run of one burst goes on with the next, from its first packet on.
#[test]
fn a_run_goes_on_with_the_next_burst() {
    let (mut sealer, _) = gateways(|_| {});
    for mut jobs in flows() {
        let addresses = &Addresses::of_packet(jobs[0].packet.bytes()).expect("a flow");
        assert_eq!(sealer.prepare_burst(Direction::Seal, &mut jobs), Ok(()));
        assert_eq!(sealer.spd.usual(addresses), Some(SESSION));
        done(&mut jobs);
        assert_eq!(sealer.complete_burst(&mut jobs), Ok(()));
    }
}
