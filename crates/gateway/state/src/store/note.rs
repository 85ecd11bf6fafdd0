//! The note beside the journal (`manifest.json`): the role of the directory's gateway, and what it remembers of its pair or cluster. It is checked before an
//! SA is served.
//!
//! A directory with a note has a journal, and one whose journal has records has a note. If one of the two is missing, it was lost with its
//! contents: that is an error for every reader, and does not count as an empty journal or as a new directory. The directory of a pair or of a cluster does not have the
//! numbers that the other gateways have used since, so a gateway that has left them does not start with it. An operator resolves both cases
//! (`forebay state accept`): missing records then count as never made.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use forebay_planted::{Fault, planted};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{IvStore, IvStoreError, journal, legacy, replace};

/// The file. Earlier versions refuse its schema, so that none of them starts without the journal.
pub(super) const FILE: &str = "manifest.json";
const SCHEMA: u64 = 2;
/// Locked by the process that changes the note. The lock of the directory cannot serve: its holder may wait for a change of the note.
pub(super) const LOCK: &str = "manifest.lock";
/// An operator's acceptance that was not used yet.
const ACCEPTED: &str = "accepted.json";
/// Maximum length of such a file in bytes.
const MAX_LEN: u64 = 4_096;

/// The role of the gateway that has a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is alone.
    #[default]
    Alone,
    /// One of a pair.
    Pair,
    /// One of a cluster.
    Cluster,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Alone => "a gateway without [pair] and [cluster]",
            Role::Pair => "a gateway of a pair",
            Role::Cluster => "a gateway of a cluster",
        })
    }
}

/// The note of a gateway of a pair, kept over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PairNote {
    /// Its number, which selects its territory.
    pub number: u8,
    /// The highest term that it knows.
    pub term: u64,
    /// Whether it was active and has records that the other may not have.
    pub unmerged: bool,
    /// Its records are complete up to this term: it was active in it, or had all records of the gateway that was. `None` if no
    /// records have arrived yet, or some were refused.
    #[serde(default)]
    pub complete: Option<u64>,
    /// Whether its records were never complete: those of a new or emptied directory. Earlier versions did not record it.
    #[serde(default)]
    pub blank: bool,
}

impl PairNote {
    /// The note of a gateway that was never in a pair.
    pub fn new(number: u8) -> PairNote {
        PairNote { number, term: 0, unmerged: false, complete: None, blank: true }
    }

    /// The records are complete up to this term.
    pub fn completed(&mut self, term: u64) {
        self.complete = self.complete.max(Some(term));
        self.blank = false;
    }

    /// Whether it may continue with its records without the other gateway: it was the last one that continued alone.
    pub fn was_alone(&self) -> bool {
        self.unmerged && self.complete.is_some_and(|complete| complete >= self.term)
    }
}

/// The note of a gateway of a cluster, kept over restarts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNote {
    /// A random name of this state directory: a process with the same one is this gateway's predecessor.
    pub instance: String,
    /// The identity of the store that the gateways share, in hex digits.
    pub store: String,
    /// A revision that the store has had.
    pub revision: i64,
}

/// The note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    pub(super) role: Role,
    /// The number of a write that is in the journal.
    #[serde(default)]
    pub(super) written: u64,
    /// The name of the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) journal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pair: Option<PairNote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<ClusterNote>,
}

/// The acceptance of an operator.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    /// The time, in seconds since the Unix epoch.
    at: u64,
}

/// The content of a state directory, for `forebay state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The role of its gateway.
    pub role: Role,
    /// Existing files with records.
    pub files: Vec<String>,
    /// Missing files with records.
    pub missing: Vec<PathBuf>,
    /// Whether an acceptance was not used yet.
    pub accepted: bool,
}

