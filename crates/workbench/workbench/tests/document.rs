//! The JSON of a run has the keys that scripts rely on, for every model and way that a file can ask for.

use std::ops::ControlFlow;
use std::path::Path;

use forebay_workbench::{Model, Options, Outcome, Step, Way};
use serde_json::Value;

const HOST: &str = r#"
model = "host"
seed = 7
traffic = { source = "fixed", value = 500, packets = 300, rate = "50 Mbit/s" }
[[processor]]
name = "cpu"
kind = "cpu"
init = "1 us"
block = "900 ns"
"#;

const PIPELINE: &str = r#"
model = "pipeline"
seed = 7
duration = "20 ms"
service = "exponential"
[arrivals]
mean = "70 us"
[[stage]]
name = "receive"
time = "27.3 us"
buffer = 5
"#;

fn model(text: &str) -> Model {
    Model::parse(text, "scenario.toml", &[], Path::new(".")).expect("a scenario")
}

fn document(text: &str, way: Way) -> Value {
    let model = model(text);
    let ran = model.run(way, &Options::default(), &|_| ControlFlow::Continue(())).expect("figures");
    model.document(&ran.outcome)
}

#[test]
fn host_runs_have_their_figures_and_the_resolved_scenario() {
    let document = document(HOST, Way::Simulation);
    assert_eq!((document["schema"].as_u64(), document["seed"].as_u64()), (Some(1), Some(7)));
    assert_eq!(document["packets"], 300);
    assert_eq!(document["processors"][0]["name"], "cpu");
    assert!(document["total_latency"]["p99_s"].is_f64() && document["resolved"]["traffic"].is_object());
}

#[test]
fn pipelines_have_figures_by_simulation_by_solution_and_in_closed_form() {
    assert!(document(PIPELINE, Way::Simulation)["generated"].as_u64() > Some(0));
    assert!(document(PIPELINE, Way::Solution)["loss_probability"].is_f64());
    assert!(document(PIPELINE, Way::ClosedForm).is_object());
}

#[test]
fn the_outcome_of_another_model_has_no_document() {
    let host = model(HOST);
    let ran =
        host.run(Way::Simulation, &Options::default(), &|_| ControlFlow::Continue(())).expect("figures");
    assert!(matches!(ran.outcome, Outcome::Host(_)));
    assert_eq!(model(PIPELINE).document(&ran.outcome), Value::Null);
}

/// A run that is broken off is the run of that duration, which was not divided into batches.
#[test]
fn a_run_with_batches_that_is_broken_off_is_one_without_them() {
    let text = PIPELINE.replace("duration = \"20 ms\"", "duration = \"100 s\"\nbatches = 10");
    let model = model(&text);
    let options = Options { keep: true, ..Options::default() };
    let stop = |step| match step {
        Step::Share(share) if share > 0.0 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let ran = model.run(Way::Simulation, &options, &stop).expect("figures");
    let shorter = model.as_far_as(&ran).expect("the run was broken off");
    let again =
        shorter.run(Way::Simulation, &Options::default(), &|_| ControlFlow::Continue(())).expect("figures");
    let [first, second] = [&ran, &again].map(|one| shorter.document(&one.outcome));
    assert!(first["interrupted_after_s"].as_f64() > Some(0.0), "{first}");
    assert_eq!(first["fingerprint"], second["fingerprint"]);
    for document in [first, second] {
        assert!(document.get("batch_means").is_none() && document["resolved"].get("batches").is_none());
    }
}
