//! The policy and the processor of this crate in gateway file, simulator and benchmark.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program: of this crate, or the example `extension` of the workspace beside the tests.
fn program() -> PathBuf {
    match option_env!("CARGO_BIN_EXE_forebay-extension") {
        Some(program) => program.into(),
        None => {
            let tests = std::env::current_exe().unwrap();
            tests.ancestors().nth(2).unwrap().join("examples/extension")
        }
    }
}

fn forebay(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

/// What a command prints, which has to succeed.
fn printed(arguments: &[&str]) -> String {
    let output = forebay(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SCENARIO: &str = r#"
model = "host"
seed = 1

[traffic]
source = "imix"
packets = 2_000
rate = "1 Gbit/s"

[bus]
clock = "66 MHz"
width = 4

[[processor]]
name = "cpu"
kind = "cpu"
init = "1 us"
block = "100 ns"

[[processor]]
name = "card"
kind = "accelerator"
count = 3
init = "1 us"
block = "440 ns"

[scheduler]
policy = "power-of-choices"
choices = 3
"#;

const SA: &str = r#"
[[sa]]
name = "to-peer"
direction = "out"
spi = 0x1001
proposal = "aes128gcm16"
key = "000102030405060708090a0b0c0d0e0f10111213"
local = "192.0.2.1"
remote = "192.0.2.2"
local_ts = ["10.1.0.0/16"]
remote_ts = ["10.2.0.0/16"]
encapsulation = "udp"
"#;

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_simulator_takes_the_policy_and_its_parameter() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = write(directory.path(), "host.toml", SCENARIO);
    let json: serde_json::Value = serde_json::from_str(&printed(&["simulate", &scenario, "--json"])).unwrap();
    let text = json.to_string();
    assert!(text.contains(r#""policy":"power-of-choices""#) && text.contains(r#""choices":3"#), "{text}");
    let refused = forebay(&["simulate", &scenario, "--set", "scheduler.policy=single"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("choices"), "{error}");
}

#[test]
fn a_gateway_file_takes_both() {
    let directory = tempfile::tempdir().unwrap();
    let file = |policy: &str| {
        format!(
            "[inside]\nname = \"fb0\"\n[[outside]]\nkind = \"udp\"\nlisten = \"127.0.0.1:4500\"\n\
             [[processor]]\nkind = \"core\"\nbackend = \"aws-lc\"\n\
             [[processor]]\nkind = \"remote\"\nname = \"far\"\nround_trip = \"5 us\"\n[scheduler]\n{policy}\n{SA}"
        )
    };
    let good = write(directory.path(), "good.toml", &file("policy = \"power-of-choices\"\nchoices = 2"));
    let output = forebay(&["check", "--config", &good]);
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("2 processors"), "{text}");
    let bad = write(directory.path(), "bad.toml", &file("policy = \"power-of-choices\"\nchoices = 65"));
    let output = forebay(&["check", "--config", &bad]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("64"), "{text}");
}

#[test]
fn the_benchmark_measures_both() {
    let words = ["bench", "scheduler", "--processor", "core:aws-lc,remote", "--policy", "power-of-choices"];
    let more =
        ["--proposal", "aes128gcm16", "--size", "1408", "--seconds", "0.05", "--rounds", "1", "--json"];
    let json = printed(&[&words[..], &more[..]].concat());
    assert!(json.contains("\"power-of-choices\"") && json.contains("\"remote\""), "{json}");
}
