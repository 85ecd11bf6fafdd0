//! `forebay bench gateway` as its users meet it: arguments, figures, what is missing, and what is left when it is interrupted. Skipped
//! where network namespaces cannot be made.
#![cfg(target_os = "linux")]
// Processes and signals take real time.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take that is waited for.
const TIMEOUT: Duration = Duration::from_secs(60);

fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["bench", "gateway"]).args(args).stdin(Stdio::null());
    // Of another process, which proves nothing about this one.
    command.env("FOREBAY_BENCH_ENTERED", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(args: &[&str]) -> Output {
    start(args).wait_with_output().unwrap()
}

/// Whether what it needs is not here.
fn is_skipped(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stderr);
    let lacks = ["cannot make network namespaces", "it is not installed", "cannot run unshare"];
    let skipped = output.status.code() == Some(2) && lacks.iter().any(|words| text.contains(words));
    if skipped {
        eprintln!("skipped: {text}");
    }
    skipped
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    for (args, words) in [
        (&["--link", "tun"][..], &["--link tun: unknown kinds", "write INSIDE+OUTSIDE"][..]),
        (&["--link", "udp+tun"], &["unknown kinds"]),
        (&["--proposal", "aes128gmc16"], &["unknown proposal", "did you mean"]),
        (&["--size", "31"], &["expected 32 to 1400"]),
        (&["--size", "1401"], &["expected 32 to 1400"]),
        (&["--flows", "0"], &["expected 1 to 4096"]),
        (&["--seconds", "NaN"], &["expected 0.05"]),
        (&["--rounds", "0"], &["expected 1 to 99"]),
        (&["--cpus", "0,9999"], &["--cpus 9999", "this CPU does not exist"]),
        (&["--keys", "/none.toml"], &["--keys /none.toml"]),
    ] {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        for words in words {
            assert!(text.contains(words), "{args:?}: {text}");
        }
    }
}

#[test]
fn every_forwarder_has_its_figures_or_says_why_not_and_nothing_is_left_behind() {
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: there is no /dev/net/tun");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.toml");
    fs::write(&keys, "[limits]\nin_flight = 2048\n").unwrap();
    let short =
        ["--size", "200", "--seconds", "0.5", "--rounds", "1", "--json", "--keys", keys.to_str().unwrap()];
    let mounts = on_run();
    let output = run(&[&short[..], &["--link", "tun+udp,kernel"]].concat());
    assert_eq!(on_run(), mounts);
    if is_skipped(&output) {
        return;
    }
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["schema"], &document["missing"]), (&1.into(), &serde_json::json!([])));
    let lines = document["results"].as_array().unwrap();
    let found: Vec<_> = lines
        .iter()
        .map(|line| (line["forwarder"].as_str().unwrap(), line["direction"].as_str().unwrap()))
        .collect();
    let both = |name| [(name, "out"), (name, "in")];
    assert_eq!(found, [both("aes128gcm16"), both("relay"), both("kernel")].concat());
    for line in lines {
        assert_eq!((&line["size"], &line["flows"]), (&200.into(), &1.into()), "{line}");
        let median = |key: &str| line[key]["median"].as_f64();
        assert!(median("offered_per_s") > Some(0.0) && median("packets_per_s") > Some(0.0), "{line}");
        assert_eq!(median("cpu_us_per_packet").is_some(), line["forwarder"] != "kernel", "{line}");
    }

    // The gateway's own words are the reason.
    fs::write(&keys, "[limits]\nin_flite = 2048\n").unwrap();
    let output = run(&[&short[..], &["--link", "tun+udp"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = document["missing"][0]["why"].as_str().unwrap();
    assert!(why.contains("in_flite"), "{why}");

    let child = start(&["--link", "tun+udp", "--seconds", "60"]);
    let mut gateways = vec![];
    wait_until("a gateway", || {
        gateways = children(child.id());
        !gateways.is_empty()
    });
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    wait_until("the end of its processes", || gateways.iter().all(|pid| parent_of(pid).is_none()));
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is mounted on /run, as this process sees it.
fn on_run() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap();
    text.lines().filter(|line| line.contains(" /run ")).map(str::to_owned).collect()
}

/// The gateways of a process.
fn children(of: u32) -> Vec<String> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_gateway = |pid: &String| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent_of(pid) == Some(of) && line.contains("forebay\0gateway")
    };
    pids.filter(is_gateway).collect()
}

fn parent_of(pid: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
