//! Numbers as people read them, and estimates.

use forebay_page::units;
use forebay_sim::Estimate;
use pyo3::prelude::*;

/// Three significant digits.
#[pyfunction]
fn digits(value: f64) -> String {
    units::digits(value)
}

/// A share of one in percent.
#[pyfunction]
fn percent(share: f64) -> String {
    units::percent(share)
}

/// A rate in bit/s.
#[pyfunction]
fn bits(value: f64) -> String {
    units::bits_per_second(value)
}

/// A time in seconds.
#[pyfunction]
fn time(seconds: f64) -> String {
    units::seconds(seconds)
}

/// Mean and half the width of its 95 % confidence interval, of one value a run.
#[pyfunction]
fn estimate(values: Vec<f64>) -> (f64, f64) {
    let Estimate { mean, half_width } = Estimate::of(&values);
    (mean, half_width)
}

/// Adds what is here.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(digits, module)?)?;
    module.add_function(wrap_pyfunction!(percent, module)?)?;
    module.add_function(wrap_pyfunction!(bits, module)?)?;
    module.add_function(wrap_pyfunction!(time, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)
}
