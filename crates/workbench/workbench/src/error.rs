//! Why there are no results.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::NoFigures;
use forebay_diagnostics::{FileErrors, Problem};
use forebay_models as models;
use forebay_sim::RunError;
use miette::{Diagnostic, LabeledSpan, Report, Severity, SourceCode};

/// Why there are no results.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller's progress function has stopped the work.
    Cancelled,
    /// What is wrong with a file, or with the values that were set in it.
    Input(FileErrors),
    /// A sweep of more points or runs than can be.
    TooMany {
        /// What was found, in words.
        found: String,
    },
    /// A search whose bounds every rate would keep.
    Unbounded,
    /// A run without figures.
    Run {
        /// The scenario's file.
        path: PathBuf,
        /// Why.
        error: NoFigures,
    },
    /// A pipeline's design that cannot be solved: its chain is too large, or the solver does not converge.
    Design(models::Error),
    /// Firmware on a core.
    Firmware(Report),
    /// Results that cannot be written.
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Error {
    /// A problem with a file as a whole; `help` may be empty.
    pub(crate) fn of_file(path: &Path, message: impl fmt::Display, help: &str) -> Error {
        let problem = Problem::Conflict { message: message.to_string(), help: help.to_owned() };
        Error::Input(FileErrors::of_file(&path.display().to_string(), problem))
    }

    /// That `path` cannot be written.
    #[cfg(feature = "results")]
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        |error| Error::Write { path, error }
    }

    /// The error that stands for this one, if it is only passed on.
    fn inner(&self) -> Option<&dyn Diagnostic> {
        match self {
            Error::Input(errors) => Some(errors),
            Error::Firmware(report) => Some(report.as_ref()),
            _ => None,
        }
    }
}

impl Error {
    /// Why a run of the scenario `path` has no figures.
    pub fn of_run(path: &Path, error: impl Into<NoFigures>) -> Error {
        match error.into() {
            NoFigures::Cancelled => Error::Cancelled,
            error => Error::Run { path: path.to_owned(), error },
        }
    }
}

impl From<FileErrors> for Error {
    fn from(errors: FileErrors) -> Error {
        Error::Input(errors)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cancelled => f.write_str("interrupted"),
            Error::Input(errors) => errors.fmt(f),
            Error::TooMany { found } => f.write_str(found),
            Error::Unbounded => f.write_str("an unlimited input queue loses nothing at any rate"),
            Error::Run { path, error } => write!(f, "{}: {error}", path.display()),
            Error::Design(error) => error.fmt(f),
            Error::Firmware(report) => report.fmt(f),
            Error::Write { path, .. } => write!(f, "cannot write {}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Input(errors) => errors.source(),
            Error::Firmware(report) => report.source(),
            Error::Write { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl Diagnostic for Error {
    fn severity(&self) -> Option<Severity> {
        self.inner().and_then(Diagnostic::severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = match self {
            Error::Run { error: NoFigures::Host(RunError::TooLong), .. } => {
                "a higher traffic.rate, or shorter times of processors; with a rate the times of a trace do not count"
            }
            Error::Run { error: NoFigures::Host(RunError::NoPackets), .. } => {
                "a lower traffic.warm_up, or more packets"
            }
            Error::Run { error: NoFigures::Host(_), .. } => {
                "forebay simulate --json shows under `resolved` what the scenario came to"
            }
            Error::Unbounded => {
                "bound the 99 % quantile of the latency and not the loss, or limit the input queue by `scheduler.input` (cores of [cores] have no limit)"
            }
            _ => return self.inner().and_then(Diagnostic::help),
        };
        Some(Box::new(hint))
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
