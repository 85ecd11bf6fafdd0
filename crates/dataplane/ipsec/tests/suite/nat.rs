//! Transport mode behind NATs: the checksums inside, which cover the addresses, are right where packets arrive (RFC 3948
//! 3.1.2).
//!
//! ```text
//! 10.9.0.7 -- NAT: 203.0.113.77 ----- 198.51.100.1 :NAT -- 192.0.2.2
//! ```

use crate::reference::{Gateway, esp, keys, other_end};
use forebay_crypto::Direction;
use forebay_ipsec::{Encapsulation, Mode, Originals, SaConfig};

/// Source and destination as the sender writes them, and as they arrive.
const SENT: [[u8; 4]; 2] = [[10, 9, 0, 7], [198, 51, 100, 1]];
const ARRIVED: [[u8; 4]; 2] = [[203, 0, 113, 77], [192, 0, 2, 2]];
const SENDER: [&str; 2] = ["10.9.0.7", "198.51.100.1"];
const RECEIVER: [&str; 2] = ["192.0.2.2", "203.0.113.77"];
const TCP: u8 = 6;
const UDP: u8 = 17;

fn folded(words: impl Iterator<Item = u16>) -> u16 {
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))
}

/// The sum over pseudo-header and payload, which is all ones for a checksum that is right.
fn sum(packet: &[u8]) -> u16 {
    let pseudo = [u16::from(packet[9]), (packet.len() - 20) as u16];
    folded(words(&packet[12..]).chain(pseudo))
}

/// An IPv4 packet between the addresses of `ends` with a payload whose checksum at `at` is right.
fn packet(ends: [[u8; 4]; 2], protocol: u8, len: u8, at: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + len, 0, 7, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(ends.concat());
    packet.extend((0..len).map(|n| n.wrapping_mul(151)));
    if protocol == UDP {
        packet[24..26].copy_from_slice(&u16::from(len).to_be_bytes());
    }
    packet[20 + at..22 + at].fill(0);
    let checksum = !sum(&packet);
    packet[20 + at..22 + at].copy_from_slice(&checksum.to_be_bytes());
    let header = !folded(words(&packet[..20]));
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet
}

/// What both NATs make of a packet on the wire.
fn translated(sealed: &[u8]) -> Vec<u8> {
    let mut packet = sealed.to_vec();
    packet[12..20].copy_from_slice(&ARRIVED.concat());
    packet[20..22].copy_from_slice(&1_024u16.to_be_bytes());
    packet[10..12].fill(0);
    let header = !folded(words(&packet[..20]));
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet
}

fn in_udp(proposal: &str, mode: Mode) -> SaConfig {
    SaConfig { encapsulation: Encapsulation::Udp, ..esp(proposal, mode, 0x1001, SENDER) }
}

/// What the receiver makes of `plain`, which the sender protects by `config` and the NATs translate.
fn received(config: &SaConfig, originals: Option<Originals>, plain: &[u8]) -> Vec<u8> {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    sealer.seals(config.clone(), keys(config.suite, 3));
    let [local, remote] = RECEIVER.map(|end| end.parse().expect("an address"));
    let receiving = SaConfig { local, remote, originals, ..other_end(config) };
    opener.opens(receiving, keys(config.suite, 3));
    let sealed = sealer.pass(Direction::Seal, plain).expect("a packet to protect");
    opener.pass(Direction::Open, &translated(&sealed)).expect("genuine")
}

fn originals() -> Originals {
    let [source, destination] = SENT.map(|address| address.into());
    Originals { source, destination }
}

#[test]
fn checksums_in_transport_mode_fit_the_addresses_that_a_nat_left() {
    let config = in_udp("aes128gcm16", Mode::Transport);
    for (protocol, least, at) in [(TCP, 20, 16), (UDP, 8, 6)] {
        for len in least..least + 60 {
            let (sent, expected) = (packet(SENT, protocol, len, at), packet(ARRIVED, protocol, len, at));
            assert_ne!(sent[20..], expected[20..]);
            for known in [None, Some(originals())] {
                assert_eq!(received(&config, known, &sent), expected, "{protocol} {len} {known:?}");
            }
        }
    }
    // Without a checksum there is nothing to repair.
    let mut without = packet(SENT, UDP, 30, 6);
    without[26..28].fill(0);
    assert_eq!(received(&config, None, &without)[20..], without[20..]);
}

