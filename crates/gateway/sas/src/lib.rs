//! The security associations file: TOML with one `[[sa]]` table for each SA and one `[[policy]]` for each
//! policy.
//!
//! [`load`] reports every error of a file in one run, each with file, line, what was found, what was
//! expected and a hint. Key material never leaves this module except as [`SaKeys`]: the source text
//! that errors quote is a copy in which the keys are asterisks (see `mask`).
//!
//! In memory, the file's text, the text of key files and the decoded keys are wiped when dropped. Three copies are not
//! wiped: that of a key written with escapes (`"\u0030..."`), which the TOML parser decodes; the parser's copy of the
//! whole text after a syntax error; and, for a file that is a pipe, earlier buffers of the growing text.
//!
//! A gateway configuration contains the same tables beside sections of its own ([`OtherKeys`]); its reader calls
//! [`read_tables`] for them. [`esp_sa`] writes SAs for Wireshark.
//!
//! ```
//! let text = r#"
//! [[sa]]
//! direction = "out"
//! spi = 0x1001
//! proposal = "aes128gcm16"
//! key = "000102030405060708090a0b0c0d0e0f10111213"
//! local = "192.0.2.1"
//! remote = "192.0.2.2"
//! remote_ts = ["10.2.0.0/16"]
//! "#;
//! let file = forebay_sas::parse(text, "sas.toml")?;
//! assert_eq!(file.entries[0].config.name, "sa-1");
//!
//! let errors = forebay_sas::parse(&text.replace("10.2.0.0/16", "10.2.0.5/16"), "sas.toml").unwrap_err();
//! assert_eq!(errors.findings()[0].problem().to_string(), "prefix 10.2.0.5/16 in `remote_ts` has host bits set");
//! # Ok::<(), forebay_sas::SasErrors>(())
//! ```

mod database;
mod entry;
mod errors;
pub mod esp_sa;
mod example;
mod help;
mod host_name;
mod iptfs;
mod keys;
mod lifetime;
pub mod mask;
mod names;
mod numbers;
mod others;
mod per_cpu;
mod policy;
mod problem;
mod schema;
mod shadowed;
mod shared_keys;
mod table;
mod traffic;
mod tunnel;
mod words;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use forebay_crypto::{Direction, SaKeys};
use forebay_ipsec::{Action, Policy, SaConfig, Spi};
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

pub use database::IntoSadError;
pub use errors::{Finding, Findings, SasErrors, of_file};
pub use host_name::{HostName, Peer, no_peer};
pub use keys::KeyFiles;
pub use others::OtherKeys;
pub use problem::Problem;
pub use schema::PARTS;
pub use table::Section;

use entry::Claim;
use forebay_diagnostics::{Lines, nearest};
use names::Names;
use table::Table;

/// Longest SAs file that is read, in bytes: room for some 30 000 SAs.
pub const MAX_FILE_LEN: usize = 16 << 20;

/// One `[[sa]]` of the file.
#[derive(Clone, Debug)]
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
    /// Position of the SA that this one's packets go through next, or come through before; of the same
    /// direction.
    pub outer: Option<usize>,
    /// The name of the peer, where the file has no address. `config.remote` is unspecified until the name is resolved: with
    /// that no packet is to be moved.
    pub remote_name: Option<HostName>,
    /// Line of the file where the SA begins, from 1.
    pub line: usize,
}

impl SaEntry {
    /// By what the file calls the peer.
    pub fn peer(&self) -> Peer {
        match &self.remote_name {
            Some(name) => Peer::Name(name.clone()),
            None => Peer::Address(self.config.remote),
        }
    }
}

/// One `[[policy]]` of the file.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// The policy; its SAs are numbered by their positions.
    pub policy: Policy,
    /// Line of the file where it begins, from 1.
    pub line: usize,
}

/// What an SAs file says.
#[derive(Debug)]
pub struct SasFile {
    /// The SAs in the order of the file, at least one. Others refer to them by position: to leave some out,
    /// take [`SasFile::only`].
    pub entries: Vec<SaEntry>,
    /// The policies in the order of the file.
    pub policies: Vec<PolicyEntry>,
    /// What should be looked at but hinders nothing.
    pub warnings: Vec<Finding>,
}

/// Reads the SAs file at `path`; the key files it names are relative to its directory. Peers have addresses in it, not names.
pub fn load(path: &Path) -> Result<SasFile, SasErrors> {
    load_beside(path, OtherKeys::NONE)
}

/// The same for a gateway, which resolves the names of peers.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn load_for_gateway(path: &Path) -> Result<SasFile, SasErrors> {
    load_beside(path, OtherKeys::OF_GATEWAY)
}

