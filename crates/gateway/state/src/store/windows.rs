//! Durable notes of what inbound SAs have received, for SAs whose keys outlive the process.
//!
//! An SA that began with an empty replay window again would accept replayed packets. The highest number of its window is
//! therefore noted ahead of use, as outbound sequence numbers are: what may have been received counts as
//! received. After a clean stop or an end by an error the note is exact, with the gaps in the window.
//!
//! Notes change much more often than marks of IVs, about once a second for each SA in use. Therefore they are lines that
//! are appended to one file and synced, and the file is replaced by one without outdated lines when these are many:
//!
//! ```text
//! <checksum> {"batch":7,"id":"9ec7...","top":4096,"certain":2048,"missing":[],"at":1764000000}
//! ```
//!
//! The last line of an SA holds. Each append is synced before the next one begins, so that a crash can damage lines of
//! the last batch only; of that batch nothing was used yet, and lines that are damaged are passed over. A damaged line
//! of any other batch is an error: to go on without it could let recorded packets in.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_ipsec::Received;
use forebay_planted::{Fault, planted};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::files::{Files, Identity};
use super::{IvStore, IvStoreError, Replica, SequenceId, Step, provenance, replace};

/// The file.
pub(super) const FILE: &str = "windows.log";
/// Longest file, in bytes.
const MAX_LEN: u64 = 256 << 20;
/// Outdated lines from which on the file is replaced, if they are more than those that hold.
const OUTDATED_MIN: usize = 4_096;
/// Most notes that are kept of SAs that are not in use; the oldest are forgotten first.
const UNUSED_MAX: usize = 16_384;

/// What is noted of an SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowNote {
    /// The SA.
    pub id: SequenceId,
    /// What it has received, or may have before this is noted again.
    pub received: Received,
}

/// A line of the file, behind its checksum.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// Lines that were appended together have one number, higher than those before.
    batch: u64,
    id: SequenceId,
    top: u64,
    certain: u64,
    missing: Vec<(u64, u64)>,
    /// When it was written, in seconds since the Unix epoch.
    at: u64,
}

impl Line {
    fn text(&self) -> io::Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{} {json}\n", checksum(&json)))
    }

    /// The line with this text; `None` if it is damaged.
    fn parse(text: &[u8]) -> Option<Line> {
        let (sum, json) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        (sum == checksum(json)).then(|| serde_json::from_str(json).ok()).flatten()
    }
}

fn checksum(json: &str) -> String {
    Sha256::digest(json)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file as it was read or written last.
#[derive(Debug, Default)]
struct Notes {
    /// By what it is seen whether another process has changed it.
    file: Option<Identity>,
    lines: BTreeMap<SequenceId, Line>,
    /// Lines in the file, those that do not hold any more included.
    count: usize,
    /// The number of the last batch.
    batch: u64,
    /// Whether its end is damaged, so that nothing may be appended.
    damaged: bool,
}

/// The notes of a directory. A copy is the same one.
#[derive(Clone, Debug)]
pub struct WindowStore {
    directory: PathBuf,
    files: Arc<dyn Files>,
    replica: Arc<dyn Replica>,
    notes: Arc<Mutex<Notes>>,
}

impl WindowStore {
    /// The notes beside the marks of `store`. The file is made when something is noted first.
    pub fn new(store: &IvStore) -> WindowStore {
        let (directory, files) = (store.directory().to_owned(), store.files.clone());
        WindowStore { directory, files, replica: store.replica.clone(), notes: Arc::default() }
    }

    /// The other gateway of a pair, which is to note first what [`WindowStore::put`] notes.
    pub fn replica(&self) -> &dyn Replica {
        &*self.replica
    }

    /// Makes sure that something can be noted.
    ///
    /// # Errors
    /// If the directory cannot be made or written.
    pub fn prepare(&self) -> Result<(), IvStoreError> {
        let path = self.directory.clone();
        self.files.make_directory(&path).map_err(|error| IvStoreError::Write { path, error })?;
        let path = self.directory.join("lock");
        self.files.lock(&path).map(drop).map_err(|error| IvStoreError::Write { path, error })
    }

    /// What is noted of all SAs.
    ///
    /// # Errors
    /// If the file cannot be read, or says something else.
    pub fn all(&self) -> Result<Vec<WindowNote>, IvStoreError> {
        self.read(|notes| notes.lines.values().map(note).collect())
    }

    /// The notes on some SAs; SAs that the file does not contain are left out.
    ///
    /// # Errors
    /// As [`WindowStore::all`].
    pub fn of(&self, ids: &[SequenceId]) -> Result<Vec<WindowNote>, IvStoreError> {
        self.read(|notes| ids.iter().filter_map(|id| notes.lines.get(id)).map(note).collect())
    }

    fn read<T>(&self, select: impl FnOnce(&Notes) -> T) -> Result<T, IvStoreError> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.directory.join(FILE);
        let there = match self.files.identity(&path) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(IvStoreError::Read { path, error }),
        };
        if there {
            let lock_path = self.directory.join("lock");
            let _lock = self
                .files
                .lock(&lock_path)
                .map_err(|error| IvStoreError::Write { path: lock_path, error })?;
            notes.refresh(&*self.files, &path)?;
        } else {
            provenance::is_new(&*self.files, &path)?;
            *notes = Notes::default();
        }
        Ok(select(&notes))
    }

    /// Notes this of SAs, in the place of what was noted of them, and makes it durable. `at` is the time in seconds since
    /// the Unix epoch; notes of SAs that are not `used` may be forgotten, the oldest first, when there are very many.
    ///
    /// # Errors
    /// If the file cannot be read or written, or says something else. Then either what was noted before or what is noted
    /// here holds.
    pub fn put(
        &self,
        new: &[WindowNote],
        at: u64,
        used: &dyn Fn(&SequenceId) -> bool,
    ) -> Result<(), IvStoreError> {
        self.put_stepwise(new, at, used, &mut |_| Ok(()))
    }

    /// `after` is called behind each step; its error ends everything there, as a crash would.
    pub(super) fn put_stepwise(
        &self,
        new: &[WindowNote],
        at: u64,
        used: &dyn Fn(&SequenceId) -> bool,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), IvStoreError> {
        if new.is_empty() {
            return Ok(());
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let files = &*self.files;
        files.make_directory(&self.directory).map_err(failed(&self.directory))?;
        let lock_path = self.directory.join("lock");
        let _lock = files.lock(&lock_path).map_err(failed(&lock_path))?;
        after(Step::Locked).map_err(failed(&lock_path))?;
        let path = self.directory.join(FILE);
        notes.refresh(files, &path)?;
        // Until all is written, what is in memory does not count.
        let file = notes.file.take();
        notes.batch += 1;
        let batch = notes.batch;
        let line = |WindowNote { id, received: Received { top, certain, missing } }: &WindowNote| Line {
            batch,
            id: *id,
            top: *top,
            certain: *certain,
            missing: missing.clone(),
            at,
        };
        let lines: Vec<Line> = new.iter().map(line).collect();
        let count = notes.count + lines.len();
        let outdated = count.saturating_sub(notes.lines.len());
        let rewrites = file.is_none() || notes.damaged || outdated > OUTDATED_MIN.max(notes.lines.len());
        let written = if rewrites {
            notes.lines.extend(lines.into_iter().map(|line| (line.id, line)));
            notes.forget(used);
            notes.rewrite(files, &path, after)
        } else {
            let written = append(files, &path, &lines, after);
            notes.lines.extend(lines.into_iter().map(|line| (line.id, line)));
            notes.count = count;
            written
        };
        written.map_err(failed(&path))?;
        notes.file = Some(files.identity(&path).map_err(failed(&path))?);
        Ok(())
    }
}

