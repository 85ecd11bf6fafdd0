//! What is done is kept when the user breaks work off, and a reader that goes away is no reason to panic.
#![cfg(unix)]
// Processes and signals take real time.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

const HOST: &str = "model = \"host\"\nseed = 5\n[traffic]\nsource = \"paper\"\nrate = \"400 Mbit/s\"\npackets = 1_000\n\
                    sas = 4\n[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ninit_ratio = 3\nblock_ratio = 3\n\
                    [[processor]]\nname = \"card\"\nkind = \"accelerator\"\n[scheduler]\ninput = 1000\n";

fn forebay(folder: &Path, args: &[&str]) -> Child {
    forebay_to(folder, args, Stdio::piped())
}

fn forebay_to(folder: &Path, args: &[&str], stdout: Stdio) -> Child {
    fs::write(folder.join("host.toml"), HOST).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Sends SIGINT, as Ctrl-C does, and returns how the process ended.
fn interrupted(child: Child) -> Output {
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap()
}

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} takes too long");
        sleep(Duration::from_millis(20));
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_parquet(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

#[test]
fn a_run_that_is_broken_off_is_the_run_of_its_first_packets() {
    let dir = tempfile::tempdir().unwrap();
    let child = forebay(
        dir.path(),
        &["simulate", "host.toml", "--set", "traffic.packets=4_000_000_000", "--json", "--out", "run"],
    );
    sleep(Duration::from_secs(1));
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted: the figures cover the first"));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packets = printed["interrupted_after"].as_u64().unwrap();
    assert_eq!(printed["packets"].as_u64().unwrap() + printed["lost"].as_u64().unwrap(), packets);
    let run = dir.path().join("run");
    assert_eq!(json(&run.join("figures.json")), printed);
    assert_eq!(json(&run.join("manifest.json"))["complete"], false);
    assert!(read(&run.join("report.html")).contains("Broken off after"));
    assert!(is_parquet(&run.join("figures.parquet")));
    // What is kept can be had again, and is whole then.
    let again = forebay(dir.path(), &["simulate", "run/scenario.toml", "--json"]).wait_with_output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    for figure in ["elapsed_s", "packets", "throughput_bps", "processors", "lost", "bus", "packets_per_job"] {
        assert_eq!(again[figure], printed[figure], "{figure}");
    }
}

const PIPELINE: &str = "model = \"pipeline\"\nservice = \"exponential\"\n[arrivals]\nmean = \"70 us\"\n[[stage]]\n\
                        name = \"only\"\ntime = \"45 us\"\nbuffer = 8\n";

#[test]
fn a_run_of_a_pipeline_that_is_broken_off_is_the_run_of_that_duration() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("pipeline.toml"), PIPELINE).unwrap();
    let set = ["--set", "duration=20 d"];
    let child =
        forebay(dir.path(), &[&["simulate", "pipeline.toml", "--json", "--out", "run"][..], &set].concat());
    sleep(Duration::from_secs(1));
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted: the figures cover the first"));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(printed["interrupted_after_s"].as_f64().unwrap() > 0.0);
    assert_eq!(json(&dir.path().join("run/figures.json")), printed);
    let again = forebay(dir.path(), &["simulate", "run/scenario.toml", "--json"]).wait_with_output().unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    for figure in ["elapsed_s", "generated", "processed", "lost", "stages", "delay", "fingerprint"] {
        assert_eq!(again[figure], printed[figure], "{figure}");
    }
}

#[test]
fn runs_of_a_pipeline_that_are_broken_off_have_means_of_those_that_are_done() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("pipeline.toml"), PIPELINE).unwrap();
    let child = forebay(dir.path(), &["simulate", "pipeline.toml", "--replications", "100000", "--json"]);
    sleep(Duration::from_secs(1));
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = printed["replications"]["runs"].as_u64().unwrap();
    assert!(runs > 1 && runs < 100_000 && printed["resolved"]["runs"] == runs, "{runs}");
    assert!(text(&output.stderr).contains(&format!("interrupted: {runs} runs are complete")));
}

