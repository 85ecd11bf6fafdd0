//! The one stack of diagnostics of all files: scenarios, SAs files, gateway's files, instructions, lists of points.
//!
//! A reader adds each problem with its [`Place`] to [`Findings`] and goes on reading. At the end [`Findings::finish`] gives
//! the warnings, or all [`FileErrors`] at once. Each [`Finding`] has file, line, span, what was found, what was expected, a
//! hint and a severity, and [`Finding::plain`] gives these as plain data. What can be wrong is the reader's own type, a
//! [`Fault`]; [`Problem`] is that of the readers of keys and values.
//!
//! The types are miette's `Diagnostic`s; drawing them is for the program.

mod finding;
mod place;
mod problem;
mod report;

pub use finding::{Fault, Finding, Plain};
pub use place::{Located, Place};
pub use problem::{Problem, nearest};
pub use report::{FileErrors, Findings, Lines, Text};
