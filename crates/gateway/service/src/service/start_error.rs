//! Why a gateway does not start or change.

use std::fmt;
use std::io;

use forebay_config::Changes;
use forebay_engine::EngineError;

use forebay_state::IvStoreError;
use forebay_worker::InstallError;

/// Why a gateway did not start, or did not change.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A link or interface.
    Link {
        /// Which, and what was to be done.
        what: String,
        /// Why it was not.
        error: io::Error,
    },
    /// A network device by DPDK.
    NetworkDevice {
        /// Which link, and why it is not opened.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// The engine.
    Engine(EngineError),
    /// No IVs for the outbound SAs.
    Ivs(IvStoreError),
    /// An SA or policy.
    Install(InstallError),
    /// Something that this build or machine does not have.
    Lacking(String),
    /// A thread or descriptor.
    System(io::Error),
    /// A reload went by new SAs and policies, and what was to follow failed: rules of the host, routes, the export of keys.
    InPart {
        /// What is different all the same.
        changes: Box<Changes>,
        /// What failed first.
        error: Box<StartError>,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Link { what, error } => write!(f, "{what}: {error}"),
            StartError::NetworkDevice { what, .. } => f.write_str(what),
            StartError::Engine(error) => error.fmt(f),
            StartError::Ivs(error) => error.fmt(f),
            StartError::Install(error) => error.fmt(f),
            StartError::Lacking(what) => f.write_str(what),
            StartError::System(error) => error.fmt(f),
            StartError::InPart { error, .. } => error.fmt(f),
        }
    }
}

impl StartError {
    /// What a reload changed: also one that failed in part, whose failure is logged. For a role that goes on with the new SAs.
    ///
    /// # Errors
    /// Those after which the SAs are the earlier ones.
    pub fn or_in_part(reloaded: Result<Changes, StartError>) -> Result<Changes, StartError> {
        match reloaded {
            Err(StartError::InPart { changes, error }) => {
                tracing::error!(
                    "SAs and policies changed, but not all that follows from them: {:?}",
                    miette::Report::new(*error)
                );
                Ok(*changes)
            }
            reloaded => reloaded,
        }
    }
}

impl std::error::Error for StartError {}

impl From<IvStoreError> for StartError {
    fn from(error: IvStoreError) -> StartError {
        StartError::Ivs(error)
    }
}

impl miette::Diagnostic for StartError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = match self {
            StartError::Ivs(error) => return error.help(),
            StartError::InPart { error, .. } => return error.help(),
            StartError::NetworkDevice { help, .. } => return Some(Box::new(help.clone())),
            StartError::Link { what, error } => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "links require CAP_NET_ADMIN and CAP_NET_RAW: run as root, or use the systemd unit"
                }
                io::ErrorKind::AddrInUse => {
                    "address in use; if an IKE daemon owns UDP 4500, set `beside_ike = true`; `listen` names one address or IP version"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "the address is not assigned to any interface of this host"
                }
                io::ErrorKind::NotFound if what.starts_with("interface ") => {
                    "load the TUN module: modprobe tun"
                }
                io::ErrorKind::NotFound if what.starts_with("esp_sa_export ") => {
                    "make the directory, or give another path"
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Box::new(hint))
    }
}

/// An error of a link or interface, of which `what` says what was to be done.
pub(super) fn link_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> StartError {
    let what = what.into();
    move |error| StartError::Link { what, error }
}

/// An error about something that is not here.
pub(super) fn lacking(what: &str) -> StartError {
    StartError::Lacking(what.to_owned())
}
