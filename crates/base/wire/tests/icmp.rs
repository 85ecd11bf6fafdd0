//! ICMP about packets that are too big: when it is sent, what it says, and that tshark and a slow oracle find its
//! checksums good.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use forebay_wire::icmp::{MAX_V4, MAX_V6, TooBig, packet_too_big};

fn slow_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    let checksum = slow_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], payload].concat()
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, next_header, 64];
    for net in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
    packet.extend(payload);
    packet
}

const GATEWAY_V4: &str = "10.1.0.254";
const GATEWAY_V6: &str = "2001:db8:1::fe";

fn answer(original: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let from: IpAddr =
        if original[0] >> 4 == 4 { GATEWAY_V4 } else { GATEWAY_V6 }.parse().expect("an address");
    let mut room = [0xee; MAX_V6];
    packet_too_big(original, mtu, from, &mut room).map(|len| room[..len].to_vec())
}

fn check_v4(message: &[u8], original: &[u8], mtu: u16) {
    let quote = original.len().min(576 - 28);
    assert_eq!(message.len(), 28 + quote);
    assert_eq!(slow_checksum(&message[..20]), 0);
    assert_eq!(slow_checksum(&message[20..]), 0);
    assert_eq!(message[..2], [0x45, 0xc0], "precedence as RFC 1812 4.3.2.5 has it");
    assert_eq!(usize::from(u16::from_be_bytes([message[2], message[3]])), message.len());
    assert_eq!(message[9], 1);
    assert_eq!((&message[12..16], &message[16..20]), (&[10, 1, 0, 254][..], &original[12..16]));
    assert_eq!((message[20], message[21], &message[24..26]), (3, 4, &[0, 0][..]));
    assert_eq!(u16::from_be_bytes([message[26], message[27]]), mtu);
    assert_eq!(message[28..], original[..quote]);
}

fn check_v6(message: &[u8], original: &[u8], mtu: u32) {
    let quote = original.len().min(1_280 - 48);
    assert_eq!(message.len(), 48 + quote);
    let mut pseudo = message[8..40].to_vec();
    pseudo.extend((message.len() as u32 - 40).to_be_bytes());
    pseudo.extend([0, 0, 0, 58]);
    pseudo.extend(&message[40..]);
    assert_eq!(slow_checksum(&pseudo), 0);
    assert_eq!(usize::from(u16::from_be_bytes([message[4], message[5]])) + 40, message.len());
    assert_eq!((message[0], message[6]), (0x60, 58));
    assert_eq!(message[24..40], original[8..24]);
    assert_eq!(message[40..42], [2, 0]);
    assert_eq!(u32::from_be_bytes([message[44], message[45], message[46], message[47]]), mtu);
    assert_eq!(message[48..], original[..quote]);
}

#[test]
fn fragmentation_needed_says_the_mtu_and_quotes_what_fits() {
    for len in [0, 1, 7, 500, 527, 528, 529, 1_480, 9_000] {
        let original = ipv4(17, &vec![0x5a; len]);
        check_v4(&answer(&original, 1_438).expect("an answer"), &original, 1_438);
    }
    // What a link layer put behind the packet is not quoted.
    let mut padded = ipv4(17, &[1; 5]);
    padded.extend([0; 21]);
    check_v4(&answer(&padded, 1_400).expect("an answer"), &padded[..25], 1_400);
}

#[test]
fn packet_too_big_says_the_mtu_but_never_less_than_1280() {
    for len in [0, 1, 1_191, 1_192, 1_193, 1_460, 9_000] {
        let original = ipv6(17, &vec![0x5a; len]);
        check_v6(&answer(&original, 1_418).expect("an answer"), &original, 1_418);
        check_v6(&answer(&original, 1_000).expect("an answer"), &original, 1_280);
    }
}

/// RFC 1122 3.2.2, RFC 1812 4.3.2.7.
#[test]
fn no_icmp_about_what_rfc_1122_excepts() {
    for error in [3, 4, 5, 11, 12] {
        assert_eq!(answer(&ipv4(1, &[error, 0, 0, 0]), 1_400), None, "about ICMP error {error}");
    }
    assert_eq!(answer(&ipv4(1, &[]), 1_400), None, "about ICMP that does not say what it is");
    assert_eq!(answer(&ipv4(1, &[200, 0, 0, 0]), 1_400), None, "about ICMP that may be an error");
    for query in [0, 8, 13, 14, 17, 18] {
        assert!(answer(&ipv4(1, &[query, 0, 0, 0]), 1_400).is_some(), "about ICMP query {query}");
    }
    let changed = |at: usize, bytes: &[u8]| {
        let mut packet = ipv4(17, &[0; 8]);
        packet[at..at + bytes.len()].copy_from_slice(bytes);
        packet
    };
    for source in
        [[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 5], [255, 255, 255, 255], [240, 0, 0, 1]]
    {
        assert_eq!(answer(&changed(12, &source), 1_400), None, "to {source:?}");
    }
    for destination in [[224, 0, 0, 5], [239, 1, 2, 3], [255, 255, 255, 255]] {
        assert_eq!(answer(&changed(16, &destination), 1_400), None, "about a packet to {destination:?}");
    }
    assert_eq!(answer(&changed(6, &[0x20, 1]), 1_400), None, "about a later fragment");
    assert_eq!(answer(&changed(6, &[0x00, 1]), 1_400), None, "about the last fragment");
    assert!(answer(&changed(6, &[0x60, 0]), 1_400).is_some(), "about the first fragment");
    assert_eq!(answer(&[0x45; 19], 1_400), None, "about no packet");
}

