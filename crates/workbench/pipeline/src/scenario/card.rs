//! `model = "inline-card"`: a chain of resources that every packet crosses (models.md 3, after \[G\]).
//!
//! ```text
//! model = "inline-card"
//! payload = 8942               # bytes of each packet that count as carried
//! headers = 58                 # bytes that cross every resource with each packet
//! offered = "893 Mbit/s"       # of payload
//! distribution = "constant"    # of the times between packets: constant | exponential
//! memory_transfers = 6         # crossings of the resource `memory`
//! buffer = 64                  # packets each resource can hold, for `simulate`
//! transfer_packets = 7         # packets that the card cuts out of each transfer
//! direction = "send"           # send | receive: the resources in the order of the file, or the other way round
//! duration = "500 ms"
//! [[resource]]
//! name = "memory"
//! rate = "8 Gbit/s"
//! [[resource]]
//! name = "mac"
//! rate = "1 Gbit/s"
//! crossings = 1
//! overhead_bytes = 38          # beside `headers`: framing
//! overhead = "0 s"             # time of each crossing beside the bytes'
//! takes = "packet"             # packet | transfer: what has `headers` and the overheads once
//! units = 1                    # equal units in parallel
//! depth = 2                    # a core with a pipeline in a chained mode: blocks that it holds ...
//! streams = 1                  # ... and streams that fill it
//! [[resource]]
//! name = "driver"
//! rate = "10 Gbit/s"
//! interrupt = "5 us"           # time of each interrupt ...
//! interrupt_packets = 8        # ... for so many packets ...
//! interrupt_timeout = "100 us" # ... or after so long
//! [[resource]]
//! name = "cpu"
//! seen = "893 Mbit/s"          # a processor that was busy for this share ...
//! busy = 0.38                  # ... of its time at this rate of payload
//! ```

use std::cell::RefCell;
use std::path::Path;

use forebay_diagnostics::{FileErrors, Findings, Place};
use forebay_models::card::{Card, Interleave, Interrupts, Resource};
use forebay_scenario::idle::{self, Idle};
use forebay_scenario::{Section, Table, Unit, tables};
use serde_json::{Map, Value as Json};

use super::{CARD_PARTS, Timing, is_of, known, schema, timing};
use crate::description::Pipeline;
use crate::figures::Outcome;

const BYTES_MAX: u64 = 1 << 30;
const BUFFER: u64 = 64;
/// The resource that `memory_transfers` are crossings of.
const MEMORY: &str = "memory";
/// The most units of a resource, and places of a pipeline.
const LANES_MAX: u64 = 4_096;
/// Keys of a resource that say what it does with several packets.
const OF_PACKETS: &[&str] =
    &["takes", "units", "depth", "streams", "interrupt", "interrupt_packets", "interrupt_timeout"];

/// An inline card and what it is offered.
#[derive(Clone, Debug)]
pub struct CardScenario {
    /// The resources.
    pub card: Card,
    /// Bytes of each packet that count as carried.
    pub payload: u32,
    /// Payload offered, in bit/s.
    pub offered_bps: f64,
    /// The chain as a pipeline, for its simulation.
    pub pipeline: Pipeline,
    /// Simulations to make.
    pub runs: usize,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The scenario with every default filled in, in the form of the file.
    pub resolved: Json,
}

impl CardScenario {
    /// Reads a scenario file with what `--set` was given.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(path: &Path, sets: &[String]) -> Result<CardScenario, FileErrors> {
        CardScenario::parse(&forebay_scenario::load(path)?, &path.display().to_string(), sets)
    }

    /// Reads a scenario from `text`, calling it `name` in errors.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, name: &str, sets: &[String]) -> Result<CardScenario, FileErrors> {
        forebay_scenario::read(text, name, sets, read)
    }

    /// The payload that a run of it carried, in bit/s.
    pub fn payload_bps(&self, outcome: &Outcome) -> f64 {
        outcome.throughput_pps * 8.0 * f64::from(self.payload)
    }

    /// [`CardScenario::resolved`] as a scenario file.
    pub fn resolved_toml(&self) -> String {
        toml::to_string(&self.resolved).expect("a tree of plain values")
    }
}

