//! The JSON document of a run (docs/simulation.md, docs/models.md).

use serde::Serialize;
use serde_json::Value;

use crate::figures::Figures;
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// A run's figures with all that they depend on.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: u32,
    model: &'static str,
    seed: u64,
    #[serde(flatten)]
    figures: &'a Figures,
    /// Packets of a run that was broken off; the resolved scenario has as many.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted_after: Option<u64>,
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
            interrupted_after: outcome.cut,
            notes: &outcome.notes,
            resolved: &scenario.resolved,
        }
    }
}
