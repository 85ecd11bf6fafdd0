//! What can be wrong with the keys and values of a TOML file.

use std::fmt;

use crate::finding::Fault;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    Unreadable {
        /// Why not.
        error: String,
    },
    /// The text is not TOML.
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// A `--set` without `=`, or with an empty key.
    NoAssignment,
    /// A `--set` that removes a key that is not there.
    NotThere {
        /// The key.
        key: String,
        /// The nearest of those that are there.
        nearest: Option<String>,
    },
    /// A `--set` that goes into something that has no inside.
    NotInside {
        /// The step that cannot be done.
        step: String,
        /// What is there.
        found: &'static str,
    },
    /// A `--set` that names an element that is not in its list.
    NoElement {
        /// The step.
        step: String,
        /// The names in the list.
        names: Vec<String>,
    },
    /// A key that means nothing there.
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest known one; empty if none is near.
        nearest: String,
    },
    /// A key that has no default is absent.
    MissingKey {
        /// Where it should be.
        table: String,
        /// The key.
        key: &'static str,
        /// An example.
        example: &'static str,
    },
    /// A value of the wrong type.
    WrongType {
        /// The key.
        key: String,
        /// What it is.
        found: &'static str,
        /// What would be right.
        expected: String,
    },
    /// A word that means nothing for this key.
    UnknownWord {
        /// The key.
        key: String,
        /// The word.
        found: String,
        /// All that mean something.
        expected: Vec<String>,
    },
    /// A quantity that is none, or of another dimension.
    BadQuantity {
        /// The key.
        key: String,
        /// As it was written.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A number outside its range.
    OutOfRange {
        /// The key.
        key: String,
        /// As it was written.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Keys that cannot stand together, or not with what else is said.
    Conflict {
        /// What does not fit.
        message: String,
        /// What to do.
        help: String,
    },
    /// The trace cannot be used.
    Trace {
        /// What is wrong with it, with its file and line.
        message: String,
        /// What to do.
        help: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable { error } => write!(f, "the scenario cannot be read: {error}"),
            Problem::Syntax { message } => write!(f, "not TOML: {message}"),
            Problem::NoAssignment => f.write_str("`--set` without a key or without `=`"),
            Problem::NotThere { key, .. } => write!(f, "there is no `{key}` to remove"),
            Problem::NotInside { step, found } => write!(f, "{found} has no key `{step}`"),
            Problem::NoElement { step, .. } => write!(f, "the list has no element `{step}`"),
            Problem::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Problem::MissingKey { table, key, .. } => write!(f, "{table} has no `{key}`"),
            Problem::WrongType { key, found, .. } => write!(f, "`{key}` is {found}"),
            Problem::UnknownWord { key, found, .. } => write!(f, "unknown {key} `{found}`"),
            Problem::BadQuantity { key, found, .. } => write!(f, "`{key}` is `{found}`"),
            Problem::OutOfRange { key, found, .. } => write!(f, "`{key}` is {found}"),
            Problem::Conflict { message, .. } | Problem::Trace { message, .. } => f.write_str(message),
        }
    }
}

impl Problem {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Problem::Unreadable { .. } => "is the path right?".to_owned(),
            Problem::Syntax { .. } => {
                "sections are like `[traffic]`, lines like `rate = \"1 Gbit/s\"`".to_owned()
            }
            Problem::NoAssignment => "write `--set processor.card.count=2`".to_owned(),
            Problem::NotThere { nearest: Some(key), .. } => {
                format!("did you mean `{key}`? `--set key=value` gives a value")
            }
            Problem::NotThere { nearest: None, .. } => "`--set key=value` gives a value".to_owned(),
            Problem::NotInside { .. } => "the path goes too far: take the last step away".to_owned(),
            Problem::NoElement { step, names } => match nearest(step, names.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `{name}`? A number, counted from 0, does too"),
                None => "give a number, counted from 0".to_owned(),
            },
            Problem::UnknownKey { nearest, .. } => help_for_key(nearest),
            Problem::MissingKey { example, .. } => format!("add `{example}`"),
            Problem::WrongType { expected, .. } | Problem::OutOfRange { expected, .. } => expected.clone(),
            Problem::BadQuantity { expected, .. } => (*expected).to_owned(),
            Problem::UnknownWord { found, expected, .. } => {
                let words = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                match nearest(found, expected.iter().map(String::as_str)) {
                    Some(near) => format!("expected {words}; did you mean `{near}`?"),
                    None => format!("expected {words}"),
                }
            }
            Problem::Conflict { help, .. } | Problem::Trace { help, .. } => help.clone(),
        }
    }
}

impl Fault for Problem {
    fn help(&self) -> String {
        self.help()
    }

    fn found(&self) -> Option<String> {
        match self {
            Problem::UnknownKey { key: found, .. }
            | Problem::NoElement { step: found, .. }
            | Problem::UnknownWord { found, .. }
            | Problem::BadQuantity { found, .. }
            | Problem::OutOfRange { found, .. } => Some(found.clone()),
            Problem::NotInside { found, .. } | Problem::WrongType { found, .. } => Some((*found).to_owned()),
            _ => None,
        }
    }

    fn expected(&self) -> Option<String> {
        match self {
            Problem::UnknownKey { nearest, .. } => (!nearest.is_empty()).then(|| nearest.clone()),
            Problem::WrongType { expected, .. } | Problem::OutOfRange { expected, .. } => {
                Some(expected.clone())
            }
            Problem::MissingKey { example: expected, .. } | Problem::BadQuantity { expected, .. } => {
                Some((*expected).to_owned())
            }
            Problem::NoElement { names: expected, .. } | Problem::UnknownWord { expected, .. } => {
                Some(expected.join(", "))
            }
            _ => None,
        }
    }
}

/// The candidate with the smallest edit distance, if it is near enough that the word may be a misspelling of it: two edits, or
/// half of the longer one's letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = candidates.into_iter().map(|candidate| (strsim::levenshtein(word, candidate), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    let longer = word.chars().count().max(candidate.chars().count());
    (distance < longer && distance <= (longer / 2).max(2)).then_some(candidate)
}

/// The hint for a key that is not known, with the nearest known one, which is empty if none is near.
pub fn help_for_key(nearest: &str) -> String {
    match nearest {
        "" => "no key here has a similar name: remove it, or look the name up in docs/reference".to_owned(),
        nearest => format!("did you mean `{nearest}`?"),
    }
}
