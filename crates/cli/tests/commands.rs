//! The command as its users meet it: exit codes, messages, files left behind.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const KEY: &str = "000102030405060708090a0b0c0d0e0fdeadbeef";

/// A folder with SA files and captures, gone at the end of the test.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        bench.write("sas.toml", &sas("out", "east-out", 0x1001, "aes128gcm16", KEY));
        bench.write("in.toml", &sas("in", "east-in", 0x1001, "aes128gcm16", KEY));
        std::fs::write(bench.path("plain.pcap"), capture(&[plain(0, 10), plain(1, 300), plain(2, 64)]))
            .unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        // Keys in a file that others can read are a warning.
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// Runs the command in the folder, its state kept there too.
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args).current_dir(self.folder.path()).env("FOREBAY_STATE", self.path("state"));
        command.env("NO_COLOR", "1").output().unwrap()
    }

    fn seal(&self, sas: &str) -> Output {
        self.run(&["seal", "--sas", sas, "plain.pcap", "-o", "sealed.pcap"])
    }

    /// The error of a run that must fail with exit code 2 and leave no output behind.
    fn refused(&self, output: &Output) -> String {
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        let left: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("sealed") || name.starts_with(".forebay"))
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        assert!(!text.contains(&KEY[..8]) && !text.contains("deadbeef"), "a key in: {text}");
        text
    }
}

/// An SAs file with one SA.
fn sas(direction: &str, name: &str, spi: u32, proposal: &str, key: &str) -> String {
    let (local, remote) = if direction == "out" { (1, 2) } else { (2, 1) };
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi:#x}\nprotocol = \"esp\"\nmode = \"tunnel\"\n\
         proposal = \"{proposal}\"\nkey = \"{key}\"\nlocal = \"192.0.2.{local}\"\nremote = \"192.0.2.{remote}\"\n"
    )
}

/// A UDP packet with `len` bytes of payload.
fn plain(number: u8, len: usize) -> Vec<u8> {
    let total = (28 + len) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, number, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet.extend([0, 7, 0, 9, 0, 0, 0, 0]);
    packet.extend(std::iter::repeat_n(number, len));
    packet
}

/// A raw-IP pcap with nanosecond stamps that do not fit microseconds.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        for word in [1_700_000_000, 123_456_789 + number as u32, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_state_directory_says_what_it_has_and_what_is_missing() {
    let bench = Bench::new();
    let said = |args: &[&str], code: i32| {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let shown = said(&["state"], 0);
    assert!(shown.contains("which does not exist") && shown.contains("role:      none yet"), "{shown}");
    assert!(shown.contains("records:   none"), "{shown}");
    assert!(bench.seal("sas.toml").status.success());
    let shown = said(&["state", "show"], 0);
    assert!(shown.contains("a gateway without [pair]") && shown.contains("records.log"), "{shown}");
    // A journal of before, beside the note of today.
    let journal = bench.path("state/records.log");
    let before = std::fs::read(&journal).unwrap();
    assert!(bench.seal("sas.toml").status.success());
    let after = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, before).unwrap();
    let refused = bench.seal("sas.toml");
    let refused = (refused.status.code(), String::from_utf8(refused.stderr).unwrap());
    assert!(refused.0 == Some(2) && refused.1.contains("older copy"), "{refused:?}");
    std::fs::write(&journal, after).unwrap();
    assert!(bench.seal("sas.toml").status.success());
    std::fs::remove_file(&journal).unwrap();
    let shown = said(&["state"], 1);
    assert!(shown.contains("MISSING") && shown.contains("records.log"), "{shown}");
    let refused = bench.seal("sas.toml");
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.contains("records.log is missing") && refused.contains("forebay state accept"),
        "{refused}"
    );
    assert!(said(&["state", "accept"], 0).contains("accepted"));
    assert!(said(&["state"], 1).contains("has not taken it yet"));
    assert!(bench.seal("sas.toml").status.success(), "it takes the operator's acceptance as a gateway does");
    assert!(said(&["state"], 0).contains("records.log"));
}

