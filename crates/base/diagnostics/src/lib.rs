//! Diagnostics of files: problems with their places, collected until all of a file is read, and shown together.

pub mod place;
pub mod problem;
pub mod report;

pub use place::Place;
pub use problem::{Finding, Findings, Problem, ScenarioErrors, nearest};
pub use report::Text;