impl IvStore {
    /// The role of the directory, and its existing and missing files.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn provenance(&self) -> Result<Provenance, IvStoreError> {
        let role = self.known()?.role;
        let mut files: Vec<String> =
            [journal::FILE, FILE].iter().filter(|name| self.has(name)).map(ToString::to_string).collect();
        let mut missing = Vec::new();
        if is_there(self)? {
            missing.extend((!self.has(journal::FILE)).then(|| self.directory.join(journal::FILE)));
        } else {
            files.extend(legacy::FILES.iter().filter(|name| self.has(name)).map(ToString::to_string));
            missing = legacy::missing(self)?;
            missing.extend(journal::lacks_note(self)?.then(|| self.directory.join(FILE)));
        }
        Ok(Provenance { role, files, missing, accepted: self.has(ACCEPTED) })
    }

    /// Begins to use the directory in a role, before anything is read or served. Only the gateway that has locked it may.
    ///
    /// # Errors
    /// If a file is missing, or the directory belongs to another role, and no operator has accepted that.
    pub fn enter(&self, role: Role) -> Result<(), IvStoreError> {
        let found = self.provenance()?;
        let leaves = found.role != role && found.role != Role::Alone;
        if leaves && !planted(Fault::OthersForgotten) || !found.missing.is_empty() {
            // Before the new role is durable: a gateway that is killed in between requires a new acceptance, and none is left for the new role.
            if !self.forget_acceptance()? {
                let path = self.directory().to_owned();
                return Err(match found.missing.into_iter().next() {
                    Some(path) => IvStoreError::Missing { path },
                    None => IvStoreError::OfOthers { path, was: found.role, is: role },
                });
            }
            tracing::warn!(
                directory = %self.directory().display(), was = %found.role, is = %role, missing = ?found.missing,
                "an operator has accepted the state directory as it is"
            );
            if !found.missing.is_empty() {
                self.begin_without_missing()?;
            }
        } else if role == Role::Alone && self.forget_acceptance()? {
            // It must not apply to a later situation; gateways of a pair or a cluster may still need it.
            tracing::info!(directory = %self.directory().display(), "the acceptance of `forebay state accept` was not needed: nothing was missing");
        }
        // Damage is detected before anything is served.
        self.sync()?;
        self.change_note(|note| {
            if leaves && !planted(Fault::PairRemembered) {
                // Its terms and names have no meaning in a later pair or cluster.
                (note.pair, note.cluster) = (None, None);
            }
            note.role = role;
        })
    }

    /// The note about the pair, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn pair_note(&self) -> Result<Option<PairNote>, IvStoreError> {
        Ok(self.known()?.pair)
    }

    /// Writes the note about the pair, durably. Only the gateway that has locked the directory may, one thread at a time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_pair(&self, pair: &PairNote) -> Result<(), IvStoreError> {
        self.change_note(|note| note.pair = Some(*pair))
    }

    /// The note about the cluster, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn cluster_note(&self) -> Result<Option<ClusterNote>, IvStoreError> {
        Ok(self.known()?.cluster)
    }

    /// Writes the note about the cluster, durably. Only the gateway that has locked the directory may.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_cluster(&self, cluster: &ClusterNote) -> Result<(), IvStoreError> {
        self.change_note(|note| note.cluster = Some(cluster.clone()))
    }

    /// Writes the acceptance of the records by an operator, for the gateway that waits for it or starts next.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn accept(&self, at: u64) -> Result<(), IvStoreError> {
        self.write_small(ACCEPTED, 1, &Accepted { at })
    }

    /// Uses the acceptance of the records by an operator, once; returns whether there was one. `follow` makes its consequence durable before
    /// the acceptance is deleted: a gateway that is killed in between finds it again.
    ///
    /// # Errors
    /// If it cannot be read or deleted; and errors of `follow`, after which the acceptance still exists.
    pub fn take_acceptance(
        &self,
        follow: impl FnOnce() -> Result<(), IvStoreError>,
    ) -> Result<bool, IvStoreError> {
        if self.read_small::<Accepted>(ACCEPTED, 1)?.is_none() {
            return Ok(false);
        }
        follow()?;
        self.remove(&[self.directory.join(ACCEPTED)]).map(|()| true)
    }

    /// Deletes an acceptance without a consequence; returns whether there was one.
    ///
    /// # Errors
    /// As [`IvStore::take_acceptance`].
    pub fn forget_acceptance(&self) -> Result<bool, IvStoreError> {
        self.take_acceptance(|| Ok(()))
    }

    /// The note; in a directory without one, that of earlier versions.
    fn known(&self) -> Result<Note, IvStoreError> {
        match read(self)? {
            Some(note) => Ok(note),
            None => legacy::note(self),
        }
    }

    /// Changes the note, durably. The directory is not locked here: the caller may hold its lock for a reservation that the peer
    /// cannot get.
    pub(super) fn change_note(&self, change: impl FnOnce(&mut Note)) -> Result<(), IvStoreError> {
        // Before the note is locked: holders of the journal may wait for the note, never the reverse.
        if !is_there(self)? {
            self.establish()?;
        }
        let _noting = self.lock_note()?;
        // A running gateway has made one.
        let missing = || IvStoreError::Missing { path: self.directory.join(FILE) };
        let before = read(self)?.ok_or_else(missing)?;
        let mut note = before.clone();
        change(&mut note);
        note.written = note.written.max(self.written.load(Ordering::Relaxed));
        if note == before { Ok(()) } else { self.write_small(FILE, SCHEMA, &note) }
    }

    /// Names the last write of this process in the note. The directory is locked.
    pub(super) fn note_written(&self) -> Result<(), IvStoreError> {
        let _noting = self.lock_note()?;
        // If it has been removed meanwhile, the next process reports it.
        let Some(note) = read(self)? else { return Ok(()) };
        let written = note.written.max(self.written.load(Ordering::Relaxed));
        self.write_small(FILE, SCHEMA, &Note { written, ..note })
    }

    /// The right to change the note, for one thread of one process.
    fn lock_note(&self) -> Result<(MutexGuard<'_, ()>, Box<dyn Any>), IvStoreError> {
        let thread = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.directory.join(LOCK);
        match self.files.lock(&path) {
            Ok(process) => Ok((thread, process)),
            Err(error) => Err(IvStoreError::Write { path, error }),
        }
    }

    /// A small file with a schema; `None` if it does not exist.
    pub(super) fn read_small<T: DeserializeOwned>(
        &self,
        name: &str,
        schema: u64,
    ) -> Result<Option<T>, IvStoreError> {
        let path = self.directory.join(name);
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.clone(), why };
        let Some(mut value) = self.read_value(name)? else { return Ok(None) };
        let found = value.as_object_mut().and_then(|fields| fields.remove("schema"));
        if found != Some(schema.into()) {
            let found = found.map_or("no schema".to_owned(), |found| format!("schema {found}"));
            return Err(corrupt(format!("it has {found}, expected {schema}")));
        }
        serde_json::from_value(value).map(Some).map_err(|error| corrupt(error.to_string()))
    }

    /// The JSON of a small file; `None` if it does not exist.
    fn read_value(&self, name: &str) -> Result<Option<serde_json::Value>, IvStoreError> {
        let path = self.directory.join(name);
        match self.files.read(&path, MAX_LEN) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| IvStoreError::Corrupt { path, why: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IvStoreError::Read { path, error }),
        }
    }

    /// Writes such a file, durably.
    fn write_small(&self, name: &str, schema: u64, what: &impl Serialize) -> Result<(), IvStoreError> {
        let path = self.directory.join(name);
        let write = || {
            self.files.make_directory(&self.directory)?;
            let mut value = serde_json::to_value(what)?;
            value["schema"] = schema.into();
            replace(&*self.files, &path, &format!("{value}\n"))
        };
        write().map_err(|error| IvStoreError::Write { path: path.clone(), error })
    }

    /// Removes files, durably.
    pub(super) fn remove(&self, paths: &[PathBuf]) -> Result<(), IvStoreError> {
        for path in paths {
            match self.files.remove(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(IvStoreError::Write { path: path.clone(), error });
                }
                _ => {}
            }
        }
        let path = self.directory.clone();
        self.files.sync_directory(&path).map_err(|error| IvStoreError::Write { path, error })
    }

    /// Whether a file exists. A file that cannot be inspected counts as existing: its reader reports the reason.
    pub(super) fn has(&self, name: &str) -> bool {
        let identity = self.files.identity(&self.directory.join(name));
        !identity.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// The note; `None` if there is none, or only that of an earlier version.
fn read(store: &IvStore) -> Result<Option<Note>, IvStoreError> {
    if !is_there(store)? { Ok(None) } else { store.read_small(FILE, SCHEMA) }
}

/// Whether there is a note of this version.
pub(super) fn is_there(store: &IvStore) -> Result<bool, IvStoreError> {
    let value = store.read_value(FILE)?;
    Ok(value.is_some_and(|value| value["schema"] != legacy::SCHEMA))
}

/// Checks that the journal is the one in the note, and has the write that the note names.
///
/// # Errors
/// If it is another journal, or its end was lost.
pub(super) fn must_match(
    store: &IvStore,
    path: &Path,
    written: u64,
    name: Option<&str>,
) -> Result<(), IvStoreError> {
    let Some(note) = read(store)? else { return Ok(()) };
    let corrupt = |why| Err(IvStoreError::Corrupt { path: path.to_owned(), why });
    if note.journal.is_some() && note.journal.as_deref() != name {
        return corrupt("it is the journal of another directory, by its first line and the note".to_owned());
    }
    if written < note.written {
        return corrupt(format!(
            "it ends at write {written}, and the note says {}: its end was cut off, or it is an older copy",
            note.written
        ));
    }
    Ok(())
}

/// Checks that a missing journal never existed.
///
/// # Errors
/// If it existed.
pub(super) fn must_be_new(store: &IvStore, journal: &Path) -> Result<(), IvStoreError> {
    if is_there(store)? { Err(IvStoreError::Missing { path: journal.to_owned() }) } else { Ok(()) }
}

/// Writes the first note of a directory with a journal of this name, or names the journal in the note. The directory is locked.
pub(super) fn begin(store: &IvStore, name: Option<&str>) -> Result<(), IvStoreError> {
    let _noting = store.lock_note()?;
    let found = read(store)?;
    if found.as_ref().is_some_and(|note| note.journal.is_some() || name.is_none()) {
        return Ok(());
    }
    let note = found.map_or_else(|| legacy::note(store), Ok)?;
    store.write_small(FILE, SCHEMA, &Note { journal: name.map(str::to_owned), ..note })
}

/// Removes the name and the last write of the journal from the note, because the journal is about to begin again.
pub(super) fn expect_none(store: &IvStore) -> Result<(), IvStoreError> {
    let _noting = store.lock_note()?;
    match read(store)? {
        Some(note) if note.written > 0 || note.journal.is_some() => {
            store.write_small(FILE, SCHEMA, &Note { written: 0, journal: None, ..note })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