fn read(root: &Table, findings: &RefCell<Findings>) -> Option<CardScenario> {
    let whole = Place { source: 0, span: 0..0 };
    let top = Section::new(root, "the scenario".to_owned(), whole, &known(CARD_PARTS, ""), findings);
    is_of(&top, "inline-card", "model = \"inline-card\"")?;
    let mut resolved = Map::new();
    resolved.insert("model".to_owned(), "inline-card".into());
    let Timing { seed, duration, warm_up, runs } = timing(&top, None, &mut resolved);
    for (key, example) in [("payload", "payload = 8942"), ("offered", "offered = \"893 Mbit/s\"")] {
        if !top.has(key) {
            top.missing(key, example);
        }
    }
    let payload = top.whole("payload", Unit::Bytes, 1, BYTES_MAX);
    let headers = top.whole("headers", Unit::Bytes, 0, BYTES_MAX).unwrap_or(0);
    let offered = top.positive("offered", Unit::Rate).map(|rate| rate.as_f64());
    let distribution = top.word("distribution", &["constant", "exponential"]).unwrap_or("constant");
    let transfers = top.not_negative("memory_transfers", Unit::None);
    let buffer = top.whole("buffer", Unit::None, 1, u32::MAX.into()).unwrap_or(BUFFER);
    let direction = top.word("direction", &["send", "receive"]);
    let given = top.whole("transfer_packets", Unit::None, 1, u32::MAX.into());
    let transfer_packets = given.unwrap_or(1) as u32;
    if u64::from(transfer_packets) > buffer {
        let message =
            format!("a transfer is of {transfer_packets} packets, and a resource can hold {buffer}");
        top.conflict("transfer_packets", message, format!("give `buffer = {transfer_packets}` or more"));
    }
    let resources = resources(&top, headers, transfers, buffer, &mut resolved);
    let card = Card { resources, transfer_packets, poisson: distribution == "exponential" };
    if let Some(transfers) = transfers {
        resolved.insert("memory_transfers".to_owned(), transfers.into());
        if !card.resources.iter().any(|one| one.name == MEMORY) {
            let help = "name the resource that they cross `memory`";
            top.conflict("memory_transfers", "there is no resource `memory`", help);
        }
    }
    if !findings.borrow().is_empty() {
        return None;
    }
    let (payload, offered_bps) = (payload? as u32, offered?);
    resolved.insert("payload".to_owned(), payload.into());
    resolved.insert("headers".to_owned(), headers.into());
    resolved.insert("offered".to_owned(), offered_bps.into());
    resolved.insert("distribution".to_owned(), distribution.into());
    resolved.insert("buffer".to_owned(), buffer.into());
    given.map(|packets| resolved.insert("transfer_packets".to_owned(), packets.into()));
    direction.map(|word| resolved.insert("direction".to_owned(), word.into()));
    let mut pipeline =
        Pipeline { seed, duration, warm_up, ..Pipeline::card(&card, payload, offered_bps, buffer as u32) };
    if direction == Some("receive") {
        pipeline.stages.reverse();
    }
    if let Err(what) = pipeline.check() {
        top.conflict("resource", what.0, "see docs/models.md, section Inline cards");
        return None;
    }
    let mut notes = Vec::new();
    if card.resources.iter().any(|one| one.crossings > 0.0 && one.crossings != 1.0) {
        notes.push("a resource crossed several times is simulated as one stage of all crossings".to_owned());
    }
    note_idle(root, &top, &card, &mut notes);
    Some(CardScenario { card, payload, offered_bps, pipeline, runs, notes, resolved: resolved.into() })
}