fn load_beside(path: &Path, others: OtherKeys) -> Result<SasFile, SasErrors> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|problem| of_file(&name, problem))?;
    let directory = path.parent().map(PathBuf::from).unwrap_or_default();
    let mut findings = Findings::beside(others);
    report_exposed(path, &text, &mut findings);
    read(&text, &name, &KeyFiles::In(directory), findings)
}

/// Reads SAs from `text`, calling it `name` in errors; it may name no key files, and nothing but
/// `text` is looked at.
pub fn parse(text: &str, name: &str) -> Result<SasFile, SasErrors> {
    read(text, name, &KeyFiles::None, Findings::beside(OtherKeys::NONE))
}

/// The text of a file, in a buffer that is wiped.
///
/// # Errors
/// [`Problem::Unreadable`], [`Problem::TooLong`] and [`Problem::NotUtf8`].
pub fn read_text(path: &Path) -> Result<Zeroizing<String>, Problem> {
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

/// The file at `path`, of SAs or of a gateway, and all files that it names, such as key files: whatever value is the path
/// of a file that is there, relative to the file's folder. A command compares its outputs with them.
pub fn files_named(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let Ok(text) = read_text(path) else { return files };
    let (document, _) = DeTable::parse_recoverable(&text);
    let mut words = Vec::new();
    texts_of_table(document.get_ref(), &mut words);
    let folder = path.parent().unwrap_or(Path::new(""));
    files.extend(words.into_iter().map(|word| folder.join(word)).filter(|named| named.is_file()));
    files
}

/// Keys of a gateway's file whose files are written, not read.
const WRITTEN: [&str; 2] = ["esp_sa_export", "socket"];

fn texts_of_table<'a>(table: &'a DeTable<'_>, words: &mut Vec<&'a str>) {
    let read = table.iter().filter(|(key, _)| !WRITTEN.contains(&key.get_ref().as_ref()));
    read.for_each(|(_, value)| texts(value.get_ref(), words));
}

/// All texts below a value.
fn texts<'a>(value: &'a DeValue<'_>, words: &mut Vec<&'a str>) {
    match value {
        DeValue::String(word) => words.push(word),
        DeValue::Array(values) => values.iter().for_each(|value| texts(value.get_ref(), words)),
        DeValue::Table(table) => texts_of_table(table, words),
        _ => {}
    }
}

/// Notes that a file with keys in it can be read by others.
pub fn report_exposed(path: &Path, text: &str, findings: &mut Findings) {
    let Some(mode) = path.metadata().ok().as_ref().and_then(keys::exposed) else { return };
    let (document, _) = DeTable::parse_recoverable(text);
    let Some(sas) = document.get_ref().get("sa").and_then(|sas| sas.get_ref().as_array()) else { return };
    let key = |sa: &DeTable<'_>| ["key", "auth_key"].iter().find_map(|key| Some(sa.get(*key)?.span()));
    let found = sas.iter().find_map(|sa| key(sa.get_ref().as_table()?));
    if let Some(span) = found {
        findings.add(Problem::KeysExposed { mode }, span, "a key");
    }
}

fn read(text: &str, name: &str, files: &KeyFiles, mut findings: Findings) -> Result<SasFile, SasErrors> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        findings.add(
            Problem::Syntax { message: mask::shown(error.message()) },
            error.span().unwrap_or(0..0),
            "",
        );
    }
    // What was recovered from a broken text would only bring errors that are none.
    let (entries, policies) = if errors.is_empty() {
        read_document(document.get_ref(), text, files, &mut findings)
    } else {
        (vec![], vec![])
    };
    let warnings = findings.finish(name, text)?;
    Ok(SasFile { entries, policies, warnings })
}

fn read_document(
    document: &DeTable<'_>,
    text: &str,
    files: &KeyFiles,
    findings: &mut Findings,
) -> (Vec<SaEntry>, Vec<PolicyEntry>) {
    for key in document.keys().filter(|key| !is_table(key.get_ref())) {
        let word = mask::shown(key.get_ref());
        let nearest = nearest(&word, TABLES).unwrap_or_default().to_owned();
        let belongs = Section::with(key.get_ref());
        findings.add(Problem::UnknownKey { key: word, nearest, within: None, belongs }, key.span(), "");
    }
    read_tables(document, text, files, findings)
}

/// What a document may hold.
const TABLES: [&str; 2] = ["sa", "policy"];

/// Whether it is the name of one of these tables.
pub fn is_table(key: &str) -> bool {
    TABLES.contains(&key)
}