#[test]
fn a_sweep_that_is_broken_off_keeps_the_points_that_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = "--sweep=traffic.packets=1000,2000,3000,4_000_000_000,4_000_000_000,5000";
    let child = forebay(dir.path(), &["simulate", "host.toml", sweep, "--out", "sweep", "--threads", "2"]);
    let points = dir.path().join("sweep/points.jsonl");
    wait_until("three points", || fs::read_to_string(&points).is_ok_and(|text| text.lines().count() >= 3));
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("of 6 runs are complete and kept"), "{}", text(&output.stderr));
    let sweep = dir.path().join("sweep");
    let lines: Vec<Value> = read(&points).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let packets: Vec<u64> =
        lines.iter().map(|line| line["figures"]["packets"].as_f64().unwrap() as u64).collect();
    assert_eq!(packets[..3], [1000, 2000, 3000]);
    let manifest = json(&sweep.join("manifest.json"));
    assert_eq!((manifest["complete"].as_bool(), manifest["runs_wanted"].as_u64()), (Some(false), Some(6)));
    assert_eq!(manifest["runs"].as_u64().unwrap(), lines.len() as u64);
    assert!(read(&sweep.join("figures.csv")).contains("throughput_bps"));
    assert!(is_parquet(&sweep.join("figures.parquet")));
    assert!(read(&sweep.join("report.html")).contains("Interrupted: 3 of 6 runs are complete."));
}

#[test]
fn replications_that_are_broken_off_have_means_of_those_that_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let child = forebay(
        dir.path(),
        &[
            "simulate",
            "host.toml",
            "--replications",
            "100000",
            "--set",
            "traffic.packets=20_000",
            "--out",
            "some",
        ],
    );
    let runs = dir.path().join("some/figures.csv");
    wait_until("a few runs", || {
        fs::read_to_string(&runs).is_ok_and(|text| text.matches("throughput_bps").count() >= 5)
    });
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("replications; mean and 95 % confidence interval"));
    let manifest = json(&dir.path().join("some/manifest.json"));
    let done = manifest["runs"].as_u64().unwrap();
    assert!((5..100_000).contains(&done) && manifest["complete"] == false, "{manifest}");
    let point: Value = serde_json::from_str(read(&dir.path().join("some/points.jsonl")).trim()).unwrap();
    assert_eq!(point["replications"].as_u64().unwrap(), done);
    assert!(read(&dir.path().join("some/report.html")).contains("Interrupted"));
}

#[test]
fn a_search_that_is_broken_off_says_what_it_has_found() {
    // How long the first tries take depends on the machine: wait longer until some are done.
    for seconds in [2, 6, 18, 54] {
        let dir = tempfile::tempdir().unwrap();
        let packets = "--set=traffic.packets=3_000_000";
        let child =
            forebay(dir.path(), &["simulate", "host.toml", packets, "--highest-rate", "--out", "found"]);
        sleep(Duration::from_secs(seconds));
        let output = interrupted(child);
        if text(&output.stderr).contains("nothing was written") {
            continue;
        }
        if output.status.code() == Some(0) {
            return eprintln!("SKIPPED: the machine is too fast for this test's patience");
        }
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("interrupted: the highest rate is at least"));
        let found = json(&dir.path().join("found/search.json"));
        assert_eq!(found["complete"], false);
        assert!(found["tried"].as_array().unwrap().iter().any(|one| one["keeps"] == true), "{found}");
        assert!(dir.path().join("found/report.html").is_file());
        return;
    }
    panic!("no try of the search ends in time");
}

/// What Python does with an interrupt is tested with the package; the command becomes Python, so that it gets there.
#[test]
fn an_interrupt_of_a_study_reaches_python() {
    let dir = tempfile::tempdir().unwrap();
    // No shell: of one that was started with interrupts ignored, as in a background job, no trap catches them.
    let script = "#!/usr/bin/env python3\n\
        import pathlib, signal, sys, time\n\
        def end(*_):\n    print('interrupted')\n    sys.exit(130)\n\
        signal.signal(signal.SIGINT, end)\n\
        pathlib.Path(__file__).with_name('ready').touch()\n\
        time.sleep(60)\n";
    let python = dir.path().join("python");
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["study", "run", "scaling"]).env("FOREBAY_PYTHON", &python);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the start of Python", || dir.path().join("ready").exists());
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "interrupted\n");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let long = "--sweep=traffic.packets=1000,4_000_000_000,4_000_000_000";
    for args in [
        &["study", "list"][..],
        &["--help"],
        &["simulate", "host.toml", "--json"],
        &["simulate", "host.toml", "--replications", "3", "--json"],
        // A sweep ends at the first point after the reader has closed the pipe.
        &["simulate", "host.toml", long, "--threads", "1"],
    ] {
        // Closed before the program begins: a sweep that prints its first point sooner would not notice.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = forebay_to(dir.path(), args, writer.into()).wait_with_output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return eprintln!("SKIPPED: there is no /dev/full here");
    };
    let output =
        Command::new(env!("CARGO_BIN_EXE_forebay")).args(["study", "list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot write to standard output"), "{}", text(&output.stderr));
}
