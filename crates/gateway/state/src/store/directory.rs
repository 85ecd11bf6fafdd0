//! The directory of the records: where it is, and who may change it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The directory for a user's state, from the environment.
pub(super) fn of_user(environment: impl Fn(&str) -> Option<OsString>, is_root: bool) -> Option<PathBuf> {
    let path = |name| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG base directory specification says to ignore paths that are not absolute.
    let absolute = |name| path(name).filter(|path| path.is_absolute());
    path("FOREBAY_STATE")
        .or_else(|| absolute("XDG_STATE_HOME").map(|state| state.join("forebay")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state/forebay")))
        .or_else(|| is_root.then(|| forebay_config::SYSTEM_DIRECTORY.into()))
}

/// Makes the directory and its missing parents, each durably, and checks that no other user can change its content.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    make_missing(directory)?;
    let metadata = directory.metadata()?;
    let why = match (metadata.uid(), metadata.mode() & 0o777) {
        (owner, _) if owner != rustix::process::geteuid().as_raw() => {
            format!("it belongs to another user (UID {owner})")
        }
        (_, mode) => return exposed(mode).map_or(Ok(()), Err),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The reason for which a directory with these permissions is refused, if it is.
pub(super) fn exposed(mode: u32) -> Option<io::Error> {
    let why = format!("others can write to it (mode {:03o}, expected 700)", mode & 0o777);
    (mode & 0o022 != 0).then(|| io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn make_missing(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = match directory.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    make_missing(above)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        // Another process was faster; it may not have synced yet, so this one does.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made?,
    }
    sync(above)
}

/// Makes names in a directory durable: syncing a file does not cover its name (fsync(2)).
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &[(&str, &str)], is_root: bool) -> Option<PathBuf> {
        let find =
            |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        of_user(find, is_root)
    }

    #[test]
    fn the_environment_chooses_in_this_order() {
        let all = [("FOREBAY_STATE", "/a"), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(of(&all, true), Some("/a".into()));
        assert_eq!(of(&all[1..], true), Some("/b/forebay".into()));
        assert_eq!(of(&all[2..], true), Some("/c/.local/state/forebay".into()));
        assert_eq!(of(&[], true), Some("/var/lib/forebay".into()));
        assert_eq!(of(&[], false), None);
    }

    #[test]
    fn empty_and_relative_settings_are_none() {
        let none = [("FOREBAY_STATE", ""), ("XDG_STATE_HOME", "here"), ("HOME", "")];
        assert_eq!(of(&none, false), None);
        assert_eq!(of(&[("FOREBAY_STATE", "here")], false), Some("here".into()));
    }
}
