//! What a gateway remembers of its pair over restarts, durably.

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_planted::{Fault, planted};
use forebay_state::{IvStore, IvStoreError, PairNote};

/// The note in the state directory.
#[derive(Debug)]
pub struct Memory {
    store: IvStore,
    note: Mutex<PairNote>,
}

impl Memory {
    /// What the gateway with this number remembers; that of another number is given back as it is.
    ///
    /// # Errors
    /// If the note cannot be read, or not be written.
    pub fn open(store: IvStore, number: u8) -> Result<Memory, IvStoreError> {
        let note = store.pair_note()?.unwrap_or(PairNote::new(number));
        store.remember_pair(&note)?;
        Ok(Memory { store, note: Mutex::new(note) })
    }

    /// The note.
    pub fn note(&self) -> PairNote {
        *self.lock()
    }

    /// Changes the note and makes that durable. What cannot be written is logged and holds until the process ends.
    pub fn change(&self, change: impl FnOnce(&mut PairNote)) {
        let mut note = self.lock();
        let before = *note;
        change(&mut note);
        if *note == before {
            return;
        }
        if let Err(error) = self.store.remember_pair(&note) {
            tracing::error!(%error, "cannot record the state of the pair");
        }
    }

    /// Something is about to be used that the peer has not noted.
    pub fn go_alone(&self) {
        self.change(|note| note.unmerged = !planted(Fault::AloneForgotten));
    }

    fn lock(&self) -> MutexGuard<'_, PairNote> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
