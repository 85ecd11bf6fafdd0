//! Super-packets: what is put together comes apart again as it was, and only what may be is put together.

use crate::{build, support};

use build::Build;
use forebay_links::LinkType;
use forebay_links::capture::{Resolution, Writer};
use forebay_links::offload::merge::{MAX_HEAD, Merge, Merger};
use forebay_links::offload::split::{Split, complete_checksum};
use forebay_links::offload::{Kind, NEEDS_CHECKSUM, Unsound, VnetHeader};
use forebay_wire::checksum::Sum;
use proptest::collection::vec;
use proptest::prelude::*;
use support::has_program;

/// The bytes that the kernel would get for each train.
fn merged(packets: &[Vec<u8>], merge: Merge) -> Vec<(VnetHeader, Vec<u8>)> {
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let mut merger = Merger::default();
    merger.group(&packets, merge);
    let supers = merger.trains().iter().map(|train| {
        let mut head = [0; MAX_HEAD];
        let header = train.header(&packets, &mut head);
        let mut bytes = head[..train.head_len()].to_vec();
        for i in merger.members(train) {
            bytes.extend(&packets[i][train.head_len()..]);
        }
        (header, bytes)
    });
    supers.collect()
}

fn split(header: &VnetHeader, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Unsound> {
    let Some(kind) = header.kind()? else { return Ok(vec![bytes.to_vec()]) };
    let mut split = Split::EMPTY;
    split.start(header, kind, bytes)?;
    let mut segments = Vec::new();
    while let Some((head, body)) = split.next(bytes) {
        segments.push([head, body].concat());
    }
    assert!(split.is_empty());
    Ok(segments)
}

/// A packet's flow, and the packet but for what may change: the identification if fragmentation is forbidden.
/// What has been damaged beyond being a packet of a flow is of none.
fn comparable(packet: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut packet = packet.to_vec();
    let word = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let flow = match packet[0] {
        0x45 if word(2) == packet.len() && word(6) & 0xbfff == 0 => {
            [&packet[9..10], &packet[12..24]].concat()
        }
        byte if byte >> 4 == 6 && 40 + word(4) == packet.len() => [&packet[6..7], &packet[8..44]].concat(),
        _ => Vec::new(),
    };
    if packet[0] == 0x45 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    (flow, packet)
}

/// One flow of a few packets that mostly follow each other, with what prevents merging strewn in.
fn flow() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let change = (0u8..24, any::<u8>(), any::<u16>());
    (
        any::<bool>(),
        any::<bool>(),
        0u8..3,
        any::<bool>(),
        prop_oneof![Just(4usize), 1..40usize, Just(1400)],
        0..4usize,
        vec(change, 1..24),
    )
        .prop_map(|(v6, udp, host, dont_fragment, size, options, changes)| {
            let mut build = Build {
                v6,
                udp,
                hosts: (host, 9),
                dont_fragment,
                options: vec![1; 4 * options],
                ..Build::default()
            };
            let mut packets = Vec::new();
            for (kind, byte, word) in changes {
                let mut this = build.clone();
                let len = match kind {
                    0 => size.saturating_sub(usize::from(byte) % 3),
                    1 => size + 1,
                    2 => 0,
                    _ => size,
                };
                this.payload = (0..len).map(|i| (i as u8).wrapping_mul(byte)).collect();
                match kind {
                    3 => this.flags |= 0x08,
                    4 => this.flags |= byte & 0xcf,
                    5 => this.sequence = this.sequence.wrapping_add(word.into()),
                    6 => this.class = byte,
                    7 => this.ttl = byte,
                    8 => this.window = word,
                    9 => this.identification = word,
                    10 => build.sequence = u32::MAX - u32::from(byte),
                    _ => {}
                }
                let mut packet = this.packet();
                if kind == 11 {
                    let at = usize::from(word) % packet.len();
                    packet[at] ^= byte;
                }
                packets.push(packet);
                build.sequence = build.sequence.wrapping_add(len as u32);
                build.identification = build.identification.wrapping_add(1);
            }
            packets
        })
}

