//! Whatever is wrong with a scenario is said with file, line and hint, and the exit code is 2.

use std::path::Path;
use std::process::{Command, Output};

/// All keys once, with values that fit together; `{}` is where a case puts its own line.
const WHOLE: &str = r#"model = "host"
seed = 1
[traffic]
source = "uniform"
min = 0
max = 100
packets = 100
rate = "1 Gbit/s"
sas = 10
overhead = 40
warm_up = 5
run_length = 2
[bus]
clock = "66 MHz"
width = 4
address_cycles = 1
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
alpha = 1.5
beta = "1 us"
queue = 50
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
write_buffer = 1
prefetch = 1
[scheduler]
policy = "finish-time"
window = 4
timeout = "50 us"
max_bytes = 9000
input = 1000
prefetch_aware = false
predict_transfer = false
"#;

/// What may stand in a key's place: those of one kind take the same wrong values.
const TIME: &[&str] = &["\"-1 us\"", "\"5 MHz\"", "\"1 fortnight\"", "true", "nan", "inf", "[1]", "\"\""];
const COUNT: &[&str] = &["-1", "0", "2.5", "\"many\"", "true", "99999999999999999999", "nan"];
const COUNT_OR_NONE: &[&str] = &["-1", "2.5", "\"many\"", "true", "nan"];
const FLAG: &[&str] = &["1", "\"yes\"", "[true]"];
const WORD: &[&str] = &["\"nothing-of-the-kind\"", "3", "true", "\"\""];
const RATE: &[&str] = &["\"0 bit/s\"", "0", "\"-1 Gbit/s\"", "\"1 Gbyte\"", "\"1 ms\"", "true", "nan", "inf"];
const KEYS: &[(&str, &[&str])] = &[
    ("model", WORD),
    ("seed", &["-1", "1.5", "\"one\"", "true"]),
    ("source", WORD),
    ("min", &["-1", "1.5", "\"1 s\"", "101"]),
    ("max", &["-1", "1.5", "\"1 s\"", "true"]),
    ("packets", COUNT),
    ("rate", RATE),
    ("sas", COUNT),
    ("overhead", &["-1", "1.5", "\"1 s\"", "70000"]),
    ("warm_up", &["-1", "1.5", "100", "\"all\""]),
    ("run_length", &["-1", "0", "0.5", "\"long\"", "true", "nan"]),
    ("clock", &["\"0 Hz\"", "-1", "\"66 Mbit/s\"", "true"]),
    ("width", COUNT),
    ("address_cycles", COUNT_OR_NONE),
    ("kind", WORD),
    ("init", TIME),
    ("block", TIME),
    ("alpha", &["0", "0.5", "-1", "\"high\"", "nan", "true"]),
    ("beta", TIME),
    ("queue", COUNT),
    ("count", COUNT),
    ("write_buffer", COUNT_OR_NONE),
    ("prefetch", COUNT_OR_NONE),
    ("policy", WORD),
    ("window", COUNT),
    ("timeout", TIME),
    ("max_bytes", COUNT),
    ("input", COUNT),
    ("prefetch_aware", FLAG),
    ("predict_transfer", FLAG),
];

fn forebay(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(args).current_dir(folder).env("NO_COLOR", "1").output().unwrap()
}

/// The message of a scenario that must be refused.
fn refused(folder: &Path, text: &str, what: &str) -> String {
    std::fs::write(folder.join("s.toml"), text).unwrap();
    let output = forebay(folder, &["simulate", "s.toml"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{what}: {message}{}", String::from_utf8_lossy(&output.stdout));
    assert!(!message.contains("panicked"), "{what}: {message}");
    assert!(message.contains("help:"), "{what}: no hint in {message}");
    message
}

/// `s.toml:LINE:` as the report writes it.
fn points_at(message: &str, line: usize) -> bool {
    message.contains(&format!("s.toml:{line}:"))
}

#[test]
fn the_whole_scenario_is_right() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), WHOLE).unwrap();
    let output = forebay(dir.path(), &["simulate", "s.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_key_refuses_what_it_cannot_be_where_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    for (key, values) in KEYS {
        let at = WHOLE.lines().position(|line| line.starts_with(&format!("{key} ="))).unwrap();
        for value in *values {
            let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
            lines[at] = format!("{key} = {value}");
            let what = format!("{key} = {value}");
            let message = refused(dir.path(), &lines.join("\n"), &what);
            // A model that there is not is no line's fault alone, and limits may be said of either end.
            let about = [at + 1, at + 2];
            assert!(about.iter().any(|line| points_at(&message, *line)), "{what}: {message}");
            assert!(message.contains(key) || message.contains(value.trim_matches('"')), "{what}: {message}");
        }
    }
}

