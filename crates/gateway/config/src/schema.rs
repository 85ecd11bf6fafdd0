//! What a gateway's file may hold: one list from which the reader, its hints, the masking of what is shown and the
//! reference (`docs/gateway.md`) take every key.

pub(super) mod links;
mod operation;
pub(super) mod processing;

use std::fmt;

use forebay_scenario::Unit;

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// A string.
    Text,
    /// A path, relative to the directory of the file.
    Path,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number of a unit, from the least to the most.
    Whole(Unit, u64, u64),
    /// A time from the least to the most.
    Time(&'static str, &'static str),
    /// A number from the least to the most.
    Number(f64, f64),
    /// What these words say.
    Other(&'static str),
}

/// What holds where a key is not given.
#[derive(Clone, Copy, Debug)]
pub enum Absent {
    /// The key has to be given.
    Required,
    /// This value, as it would be written.
    Is(&'static str),
    /// What these words say.
    Means(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What holds without it.
    pub absent: Absent,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// A value, as it is written.
    pub example: &'static str,
}

/// The keys of a section, or those of a section of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, without brackets; empty for the top of the file.
    pub section: &'static str,
    /// Whether it is written in double brackets.
    pub several: bool,
    /// The `kind` (of `[keys]` the `source`) that it is for; empty for all.
    pub kind: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

/// A key of [`Part::keys`].
const fn key(
    name: &'static str,
    takes: Takes,
    absent: Absent,
    meaning: &'static str,
    example: &'static str,
) -> Key {
    Key { name, takes, absent, meaning, example }
}

/// A section that stands once.
const fn once(section: &'static str, keys: &'static [Key]) -> Part {
    Part { section, several: false, kind: "", keys }
}

/// A section that may stand several times.
const fn several(section: &'static str, keys: &'static [Key]) -> Part {
    Part { section, several: true, kind: "", keys }
}

impl Part {
    /// The same section for one kind.
    const fn of(self, kind: &'static str, keys: &'static [Key]) -> Part {
        Part { kind, keys, ..self }
    }

    /// The section as it is written.
    pub fn header(&self) -> String {
        match (self.section, self.several) {
            ("", _) => "the top of the file".to_owned(),
            (section, true) => format!("[[{section}]]"),
            (section, false) => format!("[{section}]"),
        }
    }
}

/// Every part, in the order of the reference.
pub const PARTS: &[Part] = &[
    operation::TOP,
    links::PLAIN,
    links::PLAIN.of("tun", links::PLAIN_TUN),
    links::PLAIN.of("xdp", links::PLAIN_XDP),
    links::PROTECTED,
    links::PROTECTED.of("udp", links::PROTECTED_UDP),
    links::PROTECTED.of("raw", links::PROTECTED_RAW),
    links::PROTECTED.of("xdp", links::PROTECTED_XDP),
    operation::KEYS,
    operation::KEYS.of("static", operation::KEYS_STATIC),
    operation::KEYS.of("xfrm", operation::KEYS_XFRM),
    processing::PROCESSOR,
    processing::PROCESSOR.of("core", processing::CORE),
    processing::PROCESSOR.of("card", processing::CARD),
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

impl Key {
    /// The line that gives this key.
    pub fn line(&self) -> String {
        format!("{} = {}", self.name, self.example)
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Flag => f.write_str("`true`, `false`"),
            Takes::Text => f.write_str("a string"),
            Takes::Path => f.write_str("a path"),
            Takes::Word(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                f.write_str(&quoted.join(", "))
            }
            Takes::Whole(unit, least, most) => {
                let unit = match unit {
                    Unit::Bytes => " bytes",
                    Unit::Frequency => " Hz",
                    Unit::Rate => " bit/s",
                    Unit::PacketRate => " a second",
                    Unit::Time => " s",
                    Unit::None => "",
                };
                match most {
                    &u64::MAX => write!(f, "{least}{unit} on"),
                    _ => write!(f, "{least} to {most}{unit}"),
                }
            }
            Takes::Time(least, most) => write!(f, "{least} to {most}"),
            Takes::Number(least, most) => write!(f, "{least} to {most}"),
            Takes::Other(words) => f.write_str(words),
        }
    }
}
