//! What two gateways with the same SAs tell each other of their records, and what each keeps of the other's.
//!
//! A record says the same as a line of a file in the directory. The gateway that is active sends each to the other before
//! what is recorded is used; the other keeps it in its own directory, and takes over from there as it would start after
//! a kill.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use forebay_ipsec::Received;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ivs::Marks;
use super::table::Table;
use super::{
    IvStore, IvStoreError, KeyId, LifeNote, Plausible, SCHEMA, SequenceId, WindowNote, provenance, replace,
};

/// What a gateway of a pair remembers of the pair.
pub(super) const FILE: &str = "pair.json";
/// Longest such file, in bytes.
const MAX_LEN: u64 = 1_024;

/// A record of one key or SA.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Record {
    /// All IVs of a cipher key below `until`, in the territory that has it, may have been used.
    Ivs {
        /// The key.
        key: KeyId,
        /// The first that was not reserved.
        until: u64,
    },
    /// Sequence numbers of an outbound SA up to `last` may have been used.
    Numbers {
        /// The SA.
        id: SequenceId,
        /// The last one.
        last: u64,
    },
    /// What an inbound SA has received, or may have.
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
    /// How far an SA has come in its life.
    Life {
        /// The SA.
        id: SequenceId,
        /// Its life.
        note: LifeNote,
    },
}

impl From<&WindowNote> for Record {
    fn from(note: &WindowNote) -> Record {
        let Received { top, certain, missing } = note.received.clone();
        Record::Window { id: note.id, top, certain, missing }
    }
}

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

/// What a gateway of a pair remembers over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PairNote {
    schema: u32,
    /// Its number: the territory that its records are of.
    pub number: u8,
    /// The highest term that it has heard of.
    pub term: u64,
    /// Whether it was active and has records that the other may not have.
    pub unmerged: bool,
    /// Its records are complete up to this term: it was active in it, or has had everything of the gateway that was. `None` if nothing was
    /// heard yet, or something was not taken.
    #[serde(default)]
    pub complete: Option<u64>,
}

impl PairNote {
    /// That of a gateway which was never one of a pair.
    pub fn new(number: u8) -> PairNote {
        PairNote { schema: SCHEMA, number, term: 0, unmerged: false, complete: None }
    }

    /// Whether it may go on with what it has where the other gateway is not heard: it was the last that went on alone.
    pub fn was_alone(&self) -> bool {
        self.unmerged && self.complete.is_some_and(|complete| complete >= self.term)
    }
}

impl IvStore {
    /// What is remembered of the pair; `None` if nothing.
    ///
    /// # Errors
    /// If it cannot be read, or says something else.
    pub fn pair_note(&self) -> Result<Option<PairNote>, IvStoreError> {
        self.note(FILE, |note: &PairNote| note.schema)
    }

