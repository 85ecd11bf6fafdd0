//! What is wrong with a scenario: problems with their places, collected until all is read.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::tree::Place;

/// Most findings that are kept; more than a screen of them helps nobody.
const MAX_FINDINGS: usize = 32;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    Unreadable {
        /// Why not.
        error: String,
    },
    /// The text is not TOML.
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// A `--set` without `=`, or with an empty key.
    NoAssignment,
    /// A `--set` that goes into something that has no inside.
    NotInside {
        /// The step that cannot be done.
        step: String,
        /// What is there.
        found: &'static str,
    },
    /// A `--set` that names an element that is not in its list.
    NoElement {
        /// The step.
        step: String,
        /// The names in the list.
        names: Vec<String>,
    },
    /// A key that means nothing there.
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest known one.
        nearest: String,
    },
    /// A key that has no default is absent.
    MissingKey {
        /// Where it should be.
        table: String,
        /// The key.
        key: &'static str,
        /// An example.
        example: &'static str,
    },
    /// A value of the wrong type.
    WrongType {
        /// The key.
        key: String,
        /// What it is.
        found: &'static str,
        /// What would be right.
        expected: String,
    },
    /// A word that means nothing for this key.
    UnknownWord {
        /// The key.
        key: String,
        /// The word.
        found: String,
        /// All that mean something.
        expected: Vec<String>,
    },
    /// A quantity that is none, or of another dimension.
    BadQuantity {
        /// The key.
        key: String,
        /// As it was written.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A number outside its range.
    OutOfRange {
        /// The key.
        key: String,
        /// As it was written.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Keys that cannot stand together, or not with what else is said.
    Conflict {
        /// What does not fit.
        message: String,
        /// What to do.
        help: String,
    },
    /// The trace cannot be used.
    Trace {
        /// What is wrong with it, with its file and line.
        message: String,
        /// What to do.
        help: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable { error } => write!(f, "the scenario cannot be read: {error}"),
            Problem::Syntax { message } => write!(f, "not TOML: {message}"),
            Problem::NoAssignment => f.write_str("`--set` without a key or a value"),
            Problem::NotInside { step, found } => write!(f, "there is no `{step}` inside {found}"),
            Problem::NoElement { step, .. } => write!(f, "the list has no element `{step}`"),
            Problem::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Problem::MissingKey { table, key, .. } => write!(f, "{table} has no `{key}`"),
            Problem::WrongType { key, found, .. } => write!(f, "`{key}` is {found}"),
            Problem::UnknownWord { key, found, .. } => write!(f, "unknown {key} `{found}`"),
            Problem::BadQuantity { key, found, .. } => write!(f, "`{key}` is `{found}`"),
            Problem::OutOfRange { key, found, .. } => write!(f, "`{key}` is {found}"),
            Problem::Conflict { message, .. } | Problem::Trace { message, .. } => f.write_str(message),
        }
    }
}

impl Problem {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Problem::Unreadable { .. } => "is the path right?".to_owned(),
            Problem::Syntax { .. } => {
                "sections are like `[traffic]`, lines like `rate = \"1 Gbit/s\"`".to_owned()
            }
            Problem::NoAssignment => "write `--set processor.card.count=2`".to_owned(),
            Problem::NotInside { .. } => "the path goes too far: take the last step away".to_owned(),
            Problem::NoElement { step, names } => match nearest(step, names.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `{name}`? A number, counted from 0, does too"),
                None => "give a number, counted from 0".to_owned(),
            },
            Problem::UnknownKey { nearest, .. } => format!("did you mean `{nearest}`?"),
            Problem::MissingKey { example, .. } => format!("add `{example}`"),
            Problem::WrongType { expected, .. } | Problem::OutOfRange { expected, .. } => expected.clone(),
            Problem::BadQuantity { expected, .. } => (*expected).to_owned(),
            Problem::UnknownWord { found, expected, .. } => {
                let near = nearest(found, expected.iter().map(String::as_str)).unwrap_or_default();
                let words = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                format!("expected {words}; did you mean `{near}`?")
            }
            Problem::Conflict { help, .. } | Problem::Trace { help, .. } => help.clone(),
        }
    }
}

