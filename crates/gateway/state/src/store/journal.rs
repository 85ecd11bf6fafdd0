//! The journal: one file with all records. Lines are appended; when many lines are outdated, a file without them replaces it.
//!
//! ```text
//! <checksum> <batch> <seconds since the Unix epoch> <key> <value>
//! ccaa616b 0 0 journal 1 5f0c2f6b9d0a7e31
//! 0d6be1a2 7 1764000000 w/9ec756e096a28abd40fde631a986d900 4096 2048
//! ```
//!
//! The first line names the format and the journal, by a random number that the note has too: the journal of another directory is an
//! error. The last line of a key is valid. Each append is synced before the next one begins, so that a crash
//! can damage lines of the last batch only. Nothing of that batch was used yet, and its damaged lines are ignored. A damaged
//! line of any other batch is an error: without it, a number could be used again or a recorded packet be accepted. A journal that
//! ends before the write that the note names is an error too; that is the last write when the gateway started or ended.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use forebay_planted::{Fault, planted};
use sha2::{Digest, Sha256};

use super::files::{Files, Identity};
use super::record::{Record, Records};
use super::{IvStore, IvStoreError, SequenceId, legacy, note, replace};

/// The file.
pub(super) const FILE: &str = "records.log";
/// Maximum length of the file in bytes: about ten million SAs.
const MAX_LEN: u64 = 1 << 30;
/// The version of the format, which the first line names.
const SCHEMA: &str = "1";
/// The key of the first line, and that of the floor below which all IVs count as used.
const JOURNAL: &str = "journal";
const FLOOR: &str = "floor";
/// Number of outdated lines from which on the file is replaced, if they are more than the valid lines.
const OUTDATED_MIN: usize = 4_096;
/// Maximum number of windows of unused SAs that are kept; the oldest are forgotten first.
const UNUSED_MAX: usize = 16_384;

/// The journal as it was read or written last.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The identity of the file, by which changes of other processes are detected; `None` if it has to be read.
    file: Option<Identity>,
    /// Its name in the note; `None` in a journal of an earlier version.
    name: Option<String>,
    pub(super) records: Records,
    /// Lines in the file, including outdated ones.
    lines: usize,
    /// The number of the last batch: lines that were appended together have the same number, higher than the earlier ones.
    batch: u64,
    /// Whether its end is damaged, so that nothing may be appended.
    damaged: bool,
    /// Whether a write failed, so that nothing may be appended, because the last lines may not be on the disk.
    doubtful: bool,
    /// Whether the note is known to exist.
    is_noted: bool,
}

/// Further input of a write of records.
#[derive(Clone, Copy, Default)]
pub(super) struct Writing<'a> {
    /// The time in nanoseconds since the Unix epoch: ends of reserved IVs below it may be pruned.
    pub(super) now_ns: u64,
    /// The inbound SAs in use; without it no window is forgotten.
    pub(super) used: Option<&'a dyn Fn(&SequenceId) -> bool>,
    /// Whether the note has to name the write before its records are used.
    pub(super) is_noted: bool,
}

impl Journal {
    /// Reads the file if it has changed; moves records of earlier versions into it.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is missing.
    pub(super) fn refresh(&mut self, store: &IvStore) -> Result<(), IvStoreError> {
        let path = store.directory.join(FILE);
        let read_error = |error| IvStoreError::Read { path: path.clone(), error };
        let file = match store.files.identity(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(read_error(error)),
        };
        if file.is_some() && self.file == file {
            return Ok(());
        }
        *self = Journal { doubtful: self.doubtful, ..Journal::default() };
        // Without the note, a migration may have been interrupted; nothing was recorded after it.
        if !note::is_there(store)?
            && let Some(records) = legacy::records(store)?
        {
            return self.migrate(store, records);
        }
        let Some(file) = file else { return note::must_be_new(store, &path) };
        if file.1 > MAX_LEN {
            // A part of it would be mistaken for the whole.
            return Err(IvStoreError::Corrupt { path, why: format!("it is longer than {MAX_LEN} bytes") });
        }
        let parsed = read(store)?;
        if parsed.is_used() && !note::is_there(store)? {
            return Err(IvStoreError::Missing { path: store.directory.join(note::FILE) });
        }
        note::must_match(store, &path, parsed.batch, parsed.name.as_deref())?;
        *self = Journal { file: Some(file), doubtful: self.doubtful, ..parsed };
        Ok(())
    }

    /// Makes the file durable, so that the note may name its last write: the last lines of a killed process may not be on the disk.
    ///
    /// # Errors
    /// As [`Journal::establish`].
    pub(super) fn sync(&mut self, store: &IvStore) -> Result<(), IvStoreError> {
        self.establish(store)?;
        let path = store.directory.join(FILE);
        let synced = store.files.append(&path).and_then(|mut file| file.sync());
        synced.map_err(|error| IvStoreError::Write { path, error })?;
        store.written.store(self.batch, Ordering::Relaxed);
        Ok(())
    }

