//! Errors in an SAs file with their places. Quoted text has all keys masked.

use std::ops::Range;

use forebay_diagnostics::{self as report, Place, Text};

use super::mask;
use super::others::OtherKeys;
use super::problem::Problem;

/// Something wrong, or noteworthy, in an SAs file. Its source code is the file with every key replaced by asterisks.
pub type Finding = report::Finding<Problem>;
/// Everything that is wrong with an SAs file.
pub type SasErrors = report::FileErrors<Problem>;

/// A problem with the file as a whole.
pub fn of_file(file: &str, problem: Problem) -> SasErrors {
    SasErrors::of_file(&mask::shown(file), problem)
}

/// Problems and their places, while the file is being read.
pub struct Findings {
    found: report::Findings<Problem>,
    /// What else the file may hold.
    pub(super) others: OtherKeys,
}

impl Findings {
    /// None yet, of a file that may hold `others` beside SAs and policies.
    pub fn beside(others: OtherKeys) -> Findings {
        Findings { found: report::Findings::default(), others }
    }

    /// Notes a problem at `span` of the text; `label` is written there.
    pub fn add(&mut self, problem: Problem, span: Range<usize>, label: &str) {
        self.found.add_labelled(problem, Place { source: 0, span }, label);
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
        self.found.add_pair(problem, Place { source: 0, span }, label, other, other_label);
    }

    /// Whether there are so many that hints which take time are not worth it.
    pub(super) fn is_crowded(&self) -> bool {
        self.found.is_crowded()
    }

    /// The warnings of `text`, which is called `file`.
    ///
    /// # Errors
    /// All errors, if there are any.
    pub fn finish(self, file: &str, text: &str) -> Result<Vec<Finding>, SasErrors> {
        let (file, shown) = (mask::shown(file), mask::source(text, &self.others));
        self.found.finish(&file, &[Text { title: &file, name: &file, shown: &shown, lines: true }])
    }
}
