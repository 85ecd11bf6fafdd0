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

/// The file. Versions before refuse it by its schema, so that none of them starts without the journal.
pub(super) const FILE: &str = "manifest.json";
const SCHEMA: u64 = 2;
/// Locked by the process that changes the note. That of the directory will not do: who holds it may have to wait for what a pair remembers.
pub(super) const LOCK: &str = "manifest.lock";
/// An operator's word that has not been taken yet.
const ACCEPTED: &str = "accepted.json";
/// Longest such file, in bytes.
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

/// What a gateway of a pair remembers over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PairNote {
    /// Its number: the territory that its records are of.
    pub number: u8,
    /// The highest term that it has heard of.
    pub term: u64,
    /// Whether it was active and has records that the other may not have.
    pub unmerged: bool,
    /// Its records are complete up to this term: it was active in it, or has had everything of the gateway that was. `None` if nothing was
    /// heard yet, or something was not taken.
    #[serde(default)]
    pub complete: Option<u64>,
    /// Whether its records were never complete: those of a directory that was made or emptied since. Versions before did not say.
    #[serde(default)]
    pub blank: bool,
}

impl PairNote {
    /// That of a gateway which was never one of a pair.
    pub fn new(number: u8) -> PairNote {
        PairNote { number, term: 0, unmerged: false, complete: None, blank: true }
    }

    /// The records are complete up to this term.
    pub fn completed(&mut self, term: u64) {
        self.complete = self.complete.max(Some(term));
        self.blank = false;
    }

    /// Whether it may go on with what it has where the other gateway is not heard: it was the last that went on alone.
    pub fn was_alone(&self) -> bool {
        self.unmerged && self.complete.is_some_and(|complete| complete >= self.term)
    }
}

/// What a gateway of a cluster remembers over restarts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNote {
    /// A random name of this state directory: a process with the same one is this gateway's predecessor.
    pub instance: String,
    /// The identity of the store that the gateways share, in hex digits.
    pub store: String,
    /// A revision of that store that was seen.
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

/// What an operator has accepted.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    /// When, in seconds since the Unix epoch.
    at: u64,
}

/// What a state directory has, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Whose it is.
    pub role: Role,
    /// Files with records that are there.
    pub files: Vec<String>,
    /// Files with records that should be there and are not.
    pub missing: Vec<PathBuf>,
    /// Whether an operator's word waits for the gateway.
    pub accepted: bool,
}

impl IvStore {
    /// Whose the directory is, and what is in it and is not.
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

    /// Begins to use the directory in a role, before anything is read or served. Only the gateway that has claimed it may.
    ///
    /// # Errors
    /// If a file is missing, or the directory is that of a gateway in another role, and nobody has accepted that.
    pub fn enter(&self, role: Role) -> Result<(), IvStoreError> {
        let found = self.provenance()?;
        let leaves = found.role != role && found.role != Role::Alone;
        if leaves && !planted(Fault::OthersForgotten) || !found.missing.is_empty() {
            // Before what follows is durable: one that is killed in between asks again, and no word is left for the role that begins.
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
            // It would be found when it says something else; gateways of a pair or a cluster may need it yet.
            tracing::info!(directory = %self.directory().display(), "an operator's word was not needed");
        }
        // What is damaged is seen before anything is served.
        self.sync()?;
        self.change_note(|note| {
            if leaves && !planted(Fault::PairRemembered) {
                // Its terms and names mean nothing for whoever joins later.
                (note.pair, note.cluster) = (None, None);
            }
            note.role = role;
        })
    }

    /// What is remembered of the pair; `None` if nothing.
    ///
    /// # Errors
    /// If it cannot be read, or says something else.
    pub fn pair_note(&self) -> Result<Option<PairNote>, IvStoreError> {
        Ok(self.known()?.pair)
    }

