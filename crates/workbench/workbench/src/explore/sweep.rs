//! Many configurations of an embedded core.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use forebay_embedded::Setup;
use forebay_embedded::report::Point;
use serde_json::{Map, Value, json};

use super::points::Points;
use super::run::run_all;
use crate::Error;
use crate::sweep::{ONE_KEY, effective};

/// The configurations of a sweep, read and checked, before any of them runs.
#[derive(Debug)]
pub struct Sweep {
    /// Keys and what is set at each point.
    pub points: Points,
    setups: Vec<Setup>,
    config: PathBuf,
}

impl Sweep {
    /// Reads the configuration at `config` with `sets` (`key=value`) at each point.
    ///
    /// # Errors
    /// What is wrong with the configuration at the first point where it is wrong.
    pub fn load(config: &Path, sets: &[String], points: Points) -> Result<Sweep, Error> {
        let text = forebay_scenario::load(config)?;
        let setup = |values: &Vec<Option<String>>| {
            let pairs = points.keys.iter().zip(values);
            let given: Vec<(&str, &str)> =
                pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?))).collect();
            effective(&text, sets, &given).map_err(|what| Error::of_file(config, what, ONE_KEY))?;
            let mut sets = sets.to_vec();
            sets.extend(given.iter().map(|(key, value)| format!("{key}={value}")));
            Ok(Setup::load(config, &sets)?)
        };
        let setups = points.values.iter().map(setup).collect::<Result<Vec<_>, Error>>()?;
        Ok(Sweep { setups, points, config: config.to_owned() })
    }

    /// The number of configurations.
    pub fn count(&self) -> usize {
        self.setups.len()
    }

    /// Runs all on up to `threads` threads, whose number affects only the time taken, and passes each point to `each` in
    /// their order. `look` is called with the number done, and returns whether to go on. Returns how many were passed:
    /// fewer than all if the sweep was stopped.
    ///
    /// # Errors
    /// The first that a run or `each` has; that a firmware has ended with a code other than 0.
    pub fn run(
        &self,
        threads: usize,
        look: impl FnMut(usize) -> ControlFlow<()>,
        mut each: impl FnMut(Point) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        run_all(&self.setups, threads, look, |number, figures, run| {
            if figures.code != 0 {
                let found = format!("the firmware exited with code {}", run.code);
                return Err(Error::of_file(&self.config, found, ""));
            }
            let (keys, set) = (&self.points.keys, &self.points.values[number]);
            let value = |(key, value): (&String, &Option<String>)| match value {
                Some(value) => value.clone(),
                None => resolved(&self.setups[number].resolved, key),
            };
            let values = keys.iter().zip(set).map(|pair| (pair.0.clone(), value(pair))).collect();
            let given = set.iter().zip(keys).filter_map(|(value, key)| Some((key, value.as_ref()?)));
            let name: Vec<String> = given.map(|(key, value)| format!("{key}={value}")).collect();
            let name = if name.is_empty() { "as configured".to_owned() } else { name.join(" ") };
            each(Point { name, values, figures })
        })
    }
}

/// A point as JSON: the line of `points.jsonl`, and what `forebay explore sweep --json` prints.
pub fn document(point: &Point) -> Value {
    let values = point.values.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    let swept: Map<String, Value> = values.collect();
    json!({ "schema": 1, "model": "embedded", "sweep": swept, "figures": point.figures })
}

/// What a key is where a point does not set it.
fn resolved(resolved: &Value, key: &str) -> String {
    let found = key.split('.').try_fold(resolved, |at, step| at.get(step));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}
