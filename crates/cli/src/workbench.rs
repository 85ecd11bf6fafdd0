//! What the gateway's own binary does with the commands that it lacks: those of the workbench, which is a package of its
//! own. They keep their names: `forebay simulate` runs `forebay-workbench simulate`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process;

use miette::miette;

/// The commands of the workbench.
pub const COMMANDS: [&str; 11] = [
    "bench",
    "demo",
    "explore",
    "open",
    "seal",
    "simulate",
    "size-buffers",
    "solve",
    "study",
    "top",
    "validate-model",
];

/// Commands that had another name in older versions, and their names now.
const RENAMED: [(&str, &str); 2] = [("twin", "validate-model"), ("size", "size-buffers")];

/// The error for the older name of a command, if the first word is one.
pub fn renamed(words: &[OsString]) -> Option<miette::Report> {
    let command = words.get(1)?;
    let (old, new) = RENAMED.into_iter().find(|(old, _)| command == old)?;
    Some(miette!(help = format!("run `forebay {new}`"), "unknown command `{old}`"))
}

/// Becomes the workbench, if the first word is one of its commands. Returns why it cannot, or
/// `None` for other words.
pub fn run(words: &[OsString]) -> Option<miette::Report> {
    if let Some(report) = renamed(words) {
        return Some(report);
    }
    let command = words.get(1).filter(|word| COMMANDS.iter().any(|command| *word == command))?;
    // Beside this program and nowhere else: that of another one's choice must not run with what privileges there are.
    let beside = std::env::current_exe().map(|exe| exe.with_file_name("forebay-workbench"));
    let error = beside.map(|program| process::Command::new(program).args(&words[1..]).exec());
    let command = command.display();
    let report = match error {
        Err(error) => miette!("forebay {command}: cannot determine the path of this program: {error}"),
        Ok(error) if error.kind() == ErrorKind::NotFound => miette!(
            help = "install the package forebay-workbench",
            "forebay {command}: the workbench, which has this command, is not installed"
        ),
        Ok(error) => miette!("forebay {command}: cannot run forebay-workbench: {error}"),
    };
    Some(report)
}
