//! Errors in the description of a tunnel or in a roll-over.

use std::fmt;

use forebay_crypto::Suite;

/// Why no files can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProvisionError {
    /// A side that is not `NAME=ADDRESS,NETWORK[,NETWORK...]`.
    Side {
        /// What was given.
        found: String,
        /// What of it is wrong.
        reason: String,
        /// What would be right.
        hint: String,
    },
    /// Two sides that do not go together.
    Sides {
        /// Why not.
        reason: String,
        /// What would be right.
        hint: String,
    },
    /// A suite that is not for a new tunnel.
    Suite {
        /// The suite.
        suite: Suite,
        /// Why not.
        reason: &'static str,
    },
    /// The configurations have no SA of which both sides are there.
    NoPair,
    /// The keys of this configuration come from an IKE daemon.
    FromIke {
        /// The configuration.
        file: String,
    },
    /// Two configurations that would get the same folder.
    SameName {
        /// The name of the folder.
        name: String,
    },
    /// A configuration in a form that is not edited.
    Form {
        /// The configuration.
        file: String,
        /// The line of the SA.
        line: usize,
        /// What cannot be edited.
        what: &'static str,
    },
}

impl fmt::Display for ProvisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side { found, reason, .. } => write!(f, "side `{found}`: {reason}"),
            Self::Sides { reason, .. } => f.write_str(reason),
            Self::Suite { suite, reason } => write!(f, "proposal `{suite}`: {reason}"),
            Self::NoPair => f.write_str("no SA is outbound in one of the files and inbound in another"),
            Self::FromIke { file } => {
                write!(f, "{file}: `source = \"xfrm\"`: its keys come from an IKE daemon")
            }
            Self::SameName { name } => write!(f, "two files would be written to the folder `{name}`"),
            Self::Form { file, line, what } => write!(f, "{file} line {line}: cannot edit {what}"),
        }
    }
}

impl std::error::Error for ProvisionError {}

impl ProvisionError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Side { hint, .. } | Self::Sides { hint, .. } => hint.clone(),
            Self::Suite { .. } => {
                "give `--proposal aes256-sha256` for keys in files, `aes256gcm16` with `--ike`".to_owned()
            }
            Self::NoPair => {
                "give the configuration of every gateway that has the SAs, each with its key files beside it"
                    .to_owned()
            }
            Self::FromIke { .. } => "the daemon makes new keys: `swanctl --rekey --child NAME`".to_owned(),
            Self::SameName { .. } => {
                "keep each gateway's configuration in a folder of its own name".to_owned()
            }
            Self::Form { .. } => {
                "make the new SAs by hand: docs/runbooks.md, \"New keys by hand\"".to_owned()
            }
        }
    }
}
