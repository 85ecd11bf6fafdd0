//! What a folder says of how it was made.

use std::io;
use std::path::Path;

use forebay_links::output;
use forebay_page::Made;
use serde::Serialize;
use serde_json::{Value, json};

/// How many of the requested runs a folder has.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Runs that it has.
    pub runs: usize,
    /// Runs that were requested.
    pub of: usize,
    /// Whether all of these runs are complete.
    pub complete: bool,
}

/// What was requested of the host model, as its manifest says it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The scenario's file.
    pub scenario: &'a Path,
    /// What was set in it, `key=value`.
    pub sets: &'a [String],
    /// Swept keys with their values, `key=v1,v2,...`.
    pub sweeps: &'a [String],
    /// Runs of each point.
    pub replications: usize,
}

impl Request<'_> {
    /// The name of the scenario's file.
    pub(super) fn name(&self) -> String {
        self.scenario.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn write_manifest(
        &self,
        dir: &Path,
        seed: Option<u64>,
        made: &Made,
        done: Done,
    ) -> io::Result<()> {
        let manifest = json!({
            "schema": 1,
            "version": made.version,
            "scenario": self.scenario.display().to_string(),
            "set": self.sets,
            "sweep": self.sweeps,
            "replications": self.replications,
            "seed": seed,
            "host": made.host,
            "at": made.at,
            "runs": done.runs,
            "runs_wanted": done.of,
            "complete": done.complete,
        });
        write_json(&dir.join("manifest.json"), &manifest)
    }
}

pub(super) fn write_json(path: &Path, document: &impl Serialize) -> io::Result<()> {
    output::write(path, serde_json::to_string_pretty(document)? + "\n")
}

/// What scenario and settings a folder was made of, for the models that are not the host model.
pub(super) fn manifest(kind: &str, path: &Path, sets: &[String], made: &Made) -> Value {
    json!({
        "schema": 1,
        "version": made.version,
        kind: path.display().to_string(),
        "set": sets,
        "host": made.host,
    })
}

/// A field of a CSV file (RFC 4180 2).
pub(super) fn field(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!([field("1 Gbit/s"), field("a,\"b\"")], ["1 Gbit/s", "\"a,\"\"b\"\"\""]);
    }
}
