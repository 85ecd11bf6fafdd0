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
    let lines = r#"{"title": "a<b", "x": "rate (Mbit/s)", "y": "us", "log_x": true, "log_y": false,
        "series": [{"name": "A", "xs": [1, 10], "ys": [2, null]}, {"name": "B", "xs": [1, 10], "ys": [3, 4]}]}"#;
    let html = plot_json(lines).unwrap();
    assert!(
        html.starts_with("<figure class=\"plot\"")
            && html.contains("a&lt;b")
            && html.contains("class=\"legend\""),
        "{html}"
    );
    assert!(plot_json("{}").unwrap_err().contains("title"));
}
