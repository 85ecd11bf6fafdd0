//! A finding: one problem of a file, with its place.
//!
//! What can be wrong is each reader's own [`Fault`].

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

use crate::problem::Problem;

/// What can be wrong with a file. Its display is the whole message.
pub trait Fault: fmt::Debug + fmt::Display {
    /// What to do about it; empty if there is nothing to say.
    fn help(&self) -> String;

    /// What stands in the file, as it was written; `None` if something is missing or if it is about several things.
    fn found(&self) -> Option<String> {
        None
    }

    /// What could stand there instead, if that can be said.
    fn expected(&self) -> Option<String> {
        None
    }

    /// Whether it hinders, or only deserves a look.
    fn severity(&self) -> Severity {
        Severity::Error
    }

    /// The error behind it.
    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}

/// One thing that is wrong, or noteworthy, and where.
#[derive(Clone, Debug)]
pub struct Finding<P = Problem> {
    pub(crate) problem: P,
    pub(crate) labels: Vec<LabeledSpan>,
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
    pub(crate) source: Option<Arc<NamedSource<String>>>,
}

impl<P> Finding<P> {
    /// What is wrong.
    pub fn problem(&self) -> &P {
        &self.problem
    }

    /// The file, or the `--set`, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; `None` if it is about the file as a whole or a `--set`.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The column in characters, from 1; `None` where there is no line.
    pub fn column(&self) -> Option<usize> {
        self.line?;
        let before = self.source.as_ref()?.inner().get(..self.span()?.start)?;
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some(before[begin..].chars().count() + 1)
    }

    /// The bytes of the text that it is about; `None` if it is about the file as a whole.
    pub fn span(&self) -> Option<Range<usize>> {
        self.labels.first().map(|label| label.offset()..label.offset() + label.len())
    }
}

impl<P: Fault> Finding<P> {
    /// The same as plain data, whatever the problem's type.
    pub fn plain(&self) -> Plain {
        Plain {
            file: self.file.clone(),
            line: self.line,
            column: self.column(),
            span: self.span(),
            severity: self.problem.severity(),
            message: self.problem.to_string(),
            found: self.problem.found(),
            expected: self.problem.expected(),
            hint: self.problem.help(),
        }
    }
}

/// A finding as plain data, for documents and other languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The file, or the `--set`, as it was given.
    pub file: String,
    /// The line, from 1; `None` if it is about the file as a whole or a `--set`.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The bytes of the text that it is about.
    pub span: Option<Range<usize>>,
    /// Whether it hinders, or only deserves a look.
    pub severity: Severity,
    /// What is wrong, in a sentence without file and line.
    pub message: String,
    /// What stands in the file, as it was written.
    pub found: Option<String>,
    /// What could stand there instead.
    pub expected: Option<String>,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl<P: Fault> fmt::Display for Finding<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With a source, file and line stand above the piece that is shown.
        match &self.source {
            Some(_) => write!(f, "{}", self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl<P: Fault> std::error::Error for Finding<P> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.cause()
    }
}

impl<P: Fault> Diagnostic for Finding<P> {
    fn severity(&self) -> Option<Severity> {
        Some(self.problem.severity())
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.problem.help();
        (!help.is_empty()).then(|| Box::new(help) as Box<dyn fmt::Display + 'a>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source.as_ref()?;
        Some(Box::new(self.labels.iter().cloned()))
    }
}
