//! The operations of a file system that the store uses; the simulation has an implementation that crashes between any two.

use std::any::Any;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::directory;

/// A file system, as far as the store uses it.
pub trait Files: fmt::Debug + Send + Sync {
    /// Makes a directory and its missing parents, each durably.
    ///
    /// # Errors
    /// An error of the system, as for all of these.
    fn make_directory(&self, directory: &Path) -> io::Result<()>;

    /// Locks a file, which is created if it is missing, until the returned lock is dropped.
    ///
    /// # Errors
    /// An error of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>>;

    /// Locks a file likewise, unless it is locked already: then there is no lock.
    ///
    /// # Errors
    /// An error of the system. A file system that only one process uses need not lock anything.
    fn try_lock(&self, _path: &Path) -> io::Result<Option<Lock>> {
        Ok(Some(Box::new(())))
    }

    /// The bytes of a file, up to a maximum.
    ///
    /// # Errors
    /// An error of the system; `NotFound` if there is no file.
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>>;

    /// Opens a file for writing, for its owner only, and empties it.
    ///
    /// # Errors
    /// An error of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Writing>>;

    /// Opens an existing file for appending.
    ///
    /// # Errors
    /// An error of the system.
    fn append(&self, path: &Path) -> io::Result<Box<dyn Writing>>;

    /// The identity of a file's content, which differs after a change.
    ///
    /// # Errors
    /// An error of the system; `NotFound` if there is no file.
    fn identity(&self, path: &Path) -> io::Result<Identity>;

    /// Renames a file within its directory, and replaces a file of that name.
    ///
    /// # Errors
    /// An error of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// An error of the system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// The names of the files in a directory.
    ///
    /// # Errors
    /// An error of the system. A file system on which nothing is ever removed need not list anything.
    fn names(&self, _directory: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// An error of the system.
    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A lock that ends when it is dropped.
pub type Lock = Box<dyn Any + Send + Sync>;

/// Inode, length, and time of the last write in seconds and nanoseconds.
pub type Identity = (u64, u64, i64, i64);

/// A file that is being written.
pub trait Writing {
    /// Appends bytes.
    ///
    /// # Errors
    /// An error of the system.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// An error of the system.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Files for System {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        directory::make(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        let file = open(options().write(true).create(true).truncate(false), path)?;
        rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        // Closing the file releases the lock.
        Ok(Box::new(file))
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let file = open(options().write(true).create(true).truncate(false), path)?;
        match rustix::io::retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(options().read(true), path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        let file = open(options().write(true).create(true), path)?;
        file.set_len(0)?;
        Ok(Box::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        let file = open(options().append(true), path)?;
        Ok(Box::new(Appending(file)))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let metadata = fs::metadata(path)?;
        Ok((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        directory::sync(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name()));
        // Names that are not text are not the gateway's.
        names.filter_map(|name| name.map(|name| name.into_string().ok()).transpose()).collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// With a link in place of a file, another file would be written or trusted; with a pipe, the gateway would wait for its
/// writer.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits() as i32);
    options
}

/// Opens a file that only its owner can change; the owner has to be that of its directory, or root.
fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    let why = if owner != 0 && owner != fs::metadata(above)?.uid() {
        format!("it belongs to another user (UID {owner})")
    } else if mode & 0o022 != 0 {
        format!("others can write to it (mode {mode:03o}, expected 600)")
    } else {
        return Ok(file);
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

impl Writing for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A file that only grows: its length is the only metadata that has to be durable.
pub(super) struct Appending(pub(super) File);

impl Writing for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
