//! The security associations file: TOML with one `[[sa]]` table for each SA.
//!
//! [`load`] reports every error of a file in one run, each with file, line, what was found, what was
//! expected and a hint. Key material never leaves this module except as [`SaKeys`]: the source text
//! that errors quote is a copy in which the keys are asterisks (see `mask`).
//!
//! In memory, the file's text, the text of key files and the decoded keys are wiped when dropped.
//! Out of reach of that are: a key written with escapes (`"\u0030..."`), of which the TOML parser
//! keeps a decoded copy; the parser's copy of the whole text after a syntax error; and, for a file
//! that is a pipe, what its growing buffer leaves behind.

mod entry;
mod errors;
mod help;
mod keys;
mod mask;
mod problem;
mod table;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use forebay_crypto::{Direction, SaKeys};
use forebay_ipsec::{IvRange, SaConfig, Sad, SadError, Spi};
use miette::Diagnostic;
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

pub use errors::{Finding, SasErrors};
pub use problem::Problem;

use crate::iv_store::{IvStore, IvStoreError};
use entry::Claim;
use errors::{Findings, Lines};
use keys::KeyFiles;

/// Longest SAs file that is read, in bytes: room for some 30 000 SAs.
pub const MAX_FILE_LEN: usize = 16 << 20;

/// One `[[sa]]` of the file.
#[derive(Debug)]
pub struct SaEntry {
    /// Everything but the keys.
    pub config: SaConfig,
    /// Outbound (`Seal`) or inbound (`Open`).
    pub direction: Direction,
    /// Keys, of the lengths the suite asks for.
    pub keys: SaKeys,
    /// Whether algorithms that RFC 8221 says MUST NOT to are wanted: a
    /// [weak](forebay_crypto::Suite::is_weak) suite is an error otherwise.
    pub allow_weak: bool,
    /// Line of the file where the SA begins, from 1.
    pub line: usize,
}

/// What an SAs file says.
#[derive(Debug)]
pub struct SasFile {
    /// The SAs in the order of the file, at least one.
    pub entries: Vec<SaEntry>,
    /// What should be looked at but hinders nothing.
    pub warnings: Vec<Finding>,
}

/// Why SAs that were read could not be made ready for packets.
#[derive(Debug)]
#[non_exhaustive]
pub enum IntoSadError {
    /// No IVs for the outbound SAs.
    Ivs(IvStoreError),
    /// The database refuses an SA; the reader found no fault in it.
    Sad(SadError),
}

impl std::fmt::Display for IntoSadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IntoSadError::Ivs(error) => error.fmt(f),
            IntoSadError::Sad(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IntoSadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IntoSadError::Ivs(error) => error.source(),
            IntoSadError::Sad(_) => None,
        }
    }
}

impl Diagnostic for IntoSadError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        match self {
            IntoSadError::Ivs(error) => error.help(),
            IntoSadError::Sad(_) => None,
        }
    }
}

impl SasFile {
    /// The database of these SAs and their keys, in the order of the file: an SA's position is the
    /// number of its key session.
    ///
    /// Each outbound SA whose suite has IVs gets `ivs_per_sa` of them, reserved in `store` before this returns;
    /// [`IVS_PER_SA`](crate::iv_store::IVS_PER_SA) lasts an SA without ESN for life. `now_ns` is the
    /// time since the Unix epoch.
    pub fn into_sad(
        self,
        store: &IvStore,
        now_ns: u64,
        ivs_per_sa: u64,
    ) -> Result<(Sad, Vec<SaKeys>), IntoSadError> {
        let has_ivs =
            |entry: &&SaEntry| entry.direction == Direction::Seal && entry.config.suite.iv_len() > 0;
        let keys = self.entries.iter().filter(has_ivs).map(|entry| &entry.keys);
        let mut ivs = store.ranges(keys, now_ns, ivs_per_sa).map_err(IntoSadError::Ivs)?.into_iter();
        let (mut sad, mut keys) = (Sad::default(), Vec::with_capacity(self.entries.len()));
        for entry in self.entries {
            let added = match entry.direction {
                Direction::Open => sad.add_inbound(entry.config),
                // Numbers that no packet carries need no reservation.
                Direction::Seal if entry.config.suite.iv_len() == 0 => {
                    sad.add_outbound(entry.config, IvRange::share(0, u64::MAX, 0, 1))
                }
                Direction::Seal => sad
                    .add_outbound(entry.config, ivs.next().expect("one range for each outbound SA with IVs")),
            };
            added.map_err(IntoSadError::Sad)?;
            keys.push(entry.keys);
        }
        Ok((sad, keys))
    }
}

