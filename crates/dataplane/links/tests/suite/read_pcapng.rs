//! pcapng files, byte by byte.

use crate::support;

use forebay_links::LinkType;
use forebay_links::capture::{CaptureError, CaptureErrorKind, Format, MAX_BLOCK, Reader, Resolution};
use support::{Bytes, Owned, read, read_all, sample_pcapng};

fn owned(timestamp_ns: u64, link: LinkType, original_len: u32, data: &[u8]) -> Owned {
    Owned { timestamp_ns, link, original_len, data: data.to_vec() }
}

fn error(bytes: Bytes) -> CaptureError {
    read_all(&bytes.bytes).1.unwrap_err()
}

#[test]
fn every_kind_of_block_in_both_byte_orders() {
    for big in [false, true] {
        let (file, _) = sample_pcapng(big);
        let reader = Reader::new(&file[..], "x").unwrap();
        assert_eq!((reader.format(), reader.link()), (Format::PcapNg, Some(LinkType::Ethernet)));
        assert_eq!(reader.resolution(), Resolution::Nanoseconds);
        assert_eq!(
            read(&file),
            [
                owned(1_700_000_000_123_456_789, LinkType::Ethernet, 60, &[1; 41]),
                owned(1_700_000_000_123_456_000, LinkType::Raw, 20, &[2; 20]),
                owned(0, LinkType::Ethernet, 5, &[3; 5]),
            ]
        );
    }
}

