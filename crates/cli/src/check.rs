//! `forebay check`: what is wrong with a gateway's file.

use std::path::PathBuf;

use clap::Args;
use forebay_gateway::config::{self, Config};
use forebay_gateway::sas::Finding;
use miette::{Diagnostic, IntoDiagnostic};
use serde::Serialize;

use crate::Answer;

/// Arguments of `forebay check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The gateway's file (TOML).
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    file: String,
    ok: bool,
    errors: Vec<Entry>,
    /// Errors beyond those that are named.
    left_out: usize,
    warnings: Vec<Entry>,
    /// Every setting but SAs and policies, with its default where the file has none; empty with errors.
    settings: Vec<Value>,
}

/// One thing that was found.
#[derive(Serialize)]
struct Entry {
    file: String,
    line: Option<usize>,
    message: String,
    help: String,
}

#[derive(Serialize)]
struct Value {
    section: String,
    key: &'static str,
    /// As TOML.
    value: String,
}

impl Entry {
    fn new(finding: &Finding) -> Entry {
        let problem = finding.problem();
        Entry {
            file: finding.file().to_owned(),
            line: finding.line(),
            message: problem.to_string(),
            help: problem.help().into_owned(),
        }
    }

    fn all(findings: &[Finding]) -> Vec<Entry> {
        findings.iter().map(Entry::new).collect()
    }
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> miette::Result<Answer> {
    let file = args.config.display().to_string();
    match config::load(&args.config) {
        Ok(config) => {
            if args.json {
                print(&Document {
                    schema: 1,
                    file,
                    ok: true,
                    errors: vec![],
                    left_out: 0,
                    warnings: Entry::all(&config.warnings),
                    settings: settings(&config),
                })?;
                return Ok(Answer::Yes);
            }
            println!("{file}: {}", summary(&config));
            config.warnings.into_iter().for_each(show);
            Ok(Answer::Yes)
        }
        Err(mut errors) => {
            if args.json {
                print(&Document {
                    schema: 1,
                    file,
                    ok: false,
                    errors: Entry::all(errors.findings()),
                    left_out: errors.left_out(),
                    warnings: Entry::all(errors.warnings()),
                    settings: vec![],
                })?;
                return Ok(Answer::Broken);
            }
            errors.take_warnings().into_iter().for_each(show);
            Err(errors.into())
        }
    }
}

fn show(finding: impl Diagnostic + Send + Sync + 'static) {
    eprintln!("{:?}", miette::Report::new(finding));
}

fn settings(config: &Config) -> Vec<Value> {
    let settings = config.settings.iter().cloned();
    settings.map(|one| Value { section: one.section, key: one.key, value: one.value }).collect()
}

fn print(document: &Document) -> miette::Result<()> {
    println!("{}", serde_json::to_string_pretty(document).into_diagnostic()?);
    Ok(())
}

/// What a file is for, in one line.
fn summary(config: &Config) -> String {
    let counted = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let sas = match config.keys.source {
        config::KeySource::Xfrm(_) => "SAs from the kernel".to_owned(),
        config::KeySource::Static { .. } => {
            let policies = match config.sas.policies.len() {
                1 => "1 policy".to_owned(),
                n => format!("{n} policies"),
            };
            format!("{}, {policies}", counted(config.sas.entries.len(), "SA"))
        }
    };
    let links = counted(config.protected.len(), "link");
    let processors = counted(config.processors.len(), "processor");
    let warnings = match config.warnings.len() {
        0 => "no warnings".to_owned(),
        n => counted(n, "warning"),
    };
    format!("valid ({sas}, {links} to peers, {processors}; {warnings})")
}
