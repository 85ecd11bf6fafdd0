//! `forebay study`: a directory of scenarios and comparisons into figures, claims and a page. The package of Python runs
//! them; the files of those that are shipped are here too.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, Subcommand};
use forebay_study::Study;
use forebay_terminal::Answer;
use miette::{Context, IntoDiagnostic, miette};

/// Names the Python that runs studies.
const PYTHON: &str = "FOREBAY_PYTHON";

/// What Python runs: the package's own command, or one sentence on how it is installed. The current directory, where
/// another `forebay` may lie, is no place of modules.
const PROGRAM: &str = "\
import sys
if sys.path[:1] == ['']:
    sys.path.pop(0)
try:
    from forebay.study.command import main
except ModuleNotFoundError as error:
    if (error.name or '').split('.')[0] != 'forebay':
        raise
    sys.exit(sys.stderr.write('error: forebay study run: the package forebay of Python is not installed for '
        + sys.executable + '\\n  help: run `make wheel` in the source tree, then `pip install target/wheels/forebay-*.whl`; '
        'FOREBAY_PYTHON names another Python\\n') and 2)
sys.exit(main(sys.argv[1:]))
";

/// Studies.
#[derive(Subcommand)]
pub enum StudyCommand {
    /// List the shipped studies.
    List,
    /// Run a shipped study by name, or a directory with a study.py; requires the package forebay of Python.
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
    study: OsString,
    /// Output directory for report.html, results.json, claims.json, manifest.json and every resolved scenario.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the claims and the figures of every run as JSON.
    #[arg(long)]
    json: bool,
    /// Run a fiftieth of the packets, to test the study; its figures are not meaningful.
    #[arg(long)]
    quick: bool,
    /// Leave out the controls and the repetitions with other seeds.
    #[arg(long)]
    once: bool,
    /// Exit with code 1 if a claim or an observation does not hold.
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
            StudyCommand::Run(args) => Err(run(args)),
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

/// Becomes Python, so that signals and exit codes are its own. Returns why it cannot.
fn run(args: &RunArgs) -> miette::Report {
    let python = python();
    let error = Command::new(&python).arg("-c").arg(PROGRAM).arg("run").args(words(args)).exec();
    let name = PathBuf::from(&python).display().to_string();
    match error.kind() {
        ErrorKind::NotFound => miette!(
            help = "install Python 3.10 or later, then the package forebay: run `make wheel` in the source tree and \
                    `pip install target/wheels/forebay-*.whl`",
            "forebay study run: {name} is not installed"
        ),
        _ => miette!("forebay study run: cannot run {name}: {error}"),
    }
}

/// The arguments for the package's command.
fn words(args: &RunArgs) -> Vec<OsString> {
    let mut words = Vec::new();
    let flags =
        [("--json", args.json), ("--quick", args.quick), ("--once", args.once), ("--strict", args.strict)];
    for (flag, given) in flags {
        if given {
            words.push(flag.into());
        }
    }
    if let Some(out) = &args.out {
        words.extend(["--out".into(), out.into()]);
    }
    words.extend(["--".into(), args.study.clone()]);
    words
}

/// The Python that the environment names, else that of `make wheel` beside the program, else the first of the PATH.
fn python() -> OsString {
    if let Some(named) = std::env::var_os(PYTHON).filter(|named| !named.is_empty()) {
        return named;
    }
    // target/python for target/release/forebay.
    let beside =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("python/bin/python3")));
    match beside {
        Some(beside) if beside.is_file() => beside.into(),
        _ => "python3".into(),
    }
}
