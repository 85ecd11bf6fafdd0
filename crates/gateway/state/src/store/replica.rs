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

/// How far limits of replay windows are ahead of their use. The further, the more seldom they are recorded, and the longer
/// that may take; but when another gateway takes over, or this one starts again after a crash, it refuses the numbers up to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Time whose packets they are ahead by.
    pub time: Duration,
    /// Numbers that they are ahead by at least.
    pub least: u64,
    /// How long requests are gathered for which no packet waits: one record costs as much as many.
    pub gather: Duration,
    /// Time between two looks whether limits are too far ahead, and between two attempts to record.
    pub look: Duration,
}

impl Ahead {
    /// Where each record costs a write to a disk here.
    pub const DISK: Ahead = Ahead {
        time: Duration::from_secs(1),
        least: 16,
        gather: Duration::from_millis(5),
        look: Duration::from_secs(1),
    };
}

/// Where else records are kept: the other gateway of a pair, or the store that the gateways of a cluster share.
pub trait Replica: fmt::Debug + Send + Sync {
    /// Begins to have these noted there. What they allow must not be used before [`Noting::wait`] has returned; what is
    /// returned is to be held until they are on the disk here.
    ///
    /// # Errors
    /// Where nothing may be used that is not noted there, and they cannot be: then they are not to be noted here either.
    fn begin(&self, records: &[Record]) -> Result<Box<dyn Noting>, NotNoted>;

    /// Whether it is to be noted, too, which reserved sequence numbers were not used after all.
    fn takes_unused(&self) -> bool {
        false
    }

    /// How far limits of replay windows are to be ahead of their use.
    fn ahead(&self) -> Ahead;

    /// Changes when another gateway has connected.
    fn epoch(&self) -> u64;
}

/// Records on their way to the other gateway.
pub trait Noting {
    /// Waits until they are noted there, or the connection is lost: then this gateway goes on alone.
    fn wait(self: Box<Self>);
}

/// Why records cannot be noted elsewhere.
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
    /// Behind which IVs each cipher key has to begin, by all records that are here, for SAs whose IVs are not reserved here.
    ///
    /// # Errors
    /// If the journal cannot be read, or says something else.
    pub fn used_ivs(&self) -> Result<BTreeMap<KeyId, u64>, IvStoreError> {
        self.read(|records| records.ivs.iter().map(|(key, ends)| (*key, ends[0].max(ends[1]))).collect())
    }

    /// All records but replay windows, those that came from the other gateway included.
    ///
    /// # Errors
    /// If the journal cannot be read, or says something else.
    pub fn records(&self) -> Result<Vec<Record>, IvStoreError> {
        self.read(|records| records.without_windows().collect())
    }

    /// Whether anything is recorded that another gateway may have to know.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn has_records(&self) -> Result<bool, IvStoreError> {
        self.read(|records| records.len() > 0)
    }

    /// Takes over records of the other gateway, durably; replay windows are taken over by [`IvStore::put_windows`]. Of two
    /// records of one SA that holds which allows less. Whether numbers were used there beyond those that are recorded here.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or says something else, or a record goes beyond what is `plausible`: then nothing is
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
