//! Captures that others made, sound and damaged, against an independent reader.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_links::capture::{CaptureErrorKind, MAX_RECORD, Reader};
use forebay_links::frame::locate;
use support::{corpora, has_program};

fn captures(room: &str) -> Vec<PathBuf> {
    let Some(corpora) = corpora() else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpora.join(room)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What a reader made of a file: records, records with IP, the error at the end.
struct Outcome {
    records: u64,
    with_ip: u64,
    error: Option<CaptureErrorKind>,
}

fn read_file(path: &Path) -> Outcome {
    let mut outcome = Outcome { records: 0, with_ip: 0, error: None };
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => return Outcome { error: Some(error.kind), ..outcome },
    };
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!(record.data.len() <= MAX_RECORD);
                outcome.records += 1;
                outcome.with_ip += u64::from(locate(record.link, record.data).is_ok());
            }
            Ok(None) => return outcome,
            Err(error) => {
                assert!(error.offset <= fs::metadata(path).unwrap().len(), "{error}");
                return Outcome { error: Some(error.kind), ..outcome };
            }
        }
    }
}

/// How many records libpcap reads, and whether it is content with the file's end.
fn counted_by_tcpdump(path: &Path) -> (u64, bool) {
    // Copied and counted there: printed packets may have several lines or none.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.pcap");
    let output = Command::new("tcpdump").arg("-r").arg(path).arg("-w").arg(&copy).output().unwrap();
    let written = fs::read(&copy).unwrap_or_default();
    let mut rest = written.get(24..).unwrap_or_default();
    let mut count = 0;
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        rest = rest.get(16 + length..).unwrap_or_default();
        count += 1;
    }
    (count, output.status.success())
}

#[test]
fn malformed_captures_are_read_as_far_as_libpcap_reads_them() {
    let compare = has_program("tcpdump", &["--version"]);
    let (mut sound, mut refused) = (0, 0);
    for path in captures("malformed") {
        let outcome = read_file(&path);
        match &outcome.error {
            None => sound += 1,
            Some(error) => {
                eprintln!("{}: {} records, then: {error}", path.display(), outcome.records);
                refused += 1;
            }
        }
        if compare {
            let (count, content) = counted_by_tcpdump(&path);
            if content != outcome.error.is_none() {
                eprintln!("{}: tcpdump reads {count}, content: {content}", path.display());
            }
            match &outcome.error {
                // libpcap passes link types through that hold no IP, and has other limits.
                Some(CaptureErrorKind::UnsupportedLinkType { .. } | CaptureErrorKind::Io { .. }) => {}
                _ => assert_eq!(outcome.records, count, "{}", path.display()),
            }
        }
    }
    eprintln!("{sound} captures sound, {refused} not");
}

#[test]
fn traffic_is_read_to_the_last_record() {
    let compare = has_program("tcpdump", &["--version"]);
    for path in captures("traffic") {
        let outcome = read_file(&path);
        assert!(outcome.error.is_none(), "{}: {:?}", path.display(), outcome.error);
        eprintln!("{}: {} records, {} with IP", path.display(), outcome.records, outcome.with_ip);
        let name = path.file_name().unwrap().to_str().unwrap();
        let known = [("zeek-mix.pcap", 81_501), ("snabb-sanitized4k.pcap", 4_096)];
        if let Some((_, count)) = known.iter().find(|row| row.0 == name) {
            assert_eq!(outcome.records, *count, "{name}");
        }
        if compare {
            assert_eq!(counted_by_tcpdump(&path), (outcome.records, true), "{name}");
        }
    }
}
