//! What must hold for any bytes and any records.

use crate::support;

use std::fs;

use forebay_links::LinkType;
use forebay_links::capture::{Reader, Resolution, Writer};
use forebay_links::frame::{Family, MAX_PREFIX, locate, reframe};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{Owned, read, read_all, sample_pcap, sample_pcapng};

fn link() -> impl Strategy<Value = LinkType> {
    proptest::sample::select(LinkType::ALL.to_vec())
}

fn record(stamps: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Owned> {
    let data = prop_oneof![10 => vec(any::<u8>(), 0..200), 1 => vec(any::<u8>(), 60_000..70_000)];
    (stamps, link(), any::<u32>(), data).prop_map(|(timestamp_ns, link, original_len, data)| Owned {
        timestamp_ns,
        link,
        original_len,
        data,
    })
}

fn written(name: &str, records: &[Owned], declared: Option<(LinkType, Resolution)>) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let mut writer = Writer::create(&path).unwrap();
    if let Some((link, resolution)) = declared {
        writer.declare(link, resolution).unwrap();
    }
    for record in records {
        writer.write(record.link, record.timestamp_ns, record.original_len, &record.data).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

const LAST_PCAP_STAMP: u64 = (1 << 32) * 1_000_000_000 - 1;

proptest! {
    #[test]
    fn pcapng_gives_back_what_was_written(records in vec(record(0..=u64::MAX), 0..20)) {
        prop_assert_eq!(read(&written("x.pcapng", &records, None)), records);
    }

    #[test]
    fn pcap_gives_back_what_was_written(
        mut records in vec(record(0..=LAST_PCAP_STAMP), 0..20),
        link in link(),
        nanoseconds in any::<bool>(),
    ) {
        let resolution = if nanoseconds { Resolution::Nanoseconds } else { Resolution::Microseconds };
        for record in &mut records {
            record.link = link;
            if !nanoseconds {
                record.timestamp_ns -= record.timestamp_ns % 1_000;
            }
        }
        let file = written("x.pcap", &records, Some((link, resolution)));
        prop_assert_eq!(Reader::new(&file[..], "x").unwrap().resolution(), resolution);
        prop_assert_eq!(read(&file), records);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..300), head in 0..7usize) {
        let heads: [&[u8]; 7] = [
            b"",
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4],
            &sample_pcap(false).0[..24],
            &sample_pcapng(false).0[..28],
            &sample_pcapng(true).0[..28],
            &sample_pcapng(false).0[..28 + 44],
        ];
        let _ = read_all(&[heads[head], &bytes].concat());
    }

    #[test]
    fn damaged_captures_are_read_without_panic(
        kind in 0..4usize,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut file = match kind {
            0 => sample_pcap(false).0,
            1 => sample_pcap(true).0,
            2 => sample_pcapng(false).0,
            _ => sample_pcapng(true).0,
        };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if is_cut {
            file.truncate(cut.index(file.len()));
        }
        if let (_, Err(error)) = read_all(&file) {
            prop_assert!(error.offset <= file.len() as u64);
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_frame_is_looked_into_without_panic(
        link in link(),
        frame in vec(prop_oneof![
            any::<u8>(),
            proptest::sample::select(vec![0, 2, 3, 8, 0x21, 0x45, 0x57, 0x60, 0x81, 0x86, 0xdd, 0xff]),
        ], 0..60),
    ) {
        let Ok(at) = locate(link, &frame) else { return Ok(()) };
        prop_assert!(at.start < frame.len() && at.start <= MAX_PREFIX);
        let mut out = Vec::new();
        for (family, packet) in [(Family::V4, [0x45, 1]), (Family::V6, [0x60, 1])] {
            reframe(&at, &frame, &packet, &mut out).unwrap();
            let again = locate(link.rewritten(), &out).unwrap();
            prop_assert_eq!((again.start, again.family), (at.start, family));
            prop_assert!(family != at.family || out[..at.start] == frame[..at.start]);
        }
    }
}

#[test]
fn every_single_byte_of_a_capture_may_have_any_value() {
    for big in [false, true] {
        for file in [sample_pcap(big).0, sample_pcapng(big).0] {
            for at in 0..file.len() {
                for value in [0, 1, 3, 4, 0x7f, 0x80, 0xfc, 0xff] {
                    let mut changed = file.clone();
                    changed[at] = value;
                    let _ = read_all(&changed);
                }
            }
        }
    }
}
