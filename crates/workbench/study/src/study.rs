//! A study's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StudyError;
use crate::shipped;

/// The file that makes a directory a study.
pub(crate) const SCRIPT: &str = "study.rhai";

/// A study as it is on disk or in the program.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it is called: the directory's name.
    pub name: String,
    /// Its files by name: the script, scenarios, notes.
    pub files: BTreeMap<String, String>,
    /// Where it came from; traces of its scenarios are sought there. `None`: out of the program.
    pub directory: Option<PathBuf>,
}

impl Study {
    /// Those that come with the program.
    pub fn shipped() -> Vec<Study> {
        shipped::STUDIES
            .iter()
            .map(|(name, files)| Study {
                name: (*name).to_owned(),
                files: files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect(),
                directory: None,
            })
            .collect()
    }

    /// A directory if `name` is one that holds a script, else the shipped one of this name.
    pub fn find(name: &str) -> Result<Study, StudyError> {
        let path = Path::new(name);
        if path.join(SCRIPT).is_file() {
            return Study::load(path);
        }
        Study::shipped().into_iter().find(|study| study.name == name).ok_or_else(|| StudyError::Unknown {
            name: name.to_owned(),
            shipped: shipped::STUDIES.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// Reads a directory: its script and its scenarios (`*.toml`).
    pub fn load(path: &Path) -> Result<Study, StudyError> {
        let unreadable = |path: &Path, error| StudyError::Unreadable { path: path.to_owned(), error };
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
            let entry = entry.map_err(|error| unreadable(path, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == SCRIPT || name.ends_with(".toml") {
                let file = entry.path();
                files.insert(name, fs::read_to_string(&file).map_err(|error| unreadable(&file, error))?);
            }
        }
        if !files.contains_key(SCRIPT) {
            let error = std::io::ErrorKind::NotFound.into();
            return Err(unreadable(&path.join(SCRIPT), error));
        }
        let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name =
            full.file_name().map_or_else(|| "study".to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Study { name, files, directory: Some(path.to_owned()) })
    }

    /// Writes the study's files into a new directory.
    pub fn copy_to(&self, directory: &Path) -> std::io::Result<()> {
        fs::create_dir(directory)?;
        self.files.iter().try_for_each(|(name, text)| fs::write(directory.join(name), text))
    }

    /// The script's text.
    pub fn script(&self) -> &str {
        self.files.get(SCRIPT).map_or("", String::as_str)
    }

    /// The script's name in errors.
    pub fn script_name(&self) -> String {
        match &self.directory {
            Some(directory) => directory.join(SCRIPT).display().to_string(),
            None => format!("{}/{SCRIPT}", self.name),
        }
    }

    /// The first line of the script's comment.
    pub fn title(&self) -> &str {
        self.about().next().unwrap_or(&self.name)
    }

    /// The comment that the script begins with, line by line.
    pub fn about(&self) -> impl Iterator<Item = &str> {
        self.script().lines().map_while(|line| line.strip_prefix("//")).map(str::trim)
    }
}
