//! Keys for Wireshark, written to the path in the file (`esp_sa_export`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use forebay_links::output::Output;
use zeroize::Zeroizing;

/// Where keys that come and go are written, for the thread that has them.
#[derive(Default)]
pub struct KeyExport {
    wanted: Mutex<Wanted>,
}

#[derive(Default)]
struct Wanted {
    path: Option<PathBuf>,
    is_stale: bool,
}

impl KeyExport {
    /// Writes to `path` from now on; `None`: nowhere.
    pub fn set(&self, path: Option<&Path>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted = Wanted { path: path.map(Path::to_owned), is_stale: true };
    }

    /// Marks the written keys as out of date.
    pub fn keys_changed(&self) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).is_stale = true;
    }

    /// Writes `text` if that is wanted and what was written is not true.
    ///
    /// # Errors
    /// What the system says; it is not tried again before something changes.
    pub fn refresh(&self, text: impl FnOnce() -> Zeroizing<String>) -> io::Result<()> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = std::mem::take(&mut wanted.is_stale);
        match &wanted.path {
            Some(path) if stale => write(path, &text()),
            _ => Ok(()),
        }
    }
}

/// Puts a file in the place of what is at `path`, for its owner's eyes only from its first byte on. A link is replaced, and
/// the file that it names is left alone.
///
/// # Errors
/// What the system says; of a device, a pipe or a folder, which are not replaced.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::remove_file(path)?,
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        _ => {}
    }
    let mut output = Output::create_with_mode(path, 0o600)?;
    output.write_all(text.as_bytes())?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_written_when_they_change_and_to_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("esp_sa");
        let export = KeyExport::default();
        let refresh = |text: &str| export.refresh(|| Zeroizing::new(text.to_owned())).unwrap();
        refresh("nobody wants it");
        assert!(!path.exists());
        export.set(Some(&path));
        refresh("one");
        refresh("it has not changed");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        export.keys_changed();
        refresh("two");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        export.set(None);
        export.keys_changed();
        refresh("three");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // Of this name was the temporary file once.
        fs::write(at("esp_sa.tmp"), "another's").unwrap();
        fs::write(at("linked"), "another's").unwrap();
        std::os::unix::fs::symlink(at("linked"), at("esp_sa")).unwrap();
        write(&at("esp_sa"), "keys").unwrap();
        for (name, text) in [("esp_sa.tmp", "another's"), ("linked", "another's"), ("esp_sa", "keys")] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), text, "{name}");
        }
        assert!(at("esp_sa").symlink_metadata().unwrap().is_file());
        assert!(write(folder.path(), "keys").is_err() && write(Path::new("/dev/null"), "keys").is_err());
    }
}
