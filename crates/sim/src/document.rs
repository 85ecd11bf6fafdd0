//! The JSON document of a run (`spec/surfaces.md`, "Simulation").

use serde::Serialize;
use serde_json::Value;

use crate::figures::Figures;
use crate::run::Outcome;
use crate::scenario::Scenario;

/// A run's figures with all that they depend on.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: u32,
    model: &'static str,
    seed: u64,
    #[serde(flatten)]
    figures: &'a Figures,
    notes: &'a [String],
    resolved: &'a Value,
}

impl<'a> Document<'a> {
    /// The document of an outcome of `scenario`.
    pub fn new(scenario: &'a Scenario, outcome: &'a Outcome) -> Document<'a> {
        Document {
            schema: 1,
            model: "host",
            seed: outcome.seed,
            figures: &outcome.figures,
            notes: &outcome.notes,
            resolved: &scenario.resolved,
        }
    }
}
