//! The IVs of every cipher key that may have been used: one table in one file, whichever role the gateway has or had.
//!
//! A key has two marks, one for each half of the IVs ([`Territory`](super::Territory)). To which half a mark belongs follows from its
//! value, so that a gateway that joins or leaves a pair, or whose number changes, keeps both. A gateway of a pair starts
//! behind the mark of its own half, every other process behind both.
//!
//! A key that is not used any more leaves its mark, and nobody can tell whether it will be configured again. Where there are
//! very many, those that the clock has passed are replaced by one, the *floor*, which is at least as high as each of them.
//! Every range starts behind the floor too, so that no IV repeats, whatever the clock does and whichever key comes back.
//!
//! Versions before had a file for each key, or for each role. What they left is read with the table until it is in the
//! table durably; then it is removed. They refuse the new table by its schema, so that none of them starts without the marks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use forebay_planted::{Fault, planted};
use serde::{Deserialize, Serialize};

use super::key_id::KeyId;
use super::table::Table;
use super::{Files, IvStore, IvStoreError, provenance};

/// The file.
pub(super) const FILE: &str = "together.json";
const SCHEMA: u32 = 2;
/// Longest file, in bytes: three quarters of a million keys.
const MAX_LEN: u64 = 64 << 20;
/// So many keys keep marks of their own, behind the clock or not.
pub(super) const KEPT: usize = 1_024;
/// The first IV of the upper half.
pub(super) const HALF: u64 = 1 << 63;

/// Files of versions before: marks of the other gateway of a pair, and the floor.
const OTHER: &str = "peer-ivs.json";
const FLOOR: &str = "floor.json";
/// Longest file with one mark, in bytes; one that Forebay wrote is far shorter.
const MARK_LEN_MAX: u64 = 256;

/// The half that a mark belongs to: it is behind the last IV that may have been used.
pub(super) fn half(mark: u64) -> usize {
    usize::from(mark > HALF)
}

/// What the file says.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    /// All IVs below it count as used, whatever the key.
    floor: u64,
    /// By key and half: the first IV that no reservation has covered; zero if there is none.
    marks: BTreeMap<KeyId, [u64; 2]>,
}

/// A mark of one key, or the floor, as versions before wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    schema: u32,
    reserved_until: u64,
}

/// The schema alone.
#[derive(Deserialize)]
struct AnySchema {
    schema: u32,
}

/// The marks of all keys.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) floor: u64,
    pub(super) of: BTreeMap<KeyId, [u64; 2]>,
    /// Files of versions before whose marks are among these.
    old: Vec<PathBuf>,
    /// Such files that cannot be read: an error for their keys only.
    damaged: BTreeMap<KeyId, IvStoreError>,
}

impl Marks {
    /// All marks in a directory, wherever they are.
    pub(super) fn read(store: &IvStore) -> Result<Marks, IvStoreError> {
        let mut marks = Marks::default();
        let path = store.directory().join(FILE);
        let Some(text) = provenance::read(store.files(), &path, MAX_LEN)? else {
            return marks.with_old(store, false);
        };
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.clone(), why };
        let said: AnySchema = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        if said.schema == super::SCHEMA {
            return marks.with_old(store, true);
        }
        if said.schema != SCHEMA {
            return Err(corrupt(format!("it has schema {}, expected {SCHEMA}", said.schema)));
        }
        let document: Document = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        (marks.floor, marks.of) = (document.floor, document.marks);
        marks.with_old(store, false)
    }

    /// The same with what versions before have left there; `is_old` says whether the table is one of theirs.
    fn with_old(mut self, store: &IvStore, is_old: bool) -> Result<Marks, IvStoreError> {
        let (files, directory) = (store.files(), store.directory());
        for name in [FILE, OTHER].into_iter().filter(|name| is_old || *name != FILE) {
            let path = directory.join(name);
            for (key, mark) in Table::read(files, &path)?.marks {
                let key = key
                    .try_into()
                    .map_err(|why: &str| IvStoreError::Corrupt { path: path.clone(), why: why.to_owned() })?;
                self.raise(key, mark);
            }
        }
        self.floor = self.floor.max(read_mark(files, &directory.join(FLOOR))?.unwrap_or(0));
        let names = match files.names(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
            names => names.map_err(|error| IvStoreError::Read { path: directory.to_owned(), error })?,
        };
        for name in names {
            if name == OTHER || name == FLOOR {
                self.old.push(directory.join(name));
                continue;
            }
            let key = name.strip_suffix(".json").and_then(|stem| KeyId::try_from(stem.to_owned()).ok());
            let Some(key) = key else { continue };
            match read_mark(files, &directory.join(&name)) {
                Ok(mark) => {
                    self.raise(key, mark.unwrap_or(0));
                    self.old.push(directory.join(name));
                }
                Err(error) => drop(self.damaged.insert(key, error)),
            }
        }
        Ok(self)
    }

    /// The marks of a key by halves.
    ///
    /// # Errors
    /// If a file of a version before says something else: which IVs were used is not known.
    pub(super) fn of(&mut self, key: KeyId) -> Result<[u64; 2], IvStoreError> {
        match self.damaged.remove(&key) {
            Some(error) => Err(error),
            None => Ok(self.of.get(&key).copied().unwrap_or_default()),
        }
    }

    /// Raises the mark of a key in the half that it belongs to. Whether it was lower.
    pub(super) fn raise(&mut self, key: KeyId, mark: u64) -> bool {
        let known = &mut self.of.entry(key).or_default()[half(mark)];
        std::mem::replace(known, mark.max(*known)) < mark
    }

    /// Replaces the marks that are behind the clock by the floor, if there are more than `kept`. Those of the upper half stay: the other
    /// gateway of a pair has to know them by their keys.
    pub(super) fn prune(&mut self, now_ns: u64, kept: usize) {
        if self.of.len() <= kept {
            return;
        }
        let mut floor = self.floor;
        self.of.retain(|_, [low, high]| {
            let is_behind = *low <= now_ns && *high == 0;
            floor = floor.max(if is_behind { *low } else { 0 });
            !is_behind
        });
        self.floor = floor;
    }

    /// The file as it is to be.
    pub(super) fn file(&self, directory: &Path) -> io::Result<(PathBuf, String)> {
        let less = if planted(Fault::IvMarkTooLow) { 1 } else { 0 };
        let mut marks = self.of.clone();
        marks.values_mut().flatten().for_each(|mark| *mark = mark.saturating_sub(less));
        let document = Document { schema: SCHEMA, floor: self.floor, marks };
        Ok((directory.join(FILE), serde_json::to_string(&document)? + "\n"))
    }

    /// Files of versions before, which the table stands for once it is durable.
    pub(super) fn old(&self) -> &[PathBuf] {
        &self.old
    }
}

/// A mark in a file of its own; `None` if there is none. A file that says anything but a mark is an error: to start over could
/// repeat IVs.
fn read_mark(files: &dyn Files, path: &Path) -> Result<Option<u64>, IvStoreError> {
    let corrupt = |why: String| IvStoreError::Corrupt { path: path.to_owned(), why };
    let text = match files.read(path, MARK_LEN_MAX + 1) {
        Ok(text) if text.is_empty() => return Err(corrupt("it is empty".into())),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(IvStoreError::Read { path: path.to_owned(), error }),
    };
    let mark: Mark = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
    if mark.schema != super::SCHEMA {
        return Err(corrupt(format!("it has schema {}, expected {}", mark.schema, super::SCHEMA)));
    }
    Ok(Some(mark.reserved_until))
}

#[cfg(test)]
mod tests;
