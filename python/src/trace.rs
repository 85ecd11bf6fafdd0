//! Traces from files, as Arrow tables.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt8Array, UInt32Array, UInt64Array};
use forebay_diagnostics::Plain;
use forebay_sim::TraceError;
use miette::Severity;
use pyo3::prelude::*;

use crate::errors::{Kind, error};
use crate::packets::Table;

/// Reads a trace of any kind that a scenario takes: its columns `size` and, if the file has them, `time_ps`, `sa` and
/// `class`; and the number of records that are no packets.
#[pyfunction]
fn read_trace(py: Python<'_>, path: &str) -> PyResult<(Table, u64)> {
    let read = py.detach(|| {
        let mut trace = forebay_sim::read_trace(Path::new(path))?;
        trace.sort();
        Ok(trace)
    });
    let trace = read.map_err(|why| wrong(py, &why))?;
    let mut columns: Vec<(&str, ArrayRef)> = vec![("size", Arc::new(UInt32Array::from(trace.sizes)))];
    if !trace.times.is_empty() {
        columns.push(("time_ps", Arc::new(UInt64Array::from(trace.times))));
    }
    if !trace.sas.is_empty() {
        columns.push(("sa", Arc::new(UInt32Array::from(trace.sas))));
    }
    if !trace.classes.is_empty() {
        columns.push(("class", Arc::new(UInt8Array::from(trace.classes))));
    }
    Ok((Table::of(columns, &[])?, trace.skipped))
}

fn wrong(py: Python<'_>, why: &TraceError) -> PyErr {
    let finding = Plain {
        file: why.file().to_owned(),
        line: why.line(),
        column: None,
        span: None,
        severity: Severity::Error,
        message: why.message(),
        found: why.found().map(str::to_owned),
        expected: why.expected().map(str::to_owned),
        hint: why.help().to_owned(),
    };
    error(py, Kind::Scenario, &why.to_string(), &[finding], "")
}

/// Adds what this file has to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_trace, module)?)
}