/// A packaged gateway is another user's, and root is who operates it.
#[test]
fn what_root_says_of_a_state_directory_is_said_as_its_owner() {
    let bench = Bench::new();
    let said = |args: &[&str], code: i32| {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    // There is no gateway whose records they would be.
    let refused = said(&["state", "accept"], 2);
    assert!(
        refused.contains("cannot look at the state directory") && refused.contains("--config"),
        "{refused}"
    );
    assert!(bench.seal("sas.toml").status.success());
    let state = bench.path("state");
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o770)).unwrap();
    // Why it is refused is said.
    let refused = bench.seal("sas.toml");
    let refused = String::from_utf8(refused.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(refused.contains("(mode 770, expected 700)") && refused.contains("chmod"), "{refused}");
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).unwrap();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::fs::set_permissions(bench.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let entries = || std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    for path in entries().chain([state.clone()]) {
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    assert!(said(&["state"], 0).contains("journal:   whole"));
    assert!(said(&["state", "accept"], 0).contains("accepted"));
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(state.join("accepted.json")).unwrap());
    assert_eq!(owner, 65_534, "the gateway can take it");
    assert!(said(&["state"], 0).contains("has not taken it yet"));
}

/// Another `forebay seal`, or a gateway, has the directory meanwhile.
#[test]
fn a_journal_of_before_is_refused_whoever_had_the_directory_when_ivs_were_reserved() {
    let bench = Bench::new();
    assert!(bench.seal("sas.toml").status.success());
    let journal = bench.path("state/records.log");
    let before = std::fs::read(&journal).unwrap();
    let claim = forebay_state::IvStore::new(bench.path("state")).claim().unwrap();
    assert!(bench.seal("sas.toml").status.success());
    drop(claim);
    std::fs::write(&journal, before).unwrap();
    std::fs::remove_file(bench.path("sealed.pcap")).unwrap();
    assert!(bench.refused(&bench.seal("sas.toml")).contains("older copy"));
}

#[test]
fn what_is_sealed_opens_to_the_very_same_file() {
    let bench = Bench::new();
    let sealed = bench.run(&[
        "seal",
        "--sas",
        "sas.toml",
        "plain.pcap",
        "-o",
        "sealed.pcap",
        "--json",
        "--cores",
        "2",
    ]);
    assert_eq!(sealed.status.code(), Some(0), "{}", String::from_utf8_lossy(&sealed.stderr));
    let figures = json(&sealed);
    assert_eq!(figures["schema"], 1);
    assert_eq!((&figures["packets_in"], &figures["packets_out"]), (&3.into(), &3.into()));
    assert_eq!(figures["drops"], Value::Object(Default::default()));
    assert_eq!(figures["processors"].as_array().unwrap().len(), 2);
    let opened = bench.run(&["open", "--sas", "in.toml", "sealed.pcap", "-o", "opened.pcap"]);
    assert_eq!(opened.status.code(), Some(0));
    let read = |name| std::fs::read(bench.path(name)).unwrap();
    assert!(read("opened.pcap") == read("plain.pcap"), "stamps, order or bytes differ");
}