/// The SAs and policies of a document, whatever else it holds.
pub fn read_tables(
    document: &DeTable<'_>,
    text: &str,
    files: &KeyFiles,
    findings: &mut Findings,
) -> (Vec<SaEntry>, Vec<PolicyEntry>) {
    let mut names = Names::default();
    let mut entries = sas(document, text, files, &mut names, findings);
    let outers = names.outers(findings);
    // There is one for each if nothing is wrong; if something is, they are of no use.
    for (entry, outer) in entries.iter_mut().zip(&outers) {
        entry.outer = *outer;
    }
    let (policies, policy_spans) = policies(document, text, &names, findings);
    if entries.len() == names.len() {
        per_cpu::check(&entries, &policies, &names, findings);
        shadowed::report(&entries, &policies, &policy_spans, &names, findings);
        iptfs::report_alone(&entries, &names, findings);
    }
    for direction in [Direction::Seal, Direction::Open] {
        let mut policies = policies.iter().filter(|entry| entry.policy.direction == direction).peekable();
        if policies.peek().is_some() {
            let used: Vec<usize> = policies.flat_map(protecting).collect();
            names.report_unused(direction, &used, &outers, findings);
        }
    }
    (entries, policies)
}

/// The positions of a policy's SAs.
fn protecting(entry: &PolicyEntry) -> impl Iterator<Item = usize> {
    let sas = match &entry.policy.action {
        Action::Protect(sas) => sas.as_slice(),
        Action::Bypass | Action::Discard => &[],
    };
    sas.iter().map(|session| session.0 as usize)
}

fn sas(
    document: &DeTable<'_>,
    text: &str,
    files: &KeyFiles,
    names: &mut Names,
    findings: &mut Findings,
) -> Vec<SaEntry> {
    let tables = match document.get("sa") {
        Some(_) => tables("sa", Section::Sa, document, findings),
        None => {
            // Unknown keys are what is wrong with a file that holds nothing else.
            let is_section = findings.others.is_section;
            let unknown = document.keys().any(|key| !is_table(key.get_ref()) && !is_section(key.get_ref()));
            if !unknown || document.contains_key("policy") {
                findings.add(Problem::NoSa, 0..0, "");
            }
            return vec![];
        }
    };
    let mut overlaps = Overlaps::default();
    let mut lines = Lines::new(text);
    let mut entries = Vec::with_capacity(tables.len());
    let mut key_places = Vec::with_capacity(tables.len());
    for (sa, span) in tables {
        let read = entry::read(&sa, lines.at(span.start), files, findings);
        if let Some(entry) = read.entry {
            entries.push(entry);
            key_places.push(keys::place(&sa));
        }
        names.add(read.named);
        if let Some(claim) = read.claim {
            overlaps.check(claim, findings);
        }
    }
    shared_keys::report(&entries, &key_places, findings);
    entries
}

/// The policies, and where they stand.
fn policies(
    document: &DeTable<'_>,
    text: &str,
    names: &Names,
    findings: &mut Findings,
) -> (Vec<PolicyEntry>, Vec<Range<usize>>) {
    let mut lines = Lines::new(text);
    let tables = tables("policy", Section::Policy, document, findings);
    let read = |(table, span): (Table<'_, '_>, Range<usize>)| {
        let named = if table.has("name") { table.span("name") } else { span.clone() };
        Some((policy::read(&table, lines.at(span.start), names, findings)?, named))
    };
    tables.into_iter().filter_map(read).unzip()
}

/// The tables called `key`, none if there is no such key.
fn tables<'a, 'i>(
    key: &'static str,
    section: Section,
    document: &'a DeTable<'i>,
    findings: &mut Findings,
) -> Vec<(Table<'a, 'i>, Range<usize>)> {
    let Some((word, value)) = document.iter().find(|(word, _)| word.get_ref() == key) else { return vec![] };
    let Some(tables) = value.get_ref().as_array() else {
        findings.add(Problem::NotTables { key, found: value.get_ref().type_str() }, word.span(), "");
        return vec![];
    };
    if tables.is_empty() && section == Section::Sa {
        findings.add(Problem::NoSa, word.span(), "");
    }
    let mut found = Vec::with_capacity(tables.len());
    for (index, element) in tables.iter().enumerate() {
        match element.get_ref() {
            DeValue::Table(table) => {
                found.push((Table::new(section, table, element.span(), index + 1), element.span()));
            }
            other => findings.add(Problem::NotTables { key, found: other.type_str() }, element.span(), ""),
        }
    }
    found
}

/// SPIs that are taken, with their first owner.
#[derive(Default)]
struct Overlaps(HashMap<(Option<Peer>, Spi), (String, Range<usize>)>);

impl Overlaps {
    /// The rule of [`Ipsec`](forebay_ipsec::Ipsec): inbound, an SPI names one SA; outbound, one SA of each peer.
    fn check(&mut self, claim: Claim, findings: &mut Findings) {
        match self.0.entry((claim.peer.clone(), claim.spi)) {
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
