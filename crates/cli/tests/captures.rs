//! Simulations of traffic that others captured; the corpora are stored beside the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A card and a CPU; what arrives is the file's.
fn scenario(path: &Path, more: &str) -> String {
    format!(
        "model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"{}\"\noverhead = 0\n{more}[[processor]]\nname = \"cpu\"\n\
         kind = \"cpu\"\ninit_ratio = 3\nblock_ratio = 3\n[[processor]]\nname = \"card\"\nkind = \"accelerator\"\n",
        path.display()
    )
}

fn forebay(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(args).current_dir(folder).output().unwrap()
}

fn simulate(folder: &Path, text: &str, args: &[&str]) -> Value {
    std::fs::write(folder.join("s.toml"), text).unwrap();
    let output = forebay(folder, &[&["simulate", "s.toml", "--json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn corpus(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora").join(name);
    let found = path.canonicalize().ok();
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not beside the repository");
    }
    found
}

/// IP length and destination of every packet of a classic pcap, read here without the program's reader.
fn by_hand(path: &Path) -> Vec<(u64, Vec<u8>, f64)> {
    let file = std::fs::read(path).unwrap();
    let swapped = file[..4] == [0xd4, 0xc3, 0xb2, 0xa1] || file[..4] == [0x4d, 0x3c, 0xb2, 0xa1];
    let nanos = file[0] == 0x4d || file[3] == 0x4d;
    let u32_at = |at: usize| {
        let four: [u8; 4] = file[at..at + 4].try_into().unwrap();
        if swapped { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
    };
    let link = u32_at(20);
    let (mut at, mut packets) = (24, Vec::new());
    while at + 16 <= file.len() {
        let (seconds, fraction, len) = (u32_at(at), u32_at(at + 4), u32_at(at + 8) as usize);
        let time = f64::from(seconds) + f64::from(fraction) * if nanos { 1e-9 } else { 1e-6 };
        let data = &file[at + 16..at + 16 + len];
        at += 16 + len;
        let mut ip = data;
        if link == 1 {
            let mut kind = 12;
            while data.len() > kind + 4 && [[0x81, 0], [0x88, 0xa8]].contains(&[data[kind], data[kind + 1]]) {
                kind += 4;
            }
            match data.get(kind..kind + 2) {
                Some([8, 0]) | Some([0x86, 0xdd]) => ip = &data[kind + 2..],
                _ => continue,
            }
        }
        match ip.first().map(|first| first >> 4) {
            Some(4) if ip.len() >= 20 => {
                packets.push((u64::from(ip[2]) << 8 | u64::from(ip[3]), ip[16..20].to_vec(), time));
            }
            Some(6) if ip.len() >= 40 => {
                packets.push((40 + (u64::from(ip[4]) << 8 | u64::from(ip[5])), ip[24..40].to_vec(), time));
            }
            _ => {}
        }
    }
    packets
}

#[test]
fn a_link_s_capture_goes_through_with_its_sizes_times_and_destinations() {
    let Some(path) = corpus("traffic/snabb-sanitized4k.pcap") else { return };
    let dir = tempfile::tempdir().unwrap();
    let expected = by_hand(&path);
    assert!(expected.len() > 4_000);
    let document = simulate(dir.path(), &scenario(&path, ""), &["--out", "run", "--columns=csv"]);
    assert_eq!(document["packets"].as_u64().unwrap(), expected.len() as u64);
    assert_eq!(document["resolved"]["traffic"]["arrivals"], "stamps");
    let csv = std::fs::read_to_string(dir.path().join("run/packets.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), expected.len());
    let mut sorted: Vec<&(u64, Vec<u8>, f64)> = expected.iter().collect();
    sorted.sort_by(|a, b| a.2.total_cmp(&b.2));
    let first = sorted[0].2;
    let mut sas = std::collections::HashMap::new();
    for (row, (bytes, destination, at)) in rows.iter().zip(sorted) {
        assert_eq!(row[1].parse::<u64>().unwrap(), *bytes);
        let arrived = row[3].parse::<f64>().unwrap() * 1e-12;
        assert!((arrived - (at - first)).abs() < 1e-6, "{arrived} {}", at - first);
        // One SA for each destination, and no other.
        assert_eq!(sas.entry(destination.clone()).or_insert(row[2]), &row[2]);
    }
    let numbers: std::collections::HashSet<_> = sas.values().collect();
    assert_eq!(numbers.len(), sas.len());
}

#[test]
fn a_large_mix_goes_through_at_its_own_times_and_at_a_rate() {
    let Some(path) = corpus("traffic/zeek-mix.pcap") else { return };
    let dir = tempfile::tempdir().unwrap();
    let own = simulate(dir.path(), &scenario(&path, ""), &[]);
    let offered = simulate(dir.path(), &scenario(&path, "rate = \"1 Gbit/s\"\n"), &[]);
    let window = ["--set", "scheduler.window=30"];
    let bundled = simulate(dir.path(), &scenario(&path, "rate = \"1 Gbit/s\"\n"), &window);
    let packets = own["packets"].as_u64().unwrap();
    assert!(packets > 80_000, "{packets}");
    for other in [&offered, &bundled] {
        assert_eq!(other["packets"].as_u64().unwrap(), packets);
    }
    assert!(offered["throughput_bps"].as_f64().unwrap() > own["throughput_bps"].as_f64().unwrap());
    // Packets to one destination come together far more often than in drawn traffic.
    assert!(bundled["packets_per_job"].as_f64().unwrap() > 2.0, "{}", bundled["packets_per_job"]);
}

#[test]
fn the_archive_s_text_goes_through() {
    // As `sanitize-tcp` writes it: timestamp, source, destination, two ports, data bytes.
    let text = "0.000000 1 2 23 1024 0\n0.010445 2 1 1024 23 2\n0.023775 1 2 23 1024 512\n0.026558 3 4 20 2000 512\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dec-pkt.tcp");
    std::fs::write(&path, text).unwrap();
    let document =
        simulate(dir.path(), &scenario(Path::new("dec-pkt.tcp"), ""), &["--out", "run", "--columns=csv"]);
    assert_eq!(document["packets"], 4);
    let csv = std::fs::read_to_string(dir.path().join("run/packets.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let bytes_sa_time: Vec<[&str; 3]> = rows.iter().map(|row| [row[1], row[2], row[3]]).collect();
    assert_eq!(
        bytes_sa_time,
        [
            ["0", "0", "0"],
            ["2", "1", "10445000000"],
            ["512", "0", "23775000000"],
            ["512", "2", "26558000000"]
        ]
    );
}

#[test]
fn malformed_captures_are_refused_or_run_but_never_panic() {
    let Some(folder) = corpus("malformed") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (mut refused, mut run) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        std::fs::write(dir.path().join("s.toml"), scenario(&path, "")).unwrap();
        let output = forebay(dir.path(), &["simulate", "s.toml", "--json"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => run += 1,
            Some(2) => {
                refused += 1;
                assert!(message.contains("help:"), "{}: {message}", path.display());
            }
            other => panic!("{}: {other:?}: {message}", path.display()),
        }
    }
    eprintln!("{run} run, {refused} refused");
    assert!(run > 150, "{run} run, {refused} refused");
}
