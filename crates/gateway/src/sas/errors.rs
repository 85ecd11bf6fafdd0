//! Findings: problems with their places in the file, collected until the whole file is read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

use super::mask;
use super::problem::Problem;

/// Most findings that are kept; more than a screen of them helps nobody.
const MAX_FINDINGS: usize = 32;

type Source = Arc<NamedSource<String>>;

/// Something wrong, or noteworthy, in an SAs file.
///
/// Its source code is the file with every key replaced by asterisks.
#[derive(Debug)]
pub struct Finding {
    problem: Problem,
    labels: Vec<LabeledSpan>,
    file: String,
    line: Option<usize>,
    source: Option<Source>,
}

impl Finding {
    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The file, as it was named to the reader.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; `None` if it is about the file as a whole.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With a source, the line stands above the piece of the file that is shown.
        match &self.source {
            Some(_) => self.problem.fmt(f),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for Finding {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.cause()
    }
}

impl Diagnostic for Finding {
    fn severity(&self) -> Option<Severity> {
        Some(self.problem.severity())
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.problem.help()))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// Everything that is wrong with an SAs file, in the order of the file.
#[derive(Debug)]
pub struct SasErrors {
    file: String,
    /// Never empty.
    findings: Vec<Finding>,
    left_out: usize,
    warnings: Vec<Finding>,
}

impl SasErrors {
    pub(crate) fn without_source(file: &str, problem: Problem) -> SasErrors {
        let file = mask::shown(file);
        let finding = Finding { problem, labels: vec![], file: file.clone(), line: None, source: None };
        SasErrors { file, findings: vec![finding], left_out: 0, warnings: vec![] }
    }

    /// The errors, those of the first lines if there are very many.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many errors beyond [`SasErrors::findings`] there are.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What should be looked at besides.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// The same, to be shown one by one.
    pub fn take_warnings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.warnings)
    }

    /// These and those of another file that this one names.
    pub(crate) fn and(mut self, other: SasErrors) -> SasErrors {
        self.findings.extend(other.findings);
        self.warnings.extend(other.warnings);
        self.left_out += other.left_out;
        self
    }

    fn only(&self) -> Option<&Finding> {
        self.findings.first().filter(|_| self.findings.len() == 1)
    }
}

impl fmt::Display for SasErrors {
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

impl std::error::Error for SasErrors {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.only().and_then(std::error::Error::source)
    }
}

/// One error stands for itself; several are related to a heading.
impl Diagnostic for SasErrors {
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

/// Problems and their places, while the file is being read.
#[derive(Default)]
pub(crate) struct Findings(Vec<(Problem, Vec<LabeledSpan>)>);

impl Findings {
    pub(crate) fn add(&mut self, problem: Problem, span: Range<usize>, label: &str) {
        self.0.push((problem, vec![primary(span, label)]));
    }

    /// A problem with two places, of which the first is where it is.
    pub(super) fn add_pair(
        &mut self,
        problem: Problem,
        span: Range<usize>,
        label: &str,
        other: Range<usize>,
        other_label: &str,
    ) {
        let other = LabeledSpan::new(text(other_label), other.start, other.len());
        self.0.push((problem, vec![primary(span, label), other]));
    }

    /// Whether there are so many that hints which take time are not worth it.
    pub(super) fn is_crowded(&self) -> bool {
        self.0.len() > 8 * MAX_FINDINGS
    }

    /// The warnings, or all errors: those of `text`, which is called `file`.
    pub(crate) fn finish(self, file: &str, text: &str) -> Result<Vec<Finding>, SasErrors> {
        if self.0.is_empty() {
            return Ok(vec![]);
        }
        let offset = |labels: &[LabeledSpan]| labels.first().map_or(0, LabeledSpan::offset);
        let (mut warnings, mut errors): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(problem, _)| problem.severity() == Severity::Warning);
        errors.sort_by_key(|(_, labels)| offset(labels));
        warnings.sort_by_key(|(_, labels)| offset(labels));
        let left_out = errors.len().saturating_sub(MAX_FINDINGS);
        errors.truncate(MAX_FINDINGS);

        let file = mask::shown(file);
        let source: Source = Arc::new(NamedSource::new(&file, mask::source(text)));
        let mut lines = Lines::new(text);
        let mut placed = |(problem, labels): (Problem, Vec<LabeledSpan>)| {
            let line = Some(lines.at(offset(&labels)));
            Finding { problem, labels, file: file.clone(), line, source: Some(source.clone()) }
        };
        if errors.is_empty() {
            return Ok(warnings.into_iter().map(placed).collect());
        }
        let findings = errors.into_iter().map(&mut placed).collect();
        // Their lines are counted from the beginning again.
        let mut lines = Lines::new(text);
        let warnings = warnings.into_iter().map(|(problem, labels)| {
            let line = Some(lines.at(offset(&labels)));
            Finding { problem, labels, file: file.clone(), line, source: Some(source.clone()) }
        });
        Err(SasErrors { warnings: warnings.collect(), file: file.clone(), findings, left_out })
    }
}

/// Line numbers of rising offsets, each counted from the one before.
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Lines<'a> {
        Lines { text, at: 0, line: 1 }
    }

    pub(super) fn at(&mut self, offset: usize) -> usize {
        if let Some(between) = self.text.as_bytes().get(self.at..offset) {
            self.line += between.iter().filter(|&&byte| byte == b'\n').count();
            self.at = offset;
        }
        self.line
    }
}

fn primary(span: Range<usize>, label: &str) -> LabeledSpan {
    LabeledSpan::new_primary_with_span(text(label), (span.start, span.len()))
}

fn text(label: &str) -> Option<String> {
    (!label.is_empty()).then(|| label.to_owned())
}
