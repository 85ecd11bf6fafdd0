//! Why no IVs could be reserved.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use super::NotNoted;

/// Why no IVs could be reserved; none were given out.
#[derive(Debug)]
#[non_exhaustive]
pub enum IvStoreError {
    /// The environment names no directory for state.
    NoDirectory,
    /// The directory or a file in it cannot be written.
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A mark is there and cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file is there and says no mark.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another gateway that runs records its numbers there.
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The gateways of a cluster share their records, and these cannot be noted there.
    NotNoted(NotNoted),
    /// The numbers have come to an end for a key.
    UsedUp {
        /// The file with the key's mark.
        path: PathBuf,
    },
}

impl fmt::Display for IvStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IvStoreError::NoDirectory => f.write_str("no state directory for the record of used IVs"),
            IvStoreError::Write { path, .. } => {
                write!(f, "cannot write the record of used IVs: {}", path.display())
            }
            IvStoreError::Read { path, .. } => {
                write!(f, "cannot read the record of used IVs: {}", path.display())
            }
            IvStoreError::Corrupt { path, why } => {
                write!(f, "the record of used IVs is damaged: {}: {why}", path.display())
            }
            IvStoreError::InUse { directory } => {
                write!(f, "another gateway runs with the state in {}", directory.display())
            }
            IvStoreError::NotNoted(NotNoted(why)) => write!(f, "cannot record in the cluster's store: {why}"),
            IvStoreError::UsedUp { path } => {
                write!(f, "no IVs are left for the key of {}", path.display())
            }
        }
    }
}

impl Error for IvStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            IvStoreError::Write { error, .. } | IvStoreError::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl Diagnostic for IvStoreError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let text = match self {
            IvStoreError::NoDirectory => {
                "name one with --state DIR or FOREBAY_STATE, the same one every time: outbound SAs need \
                 a lasting record, because an IV used twice breaks the cipher"
            }
            IvStoreError::Write { .. } => {
                "name a directory that can be written with --state DIR or FOREBAY_STATE, and from then \
                 on the same one every time: an IV used twice breaks the cipher"
            }
            IvStoreError::Read { .. } => {
                "run as the user whom the file belongs to, or give this user the right to read it; do \
                 not remove it: it says which IVs of the key have been used"
            }
            IvStoreError::Corrupt { .. } => {
                "which IVs of this key have been used is not known any more. The safe way is a new key \
                 for the SA. If the file is restored from a backup, or removed, IVs are taken from the \
                 clock on: do that only if you are sure that the clock is right, has never been ahead, \
                 and that the key has been started at most now and then"
            }
            IvStoreError::InUse { .. } => {
                "end that one first, or give each gateway a directory of its own with `state` in `[keys]`: two would undo \
                 each other's records of sequence numbers and replay windows"
            }
            IvStoreError::NotNoted(_) => {
                "see what etcd says (`etcdctl endpoint status`); what was reserved before is used until its end"
            }
            IvStoreError::UsedUp { .. } => {
                "the SA needs a new key, or the machine's clock and this file's `reserved_until` (in ns \
                 since 1970) are far off"
            }
        };
        Some(Box::new(text))
    }
}
