//! Errors of the workbench as exceptions of `forebay.errors`.

use forebay_diagnostics::{FileErrors, Plain};
use forebay_workbench::{Error, NoFigures};
use miette::Diagnostic;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The classes of `forebay.errors`.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A file, or what was set in it.
    Scenario,
    /// A run without figures.
    Run,
    /// A policy in Python.
    Policy,
    /// A running gateway.
    Gateway,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::Scenario => "ScenarioError",
            Kind::Run => "RunError",
            Kind::Policy => "PolicyError",
            Kind::Gateway => "GatewayError",
        }
    }
}

/// An exception of a kind.
pub fn error(py: Python<'_>, kind: Kind, message: &str, findings: &[Plain], hint: &str) -> PyErr {
    let make = || -> PyResult<Bound<'_, PyAny>> {
        let module = py.import("forebay.errors")?;
        let finding = module.getattr("Finding")?;
        let list = PyList::empty(py);
        for one in findings {
            let Plain { file, line, column, message, found, expected, hint, .. } = one;
            list.append(finding.call1((message, file, *line, *column, found, expected, hint))?)?;
        }
        module.getattr(kind.class())?.call1((message, list, hint))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Everything that is wrong with a file.
pub fn file(py: Python<'_>, errors: &FileErrors) -> PyErr {
    let findings: Vec<Plain> = errors.findings().iter().map(|one| one.plain()).collect();
    error(py, Kind::Scenario, &errors.to_string(), &findings, "")
}

/// Why a scenario has no figures; `name`: what it is called.
pub fn no_figures(py: Python<'_>, name: &str, why: &NoFigures) -> PyErr {
    error(py, Kind::Run, &format!("{name}: {why}"), &[], "")
}

/// An error of the workbench.
pub fn workbench(py: Python<'_>, why: &Error) -> PyErr {
    match why {
        Error::Input(errors) => file(py, errors),
        why => {
            let hint = why.help().map_or_else(String::new, |hint| hint.to_string());
            error(py, Kind::Run, &why.to_string(), &[], &hint)
        }
    }
}
