//! `[cores]`: the processors are cores that each go with their burst, in place of one scheduler before all of them.

use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use super::decimal::Unit;
use super::section::Section;
use super::{PARTS, Traffic, known, seconds, tables};
use crate::cores::Serial;
use crate::traffic::Stream;

/// The keys of `[[processor]]` that a core has.
const OF_A_CORE: &[&str] = &[
    "name",
    "kind",
    "count",
    "init",
    "block",
    "init_ratio",
    "block_ratio",
    "throughput",
    "throughput_size",
    "submit",
];
/// The same in the resolved scenario.
const RESOLVED: &[&str] = &["name", "kind", "count", "init", "block", "submit"];
const BURST_MAX: u64 = 1 << 16;
/// All packets of a run are in memory.
const PACKETS_MAX: u64 = 10_000_000;

/// Reads the section, if there is one, and refuses what then has no effect.
pub(super) fn read(
    top: &Section<'_>,
    traffic: Option<&Traffic>,
    resolved: &mut Map<String, Json>,
) -> Option<Serial> {
    let (table, place) = tables(top, "cores").into_iter().next()?;
    let section = Section::new(table, "[cores]".to_owned(), place, &known(PARTS, "cores"), top.findings());
    let burst = section.whole("burst", Unit::None, 1, BURST_MAX).unwrap_or(64);
    let ordered = section.flag("ordered").unwrap_or(true);
    let mut map =
        Map::from_iter([("burst".to_owned(), burst.into()), ("ordered".to_owned(), ordered.into())]);
    let shared = section.flag("shared").unwrap_or(false);
    map.insert("shared".to_owned(), shared.into());
    let mut time = |key: &str| {
        let time = section.time(key).unwrap_or(Duration::ZERO);
        map.insert(key.to_owned(), seconds(time));
        time
    };
    let serial = Serial {
        burst: burst as usize,
        take: time("take"),
        take_packet: time("take_packet"),
        complete: time("complete"),
        complete_packet: time("complete_packet"),
        ordered,
        shared,
    };
    refuse(top, &section, traffic);
    if let Some(keys) = resolved.get_mut("traffic").and_then(Json::as_object_mut) {
        keys.remove("suites");
    }
    resolved.remove("scheduler");
    resolved.remove("bus");
    for one in resolved.get_mut("processor").and_then(Json::as_array_mut).into_iter().flatten() {
        if let Some(keys) = one.as_object_mut() {
            keys.retain(|key, _| RESOLVED.contains(&key.as_str()));
        }
    }
    resolved.insert("cores".to_owned(), map.into());
    Some(serial)
}

/// Refuses what has no effect on cores.
fn refuse(top: &Section<'_>, section: &Section<'_>, traffic: Option<&Traffic>) {
    for key in ["scheduler", "bus", "class"].into_iter().filter(|key| top.has(key)) {
        let message =
            format!("[{key}] has no effect with [cores]: the core that is free takes the next burst");
        top.conflict(key, message, format!("remove [{key}], or [cores]"));
    }
    for (table, place) in tables(top, "processor") {
        // Its keys have been checked already.
        let keys = known(PARTS, "processor");
        let one = Section::new(table, "this [[processor]]".to_owned(), place, &keys, top.findings());
        if one.text("kind") == Some("accelerator") {
            let help = "cores are of kind `cpu`; an accelerator is for a [scheduler]";
            one.conflict("kind", "an accelerator has no effect with [cores]", help);
        }
        for key in keys.into_iter().filter(|key| one.has(key) && !OF_A_CORE.contains(key)) {
            one.conflict(key, format!("`{key}` has no effect with [cores]"), "remove it, or [cores]");
        }
    }
    for (table, place) in tables(top, "traffic") {
        let one =
            Section::new(table, "[traffic]".to_owned(), place, &known(PARTS, "traffic"), top.findings());
        if one.has("suites") {
            let help = "give the cost of the suite to the processors";
            one.conflict("suites", "`suites` has no effect with [cores]: every core can do all", help);
        }
    }
    if traffic.is_some_and(|traffic| Stream::new(traffic, 0).packets() > PACKETS_MAX) {
        let message = format!("more than {PACKETS_MAX} packets, which a run with [cores] keeps in memory");
        section.conflict("burst", message, "set `packets` in [traffic]");
    }
}
