//! pcap files, byte by byte.

use crate::support;

use std::cell::Cell;
use std::io::{self, Read};

use forebay_links::LinkType;
use forebay_links::capture::{CaptureErrorKind, Format, MAX_RECORD, Reader, Resolution};
use support::{Bytes, Owned, read, read_all};

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;

#[test]
fn both_byte_orders_and_both_resolutions() {
    for (big, magic) in [(false, MICRO), (true, MICRO), (false, NANO), (true, NANO)] {
        let file = Bytes::new(big)
            .pcap(magic, 1)
            .record(1_700_000_000, 123_456, 1500, b"abcde")
            .record(u32::MAX, 999_999, 0, b"")
            .bytes;
        let unit = if magic == MICRO { 1_000 } else { 1 };
        let reader = Reader::new(&file[..], "x").unwrap();
        let resolution = if magic == MICRO { Resolution::Microseconds } else { Resolution::Nanoseconds };
        assert_eq!((reader.format(), reader.resolution()), (Format::Pcap, resolution));
        assert_eq!(reader.link(), Some(LinkType::Ethernet));
        let expected =
            [(1_700_000_000, 123_456, 1500, &b"abcde"[..]), (u64::from(u32::MAX), 999_999, 0, b"")].map(
                |(seconds, fraction, original_len, data)| Owned {
                    timestamp_ns: seconds * 1_000_000_000 + fraction * unit,
                    link: LinkType::Ethernet,
                    original_len,
                    data: data.to_vec(),
                },
            );
        assert_eq!(read(&file), expected);
    }
}