    /// The same, and ensures that there is a journal with a note.
    ///
    /// # Errors
    /// As [`Journal::refresh`], and if it cannot be written.
    pub(super) fn establish(&mut self, store: &IvStore) -> Result<(), IvStoreError> {
        self.refresh(store)?;
        if self.file.is_none() {
            return self.begin_anew(store);
        }
        if !self.is_noted {
            // A crash may have happened between the two.
            note::begin(store, self.name.as_deref())?;
            self.is_noted = true;
        }
        Ok(())
    }

    /// Makes the note of a journal again after an operator has accepted its loss.
    ///
    /// # Errors
    /// If the journal cannot be read, or the note not be written.
    pub(super) fn note_again(&mut self, store: &IvStore) -> Result<(), IvStoreError> {
        *self = Journal::default();
        note::begin(store, read(store)?.name.as_deref())
    }

    /// Whether its note was durable once: before that nothing is recorded except records of an earlier version, whose files are removed
    /// afterwards.
    fn is_used(&self) -> bool {
        self.batch > 0 || self.records.len() > 0
    }

    /// Begins an empty journal with a note.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn begin_anew(&mut self, store: &IvStore) -> Result<(), IvStoreError> {
        self.begin(store, Records::default())
    }

    fn begin(&mut self, store: &IvStore, records: Records) -> Result<(), IvStoreError> {
        let name = format!("{:016x}", RandomState::new().build_hasher().finish());
        *self = Journal { records, name: Some(name), ..Journal::default() };
        store.written.store(0, Ordering::Relaxed);
        // Before the journal: after a crash between the two the journal is missing, and not older than its note.
        note::expect_none(store)?;
        let path = store.directory.join(FILE);
        let written = self.rewrite(&*store.files, &path).and_then(|()| store.files.identity(&path));
        let file = written.map_err(|error| IvStoreError::Write { path, error })?;
        note::begin(store, self.name.as_deref())?;
        (self.file, self.is_noted) = (Some(file), true);
        Ok(())
    }

    /// Begins with the records of earlier versions. Their files are removed when all records are durable here.
    fn migrate(&mut self, store: &IvStore, records: Records) -> Result<(), IvStoreError> {
        self.begin(store, records)?;
        legacy::remove(store)?;
        tracing::info!(directory = %store.directory.display(), records = self.records.len(), "records of a version before are in the journal now");
        Ok(())
    }

    /// Appends records and makes them durable, or replaces the file if that is due. The file is locked.
    ///
    /// # Errors
    /// If it cannot be written: for each record, either the earlier or the new one is then valid.
    pub(super) fn write(
        &mut self,
        store: &IvStore,
        new: Vec<Record>,
        writing: Writing<'_>,
    ) -> Result<(), IvStoreError> {
        let path = store.directory.join(FILE);
        // Until all is written, neither the memory nor lines after the last synced one are valid.
        self.file = None;
        let doubts = std::mem::replace(&mut self.doubtful, true);
        self.batch += 1;
        let at = writing.now_ns / 1_000_000_000;
        let count = self.lines + new.len();
        let outdated = count.saturating_sub(self.records.len());
        let rewrites = doubts || self.damaged || outdated > OUTDATED_MIN.max(self.records.len());
        let text = (!rewrites).then(|| new.iter().map(|record| line(self.batch, at, record)).collect());
        new.into_iter().for_each(|record| self.records.apply(record, at));
        let written = match text {
            Some(text) => {
                self.lines = count;
                append(&*store.files, &path, text)
            }
            None => {
                self.records.prune_ivs(writing.now_ns, store.kept);
                if let Some(used) = writing.used {
                    self.records.forget_windows(UNUSED_MAX, used);
                }
                self.rewrite(&*store.files, &path)
            }
        };
        let written = written.and_then(|()| store.files.identity(&path));
        self.file = Some(written.map_err(|error| IvStoreError::Write { path, error })?);
        self.doubtful = false;
        store.written.store(self.batch, Ordering::Relaxed);
        Ok(())
    }

    /// Replaces the file by one with the valid records, as one batch.
    fn rewrite(&mut self, files: &dyn Files, path: &Path) -> io::Result<()> {
        let name = self.name.iter().map(|name| format!(" {name}")).collect::<String>();
        let mut text = line(self.batch, 0, format_args!("{JOURNAL} {SCHEMA}{name}"));
        self.lines = 1;
        let mut push = |at, record: &dyn fmt::Display| {
            text.push_str(&line(self.batch, at, record));
            self.lines += 1;
        };
        if self.records.floor > 0 {
            push(0, &format_args!("{FLOOR} {}", self.records.floor));
        }
        self.records.without_windows().for_each(|record| push(0, &record));
        self.records.window_notes().for_each(|(note, at)| push(at, &Record::from(&note)));
        replace(files, path, &text)?;
        self.damaged = false;
        Ok(())
    }

    fn parse(bytes: &[u8]) -> Result<Journal, String> {
        let mut journal = Journal::default();
        let mut lines = Lines::default();
        for text in bytes.split_inclusive(|&byte| byte == b'\n') {
            let entry = parse_line(text);
            if lines.number == 0 {
                let first = entry.as_ref().filter(|entry| entry.key == JOURNAL);
                match first.map(|entry| entry.value.split_once(' ').unwrap_or((entry.value, ""))) {
                    Some((SCHEMA, name)) => {
                        journal.name = Some(name.to_owned()).filter(|name| !name.is_empty())
                    }
                    _ => {
                        return Err(
                            "its first line does not name a format that this version knows".to_owned()
                        );
                    }
                }
            }
            let Some(Entry { at, key, value, .. }) = lines.take(entry, |entry| entry.batch) else { continue };
            match (key, Record::parse(key, value)) {
                (_, Some(record)) => journal.records.apply(record, at),
                (FLOOR, None) => {
                    let floor = value.parse().map_err(|_| format!("line {} has no floor", lines.number))?;
                    journal.records.floor = journal.records.floor.max(floor);
                }
                (JOURNAL, None) => {}
                (_, None) => {
                    return Err(format!("line {} is no record that this version knows", lines.number));
                }
            }
        }
        if lines.number == 0 {
            return Err("it is empty".to_owned());
        }
        journal.damaged = lines.end()? && !planted(Fault::TornLineKept);
        (journal.lines, journal.batch) = (lines.number, lines.batch);
        Ok(journal)
    }
}

