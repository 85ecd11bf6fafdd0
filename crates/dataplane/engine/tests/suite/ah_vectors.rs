//! Other people's AH packets (`../ipsec/tests/data`), opened on every backend that has their suites, and
//! each of them with a bit of every byte of its payload changed in turn.

use crate::support;

use forebay_crypto::{Direction, SaKeys, SecretBytes, Suite};
use forebay_ipsec::{DropReason, Mode, Protocol, SaConfig};
use forebay_wire::Ip;
use serde_json::Value;
use support::{Gateway, backends, config};

const VECTORS: &str = include_str!("../../../ipsec/tests/data/ah-vectors.jsonl");

fn bytes(row: &Value, field: &str) -> Vec<u8> {
    let hex = row[field].as_str().unwrap_or_default();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn each_is_opened_and_each_forgery_refused() {
    for backend in backends() {
        let (mut opened, mut refused, mut lacking) = (0, 0, 0);
        for line in VECTORS.lines() {
            let row: Value = serde_json::from_str(line).expect("a JSON object a line");
            let gmac = row["auth"] == "aes-gmac";
            let suite: Suite = if gmac { "aes128gmac" } else { "sha256" }.parse().expect("a proposal");
            if !(backend.make)().capabilities().has(suite) {
                lacking += 1;
                continue;
            }
            let (auth_key, salt) = (bytes(&row, "auth_key"), bytes(&row, "salt"));
            let [key, auth_key] = if gmac { [[auth_key, salt].concat(), vec![]] } else { [vec![], auth_key] };
            let keys = SaKeys::new(suite, &SecretBytes::new(key), &SecretBytes::new(auth_key));
            let packet = bytes(&row, "packet");
            let ip = Ip::parse(&packet).expect("an IP packet");
            let tunnel = matches!(row["next_header"].as_u64(), Some(4 | 41));
            let mode = if tunnel { Mode::Tunnel } else { Mode::Transport };
            let mut gateway = Gateway::new(backend);
            let settings = config(suite, mode, 0x7b, [ip.destination(), ip.source()]);
            gateway.add_inbound(
                SaConfig { protocol: Protocol::Ah, replay_window: 0, ..settings },
                &keys.expect("keys of the suite's lengths"),
            );
            let context = format!("{} on {}", row["id"], backend.name);
            let outcome = gateway.pass(Direction::Open, &packet);
            if row["expect"] != "accept" {
                assert_eq!(outcome, Err(DropReason::InStateProtoError), "{context}");
                continue;
            }
            let outcome = outcome.expect(&context);
            if row["plain_packet"].is_string() {
                assert_eq!(outcome, bytes(&row, "plain_packet"), "{context}");
            }
            opened += 1;
            // Behind AH nothing is mutable. Without a replay window it is the ICV alone that decides.
            let from = packet.len() - bytes(&row, "decapsulated").len();
            for at in from..packet.len() {
                let mut forged = packet.clone();
                forged[at] ^= 1 << (at % 8);
                let reason = gateway.pass(Direction::Open, &forged).expect_err(&context);
                assert_eq!(reason, DropReason::InStateProtoError, "{context}");
                refused += 1;
            }
        }
        eprintln!("{}: {opened} opened, {refused} forged ones refused, {lacking} not run", backend.name);
        assert!(lacking > 0 || (opened, refused) == (10, 1_236), "{opened}, {refused}");
    }
}
