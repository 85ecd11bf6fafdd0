//! Fragments against a reassembly written down naively from RFC 791 and RFC 8200.

use forebay_wire::{Fragments, Ip};

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

/// An IPv4 packet with these options, flags and offset.
fn ipv4(options: &[u8], word: u16, payload: usize) -> Vec<u8> {
    let header_len = 20 + options.len();
    let [high, low] = ((header_len + payload) as u16).to_be_bytes();
    let [flags, offset] = word.to_be_bytes();
    let mut packet =
        vec![0x40 | (header_len / 4) as u8, 0x2e, high, low, 0xab, 0xcd, flags, offset, 64, 17, 0, 0];
    packet.extend([10, 1, 0, 1, 10, 2, 0, 1]);
    packet.extend(options);
    let checksum = slow_checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&checksum);
    packet.extend((0..payload).map(|at| (at * 7 + at / 256) as u8));
    packet
}

fn ipv6(extensions: &[u8], first: u8, payload: usize) -> Vec<u8> {
    let [high, low] = ((extensions.len() + payload) as u16).to_be_bytes();
    let mut packet = vec![0x6a, 0xbc, 0xde, 0xf0, high, low, first, 64];
    packet.extend([0x20; 32]);
    packet.extend(extensions);
    packet.extend((0..payload).map(|at| (at * 7 + at / 256) as u8));
    packet
}

fn all(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let mut fragments = Fragments::new(&Ip::parse(packet).expect("a packet"), mtu, 0xfeed_beef)?;
    let mut room = vec![0; mtu];
    let mut all = Vec::new();
    while let Some(len) = fragments.next_into(&mut room) {
        all.push(room[..len].to_vec());
    }
    Some(all)
}

fn word(fragment: &[u8]) -> u16 {
    u16::from_be_bytes([fragment[6], fragment[7]])
}

/// What a receiver makes of IPv4 fragments: (offset in bytes, payload) of the whole, and whether more follow.
fn reassemble_v4(fragments: &[Vec<u8>]) -> (usize, Vec<u8>, bool) {
    let begin = usize::from(word(&fragments[0]) & 0x1fff) * 8;
    let mut payload = Vec::new();
    for fragment in fragments {
        let header_len = usize::from(fragment[0] & 15) * 4;
        assert_eq!(usize::from(u16::from_be_bytes([fragment[2], fragment[3]])), fragment.len());
        assert_eq!(slow_checksum(&fragment[..header_len]), 0);
        assert_eq!(usize::from(word(fragment) & 0x1fff) * 8, begin + payload.len(), "no gap, no overlap");
        payload.extend(&fragment[header_len..]);
    }
    (begin, payload, word(fragments.last().expect("some")) & 0x2000 != 0)
}

#[test]
fn ipv4_comes_together_again_for_every_mtu() {
    for payload in [1, 8, 9, 64, 700, 1_480, 8_999] {
        let packet = ipv4(&[], 0, payload);
        for mtu in (28..120).chain([576, 1_499, 1_500, 9_100]) {
            let fragments = all(&packet, mtu).expect("may be divided");
            let (begin, whole, more) = reassemble_v4(&fragments);
            assert_eq!((begin, &whole[..], more), (0, &packet[20..], false), "{payload} bytes at {mtu}");
            for (n, fragment) in fragments.iter().enumerate() {
                assert!(fragment.len() <= mtu);
                let last = n + 1 == fragments.len();
                assert_eq!(word(fragment) & 0x2000 != 0, !last);
                // As few as can be: no other piece of eight bytes would go in.
                assert!(last || fragment.len() + 8 > mtu);
                assert_eq!(
                    (fragment[1], &fragment[4..6], fragment[8], fragment[9]),
                    (0x2e, &packet[4..6], 64, 17)
                );
                assert_eq!(fragment[12..20], packet[12..20]);
            }
        }
    }
}

#[test]
fn a_fragment_is_divided_where_it_stands() {
    // In the middle of a larger packet, and at its end.
    for (word, more) in [(0x2000 | 100, true), (100, false)] {
        let packet = ipv4(&[], word, 800);
        let (begin, whole, still_more) = reassemble_v4(&all(&packet, 200).expect("may be divided"));
        assert_eq!((begin, &whole[..], still_more), (800, &packet[20..], more));
    }
}

/// RFC 791 3.1: options with the copied flag go into every fragment, the others into the first only.
#[test]
fn options_are_copied_by_their_flag() {
    let record_route = [7, 7, 4, 0, 0, 0, 0];
    let source_route = [0x80 | 3, 7, 4, 9, 9, 9, 9];
    let router_alert = [0x80 | 20, 4, 0, 0];
    let cases: [(Vec<u8>, Vec<u8>); 6] = [
        (record_route.iter().chain(&[0]).copied().collect(), vec![]),
        (source_route.iter().chain(&[1]).copied().collect(), [&source_route[..], &[0]].concat()),
        ([&record_route[..], &router_alert, &[0]].concat(), router_alert.to_vec()),
        ([&[1, 1, 1, 1], &router_alert[..]].concat(), router_alert.to_vec()),
        (
            [&router_alert[..], &source_route, &[0]].concat(),
            [&router_alert[..], &source_route, &[0]].concat(),
        ),
        (vec![0, 0, 0, 0], vec![]),
    ];
    for (options, copied) in cases {
        let packet = ipv4(&options, 0, 300);
        let fragments = all(&packet, 128).expect("may be divided");
        assert_eq!(fragments[0][20..20 + options.len()], options);
        for fragment in &fragments[1..] {
            assert_eq!(fragment[20..usize::from(fragment[0] & 15) * 4], copied, "{options:?}");
        }
        assert_eq!(reassemble_v4(&fragments).1, packet[20 + options.len()..]);
    }
}

