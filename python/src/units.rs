//! Numbers as people read them, and estimates.

use forebay_page::units;
use forebay_random::{CONFIDENCE, Estimate};
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

/// Mean and half the width of its confidence interval, of one value a run.
#[pyfunction]
#[pyo3(signature = (values, confidence = CONFIDENCE))]
fn estimate(values: Vec<f64>, confidence: f64) -> (f64, f64) {
    let Estimate { mean, half_width } = Estimate::with_confidence(&values, confidence);
    (mean, half_width)
}

/// What a Student variable exceeds in absolute value with probability 1 - confidence.
#[pyfunction]
fn student_t(confidence: f64, freedom: u64) -> f64 {
    forebay_random::student_t(confidence, freedom)
}

/// Adds what is here.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(digits, module)?)?;
    module.add_function(wrap_pyfunction!(percent, module)?)?;
    module.add_function(wrap_pyfunction!(bits, module)?)?;
    module.add_function(wrap_pyfunction!(time, module)?)?;
    module.add_function(wrap_pyfunction!(student_t, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)
}