/// Notes keys that others disable.
fn note_idle(root: &Table, top: &Section<'_>, card: &Card, notes: &mut Vec<String>) {
    let constant = Idle {
        section: "",
        keys: &["seed", "runs"],
        by: "distribution",
        of: "",
        default: "constant",
        values: &["constant"],
    };
    idle::note(root, top, &[constant], notes);
    let tables = tables(top, "resource");
    let mut idle = |table: &Table, resource: &Resource, keys: &[&str], why: &str| {
        for key in keys.iter().filter(|key| table.get(key).is_some()) {
            notes.push(format!("`{key}` of `{}` has no effect{why}", resource.name));
        }
    };
    for ((table, _), resource) in tables.iter().zip(&card.resources) {
        if resource.crossings == 0.0 {
            let all = [&["overhead_bytes", "overhead"], OF_PACKETS].concat();
            idle(table, resource, &all, ": nothing crosses it");
            continue;
        }
        if card.transfer_packets == 1 {
            idle(table, resource, &["takes"], " with `transfer_packets = 1`");
        }
        if resource.interleave.is_some_and(|one| one.depth == 1) {
            idle(table, resource, &["streams"], " with `depth = 1`");
        }
        if resource.interrupts.is_some_and(|one| one.packets == 1) {
            idle(table, resource, &["interrupt_timeout"], " with `interrupt_packets = 1`");
        }
    }
    if top.has("transfer_packets") && !card.resources.iter().any(|one| one.whole && one.crossings > 0.0) {
        notes.push("`transfer_packets` has no effect: no resource has `takes = transfer`".to_owned());
    }
    if top.has("direction") && card.resources.len() < 2 {
        notes.push("`direction` has no effect with a single resource".to_owned());
    }
    if top.has("headers") && tables.iter().all(|(table, _)| table.get("seen").is_some()) {
        notes
            .push("`headers` has no effect: what was seen of every resource has everything in it".to_owned());
    }
}

fn resources(
    top: &Section<'_>,
    headers: u64,
    transfers: Option<f64>,
    buffer: u64,
    resolved: &mut Map<String, Json>,
) -> Vec<Resource> {
    let tables = tables(top, "resource");
    if tables.is_empty() && !top.has("resource") {
        top.missing("resource", "[[resource]]");
    }
    let mut resources: Vec<Resource> = Vec::new();
    let mut maps = Vec::new();
    for (number, (table, place)) in tables.into_iter().enumerate() {
        let section = Section::new(
            table,
            "this [[resource]]".to_owned(),
            place,
            &known(CARD_PARTS, "resource"),
            top.findings(),
        );
        let name = section.text("name").map_or_else(|| format!("resource{number}"), str::to_owned);
        if resources.iter().any(|known| known.name == name) {
            section.conflict("name", format!("there is a resource `{name}` already"), "give it another name");
        }
        let mut map = Map::from_iter([("name".to_owned(), name.as_str().into())]);
        if let Some(resource) = resource(&section, &name, headers, transfers, &mut map) {
            resources.push(of_packets(&section, resource, buffer, &mut map));
        }
        maps.push(map.into());
    }
    resolved.insert("resource".to_owned(), Json::Array(maps));
    resources
}

