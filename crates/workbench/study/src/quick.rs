//! Scenarios cut down, to see that a study works and not what it finds.

use forebay_time::Duration;
use forebay_workbench::{Model, Way};

/// One packet in so many is run, but [`LEAST`] at least.
const SHARE: u64 = 50;
const LEAST: u64 = 1_000;
/// Pipelines are run for such a part of their time, so often.
const TIME: f64 = 0.1;
const RUNS: usize = 2;

/// What to set in a scenario for a quick run, as `key=value`; nothing if it is quick as it is.
pub fn shorter(model: &Model, way: Way) -> Vec<String> {
    match (model, way) {
        (Model::Host(scenario), _) => {
            let Some(packets) = scenario.traffic.packets.filter(|packets| *packets > LEAST) else {
                return Vec::new();
            };
            let short = (packets / SHARE).max(LEAST);
            let mut sets = vec![format!("traffic.packets={short}")];
            if scenario.traffic.warm_up >= short {
                sets.push(format!("traffic.warm_up={}", short / 2));
            }
            sets
        }
        (Model::Embedded(_), _) => vec!["input.packets=20".to_owned()],
        (Model::Pipeline(one), Way::Simulation) => {
            timed(one.pipeline.duration, one.pipeline.warm_up, one.runs)
        }
        (Model::Card(one), Way::Simulation) => timed(one.pipeline.duration, one.pipeline.warm_up, one.runs),
        (Model::Pipeline(_) | Model::Card(_), Way::Solution | Way::ClosedForm) => Vec::new(),
    }
}

fn timed(duration: Option<Duration>, warm_up: Duration, runs: usize) -> Vec<String> {
    let Some(duration) = duration else { return Vec::new() };
    let short = (duration.as_secs() * TIME).max(2.0 * warm_up.as_secs());
    vec![format!("duration={short}"), format!("runs={}", runs.min(RUNS))]
}
