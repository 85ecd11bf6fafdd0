//! Findings, collected until all of a file is read, and shown together.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

use crate::finding::{Fault, Finding};
use crate::place::{Located, Place};
use crate::problem::Problem;

/// Maximum number of findings that are kept; more than fit on a screen are of no use.
const MAX_FINDINGS: usize = 32;

/// Everything that is wrong with a file, in its order.
#[derive(Clone, Debug)]
pub struct FileErrors<P = Problem> {
    file: String,
    /// Never empty.
    findings: Vec<Finding<P>>,
    left_out: usize,
    warnings: Vec<Finding<P>>,
}

impl<P> FileErrors<P> {
    /// A problem with the file as a whole.
    pub fn of_file(file: &str, problem: P) -> FileErrors<P> {
        let finding = Finding { problem, labels: vec![], file: file.to_owned(), line: None, source: None };
        FileErrors { file: file.to_owned(), findings: vec![finding], left_out: 0, warnings: vec![] }
    }

    /// The errors, the first ones if there are very many.
    pub fn findings(&self) -> &[Finding<P>] {
        &self.findings
    }

    /// How many errors beyond [`FileErrors::findings`] there are.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What should be looked at besides.
    pub fn warnings(&self) -> &[Finding<P>] {
        &self.warnings
    }

    /// The same, to be shown one by one.
    pub fn take_warnings(&mut self) -> Vec<Finding<P>> {
        std::mem::take(&mut self.warnings)
    }

    /// These and those of another file that this one names.
    #[must_use]
    pub fn and(mut self, other: FileErrors<P>) -> FileErrors<P> {
        self.findings.extend(other.findings);
        self.warnings.extend(other.warnings);
        self.left_out += other.left_out;
        self
    }

    fn only(&self) -> Option<&Finding<P>> {
        self.findings.first().filter(|_| self.findings.len() == 1)
    }
}

impl<P: Fault> fmt::Display for FileErrors<P> {
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

impl<P: Fault> std::error::Error for FileErrors<P> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.only().and_then(|finding| finding.problem.cause())
    }
}

/// One error stands for itself; several are related to a heading.
impl<P: Fault> Diagnostic for FileErrors<P> {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

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

/// A text that places refer to, and as it may be shown.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// What stands above what is shown of it.
    pub title: &'a str,
    /// Its name in [`Finding::file`].
    pub name: &'a str,
    /// The text, with secrets masked; as long as the original.
    pub shown: &'a str,
    /// Whether a place in it has a line.
    pub lines: bool,
}

/// Problems and their places, while a file is being read.
#[derive(Debug)]
pub struct Findings<P = Problem>(Vec<(P, usize, Vec<LabeledSpan>)>);

impl<P> Default for Findings<P> {
    fn default() -> Findings<P> {
        Findings(Vec::new())
    }
}

impl<P> Findings<P> {
    /// Adds a problem at a place.
    pub fn add(&mut self, problem: P, place: Place) {
        self.add_labelled(problem, place, "");
    }

    /// Adds a problem at a place, under which `label` is written.
    pub fn add_labelled(&mut self, problem: P, place: Place, label: &str) {
        self.0.push((problem, place.source, vec![primary(place.span, label)]));
    }

    /// Adds a problem with two places in one text, of which the first is where it is.
    pub fn add_pair(
        &mut self,
        problem: P,
        place: Place,
        label: &str,
        other: Range<usize>,
        other_label: &str,
    ) {
        let other = LabeledSpan::new(written(other_label), other.start, other.len());
        self.0.push((problem, place.source, vec![primary(place.span, label), other]));
    }

    /// Whether nothing has been found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are so many that hints which take time are not worth it.
    pub fn is_crowded(&self) -> bool {
        self.0.len() > 8 * MAX_FINDINGS
    }

    /// The problems with their places, for a reader that has others too.
    pub fn into_problems(self) -> Vec<Located<P>> {
        let place = |source, labels: &[LabeledSpan]| {
            let (start, len) = labels.first().map_or((0, 0), |label| (label.offset(), label.len()));
            Place { source, span: start..start + len }
        };
        let located = |(problem, at, labels): (P, usize, Vec<LabeledSpan>)| Located {
            place: place(at, &labels),
            problem,
        };
        self.0.into_iter().map(located).collect()
    }
}

impl<P: Fault> Findings<P> {
    /// The warnings, or all errors of `file`: places are of `texts`, by number.
    ///
    /// # Errors
    /// If one of them is an error.
    pub fn finish(self, file: &str, texts: &[Text<'_>]) -> Result<Vec<Finding<P>>, FileErrors<P>> {
        if self.0.is_empty() {
            return Ok(vec![]);
        }
        let (mut warnings, mut errors): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(problem, ..)| problem.severity() == Severity::Warning);
        let offset = |labels: &[LabeledSpan]| labels.first().map_or(0, LabeledSpan::offset);
        warnings.sort_by_key(|(_, at, labels)| (*at, offset(labels)));
        errors.sort_by_key(|(_, at, labels)| (*at, offset(labels)));
        let left_out = errors.len().saturating_sub(MAX_FINDINGS);
        errors.truncate(MAX_FINDINGS);

        let sources: Vec<_> =
            texts.iter().map(|text| Arc::new(NamedSource::new(text.title, text.shown.to_owned()))).collect();
        let placed = |found: Vec<(P, usize, Vec<LabeledSpan>)>| {
            let mut lines: Vec<Lines<'_>> = texts.iter().map(|text| Lines::new(text.shown)).collect();
            let place = |(problem, at, labels): (P, usize, Vec<LabeledSpan>)| {
                let line = texts[at].lines.then(|| lines[at].at(offset(&labels)));
                let (file, source) = (texts[at].name.to_owned(), Some(sources[at].clone()));
                Finding { problem, labels, file, line, source }
            };
            found.into_iter().map(place).collect::<Vec<_>>()
        };
        let (warnings, findings) = (placed(warnings), placed(errors));
        if findings.is_empty() {
            return Ok(warnings);
        }
        Err(FileErrors { file: file.to_owned(), findings, left_out, warnings })
    }
}

/// Line numbers of rising offsets, each counted from the one before.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    /// From the beginning of a text.
    pub fn new(text: &'a str) -> Lines<'a> {
        Lines { text, at: 0, line: 1 }
    }

    /// The line of an offset that is no smaller than the last, from 1.
    pub fn at(&mut self, offset: usize) -> usize {
        if let Some(between) = self.text.as_bytes().get(self.at..offset) {
            self.line += between.iter().filter(|&&byte| byte == b'\n').count();
            self.at = offset;
        }
        self.line
    }
}

fn primary(span: Range<usize>, label: &str) -> LabeledSpan {
    LabeledSpan::new_primary_with_span(written(label), (span.start, span.len()))
}

fn written(label: &str) -> Option<String> {
    (!label.is_empty()).then(|| label.to_owned())
}
