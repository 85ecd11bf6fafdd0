//! How a command ends.

use std::process::ExitCode;

use crate::{journal, output};

/// How a command ended, short of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All well: exit code 0.
    Yes,
    /// It worked, but the answer is no (packets failed, a claim did not hold): exit code 1.
    No,
    /// The input is broken, and that has been said: exit code 2.
    Broken,
    /// The user broke it off; what was done until then is kept where the command says so: exit code 130.
    Interrupted,
}

/// The exit code of a command that ended so; its error is printed on stderr. What is buffered for stdout is written first.
pub fn exit_code(ended: miette::Result<Answer>) -> ExitCode {
    ExitCode::from(exit_number(ended))
}

/// The same as a number, for a program that is not the process.
pub fn exit_number(ended: miette::Result<Answer>) -> u8 {
    output::flush();
    match ended {
        Ok(Answer::Yes) => 0,
        // The reader of the output has what it wanted.
        Ok(Answer::Interrupted) if output::is_closed() => 0,
        Ok(Answer::Interrupted) => 130,
        Ok(Answer::No) => 1,
        Ok(Answer::Broken) => 2,
        #[cfg(feature = "progress")]
        Err(report) if report.is::<crate::progress::Interrupted>() => {
            output::complain(format_args!("{report}\n"));
            130
        }
        Err(report) => {
            let text = format!("{report:?}\n");
            let text =
                if journal::is_stderr() { journal::with_priority(journal::ERROR, &text) } else { text };
            output::complain(format_args!("{text}"));
            2
        }
    }
}
