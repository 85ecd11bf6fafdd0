//! What can be wrong with a study.

use std::fmt;
use std::path::PathBuf;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// Why a study gives no findings.
#[derive(Debug)]
#[non_exhaustive]
pub enum StudyError {
    /// No directory and no shipped study has this name.
    Unknown {
        /// The name.
        name: String,
        /// Those that come with the program.
        shipped: Vec<&'static str>,
    },
    /// A file cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The script is wrong, or what it asked for is.
    Script {
        /// The script.
        source: NamedSource<String>,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Where that is, in bytes.
        at: usize,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Unknown { name, .. } => {
                write!(f, "no study `{name}`: neither shipped nor a directory")
            }
            StudyError::Unreadable { path, error } => write!(f, "{} cannot be read: {error}", path.display()),
            StudyError::Script { source, line, column, message, .. } => {
                write!(f, "{}:{line}:{column}: {message}", source.name())
            }
        }
    }
}

impl std::error::Error for StudyError {}

impl Diagnostic for StudyError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            StudyError::Unknown { shipped, .. } => {
                Some(Box::new(format!("there are {}; a directory needs a study.rhai", shipped.join(", "))))
            }
            _ => None,
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        match self {
            StudyError::Script { source, .. } => Some(source),
            _ => None,
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        match self {
            StudyError::Script { at, .. } => {
                Some(Box::new(std::iter::once(LabeledSpan::at_offset(*at, "here"))))
            }
            _ => None,
        }
    }
}
