//! What the page gets: the command's document, the report's plots, and findings with their places.

use std::path::Path;
use std::sync::Mutex;

use forebay_playground::{Answer, Fault, Request, Results, plot_json, run, run_json};
use forebay_workbench::{Model, Options, Way};
use serde_json::Value;
use std::ops::ControlFlow;

const HOST: &str = r#"model = "host"
seed = 1
[traffic]
source = "exponential"
mean = 400
min = 20
max = 1500
packets = 3000
rate = "400 Mbit/s"
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "<b>card"
kind = "accelerator"
init = "1 us"
block = "440 ns"
"#;

const PIPELINE: &str = r#"model = "pipeline"
duration = "20 ms"
[arrivals]
mean = "70 us"
distribution = "exponential"
[[stage]]
name = "receive"
time = "27.3 us"
buffer = 4
"#;

fn request() -> Request {
    Request { name: "s.toml".to_owned(), ..Request::default() }
}

fn results(text: &str, request: &Request) -> Results {
    match run(text, request, &|_| {}) {
        Answer::Results(results) => *results,
        other => panic!("{other:?}"),
    }
}

fn fault(text: &str) -> Fault {
    match run(text, &request(), &|_| {}) {
        Answer::Fault(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// The document as the command makes it.
fn document(text: &str, sets: &[String]) -> String {
    let model = Model::parse(text, "s.toml", sets, Path::new(".")).unwrap();
    let ran = model.run(Way::Simulation, &Options::default(), &|_| ControlFlow::Continue(())).unwrap();
    serde_json::to_string_pretty(&model.written(&ran.outcome)).unwrap()
}

#[test]
fn documents_are_the_commands_with_and_without_plots() {
    for text in [HOST, PIPELINE] {
        let plain = results(text, &request());
        assert_eq!(plain.document, document(text, &[]));
        assert!(plain.shown.is_none() && plain.spans.is_empty() && plain.beginning.is_empty());
        let all = results(text, &Request { plots: true, beginning: 100, ..request() });
        assert_eq!(all.document, plain.document);
        let (spans, packets) = (all.spans.len(), all.beginning.len());
        assert_eq!((spans > 0, packets), if text == HOST { (true, 100) } else { (false, 0) });
    }
    let sets = vec!["traffic.packets=200".to_owned()];
    let fewer = results(HOST, &Request { sets: sets.clone(), ..request() });
    assert_eq!((fewer.packets, fewer.document), (200, document(HOST, &sets)));
}

#[test]
fn plots_are_the_reports_and_names_are_escaped() {
    let shown = results(HOST, &Request { plots: true, beginning: 100, ..request() }).shown.unwrap();
    for words in ["figure class=\"plot\"", "Where packets of a size go", "class=\"lanes\"", "&lt;b&gt;card"] {
        assert!(shown.html.contains(words), "{words} is not in {}", shown.html);
    }
    assert!(!shown.html.contains("<b>card"));
    let shown = results(PIPELINE, &Request { plots: true, ..request() }).shown.unwrap();
    assert!(shown.html.contains("Utilisation") && shown.verdict.contains("packets/s"), "{}", shown.verdict);
}

/// The packets of the beginning as the page gets them.
fn beginning(text: &str) -> Vec<Value> {
    let found = results(text, &Request { beginning: 500, ..request() });
    serde_json::to_value(&found.beginning).unwrap().as_array().unwrap().clone()
}

#[test]
fn a_packet_knows_the_candidates_of_its_choice() {
    let packets = beginning(HOST);
    assert_eq!(packets.len(), 500);
    let mut on = [0; 2];
    for packet in &packets {
        let finish: Vec<f64> =
            packet["finish_s"].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect();
        let processor = packet["processor"].as_u64().unwrap() as usize;
        assert!(finish[processor] <= finish[1 - processor], "{packet}");
        on[processor] += 1;
        // What crosses the bus waits for it besides; nothing else is in the way.
        let took = packet["completed_s"].as_f64().unwrap() - packet["chosen_s"].as_f64().unwrap();
        if processor == 0 {
            assert!((took - finish[0]).abs() < 1e-11, "{packet}");
        }
    }
    assert!(on.iter().all(|&packets| packets > 20), "{on:?}");
    // Bursts of jobs, and queues that are full: who was held up knows what was compared then.
    let full = HOST.replace("block = \"920 ns\"\n", "block = \"920 ns\"\nqueue = 2\n");
    let known = |text: &str| beginning(text).iter().filter(|one| !one["finish_s"].is_null()).count();
    assert_eq!(known(&full), 500);
    assert!(known(&format!("{HOST}[scheduler]\nburst = 8\n")) > 50);
}

#[test]
fn a_packet_that_waited_for_an_earlier_one_knows_its_ticket() {
    let order = format!("{HOST}[scheduler]\npolicy = \"round-robin\"\nkeep_order = true\n");
    let order = order.replace("packets = 3000", "packets = 3000\nsas = 3");
    let (mut last, mut waited) = ([0.0f64; 3], 0);
    let mut completed = std::collections::HashMap::new();
    for packet in beginning(&order) {
        let of = |name: &str| packet[name].as_f64().unwrap();
        let sa = packet["sa"].as_u64().unwrap();
        completed.insert((sa, packet["ticket"].as_u64().unwrap()), of("completed_s"));
        assert!(of("left_s") >= last[sa as usize] && of("left_s") >= of("completed_s"), "{packet}");
        last[sa as usize] = of("left_s");
        if let Some(behind) = packet["behind"].as_u64() {
            assert_eq!(completed[&(sa, behind)], of("left_s"), "{packet}");
            waited += 1;
        } else {
            assert_eq!(of("left_s"), of("completed_s"));
        }
    }
    assert!(waited > 50, "{waited}");
    let free = beginning(&order.replace("keep_order = true", "keep_order = false"));
    assert!(free.iter().all(|one| one["behind"].is_null() && one["left_s"] == one["completed_s"]));
}

#[test]
fn cores_take_compute_and_complete_one_after_the_other() {
    let cores = "model = \"host\"\n[traffic]\nsource = \"imix\"\npackets = 500\nrate = \"4 Gbit/s\"\n[cores]\nburst = 8\ntake = \"300 ns\"\n\
        complete = \"200 ns\"\n[[processor]]\nname = \"core\"\nkind = \"cpu\"\ncount = 3\ninit = \"200 ns\"\nblock = \"5 ns\"\n";
    let found = results(cores, &Request { beginning: 500, ..request() });
    let spans = serde_json::to_value(&found.spans).unwrap();
    let mut held: std::collections::HashMap<&str, Vec<(f64, f64)>> = std::collections::HashMap::new();
    for span in spans.as_array().unwrap() {
        let of = |name: &str| span[name].as_f64().unwrap();
        held.entry(span["what"].as_str().unwrap()).or_default().push((of("from_s"), of("until_s")));
    }
    assert!(held["take"].len() > 60 && held["take"].len() == held["complete"].len(), "{held:?}");
    for what in ["take", "complete"] {
        let list = held.get_mut(what).unwrap();
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(
            list.windows(2).all(|two| two[0].1 <= two[1].0 + 1e-12),
            "two cores are in the turnstile: {what}"
        );
    }
}

#[test]
fn figures_are_read_with_units() {
    let figures = results(HOST, &request()).figures;
    let text = |name: &str| figures.iter().find(|one| one.name == name).unwrap().text.as_str();
    assert!(text("throughput_bps").ends_with("Mbit/s"), "{}", text("throughput_bps"));
    assert!(text("total_latency.p99_s").ends_with("s"));
    assert!(text("processor.cpu.load").ends_with('%'));
}

#[test]
fn findings_have_their_places_and_hints() {
    let fault = fault(&HOST.replace("seed", "sed").replace("400 Mbit/s", "400 Mbyte"));
    let told: Vec<_> = fault
        .findings
        .iter()
        .map(|one| (one.line, one.column, one.message.as_str(), one.help.is_empty()))
        .collect();
    assert_eq!(
        told,
        [(Some(2), Some(1), "unknown key `sed`", false), (Some(9), Some(8), "`rate` is `400 Mbyte`", false)]
    );
    assert_eq!(fault.message, "s.toml has 2 errors");
}

#[test]
fn a_text_that_is_only_checked_is_not_run() {
    let check = Request { check: true, ..request() };
    assert!(matches!(run(HOST, &check, &|_| {}), Answer::Right));
    assert!(matches!(run("model = 3", &check, &|_| {}), Answer::Fault(_)));
}

#[test]
fn firmware_and_runs_without_figures_are_refused_in_the_commands_words() {
    let firmware = fault("model = \"embedded\"\n");
    assert!(firmware.message.contains("`simulate` does not run firmware"), "{}", firmware.message);
    assert_eq!(firmware.help, "run `forebay explore run s.toml`");
    let none =
        fault(&HOST.replace("packets = 3000", "packets = 10\nwarm_up = 9\n[scheduler]\ninput = 1\n[x]"));
    assert!(!none.message.is_empty());
}

#[test]
fn progress_rises_to_the_end() {
    let seen = Mutex::new(Vec::new());
    let many = Request { sets: vec!["traffic.packets=300000".to_owned()], ..request() };
    run(HOST, &many, &|share| seen.lock().unwrap().push(share));
    let seen = seen.into_inner().unwrap();
    assert!(
        seen.len() > 2 && seen.is_sorted() && seen.iter().all(|share| (0.0..=1.0).contains(share)),
        "{seen:?}"
    );
}

#[test]
fn a_request_that_is_none_is_said() {
    let answer: Value = serde_json::from_str(&run_json(HOST, "{\"plot\": true}", &|_| {})).unwrap();
    assert!(answer["fault"]["message"].as_str().unwrap().contains("plot"), "{answer}");
}

#[test]
fn lines_become_a_figure_of_the_reports() {
    let lines = r#"{"plot": {"title": "a<b", "x": "rate (Mbit/s)", "y": "us", "log_x": true,
        "series": [{"name": "A", "xs": [1, 10], "ys": [2, null]}, {"name": "B", "xs": [1, 10], "ys": [3, 4]}],
        "paper": [{"name": "A", "xs": [1], "ys": [2.5], "where": "figure 3"}]}}"#;
    let html = plot_json(lines).unwrap();
    assert!(
        html.starts_with("<figure class=\"plot\"")
            && html.contains("a&lt;b")
            && html.contains("class=\"legend\"")
            && html.contains("A, figure 3")
            && html.contains("\"printed\":true,\"of\":[0]"),
        "{html}"
    );
    assert!(plot_json(r#"{"plot": {}}"#).unwrap_err().contains("title"));
}

#[test]
fn a_sweep_of_two_keys_is_a_map_whose_greatest_value_is_the_strongest() {
    let map = r#"{"heat": {"title": "Throughput", "x": "window", "y": "rate (Mbit/s)", "columns": ["1", "2"],
        "rows": ["100", "200"], "values": [[100, 50], [75, null]], "unit": "Mbit/s"}}"#;
    let html = plot_json(map).unwrap();
    let cells: Vec<&str> =
        html.split("fill-opacity=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(cells, ["0.55", "0.05", "0.3", "0.05"], "{html}");
    assert!(html.contains("rate (Mbit/s) 100, window 1: 100 Mbit/s"), "{html}");
    assert!(!html.contains("\u{d7}") && !html.contains("crossing"), "{html}");
}
