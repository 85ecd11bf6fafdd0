//! Every suite x mode x families x ESN x UDP encapsulation x length, sealed on every backend and opened
//! on another.
//!
//! A round trip shows only that we agree with ourselves: whether that is ESP is for `esp_vectors.rs` and
//! for scapy and tshark (`tests/interop`) to say. What is not left to ourselves here: lengths, checksums,
//! sequence numbers and IVs, which are worked out anew from the bytes that come out.

use crate::support;

use std::collections::HashSet;
use std::net::IpAddr;

use forebay_crypto::{Direction, SaKeys, SecretBytes, SessionId, Suite};
use forebay_ipsec::{Encapsulation, Ipsec, IvRange, Mode, SaConfig};
use forebay_wire::Family;
use support::{Gateway, backends, config};

const SPI: u32 = 0x1001;
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];
/// Lengths of plain packets; those under a header's stand for that many bytes behind the header.
const LENGTHS: [usize; 9] = [0, 1, 63, 64, 65, 66, 67, 576, 1_400];

#[derive(Clone, Copy, Debug)]
struct Cell {
    suite: Suite,
    mode: Mode,
    outer: Family,
    inner: Family,
    esn: bool,
    encapsulation: Encapsulation,
}

impl Cell {
    fn all() -> Vec<Cell> {
        let mut all = Vec::new();
        for suite in Suite::all() {
            for mode in [Mode::Tunnel, Mode::Transport] {
                for (outer, inner) in FAMILIES.into_iter().flat_map(|o| FAMILIES.map(|i| (o, i))) {
                    // The header that stays in front is the packet's own.
                    if mode == Mode::Transport && outer != inner {
                        continue;
                    }
                    for esn in [false, true] {
                        for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
                            all.push(Cell { suite, mode, outer, inner, esn, encapsulation });
                        }
                    }
                }
            }
        }
        all
    }

    fn config(&self, direction: Direction) -> SaConfig {
        let [near, far] = ends(self.outer);
        let ends = if direction == Direction::Seal { [near, far] } else { [far, near] };
        let config = config(self.suite, self.mode, SPI, ends);
        SaConfig { esn: self.esn, encapsulation: self.encapsulation, ..config }
    }

    /// Puts the cell's SA, alone, into `gateway`.
    fn enter(&self, gateway: &mut Gateway, direction: Direction) -> SessionId {
        gateway.sad = Ipsec::default();
        let (config, keys) = (self.config(direction), keys(self.suite));
        match direction {
            Direction::Seal => gateway.add_outbound(config, &keys, IvRange::for_throwaway_key()),
            Direction::Open => gateway.add_inbound(config, &keys),
        }
    }

    fn udp_len(&self) -> usize {
        if self.encapsulation == Encapsulation::Udp { 8 } else { 0 }
    }
}

/// Keys that differ in every byte.
fn keys(suite: Suite) -> SaKeys {
    let key = |len: usize| SecretBytes::new((0..len).map(|at| (at * 37 + 11) as u8).collect());
    let keys =
        SaKeys::new(suite, &key(suite.cipher_key_len() + suite.salt_len()), &key(suite.integrity_key_len()));
    keys.expect("keys of the suite's lengths")
}

fn ends(family: Family) -> [IpAddr; 2] {
    let read = |text: &str| text.parse().expect("an address");
    match family {
        Family::V4 => [read("192.0.2.1"), read("198.51.100.2")],
        Family::V6 => [read("2001:db8:1::1"), read("2001:db8:2::2")],
    }
}

