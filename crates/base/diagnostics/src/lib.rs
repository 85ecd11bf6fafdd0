//! The one stack of diagnostics of all files: scenarios, SAs files, gateway's files, instructions, lists of points.
//!
//! A reader adds each problem with its [`Place`] to [`Findings`] and goes on reading. At the end [`Findings::finish`] gives
//! the warnings, or all [`FileErrors`] at once. Each [`Finding`] has file, line, span, what was found, what was expected, a
//! hint and a severity, and [`Finding::plain`] gives these as plain data. What can be wrong is the reader's own type, a
//! [`Fault`]; [`Problem`] is that of the readers of keys and values.
//!
//! The types are miette's `Diagnostic`s; the program renders them.
//!
//! ```
//! use forebay_diagnostics::{Findings, Place, Problem, Text};
//!
//! let text = "windwo = 3\n";
//! let mut findings = Findings::default();
//! let problem = Problem::UnknownKey { key: "windwo".to_owned(), nearest: "window".to_owned() };
//! findings.add(problem, Place { source: 0, span: 0..6 });
//! let source = Text { title: "a.toml", name: "a.toml", shown: text, lines: true };
//! let errors = findings.finish("a.toml", &[source]).unwrap_err();
//! let plain = errors.findings()[0].plain();
//! assert_eq!((plain.line, plain.message.as_str()), (Some(1), "unknown key `windwo`"));
//! assert_eq!(plain.hint, "did you mean `window`?");
//! ```

mod finding;
mod place;
mod problem;
mod report;

pub use finding::{Fault, Finding, Plain};
pub use place::{Located, Place};
pub use problem::{Problem, help_for_key, nearest};
pub use report::{FileErrors, Findings, Lines, Text};
