//! `[[class]]`: service classes, which packets are theirs and how the scheduler treats them.
//!
//! A class's number is its place in the file. A packet's class is drawn where the classes have a `share`; else
//! it is what the trace says: its column `class`, or the DS field of a capture's packet.

use std::sync::Arc;

use forebay_scheduler::{ClassConfig, DscpMap, Service, Windowing};
use serde_json::{Map, Value as Json};

use super::decimal::Unit;
use super::section::Section;
use super::traffic::{SIZE_KEYS, drawn_sizes};
use super::tree::{Node, Value};
use super::{Class, PARTS, Settings, known, seconds, tables};
use crate::traffic::{DrawnClass, Source, Trace};
use forebay_diagnostics::Problem;

/// The number of classes that [`crate::Arrival::class`] can distinguish.
const MOST: usize = 256;
const SHARE: &str = "a share of the packets, against those of the other classes: share = 0.25";
const DSCP: &str = "code points by name or number, 0 to 63: dscp = [\"EF\", \"CS5\", 44]";

/// An entry while it is being read.
pub(super) struct Entry<'a> {
    section: Section<'a>,
    name: String,
    resolved: Map<String, Json>,
}

/// The entries of the file.
pub(super) fn entries<'a>(top: &Section<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for (number, (table, place)) in tables(top, "class").into_iter().enumerate() {
        let section =
            Section::new(table, "this [[class]]".to_owned(), place, &known(PARTS, "class"), top.findings());
        let name = section.text("name").map_or_else(|| format!("class{number}"), str::to_owned);
        if entries.iter().any(|other| other.name == name) {
            section.conflict("name", format!("there is a class `{name}` already"), "give it another name");
        }
        let resolved = Map::from_iter([("name".to_owned(), name.as_str().into())]);
        entries.push(Entry { section, name, resolved });
    }
    if entries.len() > MOST {
        top.conflict("class", format!("{} classes are too many", entries.len()), format!("at most {MOST}"));
    }
    entries
}

