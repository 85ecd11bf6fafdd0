//! Durable records of the packets that inbound SAs have received, for SAs whose keys outlive the process.
//!
//! An SA that began with an empty replay window again would accept replayed packets. The highest number of its window is
//! therefore recorded ahead of use, as outbound sequence numbers are: all numbers that may have been received count as
//! received. After a clean stop or an end by an error the record is exact, with the gaps in the window.

use super::journal::Writing;
use super::{IvStore, IvStoreError, Record, SequenceId, WindowNote};

impl IvStore {
    /// The records of all inbound SAs.
    ///
    /// # Errors
    /// If the journal cannot be read, or is damaged.
    pub fn windows(&self) -> Result<Vec<WindowNote>, IvStoreError> {
        self.read(|records| records.window_notes().map(|(note, _)| note).collect())
    }

    /// The records of some inbound SAs; SAs without a record are left out.
    ///
    /// # Errors
    /// As [`IvStore::windows`].
    pub fn windows_of(&self, ids: &[SequenceId]) -> Result<Vec<WindowNote>, IvStoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|records| {
            let note = |id: &SequenceId| {
                let (received, _) = records.windows.get(id)?;
                Some(WindowNote { id: *id, received: received.clone() })
            };
            ids.iter().filter_map(note).collect()
        })
    }

    /// Replaces the records of inbound SAs and makes them durable here. The caller sends them to another gateway first, if there is one
    /// ([`Replica`](super::Replica)), because that one may record limits that are nearer. `at` is the time in seconds since
    /// the Unix epoch; records of SAs that are not `used` may be forgotten, the oldest first, if there are very many.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or is damaged. Then either the earlier or the new records are
    /// valid.
    pub fn put_windows(
        &self,
        new: &[WindowNote],
        at: u64,
        used: &dyn Fn(&SequenceId) -> bool,
    ) -> Result<(), IvStoreError> {
        if new.is_empty() {
            return Ok(());
        }
        let writing =
            Writing { now_ns: at.saturating_mul(1_000_000_000), used: Some(used), ..Writing::default() };
        self.change_here(writing, |_| Ok((new.iter().map(Record::from).collect(), ()))).map(drop)
    }
}
