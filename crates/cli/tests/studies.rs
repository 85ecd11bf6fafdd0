//! Sweeps, replications, searches, and validate-model, as their users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const HOST: &str = r#"
model = "host"
[traffic]
source = "exponential"
mean = 471
min = 20
max = 1400
packets = 2000
rate = "400 Mbit/s"
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
"#;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        std::fs::write(bench.path("host.toml"), HOST).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_forebay")).args(args).current_dir(self.0.path()).output().unwrap()
    }

    /// What a run that must do well prints.
    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.good(args)).unwrap()
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_sweep_has_every_combination_and_each_is_the_run_by_itself() {
    let bench = Bench::new();
    let sweep = [
        "simulate",
        "host.toml",
        "--sweep",
        "processor.card.count=1,2",
        "--sweep",
        "traffic.rate=200 Mbit/s,1 Gbit/s",
        "--json",
    ];
    let on =
        |threads: &'static str| bench.good(&[&sweep[..], &["--threads", threads, "--out", threads]].concat());
    let text = on("1");
    assert_eq!(text, on("3"), "the number of threads changes nothing");
    let points = lines(&text);
    assert_eq!(points.len(), 4);
    let alone = bench.json(&["simulate", "host.toml", "--set", "traffic.rate=1 Gbit/s", "--json"]);
    assert_eq!(points[3]["sweep"]["traffic.rate"], "1 Gbit/s");
    assert_eq!(points[3]["figures"]["throughput_bps"], alone["throughput_bps"]);
    assert_eq!(
        points[3]["figures"]["processor.card.1.packets"].as_f64(),
        alone["processors"][2]["packets"].as_f64()
    );
    // The rows in the folder say the same.
    let csv = std::fs::read_to_string(bench.path("1/figures.csv")).unwrap();
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some("processor.card.count,traffic.rate,seed,figure,value"));
    let expected = format!("2,1 Gbit/s,1,throughput_bps,{}", alone["throughput_bps"]);
    assert!(rows.any(|row| row == expected), "no {expected}");
    assert_eq!(lines(&std::fs::read_to_string(bench.path("1/points.jsonl")).unwrap()), points);
}

#[test]
fn replications_are_runs_with_the_next_seeds_and_their_mean_is_given() {
    let bench = Bench::new();
    let all = bench.json(&["simulate", "host.toml", "--replications", "3", "--json"]);
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let second = bench.json(&["simulate", "host.toml", "--set", "seed=2", "--json"]);
    assert_eq!(runs[1]["figures"]["total_latency"], second["total_latency"]);
    let values: Vec<f64> =
        runs.iter().map(|run| run["figures"]["throughput_bps"].as_f64().unwrap()).collect();
    let mean = values.iter().sum::<f64>() / 3.0;
    // Student's t for two degrees of freedom, by scipy.
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let estimate = &all["estimates"]["throughput_bps"];
    let close = |a: &Value, b: f64| (a.as_f64().unwrap() - b).abs() <= 1e-9 * b.abs();
    assert!(close(&estimate["mean"], mean), "{estimate}");
    assert!(close(&estimate["half_width"], 4.302_652_729_749_464 * deviation / 3f64.sqrt()), "{estimate}");
}

#[test]
fn the_highest_rate_keeps_its_bound_and_a_little_more_does_not() {
    let bench = Bench::new();
    let bounded = |rate: f64| {
        let rate = format!("traffic.rate={rate:.0}");
        let run = bench.json(&["simulate", "host.toml", "--set", &rate, "--json"]);
        run["total_latency"]["p99_s"].as_f64().unwrap() <= 200e-6
    };
    let found = bench.json(&["simulate", "host.toml", "--highest-rate", "--latency", "200 us", "--json"]);
    let rate = found["highest_rate_bps"].as_f64().unwrap();
    assert!(bounded(rate) && !bounded(1.01 * rate), "{rate}");
    let refused = bench.run(&["simulate", "host.toml", "--highest-rate"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("scheduler.input"), "{said}");
}

/// How far both are apart is this machine's matter; that each packet went through both is not.
#[test]
fn validate_model_gives_engine_and_simulator_the_same_packets_and_its_scenario_runs_again() {
    let bench = Bench::new();
    let output = bench.run(&[
        "validate-model",
        "--packets",
        "2000",
        "--rate",
        "300 Mbit/s",
        "--window",
        "4",
        "--out",
        "model",
        "--json",
    ]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code() == Some(0), comparison["holds"] == true);
    let run = &comparison["runs"][0];
    for side in ["engine", "simulator"] {
        let done =
            run[side]["processors"].as_array().unwrap().iter().map(|one| one["packets"].as_u64().unwrap());
        assert_eq!(done.sum::<u64>(), 2000, "{side}");
    }
    let again = bench.json(&["simulate", "model/rate-1/scenario.toml", "--json"]);
    assert_eq!(again["throughput_bps"], run["simulator"]["throughput_bps"]);
    let page = std::fs::read_to_string(bench.path("model/report.html")).unwrap();
    assert!(page.matches("<svg").count() >= 4 && !page.contains("NaN"));
    assert!(Path::new(&bench.path("model/figures.json")).exists());
}

/// Likewise of cores; and options that would have no effect are refused.
#[test]
fn validate_model_compares_equal_cores() {
    let bench = Bench::new();
    let args =
        ["validate-model", "--cores", "2", "--packets", "1000", "--size", "200", "--out", "cores", "--json"];
    let output = bench.run(&args);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = comparison["runs"].as_array().unwrap();
    assert!(runs.len() == 3 && runs.iter().all(|run| run["engine"]["packets"] == 1000));
    let again = bench.json(&["simulate", "cores/load-1/scenario.toml", "--json"]);
    assert!(again["packets"] == 1000 && again["cores"]["take"]["load"].as_f64().unwrap() > 0.0);
    let refused = bench.run(&["validate-model", "--cores", "2", "--cards", "3"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = bench.run(&["validate-model", "--size", "200"]);
    assert_eq!(refused.status.code(), Some(2));
}
