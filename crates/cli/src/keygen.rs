//! `forebay keygen`: new keys in files of their own.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_crypto::Suite;
use forebay_crypto_aws_lc::random;
use forebay_provision as provision;
use forebay_terminal::Answer;
use miette::{Context, IntoDiagnostic, miette};

/// Arguments of `forebay keygen`.
#[derive(Args)]
pub struct KeygenArgs {
    /// The suite that the key is for.
    #[arg(long, visible_alias = "suite", value_name = "PROPOSAL", default_value = "aes256-sha256", value_parser = suite)]
    proposal: Suite,
    /// The key file to write, for `key_file`. A proposal with a separate integrity algorithm gets a second file with the
    /// ending `.auth`, for `auth_key_file`. Existing files are not replaced.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Reads a proposal, with the nearest known one as a hint.
pub fn suite(text: &str) -> Result<Suite, String> {
    text.parse().map_err(|error: forebay_crypto::SuiteError| format!("{error}; {}", error.hint()))
}

/// Writes the keys.
pub fn run(args: &KeygenArgs) -> miette::Result<Answer> {
    let suite = args.proposal;
    if suite.is_weak() {
        return Err(miette!(
            help = "choose another proposal",
            "proposal `{suite}` is weak: RFC 8221 says MUST NOT"
        ));
    }
    let (key_len, auth_len) = (suite.cipher_key_len() + suite.salt_len(), suite.integrity_key_len());
    let parts = |file: &Path| {
        let auth = (auth_len > 0).then(|| file.with_extension("auth"));
        [(key_len > 0).then(|| file.to_owned()), auth]
    };
    for file in &args.files {
        // Elsewhere a single `-` is standard output, and keys are never printed.
        if file.file_name().is_none() || file == Path::new("-") {
            return Err(miette!(
                help = "give the name of a new file, such as east-out.key",
                "{} is not the name of a file",
                file.display()
            ));
        }
        if key_len > 0 && parts(file)[1].as_deref() == Some(file.as_path()) {
            let help =
                format!("give the key another ending, such as {}", file.with_extension("key").display());
            return Err(miette!(
                help = help,
                "{}: the ending `.auth` is that of the integrity key's file",
                file.display()
            ));
        }
    }
    // Nothing is written if a file is there.
    let all: Vec<PathBuf> = args.files.iter().flat_map(|file| parts(file)).flatten().collect();
    let places: Vec<PathBuf> = all.iter().map(|path| place(path)).collect();
    if let Some(at) = (0..all.len()).find(|&at| places[..at].contains(&places[at])) {
        return Err(miette!(
            help = "give each key a file name of its own",
            "{} would be written twice",
            all[at].display()
        ));
    }
    refuse_existing(&all)?;
    for file in &args.files {
        let made = provision::keys(suite, &mut random);
        for (path, text) in parts(file).into_iter().zip([made.key, made.auth_key]) {
            if let (Some(path), Some(text)) = (path, text) {
                create(&path, &text)?;
                let what =
                    if path == *file { described(suite) } else { format!("{auth_len} bytes for integrity") };
                println!("{}: {what}; {suite}, mode 0600", path.display());
            }
        }
    }
    Ok(Answer::Yes)
}

/// The path without what leads to the same file, such as `./`; as it is where its folder is not there.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

fn described(suite: Suite) -> String {
    match (suite.cipher_key_len(), suite.salt_len()) {
        (key, 0) => format!("{key} bytes"),
        (key, salt) => format!("{} bytes ({key} of key, {salt} of salt)", key + salt),
    }
}

/// An error if one of the files is there.
pub fn refuse_existing(paths: &[PathBuf]) -> miette::Result<()> {
    match paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => {
            let help = "give another name, or remove it first";
            Err(miette!(help = help, "{} exists, and keys are never overwritten", path.display()))
        }
        None => Ok(()),
    }
}

/// Writes a new file that only its owner may read.
pub fn create(path: &Path, text: &str) -> miette::Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))
}