#[test]
fn every_key_that_is_misspelt_is_named_with_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    for (number, line) in WHOLE.lines().enumerate() {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        // `model` decides who reads the rest.
        if key == "model" {
            continue;
        }
        let wrong = format!("{key}x");
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
        lines[number] = format!("{wrong} = {value}");
        let message = refused(dir.path(), &lines.join("\n"), &wrong);
        assert!(message.contains(&format!("unknown key `{wrong}`")), "{message}");
        assert!(message.contains(&format!("did you mean `{key}`?")), "{message}");
        assert!(points_at(&message, number + 1), "{wrong}: {message}");
    }
}

#[test]
fn what_does_not_fit_together_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.csv"), "").unwrap();
    std::fs::write(dir.path().join("header.csv"), "size,time\n").unwrap();
    std::fs::write(dir.path().join("bad.csv"), "size,time\n40,0\n40,-1\n").unwrap();
    std::fs::write(dir.path().join("short.csv"), "size,time\n40,0\n40\n").unwrap();
    std::fs::write(dir.path().join("word.csv"), "length\n40\n").unwrap();
    std::fs::write(dir.path().join("cut.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).unwrap();
    let card = "[[processor]]\nname = \"card\"\nkind = \"accelerator\"\n";
    let cpu = "[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ninit_ratio = 3\nblock_ratio = 3\n";
    let fixed = "[traffic]\nsource = \"fixed\"\nvalue = 100\nrate = \"1 Gbit/s\"\npackets = 10\n";
    let file =
        |name: &str| format!("model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"{name}\"\n{card}");
    let host = |parts: &[&str]| format!("model = \"host\"\n{}", parts.concat());
    for (text, words) in [
        (file("empty.csv"), "empty.csv"),
        (file("header.csv"), "header.csv: the trace has no packets"),
        (file("bad.csv"), "bad.csv:3: the time is `-1`"),
        (file("short.csv"), "short.csv:3: 1 fields, expected 2"),
        (file("word.csv"), "word.csv:1: the header is `length`, expected a column named `size`"),
        (file("absent.csv"), "absent.csv"),
        (file("cut.pcap"), "cut.pcap"),
        (host(&[fixed]), "processor"),
        (host(&[card]), "traffic"),
        (host(&[fixed, cpu]), "init_ratio"),
        (host(&[fixed, card, "bus = \"nowhere\"\n"]), "nowhere"),
        (host(&[fixed, card, card]), "card"),
        (host(&[fixed.replace("value = 100\n", "").as_str(), card]), "`value`"),
        (host(&[fixed.replace("rate = \"1 Gbit/s\"\n", "").as_str(), card]), "`rate`"),
        (host(&[fixed, "suites = [\"gcm\"]\n", card, "suites = [\"cbc\"]\n"]), "cbc"),
        (host(&[fixed, "mean = 5\n", card]), "`mean` means nothing for source `fixed`"),
        (host(&[fixed, card, "[scheduler]\npolicy = \"single\"\nprocessor = \"nobody\"\n"]), "nobody"),
        (host(&[fixed, card, "[scheduler]\nwindow = 30\ninput = 10\n"]), "`input` is 10"),
        ("model = \"hots\"\n".to_owned(), "hots"),
        ("[traffic]\n".to_owned(), "model"),
        ("model = \"host\n".to_owned(), "not TOML"),
        (host(&[fixed, fixed, card]), "not TOML"),
        (host(&[fixed, card, "name = \"again\"\n"]), "not TOML"),
    ] {
        let message = refused(dir.path(), &text, words);
        // Long lines are folded at the terminal's width.
        let flat: String =
            message.split_whitespace().map(|word| word.trim_start_matches('│')).collect::<Vec<_>>().join(" ");
        assert!(message.contains(words) || flat.contains(words), "{words}: {message}");
        assert!(message.contains("s.toml"), "{words}: {message}");
    }
}

#[test]
fn arguments_are_checked_like_keys() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), WHOLE).unwrap();
    for args in [
        &["--set", "nothing"][..],
        &["--set", "traffic.rate="],
        &["--set", "=1"],
        &["--set", "processor.crad.count=1"],
        &["--set", "scheduler.window.x=1"],
        &["--sweep", "traffic.rate"],
        &["--sweep", "traffic.rat=1,2"],
        &["--sweep", "scheduler.window=1,0"],
        &["--replications", "0"],
        &["--highest-rate", "--loss", "2"],
        &["--highest-rate", "--loss", "nan"],
        &["--highest-rate", "--latency", "5 miles"],
        &["--columns"],
        &["--timeline", "5"],
    ] {
        let output = forebay(dir.path(), &[&["simulate", "s.toml"], args].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(!message.contains("panicked"), "{args:?}: {message}");
    }
    assert_eq!(forebay(dir.path(), &["simulate", "absent.toml"]).status.code(), Some(2));
    assert_eq!(forebay(dir.path(), &["simulate", "."]).status.code(), Some(2));
}
