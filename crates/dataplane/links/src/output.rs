//! Files that commands write: complete under their name or not at all, and never in the place of a file that the same
//! command reads.
//!
//! An [`Output`] is a temporary file beside the file that it becomes, or the file itself where that is a device or a
//! pipe. A complete one is on the disk before it has its name, so that a machine that stops leaves the earlier file or the
//! new one. [`stream`] is for files that are read while they grow. [`keep_apart`] compares outputs with inputs before anything is read or written.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// An open output. Dropped before [`Output::finish`], it leaves nothing behind.
pub struct Output(Target);

enum Target {
    /// A regular file, or one that does not exist yet: it appears when it is complete.
    Renamed { file: NamedTempFile, output: PathBuf },
    /// A device or a pipe, which has readers by its name and must not be replaced.
    Direct(File),
}

impl Output {
    /// Opens the output, with the permissions of the file that it replaces, or those of any new file.
    ///
    /// # Errors
    /// What the system says: of a directory, a missing one, or missing permissions.
    pub fn create(path: &Path) -> io::Result<Output> {
        Output::open(path, None)
    }

    /// The same with the permissions `mode` from its first byte on, whatever those of a file that it replaces were.
    ///
    /// # Errors
    /// As of [`Output::create`].
    #[cfg(unix)]
    pub fn create_with_mode(path: &Path, mode: u32) -> io::Result<Output> {
        use std::os::unix::fs::PermissionsExt;
        Output::open(path, Some(Permissions::from_mode(mode)))
    }

    fn open(path: &Path, wanted: Option<Permissions>) -> io::Result<Output> {
        // The file that a link points to is replaced, not the link.
        let output = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let permissions = match fs::metadata(&output) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                return OpenOptions::new().write(true).open(&output).map(|file| Output(Target::Direct(file)));
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
        let file = temporary(directory_of(&output), wanted, permissions)?;
        Ok(Output(Target::Renamed { file, output }))
    }

    /// Gives a complete output its name, once its bytes are on the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Target::Renamed { file, output } => {
                file.as_file().sync_all()?;
                persist(file, &output)?;
                sync_directory(directory_of(&output))
            }
            Target::Direct(mut file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Target::Renamed { file, .. } => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Target::Renamed { file, .. } => file.flush(),
            Target::Direct(file) => file.flush(),
        }
    }
}

fn persist(file: NamedTempFile, output: &Path) -> io::Result<File> {
    file.persist(output).map_err(|error| error.error)
}

/// Has the disk know of a name. Where a folder cannot be opened for reading, or its file system does not sync folders, the
/// name is there all the same.
fn sync_directory(directory: &Path) -> io::Result<()> {
    let Ok(directory) = File::open(directory) else { return Ok(()) };
    match directory.sync_all() {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file that others read while it grows: it has its name at once. What had the name before is replaced, not cut
/// off, so that its other names and its readers keep it.
///
/// # Errors
/// As of [`Output::create`].
pub fn stream(path: &Path) -> io::Result<File> {
    match Output::create(path)?.0 {
        Target::Renamed { file, output } => persist(file, &output),
        Target::Direct(file) => Ok(file),
    }
}

/// A temporary file with the permissions that are `wanted`, or `found` of the file it will replace, or those of any
/// new file.
fn temporary(
    directory: &Path,
    wanted: Option<Permissions>,
    found: Option<Permissions>,
) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".forebay-").suffix(".part");
    #[cfg(unix)]
    if let Some(wanted) = &wanted {
        builder.permissions(wanted.clone()); // less the umask
    } else if found.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666));
    }
    // A missing directory is reported before the temporary file's random name can appear in the message.
    fs::metadata(directory)?;
    let file = builder.tempfile_in(directory)?;
    if let (None, Some(found)) = (wanted, found) {
        file.as_file().set_permissions(found)?;
    }
    Ok(file)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes a whole file.
///
/// # Errors
/// As of [`Output::create`], and what the system says of the bytes.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut output = Output::create(path.as_ref())?;
    output.write_all(bytes.as_ref())?;
    output.finish()
}

