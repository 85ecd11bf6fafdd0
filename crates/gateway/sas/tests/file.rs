//! What comes of an SAs file without fault, and that nothing shows its keys.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::*;
use forebay_crypto::{Direction, SaKeys};
use forebay_ipsec::{Encapsulation, Mode, Protocol};
use forebay_sas::{load, parse};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_setting_is_read_and_has_its_default() {
    let file = parse(&sample(), "SAS.toml").unwrap();
    let [first, second] = &file.entries[..] else { panic!() };
    let config = &first.config;
    assert_eq!((&*config.name, first.direction, config.spi.get()), ("east-out", Direction::Seal, 0x1001));
    assert_eq!((config.mode, config.suite.to_string().as_str()), (Mode::Tunnel, "aes128gcm16"));
    assert_eq!(
        (config.local.to_string(), config.remote.to_string()),
        ("192.0.2.1".into(), "192.0.2.2".into())
    );
    assert_eq!((config.esn, config.replay_window, config.encapsulation), (false, 64, Encapsulation::None));
    assert_eq!((config.local_ts.len(), config.remote_ts.len(), first.allow_weak), (0, 0, false));
    assert_eq!(hex(first.keys.cipher()) + &hex(first.keys.salt()), KEY);
    assert_eq!((first.line, second.line), (1, 9));

    let config = &second.config;
    assert_eq!((&*config.name, second.direction, config.spi.get()), ("sa-2", Direction::Open, 0x1002));
    assert_eq!((config.mode, config.suite.to_string().as_str()), (Mode::Transport, "aes128-sha256"));
    assert_eq!((config.esn, config.replay_window, config.encapsulation), (true, 0, Encapsulation::Udp));
    assert_eq!(config.local_ts, ["10.1.0.0/16".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()]);
    assert_eq!(config.remote_ts, ["10.2.0.7/32".parse().unwrap()]);
    assert_eq!((hex(second.keys.cipher()), hex(second.keys.integrity())), (CBC_KEY.into(), AUTH_KEY.into()));
    assert!(second.allow_weak);
    assert_secret(&[&format!("{file:?}")], 8);
}

#[test]
fn ah_has_an_integrity_key_or_that_of_gmac() {
    let ah = |proposal: &str, keys: &str| {
        let (from, to) =
            ("proposal = \"aes128gcm16\"\n", format!("protocol = \"ah\"\nproposal = \"{proposal}\"\n"));
        let text = sample().replace(&format!("key = \"{KEY}\"\n"), keys).replacen(from, &to, 1);
        let entry = parse(&text, "SAS.toml").unwrap().entries.remove(0);
        assert_eq!(entry.config.protocol, Protocol::Ah);
        (entry.config.suite.to_string(), hex(entry.keys.cipher()), hex(entry.keys.integrity()))
    };
    let auth_key = format!("auth_key = \"{AUTH_KEY}\"\n");
    assert_eq!(ah("sha256", &auth_key), ("null-sha256".into(), "".into(), AUTH_KEY.into()));
    let key = format!("key = \"{KEY}\"\n");
    assert_eq!(ah("aes128gmac", &key), ("aes128gmac".into(), KEY[..32].into(), "".into()));
}

#[test]
fn sas_become_a_database_in_their_order() {
    let (sad, keys) = parse(&sample(), "SAS.toml").unwrap().into_sad(7, ivs).unwrap();
    let sas: Vec<_> = sad
        .iter()
        .map(|(session, direction, config, _)| (session.0, direction, config.name.clone()))
        .collect();
    assert_eq!(sas, [(0, Direction::Seal, "east-out".into()), (1, Direction::Open, "sa-2".into())]);
    assert_eq!(
        keys.iter().map(|keys| keys.suite().to_string()).collect::<Vec<_>>(),
        ["aes128gcm16", "aes128-sha256"]
    );
}

#[test]
fn ivs_are_reserved_for_outbound_sas_with_ivs_alone() {
    let without = format!(
        "[[sa]]\ndirection = \"out\"\nspi = 7\nproposal = \"null-sha256\"\nauth_key = \"{AUTH_KEY}\"\nlocal = \"::1\"\nremote = \"::2\"\n"
    );
    for (text, sas, with_ivs) in [(without.clone(), 1, vec![]), (sample() + &without, 3, vec![KEY])] {
        let mut asked = vec![];
        let reserve = |keys: Vec<&SaKeys>| {
            asked = keys.iter().map(|keys| hex(keys.cipher()) + &hex(keys.salt())).collect();
            ivs(keys)
        };
        let (sad, keys) = parse(&text, "SAS.toml").unwrap().into_sad(7, reserve).unwrap();
        assert_eq!(
            (sad.iter().count(), keys.len(), asked),
            (sas, sas, with_ivs.iter().map(ToString::to_string).collect())
        );
    }
}

