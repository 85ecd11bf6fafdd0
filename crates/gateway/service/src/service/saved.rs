//! The rules of the last start, which are installed before the gateway's file is read: at boot, before the network comes
//! up, and at every start, because the file may have errors.
//!
//! They are saved under the name of the gateway's file and not at a place that the file names, because the file cannot be read then.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use forebay_guard::{Plan, Saved};
use forebay_state::{Files, IvStore, System};

use super::host::{self, Firewall};
use super::routes::{self, Routing};
use forebay_config::SYSTEM_DIRECTORY;

/// Maximum length of the text of saved rules.
const LONGEST: u64 = 256 << 20;

/// Where the rules of a gateway are saved.
#[derive(Clone, Debug)]
pub struct SavedRules {
    /// The gateway's file.
    file: PathBuf,
    path: PathBuf,
}

/// The result of installing saved rules.
#[derive(Debug)]
pub enum Closed {
    /// They are installed.
    Rules {
        /// The table, if there are rules, and the number of guarded address ranges.
        table: Option<(String, usize)>,
        /// Number of networks with a blackhole route.
        discarded: usize,
    },
    /// No rules were saved.
    Nothing,
    /// They could not be read or installed.
    Failed {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl SavedRules {
    /// The saved rules of the gateway with this configuration file: in `$FOREBAY_STATE`; without it, for root in /var/lib/forebay, and for
    /// other users in their state directory.
    pub fn of(file: &Path) -> SavedRules {
        let given = std::env::var_os("FOREBAY_STATE").filter(|value| !value.is_empty());
        let is_root = rustix::process::geteuid().is_root();
        let directory = match given {
            None if is_root => SYSTEM_DIRECTORY.into(),
            None => {
                IvStore::of_user().map_or_else(|_| SYSTEM_DIRECTORY.into(), |store| store.directory().into())
            }
            Some(given) => PathBuf::from(given),
        };
        SavedRules::within(&directory, file)
    }

    pub(super) fn within(directory: &Path, file: &Path) -> SavedRules {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let name = file.to_string_lossy();
        let name = name.trim_start_matches('/').replace('%', "%25").replace('/', "%2F");
        SavedRules { path: directory.join(format!("guard-{name}.rules")), file }
    }

    /// The file of the rules.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Installs them on this machine.
    pub fn install(&self) -> Closed {
        let installed = self.read().and_then(|saved| match saved {
            Some(saved) => install(&saved),
            None => Ok(Closed::Nothing),
        });
        installed.unwrap_or_else(|error| Closed::Failed { path: self.path.clone(), error })
    }

    /// Reads them, if there are any.
    ///
    /// # Errors
    /// If they cannot be read, or are damaged.
    pub fn read(&self) -> io::Result<Option<Saved>> {
        match read(&self.path)? {
            None => self.by_another_name(),
            saved => Ok(saved),
        }
    }

    /// The latest rules that were saved under another name of the file.
    fn by_another_name(&self) -> io::Result<Option<Saved>> {
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
        let latest = self.others().into_iter().max_by_key(changed);
        latest.map_or(Ok(None), |path| read(&path))
    }

    /// The files of rules under other names of the same file: by a link, or by a path with `..` in it.
    fn others(&self) -> Vec<PathBuf> {
        let Some((file, directory)) = whole_name(&self.file).zip(self.path.parent()) else { return vec![] };
        let paths =
            fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let is_same = |path: &PathBuf| {
            let of = path.file_name().and_then(|name| saved_for(&name.to_string_lossy()));
            *path != self.path && of.and_then(|of| whole_name(&of)).as_ref() == Some(&file)
        };
        paths.filter(is_same).collect()
    }

    /// Saves them durably; without rules and networks, deletes the file.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, saved: Saved) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or_else(|| Path::new("."));
        if saved.host.is_none() && saved.discarded.is_empty() {
            remove(&self.path)?;
        } else {
            let text = Saved { file: self.file.display().to_string(), ..saved }.to_string();
            System.make_directory(directory)?;
            let new = self.path.with_extension("new");
            let mut writing = System.create(&new)?;
            writing.write(text.as_bytes())?;
            writing.sync()?;
            System.rename(&new, &self.path)?;
            System.sync_directory(directory)?;
        }
        // Otherwise older rules come back where these are deleted.
        self.others().iter().try_for_each(|other| remove(other))
    }
}

/// Deletes a file durably, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match System.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.and_then(|()| System.sync_directory(path.parent().unwrap_or_else(|| Path::new("."))))
        }
    }
}

/// The configuration file whose rules a file of this name has.
fn saved_for(name: &str) -> Option<PathBuf> {
    let of = name.strip_prefix("guard-")?.strip_suffix(".rules")?;
    Some(Path::new("/").join(of.replace("%2F", "/").replace("%25", "%")))
}

