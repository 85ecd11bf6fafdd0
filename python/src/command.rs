//! The command, and requests to a running gateway.

use std::ffi::OsString;
use std::path::Path;

use forebay_control::{Client, ControlError, Request, Response};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::{self, Kind};

/// Runs the command `forebay` by `words`, of which the first is its own name: its exit code.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| forebay_cli::main_of(words))
}

/// What a running gateway answers to a request, as JSON: "status", "sas", "policies", "processors" or "drops".
#[pyfunction]
fn gateway_request(py: Python<'_>, socket: &str, request: &str) -> PyResult<String> {
    let request = match request {
        "status" => Request::Status,
        "sas" => Request::Sas,
        "policies" => Request::Policies,
        "processors" => Request::Processors,
        "drops" => Request::Drops,
        other => return Err(PyValueError::new_err(format!("no request {other:?} to a gateway"))),
    };
    let asked = py.detach(|| Client::connect(Path::new(socket)).and_then(|mut client| client.ask(request)));
    match asked.map_err(|why| refused(py, &why))? {
        Response::Status(document) => text(&document),
        Response::Sas(document) => text(&document),
        Response::Policies(document) => text(&document),
        Response::Processors(document) => text(&document),
        Response::Drops(document) => text(&document),
        _ => {
            let message = format!("the gateway at {socket} answers something else");
            Err(errors::error(py, Kind::Gateway, &message, &[], "use the same version as the gateway"))
        }
    }
}

fn text(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string_pretty(document).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn refused(py: Python<'_>, why: &ControlError) -> PyErr {
    let hint = match why {
        // The command's hint names its options.
        ControlError::NotRunning { error, .. } if error.kind() != std::io::ErrorKind::PermissionDenied => {
            "start the gateway, or give the path of its control socket: forebay.Gateway(socket)"
        }
        other => other.help().unwrap_or_default(),
    };
    errors::error(py, Kind::Gateway, &why.to_string(), &[], hint)
}

/// Adds what is here.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(gateway_request, module)?)
}
