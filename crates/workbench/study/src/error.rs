//! What can be wrong with a study.

use std::fmt;
use std::path::PathBuf;

use miette::Diagnostic;

use crate::study::SCRIPT;

/// Why a study cannot be read.
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
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Unknown { name, .. } => {
                write!(f, "no study `{name}`: neither shipped nor a directory")
            }
            StudyError::Unreadable { path, error } => write!(f, "{} cannot be read: {error}", path.display()),
        }
    }
}

impl std::error::Error for StudyError {}

impl Diagnostic for StudyError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            StudyError::Unknown { shipped, .. } => {
                Some(Box::new(format!("there are {}; a directory needs a {SCRIPT}", shipped.join(", "))))
            }
            StudyError::Unreadable { .. } => None,
        }
    }
}

/// Why findings have no page: they are not as this version of the program writes them.
#[derive(Debug)]
pub struct PageError(pub(crate) serde_json::Error);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the findings of the study cannot be read: {}", self.0)
    }
}

impl std::error::Error for PageError {}
