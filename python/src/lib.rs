//! `forebay._forebay`: the workbench as a module of Python.
//!
//! Thin: arguments in, results out, errors as the exceptions of `forebay.errors`. What a scenario or a run is, is said in
//! the package's Python and in the crates of the workbench.

// A program as the command is: it asks for the time, of progress and of how a page was made.
#![allow(clippy::disallowed_methods)]

mod command;
mod errors;
mod model;
mod packets;
mod policy;
mod ran;
mod study;
mod sweep;
mod trace;
mod units;
mod watch;

use pyo3::prelude::*;

/// The native part of the package `forebay`; private.
#[pymodule]
fn _forebay(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<ran::Ran>()?;
    module.add_class::<packets::Table>()?;
    module.add_class::<policy::Candidate>()?;
    module.add_class::<policy::Job>()?;
    module.add_class::<sweep::Sweep>()?;
    command::add(module)?;
    model::add(module)?;
    study::add(module)?;
    trace::add(module)?;
    units::add(module)
}
