//! What a gateway's file may hold: one list from which the reader, its hints, the masking of what is shown and the
//! reference (`docs/reference/gateway.md`) take every key.

pub(super) mod links;
mod operation;
pub(super) mod processing;

use forebay_processors::{CORE, KINDS};
use forebay_scenario::schema::key;
pub use forebay_scenario::schema::{Absent, Key, Part, TEXTS, Takes};

/// A section that stands once.
const fn once(section: &'static str, keys: &'static [Key]) -> Part {
    Part::once(section, keys)
}

/// A section that may stand several times.
const fn several(section: &'static str, keys: &'static [Key]) -> Part {
    Part::several(section, keys)
}

/// Every part, in the order of the reference.
pub const PARTS: &[Part] = &parts_of_all_kinds();

/// The parts before those of the kinds of processors.
const BEFORE: &[Part] = &[
    operation::TOP,
    links::INSIDE,
    links::INSIDE.of("tun", links::INSIDE_TUN),
    links::INSIDE.of("xdp", links::INSIDE_XDP),
    links::OUTSIDE,
    links::OUTSIDE.of("udp", links::OUTSIDE_UDP),
    links::OUTSIDE.of("raw", links::OUTSIDE_RAW),
    links::OUTSIDE.of("xdp", links::OUTSIDE_XDP),
    operation::KEYS,
    operation::KEYS.of("static", operation::KEYS_STATIC),
    operation::KEYS.of("xfrm", operation::KEYS_XFRM),
    processing::PROCESSOR,
    processing::PROCESSOR.of(CORE, processing::CORE),
];

/// Those after them.
const AFTER: &[Part] = &[
    processing::BUS,
    processing::SCHEDULER,
    processing::CLASS,
    processing::LIMITS,
    operation::GUARD,
    operation::CONTROL,
    operation::METRICS,
    operation::LOG,
    operation::PRIVILEGES,
    operation::TAPS,
];

/// Sections that had another name in older versions: that name, how it was written, and how it is written now.
pub const RENAMED: &[(&str, &str, &str)] =
    &[("plain", "[plain]", "[inside]"), ("protected", "[[protected]]", "[[outside]]")];

const fn parts_of_all_kinds() -> [Part; BEFORE.len() + KINDS.len() + AFTER.len()] {
    let mut parts = [operation::TOP; BEFORE.len() + KINDS.len() + AFTER.len()];
    let mut at = 0;
    while at < parts.len() {
        parts[at] = if at < BEFORE.len() {
            BEFORE[at]
        } else if at < BEFORE.len() + KINDS.len() {
            let kind = KINDS[at - BEFORE.len()];
            processing::PROCESSOR.of(kind.word, kind.keys)
        } else {
            AFTER[at - BEFORE.len() - KINDS.len()]
        };
        at += 1;
    }
    parts
}

/// The parts of a section.
pub fn parts(section: &str) -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(move |part| part.section == section)
}

/// The sections by name, each once.
pub fn sections() -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(|part| part.kind.is_empty() && !part.section.is_empty())
}

/// Whether a section is called so, or a key at the top of the file.
pub fn is_section(name: &str) -> bool {
    sections().any(|part| part.section == name)
        || parts("").any(|part| part.keys.iter().any(|key| key.name == name))
}

/// Whether any section has such a key, with its section in front or not.
pub fn is_known(key: &str) -> bool {
    let (section, key) = key.split_once('.').unwrap_or(("", key));
    let inside = section.is_empty() || sections().any(|part| part.section == section);
    inside && PARTS.iter().flat_map(|part| part.keys).any(|known| known.name == key)
}
