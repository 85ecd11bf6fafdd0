//! Sweeps, searches and sizes of buffers from plain settings, as a program asks for them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use forebay_sim::{Bound, Scenario};
use forebay_time::Duration;
use forebay_workbench::search::highest_rate;
use forebay_workbench::size_buffers::{Design, Method, Settings};
use forebay_workbench::sweep::{Event, Sweep, estimates};
use forebay_workbench::{Axis, Error, Grid};

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
service = "exponential"
overflow = "block"
arrivals = { mean = "70 us", distribution = "exponential" }
[[stage]]
name = "only"
time = "35 us"
buffer = 2
"#;

fn file(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn grid(texts: &[&str]) -> Grid {
    Grid { axes: texts.iter().map(|text| Axis::parse(text).unwrap()).collect() }
}

fn go_on(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_sweep_passes_the_runs_of_each_point_and_then_the_point() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), HOST);
    let sweep = Sweep::load(&path, &[], &grid(&["traffic.packets=100,200"]), Some(2)).unwrap();
    assert_eq!((sweep.points.len(), sweep.runs()), (2, 4));
    for threads in [1, 3] {
        let mut came = Vec::new();
        let done = sweep.run(threads, go_on, |event| {
            came.push(match event {
                Event::Run(point, outcome) => format!("{} {}", point.values[0], outcome.seed),
                Event::Point(point, outcomes) => {
                    let throughput =
                        estimates(outcomes).into_iter().any(|(name, _)| name == "throughput_bps");
                    assert!(throughput && sweep.document(point, outcomes)["replications"] == 2);
                    format!("{} of {}", point.values[0], outcomes.len())
                }
            });
            Ok(())
        });
        assert_eq!(done.unwrap(), 4);
        assert_eq!(came, ["100 7", "100 8", "100 of 2", "200 7", "200 8", "200 of 2"]);
    }
}

#[test]
fn a_swept_key_that_another_one_replaces_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), HOST);
    let load = |texts: &[&str], sets: &[String]| Sweep::load(&path, sets, &grid(texts), None).map(|_| ());
    let init = ["processor.cpu.init=\"1 us\""].map(str::to_owned);
    for twice in [
        ["traffic.packets=100,200", "traffic.packets=300"],
        ["processor.cpu.init=1e-6,2e-6", "processor.0.init=3e-6"],
        ["traffic.packets=100,200", "traffic={source=\"fixed\",value=500,packets=3,rate=1e6}"],
    ] {
        let error = load(&twice, &init).unwrap_err().to_string();
        assert!(error.contains("set by another one too"), "{error}");
    }
    // What is set for all points may be what is swept, and a key inside what another one sets is in effect.
    load(&["processor.0.init=1e-6,2e-6"], &init).unwrap();
    load(&["traffic={source=\"fixed\",value=500,packets=3,rate=1e6}", "traffic.packets=100,200"], &init)
        .unwrap();
}

#[test]
fn a_sweep_reports_a_wrong_value_with_file_and_hint_before_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), HOST);
    let error = Sweep::load(&path, &[], &grid(&["traffic.packet=1,2"]), None).unwrap_err();
    let Error::Input(errors) = error else { panic!("{error}") };
    let plain = errors.findings()[0].plain();
    assert_eq!((plain.found.as_deref(), plain.expected.as_deref()), (Some("packet"), Some("packets")));
    let many = Sweep::load(&path, &[], &grid(&["traffic.packets=1,2"]), Some(usize::MAX)).unwrap_err();
    assert!(matches!(many, Error::TooMany { .. }), "{many}");
}

#[test]
fn a_search_needs_a_bound_and_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), HOST);
    let scenario = Scenario::load(&path, &[]).unwrap();
    let unbounded = Bound { loss: 0.0, latency: None };
    let mut watch = |_: f64| ControlFlow::Continue(());
    let error = highest_rate(&path, &scenario, unbounded, &mut watch).unwrap_err();
    assert!(matches!(error, Error::Unbounded), "{error}");
    // Where nothing is lost, a bound on the loss has no effect.
    let bound = Bound { loss: 0.1, latency: Some(Duration::from_micros(100)) };
    let error = highest_rate(&path, &scenario, bound, &mut watch).unwrap_err();
    assert!(matches!(error, Error::Unbounded), "{error}");
    let bound = Bound { loss: 0.0, ..bound };
    let found = highest_rate(&path, &scenario, bound, &mut watch).unwrap().unwrap();
    assert!(found.complete && found.rate > 50_000_000, "{}", found.rate);
}

#[test]
fn buffers_are_sized_by_the_chain_of_a_solvable_pipeline() {
    let dir = tempfile::tempdir().unwrap();
    let design = Design::load(&file(dir.path(), PIPELINE), &[]).unwrap();
    let settings = Settings { loss: 0.01, buffer_max: 64, by: None, runs: 2, threads: 1 };
    let sizes = design.size_buffers(&settings, &go_on).unwrap();
    let smallest = sizes.smallest.as_ref().unwrap();
    // M/M/1/K at half load: 2^-K / (2 - 2^-K) is 1.6 % for K = 5 and 0.8 % for K = 6.
    assert_eq!((sizes.by, smallest.stages[0].buffer), ("chain", 6));
    let stop = |_: usize| ControlFlow::Break(());
    let error = design.size_buffers(&settings, &stop).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    let simulated = Settings { by: Some(Method::Simulation), ..settings };
    assert_eq!(design.size_buffers(&simulated, &go_on).unwrap().by, "simulation");
}
