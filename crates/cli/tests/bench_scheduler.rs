//! `forebay bench scheduler` as its users meet it: arguments, figures, and a report.

use std::process::{Command, Output};

use serde_json::Value;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(["bench", "scheduler"]).args(args).output().unwrap()
}

/// The figures of a run that takes a fraction of a second.
fn figures(args: &[&str]) -> Value {
    let short = ["--seconds", "0.01", "--rounds", "1", "--json"];
    let output = run(&[&short, args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    for (args, words) in [
        (
            &["--processor", "worker,core"][..],
            &["the first processor must be the running core", "--processor core"][..],
        ),
        (&["--processor", "core,core"], &["only the first processor can be the running core", "`worker`"]),
        (&["--processor", "core,fpga"], &["unknown processor", "aws-lc"]),
        (&["--processor", "core:openssl"], &["unknown library `openssl`"]),
        (&["--processor", "core,dpdk:"], &["unknown processor"]),
        (&["--processor", "io"], &["no processor is left that does crypto", "--processor io,worker"]),
        (&["--rival", "core"], &["the running core is no rival"]),
        (&["--processor", "core,worker,worker,worker,card,card,card,card,card"], &["expected 1 to 8"]),
        (&["--policy", "fifo"], &["unknown policy", "round-robin"]),
        (&["--processor", "core", "--policy", "size-threshold"], &["requires two processors"]),
        (&["--proposal", "aes128gmc16"], &["unknown proposal", "did you mean"]),
        (&["--size", "27"], &["expected 28"]),
        (&["--size", "none.pcap"], &["no such file exists"]),
        (&["--size", "/dev/null"], &["/dev/null"]),
        (&["--sas", "0"], &["expected 1 to 250"]),
        (&["--window", "1,65"], &["expected 1 to 64"]),
        (&["--rounds", "0"], &["expected 1 to 99"]),
        (&["--seconds", "0"], &["expected 0.01"]),
        (&["--seconds", "NaN"], &["expected 0.01"]),
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

#[test]
fn figures_have_the_keys_of_the_surface() {
    let document = figures(&["--size", "64,imix", "--window", "1,4", "--sas", "3"]);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["processors"], serde_json::json!(["core", "worker"]));
    let limits = &document["limits"];
    assert!(number(&limits["sum_packets_per_s"]) > 0.0);
    assert!(number(&limits["best_static_packets_per_s"]) > 0.0);
    assert_eq!(limits["by_size"].as_array().unwrap().len(), 2);

    let results = document["results"].as_array().unwrap();
    let rows: Vec<(&str, u64, &Value)> = results
        .iter()
        .map(|row| (row["policy"].as_str().unwrap(), row["window"].as_u64().unwrap(), &row["size"]))
        .collect();
    let policies = ["finish-time", "single", "round-robin", "shortest-queue", "size-threshold", "split"];
    assert_eq!(rows.len(), policies.len() * 4);
    for policy in policies {
        for window in [1, 4] {
            assert!(rows.contains(&(policy, window, &64.into())));
            assert!(rows.contains(&(policy, window, &"imix".into())));
        }
    }
    for row in results {
        let (packets, bits) = (number(&row["packets_per_s"]), number(&row["bits_per_s"]));
        assert!(packets > 0.0 && bits > packets * 64.0 * 7.99, "{row}");
        assert!(number(&row["of_sum"]) > 0.0 && number(&row["of_best_static"]) > 0.0);
        for (latency, load) in [(&row["latency_50"], 0.5), (&row["latency_90"], 0.9)] {
            // A share of the throughput, or of what is carried while latencies are measured.
            let share = number(&latency["offered_packets_per_s"]) / packets;
            assert!(share > 0.0 && share < load + 1e-9, "{share} of {load}");
            assert!(
                number(&latency["p50_s"]) > 0.0 && number(&latency["p50_s"]) <= number(&latency["p99_s"])
            );
        }
        let processors = row["processors"].as_array().unwrap();
        let shares: f64 = processors.iter().map(|one| number(&one["share"])).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{row}");
        for (one, name) in processors.iter().zip(["core", "worker"]) {
            assert_eq!(one["name"], name);
            assert!(number(&one["load"]) >= 0.0);
            assert!(number(&one["predicted_s"]) >= 0.0 && number(&one["actual_s"]) >= 0.0);
        }
    }
    assert_eq!(document["rivals"], Value::Null);
    let split = results.iter().find(|row| row["policy"] == "split").unwrap();
    assert_eq!(split["weights"].as_array().unwrap().len(), 2);
    let alone = document["alone"].as_array().unwrap();
    assert_eq!(alone.len(), 4);
    assert!(alone.iter().all(|one| number(&one["packets_per_s"]) > 0.0));
}

#[test]
fn a_core_without_crypto_leaves_all_to_others_and_rivals_stand_apart() {
    let words = ["--processor", "io,worker:aws-lc", "--rival", "aws-lc", "--size", "256", "--window", "1"];
    let document = figures(&[&words[..], &["--policy", "finish-time"]].concat());
    let alone = document["alone"].as_array().unwrap();
    assert_eq!(alone.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["worker:aws-lc"]);
    for row in document["results"].as_array().unwrap() {
        assert_eq!(number(&row["processors"][0]["share"]), 0.0, "{row}");
    }
    let rivals = document["rivals"].as_array().unwrap();
    assert_eq!(rivals.len(), 1);
    assert_eq!((&rivals[0]["policy"], &rivals[0]["processor"]), (&"rival".into(), &"aws-lc".into()));
    assert!(number(&rivals[0]["packets_per_s"]) > 0.0);
}

#[test]
fn the_best_static_split_is_no_worse_than_any_that_was_measured() {
    let document = figures(&["--size", "256", "--window", "1", "--policy", "single,round-robin"]);
    let best = number(&document["limits"]["best_static_packets_per_s"]);
    for row in document["results"].as_array().unwrap() {
        assert!(number(&row["packets_per_s"]) <= best, "{row}");
    }
    for one in document["alone"].as_array().unwrap() {
        assert!(number(&one["packets_per_s"]) <= best);
    }
}

#[test]
fn cards_and_both_libraries_stand_side_by_side_and_the_report_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new");
    let args =
        ["--processor", "core:aws-lc,aws-lc,card,card", "--proposal", "aes256-sha512", "--size", "576"];
    let out_args = ["--window", "8", "--policy", "finish-time", "--out", out.to_str().unwrap()];
    let document = figures(&[&args[..], &out_args].concat());
    assert_eq!(document["processors"], serde_json::json!(["core:aws-lc", "aws-lc", "card", "card.2"]));
    let kept: Value = serde_json::from_slice(&std::fs::read(out.join("figures.json")).unwrap()).unwrap();
    assert_eq!(kept, document);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Finish time reaches") && page.contains("card.2"));
}

#[test]
fn a_capture_gives_sizes_and_order() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/traffic.pcap");
    let document = figures(&["--size", capture, "--window", "1", "--policy", "finish-time"]);
    let row = &document["results"][0];
    assert_eq!(row["size"], capture);
    let mean = number(&row["bits_per_s"]) / 8.0 / number(&row["packets_per_s"]);
    assert!((28.0..1500.0).contains(&mean), "{mean}");
}

#[test]
fn one_processor_by_itself_is_its_own_limit() {
    let document = figures(&["--processor", "core:aws-lc", "--size", "64", "--policy", "finish-time"]);
    assert_eq!(document["alone"].as_array().unwrap().len(), 1);
    for row in document["results"].as_array().unwrap() {
        assert_eq!(number(&row["processors"][0]["share"]), 1.0);
    }
}
