//! Values of scripts as values of scenarios, pages and figures.

use forebay_page::units;
use forebay_sim::Figures;
use rhai::{Array, Dynamic};
use serde_json::Value;

/// A value as it would stand in a scenario file.
pub(crate) fn to_toml(value: &Dynamic) -> Result<String, String> {
    if let Ok(list) = value.as_array_ref() {
        let parts: Result<Vec<String>, String> = list.iter().map(to_toml).collect();
        return Ok(format!("[{}]", parts?.join(", ")));
    }
    match (value.as_bool(), value.as_int(), value.as_float()) {
        (Ok(flag), ..) => Ok(flag.to_string()),
        (_, Ok(number), _) => Ok(number.to_string()),
        (.., Ok(number)) if number.is_finite() => Ok(format!("{number}")),
        _ if value.is_string() => Ok(value.to_string()),
        _ => Err(format!("a {} has no place in a scenario", value.type_name())),
    }
}

/// A number, whole or not.
pub(crate) fn number(value: &Dynamic) -> Result<f64, String> {
    let whole = value.as_int().map(|number| number as f64);
    value.as_float().or(whole).map_err(|found| format!("expected a number, found a {found}"))
}

/// A list of numbers.
pub(crate) fn numbers(list: &Array) -> Result<Vec<f64>, String> {
    list.iter().map(number).collect()
}

/// A value as text for a cell or an axis: numbers with three digits.
pub(crate) fn shown(value: &Dynamic) -> String {
    match (value.as_float(), value.as_bool()) {
        (Ok(number), _) => units::round(units::digits(number)),
        (_, Ok(flag)) => if flag { "yes" } else { "no" }.to_owned(),
        _ => value.to_string(),
    }
}

/// The figure at a path: `throughput_bps`, `total_latency.p99_s`, or one of a processor or a service class by
/// its name, `cpu.load`, `card.0.packets`, `bulk.total_latency.mean_s`.
pub(crate) fn figure(figures: &Figures, path: &str) -> Result<f64, String> {
    let document = serde_json::to_value(figures).map_err(|error| error.to_string())?;
    let at = |value: &Value, path: &str| -> Option<f64> {
        path.split('.').try_fold(value, |value, step| value.get(step))?.as_f64()
    };
    let of = |list: &str| {
        let mut all = document.get(list)?.as_array()?.iter();
        all.find_map(|one| at(one, path.strip_prefix(one.get("name")?.as_str()?)?.strip_prefix('.')?))
    };
    at(&document, path).or_else(|| of("processors")).or_else(|| of("classes")).ok_or_else(|| {
        let processors: Vec<&str> = figures.processors.iter().map(|one| one.name.as_str()).collect();
        let classes: Vec<&str> = figures.classes.iter().map(|one| one.name.as_str()).collect();
        let classes = match classes.is_empty() {
            true => String::new(),
            false => format!(", and packets, lost, total_latency.mean_s, ... of {}", classes.join(", ")),
        };
        format!(
            "no figure `{path}`; there are throughput_bps, elapsed_s, packets_per_job, bus.load, \
             processing_latency.mean_s, total_latency.p99_s, ... and load, packets, bytes, mean_size of {}{classes}",
            processors.join(", ")
        )
    })
}
