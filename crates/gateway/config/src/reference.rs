//! Tests that the reader accepts the examples of the schema and of `docs/gateway.md`.

use std::fmt::Write;
use std::path::Path;

use super::schema::{Absent, Key, PARTS, Part};
use super::{Config, load, parse};

/// The least that is a gateway, without SAs.
const LEAST: &str = "[[outside]]\nkind = \"raw\"\n";

fn docs() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/gateway.md"))
}

/// A file that gives this key, and what it needs.
fn with(part: &Part, key: &Key) -> String {
    let mut lines = String::new();
    let mut given = vec![key.name];
    if !part.kind.is_empty() {
        let kind = if part.section == "keys" { "source" } else { "kind" };
        given.push(kind);
        writeln!(lines, "{kind} = \"{}\"", part.kind).unwrap();
    }
    // Whatever else is required there.
    let all = PARTS
        .iter()
        .filter(|one| one.section == part.section && (one.kind.is_empty() || one.kind == part.kind));
    for other in all.flat_map(|part| part.keys).filter(|key| matches!(key.absent, Absent::Required)) {
        if !given.contains(&other.name) {
            writeln!(lines, "{}", other.line()).unwrap();
            given.push(other.name);
        }
    }
    let policy = match key.name {
        "processor" => "policy = \"single\"\n",
        "threshold" | "small" | "large" => "policy = \"size-threshold\"\n",
        name if name.starts_with("alpha_") => "policy = \"adaptive-alpha\"\n",
        _ => "",
    };
    writeln!(lines, "{policy}{}", key.line()).unwrap();
    let rest = match (part.section, key.name) {
        ("class", "dscp") => "\n[[class]]\nname = \"rest\"\n",
        ("cluster", "ca_file") => "",
        ("cluster", "certificate_file") => "ca_file = \"ca.pem\"\nprivate_key_file = \"gw.key\"\n",
        ("cluster", "private_key_file") => "ca_file = \"ca.pem\"\ncertificate_file = \"gw.pem\"\n",
        ("cluster", _) => "ca_file = \"ca.pem\"\n",
        ("processor", "record_packet") => "record = \"packet.fst\"\n",
        ("pair", "listen") => "",
        ("pair", "silence") => "listen = [\"10.9.0.1:7411\"]\nheartbeat = \"50 ms\"\n",
        ("pair", _) => "listen = [\"10.9.0.1:7411\"]\n",
        _ => "",
    };
    let core = match (part.section, part.kind) {
        ("processor", "core") | ("processor", "") => "",
        _ => "[[processor]]\nkind = \"core\"\n",
    };
    let card = if part.section == "scheduler" { "[[processor]]\nkind = \"card\"\n" } else { "" };
    let bus = if key.name == "bus" { "[[bus]]\nname = \"pci0\"\n" } else { "" };
    // SAs of a pair and of a cluster come from the file.
    let is_pair = ["pair", "cluster"].contains(&part.section);
    let keys = if part.section == "keys" || is_pair { "" } else { "[keys]\nsource = \"xfrm\"\n" };
    let has_sas = part.section == "keys" && part.kind != "xfrm" && !["sas", "source"].contains(&key.name);
    let sas = if has_sas || is_pair { SA } else { "" };
    let header = if part.section.is_empty() { String::new() } else { part.header() };
    if part.section.is_empty() {
        return format!("{lines}{core}{LEAST}{keys}");
    }
    let links = if part.section == "outside" { "" } else { LEAST };
    format!("{core}{card}{bus}{links}{keys}{header}\n{lines}{rest}{sas}")
}

const SA: &str = "[[sa]]\ndirection = \"in\"\nspi = 1\nproposal = \"aes128gcm16\"\n\
    key = \"000102030405060708090a0b0c0d0e0f01020304\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n";

#[test]
fn every_example_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sas.toml"), SA).unwrap();
    for part in PARTS.iter() {
        for key in part.keys {
            let text = with(part, key);
            let config = parse(&text, "gateway.toml", folder.path())
                .unwrap_or_else(|errors| panic!("{} in\n{text}", shown(&errors)));
            assert!(config.settings.iter().any(|one| one.key == key.name), "{}", key.name);
        }
    }
}

#[test]
fn every_default_is_read() {
    let Config { settings, .. } =
        parse(&format!("[keys]\nsource = \"xfrm\"\n{LEAST}"), "gateway.toml", Path::new("")).unwrap();
    let given = |part: &&Part| {
        !part.several && part.kind.is_empty() && !["taps", "pair", "cluster", "page"].contains(&part.section)
    };
    let defaults = PARTS.iter().filter(given);
    for key in defaults.flat_map(|part| part.keys).filter(|key| matches!(key.absent, Absent::Is(_))) {
        assert!(settings.iter().any(|one| one.key == key.name), "{}", key.name);
    }
}

#[test]
fn the_example_works() {
    let text = std::fs::read_to_string(docs()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blocks: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for (name, byte) in [("east-out.key", "5a"), ("east-in.key", "5b")] {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, byte.repeat(20)).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    for block in blocks {
        let path = folder.path().join("gateway.toml");
        std::fs::write(&path, block).unwrap();
        let config = load(&path).unwrap_or_else(|errors| panic!("{} in\n{block}", shown(&errors)));
        // Examples are short: most have one SA with AES-GCM.
        let of_manual_keys = |one: &forebay_sas::Finding| one.problem().to_string().contains("RFC 8221");
        assert!(config.warnings.iter().all(of_manual_keys), "{:?}", config.warnings);
    }
}

/// The errors with their hints.
fn shown(errors: &forebay_sas::SasErrors) -> String {
    let lines =
        errors.findings().iter().map(|one| format!("{:?} {one}: {}", one.line(), one.problem().help()));
    lines.collect::<Vec<_>>().join("\n")
}
