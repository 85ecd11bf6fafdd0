//! The studies that come with the program, their quick forms and their pages.

use std::collections::BTreeMap;

use forebay_study::Study;
use forebay_workbench::Way;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::model::Model;

/// The files of the shipped studies by study and file.
#[pyfunction]
fn shipped_studies() -> BTreeMap<String, BTreeMap<String, String>> {
    Study::shipped().into_iter().map(|study| (study.name, study.files)).collect()
}

/// What is set in a scenario for a quick run by a way, as `key=value`; nothing if it is quick as it is.
#[pyfunction]
fn study_quick(model: &Model, way: &str) -> PyResult<Vec<String>> {
    let way = match way {
        "simulation" => Way::Simulation,
        "solution" => Way::Solution,
        "closed-form" => Way::ClosedForm,
        _ => return Err(PyValueError::new_err(format!("no way {way:?} to figures"))),
    };
    Ok(forebay_study::shorter(&model.model, way))
}

/// The page of what a study found: the findings as JSON, and version, machine and time as JSON.
#[pyfunction]
fn study_page(py: Python<'_>, findings: &str, made: &str) -> PyResult<String> {
    let page = py.detach(|| forebay_study::page(findings, made));
    page.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Adds what is here.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(shipped_studies, module)?)?;
    module.add_function(wrap_pyfunction!(study_quick, module)?)?;
    module.add_function(wrap_pyfunction!(study_page, module)?)
}
