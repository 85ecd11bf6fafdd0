//! The active gateway's records at the standby: in its own state directory, as if they were its own.
//!
//! Limits of replay windows arrive many times per second, only slightly above the received numbers. The standby records limits on its disk
//! that are further ahead, about once per second. It keeps the exact limits in memory and writes them when it takes over. If both
//! gateways end, the limits on the disk are valid.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_ipsec::Received;
use forebay_planted::{Fault, planted};
use forebay_state::{IvStore, IvStoreError, Plausible, Rate, Record, SequenceId, WindowNote};

/// Minimum and maximum of numbers by which a record on the disk is ahead.
const AHEAD: (u64, u64) = (64, 1 << 24);
/// A larger step of a window's top is not caused by packets: a peer that is itself a pair has taken over, in another stripe.
const JUMP: u64 = 1 << 20;

/// A window as the active gateway has recorded it, and as it is on the disk here.
#[derive(Clone, Debug)]
struct Window {
    received: Received,
    disk: u64,
    /// How far packets have moved the top, in total and recently.
    moved: u64,
    rate: Rate,
}

impl Window {
    fn new(received: Received, disk: u64) -> Window {
        Window { received, disk, moved: 0, rate: Rate::default() }
    }
}

/// The records of the other gateway. See the module.
#[derive(Debug)]
pub struct Mirror {
    store: IvStore,
    known: BTreeMap<SequenceId, Window>,
    /// The windows that the peer had recorded when this gateway became active.
    base: BTreeMap<SequenceId, Received>,
    /// Windows that are merged when the data plane has stopped; while it runs, the records are its own.
    owed: Vec<WindowNote>,
    /// The packets that this gateway had itself received in windows that were merged when its data plane stopped. The other gateway gets these,
    /// not its own limits, which are ahead: it would refuse the packets up to them.
    own: BTreeMap<SequenceId, Received>,
}

/// Which records of replay windows are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The newer ones: those of an active gateway whose peer has none of its own.
    New,
    /// Both: a number that either has received counts as received.
    Both,
}

impl Mirror {
    /// The mirror of records in a store without a replica.
    pub fn new(store: IvStore) -> Mirror {
        Mirror {
            store,
            known: BTreeMap::new(),
            base: BTreeMap::new(),
            owed: Vec::new(),
            own: BTreeMap::new(),
        }
    }

