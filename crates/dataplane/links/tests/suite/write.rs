//! Captures out: what the files hold, and when they appear.

use crate::support;

use std::fs;
use std::path::Path;

use forebay_links::LinkType;
use forebay_links::capture::{CaptureErrorKind, Format, MAX_RECORD, Reader, Resolution, Writer};
use support::{Bytes, read};

const STAMP: u64 = 1_700_000_000_123_456_789;

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn pcap_byte_by_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    for (resolution, magic, fraction) in [
        (Resolution::Microseconds, 0xa1b2_c3d4, 123_456),
        (Resolution::Nanoseconds, 0xa1b2_3c4d, 123_456_789),
    ] {
        let mut writer = Writer::create(&path).unwrap();
        writer.declare(LinkType::Raw, resolution).unwrap();
        writer.write(LinkType::Raw, STAMP, 9, b"abcde").unwrap();
        assert_eq!((writer.records(), writer.format()), (1, Format::Pcap));
        writer.finish().unwrap();
        let head = Bytes::new(false).u32(magic).u16(2).u16(4).u32(0).u32(0).u32(262_144).u32(101);
        let expected = head.record(1_700_000_000, fraction, 9, b"abcde").bytes;
        assert_eq!(fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn pcapng_byte_by_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.PcapNg");
    let mut writer = Writer::create(&path).unwrap();
    writer.write(LinkType::Ethernet, STAMP, 9, b"abcde").unwrap();
    writer.write(LinkType::Raw, STAMP, 4, b"abcd").unwrap();
    writer.write(LinkType::Ethernet, u64::MAX, 0, b"").unwrap();
    writer.finish().unwrap();
    let expected = Bytes::new(false)
        .section()
        .interface(1, 262_144, &[(9, &[9])])
        .enhanced(0, STAMP, 9, b"abcde")
        .interface(101, 262_144, &[(9, &[9])])
        .enhanced(1, STAMP, 4, b"abcd")
        .enhanced(0, u64::MAX, 0, b"");
    assert_eq!(fs::read(&path).unwrap(), expected.bytes);
}

#[test]
fn an_empty_capture_is_one() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["x.pcap", "x.pcapng"] {
        let path = directory.path().join(name);
        Writer::create(&path).unwrap().finish().unwrap();
        assert_eq!(Reader::open(&path).unwrap().link(), Some(LinkType::Raw));
        let mut writer = Writer::create(&path).unwrap();
        writer.declare(LinkType::Null, Resolution::Microseconds).unwrap();
        writer.finish().unwrap();
        assert_eq!(Reader::open(&path).unwrap().link(), Some(LinkType::Null));
        assert!(read(&fs::read(&path).unwrap()).is_empty());
    }
}

#[test]
fn pcap_has_one_link_type() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    let mut writer = Writer::create(&path).unwrap();
    writer.write(LinkType::Ethernet, 1, 1, b"a").unwrap();
    let error = writer.write(LinkType::Raw, 2, 1, b"b").unwrap_err();
    assert!(matches!(error.kind, CaptureErrorKind::MixedLinkTypes { record: 2, .. }));
    assert!(error.hint().unwrap().contains(".pcapng"));
    assert!(writer.declare(LinkType::Raw, Resolution::Microseconds).is_err());
    writer.write(LinkType::Ethernet, 3, 1, b"c").unwrap();
    writer.finish().unwrap();
    let stamps: Vec<u64> = read(&fs::read(&path).unwrap()).iter().map(|record| record.timestamp_ns).collect();
    assert_eq!(stamps, [1, 3]);
}

#[test]
fn what_the_format_cannot_hold_is_told_and_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    let mut writer = Writer::create(&path).unwrap();
    let late = writer.write(LinkType::Raw, (1 << 32) * 1_000_000_000, 0, b"").unwrap_err();
    assert!(matches!(late.kind, CaptureErrorKind::TimestampRange { until: 2106, .. }));
    let long = writer.write(LinkType::Raw, 0, 0, &vec![0; MAX_RECORD + 1]).unwrap_err();
    assert!(matches!(long.kind, CaptureErrorKind::TooLong { .. }));
    writer.write(LinkType::Raw, 0, 0, &vec![0; MAX_RECORD]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&fs::read(&path).unwrap()).len(), 1);
}

