//! What the commands share: standard output that may be closed, progress on stderr, interrupts, how a command ends, and
//! what is asked of the machine.
//!
//! A program takes the macros of [`output`] in the place of the standard library's:
//!
//! ```ignore
//! #[macro_use]
//! extern crate forebay_terminal;
//! ```

mod answer;
pub mod host;
pub mod journal;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;

pub use answer::{Answer, exit_code, exit_number};
use std::path::Path;

use forebay_links::capture::CaptureError;
use forebay_links::output::keep_apart;
use miette::miette;

/// Columns of the terminal that standard output is, if it is one.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    // One that does not know its size says zero.
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// An error of a capture file with its hint.
pub fn capture_error(error: CaptureError) -> miette::Report {
    match error.hint() {
        Some(hint) => miette!(help = hint, "{error}"),
        None => miette!("{error}"),
    }
}

/// Refuses outputs of a command that would take the place of one of its inputs, or of each other. Called before anything
/// is read or written.
///
/// # Errors
/// The first such pair, with a hint.
pub fn refuse_inputs<I: AsRef<Path>, O: AsRef<Path>>(
    outputs: impl IntoIterator<Item = O>,
    inputs: impl IntoIterator<Item = I>,
) -> miette::Result<()> {
    keep_apart(inputs, outputs).map_err(|same| miette!(help = same.hint(), "{same}"))
}
