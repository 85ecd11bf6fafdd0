//! Studies: a directory of scenario files and one script of comparisons, run into figures, claims and a page.
//!
//! ```text
//!  study.rhai --> script --> runs (of any model, in parallel) --> Findings --> report.html, results.json, ...
//!  *.toml ------------------/
//! ```
//!
//! This crate contains no study: a copy of a study's directory with one line changed is another study. The functions
//! that a script may call are listed in [`FUNCTIONS`].

mod error;
mod findings;
mod functions;
mod keep;
mod model;
mod report;
mod runs;
mod script;
mod shipped;
mod study;
mod values;

pub use error::StudyError;
pub use findings::{Block, Claim, Findings, Heat, Made, Plot, Series, Table, Xs};
pub use forebay_workbench::Way;
pub use functions::{FUNCTIONS, Function};
pub use keep::{Manifest, document, keep};
pub use model::Figures;
pub use report::render;
pub use runs::{Record, Watch};
pub use script::{Options, run};
pub use study::Study;
