//! Records of earlier versions: a file for each kind of record and for each role. They are moved into the journal
//! once, at the first use of the directory; the files are removed when the journal and the note are durable.
//!
//! Those versions had, one after the other: a file for each key (`<fingerprint>.json`) with a floor; tables of IVs by role
//! (`together.json`, schema 1, and `peer-ivs.json`), one table of IVs (`together.json`, schema 2); `sequences.json` with
//! `retired-sequences.txt`; `windows.log`; `lifetimes.json`; `pair.json` and `cluster.json`; and a manifest of these files, schema 1.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use forebay_ipsec::Received;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::journal::{Lines, checksum};
use super::note::{self, ClusterNote, Note, PairNote, Role};
use super::record::Records;
use super::sequences::fingerprint;
use super::{IvStore, IvStoreError, KeyId, LifeNote, SequenceId, replace};

/// The schema of every file except the second table of IVs.
pub(super) const SCHEMA: u64 = 1;
/// Maximum length of a file in bytes.
const MAX_LEN: u64 = 4 << 30;

const IVS: &str = "together.json";
const PEER_IVS: &str = "peer-ivs.json";
const IV_FLOOR: &str = "floor.json";
const SEQUENCES: &str = "sequences.json";
const RETIRED: &str = "retired-sequences.txt";
const WINDOWS: &str = "windows.log";
const LIVES: &str = "lifetimes.json";
const PAIR: &str = "pair.json";
const CLUSTER: &str = "cluster.json";
/// Written in place of the table of IVs, so that earlier versions, which do not know the note, do not start.
const TOMBSTONE: &str =
    "{\"schema\":3,\"see\":\"records.log, which a later version has made; this version cannot read it\"}\n";

/// All of these files except those of one key.
pub(super) const FILES: [&str; 9] =
    [IVS, PEER_IVS, IV_FLOOR, SEQUENCES, RETIRED, WINDOWS, LIVES, PAIR, CLUSTER];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    role: Role,
    files: BTreeSet<String>,
}

/// Ends of reserved IVs, or last sequence numbers, by fingerprint.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marks<K: Ord> {
    marks: BTreeMap<K, u64>,
}

/// The second table of IVs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IvTable {
    floor: u64,
    marks: BTreeMap<KeyId, [u64; 2]>,
}

/// The end of one key's reserved IVs, or the floor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    reserved_until: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lives {
    sas: BTreeMap<SequenceId, LifeNote>,
}

/// A line of `windows.log` after its checksum.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowLine {
    batch: u64,
    id: SequenceId,
    top: u64,
    certain: u64,
    missing: Vec<(u64, u64)>,
    at: u64,
}

/// The manifest of such a directory.
pub(super) fn note(store: &IvStore) -> Result<Note, IvStoreError> {
    let pair: Option<PairNote> = store.read_small(PAIR, SCHEMA)?;
    let cluster: Option<ClusterNote> = store.read_small(CLUSTER, SCHEMA)?;
    let role = match (manifest(store)?, &pair, &cluster) {
        (Some(manifest), ..) => manifest.role,
        (None, Some(_), _) => Role::Pair,
        (None, None, Some(_)) => Role::Cluster,
        (None, None, None) => Role::Alone,
    };
    Ok(Note { role, pair, cluster, ..Note::default() })
}

/// Files that the manifest names and that are missing.
pub(super) fn missing(store: &IvStore) -> Result<Vec<PathBuf>, IvStoreError> {
    let named = manifest(store)?.map(|manifest| manifest.files).unwrap_or_default();
    Ok(named.iter().filter(|name| !store.has(name)).map(|name| store.directory.join(name)).collect())
}

fn manifest(store: &IvStore) -> Result<Option<Manifest>, IvStoreError> {
    if note::is_there(store)? { Ok(None) } else { store.read_small(note::FILE, SCHEMA) }
}

/// Whether there are such files.
///
/// # Errors
/// If the directory cannot be read.
pub(super) fn are_there(store: &IvStore) -> Result<bool, IvStoreError> {
    let is_moved = bytes(store, IVS)?.is_some_and(|bytes| bytes == TOMBSTONE.as_bytes());
    let is_there = |name: &&str| store.has(name) && !(is_moved && **name == *IVS);
    Ok(FILES.iter().any(is_there) || !marks_of_keys(store)?.is_empty())
}

/// The records of these files; `None` if there are none.
///
/// # Errors
/// If one is missing, cannot be read or is damaged.
pub(super) fn records(store: &IvStore) -> Result<Option<Records>, IvStoreError> {
    if !are_there(store)? {
        return Ok(None);
    }
    let keys = marks_of_keys(store)?;
    if let Some(path) = missing(store)?.into_iter().next() {
        return Err(IvStoreError::Missing { path });
    }
    let mut records = Records::default();
    for (key, path) in keys {
        let mark: Option<Mark> = read(store, &path, SCHEMA)?;
        records.raise_ivs(key, mark.map_or(0, |mark| mark.reserved_until));
    }
    let floor: Option<Mark> = read(store, IV_FLOOR, SCHEMA)?;
    records.floor = floor.map_or(0, |mark| mark.reserved_until);
    read_ivs(store, &mut records)?;
    records.numbers = retired(store)?;
    // Its numbers of an SA that came back are older.
    let numbers: Option<Marks<SequenceId>> = read(store, SEQUENCES, SCHEMA)?;
    records.numbers.extend(numbers.map(|numbers| numbers.marks).unwrap_or_default());
    records.windows = windows(store)?;
    let lives: Option<Lives> = read(store, LIVES, SCHEMA)?;
    records.lives = lives.map(|lives| lives.sas).unwrap_or_default();
    Ok(Some(records))
}