    /// Remembers this of the pair, durably. Only the gateway that has claimed the directory may, one thread at a time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_pair(&self, pair: &PairNote) -> Result<(), IvStoreError> {
        self.change_note(|note| note.pair = Some(*pair))
    }

    /// What is remembered of the cluster; `None` if nothing.
    ///
    /// # Errors
    /// If it cannot be read, or says something else.
    pub fn cluster_note(&self) -> Result<Option<ClusterNote>, IvStoreError> {
        Ok(self.known()?.cluster)
    }

    /// Remembers this of the cluster, durably. Only the gateway that has claimed the directory may.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_cluster(&self, cluster: &ClusterNote) -> Result<(), IvStoreError> {
        self.change_note(|note| note.cluster = Some(cluster.clone()))
    }

    /// Writes down that an operator accepts the records as they are, for the gateway that waits for that or starts next.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn accept(&self, at: u64) -> Result<(), IvStoreError> {
        self.write_small(ACCEPTED, 1, &Accepted { at })
    }

    /// Whether an operator has accepted the records as they are; what was said once holds once. `follow` makes durable what follows from
    /// the word, before that is gone: a gateway that is killed in between finds it again.
    ///
    /// # Errors
    /// If it cannot be read, or not be taken; and those of `follow`, behind which the word is still there.
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

    /// Takes an operator's word away of which nothing follows. Whether there was one.
    ///
    /// # Errors
    /// As [`IvStore::take_acceptance`].
    pub fn forget_acceptance(&self) -> Result<bool, IvStoreError> {
        self.take_acceptance(|| Ok(()))
    }

    /// The note; of a directory without one, what versions before have left there.
    fn known(&self) -> Result<Note, IvStoreError> {
        match read(self)? {
            Some(note) => Ok(note),
            None => legacy::note(self),
        }
    }

    /// Changes the note, durably. The directory is not locked, because it may be that already by whoever reserves something that the peer
    /// cannot be told of.
    pub(super) fn change_note(&self, change: impl FnOnce(&mut Note)) -> Result<(), IvStoreError> {
        // Before the note is locked: whoever has the journal may wait for the note, and nobody the other way round.
        if !is_there(self)? {
            self.establish()?;
        }
        let _noting = self.lock_note()?;
        // Whoever runs has made one.
        let missing = || IvStoreError::Missing { path: self.directory.join(FILE) };
        let before = read(self)?.ok_or_else(missing)?;
        let mut note = before.clone();
        change(&mut note);
        note.written = note.written.max(self.written.load(Ordering::Relaxed));
        if note == before { Ok(()) } else { self.write_small(FILE, SCHEMA, &note) }
    }

    /// Has the note expect the last write of this process. The directory is locked.
    pub(super) fn note_written(&self) -> Result<(), IvStoreError> {
        let _noting = self.lock_note()?;
        // If it has been removed since, the next process says so.
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

    /// A small file that says its schema beside what it says; `None` if it is not there.
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

    /// The JSON of a small file; `None` if it is not there.
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

    /// Whether a file is there. One that cannot be looked at is: whoever reads it says why not.
    pub(super) fn has(&self, name: &str) -> bool {
        let identity = self.files.identity(&self.directory.join(name));
        !identity.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// The note; `None` if there is none, or that of a version before.
fn read(store: &IvStore) -> Result<Option<Note>, IvStoreError> {
    if !is_there(store)? { Ok(None) } else { store.read_small(FILE, SCHEMA) }
}

/// Whether there is a note that is not that of a version before.
pub(super) fn is_there(store: &IvStore) -> Result<bool, IvStoreError> {
    let value = store.read_value(FILE)?;
    Ok(value.is_some_and(|value| value["schema"] != legacy::SCHEMA))
}

/// Makes sure that a journal is the one that the note knows, and has come as far.
///
/// # Errors
/// If it is another one, or its end was lost.
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

/// Makes sure that a journal that is not there never was.
///
/// # Errors
/// If it was.
pub(super) fn must_be_new(store: &IvStore, journal: &Path) -> Result<(), IvStoreError> {
    if is_there(store)? { Err(IvStoreError::Missing { path: journal.to_owned() }) } else { Ok(()) }
}

/// Writes the first note of a directory, which has a journal of this name now, or names the journal in the note. It is locked.
pub(super) fn begin(store: &IvStore, name: Option<&str>) -> Result<(), IvStoreError> {
    let _noting = store.lock_note()?;
    let found = read(store)?;
    if found.as_ref().is_some_and(|note| note.journal.is_some() || name.is_none()) {
        return Ok(());
    }
    let note = found.map_or_else(|| legacy::note(store), Ok)?;
    store.write_small(FILE, SCHEMA, &Note { journal: name.map(str::to_owned), ..note })
}

/// Has the note of a directory expect no write of the journal and no name, which is about to begin anew.
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
