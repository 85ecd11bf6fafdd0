//! A study's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StudyError;

/// The file that makes a directory a study.
pub const SCRIPT: &str = "study.py";

/// Endings of its files: modules, scenarios, notebooks, measurements. `build.rs` and `forebay.study` have the same.
const ENDINGS: [&str; 4] = [".py", ".toml", ".ipynb", ".json"];

/// A study's files by name.
type Files = &'static [(&'static str, &'static str)];

/// Those of the repository, by name.
const SHIPPED: &[(&str, Files)] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// A study as it is on disk or in the program.
#[derive(Clone, Debug)]
pub struct Study {
    /// The directory's name.
    pub name: String,
    /// Its files by name: the script and modules that it imports, scenarios, the notebook.
    pub files: BTreeMap<String, String>,
    /// Where it came from; `None`: out of the program.
    pub directory: Option<PathBuf>,
}

impl Study {
    /// Those that come with the program, by name.
    pub fn shipped() -> Vec<Study> {
        let files = |files: Files| files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        let study = |(name, list): &(&str, Files)| Study {
            name: (*name).to_owned(),
            files: files(list).collect(),
            directory: None,
        };
        SHIPPED.iter().map(study).collect()
    }

    /// A directory if `name` is one that holds a script, else the shipped one of this name.
    pub fn find(name: &str) -> Result<Study, StudyError> {
        let path = Path::new(name);
        if path.join(SCRIPT).is_file() {
            return Study::load(path);
        }
        Study::shipped().into_iter().find(|study| study.name == name).ok_or_else(|| StudyError::Unknown {
            name: name.to_owned(),
            shipped: SHIPPED.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// Reads a directory: its script, and the modules, scenarios, notebooks and measurements beside it.
    pub fn load(path: &Path) -> Result<Study, StudyError> {
        let unreadable = |path: &Path, error| StudyError::Unreadable { path: path.to_owned(), error };
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
            let entry = entry.map_err(|error| unreadable(path, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                let file = entry.path();
                files.insert(name, fs::read_to_string(&file).map_err(|error| unreadable(&file, error))?);
            }
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

    /// The first line of the script's docstring.
    pub fn title(&self) -> &str {
        let text = self.script().split_once("\"\"\"").map_or("", |(_, text)| text);
        let line = text.trim_start().lines().next().unwrap_or_default();
        let line = line.split("\"\"\"").next().unwrap_or_default().trim();
        if line.is_empty() { &self.name } else { line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_studies_are_those_of_the_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
        let mut names: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().join(SCRIPT).is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        let shipped = Study::shipped();
        assert_eq!(names, shipped.iter().map(|study| study.name.clone()).collect::<Vec<_>>());
        for study in shipped {
            assert_eq!(study.files, Study::load(&root.join(&study.name)).unwrap().files, "{}", study.name);
        }
    }

    #[test]
    fn the_title_is_the_first_line_of_the_docstring() {
        let titled = |script: &str| {
            let files = BTreeMap::from([(SCRIPT.to_owned(), script.to_owned())]);
            Study { name: "name".to_owned(), files, directory: None }.title().to_owned()
        };
        assert_eq!(titled("\"\"\"A title\n\nAnd more.\"\"\"\n"), "A title");
        assert_eq!(titled("# words\n\"\"\"\nA title\n\"\"\"\n"), "A title");
        assert_eq!(titled("\"\"\"A title\"\"\"\n"), "A title");
        assert_eq!(titled("import forebay\n"), "name");
    }

    #[test]
    fn a_copy_is_the_same_study_and_overwrites_nothing() {
        let files = [(SCRIPT, "\"\"\"T\"\"\"\n"), ("host.toml", "model = \"host\"\n")];
        let files: BTreeMap<_, _> = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let study = Study { name: "one".to_owned(), files, directory: None };
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        study.copy_to(&copy).unwrap();
        assert_eq!(Study::load(&copy).unwrap().files, study.files);
        assert_eq!(Study::find(copy.to_str().unwrap()).unwrap().name, "copy");
        assert!(study.copy_to(&copy).is_err());
        let error = Study::find("nowhere").unwrap_err();
        assert!(error.to_string().contains("no study `nowhere`"));
    }
}