    /// All records here, for the other gateway: those in use if this gateway is `active`; after it was active, the packets that
    /// it has received itself.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn all(&self, active: bool) -> Result<Vec<Record>, IvStoreError> {
        let mut records = self.store.records()?;
        let windows = self.store.windows()?;
        let exact = windows.into_iter().map(|note| {
            let own = self.own.get(&note.id).filter(|_| !active);
            let known = self.known.get(&note.id).map(|window| &window.received);
            let received = own.or(known).cloned().unwrap_or(note.received);
            WindowNote { id: note.id, received }
        });
        records.extend(exact.map(|note| Record::from(&note)));
        Ok(records)
    }

    /// Records the active gateway's records; durable when this returns. Times are monotonic. Returns the SAs whose windows
    /// would have been lowered: certainly received numbers stay received.
    ///
    /// # Errors
    /// If they cannot be written, or exceed what is `plausible`; then nothing is recorded.
    pub fn note(
        &mut self,
        records: &[Record],
        holds: Holds,
        now: Duration,
        plausible: Plausible,
    ) -> Result<Vec<SequenceId>, IvStoreError> {
        let notes: Vec<WindowNote> = records
            .iter()
            .filter(|_| !planted(Fault::WindowsNotMirrored))
            .filter_map(WindowNote::of)
            .collect();
        let unknown: Vec<SequenceId> =
            notes.iter().map(|note| note.id).filter(|id| !self.known.contains_key(id)).collect();
        for note in self.store.windows_of(&unknown)? {
            let disk = note.received.top;
            self.known.insert(note.id, Window::new(note.received, disk));
        }
        for note in &notes {
            let known = self.known.get(&note.id).map_or(0, |window| window.received.top);
            plausible.number("received number", note.id, known, note.received.top)?;
        }
        self.store.take_over(records, plausible)?;
        let (mut written, mut put_back) = (Vec::new(), Vec::new());
        for WindowNote { id, received } in notes {
            let window = self.known.entry(id).or_insert_with(|| Window::new(received.clone(), 0));
            let before = window.received.top;
            let forward = forward(&window.received, &received);
            window.received = match (holds, forward) {
                (Holds::New, Some(forward)) => forward,
                (Holds::Both, Some(_)) => union(&window.received, &received),
                (_, None) => {
                    put_back.push(id);
                    union(&window.received, &received)
                }
            };
            let top = window.received.top;
            let is_exact = !window.received.missing.is_empty() || window.received.certain == top;
            window.moved += Some(top.saturating_sub(before)).filter(|moved| *moved < JUMP).unwrap_or(0);
            // The packets of a second: if both gateways end, that many are refused.
            let ahead = window.rate.lately(now, window.moved).clamp(AHEAD.0, AHEAD.1);
            let is_near = window.disk.saturating_sub(top) <= 2 * ahead;
            if top <= window.disk && is_near && !is_exact {
                continue;
            }
            window.disk = if is_exact { top } else { top.saturating_add(ahead) };
            let received = match is_exact {
                true => window.received.clone(),
                false => Received { top: window.disk, ..window.received.clone() },
            };
            written.push(WindowNote { id, received });
        }
        self.put(&written)?;
        Ok(put_back)
    }

    /// Merges records that the other gateway made while it could not send them. Returns whether numbers were used or received there
    /// that the running data plane does not know: it then has to restart after [`Mirror::settle`].
    ///
    /// # Errors
    /// If they cannot be written, or exceed what is `plausible`; then nothing is merged.
    pub fn merge_running(&mut self, records: &[Record], plausible: Plausible) -> Result<bool, IvStoreError> {
        for note in records.iter().filter_map(WindowNote::of) {
            // The data plane may have received many packets since.
            let known = self.base.get(&note.id).map_or(0, |known| known.top);
            plausible.number("received number", note.id, known, note.received.top)?;
        }
        let mut raised = self.store.take_over(records, plausible)?;
        for note in records.iter().filter_map(WindowNote::of) {
            let is_news = match self.base.get(&note.id) {
                Some(known) => adds(&note.received, known),
                None => note.received.top > 0,
            };
            if is_news {
                self.owed.push(note);
                raised = true;
            }
        }
        Ok(raised)
    }

    /// Writes the exact windows, before the data plane starts here, or when it has ended and this gateway `stands_by`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn settle(&mut self, stands_by: bool) -> Result<(), IvStoreError> {
        let known = std::mem::take(&mut self.known);
        let exact = known.into_iter().map(|(id, window)| WindowNote { id, received: window.received });
        self.put(&exact.collect::<Vec<_>>())?;
        let owed = std::mem::take(&mut self.owed);
        let ids: Vec<SequenceId> = owed.iter().map(|note| note.id).collect();
        let mut merged: BTreeMap<SequenceId, Received> =
            self.store.windows_of(&ids)?.into_iter().map(|note| (note.id, note.received)).collect();
        self.own.clear();
        if stands_by {
            let own = |id: &SequenceId| merged.get(id).cloned().unwrap_or_else(|| Received::up_to(0));
            self.own = ids.iter().map(|id| (*id, own(id))).collect();
        }
        for note in owed {
            let known = merged.entry(note.id).or_insert_with(|| note.received.clone());
            *known = union(known, &note.received);
        }
        let merged = merged.into_iter().map(|(id, received)| WindowNote { id, received });
        self.put(&merged.collect::<Vec<_>>())?;
        self.base = self.store.windows()?.into_iter().map(|note| (note.id, note.received)).collect();
        Ok(())
    }

    fn put(&self, notes: &[WindowNote]) -> Result<(), IvStoreError> {
        // It is not known here which of them an SA uses. The time of the write makes the journal forget the oldest first.
        self.store.put_windows(notes, 0, &|_| true)
    }
}

/// The window of the active gateway, without anything that would lower the window here: otherwise a peer with an older state directory, or
/// an attacker with the key of the link, could make recorded packets acceptable again. The certain number does not fall, and up to it no number
/// becomes missing that was not missing before. `None` if the top itself is below the certain number.
fn forward(known: &Received, said: &Received) -> Option<Received> {
    if said.top < known.certain {
        return None;
    }
    let mut missing = Vec::new();
    for &(first, last) in &said.missing {
        let news = (known.certain.saturating_add(1), u64::MAX);
        for &(from, to) in known.missing.iter().filter(|gap| gap.0 <= known.certain).chain(&[news]) {
            let to = if from <= known.certain { to.min(known.certain) } else { to };
            let gap = (first.max(from), last.min(to));
            if gap.0 <= gap.1 {
                missing.push(gap);
            }
        }
    }
    missing.sort_unstable();
    Some(Received { top: said.top, certain: said.certain.max(known.certain), missing })
}

/// The union of two windows: a number is missing if both miss it, or if one misses it and the other does not reach it.
fn union(one: &Received, other: &Received) -> Received {
    let (low, high) = if one.top <= other.top { (one, other) } else { (other, one) };
    let mut missing = Vec::new();
    for &(first, last) in &high.missing {
        for &(from, to) in low.missing.iter().chain(&[(low.top.saturating_add(1), u64::MAX)]) {
            let gap = (first.max(from), last.min(to));
            if gap.0 <= gap.1 {
                missing.push(gap);
            }
        }
    }
    missing.sort_unstable();
    Received { top: high.top, certain: one.certain.max(other.certain), missing }
}

/// Whether a window has numbers that another one lacks: above its top, or in its gaps.
fn adds(window: &Received, known: &Received) -> bool {
    let both = union(window, known);
    both.top > known.top || both.missing != known.missing
}

#[cfg(test)]
mod tests;
