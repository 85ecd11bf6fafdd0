//! The studies that come with the program.

use std::collections::BTreeMap;

use forebay_study::Study;
use pyo3::prelude::*;

/// The files of the shipped studies by study and file.
#[pyfunction]
fn shipped_studies() -> BTreeMap<String, BTreeMap<String, String>> {
    Study::shipped().into_iter().map(|study| (study.name, study.files)).collect()
}

/// Adds what is here.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(shipped_studies, module)?)
}
