//! Whose a state directory is, and what has to be in it: looked at before an SA is served.
//!
//! The note names the role of the gateway that has the directory, and every file with records. A file that it names and that is not there
//! was lost, and what it said with it: that is an error wherever the file is read, and not a file that says nothing. A directory of a pair
//! or of a cluster does not know what the other gateways have used since, so that a gateway that has left them does not start with it.
//! An operator resolves both (`forebay state accept`): what is missing then counts as never recorded.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Files, IvStore, IvStoreError, SCHEMA, cluster, ivs, lifetimes, pair, sequences, windows};

/// The note.
const FILE: &str = "manifest.json";
/// An operator's word that has not been taken yet.
const ACCEPTED: &str = "accepted.json";
/// Longest such file, in bytes.
const MAX_LEN: u64 = 4_096;
/// Files with records.
const RECORDS: [&str; 7] = [
    ivs::FILE,
    sequences::FILE,
    sequences::RETIRED,
    windows::FILE,
    lifetimes::FILE,
    pair::FILE,
    cluster::FILE,
];

/// The role of the gateway that has a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is alone.
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

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: u32,
    role: Role,
    files: BTreeSet<String>,
}

/// What an operator has accepted.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    schema: u32,
    /// When, in seconds since the Unix epoch.
    at: u64,
}

/// What a state directory has, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Whose it is.
    pub role: Role,
    /// Files with records that are there, and that should be and are not.
    pub files: Vec<String>,
    /// See `files`.
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
        let (files, directory) = (self.files(), self.directory());
        let manifest = Manifest::of(files, directory)?;
        let (there, missing): (Vec<_>, Vec<_>) =
            manifest.files.iter().cloned().partition(|name| is_there(files, &directory.join(name)));
        let missing = missing.into_iter().map(|name| directory.join(name)).collect();
        let accepted = is_there(files, &directory.join(ACCEPTED));
        Ok(Provenance { role: manifest.role, files: there, missing, accepted })
    }

    /// Begins to use the directory in a role, before anything is read or served. Only the gateway that has claimed it may.
    ///
    /// # Errors
    /// If a file is missing, or the directory is that of a gateway in another role, and nobody has accepted that.
    pub fn enter(&self, role: Role) -> Result<(), IvStoreError> {
        let found = self.provenance()?;
        let leaves = found.role != role && found.role != Role::Alone;
        if leaves || !found.missing.is_empty() {
            if !self.take_acceptance()? {
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
            if leaves {
                // Its terms and names mean nothing for whoever joins later.
                for name in [pair::FILE, cluster::FILE] {
                    self.remove_if_there(name)?;
                }
            }
        }
        let files = (found.files.into_iter())
            .filter(|name| !leaves || ![pair::FILE, cluster::FILE].contains(&name.as_str()));
        let manifest = Manifest { schema: SCHEMA, role, files: files.collect() };
        if Manifest::read(self.files(), self.directory())? == Some(manifest.clone()) {
            return Ok(());
        }
        self.remember(FILE, &manifest)
    }

    /// Whether anything is recorded that another gateway may have to know.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn has_records(&self) -> Result<bool, IvStoreError> {
        let of_role = [pair::FILE, cluster::FILE];
        Ok(self.provenance()?.files.iter().any(|name| !of_role.contains(&name.as_str())))
    }

    /// Writes down that an operator accepts the records as they are, for the gateway that waits for that or starts next.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn accept(&self, at: u64) -> Result<(), IvStoreError> {
        self.remember(ACCEPTED, &Accepted { schema: SCHEMA, at })
    }

    /// Whether an operator has accepted the records as they are; what was said once holds once.
    ///
    /// # Errors
    /// If it cannot be read, or not be taken.
    pub fn take_acceptance(&self) -> Result<bool, IvStoreError> {
        match self.note(ACCEPTED, |accepted: &Accepted| accepted.schema)? {
            None => Ok(false),
            Some(_) => self.remove_if_there(ACCEPTED).map(|()| true),
        }
    }

    /// Removes a file, durably.
    fn remove_if_there(&self, name: &str) -> Result<(), IvStoreError> {
        let path = self.directory().join(name);
        let removed = match self.files().remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| self.files().sync_directory(self.directory())),
        };
        removed.map_err(|error| IvStoreError::Write { path, error })
    }
}

impl Manifest {
    /// That of a directory; of one without, what is in it.
    fn of(files: &dyn Files, directory: &Path) -> Result<Manifest, IvStoreError> {
        let is_there = |name: &str| is_there(files, &directory.join(name));
        let mut manifest = match Manifest::read(files, directory)? {
            Some(manifest) => manifest,
            None => {
                let role = match (is_there(pair::FILE), is_there(cluster::FILE)) {
                    (true, _) => Role::Pair,
                    (_, true) => Role::Cluster,
                    _ => Role::Alone,
                };
                Manifest { schema: SCHEMA, role, files: BTreeSet::new() }
            }
        };
        // A crash may have come between a file and the note.
        manifest.files.extend(RECORDS.iter().filter(|name| is_there(name)).map(ToString::to_string));
        Ok(manifest)
    }

    fn read(files: &dyn Files, directory: &Path) -> Result<Option<Manifest>, IvStoreError> {
        let path = directory.join(FILE);
        let text = match files.read(&path, MAX_LEN) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(IvStoreError::Read { path, error }),
        };
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.clone(), why };
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        match manifest.schema {
            SCHEMA => Ok(Some(manifest)),
            other => Err(corrupt(format!("it has schema {other}, expected {SCHEMA}"))),
        }
    }
}

/// The note as it is to be when files of these names have been made; `None` if it names them already, or they have no records.
pub(super) fn with_made(
    files: &dyn Files,
    directory: &Path,
    made: &[String],
) -> Result<Option<(PathBuf, String)>, IvStoreError> {
    let made: Vec<&String> = made.iter().filter(|name| RECORDS.contains(&name.as_str())).collect();
    if made.is_empty() {
        return Ok(None);
    }
    let mut manifest = Manifest::of(files, directory)?;
    manifest.files.extend(made.into_iter().cloned());
    let path = directory.join(FILE);
    let text = serde_json::to_string(&manifest)
        .map_err(|error| IvStoreError::Write { path: path.clone(), error: error.into() })?;
    Ok(Some((path, text + "\n")))
}

/// The bytes of a file with records; `None` if there never was one.
///
/// # Errors
/// If it cannot be read, or is not there although it was.
pub(super) fn read(files: &dyn Files, path: &Path, most: u64) -> Result<Option<Vec<u8>>, IvStoreError> {
    match files.read(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => is_new(files, path).map(|()| None),
        Err(error) => Err(IvStoreError::Read { path: path.to_owned(), error }),
    }
}

/// One that cannot be looked at is there: whoever reads it says why not.
fn is_there(files: &dyn Files, path: &Path) -> bool {
    !files.identity(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Makes sure that a file that is not there never was.
///
/// # Errors
/// If it was.
pub(super) fn is_new(files: &dyn Files, path: &Path) -> Result<(), IvStoreError> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let named = Manifest::read(files, directory)?
        .is_some_and(|manifest| manifest.files.contains(&*name.to_string_lossy()));
    if named { Err(IvStoreError::Missing { path: path.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
