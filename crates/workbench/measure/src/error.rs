//! Why there is no measurement.

use std::fmt;

use forebay_crypto::SuiteError;
use forebay_diagnostics::FileErrors;
use miette::{Diagnostic, LabeledSpan, Report, SourceCode};

/// Why there is no measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller's progress function has stopped the work.
    Cancelled,
    /// A setting cannot be met.
    Setting {
        /// What is wrong; the name of the setting comes first: `window 65: expected 1 to 64`.
        message: String,
        /// What to do about it; may be empty.
        hint: String,
    },
    /// The proposal is not known.
    Suite(SuiteError),
    /// What is wrong with the packets' description.
    Input(FileErrors),
    /// The machine, a processor or a file has failed.
    Failed(Report),
}

impl Error {
    /// A setting outside its range.
    pub(crate) fn range(setting: &str, found: impl fmt::Display, expected: impl fmt::Display) -> Error {
        Error::Setting { message: format!("{setting} {found}: expected {expected}"), hint: String::new() }
    }

    /// The error that stands for this one, if it is only passed on.
    fn inner(&self) -> Option<&dyn Diagnostic> {
        match self {
            Error::Input(errors) => Some(errors),
            Error::Failed(report) => Some(report.as_ref()),
            _ => None,
        }
    }
}

/// Refuses a number outside its range.
pub(crate) fn within(setting: &str, value: usize, least: usize, most: usize) -> Result<(), Error> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(Error::range(setting, value, format_args!("{least} to {most}"))),
    }
}

impl From<Report> for Error {
    fn from(report: Report) -> Error {
        Error::Failed(report)
    }
}

impl From<FileErrors> for Error {
    fn from(errors: FileErrors) -> Error {
        Error::Input(errors)
    }
}

impl From<SuiteError> for Error {
    fn from(error: SuiteError) -> Error {
        Error::Suite(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cancelled => f.write_str("interrupted"),
            Error::Setting { message, .. } => f.write_str(message),
            Error::Suite(error) => error.fmt(f),
            Error::Input(errors) => errors.fmt(f),
            Error::Failed(report) => report.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Input(errors) => std::error::Error::source(errors),
            Error::Failed(report) => report.source(),
            _ => None,
        }
    }
}

impl Diagnostic for Error {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Error::Setting { hint, .. } if !hint.is_empty() => Some(Box::new(hint)),
            Error::Suite(error) => Some(Box::new(error.hint())),
            _ => self.inner().and_then(Diagnostic::help),
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.inner().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.inner().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        self.inner().and_then(Diagnostic::related)
    }
}
