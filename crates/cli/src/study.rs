//! `forebay study`: a directory of scenarios and comparisons into figures, claims and a page.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use clap::{Args, Subcommand};
use forebay_study::{Findings, Options, Study, document, keep, run as run_study};
use miette::{Context, IntoDiagnostic};

use crate::request::{made, threads};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};

/// Studies.
#[derive(Subcommand)]
pub enum StudyCommand {
    /// List the shipped studies.
    List,
    /// Run a shipped study by name, or a directory with a study.rhai.
    #[command(after_help = "Example: forebay study run multi-accelerator --out multi-accelerator")]
    Run(RunArgs),
    /// Copy a shipped study to a directory, to change it.
    Copy {
        /// Name of the study.
        name: String,
        /// The new directory.
        directory: PathBuf,
    },
}

/// Arguments of `forebay study run`.
#[derive(Args)]
pub struct RunArgs {
    /// A shipped study (`forebay study list`), or a directory.
    study: String,
    /// Output directory for report.html, results.json, claims.json, manifest.json and every resolved scenario.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the claims and the figures of every run as JSON.
    #[arg(long)]
    json: bool,
    /// Run a fiftieth of the packets, to test the study; its figures are not meaningful.
    #[arg(long)]
    quick: bool,
    /// Exit with code 1 if a claim does not hold.
    #[arg(long)]
    strict: bool,
}

impl StudyCommand {
    /// Runs the command.
    pub fn run(&self) -> miette::Result<Answer> {
        match self {
            StudyCommand::List => {
                for study in Study::shipped() {
                    println!("{:20} {}", study.name, study.title());
                }
                Ok(Answer::Yes)
            }
            StudyCommand::Run(args) => run(args),
            StudyCommand::Copy { name, directory } => {
                let study = Study::find(name)?;
                study.copy_to(directory).into_diagnostic().wrap_err_with(|| {
                    format!("cannot write {}; it must not exist yet", directory.display())
                })?;
                println!("forebay study run {}", directory.display());
                Ok(Answer::Yes)
            }
        }
    }
}

fn run(args: &RunArgs) -> miette::Result<Answer> {
    let study = Study::find(&args.study)?;
    let bar: Rc<RefCell<Option<Progress>>> = Rc::default();
    let shown = bar.clone();
    let watch = move |done: usize, all: usize| {
        let mut bar = shown.borrow_mut();
        let bar = bar.get_or_insert_with(|| Progress::runs("running"));
        bar.of(all as u64);
        bar.at(done as u64);
        progress::go_on()
    };
    let findings =
        run_study(&study, Options { quick: args.quick, threads: threads(None), watch: Box::new(watch) })?;
    if let Some(bar) = bar.take() {
        bar.finish();
    }
    let made = made()?;
    if let Some(dir) = &args.out {
        keep(dir, &study, &findings, &made)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", dir.display()))?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document(&findings, &made)).into_diagnostic()?);
    } else {
        print(&findings);
        if let Some(dir) = &args.out {
            println!("{}", dir.join("report.html").display());
        }
    }
    if !findings.complete {
        return Ok(Answer::Interrupted);
    }
    let fails = args.strict && !findings.all_hold();
    Ok(if fails { Answer::No } else { Answer::Yes })
}

fn print(findings: &Findings) {
    for claim in &findings.claims {
        let verdict = if claim.holds { "holds" } else { "does not hold" };
        println!("{}: {verdict}\n  {}\n  {}", claim.id, claim.claim, claim.figure);
        if !claim.holds {
            println!("  {}", claim.why);
        }
    }
    let held = findings.claims.iter().filter(|claim| claim.holds).count();
    println!("{held} of {} claims hold; {} runs", findings.claims.len(), findings.runs.len());
    if findings.quick {
        println!("This was a quick run: its figures are those of queues that are still filling.");
    }
    if !findings.complete {
        println!("Interrupted: the results are incomplete.");
    }
}