/// Two arguments of a command that are one file, at least one of them an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameFile {
    /// The output, as it was named.
    pub output: PathBuf,
    /// What it would replace, as it was named: an input, or an earlier output.
    pub other: PathBuf,
    /// Whether the other is an output too.
    pub both_outputs: bool,
}

impl SameFile {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        "give the output another name; no file was changed"
    }
}

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (output, other) = (self.output.display(), self.other.display());
        match (self.both_outputs, self.output == self.other) {
            (true, true) => write!(f, "{output} is the name of two outputs"),
            (true, false) => write!(f, "the outputs {output} and {other} are the same file"),
            (false, true) => write!(f, "{output} is an input and would be overwritten by the output"),
            (false, false) => write!(f, "the output {output} is the same file as the input {other}"),
        }
    }
}

impl std::error::Error for SameFile {}

/// Refuses an output that would take the place of an input or of another output, by whatever name: through links, and
/// by another spelling. Devices and pipes are not replaced, so they may be both.
///
/// # Errors
/// The first such pair.
pub fn keep_apart<I: AsRef<Path>, O: AsRef<Path>>(
    inputs: impl IntoIterator<Item = I>,
    outputs: impl IntoIterator<Item = O>,
) -> Result<(), SameFile> {
    let inputs: Vec<(PathBuf, Option<Identity>)> =
        inputs.into_iter().map(|input| (input.as_ref().to_owned(), Identity::of(input.as_ref()))).collect();
    let mut earlier: Vec<(PathBuf, Identity)> = Vec::new();
    for output in outputs {
        let output = output.as_ref().to_owned();
        let Some(identity) = Identity::of(&output) else { continue };
        let input = inputs.iter().find(|(_, input)| input.as_ref() == Some(&identity));
        let other = input.map(|(other, _)| (other, false));
        let other = other.or_else(|| {
            earlier.iter().find(|(_, before)| *before == identity).map(|(other, _)| (other, true))
        });
        if let Some((other, both_outputs)) = other {
            return Err(SameFile { output, other: other.clone(), both_outputs });
        }
        earlier.push((output, identity));
    }
    Ok(())
}

/// By what a regular file is known, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    /// Of one that is there: device and inode.
    Found(u64, u64),
    /// Of one that is not: its folder and its name in it.
    Missing(u64, u64, std::ffi::OsString),
}

impl Identity {
    /// `None`: no regular file, or none that could be made.
    fn of(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(found) if found.is_file() => Some(Identity::Found(device(&found), inode(&found))),
            Ok(_) => None,
            Err(_) => {
                let folder = fs::metadata(directory_of(path)).ok()?;
                Some(Identity::Missing(device(&folder), inode(&folder), path.file_name()?.to_owned()))
            }
        }
    }
}

#[cfg(unix)]
fn device(of: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(of)
}

#[cfg(unix)]
fn inode(of: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn an_output_that_is_an_input_by_any_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in"), "kept").unwrap();
        fs::create_dir(at("below")).unwrap();
        symlink(at("in"), at("symbolic")).unwrap();
        fs::hard_link(at("in"), at("hard")).unwrap();
        for name in ["in", "symbolic", "hard", "./in", "below/../in"] {
            let refused = keep_apart([at("in")], [at(name)]).unwrap_err();
            assert_eq!((refused.output, refused.both_outputs), (at(name), false));
        }
        assert_eq!(keep_apart([at("in")], [at("out"), at("other")]), Ok(()));
        // Neither is there yet, and still they would be one.
        assert!(keep_apart([at("in")], [at("out"), at("below/../out")]).unwrap_err().both_outputs);
        // A device has nothing to lose.
        assert_eq!(keep_apart(["/dev/null"], ["/dev/null", "/dev/null"]), Ok(()));
    }

    #[test]
    fn a_stream_has_its_name_at_once_and_cuts_no_earlier_file_off() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("points"), folder.path().join("other"));
        fs::write(&path, "old").unwrap();
        fs::hard_link(&path, &other).unwrap();
        let mut file = stream(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_to_string(&other).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_output_appears_when_it_is_complete_and_with_the_permissions_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut output = Output::create_with_mode(&path, 0o600).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(output);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut output = Output::create_with_mode(&path, 0o600).unwrap();
        output.write_all(b"new").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
