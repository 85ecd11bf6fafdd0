//! Keys of the gateway's file by what `forebay check` says. Those that a running gateway shows are observed by tests/gateway/keys.py, which reads
//! the same table.

use std::process::Command;

use crate::captures::{edited, secret};
use crate::scenarios::{Figures, judge};
use crate::table::{Row, Table, name, set_key};

const OTHER: &str = "[[sa]]\nname = \"other\"\ndirection = \"out\"\nspi = 0x1007\nproposal = \"aes128gcm16\"\n\
    key = \"2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nremote_ts = [\"10.7.0.0/16\"]\n";

#[test]
fn keys_change_what_is_checked_or_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    secret(&folder.path().join("first.toml"), &OTHER.replace("other", "first"));
    secret(&folder.path().join("other.toml"), OTHER);
    secret(&folder.path().join("pair.key"), &"4e".repeat(32));
    let run = |text: &str| {
        secret(&path, text);
        let forebay = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
            command.args(["check", "--config", "gateway.toml"]).args(words).current_dir(folder.path());
            command.env("NO_COLOR", "1").env("FOREBAY_STATE", folder.path()).output().unwrap()
        };
        let said = forebay(&["--offline"]);
        // 1 is for warnings.
        if !matches!(said.status.code(), Some(0 | 1)) {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned());
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let rules = text(forebay(&["--print-rules"]).stdout);
        let said = text(said.stdout) + &text(said.stderr);
        Ok(Figures::from([("said".to_owned(), said), ("rules".to_owned(), rules)]))
    };
    let table = Table::of("gateway");
    let mut wrong = Vec::new();
    for (key, row) in &table.rows {
        let Row::Here { base, sets, figure } = row else { continue };
        assert!(sets.iter().any(|set| set_key(set) == name(key)), "the row of `{key}` does not set it");
        let base = table.bases[base]["check"].as_str().unwrap();
        let section = key.rsplit_once('.').map_or("", |(section, _)| section);
        let section = section.split('[').next().unwrap_or(section);
        let before = run(base).unwrap_or_else(|error| panic!("`{key}`: {error}"));
        wrong.extend(judge(key, figure, &before, run(&edited(base, section, sets))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