/// A few flows, interleaved.
fn burst() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (vec(flow(), 1..4), vec(0..4usize, 96)).prop_map(|(flows, order)| {
        let count = flows.len();
        let mut flows: Vec<_> = flows.into_iter().map(Vec::into_iter).collect();
        let mut packets: Vec<Vec<u8>> =
            order.into_iter().filter_map(|which| flows[which % count].next()).collect();
        packets.extend(flows.into_iter().flatten());
        packets
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_merged_splits_into_the_same_packets_in_the_order_of_each_flow(packets in burst()) {
        let mut before: Vec<_> = packets.iter().map(|packet| comparable(packet)).collect();
        let mut after = Vec::new();
        for (header, bytes) in merged(&packets, Merge::TcpAndUdp) {
            after.extend(split(&header, &bytes).unwrap().iter().map(|packet| comparable(packet)));
        }
        before.sort_by(|a, b| a.0.cmp(&b.0)); // stable: by flow, in order
        after.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(before, after);
    }

    #[test]
    fn no_bytes_make_splitting_panic(
        header in any::<[u8; 10]>(),
        mut bytes in vec(any::<u8>(), 0..200),
        likely in any::<bool>(),
    ) {
        let mut header = VnetHeader::parse(&header);
        if likely && bytes.len() > 60 {
            bytes[0] = 0x45;
            bytes[32] = 0x50 | bytes[32] & 15;
            header.gso_type = 1 | header.gso_type & 0x80;
            (header.flags, header.checksum_start) = (NEEDS_CHECKSUM, 20);
            header.gso_size %= 64;
        }
        if let Ok(segments) = split(&header, &bytes) {
            prop_assert!(segments.len() <= bytes.len().max(1));
        }
        let _ = complete_checksum(&header, &mut bytes);
    }
}

#[test]
fn a_stream_becomes_one_super_packet() {
    let mut build = Build { class: 2, ..Build::default() };
    let mut packets = Vec::new();
    for i in 0..10 {
        build.payload = vec![i; if i == 9 { 33 } else { 1000 }];
        build.flags = if i == 9 { 0x18 } else { 0x10 };
        packets.push(build.packet());
        build.sequence += 1000;
    }
    let supers = merged(&packets, Merge::Tcp);
    let [(header, bytes)] = &supers[..] else { panic!("{} super-packets", supers.len()) };
    assert_eq!(bytes.len(), 40 + 9 * 1000 + 33);
    assert_eq!((header.gso_size, header.header_len), (1000, 40));
    assert_eq!((header.checksum_start, header.checksum_offset), (20, 16));
    assert_eq!(header.kind(), Ok(Some(Kind::TcpV4)));
    assert_eq!(bytes[33], 0x18, "flags");
    assert_eq!(Sum::ZERO.bytes(&bytes[..20]).finish(), 0, "the IP header's checksum");
}

#[test]
fn cwr_is_the_first_ones_and_makes_the_super_packet_one_of_ecn() {
    let mut build = Build { flags: 0x90, ..Build::default() };
    let mut packets = Vec::new();
    for _ in 0..3 {
        packets.push(build.packet());
        build.sequence += build.payload.len() as u32;
        build.flags = 0x10;
    }
    build.flags = 0x90;
    packets.push(build.packet());
    let supers = merged(&packets, Merge::Tcp);
    assert_eq!(supers.len(), 2, "a CWR in the middle would be lost");
    assert_eq!(supers[0].0.gso_type, 0x81);
}

#[test]
fn nothing_is_merged_that_is_not_asked_for() {
    let mut build = Build { udp: true, ..Build::default() };
    let mut packets = vec![build.packet(), build.packet()];
    assert_eq!(merged(&packets, Merge::TcpAndUdp).len(), 1);
    assert_eq!(merged(&packets, Merge::Tcp).len(), 2);
    build.udp = false;
    packets = vec![build.packet()];
    build.sequence += 7;
    packets.push(build.packet());
    assert_eq!(merged(&packets, Merge::Nothing).len(), 2);
    assert_eq!(merged(&packets, Merge::Tcp).len(), 1);
}

#[test]
fn a_wrong_checksum_stays_alone_and_wrong() {
    let mut build = Build::default();
    let mut packets = Vec::new();
    for _ in 0..4 {
        packets.push(build.packet());
        build.sequence += 7;
    }
    let last = packets[1].len() - 1;
    packets[1][last] ^= 1;
    let supers = merged(&packets, Merge::Tcp);
    assert_eq!(supers.len(), 3, "one, the wrong one, two");
    assert_eq!(supers[1].1, packets[1]);
}

/// A TCP offset beyond the packet, or a packet that ends behind the ports.
#[test]
fn what_claims_more_header_than_there_is_keeps_its_place_in_the_flow() {
    for (v6, udp, cut) in
        [(false, false, 0), (true, false, 0), (false, false, 23), (true, false, 23), (false, true, 11)]
    {
        let mut build = Build { v6, udp, ..Build::default() };
        let before = build.packet();
        let mut odd = build.packet();
        build.sequence += build.payload.len() as u32;
        let after = build.packet();
        let l4 = if v6 { 40 } else { 20 };
        if cut == 0 {
            odd[l4 + 12] = 0xf0;
        }
        odd.truncate(odd.len() - cut);
        let word = (odd.len() - if v6 { 40 } else { 0 }) as u16;
        let at = if v6 { 4 } else { 2 };
        odd[at..at + 2].copy_from_slice(&word.to_be_bytes());
        let packets = [before, odd, after];
        let sent: Vec<_> = merged(&packets, Merge::TcpAndUdp).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(sent, packets, "{v6} {udp} {cut}");
    }
}

#[test]
fn a_partial_checksum_is_completed() {
    for (udp, v6) in [(false, false), (false, true), (true, false), (true, true)] {
        let build = Build { udp, v6, ..Build::default() };
        let right = build.packet();
        let start = if v6 { 40 } else { 20 };
        let at = if udp { 6 } else { 16 };
        let addresses = if v6 { 8..40 } else { 12..20 };
        let pseudo = Sum::ZERO
            .bytes(&right[addresses])
            .word(if udp { 17 } else { 6 })
            .word((right.len() - start) as u16);
        let mut partial = right.clone();
        partial[start + at..start + at + 2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            checksum_start: start as u16,
            checksum_offset: at as u16,
            ..VnetHeader::default()
        };
        complete_checksum(&header, &mut partial).unwrap();
        assert_eq!(partial, right);
    }
}

#[test]
fn tshark_finds_every_checksum_right() {
    if !has_program("tshark", &["--version"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("segments.pcap");
    let mut writer = Writer::create(&path).unwrap();
    writer.declare(LinkType::Raw, Resolution::Microseconds).unwrap();
    let mut count = 0;
    for (udp, v6) in [(false, false), (false, true), (true, false), (true, true)] {
        for (size, options) in [(1000, 0), (1, 3), (77, 10)] {
            let options = vec![1; 4 * options];
            let mut build = Build { udp, v6, options, dont_fragment: false, ..Build::default() };
            let mut packets = Vec::new();
            for i in 0..40u8 {
                build.payload = (0..size).map(|at| (at as u8).wrapping_mul(i)).collect();
                packets.push(build.packet());
                build.sequence = build.sequence.wrapping_add(size);
                build.identification = build.identification.wrapping_add(1);
            }
            let supers = merged(&packets, Merge::TcpAndUdp);
            assert_eq!(supers.len(), 1);
            for segment in split(&supers[0].0, &supers[0].1).unwrap() {
                writer.write(LinkType::Raw, count, segment.len() as u32, &segment).unwrap();
                count += 1;
            }
        }
    }
    writer.finish().unwrap();
    let check = ["ip", "tcp", "udp"].map(|name| format!("-o{name}.check_checksum:TRUE"));
    let fields = ["ip", "tcp", "udp"].map(|name| format!("-e{name}.checksum.status"));
    let output = std::process::Command::new("tshark")
        .args(check)
        .args(["-Tfields", "-Eseparator=,"])
        .args(fields)
        .arg("-r")
        .arg(&path)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len() as u64, count);
    // Status 1 is good; what is not there says nothing.
    for kind in ["1,1,", ",1,", "1,,1", ",,1"] {
        assert_eq!(lines.iter().filter(|line| **line == kind).count(), 120, "{kind}");
    }
}
