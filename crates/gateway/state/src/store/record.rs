//! A record of one key or SA, with its only codec: a key and a value in text. They are a line of the journal, a record in a
//! message to the other gateway of a pair, and a key and a value in etcd.

use std::collections::BTreeMap;
use std::fmt;

use forebay_ipsec::Received;
use serde::{Deserialize, Serialize};

use super::{KeyId, LifeNote, SequenceId};

/// The first IV of the upper half: the IVs of the second gateway of a pair ([`Territory`](super::Territory)).
pub(super) const HALF: u64 = 1 << 63;

/// The half of the IVs to which the end of a range belongs: the end is one above the last IV that may have been used.
pub(super) fn half(until: u64) -> usize {
    usize::from(until > HALF)
}

/// A record of one key or SA.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Record {
    /// All IVs of a cipher key below `until`, in its half, may have been used.
    Ivs {
        /// The key.
        key: KeyId,
        /// The first IV that was not reserved.
        until: u64,
    },
    /// Sequence numbers of an outbound SA up to `last` may have been used.
    Numbers {
        /// The SA.
        id: SequenceId,
        /// The last one.
        last: u64,
    },
    /// The numbers that an inbound SA has received, or may have.
    Window {
        /// The SA.
        id: SequenceId,
        /// See [`Received::top`].
        top: u64,
        /// See [`Received::certain`].
        certain: u64,
        /// See [`Received::missing`].
        missing: Vec<(u64, u64)>,
    },
    /// The age and counts of an SA.
    Life {
        /// The SA.
        id: SequenceId,
        /// Its age and counts.
        note: LifeNote,
    },
}

impl Record {
    /// The kind of the record (`i`, `n`, `w` or `l`), a slash, and the fingerprint of the key or SA. A later record
    /// with the same key replaces this one.
    pub fn key(&self) -> String {
        match self {
            Record::Ivs { key, .. } => format!("i/{key}"),
            Record::Numbers { id, .. } => format!("n/{id}"),
            Record::Window { id, .. } => format!("w/{id}"),
            Record::Life { id, .. } => format!("l/{id}"),
        }
    }

    /// The value of the record.
    pub fn value(&self) -> String {
        match self {
            Record::Ivs { until, .. } => until.to_string(),
            Record::Numbers { last, .. } => last.to_string(),
            Record::Window { top, certain, missing, .. } => {
                let gaps = missing.iter().map(|(first, last)| format!(" {first}-{last}"));
                format!("{top} {certain}{}", gaps.collect::<String>())
            }
            // A note consists of numbers, so serialisation cannot fail.
            Record::Life { note, .. } => serde_json::to_string(note).unwrap_or_default(),
        }
    }

    /// The record in a key and its value; `None` if they are not a record.
    pub fn parse(key: &str, value: &str) -> Option<Record> {
        let (kind, id) = key.split_once('/')?;
        let id = id.to_owned();
        Some(match kind {
            "i" => Record::Ivs { key: id.try_into().ok()?, until: value.parse().ok()? },
            "n" => Record::Numbers { id: id.try_into().ok()?, last: value.parse().ok()? },
            "w" => {
                let mut words = value.split(' ');
                let (top, certain) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let gap = |word: &str| {
                    let (first, last) = word.split_once('-')?;
                    Some((first.parse().ok()?, last.parse().ok()?))
                };
                let missing = words.map(gap).collect::<Option<_>>()?;
                Record::Window { id: id.try_into().ok()?, top, certain, missing }
            }
            "l" => Record::Life { id: id.try_into().ok()?, note: serde_json::from_str(value).ok()? },
            _ => return None,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key(), self.value())
    }
}

impl From<Record> for String {
    fn from(record: Record) -> String {
        record.to_string()
    }
}

impl TryFrom<String> for Record {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Record, &'static str> {
        let record = text.split_once(' ').and_then(|(key, value)| Record::parse(key, value));
        record.ok_or("expected a kind, a slash, a fingerprint, a space and the value of a record")
    }
}

/// The record of an inbound SA's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowNote {
    /// The SA.
    pub id: SequenceId,
    /// The numbers that it has received, or may receive before the next record.
    pub received: Received,
}

impl From<&WindowNote> for Record {
    fn from(note: &WindowNote) -> Record {
        let Received { top, certain, missing } = note.received.clone();
        Record::Window { id: note.id, top, certain, missing }
    }
}

impl WindowNote {
    /// The window in a record; `None` for a record of another kind.
    pub fn of(record: &Record) -> Option<WindowNote> {
        let Record::Window { id, top, certain, missing } = record else { return None };
        let received = Received { top: *top, certain: *certain, missing: missing.clone() };
        Some(WindowNote { id: *id, received })
    }
}

/// All records of a directory: the last one of each key is valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// By cipher key and half: the first IV that no reservation has covered; zero if there is none.
    pub(super) ivs: BTreeMap<KeyId, [u64; 2]>,
    /// All IVs below it count as used for every key: the highest end of the pruned keys.
    pub(super) floor: u64,
    /// The last sequence number of an outbound SA that may have been used.
    pub(super) numbers: BTreeMap<SequenceId, u64>,
    /// The window of an inbound SA, and the time of its record in seconds since the Unix epoch.
    pub(super) windows: BTreeMap<SequenceId, (Received, u64)>,
    /// The ages and counts of SAs with limits.
    pub(super) lives: BTreeMap<SequenceId, LifeNote>,
}

