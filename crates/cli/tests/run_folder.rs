//! What a run leaves behind, read as others read it.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const HOST: &str = "model = \"host\"\nseed = 3\n[traffic]\nsource = \"paper\"\nrate = \"700 Mbit/s\"\npackets = 3_000\nsas = 4\n\
                    [[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ninit_ratio = 3\nblock_ratio = 3\n[[processor]]\n\
                    name = \"card\"\nkind = \"accelerator\"\ncount = 2\nwrite_buffer = 1\nprefetch = 1\n[scheduler]\n\
                    window = 4\ntimeout = \"50 us\"\ninput = 20\n";

fn forebay(folder: &Path, args: &[&str]) -> Output {
    std::fs::write(folder.join("host.toml"), HOST).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_forebay")).args(args).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The JSON trace event format, as far as it is used: every event has its phase, process and name; complete
/// events (`X`) a thread, a time and a duration and do not overlap on their thread; counters (`C`) numbers;
/// metadata (`M`) names for every thread there is.
#[test]
fn the_time_line_is_a_trace_of_one_thing_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    forebay(dir.path(), &["simulate", "host.toml", "--out", "run", "--timeline", "1000000"]);
    let trace = json(&dir.path().join("run/timeline.json"));
    assert_eq!(trace["displayTimeUnit"], "ns");
    let (mut names, mut threads, mut counters) = (HashMap::new(), HashMap::new(), HashMap::new());
    for event in trace["traceEvents"].as_array().unwrap() {
        let text = |key: &str| event[key].as_str().unwrap_or_else(|| panic!("{key} of {event}"));
        let number = |key: &str| {
            event[key].as_f64().filter(|x| *x >= 0.0).unwrap_or_else(|| panic!("{key} of {event}"))
        };
        assert_eq!(event["pid"], 1, "{event}");
        match text("ph") {
            "M" => {
                let name = event["args"]["name"].as_str().unwrap().to_owned();
                match text("name") {
                    "thread_name" => drop(names.insert(event["tid"].as_u64().unwrap(), name)),
                    other => assert_eq!(other, "process_name"),
                }
            }
            "X" => {
                text("name");
                let thread: &mut Vec<(f64, f64)> = threads.entry(event["tid"].as_u64().unwrap()).or_default();
                thread.push((number("ts"), number("ts") + number("dur")));
            }
            "C" => {
                number("ts");
                let jobs = event["args"]["jobs"].as_u64().unwrap();
                let list: &mut Vec<u64> = counters.entry(text("name").to_owned()).or_default();
                list.push(jobs);
            }
            other => panic!("phase {other}: {event}"),
        }
    }
    let mut tracks: Vec<&str> = names.values().map(String::as_str).collect();
    tracks.sort_unstable();
    assert_eq!(tracks, ["bus bus0", "card.0", "card.1", "cpu"]);
    for (thread, mut spans) in threads {
        assert!(names.contains_key(&thread));
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A picosecond is what six decimals of a microsecond show; sums of two are off by less.
        let overlap = spans.windows(2).find(|two| two[1].0 < two[0].1 - 1e-6);
        assert_eq!(overlap, None, "on {}", names[&thread]);
    }
    assert_eq!(counters.len(), 3, "{:?}", counters.keys());
    assert!(counters.values().all(|list| list.last() == Some(&0)), "queues end empty");
}

#[test]
fn packets_add_up_to_the_figures() {
    let dir = tempfile::tempdir().unwrap();
    forebay(dir.path(), &["simulate", "host.toml", "--out", "run", "--columns=csv"]);
    let figures = json(&dir.path().join("run/figures.json"));
    let csv = std::fs::read_to_string(dir.path().join("run/packets.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("packet,bytes,sa,arrived_ps,chosen_ps,completed_ps,processor"));
    let (mut lost, mut last) = (0, 0u64);
    let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
    let (mut processing, mut total) = (0.0, 0.0);
    for (number, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!((fields.len(), fields[0]), (7, number.to_string().as_str()));
        if fields[6].is_empty() {
            lost += 1;
            continue;
        }
        let [bytes, arrived, chosen, completed] =
            [1, 3, 4, 5].map(|at: usize| fields[at].parse::<u64>().unwrap());
        assert!(arrived <= chosen && chosen < completed);
        last = last.max(completed);
        processing += (completed - chosen) as f64 * 1e-12;
        total += (completed - arrived) as f64 * 1e-12;
        let sum = sums.entry(fields[6]).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    }
    assert!(lost > 0 && figures["lost"] == lost);
    let packets = figures["packets"].as_u64().unwrap();
    assert_eq!(packets + lost, 3_000);
    for one in figures["processors"].as_array().unwrap() {
        let sum = sums[one["name"].as_str().unwrap()];
        assert_eq!((one["packets"].as_u64(), one["bytes"].as_u64()), (Some(sum.0), Some(sum.1)));
    }
    let near = |path: &str, value: f64| {
        let figure = figures.pointer(path).unwrap().as_f64().unwrap();
        assert!((figure - value).abs() <= 1e-9 * value, "{path}: {figure} {value}");
    };
    near("/elapsed_s", last as f64 * 1e-12);
    near("/processing_latency/mean_s", processing / packets as f64);
    near("/total_latency/mean_s", total / packets as f64);
}

#[test]
fn a_folder_holds_what_a_run_was_and_came_to() {
    let dir = tempfile::tempdir().unwrap();
    forebay(
        dir.path(),
        &["simulate", "host.toml", "--out", "run", "--columns", "--set", "traffic.packets=500"],
    );
    let run = dir.path().join("run");
    let mut files: Vec<String> =
        std::fs::read_dir(&run).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let expected = [
        "figures.json",
        "figures.parquet",
        "manifest.json",
        "packets.parquet",
        "report.html",
        "scenario.toml",
        "timeline.json",
    ];
    assert_eq!(files, expected);
    let manifest = json(&run.join("manifest.json"));
    for key in ["version", "host", "at", "seed", "scenario"] {
        assert!(!manifest[key].is_null(), "{key}");
    }
    assert_eq!(manifest["complete"], true);
    // The scenario as it was filled in runs to the same figures.
    let again = forebay(dir.path(), &["simulate", "run/scenario.toml", "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, json(&run.join("figures.json")));
}
