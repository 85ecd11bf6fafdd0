//! `forebay bench crossover` as its users meet it: break-evens of an emulated card, checked by hand and by measurement.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(["bench", "crossover"]).args(args).output().unwrap()
}

fn figures(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Bytes of an ESP packet of 3des-sha1 without its outer header: SPI and sequence number, IV, text in blocks of 8, ICV.
fn esp(bytes: u64) -> u64 {
    8 + 8 + (bytes + 2).next_multiple_of(4).next_multiple_of(8) + 12
}

/// Seconds from the hand-over of a packet to a card with these times until it is back, on a bus of 4 bytes and 66 MHz that it
/// crosses twice, with a cycle for the address.
fn card_s(init_s: f64, block_s: f64, bytes: u64) -> f64 {
    let cycles = esp(bytes).div_ceil(4) + 1;
    init_s + esp(bytes).div_ceil(16) as f64 * block_s + 2.0 * cycles as f64 / 66e6
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    for (args, words) in [
        (&["--processor", "core"][..], &["there is no device to compare with", "--processor core,card"][..]),
        (&["--processor", "io,card"], &["a core without crypto", "core,card"]),
        (&["--processor", "card"], &["the first processor must be the running core"]),
        (&["--processor", "core,card:block=0"], &["unknown processor"]),
        (&["--processor", "core,card:queue=2"], &["unknown processor"]),
        (&["--processor", "core,card:init=2s"], &["unknown processor"]),
        (&["--proposal", "aes128gmc16"], &["unknown proposal", "did you mean"]),
        (&["--burst", "65"], &["burst 65: expected 1 to 64"]),
        (&["--size", "27"], &["size 27: expected 28 to 9000"]),
        (&["--load", "1"], &["load 1: expected 0 to 0.95"]),
        (&["--rounds", "0"], &["expected 1 to 99"]),
        (&["--seconds", "0"], &["expected 0.01"]),
        (&["--config", "part.toml"], &["--save"]),
    ] {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
        // Lines are broken where the terminal ends.
        let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        for words in words {
            assert!(text.contains(words), "{args:?}: {text}");
        }
    }
}

/// Intel's library takes one packet of 3DES at a time much longer than AWS-LC, by which the card computes.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_break_even_of_a_card_is_where_its_configuration_says() {
    let (init_s, block_s) = (50e-6, 600e-9);
    let words = ["--processor", "core:ipsec-mb,card:init=50us+block=600ns", "--proposal", "3des-sha1"];
    let rest = ["--burst", "1", "--size", "1408", "--load", "0", "--rounds", "3", "--seconds", "0.05"];
    let output = run(&[&words[..], &rest, &["--json"]].concat());
    let why = String::from_utf8_lossy(&output.stderr);
    if why.contains("ipsec-mb is not available") {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let core = &document["responses"][0];
    assert_eq!((&core["processor"], &core["proposal"]), (&"core:ipsec-mb".into(), &"3des-sha1".into()));
    // A packet by itself, by the fitted terms.
    let core_s = |bytes: u64| {
        let once = ["submit_s", "init_s", "packet_s"].iter().map(|term| number(&core[*term])).sum::<f64>();
        once + number(&core["block_s"]) * esp(bytes).div_ceil(16) as f64
    };
    let last = (28..=9_000).rev().find(|&bytes| core_s(bytes) <= card_s(init_s, block_s, bytes)).unwrap();
    let one = &document["break_evens"][0];
    assert_eq!((&one["packets"], &one["bytes"], &one["pays"]), (&1.into(), &Value::Null, &"from".into()));
    let (found, by_hand) = (number(&one["at"]), (last + 1) as f64);
    assert!((found / by_hand - 1.0).abs() < 0.25, "{found} instead of {by_hand}: {document:#}");
    // Measured below and above; the device is slower than its configuration says only where this machine is busy.
    let sides = one["sides"].as_array().unwrap();
    assert_eq!(sides.len(), 2);
    assert!(number(&sides[0]["bytes"]) < found && number(&sides[1]["bytes"]) > found);
    for side in sides {
        let bytes = side["bytes"].as_u64().unwrap();
        assert!(number(&side["measured"]["device_s"]) >= card_s(init_s, block_s, bytes), "{side:#}");
        assert!(["holds", "fails", "not-decided"].contains(&side["verdict"].as_str().unwrap()));
    }
}

#[test]
fn a_slow_card_never_pays_and_that_is_decided() {
    let words = ["--processor", "core:aws-lc,card", "--proposal", "aes128gcm16", "--strict", "--rounds", "3"];
    let output =
        run(&[&words[..], &["--burst", "8", "--size", "1408", "--load", "0", "--seconds", "0.03"]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("never").count(), 2, "{said}");
    assert!(
        said.contains("aes128gcm16, card") && said.contains("9000 bytes: ") && said.contains("64 packets: ")
    );
}

#[test]
fn the_gateway_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (costs, part) = (at("costs.json"), at("processors.toml"));
    let words = ["--processor", "core:aws-lc,card:init=500ns+block=40ns,card", "--proposal", "aes128gcm16"];
    let rest = ["--burst", "1", "--size", "64", "--load", "0,0.5", "--rounds", "1", "--seconds", "0.01"];
    let document = figures(&[&words[..], &rest, &["--save", &costs, "--config", &part]].concat());
    let saved: Value = serde_json::from_slice(&std::fs::read(&costs).unwrap()).unwrap();
    assert_eq!(saved, document["costs"]);
    let names: Vec<_> = saved["processors"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["aws-lc", "card", "card-2"]);
    let asked: Vec<_> = document["processors"].as_array().unwrap().iter().map(|one| &one["word"]).collect();
    assert_eq!(asked, ["core:aws-lc", "card:init=500ns+block=40ns", "card"]);

    let text = std::fs::read_to_string(&part).unwrap();
    for line in ["backend = \"aws-lc\"", "name = \"card-2\"", "block = \"40 ns\"", "costs = \"costs.json\""] {
        assert!(text.contains(line), "{text}");
    }
    let asked = "#   aes128gcm16, card:init=500ns+block=40ns idle, 1 packet at a time: ";
    assert!(text.contains(asked), "{text}");
    let file = at("gateway.toml");
    std::fs::write(&file, format!("[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n{text}")).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let checked = check.args(["check", "--offline", "--config", &file]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(said.contains("3 processors"), "{said}");
    // As the gateway does at its start.
    let read = forebay_config::load(Path::new(&file)).unwrap();
    let costs = forebay_processors::Costs::load(&read.scheduler.costs.unwrap()).unwrap();
    for one in read.processors.iter().skip(1) {
        assert!(costs.processors.iter().any(|cost| cost.name == one.name), "{}", one.name);
    }
}