/// Which packets are of which class: what is to be drawn, if anything is; else the trace gets it in its column.
pub(super) fn traffic(
    entries: &mut [Entry<'_>],
    source: &mut Source,
    notes: &mut Vec<String>,
) -> Option<Vec<DrawnClass>> {
    if entries.is_empty() {
        if let Source::Trace(trace) = source {
            Arc::make_mut(trace).dscps = Vec::new();
        }
        return Some(Vec::new());
    }
    if entries.iter().any(|entry| entry.section.has("share")) {
        return drawn(entries, matches!(source, Source::Drawn(_)));
    }
    for entry in entries.iter() {
        if let Some(key) = SIZE_KEYS.iter().chain(&["source"]).find(|key| entry.section.has(key)) {
            let message = format!("`{key}` means nothing for a class without a `share`");
            entry.section.conflict(key, message, "sizes belong to packets that are drawn");
        }
    }
    let Source::Trace(trace) = source else {
        return lacking(entries, "packets that are drawn have no class");
    };
    if entries.iter().any(|entry| entry.section.has("dscp")) || !trace.dscps.is_empty() {
        if trace.dscps.is_empty() {
            return lacking(entries, "the trace is no capture: its packets have no code points");
        }
        let map = code_points(entries, notes)?;
        let trace = Arc::make_mut(trace);
        trace.classes = trace.dscps.iter().map(|&point| map.class(point)).collect();
        trace.dscps = Vec::new();
        return Some(Vec::new());
    }
    if trace.classes.is_empty() {
        return lacking(entries, "the trace has no column `class`");
    }
    beyond(entries, trace, notes);
    Some(Vec::new())
}

fn lacking(entries: &[Entry<'_>], message: &str) -> Option<Vec<DrawnClass>> {
    entries[0].section.conflict("dscp", message, format!("give each class {SHARE}"));
    None
}

/// Says so if packets have higher numbers than there are classes.
fn beyond(entries: &[Entry<'_>], trace: &Trace, notes: &mut Vec<String>) {
    let count = trace.classes.iter().filter(|&&class| usize::from(class) >= entries.len()).count();
    if let Some(last) = entries.last().filter(|_| count > 0) {
        notes.push(format!("{count} packets have a class above the last; they count as `{}`", last.name));
    }
}

fn drawn(entries: &mut [Entry<'_>], has_sizes: bool) -> Option<Vec<DrawnClass>> {
    let mut border = 0;
    let mut classes = Vec::new();
    for entry in entries {
        let Entry { section, resolved, .. } = entry;
        if section.has("dscp") {
            let message = "both `share` and `dscp` are given";
            section.conflict("dscp", message, "a packet's class is drawn, or read from the packet");
        }
        if !section.has("share") {
            section.missing("share", "share = 0.25");
            continue;
        }
        let Some(share) = section.positive("share", Unit::None) else { continue };
        let Some(weight) = share.scaled(9).filter(|weight| (1..1 << 50).contains(weight)) else {
            section.conflict(
                "share",
                format!("this share, {}, is too small or too large", share.as_f64()),
                SHARE,
            );
            continue;
        };
        resolved.insert("share".to_owned(), share.as_f64().into());
        let sizes = drawn_sizes(section, resolved);
        if section.has("source") && !has_sizes {
            let message = "`source` means nothing for packets from a file";
            section.conflict("source", message, "the sizes are the file's");
        }
        border += weight;
        classes.push(DrawnClass { border, sizes });
    }
    Some(classes)
}

/// Maps code points to classes; code points that no class lists belong to the last one.
fn code_points(entries: &mut [Entry<'_>], notes: &mut Vec<String>) -> Option<DscpMap> {
    if entries.iter().all(|entry| !entry.section.has("dscp")) {
        if entries.len() != 3 {
            let help = format!("give each class {DSCP}; or exactly three classes, for RFC 4594's");
            entries[0].section.conflict("dscp", "no class has code points", help);
            return None;
        }
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        notes.push(format!("code points are grouped after RFC 4594: {}", names.join(", ")));
        return Some(DscpMap::rfc4594());
    }
    let mut map = DscpMap::one_class(entries.len().saturating_sub(1) as u8);
    let mut named = [false; 64];
    for (class, Entry { section, resolved, .. }) in entries.iter_mut().enumerate() {
        let Some(list) = section.list("dscp", DSCP) else { continue };
        let mut points = Vec::new();
        for node in list {
            let Some(point) = code_point(section, node) else { continue };
            if std::mem::replace(&mut named[usize::from(point)], true) {
                let message = format!("code point {point} is given twice");
                let problem = Problem::Conflict { message, help: "it has one class".to_owned() };
                section.report(problem, node.place.clone());
            }
            map.set(point, class as u8);
            points.push(Json::from(point));
        }
        resolved.insert("dscp".to_owned(), points.into());
    }
    Some(map)
}

fn code_point(section: &Section<'_>, node: &Node) -> Option<u8> {
    let Value::Text(text) = &node.value else {
        return section.whole_of("dscp", node, Unit::None, 0, 63).map(|point| point as u8);
    };
    let point = DscpMap::code_point(text);
    if point.is_none() {
        let message = format!("there is no code point `{text}`");
        section.report(Problem::Conflict { message, help: DSCP.to_owned() }, node.place.clone());
    }
    point
}

/// How the scheduler treats them. What a class does not say is as in `[scheduler]`.
pub(super) fn settings(
    entries: Vec<Entry<'_>>,
    common: &Settings,
    resolved: &mut Map<String, Json>,
) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    let mut maps = Vec::new();
    for Entry { section, name, resolved: mut map } in entries {
        let config = config(&section, common, &mut map);
        let before = classes.last().map(|class: &Class| class.config.service);
        if config.service == Service::Strict && before.is_some_and(|before| before != Service::Strict) {
            let message = format!("`{name}` is strict but stands behind a weighted class");
            section.conflict("service", message, "strict classes come first, in their order");
        }
        classes.push(Class { name, config });
        maps.push(Json::Object(map));
    }
    if !maps.is_empty() {
        resolved.insert("class".to_owned(), maps.into());
    }
    classes
}

fn config(section: &Section<'_>, common: &Settings, map: &mut Map<String, Json>) -> ClassConfig {
    let word = section.word("service", &["strict", "weighted"]).unwrap_or("strict");
    map.insert("service".to_owned(), word.into());
    let service = if word == "strict" {
        if section.has("weight") {
            let message = "`weight` means nothing for a strict class";
            section.conflict("weight", message, "take it away, or write `service = \"weighted\"`");
        }
        Service::Strict
    } else {
        let weight = section.whole("weight", Unit::None, 1, u32::MAX.into()).unwrap_or(1);
        map.insert("weight".to_owned(), weight.into());
        Service::Weighted { weight: weight as u32 }
    };
    let window = section.whole("window", Unit::None, 1, super::scheduler::WINDOW_MAX).map(|one| one as usize);
    let window = window.unwrap_or(common.window);
    let words = Windowing::ALL.map(|windowing| windowing.word());
    let windowing = section.word("windowing", &words).and_then(|word| word.parse().ok());
    let windowing = windowing.unwrap_or(common.windowing);
    let timeout = section.time("timeout").or(common.timeout);
    let max_bytes = section.whole("max_bytes", Unit::Bytes, 1, u64::MAX).or(common.max_bytes);
    let input = section.whole("input", Unit::None, window as u64, u32::MAX.into());
    let input = input.map(|packets| packets as usize).or(common.input);
    let queue = section.whole("queue", Unit::None, 1, u32::MAX.into());
    let latency_bound = section.time("latency_bound");
    if let Some(bound) = latency_bound {
        map.insert("latency_bound".to_owned(), seconds(bound));
    }
    map.insert("window".to_owned(), window.into());
    map.insert("windowing".to_owned(), windowing.word().into());
    if let Some(timeout) = timeout {
        map.insert("timeout".to_owned(), seconds(timeout));
    }
    for (key, limit) in [("max_bytes", max_bytes), ("input", input.map(|one| one as u64)), ("queue", queue)] {
        if let Some(limit) = limit {
            map.insert(key.to_owned(), limit.into());
        }
    }
    if input.is_some_and(|input| input < window) {
        let message = format!("an input of {} packets never fills a window of {window}", input.unwrap_or(0));
        section.conflict("window", message, "give the class a larger `input`");
    }
    let queue = queue.map_or(usize::MAX, |jobs| jobs as usize);
    let input = input.unwrap_or(usize::MAX);
    ClassConfig { service, window, windowing, timeout, max_bytes, input, queue, latency_bound }
}
