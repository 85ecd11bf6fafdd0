//! The floor: one mark in the place of those of all keys whose IVs are behind the clock.
//!
//! A key that is not used any more leaves its mark, and nobody can tell whether it will be configured again. Its next
//! range starts behind the mark and behind the clock, so once the clock has passed the mark, the mark alone changes
//! nothing; it matters again only if the clock is set back. The floor keeps what it is needed for even then: it is at
//! least as high as each mark that it replaces, and every range starts behind the floor too. So no IV repeats, whatever
//! the clock does and whichever key comes back.
//!
//! The steps, under the lock of the directory, of which each leaves marks and floor that hold:
//!
//! ```text
//! read marks | write the floor, sync, rename, sync directory | remove the marks, sync directory
//! ```

use std::io;
use std::path::Path;

use super::key_id::KeyId;
use super::table::Table;
use super::{IvStore, IvStoreError, Mark, SCHEMA, Step, TOGETHER, read_mark, replace};

/// The file.
const FILE: &str = "floor.json";
/// So many keys keep a mark of their own, behind the clock or not.
pub(super) const KEPT: usize = 1_024;

impl IvStore {
    /// The floor; zero while there is none.
    pub(super) fn floor(&self) -> Result<u64, IvStoreError> {
        read_mark(&*self.files, &self.directory.join(FILE))
    }

    /// Replaces the marks that are behind the clock by the floor, if there are many marks; gives the floor and the
    /// marks that stand together. Marks that cannot be read stay as they are, for whoever has their keys.
    pub(super) fn prune(
        &self,
        now_ns: u64,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(u64, Table), IvStoreError> {
        let files = &*self.files;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        let together_path = self.directory.join(TOGETHER);
        let (before, mut together) = (self.floor()?, Table::read(files, &together_path)?);
        let names = files.names(&self.directory).map_err(failed(&self.directory))?;
        let own: Vec<_> = names.iter().filter(|name| is_mark(name)).collect();
        if own.len() + together.marks.len() <= self.kept {
            return Ok((before, together));
        }
        let marks = own.into_iter().filter_map(|name| {
            let path = self.directory.join(name);
            let mark = read_mark(files, &path).ok()?;
            (mark <= now_ns).then_some((path, mark))
        });
        let outdated: Vec<_> = marks.collect();
        let is_outdated = |mark: &u64| *mark <= now_ns;
        let highest = outdated.iter().map(|(_, mark)| *mark);
        let highest = highest.chain(together.marks.values().copied().filter(is_outdated)).max();
        let floor = before.max(highest.unwrap_or_default());
        if floor > before {
            let mark = serde_json::to_string(&Mark { schema: SCHEMA, reserved_until: floor });
            let text = mark.map_err(|error| failed(&self.directory)(error.into()))? + "\n";
            let written = replace(files, &[(self.directory.join(FILE), text)], after);
            written.map_err(failed(&self.directory))?;
            files.sync_directory(&self.directory).map_err(failed(&self.directory))?;
            after(Step::DirectorySynced).map_err(failed(&self.directory))?;
        }
        let count = together.marks.len();
        together.marks.retain(|_, mark| !is_outdated(mark));
        if together.marks.len() < count {
            let written = together.file(&together_path).and_then(|file| replace(files, &[file], after));
            written.map_err(failed(&together_path))?;
        }
        for (path, _) in &outdated {
            files.remove(path).map_err(failed(path))?;
            after(Step::Removed).map_err(failed(path))?;
        }
        files.sync_directory(&self.directory).map_err(failed(&self.directory))?;
        Ok((floor, together))
    }
}

/// Whether a file of this name holds the mark of one key.
fn is_mark(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let stem = name.strip_suffix(".json");
    stem.is_some_and(|stem| stem.len() == KeyId::DIGITS && stem.bytes().all(is_digit))
}

#[cfg(test)]
mod tests;