/// By known addresses damage from before the sender's ESP stays visible; a new sum vouches for what the ICV does.
#[test]
fn only_known_addresses_keep_a_wrong_checksum_wrong() {
    let config = in_udp("aes128gcm16", Mode::Transport);
    let mut wrong = packet(SENT, TCP, 40, 16);
    wrong[50] ^= 1;
    assert_ne!(sum(&received(&config, Some(originals()), &wrong)), 0xffff);
    assert_eq!(sum(&received(&config, None, &wrong)), 0xffff);
}

/// Nothing vouches for what a suite without ICV delivers: its checksums are updated, never made.
#[test]
fn without_an_icv_no_checksum_is_computed() {
    let config = in_udp("aes128ctr", Mode::Transport);
    let key = keys(config.suite, 3);
    let (sent, expected) = (packet(SENT, TCP, 40, 16), packet(ARRIVED, TCP, 40, 16));
    let [local, remote] = RECEIVER.map(|end| end.parse().expect("an address"));
    for (known, payload) in [(None, &sent), (Some(originals()), &expected)] {
        // The processors of these tests have no such cipher: the text goes as it is.
        let mut opener = Gateway::default();
        opener.opens(SaConfig { local, remote, originals: known, ..other_end(&config) }, key.clone());
        let mut sealer = Gateway::default();
        sealer.seals(config.clone(), key.clone());
        let sealed = unenciphered(&mut sealer, Direction::Seal, &sent);
        let opened = unenciphered(&mut opener, Direction::Open, &translated(&sealed));
        assert_eq!(opened[20..], payload[20..], "{known:?}");
    }
}

fn unenciphered(gateway: &mut Gateway, direction: Direction, bytes: &[u8]) -> Vec<u8> {
    let (mut packet, mut spec) = (crate::reference::buffer(bytes), forebay_crypto::JobSpec::default());
    assert_eq!(gateway.sad.prepare(direction, &mut packet, &mut spec), Ok(forebay_ipsec::Prepared::Job));
    let done = gateway.sad.complete(&mut packet, &spec, forebay_crypto::Verdict::Done);
    assert_eq!(done, Ok(forebay_ipsec::Next::Deliver));
    packet.bytes().to_vec()
}

/// In tunnel mode a NAT changes the outer addresses only, and what is inside is not for the gateway to judge.
#[test]
fn tunnel_mode_leaves_the_packet_inside_as_it_was() {
    let mut wrong = packet(SENT, TCP, 40, 16);
    wrong[50] ^= 1;
    assert_eq!(received(&in_udp("aes128gcm16", Mode::Tunnel), Some(originals()), &wrong), wrong);
}

/// Packets outside of UDP have been through no NAT (RFC 3948 1).
#[test]
fn esp_without_udp_is_not_repaired() {
    let config = SaConfig { encapsulation: Encapsulation::None, ..in_udp("aes128gcm16", Mode::Transport) };
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    sealer.seals(config.clone(), keys(config.suite, 3));
    opener.opens(SaConfig { originals: Some(originals()), ..other_end(&config) }, keys(config.suite, 3));
    let mut wrong = packet(SENT, UDP, 40, 6);
    wrong[50] ^= 1;
    let sealed = sealer.pass(Direction::Seal, &wrong).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &sealed), Ok(wrong));
}

#[test]
fn original_addresses_are_of_the_sas_ip_version() {
    let source = "2001:db8::7".parse().expect("an address");
    let config = in_udp("aes128gcm16", Mode::Transport);
    let config = SaConfig { originals: Some(Originals { source, ..originals() }), ..config };
    assert_eq!(config.check(), Err(forebay_ipsec::SaConfigError::OriginalsFamily));
}