fn resource(
    section: &Section<'_>,
    name: &str,
    headers: u64,
    transfers: Option<f64>,
    map: &mut Map<String, Json>,
) -> Option<Resource> {
    if section.has("seen") || section.has("busy") {
        for key in [&["rate", "crossings", "overhead_bytes", "overhead"], OF_PACKETS].concat() {
            if section.has(key) {
                let message = format!("`{key}` means nothing where `seen` and `busy` are given");
                section.conflict(key, message, "what was seen has everything in it");
            }
        }
        for (key, example) in [("seen", "seen = \"893 Mbit/s\""), ("busy", "busy = 0.38")] {
            if !section.has(key) {
                section.missing(key, example);
            }
        }
        let (seen, busy) = (section.positive("seen", Unit::Rate), section.positive("busy", Unit::None));
        let (seen, busy) = (seen?.as_f64(), busy?.as_f64());
        map.extend([("seen".to_owned(), seen.into()), ("busy".to_owned(), busy.into())]);
        if name == MEMORY && transfers.is_some() {
            let message = "`memory_transfers` means nothing where `memory` has `seen` and `busy`";
            section.conflict("seen", message, "what was seen has everything in it");
        }
        return Some(Resource::new(name, seen / busy, 1.0));
    }
    if !section.has("rate") {
        section.missing("rate", "rate = \"1.06 Gbit/s\"");
    }
    let is_memory = name == MEMORY;
    if is_memory && transfers.is_some() && section.has("crossings") {
        let help = "`memory_transfers` says how often memory is crossed";
        section.conflict("crossings", "both `memory_transfers` and `crossings` are given", help);
    }
    let given = section.not_negative("crossings", Unit::None);
    let crossings = given.or(transfers.filter(|_| is_memory)).unwrap_or(1.0);
    let bytes = section.whole("overhead_bytes", Unit::Bytes, 0, BYTES_MAX).unwrap_or(0);
    let overhead_s = section.time("overhead").map_or(0.0, |time| time.as_secs());
    let rate_bps = section.positive("rate", Unit::Rate)?.as_f64();
    map.insert("rate".to_owned(), rate_bps.into());
    if !(is_memory && transfers.is_some()) {
        map.insert("crossings".to_owned(), crossings.into());
    }
    map.insert("overhead_bytes".to_owned(), bytes.into());
    map.insert("overhead".to_owned(), overhead_s.into());
    let overhead_bytes = (headers + bytes) as f64;
    let name = name.to_owned();
    Some(Resource { name, rate_bps, crossings, overhead_bytes, overhead_s, ..Resource::default() })
}

/// The resource with what it does with several packets: those of a transfer, of an interrupt, or side by side.
fn of_packets(
    section: &Section<'_>,
    resource: Resource,
    buffer: u64,
    map: &mut Map<String, Json>,
) -> Resource {
    let number = |key| section.whole(key, Unit::None, 1, LANES_MAX).map(|number| number as u32);
    let takes = section.word("takes", &["packet", "transfer"]);
    let (units, depth, streams) = (number("units"), number("depth"), number("streams"));
    if section.has("streams") && depth.is_none() {
        let message = "`streams` means nothing without `depth`: one stream fills the core";
        section.conflict("streams", message, "give `depth`, or take it away");
    }
    let packets = section.whole("interrupt_packets", Unit::None, 1, schema::WORKERS);
    let (cost, timeout) = (section.time("interrupt"), section.time("interrupt_timeout"));
    for key in ["interrupt_packets", "interrupt_timeout"] {
        if section.has(key) && !section.has("interrupt") {
            let message = format!("`{key}` means nothing without `interrupt`, the time of one");
            section.conflict(key, message, "give `interrupt`, or take it away");
        }
    }
    if section.has("interrupt") && takes == Some("transfer") {
        let message = "a resource that takes transfers has a cost once for each already";
        section.conflict("interrupt", message, "give `overhead`, or `takes = \"packet\"`");
    }
    if let Some(packets) = packets.filter(|&packets| packets > buffer) {
        let message = format!("an interrupt waits for {packets} packets, and a resource can hold {buffer}");
        section.conflict("interrupt_packets", message, format!("give `buffer = {packets}` or more"));
    }
    for (key, value) in [("units", units), ("depth", depth), ("streams", streams)] {
        value.map(|value| map.insert(key.to_owned(), value.into()));
    }
    takes.map(|word| map.insert("takes".to_owned(), word.into()));
    packets.map(|packets| map.insert("interrupt_packets".to_owned(), packets.into()));
    for (key, time) in [("interrupt", cost), ("interrupt_timeout", timeout)] {
        time.map(|time| map.insert(key.to_owned(), time.as_secs().into()));
    }
    let interrupts = |cost: forebay_time::Duration| Interrupts {
        cost_s: cost.as_secs(),
        packets: packets.unwrap_or(1) as u32,
        timeout_s: timeout.map(|time| time.as_secs()),
    };
    Resource {
        whole: takes == Some("transfer"),
        interrupts: cost.map(interrupts),
        interleave: depth.map(|depth| Interleave { depth, streams: streams.unwrap_or(1) }),
        more_units: units.unwrap_or(1) - 1,
        ..resource
    }
}
