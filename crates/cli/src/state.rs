//! `forebay state`: what is known about a gateway's state directory, and the acceptance of its records by an operator.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_config as config;
use forebay_gateway::privileges;
use forebay_gateway::service::StartError;
use forebay_state::{IvStore, IvStoreError};
use forebay_terminal::Answer;
use forebay_terminal::host::unix_ns;
use miette::miette;

/// Arguments of `forebay state`.
#[derive(Args)]
pub struct StateArgs {
    /// The state directory [default: as the gateway's, by the file or the environment].
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "config")]
    state: Option<PathBuf>,
    /// The gateway's configuration file, whose state directory it is.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Clone, Copy, PartialEq, Eq, Subcommand)]
enum What {
    /// Show to which gateway the records belong, and which are missing (the default).
    Show,
    /// Let the gateway start with the records as they are, even if some are missing. Unless all SAs have new keys, recorded packets may
    /// be accepted again, and numbers may be reused.
    Accept,
}

/// Runs the command.
pub fn run(args: &StateArgs) -> miette::Result<Answer> {
    let store = store(args)?;
    // What root writes there could not be read by the gateway's user.
    match privileges::become_owner(store.directory()) {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && args.what.is_none_or(|what| what == What::Show) => {
        }
        Err(error) => {
            return Err(miette!(
                help = "name the directory of the gateway with --state DIR, or its file with --config FILE",
                "cannot look at the state directory {}: {error}",
                store.directory().display()
            ));
        }
        Ok(()) => {}
    }
    if let Some(What::Accept) = args.what {
        store.accept(unix_ns()? / 1_000_000_000).map_err(StartError::Ivs)?;
        println!(
            "accepted: the gateway that waits, or starts next, goes on with the records in {}",
            store.directory().display()
        );
        return Ok(Answer::Yes);
    }
    let found = store.provenance().map_err(StartError::Ivs)?;
    let directory = store.directory();
    if directory.exists() {
        println!("directory: {}", directory.display());
        println!("role:      {}", found.role);
    } else {
        // Nothing is known of it: the first start makes it, or the name is another one.
        println!("directory: {}, which does not exist", directory.display());
        println!("role:      none yet");
    }
    println!(
        "records:   {}",
        if found.files.is_empty() { "none".to_owned() } else { found.files.join(", ") }
    );
    for path in &found.missing {
        println!("MISSING:   {}", path.display());
    }
    if found.missing.is_empty()
        && let Some(note) = store.pair_note().map_err(StartError::Ivs)?
    {
        let complete = note.complete.map_or("never".to_owned(), |term| format!("up to term {term}"));
        println!("pair:      gateway {}, highest term known {}, complete {complete}", note.number, note.term);
        println!(
            "           {}",
            match (note.was_alone(), note.unmerged) {
                (true, _) =>
                    "was active last, as far as it knows, and has records that its peer lacks: may start alone",
                (false, true) => "has records that its peer lacks, and may lack some: waits for its peer",
                (false, false) => "may lack what its peer has done since: waits for its peer",
            }
        );
    }
    let verified = store.verify();
    match &verified {
        Ok(count) => count.iter().for_each(|count| println!("journal:   whole, {count} records")),
        // It has been said above.
        Err(IvStoreError::Missing { .. }) => {}
        Err(error) => println!("DAMAGED:   {error}"),
    }
    if found.accepted {
        println!("accepted:  the gateway has not taken it yet");
    }
    Ok(if found.missing.is_empty() && verified.is_ok() { Answer::Yes } else { Answer::No })
}

fn store(args: &StateArgs) -> miette::Result<IvStore> {
    let directory = match &args.config {
        Some(path) => config::load(path)?.keys.state.clone(),
        None => args.state.clone(),
    };
    if let Some(directory) = directory {
        return Ok(IvStore::new(directory));
    }
    Ok(usual().map_err(StartError::Ivs)?)
}

/// The directory of a gateway whose file names none.
///
/// # Errors
/// As [`IvStore::of_user`].
pub(crate) fn usual() -> Result<IvStore, IvStoreError> {
    let store = IvStore::of_user()?;
    // A service's gateway has no home, and root who looks for its directory has one.
    let is_given = std::env::var_os("FOREBAY_STATE").is_some_and(|value| !value.is_empty());
    let is_service = || fs::read_dir(config::SYSTEM_DIRECTORY).is_ok();
    let is_elsewhere = !is_given && !store.directory().exists() && is_service();
    Ok(if is_elsewhere { IvStore::new(config::SYSTEM_DIRECTORY) } else { store })
}
