//! Captures made byte by byte, and whole captures as plain values.
#![allow(dead_code)] // each test file uses its part

use std::path::PathBuf;
use std::process::{Command, Stdio};

use forebay_links::LinkType;
use forebay_links::capture::{CaptureError, Reader};

/// The directory of captures that others made; `None`, with a message, where it is absent.
pub fn corpora() -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/corpora"));
    if !path.is_dir() {
        eprintln!("skipped: {} is absent", path.display());
        return None;
    }
    Some(path)
}

/// Whether a program can be started; says so where it cannot.
pub fn has_program(name: &str, probe: &[&str]) -> bool {
    let ran = Command::new(name).args(probe).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = ran.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: `{name} {}` does not work here", probe.join(" "));
    }
    found
}

/// A record that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub timestamp_ns: u64,
    pub link: LinkType,
    pub original_len: u32,
    pub data: Vec<u8>,
}

/// The records of a capture up to its end or its first error.
pub fn read_all(capture: &[u8]) -> (Vec<Owned>, Result<(), CaptureError>) {
    let mut records = Vec::new();
    let mut reader = match Reader::new(capture, "capture") {
        Ok(reader) => reader,
        Err(error) => return (records, Err(error)),
    };
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert_eq!(record.number, records.len() as u64 + 1);
                assert!(record.offset < capture.len() as u64);
                records.push(Owned {
                    timestamp_ns: record.timestamp_ns,
                    link: record.link,
                    original_len: record.original_len,
                    data: record.data.to_vec(),
                });
            }
            Ok(None) => return (records, Ok(())),
            Err(error) => {
                assert!(reader.next_record().unwrap().is_none(), "a record after an error");
                return (records, Err(error));
            }
        }
    }
}

/// The records of a capture that must be sound.
pub fn read(capture: &[u8]) -> Vec<Owned> {
    let (records, end) = read_all(capture);
    end.unwrap();
    records
}

/// Bytes in a byte order, written field by field.
#[derive(Clone)]
pub struct Bytes {
    pub big: bool,
    pub bytes: Vec<u8>,
}

impl Bytes {
    pub fn new(big: bool) -> Bytes {
        Bytes { big, bytes: Vec::new() }
    }

    pub fn u16(mut self, value: u16) -> Bytes {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u32(mut self, value: u32) -> Bytes {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u64(mut self, value: u64) -> Bytes {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.bytes.extend(bytes);
        self
    }

    /// Zeros up to a multiple of four bytes.
    pub fn pad(mut self) -> Bytes {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// A pcap file header.
    pub fn pcap(self, magic: u32, link: u32) -> Bytes {
        self.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65_535).u32(link)
    }

    /// A pcap record.
    pub fn record(self, seconds: u32, fraction: u32, original_len: u32, data: &[u8]) -> Bytes {
        self.u32(seconds).u32(fraction).u32(data.len() as u32).u32(original_len).raw(data)
    }

    /// A pcapng block.
    pub fn block(self, kind: u32, body: impl Fn(Bytes) -> Bytes) -> Bytes {
        let body = body(Bytes::new(self.big)).pad().bytes;
        let length = body.len() as u32 + 12;
        self.u32(kind).u32(length).raw(&body).u32(length)
    }

    /// A section header block.
    pub fn section(self) -> Bytes {
        self.block(0x0a0d_0d0a, |b| b.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX))
    }

    /// An interface description block with options.
    pub fn interface(self, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Bytes {
        self.block(1, |b| {
            let head = b.u16(link).u16(0).u32(snaplen);
            let filled = options
                .iter()
                .fold(head, |b, (code, value)| b.u16(*code).u16(value.len() as u16).raw(value).pad());
            if options.is_empty() { filled } else { filled.u32(0) }
        })
    }

    /// An enhanced packet block.
    pub fn enhanced(self, interface: u32, units: u64, original_len: u32, data: &[u8]) -> Bytes {
        self.block(6, |b| {
            b.u32(interface)
                .u32((units >> 32) as u32)
                .u32(units as u32)
                .u32(data.len() as u32)
                .u32(original_len)
                .raw(data)
        })
    }

    /// An old packet block, with a count of drops.
    pub fn old(self, interface: u16, units: u64, original_len: u32, data: &[u8]) -> Bytes {
        self.block(2, |b| {
            b.u16(interface)
                .u16(77)
                .u32((units >> 32) as u32)
                .u32(units as u32)
                .u32(data.len() as u32)
                .u32(original_len)
                .raw(data)
        })
    }

    /// A simple packet block.
    pub fn simple(self, original_len: u32, data: &[u8]) -> Bytes {
        self.block(3, |b| b.u32(original_len).raw(data))
    }
}

/// A pcap file with two records, and the bytes at which a record begins or the file ends.
pub fn sample_pcap(big: bool) -> (Vec<u8>, Vec<usize>) {
    let head = Bytes::new(big).pcap(0xa1b2_c3d4, 1);
    let first = head.clone().record(1, 2, 60, &[7; 33]);
    let second = first.clone().record(3, 4, 10, &[8; 10]);
    let boundaries = [&head, &first, &second].map(|bytes| bytes.bytes.len()).to_vec();
    (second.bytes, boundaries)
}

/// A pcapng file with every kind of block, and the bytes at which a block begins or the file ends.
pub fn sample_pcapng(big: bool) -> (Vec<u8>, Vec<usize>) {
    let tsresol: &[(u16, &[u8])] = &[(2, b"eth0"), (9, &[9])];
    let steps: [&dyn Fn(Bytes) -> Bytes; 8] = [
        &|b| b.section(),
        &|b| b.interface(1, 0, tsresol),
        &|b| b.enhanced(0, 1_700_000_000_123_456_789, 60, &[1; 41]),
        &|b| b.block(0x0bad_f00d, |b| b.raw(&[0xee; 90])),
        &|b| b.interface(101, 96, &[]),
        &|b| b.old(1, 1_700_000_000_123_456, 20, &[2; 20]),
        &|b| b.simple(5, &[3; 5]),
        &|b| b.section(),
    ];
    let mut boundaries = Vec::new();
    let whole = steps.iter().fold(Bytes::new(big), |bytes, step| {
        let bytes = step(bytes);
        boundaries.push(bytes.bytes.len());
        bytes
    });
    (whole.bytes, boundaries)
}