/// RFC 4443 2.4 e.
#[test]
fn no_icmpv6_about_what_rfc_4443_excepts() {
    for (kind, some) in
        [(1, false), (2, false), (3, false), (4, false), (127, false), (128, true), (137, false)]
    {
        assert_eq!(answer(&ipv6(58, &[kind, 0, 0, 0]), 1_400).is_some(), some, "about ICMPv6 {kind}");
        let behind_options = [&[58, 0, 1, 4, 0, 0, 0, 0][..], &[kind, 0, 0, 0]].concat();
        assert_eq!(answer(&ipv6(60, &behind_options), 1_400).is_some(), some, "about ICMPv6 {kind}");
        let fragment = |word: u8| [&[58, 0, 0, word, 0, 0, 0, 9][..], &[kind, 0, 0, 0]].concat();
        assert_eq!(answer(&ipv6(44, &fragment(1)), 1_400).is_some(), some, "first fragment of ICMPv6 {kind}");
        assert_eq!(answer(&ipv6(44, &fragment(9)), 1_400), None, "later fragment of ICMPv6");
    }
    assert_eq!(answer(&ipv6(58, &[]), 1_400), None, "about ICMPv6 that does not say what it is");
    let changed = |at: usize, byte: u8| {
        let mut packet = ipv6(17, &[0; 8]);
        packet[at..at + 16].fill(0);
        packet[at] = byte;
        packet
    };
    assert_eq!(answer(&changed(8, 0), 1_400), None, "to nobody");
    assert_eq!(answer(&changed(8, 0xff), 1_400), None, "to many");
    assert!(answer(&changed(24, 0xff), 1_400).is_some(), "about multicast, as RFC 4443 2.4 e.3 excepts");
}

#[test]
fn no_icmp_from_the_other_family_or_without_room() {
    let mut room = [0; MAX_V6];
    let (v4, v6) = (GATEWAY_V4.parse().expect("an address"), GATEWAY_V6.parse().expect("an address"));
    assert_eq!(packet_too_big(&ipv4(17, &[0; 8]), 1_400, v6, &mut room), None);
    assert_eq!(packet_too_big(&ipv6(17, &[0; 8]), 1_400, v4, &mut room), None);
    assert_eq!(packet_too_big(&ipv4(17, &[0; 8]), 1_400, v4, &mut room[..55]), None);
    assert_eq!(packet_too_big(&ipv4(17, &[0; 8]), 1_400, v4, &mut room[..56]), Some(56));
    assert_eq!(packet_too_big(&ipv4(17, &[0; 1_400]), 1_400, v4, &mut room[..MAX_V4]), Some(MAX_V4));
}

#[test]
fn what_is_written_is_read_and_a_changed_bit_is_found() {
    for original in [ipv4(17, &[7; 600]), ipv6(17, &[7; 1_400])] {
        let message = answer(&original, 1_418).expect("an answer");
        let body = if original[0] >> 4 == 4 { 20 } else { 40 };
        let read = TooBig::parse(&message).expect("such a message");
        assert_eq!((read.mtu, read.quoted), (1_418, &message[body + 8..]));
        for bit in 8 * body..8 * message.len() {
            let mut damaged = message.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(TooBig::parse(&damaged), None, "bit {bit}");
        }
        for len in 0..message.len() {
            assert_eq!(TooBig::parse(&message[..len]), None);
        }
        assert_eq!(TooBig::parse(&original), None);
    }
}

/// Uses tshark as an independent implementation of the same RFCs; skipped where it is not installed.
#[test]
fn tshark_finds_the_checksums_good() {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        capture.extend(word.to_le_bytes());
    }
    let lens = [0, 1, 8, 500, 1_480];
    for len in lens {
        for original in [ipv4(17, &vec![len as u8; len]), ipv6(17, &vec![len as u8; len])] {
            let message = answer(&original, 1_398).expect("an answer");
            for word in [0, 0, message.len() as u32, message.len() as u32] {
                capture.extend(word.to_le_bytes());
            }
            capture.extend(message);
        }
    }
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "-", "-T", "fields", "-E", "occurrence=f", "-o", "ip.check_checksum:TRUE"]);
    for field in
        ["ip.checksum.status", "icmp.checksum.status", "icmp.mtu", "icmpv6.checksum.status", "icmpv6.mtu"]
    {
        tshark.args(["-e", field]);
    }
    let child = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: there is no tshark");
        return;
    };
    child.stdin.take().expect("a pipe").write_all(&capture).expect("tshark reads");
    let output = child.wait_with_output().expect("tshark ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2 * lens.len(), "{lines:?}");
    // The status "1" is "good".
    for messages in lines.chunks(2) {
        assert_eq!(messages[0], "1\t1\t1398\t\t");
        assert!(messages[1].ends_with("\t1\t1398"), "{messages:?}");
    }
}