impl Notes {
    /// Reads the file, unless it is as it was.
    fn refresh(&mut self, files: &dyn Files, path: &Path) -> Result<(), IvStoreError> {
        let read_error = |error| IvStoreError::Read { path: path.to_owned(), error };
        let file = match files.identity(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                provenance::is_new(files, path)?;
                *self = Notes::default();
                return Ok(());
            }
            Err(error) => return Err(read_error(error)),
        };
        if self.file == Some(file) {
            return Ok(());
        }
        let bytes = files.read(path, MAX_LEN).map_err(read_error)?;
        *self = Notes::parse(&bytes).map_err(|why| IvStoreError::Corrupt { path: path.to_owned(), why })?;
        self.file = Some(file);
        Ok(())
    }

    fn parse(bytes: &[u8]) -> Result<Notes, String> {
        let mut notes = Notes::default();
        // The first damaged line, and the first batch that has a line behind it.
        let mut damaged: Option<(usize, Option<u64>)> = None;
        for (number, text) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            notes.count += 1;
            let line = text.strip_suffix(b"\n").and_then(Line::parse);
            let Some(line) = line.filter(|line| line.batch >= notes.batch) else {
                damaged = damaged.or(Some((number + 1, None)));
                continue;
            };
            if let Some((_, behind)) = &mut damaged {
                behind.get_or_insert(line.batch);
            }
            notes.batch = line.batch;
            notes.lines.insert(line.id, line);
        }
        if let Some((number, behind)) = damaged {
            if behind.is_some_and(|batch| batch < notes.batch) {
                return Err(format!("line {number} is damaged"));
            }
            notes.damaged = !planted(Fault::TornLineKept);
        }
        Ok(notes)
    }

    /// Forgets the oldest notes of SAs that are not used, where there are too many of them.
    fn forget(&mut self, used: &dyn Fn(&SequenceId) -> bool) {
        let unused = self.lines.values().filter(|line| !used(&line.id)).map(|line| (line.at, line.id));
        let mut unused: Vec<_> = unused.collect();
        unused.sort();
        let most = unused.len().saturating_sub(UNUSED_MAX);
        unused.iter().take(most).for_each(|(_, id)| drop(self.lines.remove(id)));
    }

    /// Replaces the file by one with the lines that hold, as one batch.
    fn rewrite(
        &mut self,
        files: &dyn Files,
        path: &Path,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> io::Result<()> {
        let batch = self.batch;
        self.lines.values_mut().for_each(|line| line.batch = batch);
        let text = self.lines.values().map(Line::text).collect::<io::Result<String>>()?;
        replace(files, &[(path.to_owned(), text)], after)?;
        path.parent().map_or(Ok(()), |directory| files.sync_directory(directory))?;
        after(Step::DirectorySynced)?;
        (self.count, self.damaged) = (self.lines.len(), false);
        Ok(())
    }
}

fn append(
    files: &dyn Files,
    path: &Path,
    lines: &[Line],
    after: &mut dyn FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    let text = lines.iter().map(Line::text).collect::<io::Result<String>>()?;
    let mut file = files.append(path)?;
    after(Step::Opened)?;
    file.write(text.as_bytes())?;
    after(Step::Written)?;
    file.sync()?;
    after(Step::Synced)
}

fn note(line: &Line) -> WindowNote {
    let Line { id, top, certain, .. } = *line;
    WindowNote { id, received: Received { top, certain, missing: line.missing.clone() } }
}

#[cfg(test)]
mod tests;
