//! Other people's AH packets: DPDK's and OpenDataPlane's (sources in `data/README.md`).

use crate::reference::{Gateway, ah, other_end};
use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_ipsec::{DropReason, IvRange, Mode};
use forebay_wire::Ip;
use serde_json::Value;

const COPY: &str = include_str!("../data/ah-vectors.jsonl");
const ORIGINAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/corpora/esp-ah/vectors.jsonl");

struct Vector {
    id: String,
    proposal: &'static str,
    keys: SaKeys,
    packet: Vec<u8>,
    mode: Mode,
    accepted: bool,
    plain: Vec<u8>,
}

fn bytes(row: &Value, field: &str) -> Vec<u8> {
    let hex = row[field].as_str().unwrap_or_default();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

fn vectors() -> Vec<Vector> {
    rows(COPY).iter().map(vector).collect()
}

fn vector(row: &Value) -> Vector {
    let secret = |bytes: Vec<u8>| SecretBytes::new(bytes);
    let (proposal, key, auth_key) = match row["auth"].as_str() {
        Some("aes-gmac") => ("aes128gmac", [bytes(row, "auth_key"), bytes(row, "salt")].concat(), vec![]),
        Some("hmac-sha2-256-128") => ("sha256", vec![], bytes(row, "auth_key")),
        other => panic!("{other:?}"),
    };
    let suite: Suite = proposal.parse().expect("a proposal");
    let packet = bytes(row, "packet");
    let mode = match row["next_header"].as_u64() {
        Some(4 | 41) => Mode::Tunnel,
        _ => Mode::Transport,
    };
    let plain = match (row["plain_packet"].as_str(), mode) {
        (Some(_), _) => bytes(row, "plain_packet"),
        (None, Mode::Tunnel) => bytes(row, "decapsulated"),
        // DPDK's are OpenDataPlane's, which says what they were made of.
        (None, Mode::Transport) => vec![],
    };
    Vector {
        id: row["id"].as_str().expect("an id").to_owned(),
        proposal,
        keys: SaKeys::new(suite, &secret(key), &secret(auth_key)).expect("keys of the suite's lengths"),
        packet,
        mode,
        accepted: row["expect"] == "accept",
        plain,
    }
}

impl Vector {
    /// A gateway that seals such packets and one that opens them.
    fn gateways(&self) -> [Gateway; 2] {
        let ip = Ip::parse(&self.packet).expect("an IP packet");
        let (local, remote) = (ip.source().to_string(), ip.destination().to_string());
        let sealing = ah(self.proposal, self.mode, 0x7b, [&local, &remote]);
        let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
        opener.opens(other_end(&sealing), self.keys.clone());
        // GMAC's IV is the sender's to choose: the one that was published.
        let iv = IvRange::share(1 << 56, u64::MAX, 0, 1);
        sealer.seals_from(sealing, self.keys.clone(), iv);
        [sealer, opener]
    }
}

#[test]
fn the_copy_is_what_was_published() {
    let Ok(text) = std::fs::read_to_string(ORIGINAL) else {
        eprintln!("not compared with {ORIGINAL}, which is not here");
        return;
    };
    let published: Vec<Value> = rows(&text).into_iter().filter(|row| row["proto"] == "ah").collect();
    let copied = rows(COPY);
    assert_eq!(copied.len(), published.len());
    for (copy, row) in copied.iter().zip(&published) {
        for (field, value) in copy.as_object().expect("an object") {
            assert_eq!(value, &row[field], "{}: {field}", row["id"]);
        }
    }
}

#[test]
fn they_are_opened() {
    for vector in vectors() {
        let [_, mut opener] = vector.gateways();
        let opened = opener.pass(Direction::Open, &vector.packet);
        match vector.accepted {
            true if vector.plain.is_empty() => assert!(opened.is_ok(), "{}: {opened:?}", vector.id),
            true => assert_eq!(opened.as_ref(), Ok(&vector.plain), "{}", vector.id),
            false => assert_eq!(opened, Err(DropReason::InStateProtoError), "{}", vector.id),
        }
    }
}

/// The same packets come out of sealing, where what the RFC leaves to the sender was chosen alike: the
/// identification of IPv4 tunnels was not, and the ICV covers it.
#[test]
fn they_are_sealed() {
    let mut sealed_alike = 0;
    for vector in vectors().into_iter().filter(|vector| vector.accepted && !vector.plain.is_empty()) {
        let v4_in_v4 = vector.mode == Mode::Tunnel && vector.packet[0] >> 4 == 4 && vector.plain[0] >> 4 == 4;
        if v4_in_v4 {
            continue;
        }
        let [mut sealer, _] = vector.gateways();
        let mut expected = vector.packet.clone();
        let mut sealed = sealer.pass(Direction::Seal, &vector.plain).expect("a packet to protect");
        if expected[0] >> 4 == 4 && vector.mode == Mode::Tunnel {
            // Ours does not let IPv6 inside be fragmented; flags and checksum are not covered.
            (expected[6], expected[10], expected[11]) = (0, 0, 0);
            (sealed[6], sealed[10], sealed[11]) = (0, 0, 0);
        }
        assert_eq!(sealed, expected, "{}", vector.id);
        sealed_alike += 1;
    }
    assert_eq!(sealed_alike, 6);
}
