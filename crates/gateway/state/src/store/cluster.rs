//! What a gateway of a cluster remembers of it.

use serde::{Deserialize, Serialize};

use super::{IvStore, IvStoreError, SCHEMA};

/// The file.
pub(super) const FILE: &str = "cluster.json";

/// What a gateway of a cluster remembers over restarts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNote {
    schema: u32,
    /// A random name of this state directory: a process with the same one is this gateway's predecessor.
    pub instance: String,
    /// The identity of the store that the gateways share, in hex digits.
    pub store: String,
    /// A revision of that store that was seen.
    pub revision: i64,
}

impl ClusterNote {
    /// That of a gateway which sees the store for the first time.
    pub fn new(instance: String, store: String, revision: i64) -> ClusterNote {
        ClusterNote { schema: SCHEMA, instance, store, revision }
    }
}

impl IvStore {
    /// What is remembered of the cluster; `None` if nothing.
    ///
    /// # Errors
    /// If it cannot be read, or says something else.
    pub fn cluster_note(&self) -> Result<Option<ClusterNote>, IvStoreError> {
        self.note(FILE, |note: &ClusterNote| note.schema)
    }

    /// Remembers this of the cluster, durably. Only the gateway that has claimed the directory may.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_cluster(&self, note: &ClusterNote) -> Result<(), IvStoreError> {
        self.remember(FILE, note)
    }
}