#[test]
fn what_may_not_be_divided_is_not() {
    assert!(all(&ipv4(&[], 0x4000, 300), 128).is_none(), "don't fragment");
    assert!(all(&ipv4(&[], 0, 300), 27).is_none(), "no room for eight bytes");
    for options in [[7, 0, 0, 0], [7, 1, 0, 0], [7, 5, 0, 0], [1, 1, 1, 7]] {
        assert!(all(&ipv4(&options, 0, 300), 128).is_none(), "{options:?}");
    }
    assert!(all(&ipv6(&[17, 0, 0, 1, 0, 0, 0, 9], 44, 300), 128).is_none(), "a fragment already");
    assert!(all(&ipv6(&[], 17, 300), 55).is_none(), "no room for eight bytes");
}

#[test]
fn ipv6_comes_together_again_behind_what_routers_look_at() {
    let hop_by_hop = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let routing = |next| [next, 0, 4, 0, 0, 0, 0, 0];
    let destination = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    // Extension headers, what the first is, how many of their bytes stay in front, what comes behind.
    let cases = [
        (vec![], 50, 0, 50),
        (hop_by_hop(50).to_vec(), 0, 8, 50),
        ([hop_by_hop(43), routing(50)].concat(), 0, 16, 50),
        ([destination(43), routing(60), destination(50)].concat(), 60, 16, 60),
        (destination(50).to_vec(), 60, 0, 60),
    ];
    for (extensions, first, kept, next) in cases {
        for mtu in [1_280, 200, 73 + kept] {
            let packet = ipv6(&extensions, first, 1_300);
            let fragments = all(&packet, mtu).expect("may be divided");
            let mut whole = Vec::<u8>::new();
            for (n, fragment) in fragments.iter().enumerate() {
                assert!(fragment.len() <= mtu);
                assert_eq!(usize::from(u16::from_be_bytes([fragment[4], fragment[5]])) + 40, fragment.len());
                let (header, rest) = fragment.split_at(40 + kept);
                // The last header before it names the fragment header: 44.
                let named_at = if kept == 0 { 6 } else { 40 + kept - 8 };
                let mut expected = packet[..40 + kept].to_vec();
                (expected[named_at], expected[4], expected[5]) = (44, fragment[4], fragment[5]);
                assert_eq!(header, expected);
                assert_eq!((rest[0], rest[1], &rest[4..8]), (next, 0, &[0xfe, 0xed, 0xbe, 0xef][..]));
                let word = u16::from_be_bytes([rest[2], rest[3]]);
                assert_eq!(usize::from(word & 0xfff8), whole.len());
                assert_eq!(word & 7, u16::from(n + 1 < fragments.len()));
                whole.extend(&rest[8..]);
            }
            assert_eq!(whole, packet[40 + kept..]);
        }
    }
}

/// RFC 8200 4.5: only the source divides a packet, once; wherever its fragment header stands.
#[test]
fn a_fragment_header_behind_destination_options_is_found() {
    let destination = [44, 0, 1, 4, 0, 0, 0, 0];
    for word in [0u16, 1, 0x0588] {
        let [high, low] = word.to_be_bytes();
        let fragment = [17, 0, high, low, 0, 0, 0, 9];
        assert_eq!(all(&ipv6(&[destination, fragment].concat(), 60, 1_300), 1_280), None);
        assert_eq!(all(&ipv6(&fragment, 44, 1_300), 1_280), None);
    }
}

/// RFC 7112: the first fragment holds all headers, the first eight bytes of the upper layer's included; else the packet
/// is not divided.
#[test]
fn headers_that_the_first_fragment_does_not_hold_are_not_divided() {
    // Destination options belong to the fragmentable part.
    for (units, divides) in [(0, true), (64, true), (100, true), (152, true), (153, false), (200, false)] {
        let mut options = vec![50, units, 1, 4, 0, 0, 0, 0];
        options.resize(8 + 8 * usize::from(units), 0);
        // 40 bytes of header and 8 of the fragment header leave 1,232 of 1,280.
        let fragments = all(&ipv6(&options, 60, 2_000), 1_280);
        assert_eq!(fragments.is_some(), divides, "{} bytes of options", options.len());
        let held = fragments.map_or(0, |fragments| fragments[0].len() - 48);
        assert!(!divides || held >= options.len() + 8);
    }
}
