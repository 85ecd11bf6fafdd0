//! Figures as a flat list of names and numbers: `bus.load`, `processor.card.0.packets`.

use serde::Serialize;
use serde_json::Value;

/// All figures of a run of any model, the same order for every run of a scenario; not a number where a run has none, such as
/// the delay of no packet.
pub fn flat(figures: &impl Serialize) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    if let Ok(value) = serde_json::to_value(figures) {
        walk("", &value, &mut out);
    }
    out
}

fn walk(path: &str, value: &Value, out: &mut Vec<(String, f64)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Number(number) => out.push((path.to_owned(), number.as_f64().unwrap_or(f64::NAN))),
        Value::Object(map) => map.iter().for_each(|(key, value)| match key.as_str() {
            "processors" => walk(&below("processor"), value, out),
            "buses" => walk(&below("bus"), value, out),
            "classes" => walk(&below("class"), value, out),
            _ => walk(&below(key), value, out),
        }),
        Value::Array(list) => list.iter().for_each(|one| {
            let name = one.get("name").and_then(Value::as_str).unwrap_or("?");
            walk(&below(name), one, out);
        }),
        Value::Null => out.push((path.to_owned(), f64::NAN)),
        Value::Bool(_) | Value::String(_) => {}
    }
}