impl Records {
    /// Replaces the record with the same key. Ends of reserved IVs only rise.
    pub(super) fn apply(&mut self, record: Record, at: u64) {
        match record {
            Record::Ivs { key, until } => {
                self.raise_ivs(key, until);
            }
            Record::Numbers { id, last } => drop(self.numbers.insert(id, last)),
            Record::Window { id, top, certain, missing } => {
                self.windows.insert(id, (Received { top, certain, missing }, at));
            }
            Record::Life { id, note } => drop(self.lives.insert(id, note)),
        }
    }

    /// Raises the end of a key's reserved IVs in its half; returns whether it was lower.
    pub(super) fn raise_ivs(&mut self, key: KeyId, until: u64) -> bool {
        let known = &mut self.ivs.entry(key).or_default()[half(until)];
        std::mem::replace(known, until.max(*known)) < until
    }

    /// The ends of a key's reserved IVs by halves.
    pub(super) fn ivs_of(&self, key: KeyId) -> [u64; 2] {
        self.ivs.get(&key).copied().unwrap_or_default()
    }

    /// All records except replay windows.
    pub(super) fn without_windows(&self) -> impl Iterator<Item = Record> + '_ {
        let ivs = self.ivs.iter().flat_map(|(&key, ends)| {
            ends.iter().filter(|until| **until > 0).map(move |&until| Record::Ivs { key, until })
        });
        let numbers = self.numbers.iter().map(|(&id, &last)| Record::Numbers { id, last });
        let lives = self.lives.iter().map(|(&id, &note)| Record::Life { id, note });
        ivs.chain(numbers).chain(lives)
    }

    /// The records of replay windows, and the time of each.
    pub(super) fn window_notes(&self) -> impl Iterator<Item = (WindowNote, u64)> + '_ {
        self.windows.iter().map(|(&id, (received, at))| (WindowNote { id, received: received.clone() }, *at))
    }

    /// Number of records.
    pub(super) fn len(&self) -> usize {
        self.ivs.len() + self.numbers.len() + self.windows.len() + self.lives.len()
    }

    /// Replaces ends of reserved IVs that are below the clock by the floor, if there are more than `kept` keys. Those of the upper half
    /// stay: the other gateway of a pair needs them by their keys.
    pub(super) fn prune_ivs(&mut self, now_ns: u64, kept: usize) {
        if self.ivs.len() <= kept {
            return;
        }
        let mut floor = self.floor;
        self.ivs.retain(|_, [low, high]| {
            let is_behind = *low <= now_ns && *high == 0;
            floor = floor.max(if is_behind { *low } else { 0 });
            !is_behind
        });
        self.floor = floor;
    }

    /// Forgets the windows of SAs that are not `used`, the oldest first, if there are more than `most`.
    pub(super) fn forget_windows(&mut self, most: usize, used: &dyn Fn(&SequenceId) -> bool) {
        let unused = self.windows.iter().filter(|(id, _)| !used(id)).map(|(id, (_, at))| (*at, *id));
        let mut unused: Vec<_> = unused.collect();
        unused.sort_unstable();
        let surplus = unused.len().saturating_sub(most);
        unused.iter().take(surplus).for_each(|(_, id)| drop(self.windows.remove(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SequenceId {
        "0f".repeat(16).try_into().unwrap()
    }

    #[test]
    fn records_come_back_as_they_were() {
        let life = LifeNote { since: 5, used: Some(6), packets: 7, bytes: 8, at: 9 };
        let records = [
            Record::Ivs { key: "1e".repeat(16).try_into().unwrap(), until: u64::MAX },
            Record::Numbers { id: id(), last: 1 << 33 },
            Record::Window { id: id(), top: 900, certain: 800, missing: vec![(3, 4), (7, 7)] },
            Record::Window { id: id(), top: 0, certain: 0, missing: vec![] },
            Record::Life { id: id(), note: life },
        ];
        for record in records {
            assert_eq!(Record::parse(&record.key(), &record.value()), Some(record.clone()));
            assert_eq!(Record::try_from(record.to_string()), Ok(record));
        }
        let key = format!("n/{}", id());
        for (key, value) in
            [("n/0f", "1"), ("n/", "1"), ("w/", "1"), ("x/0f", "1"), ("", ""), (key.as_str(), "-1")]
        {
            assert_eq!(Record::parse(key, value), None, "{key}");
        }
    }

    #[test]
    fn only_windows_of_sas_that_are_not_used_are_forgotten_and_the_oldest_first() {
        let mut records = Records::default();
        let id = |number: u32| -> SequenceId { format!("{number:032x}").try_into().unwrap() };
        for number in 0..200 {
            records.windows.insert(id(number), (Received::up_to(1), u64::from(number)));
        }
        records.forget_windows(100, &|one| [id(0), id(50)].contains(one));
        assert_eq!(records.windows.len(), 102);
        assert!([0, 50, 198].iter().all(|number| records.windows.contains_key(&id(*number))));
        assert!([1, 98, 99].iter().all(|number| !records.windows.contains_key(&id(*number))));
    }
}
