//! Where a capture is written to: a temporary file beside the output, or the output itself
//! where it is no regular file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// An open output. Dropped before [`Target::finish`], a temporary file is removed.
pub(super) enum Target {
    /// A regular file, or one that does not exist yet: it appears when it is complete.
    Renamed { file: NamedTempFile, output: PathBuf },
    /// A device or a pipe, which has readers by its name and must not be replaced.
    Direct(File),
}

impl Target {
    /// Opens the output; fails now where it could not be written later.
    pub(super) fn open(path: &Path) -> io::Result<Target> {
        // The file that a link points to is replaced, not the link.
        let output = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let permissions = match fs::metadata(&output) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                return OpenOptions::new().write(true).open(&output).map(Target::Direct);
            }
            Ok(found) => {
                // Renaming needs no permission of the file it replaces, but its owner would expect so.
                OpenOptions::new().append(true).open(&output)?;
                Some(found.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if output.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if output.to_string_lossy().ends_with(std::path::is_separator) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let directory = match output.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = temporary(directory, permissions)?;
        Ok(Target::Renamed { file, output })
    }

    /// Gives a complete output its name.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Target::Renamed { file, output } => file.persist(output).map(drop).map_err(|error| error.error),
            Target::Direct(mut file) => file.flush(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Renamed { file, .. } => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Renamed { file, .. } => file.flush(),
            Target::Direct(file) => file.flush(),
        }
    }
}

/// A temporary file with the permissions of the file it will replace, or those of any new file.
fn temporary(directory: &Path, permissions: Option<Permissions>) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".forebay-").suffix(".part");
    #[cfg(unix)]
    if permissions.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666)); // less the umask
    }
    // A missing directory is reported before the temporary file's random name can appear in the message.
    fs::metadata(directory)?;
    let file = builder.tempfile_in(directory)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(file)
}
