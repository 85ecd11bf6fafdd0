//! The directory of a study's run: with it, and the version it names, every run can be had again.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::findings::{Findings, Made};
use crate::report::render;
use crate::study::Study;

/// What a directory was made by.
#[derive(Debug, Serialize)]
pub struct Manifest<'a> {
    schema: u32,
    study: &'a str,
    version: &'a str,
    host: &'a str,
    at: &'a str,
    quick: bool,
    complete: bool,
    seeds: Vec<u64>,
    runs: usize,
    claims_held: usize,
    claims: usize,
}

impl<'a> Manifest<'a> {
    /// The manifest of findings.
    pub fn new(findings: &'a Findings, made: &'a Made) -> Manifest<'a> {
        let mut seeds: Vec<u64> = findings.runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Manifest {
            schema: 1,
            study: &findings.name,
            version: &made.version,
            host: &made.host,
            at: &made.at,
            quick: findings.quick,
            complete: findings.complete,
            seeds,
            runs: findings.runs.len(),
            claims_held: findings.claims.iter().filter(|claim| claim.holds).count(),
            claims: findings.claims.len(),
        }
    }
}

/// Findings as one document: claims, and every run with its parameters.
pub fn document(findings: &Findings, made: &Made) -> serde_json::Value {
    json!({ "manifest": Manifest::new(findings, made), "claims": findings.claims, "runs": findings.runs })
}

/// Writes report.html, results.json, claims.json, manifest.json, the study itself in `study/` and the
/// resolved scenario of every run in `scenarios/`.
pub fn keep(directory: &Path, study: &Study, findings: &Findings, made: &Made) -> io::Result<()> {
    let (own, scenarios) = (directory.join("study"), directory.join("scenarios"));
    fs::create_dir_all(&own)?;
    fs::create_dir_all(&scenarios)?;
    // Those of an earlier, longer run would be taken for this one's.
    for number in findings.runs.len() + 1.. {
        if fs::remove_file(scenarios.join(format!("{number:04}.toml"))).is_err() {
            break;
        }
    }
    for (name, text) in &study.files {
        fs::write(own.join(name), text)?;
    }
    for run in &findings.runs {
        fs::write(scenarios.join(format!("{:04}.toml", run.run)), &run.resolved)?;
    }
    write(directory, "results.json", &findings.runs)?;
    write(directory, "claims.json", &findings.claims)?;
    write(directory, "manifest.json", &Manifest::new(findings, made))?;
    fs::write(directory.join("report.html"), render(findings, made))
}

fn write(directory: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    fs::write(directory.join(name), serde_json::to_string_pretty(value)? + "\n")
}
