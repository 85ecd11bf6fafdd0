//! Runs of embedded cores side by side.

use forebay_embedded::report::Point;
use serde_json::{Value, json};

/// Every figure that any of the runs has, and its values in the order of the runs; zero where a run lacks it.
pub fn rows(points: &[Point]) -> Vec<(String, Vec<f64>)> {
    let all: Vec<Vec<(String, f64)>> = points.iter().map(|one| one.figures.row()).collect();
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for (at, row) in all.iter().enumerate() {
        for (name, value) in row {
            let known = rows.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                rows.push((name.clone(), vec![0.0; all.len()]));
                rows.len() - 1
            });
            rows[known].1[at] = *value;
        }
    }
    rows
}

/// The comparison as JSON: what `forebay explore compare --json` prints.
pub fn comparison(points: &[Point]) -> Value {
    let figures: Vec<Value> =
        rows(points).iter().map(|(name, values)| json!({ "figure": name, "values": values })).collect();
    let runs: Vec<&str> = points.iter().map(|one| one.name.as_str()).collect();
    json!({ "schema": 1, "runs": runs, "figures": figures })
}