#[test]
fn the_little_endian_file_of_the_draft() {
    // Written out once without the builder that all other tests share.
    let file = [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0, //
        1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0x45, 0, 0,
    ];
    let mut reader = Reader::new(&file[..], "x").unwrap();
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!((record.timestamp_ns, record.link), (1_000_002_000, LinkType::Raw));
    assert_eq!((record.data, record.original_len), (&[0x45, 0, 0][..], 4));
    assert_eq!((record.number, record.offset), (1, 24));
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn fractions_past_a_second_carry() {
    let file = Bytes::new(false).pcap(MICRO, 1).record(1, 1_000_001, 0, b"").bytes;
    assert_eq!(read(&file)[0].timestamp_ns, 2_000_001_000);
    let file = Bytes::new(false).pcap(MICRO, 1).record(u32::MAX, u32::MAX, 0, b"").bytes;
    assert_eq!(read(&file)[0].timestamp_ns, 4_294_967_295 * 1_000_000_000 + 4_294_967_295_000);
}

#[test]
fn a_frame_check_sequence_in_the_link_type_is_no_other_link_type() {
    let file = Bytes::new(true).pcap(MICRO, 0x4400_0001).bytes;
    assert_eq!(Reader::new(&file[..], "x").unwrap().link(), Some(LinkType::Ethernet));
}

#[test]
fn a_file_that_is_no_capture_is_told_with_a_hint() {
    let error = |bytes: &[u8]| read_all(bytes).1.unwrap_err();
    assert!(matches!(error(b"").kind, CaptureErrorKind::Empty));
    let gzip = error(&[0x1f, 0x8b, 8, 8, 0]);
    assert!(matches!(gzip.kind, CaptureErrorKind::UnknownMagic { found: [0x1f, 0x8b, 8, 8] }));
    assert!(gzip.hint().unwrap().contains("gunzip"), "{gzip}");
    assert_eq!(
        error(b"# Malformed").to_string(),
        "capture: byte 0: the file begins with 23 20 4d 61, expected the magic number of pcap or pcapng"
    );
    assert!(matches!(error(&[0xd4, 0xc3]).kind, CaptureErrorKind::Truncated { found: 2, expected: 4, .. }));
}

#[test]
fn another_link_type_or_version_is_told() {
    let (_, end) = read_all(&Bytes::new(false).pcap(MICRO, 105).bytes);
    let error = end.unwrap_err();
    assert_eq!(error.offset, 20);
    assert_eq!(error.to_string(), "capture: byte 20: link type 105, expected one that carries IP");
    for version in [[1, 0, 4, 0], [2, 0, 5, 0], [3, 0, 4, 0], [31, 2, 0, 0]] {
        let mut file = Bytes::new(false).pcap(MICRO, 1).bytes;
        file[4..8].copy_from_slice(&version);
        let error = read_all(&file).1.unwrap_err();
        assert!(matches!(error.kind, CaptureErrorKind::UnsupportedVersion { .. }), "{error}");
    }
}

#[test]
fn versions_before_2_4_have_the_lengths_the_other_way_round() {
    let record = |minor, first, second| {
        let mut head = Bytes::new(false).pcap(MICRO, 1);
        head.bytes[6] = minor;
        read(&head.u32(0).u32(0).u32(first).u32(second).raw(b"ab").bytes).remove(0)
    };
    for (minor, first, second) in [(4, 2, 9), (3, 2, 9), (3, 9, 2), (2, 9, 2), (0, 9, 2)] {
        let record = record(minor, first, second);
        assert_eq!((record.original_len, &record.data[..]), (9, &b"ab"[..]), "2.{minor}");
    }
}

#[test]
fn a_record_may_be_as_long_as_the_limit_and_no_longer() {
    let longest = vec![5; MAX_RECORD];
    let head = Bytes::new(false).pcap(MICRO, 1).record(0, 0, 1, &longest);
    assert_eq!(read(&head.bytes)[0].data, longest);
    let file = head.record(0, 0, 1, &vec![5; MAX_RECORD + 1]).bytes;
    let (records, end) = read_all(&file);
    let error = end.unwrap_err();
    assert_eq!((records.len(), error.offset), (1, 24 + 16 + MAX_RECORD as u64));
    assert!(matches!(
        error.kind,
        CaptureErrorKind::TooLong { record: 2, found: 262_145, limit: 262_144, .. }
    ));
}

#[test]
fn many_records_across_the_window_keep_their_bytes() {
    let lengths = || (0..3_000usize).map(|i| i * 7919 % 1_500);
    let content = |i: usize, n: usize| vec![i as u8; n];
    let file = lengths().enumerate().fold(Bytes::new(false).pcap(NANO, 1), |bytes, (i, n)| {
        bytes.record(i as u32, i as u32, n as u32, &content(i, n))
    });
    let records = read(&file.bytes);
    assert_eq!(records.len(), 3_000);
    for ((i, n), record) in lengths().enumerate().zip(records) {
        assert_eq!(record.timestamp_ns, i as u64 * 1_000_000_001);
        assert_eq!(record.data, content(i, n));
    }
}

/// An endless capture of long records that counts the bytes it has given.
struct Endless<'a> {
    head: &'a [u8],
    record: &'a [u8],
    given: &'a Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() {
            self.head = self.record;
        }
        let n = self.head.read(buffer)?;
        self.given.set(self.given.get() + n as u64);
        Ok(n)
    }
}

#[test]
fn an_endless_capture_is_read_with_bounded_reading_ahead() {
    let head = Bytes::new(false).pcap(MICRO, 1).bytes;
    let record = Bytes::new(false).record(0, 0, 0, &[1; 200_000]).bytes;
    let given = Cell::new(0);
    let mut reader = Reader::new(Endless { head: &head, record: &record, given: &given }, "x").unwrap();
    for _ in 0..10_000 {
        let offset = reader.next_record().unwrap().unwrap().offset;
        assert!(given.get() - offset <= 1 << 20);
    }
    assert!(given.get() > 2_000_000_000);
}

#[test]
fn a_missing_file_and_a_directory_are_told() {
    let error = Reader::open("/nonexistent/x.pcap").err().unwrap();
    assert!(error.to_string().starts_with("cannot open /nonexistent/x.pcap: "), "{error}");
    assert!(error.hint().is_some());
    let error = Reader::open(std::env::temp_dir()).err().unwrap();
    assert!(matches!(error.kind, CaptureErrorKind::Io { .. }), "{error}");
}