impl SasFile {
    /// The same for the inbound SAs alone, which need no IVs; outbound ones are left out.
    pub fn into_inbound_sad(self) -> Result<(Sad, Vec<SaKeys>), SadError> {
        let (mut sad, mut keys) = (Sad::default(), Vec::with_capacity(self.entries.len()));
        for entry in self.entries.into_iter().filter(|entry| entry.direction == Direction::Open) {
            sad.add_inbound(entry.config)?;
            keys.push(entry.keys);
        }
        Ok((sad, keys))
    }
}

/// Reads the SAs file at `path`; the key files it names are relative to its directory.
pub fn load(path: &Path) -> Result<SasFile, SasErrors> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|problem| SasErrors::without_source(&name, problem))?;
    let directory = path.parent().map(PathBuf::from).unwrap_or_default();
    read(&text, &name, &KeyFiles::In(directory))
}

/// Reads SAs from `text`, calling it `name` in errors; it may name no key files, and nothing but
/// `text` is looked at.
pub fn parse(text: &str, name: &str) -> Result<SasFile, SasErrors> {
    read(text, name, &KeyFiles::None)
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, Problem> {
    let mut bytes = read_secret(path, MAX_FILE_LEN).map_err(Problem::Unreadable)?;
    if bytes.len() > MAX_FILE_LEN {
        return Err(Problem::TooLong { limit: MAX_FILE_LEN });
    }
    match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Ok(Zeroizing::new(text)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = Zeroizing::new(error.into_bytes());
            Err(Problem::NotUtf8 { line: 1 + bytes[..valid].iter().filter(|&&byte| byte == b'\n').count() })
        }
    }
}

/// The bytes of a file, one more than `limit` of them at most, in a buffer that is wiped.
fn read_secret(path: &Path, limit: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(limit).min(limit);
    // More room than the file needs, so that the buffer does not move and the end of the file is
    // not looked for through a buffer on the stack.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len + 64));
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read(text: &str, name: &str, files: &KeyFiles) -> Result<SasFile, SasErrors> {
    let mut findings = Findings::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        findings.add(
            Problem::Syntax { message: mask::shown(error.message()) },
            error.span().unwrap_or(0..0),
            "",
        );
    }
    // What was recovered from a broken text would only bring errors that are none.
    let entries =
        if errors.is_empty() { sas(document.get_ref(), text, files, &mut findings) } else { vec![] };
    let warnings = findings.finish(name, text)?;
    Ok(SasFile { entries, warnings })
}

fn sas(document: &DeTable<'_>, text: &str, files: &KeyFiles, findings: &mut Findings) -> Vec<SaEntry> {
    for key in document.keys().filter(|key| key.get_ref() != "sa") {
        let word = mask::shown(key.get_ref());
        let misplaced = table::KNOWN.contains(&&**key.get_ref());
        findings.add(Problem::UnknownKey { key: word, nearest: "sa".into(), misplaced }, key.span(), "");
    }
    let Some((key, value)) = document.iter().find(|(key, _)| key.get_ref() == "sa") else {
        if document.is_empty() {
            findings.add(Problem::NoSa, 0..0, "");
        }
        return vec![];
    };
    let Some(tables) = value.get_ref().as_array() else {
        findings.add(Problem::NotTables { found: value.get_ref().type_str() }, key.span(), "");
        return vec![];
    };
    if tables.is_empty() {
        findings.add(Problem::NoSa, key.span(), "");
    }
    let mut overlaps = Overlaps::default();
    let mut lines = Lines::new(text);
    let mut entries = Vec::with_capacity(tables.len());
    for (index, element) in tables.iter().enumerate() {
        let DeValue::Table(sa) = element.get_ref() else {
            findings.add(Problem::NotTables { found: element.get_ref().type_str() }, element.span(), "");
            continue;
        };
        let sa = table::SaTable::new(sa, element.span(), index + 1);
        let (entry, claim) = entry::read(&sa, lines.at(element.span().start), files, findings);
        entries.extend(entry);
        if let Some(claim) = claim {
            overlaps.check(claim, findings);
        }
    }
    entries
}

/// SPIs that are taken, with their first owner.
#[derive(Default)]
struct Overlaps(HashMap<(Option<IpAddr>, Spi), (String, Range<usize>)>);

impl Overlaps {
    /// The rule of [`Sad`]: inbound, an SPI names one SA; outbound, one SA of each peer.
    fn check(&mut self, claim: Claim, findings: &mut Findings) {
        match self.0.entry((claim.peer, claim.spi)) {
            Entry::Vacant(place) => {
                place.insert((claim.name, claim.span));
            }
            Entry::Occupied(place) => {
                let (first, span) = place.get();
                let problem =
                    Problem::OverlappingSpi { spi: claim.spi, first: mask::shown(first), peer: claim.peer };
                findings.add_pair(problem, claim.span, "used again here", span.clone(), "first used here");
            }
        }
    }
}
