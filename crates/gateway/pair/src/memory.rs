//! The durable note of a gateway about its pair, kept over restarts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_planted::{Fault, planted};
use forebay_state::{IvStore, IvStoreError, PairNote};

/// The note in the state directory.
#[derive(Debug)]
pub struct Memory {
    store: IvStore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    note: PairNote,
    /// The note on the disk.
    durable: PairNote,
}

impl Memory {
    /// The note of the gateway with this number; the note of another number is returned unchanged.
    ///
    /// # Errors
    /// If the note cannot be read, or not be written.
    pub fn open(store: IvStore, number: u8) -> Result<Memory, IvStoreError> {
        let note = match store.pair_note()? {
            Some(note) => note,
            // The peer does not have the records that it made alone.
            None => {
                let mut note = PairNote::new(number);
                note.unmerged = store.has_records()?;
                note
            }
        };
        store.remember_pair(&note)?;
        Ok(Memory { store, state: Mutex::new(State { note, durable: note }) })
    }

    /// The note.
    pub fn note(&self) -> PairNote {
        self.lock().note
    }

    /// Changes the note and returns whether it is durable. A failed write is logged, and repeated by [`Memory::write_again`].
    pub fn change(&self, change: impl FnOnce(&mut PairNote)) -> bool {
        let mut state = self.lock();
        let before = state.note;
        change(&mut state.note);
        if state.note == before && state.durable == state.note {
            return true;
        }
        let written = self.write(&mut state);
        if let Err(error) = &written {
            tracing::error!(%error, "cannot record the state of the pair; trying again");
        }
        written.is_ok()
    }

    /// Changes the note if that can be made durable.
    ///
    /// # Errors
    /// The reason of the failure; the note is then unchanged.
    pub fn change_durably(&self, change: impl FnOnce(&mut PairNote)) -> Result<(), IvStoreError> {
        let mut state = self.lock();
        let before = state.note;
        change(&mut state.note);
        let written = self.write(&mut state);
        if written.is_err() {
            state.note = before;
        }
        written
    }

    /// Writes the note again after a failed write.
    pub fn write_again(&self) {
        let mut state = self.lock();
        if state.durable != state.note && self.write(&mut state).is_ok() {
            tracing::info!("the state of the pair is recorded again");
        }
    }

    /// Numbers are about to be used that the peer has not recorded. Returns whether that is durable.
    pub fn go_alone(&self) -> bool {
        self.change(|note| note.unmerged = !planted(Fault::AloneForgotten))
    }

    /// Whether an operator has accepted the records of this gateway as they are; an acceptance is used once.
    pub fn take_acceptance(&self) -> bool {
        let mut holds = false;
        let taken = self.store.take_acceptance(|| {
            self.change_durably(|note| {
                note.unmerged = true;
                note.completed(note.term);
            })?;
            holds = true;
            Ok(())
        });
        if let Err(error) = taken {
            tracing::error!(%error, "cannot apply the acceptance of `forebay state accept`; look at space and permissions of `state`");
        }
        holds
    }

    /// Deletes an acceptance that the active gateway does not need, so that it is not applied to a later situation.
    pub fn forget_acceptance(&self) {
        match self.store.forget_acceptance() {
            Ok(false) => {}
            Ok(true) => tracing::info!(
                "the acceptance of `forebay state accept` was not needed; this gateway has taken over without it"
            ),
            Err(error) => {
                tracing::error!(%error, "cannot delete the acceptance of `forebay state accept`; look at the permissions of `state`")
            }
        }
    }

    fn write(&self, state: &mut State) -> Result<(), IvStoreError> {
        self.store.remember_pair(&state.note)?;
        state.durable = state.note;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A gateway that was killed between the two steps waited forever for the acceptance that it had deleted.
    #[test]
    fn an_operators_word_is_there_until_what_follows_from_it_is_durable() {
        let directory = tempfile::tempdir().unwrap();
        let store = IvStore::new(directory.path());
        let memory = Memory::open(store.clone(), 0).unwrap();
        store.accept(0).unwrap();
        let in_the_way = directory.path().join("manifest.tmp");
        fs::create_dir(&in_the_way).unwrap();
        assert!(!memory.take_acceptance());
        assert!(store.provenance().unwrap().accepted && !memory.note().was_alone());
        fs::remove_dir(&in_the_way).unwrap();
        assert!(memory.take_acceptance());
        assert!(!store.provenance().unwrap().accepted && store.pair_note().unwrap().unwrap().was_alone());
        assert!(!memory.take_acceptance(), "said once, it holds once");
    }

    /// Like a full disk: the file cannot be replaced.
    #[test]
    fn what_cannot_be_written_is_written_when_there_is_room_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = IvStore::new(directory.path());
        let memory = Memory::open(store.clone(), 0).unwrap();
        let in_the_way = directory.path().join("manifest.tmp");
        fs::create_dir(&in_the_way).unwrap();
        assert!(!memory.go_alone(), "nothing may be used on this");
        assert!(memory.note().unmerged && !store.pair_note().unwrap().unwrap().unmerged);
        assert!(!memory.go_alone(), "the same once more is not durable either");
        memory.write_again();
        fs::remove_dir(&in_the_way).unwrap();
        memory.write_again();
        assert!(store.pair_note().unwrap().unwrap().unmerged);
        assert!(memory.go_alone());
    }
}
