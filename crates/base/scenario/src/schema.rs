//! Keys of files as lists: what each takes, its default and its meaning, for readers, hints, references and schemas alike.

use std::fmt;

use crate::Unit;

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
    /// A number of a unit, above zero.
    Positive(Unit),
    /// A number from zero on, in a unit.
    Quantity(Unit),
    /// A number of bytes or packets from 1 on, with k, M, G, T or Ki, Mi, Gi, Ti behind it.
    Amount,
    /// A list whose elements are each this.
    List(&'static Takes),
    /// One of these; the words say it in short.
    Either(&'static str, &'static [Takes]),
    /// What these words say.
    Other(&'static str),
}

/// A string, or several of them in a list.
pub const TEXTS: &[Takes] = &[Takes::Text, Takes::List(&Takes::Text)];

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

/// The keys of a section, or those of a section of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, without brackets; empty for the top of the file. A section inside of another has the name of that one
    /// and a dot in front: `sa.iptfs`.
    pub section: &'static str,
    /// Whether it is written in double brackets.
    pub several: bool,
    /// The `kind` (of `[keys]` the `source`) that it is for; empty for all.
    pub kind: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

impl Part {
    /// A section that stands once.
    pub const fn once(section: &'static str, keys: &'static [Key]) -> Part {
        Part { section, several: false, kind: "", keys }
    }

    /// A section that may stand several times.
    pub const fn several(section: &'static str, keys: &'static [Key]) -> Part {
        Part { section, several: true, kind: "", keys }
    }

    /// The same section for one kind.
    pub const fn of(self, kind: &'static str, keys: &'static [Key]) -> Part {
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

/// The keys that a section may have, of all kinds; at the top of the file (`section` is empty) also the sections.
pub fn known(parts: &'static [Part], section: &str) -> Vec<&'static str> {
    let keys = parts.iter().filter(|part| part.section == section).flat_map(|part| part.keys);
    let keys = keys.map(|key| key.name);
    let sections = parts.iter().map(|part| part.section);
    let sections = sections.filter(|name| section.is_empty() && !name.is_empty() && !name.contains('.'));
    let mut names: Vec<&str> = Vec::new();
    for name in keys.chain(sections) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
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

/// A key, by all that is said of it.
pub const fn key(
    name: &'static str,
    takes: Takes,
    absent: Absent,
    meaning: &'static str,
    example: &'static str,
) -> Key {
    Key { name, takes, absent, meaning, example }
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
                let (kind, unit) = (if *unit == Unit::None { "a whole number, " } else { "" }, suffix(*unit));
                match most {
                    &u64::MAX => write!(f, "{kind}at least {least}{unit}"),
                    _ => write!(f, "{kind}{least} to {most}{unit}"),
                }
            }
            Takes::Time(least, most) => write!(f, "{least} to {most}"),
            &Takes::Number(least, f64::MAX) => write!(f, "a number, at least {least}"),
            Takes::Number(least, most) => write!(f, "a number, {least} to {most}"),
            Takes::Positive(Unit::None) => f.write_str("a number above 0"),
            Takes::Positive(unit) => write!(f, "above 0{}", suffix(*unit)),
            Takes::Quantity(unit) => write!(f, "at least 0{}", suffix(*unit)),
            Takes::Amount => f.write_str("at least 1"),
            Takes::List(each) => write!(f, "a list: {each}"),
            Takes::Either(words, _) | Takes::Other(words) => f.write_str(words),
        }
    }
}

/// What stands behind a number.
fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => " bytes",
        Unit::Frequency => " Hz",
        Unit::Rate => " bit/s",
        Unit::PacketRate => " per second",
        Unit::Energy => " J",
        Unit::Power => " W",
        Unit::Time => " s",
        Unit::None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_those_of_all_kinds_and_at_the_top_the_sections() {
        const NAME: Key = key("name", Takes::Text, Absent::Required, "", "");
        const SIZE: Key = key("size", Takes::Positive(Unit::Bytes), Absent::Required, "", "");
        const LINK: Part = Part::several("link", &[NAME]);
        const PARTS: &[Part] =
            &[Part::once("", &[SIZE]), LINK, LINK.of("tun", &[NAME, SIZE]), Part::once("link.more", &[SIZE])];
        assert_eq!(known(PARTS, ""), ["size", "link"]);
        assert_eq!(known(PARTS, "link"), ["name", "size"]);
        assert_eq!(known(PARTS, "link.more"), ["size"]);
        assert_eq!(SIZE.takes.to_string(), "above 0 bytes");
    }
}