/// The candidate with the smallest edit distance.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| strsim::levenshtein(word, candidate))
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug)]
pub struct Finding {
    problem: Problem,
    file: String,
    line: Option<usize>,
    span: std::ops::Range<usize>,
    source: Option<Arc<NamedSource<String>>>,
}

impl Finding {
    /// What is wrong.
    pub fn problem(&self) -> &Problem {
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
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With a source, file and line stand above the piece that is shown.
        match &self.source {
            Some(_) => self.problem.fmt(f),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for Finding {}

impl Diagnostic for Finding {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.problem.help()))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source.as_ref()?;
        let span = (self.span.start, self.span.len());
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, span))))
    }
}

/// Everything that is wrong with a scenario, in the order of the file.
#[derive(Clone, Debug)]
pub struct ScenarioErrors {
    file: String,
    /// Never empty.
    findings: Vec<Finding>,
    left_out: usize,
}

impl ScenarioErrors {
    /// The errors, the first ones if there are very many.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The error of a file that cannot be read.
    pub fn unreadable(file: &str, error: String) -> ScenarioErrors {
        let problem = Problem::Unreadable { error };
        let finding = Finding { problem, file: file.to_owned(), line: None, span: 0..0, source: None };
        ScenarioErrors { file: file.to_owned(), findings: vec![finding], left_out: 0 }
    }

    fn only(&self) -> Option<&Finding> {
        self.findings.first().filter(|_| self.findings.len() == 1)
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(finding) = self.only() {
            return finding.fmt(f);
        }
        write!(f, "{} has {} errors", self.file, self.findings.len() + self.left_out)?;
        if self.left_out > 0 {
            write!(f, ", the first {} of which are", self.findings.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioErrors {}

/// One error stands for itself; several are related to a heading.
impl Diagnostic for ScenarioErrors {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.only().and_then(Diagnostic::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.only().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.only().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.only().is_some() {
            return None;
        }
        Some(Box::new(self.findings.iter().map(|finding| finding as &dyn Diagnostic)))
    }
}

/// Problems and their places, while the scenario is being read.
#[derive(Debug, Default)]
pub struct Findings(Vec<(Problem, Place)>);

impl Findings {
    /// Adds a problem at a place.
    pub fn add(&mut self, problem: Problem, place: Place) {
        self.0.push((problem, place));
    }

    /// Whether nothing has been found wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems with their places, for a reader that has others too.
    pub fn into_problems(self) -> Vec<(Problem, Place)> {
        self.0
    }

    /// The errors of `text`, which is called `file`, and of `sets`; `Ok` if there are none.
    pub fn finish(mut self, file: &str, text: &str, sets: &[String]) -> Result<(), ScenarioErrors> {
        if self.0.is_empty() {
            return Ok(());
        }
        self.0.sort_by_key(|(_, place)| (place.source, place.span.start));
        let left_out = self.0.len().saturating_sub(MAX_FINDINGS);
        self.0.truncate(MAX_FINDINGS);
        let named = |name: &str, text: &str| Arc::new(NamedSource::new(name, text.to_owned()));
        let source = named(file, text);
        let findings = self.0.into_iter().map(|(problem, Place { source: at, span })| match at {
            0 => {
                let before = text.get(..span.start).unwrap_or(text);
                let line = Some(1 + before.bytes().filter(|&byte| byte == b'\n').count());
                Finding { problem, file: file.to_owned(), line, span, source: Some(source.clone()) }
            }
            at => {
                let source = Some(named("--set", &sets[at - 1]));
                Finding { problem, file: format!("--set {}", sets[at - 1]), line: None, span, source }
            }
        });
        Err(ScenarioErrors { file: file.to_owned(), findings: findings.collect(), left_out })
    }
}