/// Removes these files, which the journal and the note replace.
pub(super) fn remove(store: &IvStore) -> Result<(), IvStoreError> {
    let path = store.directory.join(IVS);
    replace(&*store.files, &path, TOMBSTONE).map_err(|error| IvStoreError::Write { path, error })?;
    let names = FILES.iter().filter(|name| **name != IVS && store.has(name)).map(ToString::to_string);
    let keys = marks_of_keys(store)?.into_values();
    let paths: Vec<PathBuf> = names.chain(keys).map(|name| store.directory.join(name)).collect();
    if paths.is_empty() { Ok(()) } else { store.remove(&paths) }
}

/// Removes missing files from the manifest, so that the records begin without them.
pub(super) fn forget_missing(store: &IvStore) -> Result<(), IvStoreError> {
    store.remove(&[store.directory.join(note::FILE)])
}

/// Files with the mark of one key.
fn marks_of_keys(store: &IvStore) -> Result<BTreeMap<KeyId, String>, IvStoreError> {
    let names = match store.files.names(&store.directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
        names => names.map_err(|error| IvStoreError::Read { path: store.directory.clone(), error })?,
    };
    let key = |name: &str| KeyId::try_from(name.strip_suffix(".json")?.to_owned()).ok();
    Ok(names.into_iter().filter_map(|name| Some((key(&name)?, name))).collect())
}

/// The table of IVs in either form, and that of the other gateway of a pair.
fn read_ivs(store: &IvStore, records: &mut Records) -> Result<(), IvStoreError> {
    let mut tables: Vec<Option<Marks<KeyId>>> = vec![read(store, PEER_IVS, SCHEMA)?];
    match read::<IvTable>(store, IVS, 2) {
        Ok(None) => {}
        Ok(Some(IvTable { floor, marks })) => {
            records.floor = records.floor.max(floor);
            for (key, halves) in marks {
                for until in halves {
                    records.raise_ivs(key, until);
                }
            }
        }
        // If it is in neither form, the error is about the later one.
        Err(error) => tables.push(read(store, IVS, SCHEMA).map_err(|_| error)?),
    }
    for (key, until) in tables.into_iter().flatten().flat_map(|table| table.marks) {
        records.raise_ivs(key, until);
    }
    Ok(())
}

/// Last numbers of removed SAs: a line each.
fn retired(store: &IvStore) -> Result<BTreeMap<SequenceId, u64>, IvStoreError> {
    let Some(text) = bytes(store, RETIRED)? else { return Ok(BTreeMap::new()) };
    let mark = |line: &str| {
        let (id, last) = line.split_once(' ')?;
        fingerprint(id).ok()?;
        Some((id.to_owned().try_into().ok()?, last.parse().ok()?))
    };
    let corrupt = |place: usize| {
        let why = format!("line {} is no fingerprint with a number", place + 1);
        IvStoreError::Corrupt { path: store.directory.join(RETIRED), why }
    };
    let text = std::str::from_utf8(&text).map_err(|_| corrupt(0))?;
    text.lines().enumerate().map(|(place, line)| mark(line).ok_or_else(|| corrupt(place))).collect()
}

fn windows(store: &IvStore) -> Result<BTreeMap<SequenceId, (Received, u64)>, IvStoreError> {
    let mut windows = BTreeMap::new();
    let Some(text) = bytes(store, WINDOWS)? else { return Ok(windows) };
    let mut lines = Lines::default();
    for text in text.split_inclusive(|&byte| byte == b'\n') {
        let parse = |text: &[u8]| -> Option<WindowLine> {
            let (sum, json) = std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
            (sum == checksum(json)).then(|| serde_json::from_str(json).ok()).flatten()
        };
        if let Some(WindowLine { id, top, certain, missing, at, .. }) =
            lines.take(parse(text), |line: &WindowLine| line.batch)
        {
            windows.insert(id, (Received { top, certain, missing }, at));
        }
    }
    lines.end().map_err(|why| IvStoreError::Corrupt { path: store.directory.join(WINDOWS), why })?;
    Ok(windows)
}

fn read<T: DeserializeOwned>(store: &IvStore, name: &str, schema: u64) -> Result<Option<T>, IvStoreError> {
    let path = store.directory.join(name);
    let corrupt = |why: String| IvStoreError::Corrupt { path: path.clone(), why };
    let Some(text) = bytes(store, name)? else { return Ok(None) };
    let mut value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
    match value.as_object_mut().and_then(|fields| fields.remove("schema")) {
        Some(found) if found == schema => {}
        found => return Err(corrupt(format!("it has schema {found:?}, expected {schema}"))),
    }
    serde_json::from_value(value).map(Some).map_err(|error| corrupt(error.to_string()))
}

fn bytes(store: &IvStore, name: &str) -> Result<Option<Vec<u8>>, IvStoreError> {
    let path = store.directory.join(name);
    match store.files.read(&path, MAX_LEN) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IvStoreError::Read { path, error }),
    }
}

#[cfg(test)]
mod tests;
