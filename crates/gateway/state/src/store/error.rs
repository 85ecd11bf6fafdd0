//! Errors of recording, and of reading records.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use super::{KeyId, NotNoted, Role};

/// Why something could not be recorded, or what is recorded not be read; no number was given out.
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
    /// A file is there and cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file is there and says something else than records.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file with records was there and is not there any more.
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The directory is that of a gateway in another role, whose peers may have used what it does not know.
    OfOthers {
        /// The directory.
        path: PathBuf,
        /// What it is.
        was: Role,
        /// What it would be.
        is: Role,
    },
    /// Another gateway that runs records its numbers there.
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The other gateway says what cannot be, by what is known here.
    Implausible {
        /// What.
        what: String,
    },
    /// Other gateways have to know the records, or that they do not, and cannot be told.
    NotNoted(NotNoted),
    /// The IVs have come to an end for a key.
    UsedUp {
        /// The file with the records.
        path: PathBuf,
        /// The key.
        key: KeyId,
    },
}

impl fmt::Display for IvStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IvStoreError::NoDirectory => f.write_str("no state directory for the records of used numbers"),
            IvStoreError::Write { path, error } => {
                write!(f, "cannot write the records of used numbers: {}: {error}", path.display())
            }
            IvStoreError::Read { path, error } => {
                write!(f, "cannot read the records of used numbers: {}: {error}", path.display())
            }
            IvStoreError::Corrupt { path, why } => {
                write!(f, "the records of used numbers are damaged: {}: {why}", path.display())
            }
            IvStoreError::Missing { path } => {
                write!(f, "the file of records {} is missing", path.display())
            }
            IvStoreError::OfOthers { path, was, is } => {
                write!(f, "the state in {} is of {was}, this is {is}", path.display())
            }
            IvStoreError::InUse { directory } => {
                write!(f, "another gateway runs with the state in {}", directory.display())
            }
            IvStoreError::Implausible { what } => write!(f, "implausible records are refused: {what}"),
            IvStoreError::NotNoted(NotNoted(why)) => {
                write!(f, "cannot record where others have to know: {why}")
            }
            IvStoreError::UsedUp { path, key } => {
                write!(f, "no IVs are left for the key {key} in {}", path.display())
            }
        }
    }
}

impl Error for IvStoreError {}

impl Diagnostic for IvStoreError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let text = match self {
            IvStoreError::NoDirectory => {
                "name one with --state DIR or FOREBAY_STATE, the same one every time: outbound SAs need \
                 a lasting record, because an IV used twice breaks the cipher"
            }
            // What this crate refuses by itself has no number of the system.
            IvStoreError::Write { error, .. } | IvStoreError::Read { error, .. }
                if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() =>
            {
                "give the directory and all files in it to the user that the gateway runs as, and to no other one (chown -R, chmod \
                 -R go-w): whoever can change them has packets accepted that were received before. If others could, give the SAs new keys"
            }
            IvStoreError::Write { .. } => {
                "name a directory that can be written with --state DIR or FOREBAY_STATE, and from then \
                 on the same one every time: an IV used twice breaks the cipher"
            }
            IvStoreError::Read { .. } => {
                "run as the user whom the file belongs to, or give this user the right to read it; do \
                 not remove it: it says which IVs and sequence numbers have been used"
            }
            IvStoreError::Corrupt { .. } => {
                "which numbers have been used, and which packets received, is not known any more. The safe way is a new key \
                 for each SA, with the file removed and `forebay state accept`. A file restored from a backup lacks what was \
                 used since"
            }
            IvStoreError::Missing { .. } => {
                "put the file back. If it is lost, give the SAs new keys: which numbers were used and which packets were received is not \
                 known any more. `forebay state accept` has the gateway start without the file"
            }
            IvStoreError::OfOthers { .. } => {
                "what the other gateways have used and received since is not known here: give the SAs new keys, or take the state \
                 of the gateway that was active last. `forebay state accept` has the gateway leave with what it knows"
            }
            IvStoreError::InUse { .. } => {
                "end that one first, or give each gateway a directory of its own with `state` in `[keys]`: two would undo \
                 each other's records of sequence numbers and replay windows"
            }
            IvStoreError::Implausible { .. } => {
                "the peer has another state directory than it should have, or another host has the key of the link: see which \
                 gateway is right before it goes on, and replace the key (`key_file` in [pair]) if it may be known"
            }
            IvStoreError::NotNoted(_) => {
                "in a cluster see what etcd says (`etcdctl endpoint status`), in a pair whether the disk of `state` is full; what was \
                 reserved before is used until its end"
            }
            IvStoreError::UsedUp { .. } => {
                "the SA needs a new key, or the machine's clock and this key's records (`i/` lines, in ns since 1970, in the \
                 upper half 2^63 more) are far off"
            }
        };
        Some(Box::new(text))
    }
}
