//! The schema of a gateway configuration: the one list of keys for the reader, its hints, the masking of quoted text, and the
//! reference (`docs/reference/gateway.md`).

mod disabled;
pub(super) mod links;
mod offloads;
mod operation;
pub(super) mod processing;

use std::sync::LazyLock;

use forebay_processors::{CORE, kinds};
use forebay_scenario::Unit;
use forebay_scenario::schema::key;
pub use forebay_scenario::schema::{Absent, Key, Part, TEXTS, Takes};

use forebay_sas::OtherKeys;

pub use disabled::{DISABLED, IDLE, POLICY_KEYS, WITHOUT_TIMES, Without};

/// A section that stands once.
const fn once(section: &'static str, keys: &'static [Key]) -> Part {
    Part::once(section, keys)
}

/// A section that may stand several times.
const fn several(section: &'static str, keys: &'static [Key]) -> Part {
    Part::several(section, keys)
}

/// Every part, in the order of the reference; those of registered processors and policies among them.
pub static PARTS: LazyLock<Vec<Part>> = LazyLock::new(|| {
    let of_kinds = kinds().into_iter().map(|kind| processing::PROCESSOR.of(kind.word, kind.keys));
    let parts = BEFORE.iter().copied().chain(of_kinds).chain(AFTER.iter().copied());
    parts.map(with_registered).collect()
});

/// A part with the words of all kinds of processors, and with the words and parameters of registered policies. What is
/// made here lives as long as the process.
fn with_registered(part: Part) -> Part {
    let words = |key: &Key, more: Vec<&'static str>| match key.takes {
        Takes::Word(words) => {
            Key { takes: Takes::Word(words.iter().copied().chain(more).collect::<Vec<_>>().leak()), ..*key }
        }
        _ => *key,
    };
    let keys: Vec<Key> = match (part.section, part.kind) {
        ("processor", "") => {
            let all = || kinds().into_iter().map(|kind| kind.word).collect();
            part.keys.iter().map(|key| if key.name == "kind" { words(key, all()) } else { *key }).collect()
        }
        ("scheduler", "") => {
            let policies = forebay_scheduler::registered();
            let all = || policies.iter().map(|policy| policy.word).collect();
            let of_all =
                part.keys.iter().map(|key| if key.name == "policy" { words(key, all()) } else { *key });
            let parameters = policies.iter().flat_map(|policy| policy.parameters).map(|one| {
                let default: &'static str = one.default.to_string().leak();
                let takes = Takes::Whole(Unit::None, one.least, one.most);
                key(one.name, takes, Absent::Is(default), one.meaning, default)
            });
            of_all.chain(parameters).collect()
        }
        _ => return part,
    };
    Part { keys: keys.leak(), ..part }
}

/// The parts before those of the kinds of processors.
const BEFORE: &[Part] = &[
    operation::TOP,
    links::INSIDE,
    links::INSIDE.of("tun", links::INSIDE_TUN),
    links::INSIDE.of("xdp", links::INSIDE_XDP),
    links::INSIDE.of("dpdk", links::INSIDE_DPDK),
    links::OUTSIDE,
    links::OUTSIDE.of("udp", links::OUTSIDE_UDP),
    links::OUTSIDE.of("raw", links::OUTSIDE_RAW),
    links::OUTSIDE.of("xdp", links::OUTSIDE_XDP),
    links::OUTSIDE.of("dpdk", links::OUTSIDE_DPDK),
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
    offloads::OFFLOADS,
    operation::PAIR,
    operation::CLUSTER,
    operation::CONTROL,
    operation::METRICS,
    operation::PAGE,
    operation::LOG,
    operation::PRIVILEGES,
    operation::TAPS,
];

/// Sections that had another name in older versions: that name, how it was written, and how it is written now.
pub const RENAMED: &[(&str, &str, &str)] =
    &[("plain", "[plain]", "[inside]"), ("protected", "[[protected]]", "[[outside]]")];

/// What a gateway's file may hold beside SAs and policies.
pub(super) const OTHER_KEYS: OtherKeys = OtherKeys { is_section, is_known, is_header, takes_names: true };

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

/// Whether the line begins a section.
fn is_header(line: &str) -> bool {
    sections().any(|part| line.starts_with(&part.header()))
}

/// Whether any section has such a key, with its section in front or not.
pub fn is_known(key: &str) -> bool {
    let (section, key) = key.split_once('.').unwrap_or(("", key));
    let inside = section.is_empty() || sections().any(|part| part.section == section);
    inside && PARTS.iter().flat_map(|part| part.keys).any(|known| known.name == key)
}