    /// Remembers this of the pair, durably. Only the gateway that has claimed the directory may, one thread at a time: the
    /// directory is not locked, because it may be that already by whoever reserves something that the peer cannot note.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_pair(&self, note: &PairNote) -> Result<(), IvStoreError> {
        self.remember(FILE, note)
    }

    /// A small file with a note that says its `schema`; `None` if it is not there.
    pub(super) fn note<T: DeserializeOwned>(
        &self,
        name: &str,
        schema: fn(&T) -> u32,
    ) -> Result<Option<T>, IvStoreError> {
        let path = self.directory.join(name);
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.clone(), why };
        let Some(text) = provenance::read(&*self.files, &path, MAX_LEN)? else { return Ok(None) };
        let note: T = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        match schema(&note) {
            SCHEMA => Ok(Some(note)),
            other => Err(corrupt(format!("it has schema {other}, expected {SCHEMA}"))),
        }
    }

    /// Writes such a file, durably.
    pub(super) fn remember(&self, name: &str, note: &impl Serialize) -> Result<(), IvStoreError> {
        let path = self.directory.join(name);
        let write = || {
            self.files.make_directory(&self.directory)?;
            let text = serde_json::to_string(note)? + "\n";
            replace(&*self.files, &[(path.clone(), text)], &mut |_| Ok(()))?;
            self.files.sync_directory(&self.directory)
        };
        write().map_err(|error| IvStoreError::Write { path: path.clone(), error })
    }

    /// Behind which IVs each cipher key has to begin, by all marks that are here, for SAs whose IVs are not reserved here.
    ///
    /// # Errors
    /// If a file cannot be read, or says something else.
    pub fn used_ivs(&self) -> Result<BTreeMap<KeyId, u64>, IvStoreError> {
        let marks = Marks::read(self)?;
        let behind = |marks: [u64; 2]| marks[0].max(marks[1]);
        Ok(marks.of.iter().map(|(key, marks)| (*key, behind(*marks))).collect())
    }

    /// All records but replay windows, those that came from the other gateway included.
    ///
    /// # Errors
    /// If a file cannot be read, or says something else.
    pub fn records(&self) -> Result<Vec<Record>, IvStoreError> {
        self.locked(|store| {
            let files = &*store.files;
            let mut records = Vec::new();
            for (key, marks) in Marks::read(store)?.of {
                let known = marks.into_iter().filter(|until| *until > 0);
                records.extend(known.map(|until| Record::Ivs { key, until }));
            }
            let mut numbers = store.retired()?;
            // What stands there of one that has come back is behind.
            numbers.extend(Table::read(files, &store.directory.join(super::sequences::FILE))?.marks);
            for (id, last) in numbers {
                records.extend(id.try_into().ok().map(|id| Record::Numbers { id, last }));
            }
            let lives = super::lifetimes::Table::read(files, &store.directory.join(super::lifetimes::FILE))?;
            records.extend(lives.sas.into_iter().map(|(id, note)| Record::Life { id, note }));
            Ok(records)
        })?
    }

    /// Takes over records of the other gateway, durably; replay windows are [`WindowStore`](super::WindowStore)'s. Of two
    /// records of one SA that holds which allows less. Whether numbers were used there beyond those that are recorded here.
    ///
    /// # Errors
    /// If a file cannot be read or written, or says something else, or a record goes beyond what is `plausible`: then no number, IV or
    /// life is taken over.
    pub fn take_over(&self, records: &[Record], plausible: Plausible) -> Result<bool, IvStoreError> {
        let (mut ivs, mut numbers, mut lives) = (Vec::new(), Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Ivs { key, until } => ivs.push((*key, *until)),
                Record::Numbers { id, last } => numbers.push((*id, *last)),
                Record::Life { id, note } => lives.push((*id, *note)),
                Record::Window { .. } => {}
            }
        }
        ivs.iter().try_for_each(|(key, until)| plausible.iv(*key, *until))?;
        let ids: Vec<SequenceId> = numbers.iter().map(|(id, _)| *id).collect();
        let raised = self.change_sequences(&ids, |marks| Some(raise_numbers(marks, &numbers, plausible)))?;
        let raised = raised.unwrap_or(Ok(false))?;
        self.raise_ivs(ivs)?;
        if !lives.is_empty() {
            self.change_lives(|sas| {
                for (id, note) in &lives {
                    let known = sas.get(id).copied().unwrap_or_default();
                    plausible.number("packet count", *id, known.packets, note.packets)?;
                    plausible.number("byte count", *id, known.bytes >> 16, note.bytes >> 16)?;
                }
                for (id, note) in lives {
                    let known = sas.entry(id).or_insert(note);
                    *known = known.further(&note);
                }
                Ok::<(), IvStoreError>(())
            })??;
        }
        Ok(raised)
    }

    /// Raises the marks of IVs that are lower.
    fn raise_ivs(&self, ivs: Vec<(KeyId, u64)>) -> Result<(), IvStoreError> {
        if ivs.is_empty() {
            return Ok(());
        }
        self.locked(|store| {
            let mut marks = Marks::read(store)?;
            // All of them, so no `any`.
            let raised = ivs.into_iter().filter(|(key, until)| marks.raise(*key, *until)).count();
            if raised == 0 { Ok(()) } else { store.write_marks(&marks, &mut |_| Ok(())) }
        })?
    }

    pub(super) fn locked<T>(&self, work: impl FnOnce(&IvStore) -> T) -> Result<T, IvStoreError> {
        let path = self.directory.clone();
        self.files.make_directory(&path).map_err(|error| IvStoreError::Write { path, error })?;
        let path = self.directory.join("lock");
        let _lock = self.files.lock(&path).map_err(|error| IvStoreError::Write { path, error })?;
        Ok(work(self))
    }
}

/// Raises the marks of sequence numbers that are lower; whether there were any.
fn raise_numbers(
    marks: &mut BTreeMap<String, u64>,
    numbers: &[(SequenceId, u64)],
    plausible: Plausible,
) -> Result<bool, IvStoreError> {
    let known = |id: &SequenceId| marks.get(&id.to_string()).copied().unwrap_or(0);
    numbers.iter().try_for_each(|(id, last)| plausible.number("sequence number", *id, known(id), *last))?;
    let mut raised = false;
    for (id, last) in numbers {
        let mark = marks.entry(id.to_string()).or_default();
        raised |= *mark < *last;
        *mark = (*mark).max(*last);
    }
    Ok(raised)
}
