//! The description of a kind of processor.

use std::any::Any;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::Bus;
use forebay_scenario::schema::Key;
use forebay_time::Duration;

use crate::{CORE, KINDS};

/// A kind of processor.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The word for it: `kind` of `[[processor]]`, and `--processor` of the benchmarks.
    pub word: &'static str,
    /// The keys of a `[[processor]]` of this kind, besides those that all have.
    pub keys: &'static [Key],
    /// Makes a device of what a file gives; `None` after a finding.
    pub read: fn(&dyn Values) -> Option<Arc<dyn Device>>,
    /// The device that benchmarks measure where nothing is given.
    pub sample: fn() -> Arc<dyn Device>,
    /// The device that benchmarks measure where its word is followed by a colon and this; `None` if there is no such.
    pub detailed: fn(&str) -> Option<Arc<dyn Device>>,
}

/// What a `[[processor]]` of the file gives, checked against the keys of its kind, with their defaults. A value that
/// cannot be read is a finding, and `None` here.
pub trait Values {
    /// Whether the file itself gives the key.
    fn has(&self, key: &'static str) -> bool;
    /// Says that a key which the file gives has no effect beside the others, with a hint.
    fn conflict(&self, key: &'static str, message: &str, help: &str);
    /// A whole number of the key's unit.
    fn whole(&self, key: &'static str) -> Option<u64>;
    /// A number of things.
    fn count(&self, key: &'static str) -> Option<usize>;
    /// A time.
    fn time(&self, key: &'static str) -> Option<Duration>;
    /// One of the words that the key takes.
    fn word(&self, key: &'static str) -> Option<&'static str>;
    /// A text that is not empty.
    fn text(&self, key: &'static str) -> Option<String>;
    /// A path.
    fn path(&self, key: &'static str) -> Option<PathBuf>;
    /// Proposals; the inner `None` is that the file has no such key.
    fn suites(&self, key: &'static str) -> Option<Option<Vec<Suite>>>;
    /// The bus of a name, as its position among the file's buses; the first where the file has no such key.
    fn bus(&self, key: &'static str) -> Option<usize>;
}

/// A processor that a file describes and that is not open yet.
pub trait Device: Debug + Send + Sync + 'static {
    /// The word of its kind.
    fn word(&self) -> &'static str;

    /// Opens it.
    ///
    /// # Errors
    /// What is lacking, with a hint.
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>>;

    /// What this machine or build lacks to open it, with a hint, as far as that shows without opening it: for `forebay
    /// check`, which changes nothing. Its severity says whether that is an error; a warning where it has none.
    fn lacks(&self) -> Option<miette::Report> {
        None
    }

    /// What makes it slower on this machine than it could be, with a hint; to be asked before it is opened.
    fn slowed(&self) -> Option<miette::Report> {
        None
    }

    /// The suites that it supports, as far as that shows without touching what another process may be using.
    fn suites(&self) -> Option<Vec<Suite>> {
        None
    }

    /// The keys of a `[[processor]]` that describes it, beside `kind` and `name`, with their values in TOML: for files that a
    /// benchmark writes. None where the defaults describe it.
    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Whether opening it takes privileges that the process gives up otherwise, such as to see physical addresses.
    fn takes_privileges(&self) -> bool {
        false
    }

    /// Itself, to be compared or taken for what it is.
    fn as_any(&self) -> &dyn Any;

    /// Whether another one is described alike.
    fn is_like(&self, other: &dyn Device) -> bool;
}

/// What a device may use when it is opened.
pub struct Surroundings<'a> {
    /// The name that it has in all figures.
    pub name: &'a str,
    /// A crypto library on this machine, for a device that computes by one.
    pub library: Box<dyn Processor>,
    /// The emulated buses, in the order of the file.
    pub buses: &'a [Bus],
}

static REGISTERED: RwLock<Vec<&'static Kind>> = RwLock::new(Vec::new());

/// There is a kind with this word already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The word.
    pub word: &'static str,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is a kind of processor `{}` already", self.word)
    }
}

impl std::error::Error for Taken {}

/// Makes a kind known to everything in this process that reads the word of one. To be called at the start of a program,
/// before it reads files.
///
/// # Errors
/// If there is a kind with its word.
pub fn register(kind: &'static Kind) -> Result<(), Taken> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let words = [CORE].into_iter().chain(KINDS.iter().chain(registered.iter().copied()).map(|one| one.word));
    if words.into_iter().any(|word| word == kind.word) {
        return Err(Taken { word: kind.word });
    }
    registered.push(kind);
    Ok(())
}

/// Every kind besides cores: those of this crate, and those that have been registered.
pub fn kinds() -> Vec<&'static Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    KINDS.iter().chain(registered.iter().copied()).collect()
}

/// The device that a word names on the command line: a kind with the device of its benchmarks, or a kind, a colon and what
/// tells the device from others of the kind (`dpdk:crypto_openssl0`, `gpu:1`). `None` if there is no such.
pub fn device(word: &str) -> Option<Arc<dyn Device>> {
    let (kind, detail) = word.split_once(':').map_or((word, None), |(kind, detail)| (kind, Some(detail)));
    let kind = Kind::of(kind)?;
    match detail {
        None => Some((kind.sample)()),
        Some(detail) => (kind.detailed)(detail),
    }
}

impl Kind {
    /// The kind with this word.
    pub fn of(word: &str) -> Option<&'static Kind> {
        kinds().into_iter().find(|kind| kind.word == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word_of_its_own_and_its_samples_bear_it() {
        let words: Vec<_> = [CORE].into_iter().chain(kinds().into_iter().map(|kind| kind.word)).collect();
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{word} twice");
        }
        for kind in KINDS {
            assert_eq!(register(kind), Err(Taken { word: kind.word }));
            let (one, other) = ((kind.sample)(), (kind.sample)());
            assert_eq!(one.word(), kind.word);
            assert!(one.is_like(&*other) && Kind::of(kind.word).is_some());
        }
    }
}