#[test]
fn keys_may_be_in_files_beside_the_sas_file() {
    let directory = tempfile::tempdir().unwrap();
    let text = sample()
        .replace(&format!("key = \"{KEY}\""), "key_file = \"east.key\"")
        .replace(&format!("auth_key = \"{AUTH_KEY}\""), "auth_key_file = \"keys/auth\"");
    std::fs::create_dir(directory.path().join("keys")).unwrap();
    let (sas, east, auth) = (
        directory.path().join("SAS.toml"),
        directory.path().join("east.key"),
        directory.path().join("keys/auth"),
    );
    std::fs::write(&sas, text).unwrap();
    std::fs::set_permissions(&sas, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&east, format!("{KEY}\n")).unwrap();
    std::fs::write(&auth, format!("  {}\r\n", AUTH_KEY.to_uppercase())).unwrap();
    let mode = |path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&east, 0o600);
    mode(&auth, 0o644);
    let file = load(&sas).unwrap();
    assert_eq!(hex(file.entries[1].keys.integrity()), AUTH_KEY);
    let [warning] = &file.warnings[..] else { panic!("{:?}", file.warnings) };
    let text = rendered(warning);
    assert_says(
        &text,
        &[
            "⚠",
            "`auth_key_file`: keys/auth is accessible to other users than its owner (mode 644)",
            "SAS.toml:16:17",
            "help: chmod 600",
        ],
    );
    assert_secret(&[&text, &format!("{warning:?}")], 8);
}

#[test]
fn inline_tables_and_comments_are_toml_too() {
    let text = format!(
        "sa = [\n  {{ direction = 'out', spi = 1, proposal = 'aes128gcm16', key = '{KEY}', local = '::1', remote = '::2' }}, # one\n]\n"
    );
    let file = parse(&text, "SAS.toml").unwrap();
    assert_eq!((file.entries.len(), file.entries[0].line), (1, 2));
    let errors = parse(&text.replace("'::1'", "'::x'"), "SAS.toml").unwrap_err();
    assert_eq!(errors.findings()[0].line(), Some(2));
    assert_secret(&[&rendered(&errors), &format!("{errors:?}")], 8);
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Edit {
    Remove { at: prop::sample::Index, len: usize },
    Insert { at: prop::sample::Index, text: String },
    SwapLines { one: prop::sample::Index, other: prop::sample::Index },
}

fn edit() -> impl Strategy<Value = Edit> {
    let pieces = prop::sample::select(vec![
        "\"",
        "'",
        "\"\"\"",
        "\n",
        "=",
        "#",
        "[",
        "]",
        "[[sa]]",
        "[[policy]]",
        "[sa.iptfs]",
        "iptfs = {",
        "{",
        ",",
        ".",
        " ",
        "0x",
        "\\",
        "\u{1b}",
        "\r",
        "é",
        "key = ",
        "-",
    ]);
    prop_oneof![
        (any::<prop::sample::Index>(), 1..20usize).prop_map(|(at, len)| Edit::Remove { at, len }),
        (any::<prop::sample::Index>(), pieces)
            .prop_map(|(at, text)| Edit::Insert { at, text: text.to_owned() }),
        (any::<prop::sample::Index>(), ".{1,3}").prop_map(|(at, text)| Edit::Insert { at, text }),
        (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(one, other)| Edit::SwapLines { one, other }),
    ]
}

fn edited(text: &str, edits: &[Edit]) -> String {
    edits.iter().fold(text.to_owned(), |text, edit| {
        let mut chars: Vec<char> = text.chars().collect();
        match edit {
            _ if chars.is_empty() => {}
            Edit::Remove { at, len } => {
                let at = at.index(chars.len());
                chars.drain(at..(at + len).min(chars.len()));
            }
            Edit::Insert { at, text } => {
                let at = at.index(chars.len());
                chars.splice(at..at, text.chars());
            }
            Edit::SwapLines { one, other } => {
                let mut lines: Vec<&str> = text.lines().collect();
                let (one, other) = (one.index(lines.len().max(1)), other.index(lines.len().max(1)));
                if one < lines.len() && other < lines.len() {
                    lines.swap(one, other);
                }
                return lines.join("\n");
            }
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_an_answer(text in "(\\[\\[sa\\]\\]\n|[a-z_]{1,8} = |\"|[0-9a-f]{1,9}|\\PC|\n|=|#|\\.|'){0,60}") {
        if let Err(errors) = parse(&text, "SAS.toml") {
            prop_assert!(!errors.findings().is_empty());
            rendered(&errors);
        }
    }

    #[test]
    fn a_damaged_file_is_an_answer_that_shows_no_key(
        base in prop::sample::select(vec![sample(), full()]),
        edits in prop::collection::vec(edit(), 1..4),
    ) {
        let text = edited(&base, &edits);
        // Half a key is hidden whatever was done to the file, any part of it after one slip.
        let run = if edits.len() == 1 { 8 } else { 16 };
        match parse(&text, "SAS.toml") {
            Ok(file) => assert_secret(&[&format!("{file:?}")], run),
            Err(errors) => {
                let debug = format!("{errors:?}");
                assert_secret(&[&rendered(&errors), &errors.to_string(), &debug], run);
                for finding in errors.findings() {
                    let line = finding.line().unwrap();
                    prop_assert!((1..=text.lines().count() + 1).contains(&line));
                }
            }
        }
    }
}