#[test]
fn ah_around_esp_by_a_policy_and_back() {
    let bench = Bench::new();
    for (name, direction) in [("sas.toml", "out"), ("in.toml", "in")] {
        let esp = sas(direction, "esp", 0x1001, "aes128gcm16", KEY) + "outer = \"ah\"\n";
        // Every SA has a key of its own.
        let other: String = KEY.chars().rev().collect();
        let ah = sas(direction, "ah", 0x1002, "aes128gmac", &other)
            .replace("\"esp\"\nmode = \"tunnel\"", "\"ah\"\nmode = \"transport\"");
        let policy = format!("[[policy]]\ndirection = \"{direction}\"\naction = \"protect\"\nsa = \"esp\"\n");
        bench.write(name, &(esp + &ah + &policy));
    }
    let output = bench.seal("sas.toml");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let sealed = std::fs::read(bench.path("sealed.pcap")).unwrap();
    // Behind the headers of file and record: the protocol of the IP header, and AH's next header.
    assert_eq!((sealed[40 + 9], sealed[40 + 20]), (51, 50));
    let output = bench.run(&["open", "--sas", "in.toml", "sealed.pcap", "-o", "opened.pcap"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert_eq!(read("opened.pcap"), read("plain.pcap"));

    // ESP that has not come through AH is not taken.
    bench.write("sas.toml", &sas("out", "esp", 0x1001, "aes128gcm16", KEY));
    assert!(bench.seal("sas.toml").status.success());
    let output = bench.run(&["open", "--sas", "in.toml", "sealed.pcap", "-o", "opened.pcap", "--json"]);
    assert_eq!((output.status.code(), &json(&output)["packets_out"]), (Some(1), &Value::from(0)));
}

#[test]
fn two_runs_never_share_an_iv() {
    let bench = Bench::new();
    let ivs = || -> Vec<Vec<u8>> {
        assert_eq!(bench.seal("sas.toml").status.code(), Some(0));
        let file = std::fs::read(bench.path("sealed.pcap")).unwrap();
        let (mut at, mut ivs) = (24, Vec::new());
        while at < file.len() {
            let len = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
            ivs.push(file[at + 16 + 28..at + 16 + 36].to_vec());
            at += 16 + len;
        }
        ivs
    };
    let mut all = [ivs(), ivs()].concat();
    assert_eq!(all.len(), 6);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn packets_that_fail_are_left_out_and_the_answer_is_no() {
    let bench = Bench::new();
    bench.seal("sas.toml");
    let mut sealed = std::fs::read(bench.path("sealed.pcap")).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    std::fs::write(bench.path("sealed.pcap"), sealed).unwrap();
    let opened = bench.run(&["open", "--sas", "in.toml", "sealed.pcap", "-o", "opened.pcap", "-v", "--json"]);
    assert_eq!(opened.status.code(), Some(1));
    assert_eq!(json(&opened)["drops"]["in_state_proto_error"], 1);
    assert!(String::from_utf8_lossy(&opened.stderr).contains("packet 3: in_state_proto_error"));
}

#[test]
fn bad_sa_files_are_explained() {
    let bench = Bench::new();
    let good = sas("out", "east-out", 0x1001, "aes128gcm16", KEY);
    let two = format!("{good}\n{}", sas("out", "again", 0x1001, "aes128gcm16", KEY));
    let cases = [
        (
            "unknown proposal",
            good.replace("aes128gcm16", "aes128gmc16"),
            vec!["bad.toml:7", "aes128gmc16", "aes128gcm16"],
        ),
        ("key too short", good.replace(KEY, &KEY[..32]), vec!["bad.toml:8", "16 bytes", "20", "salt"]),
        ("unknown key", good.replace("proposal", "propsal"), vec!["bad.toml:7", "propsal", "proposal"]),
        ("overlapping SPIs", two, vec!["bad.toml:4", "0x00001001", "another SPI"]),
        ("no SA", String::new(), vec!["bad.toml", "sa"]),
        ("not TOML", "[[sa]\n".into(), vec!["bad.toml:1"]),
    ];
    for (what, text, words) in cases {
        bench.write("bad.toml", &text);
        let message = bench.refused(&bench.seal("bad.toml"));
        for word in words {
            assert!(message.contains(word), "{what}: no `{word}` in\n{message}");
        }
    }
    let message = bench.refused(&bench.seal("missing.toml"));
    assert!(message.contains("missing.toml"), "{message}");
    let message = bench.refused(&bench.seal("in.toml"));
    assert!(message.contains("direction = \"out\""), "{message}");
}

#[test]
fn a_last_record_that_is_cut_is_counted_and_a_broken_capture_leaves_nothing() {
    let bench = Bench::new();
    let whole = std::fs::read(bench.path("plain.pcap")).unwrap();
    for (cut, word, left) in [(whole.len() - 5, "record 3", 2), (30, "record 1", 0)] {
        std::fs::write(bench.path("plain.pcap"), &whole[..cut]).unwrap();
        let output = bench.run(&["seal", "--sas", "sas.toml", "plain.pcap", "-o", "cut.pcap", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{cut}");
        let (said, figures) = (String::from_utf8_lossy(&output.stderr), json(&output));
        assert!(said.contains("plain.pcap") && said.contains(word), "{cut}: no `{word}` in\n{said}");
        assert_eq!(
            (&figures["packets_out"], &figures["drops"]["snapped"]),
            (&left.into(), &1.into()),
            "{figures}"
        );
    }
    for (cut, word) in [(10, "header"), (0, "empty")] {
        std::fs::write(bench.path("plain.pcap"), &whole[..cut]).unwrap();
        let message = bench.refused(&bench.seal("sas.toml"));
        assert!(message.contains("plain.pcap") && message.contains(word), "{cut}: no `{word}` in\n{message}");
    }
    bench.write("plain.pcap", "this is no capture file at all");
    assert!(bench.refused(&bench.seal("sas.toml")).contains("plain.pcap"));
}

#[test]
fn an_unwritable_output_is_found_before_the_work() {
    let bench = Bench::new();
    for output in ["nowhere/sealed.pcap", "."] {
        let run = bench.run(&["seal", "--sas", "sas.toml", "plain.pcap", "-o", output]);
        assert!(bench.refused(&run).contains(output));
    }
}

#[test]
fn a_device_does_the_crypto() {
    let bench = Bench::new();
    let run = |command, sas, from, to, device| {
        bench.run(&[command, "--sas", sas, from, "-o", to, "--device", device])
    };
    let error = bench.refused(&run("seal", "sas.toml", "plain.pcap", "sealed.pcap", "fpga:0"));
    assert!(error.contains("unknown device") && error.contains("card"), "{error}");
    assert_eq!(run("seal", "sas.toml", "plain.pcap", "sealed.pcap", "card").status.code(), Some(0));
    assert_eq!(run("open", "in.toml", "sealed.pcap", "opened.pcap", "card").status.code(), Some(0));
    let read = |name| std::fs::read(bench.path(name)).unwrap();
    assert_eq!(read("plain.pcap"), read("opened.pcap"));
}

#[test]
fn usage_errors_have_exit_code_two() {
    let bench = Bench::new();
    for args in [
        &["seal"][..],
        &["bench", "esp", "--size", "3"],
        &["bench", "esp", "--proposal", "rot13"],
        &["demo", "--rate", "0"],
        &["frobnicate"],
    ] {
        assert_eq!(bench.run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn the_bench_reports_what_surfaces_promise() {
    let bench = Bench::new();
    let args = ["bench", "esp", "--size", "64,1408", "--direction", "both", "--seconds", "0.05", "--json"];
    let figures = json(&bench.run(&args));
    let results = figures["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for line in results {
        for key in ["packets_per_s", "bits_per_s", "cycles_per_packet", "limit_packets_per_s"] {
            assert!(line[key].as_f64().unwrap() > 0.0, "{key} in {line}");
        }
    }
}

#[test]
fn a_short_demo_leaves_its_files_and_they_open() {
    let bench = Bench::new();
    let demo = bench.run(&["demo", "--out", "run", "--repeat", "1", "--comparison", "0.5", "--json"]);
    assert_eq!(demo.status.code(), Some(0), "{}", String::from_utf8_lossy(&demo.stderr));
    let figures = json(&demo);
    let packets = &figures["capture"]["packets"];
    assert_eq!(&figures["comparison"]["identical"], packets);
    let run = |name: &str| bench.path("run").join(name);
    for name in ["report.html", "sealed.pcapng", "esp_sa", "sas-a.toml"] {
        assert!(run(name).exists(), "{name}");
    }
    let opened =
        bench.run(&["open", "--sas", "run/sas-b.toml", "run/sealed.pcapng", "-o", "plain.pcapng", "--json"]);
    assert_eq!(opened.status.code(), Some(0));
    assert_eq!(&json(&opened)["packets_out"], packets);
    assert!(is_private(&run("esp_sa")) && is_private(&run("sas-a.toml")));
}

fn is_private(path: &Path) -> bool {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}

const SCENARIO: &str = "model = \"host\"\n[traffic]\nsource = \"paper\"\nrate = \"1 Gbit/s\"\npackets = 5_000\n\
[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ninit = \"3 us\"\nblock = \"920 ns\"\n\
[[processor]]\nname = \"card\"\nkind = \"accelerator\"\ncount = 2\n";

#[test]
fn simulate_prints_figures_and_keeps_a_run_that_can_be_had_again() {
    let bench = Bench::new();
    bench.write("host.toml", SCENARIO);
    let json = |output: &Output| -> Value {
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("one JSON document")
    };
    let first = bench.run(&["simulate", "host.toml", "--json", "--out", "run", "--timeline", "100"]);
    let first = json(&first);
    assert_eq!((&first["schema"], &first["packets"]), (&1.into(), &5_000.into()));
    assert_eq!(first["processors"][2]["name"], "card.1");
    assert!(first["notes"][0].as_str().unwrap().contains("t_init"));
    for name in ["scenario.toml", "figures.json", "manifest.json", "timeline.json"] {
        assert!(bench.path("run").join(name).exists(), "{name}");
    }
    let again = json(&bench.run(&["simulate", "run/scenario.toml", "--json"]));
    assert_eq!(again["total_latency"], first["total_latency"]);
    let more = json(&bench.run(&["simulate", "host.toml", "--json", "--set", "processor.card.count=4"]));
    assert!(more["throughput_bps"].as_f64() > first["throughput_bps"].as_f64());
}

#[test]
fn simulate_says_all_that_is_wrong_with_a_scenario() {
    let bench = Bench::new();
    bench.write("host.toml", &SCENARIO.replace("rate", "rat").replace("card", "card\"\nque = \"3"));
    let output = bench.run(&["simulate", "host.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for part in [
        "host.toml",
        "unknown key `rat`",
        "did you mean `rate`?",
        "unknown key `que`",
        "[traffic] has no `rate`",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn older_command_names_are_refused_with_the_new_ones_as_hints() {
    let bench = Bench::new();
    for (old, new) in [("twin", "validate-model"), ("size", "size-buffers")] {
        let text = bench.refused(&bench.run(&[old, "--json"]));
        assert!(text.contains(&format!("unknown command `{old}`")), "{text}");
        assert!(text.contains(&format!("run `forebay {new}`")), "{text}");
    }
}

/// Options that would have no effect beside the others, or without them.
#[test]
fn options_without_an_effect_are_refused() {
    let bench = Bench::new();
    let study = |file: &str| format!("{}/../../studies/{file}", env!("CARGO_MANIFEST_DIR"));
    let (card, solvable, host) = (
        study("inline-card/bulk.toml"),
        study("network-processor/markov.toml"),
        study("policies/papers.toml"),
    );
    let seal = ["seal", "--sas", "out.toml", "plain.pcap", "-o", "x.pcap"];
    for (words, option, part) in [
        (&[&seal[..], &["--address", "10.1.0.1"]].concat()[..], "--address", "--icmp"),
        (&["top", "--size", "100x20"], "--size", "--print"),
        (&["solve", &card, "--unlimited"], "--unlimited", "closed form"),
        (&["solve", &solvable, "--unlimited", "--cycles", "7"], "--unlimited", "--cycles"),
        (&["solve", &solvable, "--unlimited", "--memory", "7"], "--unlimited", "--memory"),
        (&["size-buffers", &solvable, "--loss", "0.01", "--runs", "9"], "--runs", "Markov chain"),
        (
            &["size-buffers", &card, "--loss", "0.01", "--runs", "9", "--by", "chain"],
            "--runs",
            "Markov chain",
        ),
        (
            &["simulate", &host, "--highest-rate", "--latency", "1 ms", "--loss", "0.1"],
            "--loss",
            "unlimited input queue loses nothing",
        ),
        (&["simulate", &host, "--loss", "0.1"], "--loss", "--highest-rate"),
        (&["import", "secgw", "ep0.cfg", "--keys", "k", "--inline-keys"], "--keys", "--inline-keys"),
        (&["import", "wireguard", "wg0.conf", "--force"], "--force", "--output"),
    ] {
        let text = bench.refused(&bench.run(words)).replace("\n  │ ", " ");
        assert!(text.contains(option) && text.contains(part), "{words:?}: {text}");
    }
}

#[test]
fn further_cores_beside_a_device_are_refused_with_a_hint() {
    let bench = Bench::new();
    let args =
        ["seal", "--sas", "sas.toml", "plain.pcap", "-o", "x.pcap", "--device", "card", "--cores", "2"];
    let output = bench.run(&args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--cores 2 with `--device`") && said.contains("leave out `--cores`"), "{said}");
}

/// A pcapng file of two interfaces, 802.11 (105) and Ethernet, with a packet of each, then a simple one of the first.
#[test]
fn records_of_a_link_type_that_carries_no_ip_are_left_out_and_the_others_are_not() {
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length, &body[..], &length].concat()
    }
    let packet = |interface: u32, data: &[u8]| {
        let length = (data.len() as u32).to_le_bytes();
        block(6, &[&interface.to_le_bytes()[..], &[0; 8], &length, &length, data].concat())
    };
    let bench = Bench::new();
    let mut frame = [&[1; 12][..], &[8, 0]].concat();
    // As segmentation offload leaves it: without a length.
    let mut offloaded = plain(1, 600);
    offloaded[2..4].fill(0);
    frame.extend(offloaded);
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let file = [
        block(0x0a0d_0d0a, &section),
        block(1, &[105, 0, 0, 0, 0, 0, 0, 0]),
        block(1, &[1, 0, 0, 0, 0, 0, 0, 0]),
        packet(0, b"beacon"),
        packet(1, &frame),
        block(3, &[4, 0, 0, 0, 1, 2, 3, 4]),
        packet(1, &frame),
    ];
    std::fs::write(bench.path("mixed.pcapng"), file.concat()).unwrap();
    let output = bench.run(&["seal", "--sas", "sas.toml", "mixed.pcapng", "-o", "m.pcapng", "--json", "-v"]);
    assert_eq!(output.status.code(), Some(1));
    let figures = json(&output);
    assert_eq!((&figures["packets_out"], &figures["drops"]["not_ip"]), (&2.into(), &2.into()), "{figures}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("packet 1: not_ip: the record has link type 105"), "{said}");
    let opened = bench.run(&["open", "--sas", "in.toml", "m.pcapng", "-o", "opened.pcapng", "--json"]);
    assert_eq!(json(&opened)["packets_out"], 2);
    // The length is in the packet that comes out.
    let bytes = std::fs::read(bench.path("opened.pcapng")).unwrap();
    let whole = plain(1, 600);
    assert!(bytes.windows(10).any(|window| window == &whole[..10]));
}
