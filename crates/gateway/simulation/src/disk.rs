//! A simulated disk: what is not synced may be lost or torn when the power fails, and the process may be killed between
//! any two operations.
//!
//! A file's bytes are durable once the file was synced, its name once the directory was. Of names that were not, a
//! prefix of the changes survives, as with a journal of metadata; of bytes that were not, anything from nothing to all,
//! or zeros.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_planted::{Fault, planted};
use forebay_random::Random;
use forebay_state::{Files, Identity, Writing};

/// A file's bytes.
#[derive(Clone, Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    durable: Option<Vec<u8>>,
}

/// A change of names that is not durable yet.
#[derive(Clone, Debug)]
enum Renaming {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Clone, Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending: Vec<Renaming>,
    full: bool,
    /// Operations until the process is killed.
    kill_after: Option<u64>,
    /// The process has been killed: nothing it still does reaches anything.
    killed: bool,
}

/// The disk of a host. Its copies are of the same one.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is no room for another byte.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.lock().full
    }

    /// Kills the process after so many more operations.
    pub fn kill_after(&self, operations: u64) {
        self.lock().kill_after = Some(operations);
    }

    /// Whether the process has been killed.
    pub fn is_killed(&self) -> bool {
        self.lock().killed
    }

    /// Kills the process now.
    pub fn kill(&self) {
        self.lock().killed = true;
    }

    /// Lets a new process use the disk.
    pub fn revive(&self) {
        let mut state = self.lock();
        (state.killed, state.kill_after) = (false, None);
    }

    /// Everything that is on it, for [`Disk::put_back`].
    pub fn copy(&self) -> DiskCopy {
        let state = self.lock();
        DiskCopy(state.inodes.clone(), state.names.clone())
    }

    /// Has what a copy has, all of it durable, as one that was restored; or nothing, as a new one.
    pub fn put_back(&self, copy: DiskCopy) {
        let DiskCopy(mut inodes, names) = copy;
        inodes.iter_mut().for_each(|inode| inode.durable = Some(inode.bytes.clone()));
        let mut state = self.lock();
        *state = State { inodes, durable_names: names.clone(), names, full: state.full, ..State::default() };
    }

    /// Loses what a power failure loses.
    pub fn lose_power(&self, random: &mut Random) {
        let state = &mut *self.lock();
        let survive = random.below(state.pending.len() as u64 + 1) as usize;
        let mut names = std::mem::take(&mut state.durable_names);
        for change in state.pending.drain(..).take(survive) {
            apply(&mut names, change);
        }
        for inode in &mut state.inodes {
            if inode.durable.as_ref() == Some(&inode.bytes) {
                continue;
            }
            // What is durable stays; of what stands behind it, anything.
            let durable = inode.durable.as_ref().map_or(0, Vec::len);
            let tail = inode.bytes.len() - durable;
            match random.below(4) {
                0 => inode.bytes.truncate(durable),
                1 => inode.bytes[durable..].fill(0),
                _ => inode.bytes.truncate(durable + random.below(tail as u64 + 1) as usize),
            }
            inode.durable = Some(inode.bytes.clone());
        }
        state.durable_names = names.clone();
        state.names = names;
    }
}

/// What was on a disk at some time.
#[derive(Clone, Debug, Default)]
pub struct DiskCopy(Vec<Inode>, BTreeMap<PathBuf, usize>);

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: Renaming) {
    match change {
        Renaming::Create(name, inode) => drop(names.insert(name, inode)),
        Renaming::Rename(from, to) => {
            if let Some(inode) = names.remove(&from) {
                names.insert(to, inode);
            }
        }
        Renaming::Remove(name) => drop(names.remove(&name)),
    }
}

impl State {
    /// Begins an operation, which a killed process does not get to.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.kill_after {
            self.killed |= *left == 0;
            *left = left.saturating_sub(1);
        }
        if self.killed { Err(io::Error::other("the process is killed")) } else { Ok(()) }
    }

    fn change(&mut self, change: Renaming) {
        apply(&mut self.names, change.clone());
        self.pending.push(change);
    }
}

impl Files for Disk {
    fn make_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn Any>> {
        self.lock().begin()?;
        Ok(Box::new(()))
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut state = self.lock();
        state.begin()?;
        let inode = *state.names.get(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let bytes = &state.inodes[inode].bytes;
        Ok(bytes[..bytes.len().min(most as usize)].to_vec())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        let mut state = self.lock();
        state.begin()?;
        if state.full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.change(Renaming::Create(path.to_owned(), inode));
        Ok(Box::new(Open { disk: self.clone(), inode }))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        let mut state = self.lock();
        state.begin()?;
        let inode = *state.names.get(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Box::new(Open { disk: self.clone(), inode }))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let state = self.lock();
        let inode = *state.names.get(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok((inode as u64, state.inodes[inode].bytes.len() as u64, 0, 0))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.begin()?;
        state.change(Renaming::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.begin()?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(Renaming::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.begin()?;
        if !planted(Fault::SkippedDirectorySync) {
            state.durable_names = state.names.clone();
            state.pending.clear();
        }
        Ok(())
    }
}

/// A file that is being written.
struct Open {
    disk: Disk,
    inode: usize,
}

impl Writing for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.begin()?;
        if state.full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        state.inodes[self.inode].bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.begin()?;
        if !planted(Fault::SkippedSync) {
            let inode = &mut state.inodes[self.inode];
            inode.durable = Some(inode.bytes.clone());
        }
        Ok(())
    }
}
