//! Studies: a directory of scenario files and one `study.py` of comparisons, run into figures, claims and a page.
//!
//! ```text
//!  study.py --> forebay.study (Python) --> findings as JSON --> page --> report.html
//!  *.toml ----/
//! ```
//!
//! The package `forebay` of Python runs studies. Here are the files of those that are shipped, the page of what a study
//! found, and how a scenario is shortened for a quick run.

mod error;
mod findings;
mod quick;
mod report;
mod study;

pub use error::{PageError, StudyError};
pub use findings::{
    Band, Basis, Block, Claim, Findings, Interval, Kind, Parameter, ReadingCount, Record, Under, Verdict,
    Whose,
};
pub use forebay_page::Made;
pub use quick::shorter;
pub use report::{page, render};
pub use study::{SCRIPT, Study};
