//! Marks of very many keys in one file: one write and one sync for all of them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Files, IvStoreError, SCHEMA, provenance};

/// Longest file, in bytes: a million marks.
const MAX_LEN: u64 = 64 << 20;

/// Marks by fingerprint.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    schema: u32,
    pub(super) marks: BTreeMap<String, u64>,
}

impl Table {
    /// What the file says; nothing, if there is none. A file that says anything but marks is an error.
    pub(super) fn read(files: &dyn Files, path: &Path) -> Result<Table, IvStoreError> {
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.to_owned(), why };
        let Some(text) = provenance::read(files, path, MAX_LEN)? else {
            return Ok(Table { schema: SCHEMA, marks: BTreeMap::new() });
        };
        let table: Table = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        if table.schema != SCHEMA {
            return Err(corrupt(format!("it has schema {}, expected {SCHEMA}", table.schema)));
        }
        Ok(table)
    }

    /// The file as it is to be.
    pub(super) fn file(&self, path: &Path) -> io::Result<(PathBuf, String)> {
        Ok((path.to_owned(), serde_json::to_string(self)? + "\n"))
    }
}
