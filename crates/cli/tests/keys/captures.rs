//! Keys of SAs and policies: what `forebay seal` and `forebay open` make of a capture with the key and without it.

use std::path::Path;
use std::process::Command;

use forebay_links::LinkType;
use forebay_links::capture::{Reader, Writer};
use serde_json::Value;

use crate::scenarios::{Figures, flat, judge};
use crate::table::{Row, Table, name, set_key};

/// Packets of a capture, ten a second.
const PACKETS: u16 = 60;
const GAP_NS: u64 = 100_000_000;
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

#[test]
fn keys_of_sas_change_packets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    secret(&folder.join("a.key"), &"bb".repeat(20));
    secret(&folder.join("a.auth"), &"cc".repeat(32));
    let table = Table::of("sas");
    let mut wrong = Vec::new();
    for (key, row) in &table.rows {
        let Row::Here { base, sets, figure } = row else { continue };
        let base = table.bases[base].as_table().unwrap();
        let (section, _) = key.rsplit_once('.').unwrap();
        assert!(sets.iter().any(|set| set_key(set) == name(key)), "the row of `{key}` does not set it");
        // Twice, since what is drawn anew in each run says nothing.
        let before = [0, 1].map(|_| observe(folder, &table, base, section, &[]));
        let [before, again] = before.map(|one| one.unwrap_or_else(|error| panic!("`{key}`: {error}")));
        if before.get(figure) != again.get(figure) {
            wrong.push(format!("`{key}`: {figure} is another in each run"));
        }
        wrong.extend(judge(key, figure, &before, observe(folder, &table, base, section, sets)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What comes of a base with lines set in a section.
fn observe(
    folder: &Path,
    table: &Table,
    base: &toml::Table,
    section: &str,
    sets: &[String],
) -> Result<Figures, String> {
    let marked = base.get("capture").is_some();
    write(&folder.join("plain.pcap"), (0..PACKETS).map(|number| packet(number, marked)).collect());
    let sas = edited(base["sas"].as_str().unwrap(), section, sets);
    let Some(sealed_by) = base.get("sealed_by") else {
        return run(folder, "seal", &sas, "plain.pcap", "out.pcap");
    };
    let sealer = table.bases[sealed_by.as_str().unwrap()]["sas"].as_str().unwrap();
    run(folder, "seal", sealer, "plain.pcap", "sealed.pcap").expect("the sealer is without fault");
    let mut packets = read(&folder.join("sealed.pcap"));
    match base["change"].as_str() {
        Some("late") => packets[..30].rotate_left(10),
        _ => packets.swap(4, 5),
    }
    write(&folder.join("changed.pcap"), packets);
    run(folder, "open", &sas, "changed.pcap", "out.pcap")
}

/// A text with lines in a section in the place of those of the same key; a line without a value takes the key away.
pub fn edited(text: &str, section: &str, sets: &[String]) -> String {
    let mut lines: Vec<&str> = text.trim().lines().collect();
    let heads = [format!("[[{section}]]"), format!("[{section}]")];
    let found = lines.iter().position(|line| heads.iter().any(|head| head == line));
    let at = if section.is_empty() { Some(0) } else { found.map(|at| at + 1) };
    let at = at.unwrap_or_else(|| {
        lines.push(&heads[1]);
        lines.len()
    });
    for set in sets {
        let end =
            lines[at..].iter().position(|line| line.starts_with('[')).map_or(lines.len(), |end| at + end);
        let key = set_key(set);
        let kept: Vec<&str> = lines[at..end]
            .iter()
            .copied()
            .filter(|line| !line.contains('=') || set_key(line) != key)
            .collect();
        lines.splice(at..end, kept);
        if set.split_once('=').is_some_and(|(_, value)| !value.trim().is_empty()) {
            lines.insert(at, set);
        }
    }
    lines.join("\n") + "\n"
}

/// The figures of a command and the fields of the packets that it wrote, or what was said against the file.
fn run(folder: &Path, command: &str, sas: &str, input: &str, output: &str) -> Result<Figures, String> {
    secret(&folder.join("sas.toml"), sas);
    _ = std::fs::remove_dir_all(folder.join("state"));
    let mut forebay = Command::new(env!("CARGO_BIN_EXE_forebay"));
    forebay.args([command, "--sas", "sas.toml", input, "-o", output, "--state", "state", "--json"]);
    let done = forebay.current_dir(folder).env("NO_COLOR", "1").output().unwrap();
    if !matches!(done.status.code(), Some(0 | 1)) {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    let mut figures = Figures::new();
    flat("", &document, &mut figures);
    for packet in read(&folder.join(output)) {
        for (name, value) in fields(&packet) {
            *figures.entry(name.to_owned()).or_default() += &format!("{value:?} ");
        }
    }
    Ok(figures)
}

/// What the outer header of a packet says, and its SPI.
fn fields(packet: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let length = (packet.len() as u16).to_be_bytes().to_vec();
    let (protocol, at, mut all) = if packet[0] >> 4 == 4 {
        let all = vec![
            ("source", packet[12..16].to_vec()),
            ("destination", packet[16..20].to_vec()),
            ("tos", vec![packet[1]]),
            ("df", vec![packet[6] >> 6]),
            ("ttl", vec![packet[8]]),
        ];
        (packet[9], 20, all)
    } else {
        let flow_label = vec![packet[1] & 15, packet[2], packet[3]];
        (packet[6], 40, vec![("source", packet[8..24].to_vec()), ("flow_label", flow_label)])
    };
    let at = at + if protocol == 17 { 8 } else { 0 } + if protocol == 51 { 4 } else { 0 };
    all.extend([("protocol", vec![protocol]), ("length", length), ("spi", packet[at..at + 4].to_vec())]);
    all
}

/// A UDP packet over IPv4 from one of two sources, with one of several code points, TTLs and lengths; each has an ECN mark, or some have.
fn packet(number: u16, marked: bool) -> Vec<u8> {
    let length = 100 + number * 37 % 700;
    let tos = if marked { 1 } else { [0xb9, 0, 0x2a, 0][usize::from(number % 4)] };
    let mut packet = vec![0x45, tos];
    packet.extend(length.to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.extend([if number.is_multiple_of(2) { 0x40 } else { 0 }, 0, 60 + (number % 5) as u8, 17, 0, 0]);
    packet.extend([10, 1, 0, 1 + (number % 2) as u8, 10, 2, 0, 1]);
    let sum = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(1_000_u16.to_be_bytes());
    packet.extend(2_000_u16.to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.resize(usize::from(length), number as u8);
    packet
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        packets.push(record.data.to_vec());
    }
    packets
}

fn write(path: &Path, packets: Vec<Vec<u8>>) {
    let mut writer = Writer::create(path).unwrap();
    for (number, packet) in packets.iter().enumerate() {
        let stamp = BEGIN_NS + number as u64 * GAP_NS;
        writer.write(LinkType::Raw, stamp, packet.len() as u32, packet).unwrap();
    }
    writer.finish().unwrap();
}

/// A file that only its owner can read.
pub fn secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
