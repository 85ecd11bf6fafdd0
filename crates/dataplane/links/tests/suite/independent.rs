//! What the writer wrote, read by programs that others wrote.

use crate::support;

use std::path::Path;
use std::process::Command;

use forebay_links::LinkType;
use forebay_links::capture::{Resolution, Writer};
use support::has_program;

const PYTHON: &str = "/usr/bin/python3";
const STAMPS: [u64; 4] = [0, 1_700_000_000_123_456_789, 1_700_000_001_000_000_001, 4_294_967_295_999_999_999];

/// A UDP packet of 29 bytes.
const PACKET: [u8; 29] = [
    0x45, 0, 0, 29, 0, 1, 0, 0, 64, 17, 0x66, 0xcc, 10, 1, 0, 1, 10, 2, 0, 1, 0x27, 0x10, 0x4e, 0x20, 0, 9,
    0, 0, b'x',
];

fn write(path: &Path, links: &[(LinkType, &[u8])], resolution: Resolution) {
    let mut writer = Writer::create(path).unwrap();
    writer.declare(links[0].0, resolution).unwrap();
    for (i, stamp) in STAMPS.into_iter().enumerate() {
        let (link, prefix) = links[i % links.len()];
        let data = [prefix, &PACKET].concat();
        writer.write(link, stamp, data.len() as u32 + i as u32, &data).unwrap();
    }
    writer.finish().unwrap();
}

fn output_of(program: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const ETHERNET: (LinkType, &[u8]) = (LinkType::Ethernet, &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
const RAW: (LinkType, &[u8]) = (LinkType::Raw, &[]);
/// Output's name, link types with their prefixes, resolution.
type Case = (&'static str, &'static [(LinkType, &'static [u8])], Resolution);
const CASES: [Case; 4] = [
    ("micro.pcap", &[ETHERNET], Resolution::Microseconds),
    ("nano.pcap", &[RAW], Resolution::Nanoseconds),
    ("one.pcapng", &[RAW], Resolution::Nanoseconds),
    ("two.pcapng", &[ETHERNET, RAW], Resolution::Nanoseconds),
];

#[test]
fn scapy_reads_the_same_stamps_lengths_and_packets() {
    if !has_program(PYTHON, &["-c", "import scapy.utils"]) {
        return;
    }
    let script = "import sys\n\
        from scapy.all import *\n\
        for p in rdpcap(sys.argv[1]):\n    \
            print(int(p.time * 10**9), p.wirelen, bytes(p).hex(), p[UDP].dport)";
    let directory = tempfile::tempdir().unwrap();
    for (name, links, resolution) in CASES {
        let path = directory.path().join(name);
        write(&path, links, resolution);
        let expected: Vec<String> = (0..STAMPS.len())
            .map(|i| {
                let stamp = match resolution {
                    Resolution::Microseconds => STAMPS[i] / 1_000 * 1_000,
                    Resolution::Nanoseconds => STAMPS[i],
                };
                let data = [links[i % links.len()].1, &PACKET].concat();
                let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{stamp} {} {hex} 20000", data.len() + i)
            })
            .collect();
        let printed = output_of(PYTHON, &["-c", script], &path);
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn tcpdump_reads_the_same_stamps_and_packets() {
    if !has_program("tcpdump", &["--version"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, links, resolution) in CASES {
        let path = directory.path().join(name);
        write(&path, links, resolution);
        if links.len() > 1 {
            continue; // libpcap reads one link type a file
        }
        let arguments = ["-n", "-tt", "--nano", "-r"];
        let printed = output_of("tcpdump", &arguments, &path);
        // tcpdump 4.99 prints no time after 2038.
        let printable = STAMPS.into_iter().filter(|stamp| stamp >> 31 < 1_000_000_000);
        for (line, stamp) in printed.lines().zip(printable) {
            let stamp = if resolution == Resolution::Microseconds { stamp / 1_000 * 1_000 } else { stamp };
            let begin = format!(
                "{}.{:09} IP 10.1.0.1.10000 > 10.2.0.1.20000: UDP",
                stamp / 1_000_000_000,
                stamp % 1_000_000_000
            );
            assert!(line.starts_with(&begin), "{name}: {line}, expected {begin}");
        }
        assert_eq!(printed.lines().count(), STAMPS.len(), "{name}");
    }
}

#[test]
fn tshark_reads_the_same_stamps_and_packets() {
    if !has_program("tshark", &["--version"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, links, resolution) in CASES {
        let path = directory.path().join(name);
        write(&path, links, resolution);
        let arguments =
            ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "udp.dstport", "-r"];
        let printed = output_of("tshark", &arguments, &path);
        let expected: Vec<String> = (0..STAMPS.len())
            .map(|i| {
                let stamp = match resolution {
                    Resolution::Microseconds => STAMPS[i] / 1_000 * 1_000,
                    Resolution::Nanoseconds => STAMPS[i],
                };
                let length = links[i % links.len()].1.len() + PACKET.len() + i;
                format!("{}.{:09}\t{length}\t20000", stamp / 1_000_000_000, stamp % 1_000_000_000)
            })
            .collect();
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{name}");
    }
}
