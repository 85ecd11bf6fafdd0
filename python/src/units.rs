//! Numbers as people read them, and estimates.

use forebay_page::units;
use forebay_random::{CONFIDENCE, Estimate};
use forebay_scenario::{Decimal, Unit};
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

/// A text as a quantity: its value in SI base units, and the word of what it measures, which is empty without a unit.
#[pyfunction]
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(value) = Decimal::parse_quantity(text, Unit::None) {
        return Some((value.as_f64(), ""));
    }
    let units = [
        (Unit::Time, "time"),
        (Unit::Rate, "rate"),
        (Unit::Frequency, "frequency"),
        (Unit::Bytes, "bytes"),
        (Unit::PacketRate, "packet rate"),
        (Unit::Energy, "energy"),
        (Unit::Power, "power"),
    ];
    units
        .into_iter()
        .find_map(|(unit, word)| Decimal::parse_quantity(text, unit).ok().map(|value| (value.as_f64(), word)))
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
    module.add_function(wrap_pyfunction!(quantity, module)?)?;
    module.add_function(wrap_pyfunction!(student_t, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)
}
