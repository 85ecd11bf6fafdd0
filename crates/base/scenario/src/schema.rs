//! Keys of files as lists: what each takes, its default and its meaning, for readers, hints and references alike.

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
                let unit = match unit {
                    Unit::Bytes => " bytes",
                    Unit::Frequency => " Hz",
                    Unit::Rate => " bit/s",
                    Unit::PacketRate => " per second",
                    Unit::Time => " s",
                    Unit::None => "",
                };
                match most {
                    &u64::MAX => write!(f, "at least {least}{unit}"),
                    _ => write!(f, "{least} to {most}{unit}"),
                }
            }
            Takes::Time(least, most) => write!(f, "{least} to {most}"),
            Takes::Number(least, most) => write!(f, "{least} to {most}"),
            Takes::Other(words) => f.write_str(words),
        }
    }
}
