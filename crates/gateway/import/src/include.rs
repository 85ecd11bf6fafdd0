//! Included files of a configuration, and places in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

/// How deep inclusions are nested: beyond it stands a file that includes itself.
const DEPTH_MAX: usize = 10;
/// How many files are included, and how many bytes they have together.
const FILES_MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 20;

/// A file that was read.
pub struct Text {
    /// Its path, to which its own inclusions are relative.
    pub path: PathBuf,
    /// What it holds, which may be secrets.
    pub text: Zeroizing<String>,
}

/// Reads the files that a path with shell wildcards names, in the order of their names; or says in words why one cannot be read.
pub type Include<'a> = dyn Fn(&Path) -> Result<Vec<Text>, String> + 'a;

/// Where something stands: the file unless it is the one that was given, and the line from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: Option<Arc<str>>,
    pub(super) line: usize,
}

/// A file that is being read.
#[derive(Clone)]
pub(super) struct Here {
    /// `None` is standard input.
    path: Option<PathBuf>,
    file: Option<Arc<str>>,
    depth: usize,
}

impl Here {
    /// The file that was given.
    pub(super) fn new(path: Option<&Path>) -> Here {
        Here { path: path.map(Path::to_owned), file: None, depth: 0 }
    }

    pub(super) fn place(&self, line: usize) -> Place {
        Place { file: self.file.clone(), line }
    }
}

/// What includes files, within limits.
pub(super) struct Includes<'a> {
    include: &'a Include<'a>,
    files: usize,
    bytes: usize,
}

impl<'a> Includes<'a> {
    pub(super) fn new(include: &'a Include<'a>) -> Includes<'a> {
        Includes { include, files: 0, bytes: 0 }
    }

    /// The files of a pattern that stands in `here`, each with what stands for it in places.
    ///
    /// # Errors
    /// In words.
    pub(super) fn open(&mut self, here: &Here, pattern: &str) -> Result<Vec<(Here, Text)>, String> {
        let pattern = match &here.path {
            _ if Path::new(pattern).is_absolute() => PathBuf::from(pattern),
            Some(path) => path.parent().unwrap_or(Path::new("")).join(pattern),
            None => {
                return Err("standard input has no directory to which it is relative: give the file".into());
            }
        };
        if here.depth == DEPTH_MAX {
            return Err(format!("it is not read: files are nested more than {DEPTH_MAX} deep"));
        }
        let too_many =
            || format!("it is not read: more than {FILES_MAX} files or {BYTES_MAX} bytes are included");
        if self.files > FILES_MAX || self.bytes > BYTES_MAX {
            return Err(too_many());
        }
        let texts = (self.include)(&pattern)?;
        self.files += texts.len();
        self.bytes += texts.iter().map(|one| one.text.len()).sum::<usize>();
        if self.files > FILES_MAX || self.bytes > BYTES_MAX {
            return Err(too_many());
        }
        let depth = here.depth + 1;
        let here = |path: &Path| Here {
            path: Some(path.to_owned()),
            file: Some(path.display().to_string().into()),
            depth,
        };
        Ok(texts.into_iter().map(|one| (here(&one.path), one)).collect())
    }
}
