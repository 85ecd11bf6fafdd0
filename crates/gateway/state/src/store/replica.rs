//! Copies of records elsewhere: at the other gateway of a pair, or in the store of a cluster; and how a gateway takes such records over.
//!
//! The gateway that serves an SA sends each record before it uses the recorded numbers. The other gateway keeps it in its own journal,
//! and takes over from there as it would start after a kill.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::journal::Writing;
use super::record::half;
use super::{IvStore, IvStoreError, KeyId, Plausible, Record};

/// Distance by which limits of replay windows are ahead of their use. With a larger distance, limits are recorded less often and may take
/// longer. When another gateway takes over, or this one restarts after a crash, it refuses the numbers up to the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Time of packets by which they are ahead.
    pub time: Duration,
    /// Minimum number by which they are ahead.
    pub least: u64,
    /// Time for which requests are gathered if no packet waits for them: one record costs as much as many.
    pub gather: Duration,
    /// Time between two checks for limits that are too far ahead, and between two attempts to record.
    pub look: Duration,
}

impl Ahead {
    /// The distances if each record costs a write to a disk here.
    pub const DISK: Ahead = Ahead {
        time: Duration::from_secs(1),
        least: 16,
        gather: Duration::from_millis(5),
        look: Duration::from_secs(1),
    };
}

/// Another place for records: the other gateway of a pair, or the store that the gateways of a cluster share.
pub trait Replica: fmt::Debug + Send + Sync {
    /// Begins to record these there. The numbers that they allow must not be used before [`Noting::wait`] has returned; hold the
    /// returned value until the records are on the disk here.
    ///
    /// # Errors
    /// If numbers must not be used without a record there, and recording fails: then do not record them here either.
    fn begin(&self, records: &[Record]) -> Result<Box<dyn Noting>, NotNoted>;

    /// Whether unused sequence numbers of a reservation have to be recorded there too.
    fn takes_unused(&self) -> bool {
        false
    }

    /// Distance by which limits of replay windows have to be ahead of their use.
    fn ahead(&self) -> Ahead;

    /// Changes when another gateway has connected.
    fn epoch(&self) -> u64;
}

/// Records on their way to the other gateway.
pub trait Noting {
    /// Waits until they are recorded there, or the connection is lost: this gateway then continues alone.
    fn wait(self: Box<Self>);
}

/// The reason for which records cannot be made elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotNoted(pub String);

/// No other gateway.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Replica for Alone {
    fn begin(&self, _records: &[Record]) -> Result<Box<dyn Noting>, NotNoted> {
        Ok(Box::new(Alone))
    }

    fn ahead(&self) -> Ahead {
        Ahead::DISK
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Noting for Alone {
    fn wait(self: Box<Self>) {}
}

impl IvStore {
    /// The IV above which each cipher key has to begin, by all records here, for SAs whose IVs are not reserved here.
    ///
    /// # Errors
    /// If the journal cannot be read, or is damaged.
    pub fn used_ivs(&self) -> Result<BTreeMap<KeyId, u64>, IvStoreError> {
        self.read(|records| records.ivs.iter().map(|(key, ends)| (*key, ends[0].max(ends[1]))).collect())
    }

    /// All records except replay windows, including those of the other gateway.
    ///
    /// # Errors
    /// If the journal cannot be read, or is damaged.
    pub fn records(&self) -> Result<Vec<Record>, IvStoreError> {
        self.read(|records| records.without_windows().collect())
    }

    /// Whether there is a record that another gateway may need.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn has_records(&self) -> Result<bool, IvStoreError> {
        self.read(|records| records.len() > 0)
    }

    /// Takes over records of the other gateway, durably; [`IvStore::put_windows`] takes over replay windows. Of two
    /// records of one SA, the one that allows less is valid. Returns whether numbers were used there beyond those recorded here.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or is damaged, or a record exceeds what is `plausible`: then nothing is
    /// taken over.
    pub fn take_over(&self, records: &[Record], plausible: Plausible) -> Result<bool, IvStoreError> {
        if records.iter().all(|record| matches!(record, Record::Window { .. })) {
            return Ok(false);
        }
        self.change(Writing::default(), |known| {
            let (mut new, mut raised) = (Vec::new(), false);
            for record in records {
                match *record {
                    Record::Ivs { key, until } => {
                        plausible.iv(key, until)?;
                        if known.ivs_of(key)[half(until)] < until {
                            new.push(record.clone());
                        }
                    }
                    Record::Numbers { id, last } => {
                        let before = known.numbers.get(&id).copied().unwrap_or(0);
                        plausible.number("sequence number", id, before, last)?;
                        if before < last {
                            new.push(record.clone());
                            raised = true;
                        }
                    }
                    Record::Life { id, note } => {
                        let before = known.lives.get(&id).copied();
                        let (packets, bytes) = before.map_or((0, 0), |known| (known.packets, known.bytes));
                        plausible.number("packet count", id, packets, note.packets)?;
                        plausible.number("byte count", id, bytes >> 16, note.bytes >> 16)?;
                        let note = before.map_or(note, |known| known.further(&note));
                        if before != Some(note) {
                            new.push(Record::Life { id, note });
                        }
                    }
                    Record::Window { .. } => {}
                }
            }
            Ok((new, raised))
        })
    }
}
