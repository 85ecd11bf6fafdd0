//! Keys that have no effect because of another key's value.

use forebay_scenario::idle::{self, Idle, value};

use super::{Section, Table, tables};

const BUNDLES: &[&str] = &["timeout", "max_bytes", "windowing"];
/// Policies that predict no time.
const WITHOUT_TIMES: &[&str] = &["round-robin", "shortest-queue", "split"];
/// Those, and policies that go by times only for what the processor of their choice cannot do.
const WITHOUT_TIMES_FOR_ALL: &[&str] =
    &["round-robin", "shortest-queue", "split", "single", "size-threshold"];
const WITHOUT_LOADS: &[&str] =
    &["finish-time", "single", "round-robin", "shortest-queue", "size-threshold", "split"];

/// By the window: classes without one have that of `[scheduler]`.
const fn window(section: &'static str) -> Idle {
    Idle { section, keys: BUNDLES, by: "window", of: "scheduler", default: "1", values: &["1"] }
}

/// By the number of jobs that are placed together.
const fn burst(section: &'static str, keys: &'static [&'static str]) -> Idle {
    Idle { section, keys, by: "burst", of: "scheduler", default: "1", values: &["1"] }
}

const fn policy(
    section: &'static str,
    keys: &'static [&'static str],
    values: &'static [&'static str],
) -> Idle {
    Idle { section, keys, by: "policy", of: "scheduler", default: "finish-time", values }
}

const OF_SCHEDULER: Idle = window("scheduler");
const IDLE: &[Idle] = &[
    window("class"),
    burst("class", &["latency_bound"]),
    burst("processor", &["answers"]),
    policy("processor", &["others"], WITHOUT_LOADS),
    policy("scheduler", &["affinity"], &["single"]),
    Idle {
        section: "processor",
        keys: &["key_slots"],
        by: "key_load",
        of: "processor",
        default: "0",
        values: &["0", "0 s", "0 ms", "0 us", "0 ns"],
    },
];

/// Notes them.
pub(super) fn note(root: &Table, top: &Section<'_>, notes: &mut Vec<String>) {
    // What has no effect beside it is refused.
    if top.has("cores") {
        return;
    }
    // Classes with a window take the rest from there.
    let windowed = |table: &Table| value(table, "window").is_some_and(|window| window != "1");
    if !tables(top, "class").into_iter().any(|(table, _)| windowed(table)) {
        idle::note(root, top, &[OF_SCHEDULER], notes);
    }
    idle::note(root, top, IDLE, notes);
    // A processor that can do all leaves nothing to the rule of finish time.
    let tells = |name: &str| tables(top, name).into_iter().any(|(table, _)| table.get("suites").is_some());
    let without = if tells("processor") { WITHOUT_TIMES } else { WITHOUT_TIMES_FOR_ALL };
    let times: &[&str] = &["predict_transfer", "prefetch_aware"];
    idle::note(
        root,
        top,
        &[policy("processor", &["alpha", "beta"], without), policy("scheduler", times, without)],
        notes,
    );
    // A burst is of one suite.
    let in_bursts = tables(top, "scheduler")
        .into_iter()
        .any(|(table, _)| value(table, "burst").is_some_and(|burst| burst != "1"));
    if tells("traffic") && !tells("processor") && !in_bursts {
        notes.push("`suites` of [traffic] has no effect: every processor supports all of them".to_owned());
    }
    let scheduler = tables(top, "scheduler").into_iter().next().map(|(table, _)| table);
    let has_accelerator = tables(top, "processor")
        .into_iter()
        .any(|(table, _)| value(table, "kind").is_some_and(|kind| kind == "accelerator"));
    if scheduler.is_some_and(|table| table.get("all_idle").is_some()) && !has_accelerator {
        notes.push("`all_idle` of [scheduler] has no effect: no processor is an accelerator".to_owned());
    }
    let fetches = |table: &Table| value(table, "prefetch").is_some_and(|prefetch| prefetch != "0");
    let is_aware = |table: &Table| table.get("prefetch_aware").is_some();
    if scheduler.is_some_and(is_aware)
        && !tables(top, "processor").into_iter().any(|(table, _)| fetches(table))
    {
        notes.push("`prefetch_aware` of [scheduler] has no effect: no processor has a `prefetch`".to_owned());
    }
}
