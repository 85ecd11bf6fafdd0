//! Frames of every link type, found and rebuilt.

use forebay_links::LinkType;
use forebay_links::frame::{Family, IpAt, MAX_PREFIX, NotIp, fill_in_length, ip_length, locate, reframe};

const V4: [u8; 4] = [0x45, 0, 0, 4];
const V6: [u8; 4] = [0x60, 0, 0, 0];

/// Link type, prefix for IPv4, and prefix for IPv6.
type Row = (LinkType, Vec<u8>, Vec<u8>);

fn prefixes() -> Vec<Row> {
    let mac = [0x11; 12];
    let with = |head: &[u8], tail: &[u8]| [head, tail].concat();
    let (e4, e6) = ([0x08, 0x00], [0x86, 0xdd]);
    let tag = [0x81, 0x00, 0x20, 0x07];
    let outer = [0x88, 0xa8, 0, 9];
    let tagged = with(&mac, &tag);
    let twice = with(&with(&mac, &outer), &tag);
    let most = with(&twice, &with(&tag, &[0x91, 0, 0, 1]));
    let sll = [0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
    let sll2 = [0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
    let sll2_tail = [&sll2[..], &[0x20, 7]].concat();
    let both = |head: &[u8]| (with(head, &e4), with(head, &e6));
    let mut rows = Vec::new();
    let mut add = |link, (v4, v6): (Vec<u8>, Vec<u8>)| rows.push((link, v4, v6));
    add(LinkType::Ethernet, both(&mac));
    add(LinkType::Ethernet, both(&tagged));
    add(LinkType::Ethernet, both(&twice));
    add(LinkType::Ethernet, both(&most));
    add(LinkType::LinuxSll, both(&sll));
    add(LinkType::LinuxSll, both(&with(&sll, &tag)));
    add(LinkType::LinuxSll2, (with(&e4, &sll2), with(&e6, &sll2)));
    let (t4, t6) = both(&with(&[0x81, 0], &sll2_tail));
    add(LinkType::LinuxSll2, (t4, t6));
    add(LinkType::Raw, (vec![], vec![]));
    add(LinkType::Null, (vec![2, 0, 0, 0], vec![30, 0, 0, 0]));
    add(LinkType::Null, (vec![0, 0, 0, 2], vec![0, 0, 0, 30]));
    add(LinkType::Loop, (vec![0, 0, 0, 2], vec![0, 0, 0, 24]));
    add(LinkType::Ppp, (vec![0xff, 3, 0, 0x21], vec![0xff, 3, 0, 0x57]));
    add(LinkType::Ppp, (vec![0, 0x21], vec![0, 0x57]));
    add(LinkType::Ppp, (vec![0x21], vec![0x57]));
    add(LinkType::PppHdlc, (vec![0xff, 3, 0x21], vec![0xff, 3, 0x57]));
    rows
}

fn found(link: LinkType, prefix: &[u8], packet: &[u8]) -> IpAt {
    locate(link, &[prefix, packet].concat()).unwrap_or_else(|reason| panic!("{link}: {reason}"))
}

#[test]
fn packets_are_found_behind_every_prefix() {
    for (link, v4, v6) in prefixes() {
        for (prefix, packet, family) in [(&v4, &V4, Family::V4), (&v6, &V6, Family::V6)] {
            let at = found(link, prefix, packet);
            assert_eq!((at.start, at.family), (prefix.len(), family), "{link}");
            assert!(at.start <= MAX_PREFIX);
        }
    }
}

#[test]
fn a_changed_family_changes_the_prefix_and_nothing_else() {
    let mut out = Vec::new();
    for (link, v4, v6) in prefixes() {
        let (from_v4, from_v6) = (found(link, &v4, &V4), found(link, &v6, &V6));
        for (at, old, packet, new) in [
            (from_v4, &v4, &V4, &v4),
            (from_v4, &v4, &V6, &v6),
            (from_v6, &v6, &V6, &v6),
            (from_v6, &v6, &V4, &v4),
        ] {
            reframe(&at, old, packet, &mut out).unwrap();
            assert_eq!(out, [&new[..], packet].concat(), "{link}");
            assert_eq!(locate(link.rewritten(), &out).unwrap().start, new.len());
        }
    }
}

#[test]
fn captures_of_one_family_become_raw() {
    let mut out = Vec::new();
    let at = found(LinkType::Ipv4, &[], &V4);
    reframe(&at, &[], &V6, &mut out).unwrap();
    assert_eq!((&out[..], LinkType::Ipv4.rewritten()), (&V6[..], LinkType::Raw));
    assert_eq!(found(LinkType::Raw, &[], &out).family, Family::V6);
}

#[test]
fn every_system_s_number_for_ipv6_is_known_and_kept() {
    let mut out = Vec::new();
    for number in [10, 24, 28, 30] {
        let prefix = [number, 0, 0, 0];
        let at = found(LinkType::Null, &prefix, &V6);
        reframe(&at, &prefix, &V6, &mut out).unwrap();
        assert_eq!(out[..4], prefix);
    }
}

#[test]
fn frames_without_ip_say_why() {
    let ethernet = |ethertype: [u8; 2]| [&[0; 12][..], &ethertype, &[0x45; 50]].concat();
    let reason = |link, frame: &[u8]| locate(link, frame).unwrap_err();
    assert_eq!(reason(LinkType::Ethernet, &ethernet([8, 6])), NotIp::Ethertype(0x0806));
    assert!(NotIp::Ethertype(0x0806).to_string().contains("0x0806 (ARP)"));
    assert_eq!(reason(LinkType::Ethernet, &ethernet([0, 38])), NotIp::Llc(38));
    assert_eq!(
        reason(LinkType::Ethernet, &ethernet([0x86, 0xdd])),
        NotIp::Version { found: 4, expected: Some(Family::V6) }
    );
    assert_eq!(reason(LinkType::Raw, &[0x55]), NotIp::Version { found: 5, expected: None });
    assert_eq!(reason(LinkType::Ipv6, &V4), NotIp::Version { found: 4, expected: Some(Family::V6) });
    assert_eq!(reason(LinkType::Null, &[7, 0, 0, 0, 0x45]), NotIp::AddressFamily(7));
    assert_eq!(reason(LinkType::Ppp, &[0xc0, 0x21, 0x45]), NotIp::PppProtocol(0xc021));
    assert_eq!(reason(LinkType::PppHdlc, &[0x0f, 0, 8, 0]), NotIp::PppProtocol(0x0f));
    let tags = [&[0; 12][..], &[0x81, 0, 0, 1].repeat(5), &[8, 0, 0x45]].concat();
    assert_eq!(reason(LinkType::Ethernet, &tags), NotIp::TooManyTags);
}

#[test]
fn every_prefix_of_a_frame_is_too_short() {
    for (link, v4, _) in prefixes() {
        for length in 0..=v4.len() {
            match locate(link, &v4[..length]).unwrap_err() {
                NotIp::TooShort { found, expected } => assert!(found == length && expected > length),
                other => panic!("{link}, {length} bytes: {other}"),
            }
        }
    }
}

#[test]
fn what_is_no_packet_is_not_framed() {
    let prefix = [0, 0x21];
    let at = found(LinkType::Ppp, &prefix, &V4);
    let mut out = vec![1];
    assert!(matches!(reframe(&at, &prefix, &[], &mut out), Err(NotIp::TooShort { .. })));
    assert!(matches!(reframe(&at, &prefix, &[0x10], &mut out), Err(NotIp::Version { found: 1, .. })));
    assert!(matches!(reframe(&at, &[0], &V4, &mut out), Err(NotIp::TooShort { .. })));
    assert!(out.is_empty());
}

/// PPPoE says the length of what it carries (RFC 2516 4); MPLS says nothing of it (RFC 3032).
#[test]
fn packets_in_pppoe_and_mpls_are_found_and_rebuilt_with_their_new_length() {
    let mac = [0x11; 12];
    let pppoe = [&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21]].concat();
    let tagged = [&mac[..], &[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0x21]].concat();
    let labels = [&mac[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat();
    let longer = [0x45, 0, 0, 5, 9];
    let mut out = Vec::new();
    for (prefix, length_at, expected) in
        [(&pppoe, Some(18), [0, 7]), (&tagged, Some(22), [0, 6]), (&labels, None, [0, 0])]
    {
        let at = found(LinkType::Ethernet, prefix, &V4);
        assert_eq!((at.start, at.family), (prefix.len(), Family::V4));
        reframe(&at, prefix, &longer, &mut out).unwrap();
        assert_eq!(&out[prefix.len()..], longer);
        if let Some(field) = length_at {
            assert_eq!(out[field..field + 2], expected);
        }
    }
    // PPP's protocol follows a change of the family there too.
    let at = found(LinkType::Ethernet, &pppoe, &V4);
    reframe(&at, &pppoe, &[0x60, 0, 0, 0], &mut out).unwrap();
    assert_eq!(out[20..22], [0, 0x57]);
    let refused = |frame: &[u8]| locate(LinkType::Ethernet, frame).unwrap_err();
    assert_eq!(
        refused(&[&mac[..], &[0x88, 0x64, 0x11, 0xa7, 0, 1, 0, 0]].concat()),
        NotIp::Ethertype(0x8864)
    );
    let endless = [&mac[..], &[0x88, 0x47], &[0, 1, 0, 64].repeat(9)].concat();
    assert_eq!(refused(&endless), NotIp::TooManyLabels);
    assert_eq!(locate(LinkType::Other(105), &V4), Err(NotIp::LinkType(105)));
}

/// IP in IEEE 802.3 (RFC 1042, IEEE 802.1H), whose length field grows up to where values are ethertypes, and PPP in Ethernet.
#[test]
fn packets_behind_llc_and_snap_are_found_and_rebuilt() {
    let mac = [0x11; 12];
    let snap = |length: [u8; 2], code: u8| [&length[..], &[0xaa, 0xaa, 3, 0, 0, code, 8, 0]].concat();
    let plain = [&mac[..], &snap([0, 28], 0)].concat();
    let bridged = [&mac[..], &[0x81, 0, 0, 7], &snap([0, 28], 0xf8)].concat();
    let mut out = Vec::new();
    for (prefix, field) in [(&plain, 12), (&bridged, 16)] {
        let at = found(LinkType::Ethernet, prefix, &V4);
        assert_eq!((at.start, at.family), (prefix.len(), Family::V4));
        let mut longest = vec![0x60; 1492];
        reframe(&at, prefix, &longest, &mut out).unwrap();
        assert_eq!(
            (&out[field..field + 2], &out[field + 8..field + 10]),
            (&[5, 0xdc][..], &[0x86, 0xdd][..])
        );
        assert_eq!(&out[prefix.len()..], longest);
        // One byte more has only the other form.
        longest.push(0x60);
        reframe(&at, prefix, &longest, &mut out).unwrap();
        assert_eq!(out.len(), prefix.len() - 8 + longest.len());
        assert_eq!((&out[..field], &out[field..field + 2]), (&prefix[..field], &[0x86, 0xdd][..]));
        let again = locate(LinkType::Ethernet, &out).unwrap();
        assert_eq!((again.start, again.family), (field + 2, Family::V6));
    }
    // Linux's cooked captures name the LLC, and have no length.
    let cooked = [&[0; 14][..], &[0, 4, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    let at = found(LinkType::LinuxSll, &cooked, &V4);
    reframe(&at, &cooked, &[0x60; 2000], &mut out).unwrap();
    assert_eq!((&out[14..22], &out[22..24]), (&cooked[14..22], &[0x86, 0xdd][..]));
    let ppp = [&mac[..], &[0x88, 0x0b, 0x21]].concat();
    assert_eq!(found(LinkType::Ethernet, &ppp, &V4).start, 15);
    // Others with LLC, or SNAP in SNAP, carry no IP.
    for other in [
        [&mac[..], &[0, 28, 0x42, 0x42, 3, 0, 0, 0, 8, 0]].concat(),
        [&mac[..], &[0, 28, 0xaa, 0xaa, 3, 0, 0, 0x0c, 8, 0]].concat(),
        [&plain[..20], &snap([0, 28], 0)].concat(),
    ] {
        assert!(matches!(locate(LinkType::Ethernet, &other), Err(NotIp::Llc(28))), "{other:x?}");
    }
}

#[test]
fn lengths_that_offload_left_at_zero_are_those_of_the_frame() {
    let mut v4 = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2].to_vec();
    v4.extend([7; 3000]);
    let at = found(LinkType::Raw, &[], &v4);
    assert_eq!(ip_length(&at, &v4, 3020), Some(3020));
    // Of a packet that was cut by the snapshot length the wire's length counts.
    assert_eq!(ip_length(&at, &v4[..96], 3020), Some(3020));
    fill_in_length(Family::V4, &mut v4);
    assert_eq!(u16::from_be_bytes([v4[2], v4[3]]), 3020);
    assert_eq!(forebay_wire::checksum::Sum::default().bytes(&v4[..20]).finish(), 0);
    assert_eq!(ip_length(&at, &v4, 4000), Some(3020));
    let mut v6 = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
    v6.resize(40 + 3000, 1);
    let at = found(LinkType::Raw, &[], &v6);
    assert_eq!(ip_length(&at, &v6, 3040), Some(3040));
    fill_in_length(Family::V6, &mut v6);
    assert_eq!(u16::from_be_bytes([v6[4], v6[5]]), 3000);
    // Without a next header there is nothing behind the header but the frame's padding.
    let mut empty = [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 32], &[0; 6]].concat();
    let at = found(LinkType::Raw, &[], &empty);
    assert_eq!(ip_length(&at, &empty, 46), Some(40));
    fill_in_length(Family::V6, &mut empty);
    assert_eq!(empty[4..6], [0, 0]);
    // No field says so much.
    let mut long = vec![0x45; 70_000];
    long[2..4].fill(0);
    fill_in_length(Family::V4, &mut long);
    assert_eq!(long[2..4], [0, 0]);
}