fn read(store: &IvStore) -> Result<Journal, IvStoreError> {
    let path = store.directory.join(FILE);
    match store.files.read(&path, MAX_LEN) {
        Ok(bytes) => Journal::parse(&bytes).map_err(|why| IvStoreError::Corrupt { path, why }),
        Err(error) => Err(IvStoreError::Read { path, error }),
    }
}

/// Whether the journal of a directory had a note that is missing now.
///
/// # Errors
/// If it cannot be read.
pub(super) fn lacks_note(store: &IvStore) -> Result<bool, IvStoreError> {
    if note::is_there(store)? || !store.has(FILE) || legacy::are_there(store)? {
        return Ok(false);
    }
    match read(store) {
        Ok(journal) => Ok(journal.is_used()),
        // The reader of the records reports it.
        Err(IvStoreError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads lines in batches, of which only the last may be damaged.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) number: usize,
    pub(super) batch: u64,
    /// The first damaged line, and the first batch with a line after it.
    damaged: Option<(usize, Option<u64>)>,
}

impl Lines {
    /// Counts the next line, which is `None` if it is damaged, and returns it unless its batch is out of order.
    pub(super) fn take<T>(&mut self, line: Option<T>, batch: impl Fn(&T) -> u64) -> Option<T> {
        self.number += 1;
        let Some(line) = line.filter(|line| batch(line) >= self.batch) else {
            self.damaged = self.damaged.or(Some((self.number, None)));
            return None;
        };
        self.batch = batch(&line);
        if let Some((_, behind)) = &mut self.damaged {
            behind.get_or_insert(self.batch);
        }
        Some(line)
    }

    /// Whether the last batch is damaged.
    ///
    /// # Errors
    /// If another batch is damaged.
    pub(super) fn end(&self) -> Result<bool, String> {
        match self.damaged {
            Some((number, Some(behind))) if behind < self.batch => Err(format!("line {number} is damaged")),
            damaged => Ok(damaged.is_some()),
        }
    }
}

/// A line of the file.
struct Entry<'a> {
    batch: u64,
    at: u64,
    key: &'a str,
    value: &'a str,
}

pub(super) fn line(batch: u64, at: u64, record: impl fmt::Display) -> String {
    let text = format!("{batch} {at} {record}");
    format!("{} {text}\n", checksum(&text))
}

/// The line with this text; `None` if it is damaged.
fn parse_line(text: &[u8]) -> Option<Entry<'_>> {
    let (sum, text) = std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
    if sum != checksum(text) {
        return None;
    }
    let mut words = text.splitn(4, ' ');
    let (batch, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Entry { batch, at, key: words.next()?, value: words.next()? })
}

pub(super) fn checksum(text: &str) -> String {
    Sha256::digest(text)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn append(files: &dyn Files, path: &Path, text: String) -> io::Result<()> {
    let mut file = files.append(path)?;
    file.write(text.as_bytes())?;
    file.sync()
}