#[test]
fn the_output_appears_when_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    fs::write(&path, "old").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    for _ in 0..1_000 {
        writer.write(LinkType::Raw, 0, 0, &[0; 1_000]).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(
        (fs::read(&path).unwrap(), entries(directory.path())),
        (b"old".to_vec(), vec!["x.pcap".into()])
    );

    Writer::create(&path).unwrap().finish().unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 24);
    assert_eq!(entries(directory.path()), ["x.pcap"]);
}

#[test]
fn an_output_may_be_the_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    let many =
        (0..5_000).fold(Bytes::new(true).pcap(0xa1b2_c3d4, 101), |b, i| b.record(i, i, 500, &[1; 500]));
    fs::write(&path, &many.bytes).unwrap();
    let before = read(&many.bytes);
    let mut reader = Reader::open(&path).unwrap();
    let mut writer = Writer::create(&path).unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        writer.write(record.link, record.timestamp_ns, record.original_len, record.data).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(read(&fs::read(&path).unwrap()), before);
}

#[test]
fn an_output_that_cannot_be_written_is_told_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let missing = Writer::create(directory.path().join("none/x.pcap")).err().unwrap();
    assert!(missing.to_string().ends_with("No such file or directory (os error 2)"), "{missing}");
    assert!(missing.hint().unwrap().contains("create it"));
    let is_directory = Writer::create(directory.path()).err().unwrap();
    assert!(is_directory.to_string().starts_with("cannot create "), "{is_directory}");
    assert!(is_directory.hint().is_some());
    let standard = Writer::create("-").err().unwrap();
    assert!(matches!(standard.kind, CaptureErrorKind::StandardOutput));
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Writer::create(file.join("x.pcap")).is_err());
    assert!(Writer::create("").is_err());
    assert!(Writer::create(directory.path().join("new/")).is_err());
    assert_eq!(entries(directory.path()), ["file"]);
}

#[cfg(unix)]
mod unix {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn permissions_are_those_of_any_new_file_or_of_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let (path, plain) = (directory.path().join("x.pcap"), directory.path().join("plain"));
        fs::write(&plain, "").unwrap();
        Writer::create(&path).unwrap().finish().unwrap();
        assert_eq!(mode(&path), mode(&plain));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        Writer::create(&path).unwrap().finish().unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn a_protected_file_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pcap");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        if fs::OpenOptions::new().append(true).open(&path).is_ok() {
            eprintln!("skipped: this user may write protected files");
            return;
        }
        assert!(Writer::create(&path).err().unwrap().hint().unwrap().contains("writable"));
    }

    #[test]
    fn a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target.pcap"), directory.path().join("x.pcap"));
        fs::write(&target, "old").unwrap();
        symlink("target.pcap", &link).unwrap();
        Writer::create(&link).unwrap().finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap().len(), 24);
    }

    #[test]
    fn a_device_stays_one() {
        let mut writer = Writer::create("/dev/null").unwrap();
        writer.write(LinkType::Raw, 0, 0, b"a").unwrap();
        writer.finish().unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_pipe_carries_a_capture_out_and_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe.pcapng");
        if !Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: mkfifo does not work here");
            return;
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = Writer::create(&path).unwrap();
                for i in 0..2_000 {
                    writer.write(LinkType::Raw, i, 700, &[i as u8; 700]).unwrap();
                }
                writer.finish().unwrap();
            });
            let mut reader = Reader::open(&path).unwrap();
            for i in 0..2_000 {
                let record = reader.next_record().unwrap().unwrap();
                assert_eq!((record.timestamp_ns, record.data), (i, &[i as u8; 700][..]));
            }
            assert!(reader.next_record().unwrap().is_none());
        });
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_full_device_is_told() {
        let Ok(mut full) = Writer::create("/dev/full") else {
            eprintln!("skipped: /dev/full cannot be opened");
            return;
        };
        let mut writes = (0..1_000).map(|_| full.write(LinkType::Raw, 0, 0, &[0; 1_000]));
        let error = writes.find_map(Result::err).unwrap();
        assert!(error.to_string().starts_with("cannot write /dev/full: "), "{error}");
        let mut one = Vec::new();
        fs::File::open("/dev/zero").unwrap().take(1).read_to_end(&mut one).unwrap();
        assert_eq!(one, [0]);
    }
}
