//! Continues the lifetimes of the file's SAs over restarts and reloads: they are limits of keys, not of a process.

use forebay_ipsec::{Lifetime, Lived};
use forebay_time::Duration;

use crate::{IvStore, IvStoreError, LifeNote, SequenceId};
use forebay_sas::{SaEntry, SasFile};
use forebay_worker::Worker;

/// The ages and counts of SAs, by their places in the file.
pub type Lives = Vec<(usize, Lived)>;

/// Lifetimes that the `new` SAs of a file, given by index, have used before.
///
/// # Errors
/// If the lifetimes cannot be read, or the start of an SA cannot be recorded.
pub fn open(
    store: &IvStore,
    file: &SasFile,
    new: impl Fn(usize) -> bool,
    now: std::time::Duration,
) -> Result<Lives, IvStoreError> {
    let now = now.as_millis() as u64;
    let (places, ids): (Vec<usize>, Vec<SequenceId>) = limited(file).filter(|(place, _)| new(*place)).unzip();
    let notes = store.lives(&ids, now)?;
    Ok(places.into_iter().zip(notes.into_iter().map(|note| lived(note, now))).collect())
}

/// Call this in the same command as [`Worker::install`], after it and before numbers are granted: new SAs continue with
/// their recorded ages and counts.
pub fn give(worker: &mut Worker, lives: &Lives) {
    let sessions = worker.sessions().to_vec();
    for (place, lived) in lives {
        if let Some(&session) = sessions.get(*place) {
            worker.engine().resume_life(session, lived);
        }
    }
}

/// The ages and counts of the file's SAs.
pub fn take(worker: &mut Worker, file: &SasFile) -> Lives {
    let sessions = worker.sessions().to_vec();
    let sad = worker.engine().sad();
    limited(file).filter_map(|(place, _)| Some((place, sad.lived(*sessions.get(place)?)?))).collect()
}

/// Records the ages and counts that were taken.
pub fn settle(store: &IvStore, file: &SasFile, taken: &Lives, now: std::time::Duration) {
    let now = now.as_millis() as u64;
    let id =
        |place: usize| file.entries.get(place).map(|entry| SequenceId::of(&entry.keys, entry.config.spi));
    let notes = taken.iter().filter_map(|(place, lived)| Some((id(*place)?, note(lived, now))));
    if let Err(error) = store.settle_lives(&notes.collect::<Vec<_>>()) {
        tracing::warn!(%error, "cannot save lifetimes; packets and bytes counted since the last reload are lost; look at space and permissions of `state`");
    }
}

/// The SAs that have limits.
fn limited(file: &SasFile) -> impl Iterator<Item = (usize, SequenceId)> {
    let id = |entry: &SaEntry| SequenceId::of(&entry.keys, entry.config.spi);
    let entries = file.entries.iter().enumerate();
    entries
        .filter(|(_, entry)| entry.config.lifetime != Lifetime::default())
        .map(move |(place, entry)| (place, id(entry)))
}

/// An earlier time means that the clock was not set, in milliseconds since the Unix epoch: January 2020.
const CLOCK_UNSET: u64 = 1_577_836_800_000;

fn lived(note: LifeNote, now: u64) -> Lived {
    let noted = note.at.max(note.since).max(note.used.unwrap_or(0));
    let is_first_set = noted < CLOCK_UNSET && now >= CLOCK_UNSET;
    // If the clock was set back, no SA becomes younger than recorded; if it was set for the first time, none becomes older.
    let until = if is_first_set { noted } else { now.max(noted) };
    let since = |then: u64| Duration::from_millis(until.saturating_sub(then));
    Lived { age: since(note.since), used: note.used.map(since), packets: note.packets, bytes: note.bytes }
}

fn note(lived: &Lived, now: u64) -> LifeNote {
    let before = |length: Duration| now.saturating_sub(length.as_nanos() / 1_000_000);
    let Lived { age, used, packets, bytes } = *lived;
    LifeNote { since: before(age), used: used.map(before), packets, bytes, at: now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_was_lived_whenever_it_is_read() {
        let lived_for = |ms| Duration::from_millis(ms);
        let before = Lived { age: lived_for(5_000), used: Some(lived_for(3_000)), packets: 7, bytes: 70 };
        let kept = note(&before, 100_000);
        assert_eq!(kept, LifeNote { since: 95_000, used: Some(97_000), packets: 7, bytes: 70, at: 100_000 });
        assert_eq!(lived(kept, 100_000), before);
        let later = Lived { age: lived_for(65_000), used: Some(lived_for(63_000)), ..before };
        assert_eq!(lived(kept, 160_000), later);
        assert_eq!(lived(kept, 0), before, "the clock was put back");
    }

    /// A machine without a battery for its clock starts in 1970, and its clock is set later.
    #[test]
    fn an_sa_is_as_old_as_it_was_when_the_clock_is_set() {
        let age = Duration::from_millis(5_000);
        let before = Lived { age, used: None, packets: 0, bytes: 0 };
        let kept = note(&before, 60_000);
        assert_eq!(lived(kept, CLOCK_UNSET + 1_000), before);
        assert_eq!(lived(kept, 61_000).age, Duration::from_millis(6_000));
        let set = note(&before, CLOCK_UNSET);
        assert_eq!(lived(set, CLOCK_UNSET + 1_000).age, Duration::from_millis(6_000));
        assert_eq!(lived(LifeNote { at: 0, ..set }, 7).age, Duration::ZERO, "a note of a version before");
    }
}
