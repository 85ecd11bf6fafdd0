//! Values of scripts as values of scenarios, pages and figures.

use forebay_page::units;
use rhai::{Array, Dynamic};
use serde_json::Value;

use crate::model::Figures;

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

/// The figure at a path: `throughput_bps`, `total_latency.p99_s`, or one of a processor, service class, stage,
/// server or resource by its name: `cpu.load`, `card.0.packets`, `bulk.total_latency.mean_s`, `receive.max_queue`.
pub(crate) fn figure(figures: &Figures, path: &str) -> Result<f64, String> {
    let document = serde_json::to_value(figures).map_err(|error| error.to_string())?;
    at(&document, path).and_then(Value::as_f64).ok_or_else(|| match figures {
        Figures::Host(figures) => {
            let names: Vec<&str> = figures.processors.iter().map(|one| one.name.as_str()).collect();
            let classes: Vec<&str> = figures.classes.iter().map(|one| one.name.as_str()).collect();
            let classes = match classes.is_empty() {
                true => String::new(),
                false => format!(", and packets, lost, total_latency.mean_s, ... of {}", classes.join(", ")),
            };
            format!(
                "no figure `{path}`; there are throughput_bps, elapsed_s, packets_per_job, bus.load, \
                 processing_latency.mean_s, total_latency.p99_s, ... and load, packets, bytes, mean_size of \
                 {}{classes}",
                names.join(", ")
            )
        }
        Figures::Other(document) => {
            let keys = |value: &Value| -> Vec<String> {
                value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
            };
            let parts = LISTS.iter().filter_map(|list| document.get(*list)?.as_array());
            let parts = parts.filter_map(|list| {
                let names = list.iter().filter_map(|one| one.get("name")?.as_str());
                Some(format!(
                    "{} of {}",
                    keys(list.first()?).join(", "),
                    names.collect::<Vec<_>>().join(", ")
                ))
            });
            let there: Vec<String> = [keys(document).join(", ")].into_iter().chain(parts).collect();
            format!("no figure `{path}`; there are {}", there.join("; "))
        }
    })
}

/// Lists whose elements have names.
const LISTS: [&str; 5] = ["processors", "classes", "stages", "servers", "resources"];

/// The value at a path. Names may have dots in them.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let named = |step: &str| {
        let all = LISTS.iter().filter_map(|list| value.get(*list)?.as_array()).flatten();
        all.into_iter().find(|one| one.get("name").and_then(Value::as_str) == Some(step))
    };
    let inside = |step: &str| value.get(step).or_else(|| named(step));
    inside(path).or_else(|| {
        let mut dots = path.match_indices('.');
        dots.find_map(|(dot, _)| at(inside(&path[..dot])?, &path[dot + 1..]))
    })
}