#[test]
fn a_file_written_out_without_the_builder() {
    let file = [
        0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, //
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0, //
        1, 0, 0, 0, 20, 0, 0, 0, 228, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, //
        6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, //
        0x45, 1, 2, 0, 36, 0, 0, 0,
    ];
    let mut reader = Reader::new(&file[..], "x").unwrap();
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!((record.timestamp_ns, record.link), (4_294_967_298_000, LinkType::Ipv4));
    assert_eq!((record.data, record.original_len, record.offset), (&[0x45, 1, 2][..], 9, 48));
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn each_interface_has_its_own_unit_and_origin() {
    for big in [false, true] {
        let second = if big { 1i64.to_be_bytes() } else { 1i64.to_le_bytes() };
        let file = Bytes::new(big)
            .section()
            .interface(1, 0, &[(9, &[0x80 | 10])])
            .interface(1, 0, &[(9, &[3]), (14, &second)])
            .interface(1, 0, &[(9, &[12])])
            .enhanced(0, 1536, 0, b"")
            .enhanced(1, 2_005, 0, b"")
            .enhanced(2, 7_999, 0, b"");
        let stamps: Vec<u64> = read(&file.bytes).iter().map(|record| record.timestamp_ns).collect();
        assert_eq!(stamps, [1_500_000_000, 3_005_000_000, 7]);
    }
}

#[test]
fn a_section_has_interfaces_and_byte_order_of_its_own() {
    let little = Bytes::new(false).section().interface(101, 0, &[]).enhanced(0, 1, 1, b"a").bytes;
    let big = Bytes::new(true).section().interface(229, 0, &[(9, &[9])]).enhanced(0, 1, 1, b"b").bytes;
    let both = [little, big].concat();
    assert_eq!(read(&both), [owned(1_000, LinkType::Raw, 1, b"a"), owned(1, LinkType::Ipv6, 1, b"b")]);
    let forgotten = Bytes::new(false).section().interface(1, 0, &[]).section().enhanced(0, 0, 0, b"");
    assert!(matches!(
        error(forgotten).kind,
        CaptureErrorKind::UnknownInterface { record: 1, found: 0, known: 0 }
    ));
}

#[test]
fn options_behind_a_packet_are_passed_over() {
    let file = Bytes::new(false)
        .section()
        .interface(1, 0, &[])
        .block(6, |b| b.u32(0).u32(0).u32(5).u32(3).u32(3).raw(b"abc\0").u16(1).u16(2).raw(b"hi\0\0").u32(0));
    assert_eq!(read(&file.bytes), [owned(5_000, LinkType::Ethernet, 3, b"abc")]);
}

#[test]
fn a_simple_packet_is_cut_at_the_snapshot_length() {
    let file = Bytes::new(false).section().interface(1, 6, &[]).simple(100, b"abcdef");
    assert_eq!(read(&file.bytes), [owned(0, LinkType::Ethernet, 100, b"abcdef")]);
    let lying = Bytes::new(false).section().interface(1, 0, &[]).simple(100, b"abcdef");
    assert!(matches!(error(lying).kind, CaptureErrorKind::Malformed { found: 100, .. }));
}

#[test]
fn a_packet_of_an_unsupported_link_type_is_read_as_such_and_those_behind_it_too() {
    let head = Bytes::new(false).section().interface(105, 0, &[]).interface(1, 0, &[]);
    let fine = head.clone().enhanced(1, 0, 1, b"a");
    assert_eq!(read(&fine.bytes).len(), 1);
    assert_eq!(Reader::new(&fine.bytes[..], "x").unwrap().link(), Some(LinkType::Ethernet));
    let links: Vec<_> = read(&fine.enhanced(0, 0, 1, b"b").enhanced(1, 0, 1, b"c").bytes)
        .into_iter()
        .map(|record| record.link)
        .collect();
    assert_eq!(links, [LinkType::Ethernet, LinkType::Other(105), LinkType::Ethernet]);
}

#[test]
fn skipped_blocks_may_be_longer_than_the_window() {
    let huge = vec![0; 3_000_000];
    let file = Bytes::new(false)
        .section()
        .interface(1, 0, &[])
        .block(0x8000_0bad, |b| b.raw(&huge))
        .enhanced(0, 1, 1, b"a");
    assert_eq!(read(&file.bytes).len(), 1);
    let known = Bytes::new(false).section().block(1, |b| b.u32(1).u32(0).raw(&huge));
    assert!(matches!(
        error(known).kind,
        CaptureErrorKind::TooLong { limit, .. } if limit == MAX_BLOCK as u64
    ));
}

#[test]
fn contradictions_are_told_with_their_place() {
    let head = || Bytes::new(false).section().interface(1, 0, &[]);
    let place = head().bytes.len() as u64;

    let mut trailer = head().enhanced(0, 0, 4, b"abcd");
    *trailer.bytes.last_mut().unwrap() = 1;
    let message = error(trailer).to_string();
    assert!(message.contains("the length behind a block is 16777252, at record 1, expected 36"), "{message}");

    let inside = error(head().block(6, |b| b.u32(0).u32(0).u32(0).u32(99).u32(99).raw(b"abcd")));
    assert!(matches!(inside.kind, CaptureErrorKind::Malformed { found: 99, .. }), "{inside}");
    assert_eq!(inside.offset, place);

    for length in [0, 4, 8, 13] {
        let wrong = error(head().u32(6).u32(length).raw(&[0; 64]));
        assert!(matches!(wrong.kind, CaptureErrorKind::Malformed { .. }), "{wrong}");
    }
    for kind in [1, 2, 3, 6] {
        for words in 0..if kind == 1 { 2 } else { 6 } {
            let short = error(head().block(kind, |b| b.raw(&vec![0xff; 4 * words])));
            assert_eq!(short.offset, place, "{short}");
        }
    }
    for option in [(9, &b"ab"[..]), (14, b"abcd")] {
        let wrong = error(Bytes::new(false).section().interface(1, 0, &[option]));
        assert!(matches!(wrong.kind, CaptureErrorKind::Malformed { .. }), "{wrong}");
    }
    let long_option = Bytes::new(false).section().block(1, |b| b.u32(1).u32(0).u16(2).u16(200).u32(0));
    assert!(matches!(error(long_option).kind, CaptureErrorKind::Malformed { found: 200, .. }));

    let late = error(head().enhanced(0, u64::MAX, 0, b""));
    assert!(matches!(late.kind, CaptureErrorKind::TimestampRange { record: 1, .. }), "{late}");
}

#[test]
fn a_section_header_must_be_one() {
    let mut file = Bytes::new(false).section();
    file.bytes[8] = 0;
    assert!(matches!(error(file.clone()).kind, CaptureErrorKind::Malformed { .. }));
    file.bytes[8] = 0x4d;
    file.bytes[12] = 2;
    assert!(matches!(error(file).kind, CaptureErrorKind::UnsupportedVersion { major: 2, minor: 0, .. }));
}
