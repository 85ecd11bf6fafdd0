//! Keys that have no effect because of another key's value. Sweeps change that other key, so they are noted, not refused.

use super::{Section, Table, Value, tables};

/// Keys of a section without effect while a key of `[scheduler]` has one of some values.
struct Idle {
    section: &'static str,
    keys: &'static [&'static str],
    /// The key of `[scheduler]`, or where it has one, of the section itself; and its value where neither has it.
    by: (&'static str, &'static str),
    values: &'static [&'static str],
}

const ONE: &[&str] = &["1"];
const BUNDLES: &[&str] = &["timeout", "max_bytes", "windowing"];
const WINDOW: (&str, &str) = ("window", "1");
const BURST: (&str, &str) = ("burst", "1");
const POLICY: (&str, &str) = ("policy", "finish-time");
/// Policies that predict no time.
const WITHOUT_TIMES: &[&str] = &["round-robin", "shortest-queue", "split"];
const WITHOUT_LOADS: &[&str] =
    &["finish-time", "single", "round-robin", "shortest-queue", "size-threshold", "split"];

const IDLE: &[Idle] = &[
    Idle { section: "scheduler", keys: BUNDLES, by: WINDOW, values: ONE },
    Idle { section: "class", keys: BUNDLES, by: WINDOW, values: ONE },
    Idle { section: "class", keys: &["latency_bound"], by: BURST, values: ONE },
    Idle { section: "processor", keys: &["answers"], by: BURST, values: ONE },
    Idle { section: "processor", keys: &["alpha", "beta"], by: POLICY, values: WITHOUT_TIMES },
    Idle { section: "processor", keys: &["others"], by: POLICY, values: WITHOUT_LOADS },
    Idle { section: "scheduler", keys: &["predict_transfer"], by: POLICY, values: WITHOUT_TIMES },
];

/// Notes them.
pub(super) fn note(top: &Section<'_>, notes: &mut Vec<String>) {
    // What has no effect beside it is refused.
    if top.has("cores") {
        return;
    }
    let scheduler = tables(top, "scheduler").into_iter().next().map(|(table, _)| table);
    let windowed = |table: &Table| value(table, "window").is_some_and(|window| window != "1");
    let has_windows = tables(top, "class").into_iter().any(|(table, _)| windowed(table));
    for row in IDLE {
        let (by, default) = row.by;
        for (table, _) in tables(top, row.section) {
            let own = value(table, by).filter(|_| row.section == "class");
            let found = own.or_else(|| value(scheduler?, by)).unwrap_or_else(|| default.to_owned());
            // Classes with a window take the rest from here.
            let is_inherited = row.section == "scheduler" && by == WINDOW.0 && has_windows;
            if !row.values.contains(&found.as_str()) || is_inherited {
                continue;
            }
            for key in row.keys.iter().filter(|key| table.get(key).is_some()) {
                let note = format!("`{key}` of [{}] has no effect with `{by} = {found}`", row.section);
                // Once for all processors, or classes.
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    let fetches = |table: &Table| value(table, "prefetch").is_some_and(|prefetch| prefetch != "0");
    let is_aware = |table: &Table| table.get("prefetch_aware").is_some();
    if scheduler.is_some_and(is_aware)
        && !tables(top, "processor").into_iter().any(|(table, _)| fetches(table))
    {
        notes.push("`prefetch_aware` of [scheduler] has no effect: no processor has a `prefetch`".to_owned());
    }
}

/// A number or word as the file has it.
fn value(table: &Table, key: &str) -> Option<String> {
    match &table.get(key)?.value {
        Value::Number(text) | Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}
