//! The keys of real processors in `[[processor]]`: batches, and what a running core does besides crypto.

use forebay_scheduler::{KeyCost, Kind};
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use super::decimal::Unit;
use super::section::Section;
use super::{Answers, Feed, Processor, seconds};

/// Keys that mean something with `poll` only.
const MOVES: [&str; 3] = ["move", "feed", "feed_block"];
const LANES_MAX: u64 = 1 << 20;

/// The terms of real processors (docs/models.md, "Real processors"), without which it is the papers'.
pub(super) fn costs(section: &Section<'_>, processor: &mut Processor, map: &mut Map<String, Json>) {
    let mut time = |key: &str| {
        let time = section.time(key)?;
        map.insert(key.to_owned(), seconds(time));
        Some(time)
    };
    let cost = &mut processor.config.cost;
    cost.packet = time("packet").unwrap_or(cost.packet);
    cost.submit = time("submit").unwrap_or(cost.submit);
    cost.wake = time("wake").unwrap_or(cost.wake);
    if let Some(lanes) = section.whole("lanes", Unit::None, 1, LANES_MAX) {
        cost.lanes = lanes as u32;
        map.insert("lanes".to_owned(), lanes.into());
    }
    keys(section, processor, map);
    if let Some(word) = section.word("answers", &["batch", "each"]) {
        processor.answers = if word == "each" { Answers::Each } else { Answers::Batch };
        map.insert("answers".to_owned(), word.into());
    }
}

/// What it costs to have the keys of an SA.
fn keys(section: &Section<'_>, processor: &mut Processor, map: &mut Map<String, Json>) {
    let slots = section.whole("key_slots", Unit::None, 1, u32::MAX.into());
    let [load, session] = ["key_load", "session"].map(|key| {
        let time = section.time(key)?;
        map.insert(key.to_owned(), seconds(time));
        Some(time)
    });
    if let Some(slots) = slots {
        map.insert("key_slots".to_owned(), slots.into());
    }
    if section.has("key_slots") && load.is_none() {
        let message = "`key_slots` means nothing without `key_load`";
        section.conflict("key_slots", message, "add `key_load = \"1 us\"`, or remove it");
    }
    if load.is_some() || session.is_some() {
        let (load, session) = (load.unwrap_or(Duration::ZERO), session.unwrap_or(Duration::ZERO));
        processor.config.keys = Some(KeyCost { slots: slots.unwrap_or(0) as u32, load, session });
    }
}

/// What the running core does with packets besides its jobs.
pub(super) fn moves(
    section: &Section<'_>,
    processor: &mut Processor,
    count: usize,
    polls: bool,
    map: &mut Map<String, Json>,
) {
    for key in MOVES.into_iter().filter(|key| section.has(key) && !polls) {
        let message = format!("`{key}` has no effect without `poll`");
        section.conflict(key, message, "set `poll = true` in [scheduler], or remove this key");
    }
    let mut time = |key: &str| {
        let time = section.time(key)?;
        map.insert(key.to_owned(), seconds(time));
        Some(time)
    };
    processor.moves = time("move");
    processor.feed = Feed {
        packet: time("feed").unwrap_or(Duration::ZERO),
        block: time("feed_block").unwrap_or(Duration::ZERO),
    };
    if processor.moves.is_none() {
        return;
    }
    if processor.config.kind != Kind::Cpu {
        section.conflict(
            "move",
            "an accelerator has no `move`",
            "give `move` to the CPU that runs the gateway",
        );
    }
    if count > 1 {
        let message = format!("`move` is set for {count} processors; one core moves the packets");
        section.conflict(
            "move",
            message,
            "give the running core a [[processor]] of its own, with `count = 1`",
        );
    }
    for key in ["feed", "feed_block", "wake"].into_iter().filter(|key| section.has(key)) {
        let message = format!("the running core has no `{key}`");
        section.conflict(key, message, "remove the key here; it is for the other processors");
    }
}