/// A packet of `len` bytes, whose every byte depends on `number`.
fn plain(family: Family, len: usize, number: usize) -> Vec<u8> {
    let header = family.header_len();
    let len = if len < header { header + len } else { len };
    let mut packet: Vec<u8> = (0..len).map(|at| (at * 7 + number * 31) as u8).collect();
    match family {
        Family::V4 => {
            packet[0] = 0x45;
            packet[1] = 0xb8 | number as u8 & 3;
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[6..8].copy_from_slice(if number.is_multiple_of(2) { &[0x40, 0] } else { &[0, 0] });
            packet[9] = 253;
            packet[10..12].fill(0);
            let checksum = checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Family::V6 => {
            packet[0] = 0x6b;
            packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            packet[6] = 253;
        }
    }
    packet
}

/// RFC 1071, sixteen bits at a time.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

fn word16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Checks the headers of a sealed packet whose IP header, extensions included, has `header_len` bytes;
/// returns sequence number and IV.
fn check_headers(cell: &Cell, sealed: &[u8], header_len: usize, payload_len: usize) -> (u32, Vec<u8>) {
    let udp = cell.udp_len();
    let protocol = if udp > 0 { 17 } else { 50 };
    match cell.outer {
        Family::V4 => {
            assert_eq!(word16(sealed, 2), sealed.len(), "total length");
            assert_eq!(checksum(&sealed[..header_len]), 0, "header checksum");
            assert_eq!(sealed[9], protocol);
        }
        Family::V6 => {
            assert_eq!(word16(sealed, 4), sealed.len() - 40, "payload length");
            assert!(header_len > 40 || sealed[6] == protocol);
        }
    }
    if udp > 0 {
        let datagram = &sealed[header_len..];
        assert_eq!((word16(datagram, 0), word16(datagram, 2)), (4_500, 4_500), "ports");
        assert_eq!(word16(datagram, 4), datagram.len(), "length of the datagram");
        match cell.outer {
            Family::V4 => assert_eq!(word16(datagram, 6), 0, "none over IPv4 (RFC 3948 2.1)"),
            Family::V6 => {
                let pseudo =
                    [&sealed[8..40], &(datagram.len() as u32).to_be_bytes(), &[0, 0, 0, 17], datagram]
                        .concat();
                assert_eq!(checksum(&pseudo), 0, "UDP checksum");
                assert_ne!(word16(datagram, 6), 0, "mandatory over IPv6");
            }
        }
    }
    let esp = &sealed[header_len + udp..];
    let suite = cell.suite;
    let text = esp.len() - 8 - suite.iv_len() - suite.icv_len();
    assert_eq!(text % suite.align(), 0, "alignment");
    assert!(
        (payload_len + 2..payload_len + 2 + suite.align()).contains(&text),
        "no more padding than needed"
    );
    assert_eq!(u32::from_be_bytes([esp[0], esp[1], esp[2], esp[3]]), SPI);
    (u32::from_be_bytes([esp[4], esp[5], esp[6], esp[7]]), esp[8..8 + suite.iv_len()].to_vec())
}

/// What a tunnel header is made of (RFC 4301 5.1.2).
fn check_tunnel_header(cell: &Cell, sealed: &[u8], inner: &[u8]) {
    let class = |packet: &[u8]| match packet[0] >> 4 {
        4 => packet[1],
        _ => packet[0] << 4 | packet[1] >> 4,
    };
    assert_eq!(class(sealed), class(inner), "DSCP and ECN");
    let [near, far] = ends(cell.outer);
    let ip = forebay_wire::Ip::parse(sealed).expect("an IP packet");
    assert_eq!([ip.source(), ip.destination()], [near, far]);
    match cell.outer {
        Family::V4 => {
            let fragmentable = cell.inner == Family::V4 && inner[6] & 0x40 == 0;
            assert_eq!((sealed[0], sealed[6] & 0x40 == 0, sealed[8]), (0x45, fragmentable, 64));
            assert_eq!((sealed[6] & 0xbf, sealed[7]), (0, 0), "no fragment");
        }
        Family::V6 => assert_eq!(sealed[7], 64),
    }
}

#[test]
fn every_cell_goes_round_between_any_two_backends() {
    let backends = backends();
    let suites: Vec<Vec<Suite>> =
        backends.iter().map(|backend| (backend.make)().capabilities().suites.clone()).collect();
    let mut sealers: Vec<Gateway> = backends.iter().map(|&backend| Gateway::new(backend)).collect();
    let mut openers: Vec<Gateway> = backends.iter().map(|&backend| Gateway::new(backend)).collect();
    let (mut cells, mut packets) = (0, 0);
    for (number, cell) in Cell::all().into_iter().enumerate() {
        let plain: Vec<Vec<u8>> =
            LENGTHS.into_iter().enumerate().map(|(n, len)| plain(cell.inner, len, n + number)).collect();
        let mut first: Option<Vec<Vec<u8>>> = None;
        let able: Vec<usize> = (0..backends.len()).filter(|&n| suites[n].contains(&cell.suite)).collect();
        for (at, &n) in able.iter().enumerate() {
            let sealer = &mut sealers[n];
            cell.enter(sealer, Direction::Seal);
            let sealed: Vec<Vec<u8>> = sealer
                .pass_all(Direction::Seal, &plain)
                .into_iter()
                .map(|sealed| sealed.expect("sealed"))
                .collect();
            // Same keys, numbers, IVs: every processor must make the same bytes of them.
            assert_eq!(
                first.get_or_insert_with(|| sealed.clone()),
                &sealed,
                "{cell:?} on {}",
                backends[n].name
            );

            let other = able[(at + 1) % able.len()];
            let opener = &mut openers[other];
            cell.enter(opener, Direction::Open);
            let opened = opener.pass_all(Direction::Open, &sealed);
            for (opened, plain) in opened.iter().zip(&plain) {
                assert_eq!(
                    opened.as_ref(),
                    Ok(plain),
                    "{cell:?} from {} to {}",
                    backends[n].name,
                    backends[other].name
                );
            }
            packets += plain.len();
        }
        let mut ivs = HashSet::new();
        for (n, (sealed, plain)) in first.iter().flatten().zip(&plain).enumerate() {
            let header_len = cell.outer.header_len();
            let payload_len = if cell.mode == Mode::Tunnel { plain.len() } else { plain.len() - header_len };
            let (sequence, iv) = check_headers(&cell, sealed, header_len, payload_len);
            assert_eq!(sequence, n as u32 + 1, "{cell:?}");
            assert!(iv.is_empty() || ivs.insert(iv), "{cell:?}: an IV twice");
            if cell.mode == Mode::Tunnel {
                check_tunnel_header(&cell, sealed, plain);
            }
        }
        cells += 1;
    }
    println!("{cells} cells, {packets} packets sealed and opened");
    assert_eq!(cells, 85 * 6 * 2 * 2);
    let cells_run: usize = suites.iter().map(|suites| suites.len() * 6 * 2 * 2).sum();
    assert_eq!(packets, cells_run * LENGTHS.len());
}

/// Cells of six suites, one of each kind, in transport mode.
fn transport_cells(family: Family) -> Vec<Cell> {
    let names =
        ["aes128gcm16", "chacha20poly1305", "aes128-sha256", "aes256ctr-sha512", "null-sha1", "aes192gmac"];
    Cell::all()
        .into_iter()
        .filter(|cell| {
            cell.mode == Mode::Transport
                && cell.outer == family
                && names.contains(&cell.suite.to_string().as_str())
        })
        .collect()
}

/// Seals and opens `plain` in transport mode, whose IP header, and all in front of ESP, has `kept` bytes;
/// returns what was sealed.
fn round_trip(cell: &Cell, plain: &[u8], kept: usize) -> Vec<u8> {
    let backends = backends();
    let (mut sealer, mut opener) = (Gateway::new(backends[0]), Gateway::new(backends[backends.len() - 1]));
    cell.enter(&mut sealer, Direction::Seal);
    cell.enter(&mut opener, Direction::Open);
    let sealed = sealer.pass(Direction::Seal, plain).expect("sealed");
    let (sequence, _) = check_headers(cell, &sealed, kept, plain.len() - kept);
    assert_eq!(sequence, 1);
    assert_eq!(opener.pass(Direction::Open, &sealed).as_deref(), Ok(plain), "{cell:?}");
    sealed
}

#[test]
fn ipv4_options_stay_in_front_in_transport_mode() {
    for cell in transport_cells(Family::V4) {
        for words in 1..=10 {
            let mut packet = plain(Family::V4, 100, words);
            packet[0] = 0x45 + words as u8;
            let header_len = 20 + 4 * words;
            // No-operation, up to the end of the list.
            packet[20..header_len].fill(1);
            packet[10..12].fill(0);
            let sum = checksum(&packet[..header_len]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            let sealed = round_trip(&cell, &packet, header_len);
            assert_eq!(sealed[20..header_len], packet[20..header_len]);
        }
    }
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
const UPPER: u8 = 253;

/// An IPv6 packet with these extension headers, 8 bytes each but routing headers (24), and 33 bytes behind.
fn with_extensions(kinds: &[u8]) -> Vec<u8> {
    let mut packet = plain(Family::V6, 40, 3);
    for (n, &kind) in kinds.iter().enumerate() {
        let named_at = if n == 0 { 6 } else { packet.len() - extension_len(kinds[n - 1]) };
        packet[named_at] = kind;
        let mut header = vec![0; extension_len(kind)];
        header[0] = UPPER;
        match kind {
            // Of type 253 with nothing left: for experiments.
            ROUTING => header[1..4].copy_from_slice(&[2, 253, 0]),
            // Atomic: offset 0 and no more fragments (RFC 6946).
            FRAGMENT => header[4..8].copy_from_slice(&[1, 2, 3, 4]),
            // PadN over the rest.
            _ => header[2..4].copy_from_slice(&[1, 4]),
        }
        packet.extend_from_slice(&header);
    }
    packet.extend(100..133);
    let len = packet.len() as u16 - 40;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet
}

fn extension_len(kind: u8) -> usize {
    if kind == ROUTING { 24 } else { 8 }
}

#[test]
fn ipv6_extension_headers_are_kept_or_protected_in_transport_mode() {
    // The headers, and how many of them stay in front (RFC 4303 3.1.1, RFC 8200 4.1).
    let cases: [(&[u8], usize); 12] = [
        (&[], 0),
        (&[HOP_BY_HOP], 1),
        (&[DESTINATION], 0),
        (&[ROUTING], 1),
        (&[FRAGMENT], 1),
        (&[HOP_BY_HOP, DESTINATION], 1),
        (&[HOP_BY_HOP, ROUTING], 2),
        (&[DESTINATION, ROUTING], 2),
        (&[HOP_BY_HOP, DESTINATION, ROUTING], 3),
        (&[HOP_BY_HOP, DESTINATION, ROUTING, DESTINATION], 3),
        (&[HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION], 3),
        (&[HOP_BY_HOP, DESTINATION, ROUTING, FRAGMENT, DESTINATION], 4),
    ];
    for cell in transport_cells(Family::V6) {
        for (kinds, kept) in cases {
            let packet = with_extensions(kinds);
            let kept_len = 40 + kinds[..kept].iter().map(|&kind| extension_len(kind)).sum::<usize>();
            let sealed = round_trip(&cell, &packet, kept_len);
            let named_at = match kept {
                0 => 6,
                _ => kept_len - extension_len(kinds[kept - 1]),
            };
            let protocol = if cell.encapsulation == Encapsulation::Udp { 17 } else { 50 };
            assert_eq!(sealed[named_at], protocol, "{kinds:?} {cell:?}");
        }
    }
}

/// Link layers pad short frames, and captures keep the padding.
#[test]
fn padding_behind_the_packet_is_neither_sealed_nor_opened() {
    for cell in Cell::all().into_iter().filter(|cell| cell.suite.to_string().ends_with("gcm16")) {
        let backend = backends()[0];
        let [mut with, mut without] = [Gateway::new(backend), Gateway::new(backend)];
        cell.enter(&mut with, Direction::Seal);
        cell.enter(&mut without, Direction::Seal);
        let mut opener = Gateway::new(backend);
        cell.enter(&mut opener, Direction::Open);
        for padding in [1, 6, 46, 400] {
            let plain = plain(cell.inner, 41, padding);
            let padded = [&plain[..], &vec![0xee; padding]].concat();
            let sealed = with.pass(Direction::Seal, &padded).expect("sealed");
            assert_eq!(without.pass(Direction::Seal, &plain), Ok(sealed.clone()), "{cell:?}");
            let padded = [&sealed[..], &vec![0xee; padding]].concat();
            assert_eq!(opener.pass(Direction::Open, &padded), Ok(plain), "{cell:?}");
        }
    }
}