/// The rules in a file, if it is there.
fn read(path: &Path) -> io::Result<Option<Saved>> {
    let bytes = match System.read(path, LONGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    let text = String::from_utf8(bytes).map_err(|error| invalid(error.to_string()))?;
    text.parse().map(Some).map_err(|error: forebay_guard::SavedError| invalid(error.to_string()))
}

/// The name of a file without links and `..`; of one that is gone, that of its directory with its own.
fn whole_name(file: &Path) -> Option<PathBuf> {
    let in_directory = || Some(fs::canonicalize(file.parent()?).ok()?.join(file.file_name()?));
    fs::canonicalize(file).ok().or_else(in_directory)
}

/// Installs saved rules on this machine.
fn install(saved: &Saved) -> io::Result<Closed> {
    let table = saved.host.as_ref().map(|host| {
        let plan = Plan::of(&saved.entries, &saved.except);
        let made = host::Kernel::default().replace(&host.table(&plan));
        made.map(|_| (host.table.clone(), plan.ranges()))
    });
    // As many as possible, even if one fails.
    let blackholes = routes::Kernel::open("", &[], vec![])?;
    let made: Vec<_> = saved.discarded.iter().map(|&network| blackholes.add_blackhole(network)).collect();
    let table = table.transpose()?;
    made.into_iter().collect::<io::Result<()>>()?;
    Ok(Closed::Rules { table, discarded: saved.discarded.len() })
}

impl Display for Closed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Closed::Rules { table, discarded } => {
                f.write_str("the rules that the last start with this configuration file saved are installed: ")?;
                if let Some((table, ranges)) = table {
                    write!(f, "table inet {table} drops cleartext packets of {ranges} address ranges; ")?;
                }
                write!(f, "{discarded} networks have blackhole routes")
            }
            Closed::Nothing => f.write_str(
                "no start with this configuration file has saved rules yet: nothing keeps cleartext packets from and to \
                 protected networks from passing this host, unless other rules of the host do",
            ),
            Closed::Failed { path, error } => write!(
                f,
                "the rules that the last start with this configuration file saved cannot be installed ({}: {error}): rules \
                 that the kernel has stay, and nothing else keeps cleartext packets from passing this host",
                path.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_kept_by_the_name_of_their_file() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["/etc/a/b.toml", "/etc/a%2Fb.toml"].map(|file| {
            let rules = SavedRules::within(&directory.path().join("state"), Path::new(file));
            assert!(rules.read().unwrap().is_none());
            rules
        });
        let saved = Saved { discarded: vec!["10.2.0.0/16".parse().unwrap()], ..Saved::default() };
        one.write(saved.clone()).unwrap();
        let read = one.read().unwrap().unwrap();
        assert_eq!((read.file.as_str(), &read.discarded), ("/etc/a/b.toml", &saved.discarded));
        assert!(other.read().unwrap().is_none());
        // Without rules and networks, no file remains.
        for _ in 0..2 {
            one.write(Saved::default()).unwrap();
            assert!(one.read().unwrap().is_none());
        }
        assert_eq!(fs::read_dir(directory.path().join("state")).unwrap().count(), 0);
    }

    /// An operator starts it once by a link, once by the file, and once from another directory.
    #[test]
    fn rules_are_found_by_every_name_of_their_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("a.toml"), "").unwrap();
        fs::write(path("b.toml"), "").unwrap();
        std::os::unix::fs::symlink("a.toml", path("link.toml")).unwrap();
        let rules = |name: &str| SavedRules::within(&path("state"), &path(name));
        let saved = Saved { discarded: vec!["10.2.0.0/16".parse().unwrap()], ..Saved::default() };
        rules("a.toml").write(saved.clone()).unwrap();
        let read = |name: &str| rules(name).read().unwrap().map(|saved| saved.discarded);
        for name in ["a.toml", "link.toml", "sub/../a.toml", "sub/../link.toml"] {
            assert_eq!(read(name).as_ref(), Some(&saved.discarded), "{name}");
        }
        assert_eq!(read("b.toml"), None);
        // The last ones count, whatever the name.
        let later = Saved { discarded: vec!["10.3.0.0/16".parse().unwrap()], ..Saved::default() };
        rules("link.toml").write(later.clone()).unwrap();
        assert_eq!(
            (read("a.toml"), read("link.toml")),
            (Some(later.discarded.clone()), Some(later.discarded))
        );
        // None come back where they are given up, and a file that is gone has its names all the same.
        rules("a.toml").write(saved.clone()).unwrap();
        fs::remove_file(path("a.toml")).unwrap();
        assert_eq!(read("sub/../a.toml"), Some(saved.discarded));
        fs::write(path("a.toml"), "").unwrap();
        rules("link.toml").write(Saved::default()).unwrap();
        assert_eq!(read("a.toml"), None);
    }

    #[test]
    fn damaged_rules_are_said_to_be_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let rules = SavedRules::within(directory.path(), Path::new("/etc/a.toml"));
        fs::write(rules.path(), "forebay-guard 1\ntable forebay_a\n").unwrap();
        let said = rules.install().to_string();
        assert!(said.contains("cannot be installed") && said.contains("line 2: expected `end`"), "{said}");
    }
}
