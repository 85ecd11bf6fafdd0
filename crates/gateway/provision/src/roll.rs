//! New keys for SAs of gateways that stay up: the configurations of the three steps in which no packet is lost.
//!
//! Both sides first receive with the new keys, then send with them, then forget the old ones (docs/runbooks.md). A
//! configuration is edited as text, so that its comments stay; what comes out is read again, and must be what was meant.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use forebay_config::{Config, KeySource};
use forebay_crypto::{Direction, SaKeys};
use forebay_ipsec::Action;
use forebay_sas::SaEntry;
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

use crate::keys::{Keys, keys};
use crate::tunnel::new_spi;
use crate::{Folder, NewFile, ProvisionError, Random};

/// The configurations of the steps, in their order: the last one stays.
pub const STEPS: [&str; 3] = ["gateway-1-receive.toml", "gateway-2-send.toml", "gateway.toml"];

/// What a roll-over makes.
#[derive(Debug)]
pub struct Rolled {
    /// A folder for each gateway, in the order given, with the commands of its first step.
    pub folders: Vec<Folder>,
    /// Names of SAs that keep their keys, with their files: no other file has their other side.
    pub kept: Vec<(String, String)>,
    /// How many keys are new.
    pub renewed: usize,
}

/// A pair of keys that two gateways share, and what comes in its place.
struct Shared {
    spi: u32,
    keys: SaKeys,
    new_spi: u32,
    new: Keys,
}

/// Makes new keys for the SAs that are outbound in one configuration and inbound in another. Each is given with its path
/// and its text, from which it was read.
///
/// # Errors
/// [`ProvisionError`], where a configuration cannot be edited or no keys are shared.
pub fn roll(files: &[(&Path, &str, &Config)], random: Random<'_>) -> Result<Rolled, ProvisionError> {
    for (path, _, config) in files {
        if matches!(config.keys.source, KeySource::Xfrm(_)) {
            return Err(ProvisionError::FromIke { file: path.display().to_string() });
        }
    }
    let shared = shared(files, random);
    if shared.is_empty() {
        return Err(ProvisionError::NoPair);
    }
    let names = names(files.iter().map(|(path, ..)| *path))?;
    let (mut folders, mut kept) = (vec![], vec![]);
    for ((path, text, config), name) in files.iter().zip(names) {
        let source = Source { path, text, lines: text.lines().collect() };
        let mut taken = Taken::of(config, text);
        let mut edits = vec![];
        for entry in &config.sas.entries {
            match shared.iter().find(|one| one.spi == entry.config.spi.get() && one.keys == entry.keys) {
                Some(shared) => edits.push(Edit::new(entry, shared, config, &mut taken, &source)?),
                None => kept.push((entry.config.name.clone(), path.display().to_string())),
            }
        }
        let mut made = vec![];
        for (step, file) in STEPS.iter().enumerate() {
            let edited = source.edited(&edits, step);
            check(&edited, path, config, &edits, step)?;
            made.push(NewFile { name: (*file).to_owned(), text: edited });
        }
        made.extend(edits.iter().flat_map(|edit| edit.files()));
        folders.push(Folder { commands: commands(&name, &edits), name, files: made });
    }
    Ok(Rolled { folders, kept, renewed: shared.len() })
}

/// The commands of the first step.
fn commands(name: &str, edits: &[Edit<'_>]) -> Vec<String> {
    let folders: HashSet<&str> = edits.iter().map(|edit| edit.folder.as_str()).collect();
    let mut folders: Vec<&str> = folders.into_iter().collect();
    folders.sort_unstable();
    let below = |folder: &str| Path::new("/etc/forebay").join(folder).display().to_string();
    folders
        .into_iter()
        .map(|folder| format!("install -m 0640 -g forebay {name}/keys/* {}/", below(folder)))
        .collect()
}

/// The keys that are outbound in one file and inbound in another, with new ones.
fn shared(files: &[(&Path, &str, &Config)], random: Random<'_>) -> Vec<Shared> {
    let all = || {
        files
            .iter()
            .enumerate()
            .flat_map(|(at, (_, _, config))| config.sas.entries.iter().map(move |sa| (at, sa)))
    };
    let mut taken: Vec<u32> = all().map(|(_, sa)| sa.config.spi.get()).collect();
    let mut shared: Vec<Shared> = vec![];
    for (at, sa) in all().filter(|(_, sa)| sa.direction == Direction::Seal) {
        let spi = sa.config.spi.get();
        let is_same = |other: &SaEntry| other.config.spi == sa.config.spi && other.keys == sa.keys;
        let is_received =
            all().any(|(file, other)| file != at && other.direction == Direction::Open && is_same(other));
        // Two gateways of a pair send with one key.
        if is_received && !shared.iter().any(|one| one.spi == spi && one.keys == sa.keys) {
            let new_spi = new_spi(&mut taken, random);
            shared.push(Shared { spi, keys: sa.keys.clone(), new_spi, new: keys(sa.config.suite, random) });
        }
    }
    shared
}

/// A name for each file's folder: its own, or that of the folder in which it is.
fn names<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> Result<Vec<String>, ProvisionError> {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
    };
    let stems: Vec<String> = paths.clone().map(|path| text(path.file_stem())).collect();
    let folders: Vec<String> = paths.map(|path| text(path.parent().and_then(Path::file_name))).collect();
    let twice = |names: &[String]| {
        names
            .iter()
            .enumerate()
            .find(|(at, name)| name.is_empty() || names[..*at].contains(name))
            .map(|(_, name)| name.clone())
    };
    match (twice(&stems), twice(&folders)) {
        (None, _) => Ok(stems),
        (_, None) => Ok(folders),
        (Some(name), Some(_)) => Err(ProvisionError::SameName { name }),
    }
}

/// Names that new SAs and their key files cannot have.
struct Taken {
    names: HashSet<String>,
    /// Of files, without folder and ending: the new files of all folders are installed by one command.
    stems: HashSet<String>,
}

impl Taken {
    fn of(config: &Config, text: &str) -> Taken {
        let names = config.sas.entries.iter().map(|entry| entry.config.name.clone()).collect();
        let mut stems = HashSet::new();
        if let Ok(document) = DeTable::parse(text) {
            add_stems(document.get_ref(), &mut stems);
        }
        Taken { names, stems }
    }

    fn name(&mut self, before: &str) -> String {
        next_free(before, &mut self.names)
    }

    fn stem(&mut self, before: &str) -> String {
        next_free(before, &mut self.stems)
    }
}

/// The next name behind `before` that is not taken; it is now.
fn next_free(before: &str, taken: &mut HashSet<String>) -> String {
    let mut name = next(before);
    while !taken.insert(name.clone()) {
        name = next(&name);
    }
    name
}

/// The stems of all files that a configuration names, of other sections too.
fn add_stems(table: &DeTable<'_>, stems: &mut HashSet<String>) {
    for (key, value) in table {
        match value.get_ref() {
            DeValue::String(path) if key.get_ref().ends_with("_file") => {
                stems.extend(Path::new(&**path).file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
            DeValue::Table(table) => add_stems(table, stems),
            DeValue::Array(tables) => {
                tables
                    .iter()
                    .filter_map(|one| one.get_ref().as_table())
                    .for_each(|one| add_stems(one, stems));
            }
            _ => {}
        }
    }
}

/// A configuration, line by line.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Source<'a> {
    /// The lines of the SA that begins on `line`, from 1, without what stands between it and the next table.
    fn chunk(&self, line: usize) -> Result<Range<usize>, ProvisionError> {
        let begin = line - 1;
        let wrong = |what| ProvisionError::Form { file: self.path.display().to_string(), line, what };
        if self.lines.get(begin).is_none_or(|header| !header.trim_start().starts_with("[[sa]]")) {
            return Err(wrong("an SA that is not a table of its own under `[[sa]]`"));
        }
        let is_next =
            |line: &&str| line.trim_start().starts_with('[') && !line.trim_start().starts_with("[sa.");
        let rest = &self.lines[begin + 1..];
        let next = rest.iter().position(is_next).unwrap_or(rest.len());
        let is_blank = |line: &&&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let blank = rest[..next].iter().rev().take_while(|line| is_blank(line)).count();
        let chunk = begin..begin + 1 + next - blank;
        let keys = self.lines[chunk.clone()].iter().filter_map(|line| key_of(line));
        if keys.filter(|key| *key == "spi").count() != 1 {
            return Err(wrong("an SA whose `spi` has no line of its own"));
        }
        Ok(chunk)
    }

    /// The configuration after a step: 0, 1 or 2.
    fn edited(&self, edits: &[Edit<'_>], step: usize) -> Zeroizing<String> {
        let source = with_policies(self.text, edits, step);
        let lines: Vec<&str> = source.lines().collect();
        // Of the right size at once, for keys that stand in the file.
        let mut text = Zeroizing::new(String::with_capacity(2 * source.len() + 512 * edits.len() + 64));
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let Some(edit) = edits.iter().find(|edit| edit.chunk.start == at) else {
                push_line(&mut text, line);
                at += 1;
                continue;
            };
            let is_inbound = edit.entry.direction == Direction::Open;
            if step == 0 || (step == 1 && is_inbound) {
                lines[edit.chunk.clone()].iter().for_each(|line| push_line(&mut text, line));
            }
            if step < 2 && is_inbound {
                text.push('\n');
            }
            if step > 0 || is_inbound {
                edit.push_renewed(&mut text, &lines[edit.chunk.clone()]);
            }
            at = edit.chunk.end;
        }
        text
    }
}

/// The text with other SAs in its policies: inbound ones have two names for a while, and then another one. It has as many
/// lines as before.
fn with_policies(text: &str, edits: &[Edit<'_>], step: usize) -> Zeroizing<String> {
    let document = DeTable::parse(text).ok();
    let lists = document.as_ref().map(|document| policies(document.get_ref())).unwrap_or_default();
    let mut named: Vec<(Range<usize>, &str)> = lists.into_iter().flatten().collect();
    named.sort_by_key(|(span, _)| span.start);
    let mut out = Zeroizing::new(String::with_capacity(2 * text.len() + 64 * named.len()));
    let mut done = 0;
    for (span, name) in named {
        let Some(edit) = edits.iter().find(|edit| edit.is_inbound() && edit.entry.config.name == name) else {
            continue;
        };
        out.push_str(&text[done..span.start]);
        let names: Vec<String> = edit.in_policy(step).into_iter().map(quoted).collect();
        out.push_str(&names.join(", "));
        let breaks = text[span.clone()].matches('\n').count();
        out.extend(std::iter::repeat_n('\n', breaks));
        done = span.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The SAs that each policy names, with their places in the text.
fn policies<'a>(document: &'a DeTable<'_>) -> Vec<Vec<(Range<usize>, &'a str)>> {
    let Some(tables) = document.get("policy").and_then(|tables| tables.get_ref().as_array()) else {
        return vec![];
    };
    tables.iter().map(|policy| named_sas(policy.get_ref())).collect()
}

fn named_sas<'a>(policy: &'a DeValue<'_>) -> Vec<(Range<usize>, &'a str)> {
    let Some(sas) = policy.get("sa").and_then(|sas| sas.get_ref().as_array()) else { return vec![] };
    sas.iter().filter_map(|sa| Some((sa.span(), sa.get_ref().as_str()?))).collect()
}

/// Whether an edited configuration has the SAs that it should have, and its policies name them; it is read without its key
/// files.
fn check(
    text: &str,
    path: &Path,
    config: &Config,
    edits: &[Edit<'_>],
    step: usize,
) -> Result<(), ProvisionError> {
    let mut expected = vec![];
    for entry in &config.sas.entries {
        let edit = edits.iter().find(|edit| std::ptr::eq(edit.entry, entry));
        let is_inbound = entry.direction == Direction::Open;
        if edit.is_none() || step == 0 || (step == 1 && is_inbound) {
            expected.push((entry.config.name.as_str(), entry.config.spi.get()));
        }
        if let Some(edit) = edit.filter(|_| step > 0 || is_inbound) {
            let name = if is_inbound { edit.name.as_str() } else { entry.config.name.as_str() };
            expected.push((name, edit.shared.new_spi));
        }
    }
    // Nothing of the text is copied by this parser.
    let document = DeTable::parse(text).ok();
    let sas = document.as_ref().and_then(|document| document.get_ref().get("sa")?.get_ref().as_array());
    let found: Option<Vec<(&str, u32)>> =
        sas.map(|sas| sas.iter().filter_map(|sa| named(sa.get_ref())).collect());
    if found.is_none_or(|found| found != expected) {
        let (file, what) = (path.display().to_string(), "SAs without names, or in strings of several lines");
        return Err(ProvisionError::Form {
            file,
            line: config.sas.entries.first().map_or(1, |sa| sa.line),
            what,
        });
    }
    let found = document.as_ref().map(|document| policies(document.get_ref())).unwrap_or_default();
    let mut found = found.iter().map(|sas| sas.iter().map(|(_, name)| *name).collect::<Vec<_>>());
    let expected =
        config.sas.policies.iter().map(|one| (one.line, named_by(&one.policy.action, config, edits, step)));
    for (line, expected) in expected {
        if found.next() != Some(expected) {
            let (file, what) = (path.display().to_string(), "the list of SAs of this policy");
            return Err(ProvisionError::Form { file, line, what });
        }
    }
    Ok(())
}

/// The SAs that a policy should name after a step.
fn named_by<'a>(action: &Action, config: &'a Config, edits: &'a [Edit<'_>], step: usize) -> Vec<&'a str> {
    let Action::Protect(sas) = action else { return vec![] };
    let entries = sas.iter().filter_map(|session| config.sas.entries.get(session.0 as usize));
    let names = entries.flat_map(|entry| {
        let edit = edits.iter().find(|edit| std::ptr::eq(edit.entry, entry) && edit.is_inbound());
        edit.map_or_else(|| vec![entry.config.name.as_str()], |edit| edit.in_policy(step))
    });
    names.collect()
}

/// Name and SPI of an SA.
fn named<'a>(sa: &'a DeValue<'_>) -> Option<(&'a str, u32)> {
    let DeValue::Integer(spi) = sa.get("spi")?.get_ref() else { return None };
    let spi = u32::from_str_radix(&spi.as_str().replace('_', ""), spi.radix()).ok()?;
    Some((sa.get("name")?.get_ref().as_str()?, spi))
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// What is done to one SA of a file.
struct Edit<'a> {
    entry: &'a SaEntry,
    shared: &'a Shared,
    /// Its lines.
    chunk: Range<usize>,
    /// The new name, of an inbound SA.
    name: String,
    /// The folder of the key files, relative to the configuration or absolute.
    folder: String,
    /// The name of the key files, without an ending.
    stem: String,
}

impl<'a> Edit<'a> {
    fn new(
        entry: &'a SaEntry,
        shared: &'a Shared,
        config: &Config,
        taken: &mut Taken,
        source: &Source<'_>,
    ) -> Result<Edit<'a>, ProvisionError> {
        let chunk = source.chunk(entry.line)?;
        let all = &config.sas.entries;
        if entry.outer.is_some() || all.iter().any(|sa| sa.outer.is_some()) {
            let file = source.path.display().to_string();
            return Err(ProvisionError::Form { file, line: entry.line, what: "nested SAs (`outer`)" });
        }
        let name = taken.name(&entry.config.name);
        let lines = &source.lines[chunk.clone()];
        let in_use =
            lines.iter().find_map(|line| value(line, "key_file").or_else(|| value(line, "auth_key_file")));
        let (folder, stem) = match in_use.as_deref().map(Path::new) {
            Some(path) => (
                path.parent().map_or_else(String::new, |folder| folder.display().to_string()),
                path.file_stem()
                    .map_or_else(|| safe(&entry.config.name), |stem| stem.to_string_lossy().into()),
            ),
            // Keys in the configuration itself move to files.
            None => ("keys".to_owned(), safe(&entry.config.name)),
        };
        let stem = taken.stem(&stem);
        Ok(Edit { entry, shared, chunk, name, folder, stem })
    }

    fn is_inbound(&self) -> bool {
        self.entry.direction == Direction::Open
    }

    /// Its names in policies, of an inbound SA.
    fn in_policy(&self, step: usize) -> Vec<&str> {
        let old = (step < 2).then_some(self.entry.config.name.as_str());
        old.into_iter().chain([self.name.as_str()]).collect()
    }

    fn path(&self, ending: &str) -> String {
        Path::new(&self.folder).join(format!("{}.{ending}", self.stem)).display().to_string()
    }

    fn files(&self) -> Vec<NewFile> {
        let Keys { key, auth_key } = &self.shared.new;
        let file = |text: &Zeroizing<String>, ending| NewFile {
            name: format!("keys/{}.{ending}", self.stem),
            text: text.clone(),
        };
        let key = key.as_ref().map(|text| file(text, "key"));
        key.into_iter().chain(auth_key.as_ref().map(|text| file(text, "auth"))).collect()
    }

    /// The SA with the new keys.
    fn push_renewed(&self, text: &mut String, chunk: &[&str]) {
        for line in chunk {
            match key_of(line) {
                Some("key" | "key_file" | "auth_key" | "auth_key_file") => {}
                Some("name") if self.entry.direction == Direction::Open => {
                    push_line(text, &format!("name = {}", quoted(&self.name)));
                }
                Some("spi") => {
                    push_line(text, &format!("spi = {:#x}", self.shared.new_spi));
                    let Keys { key, auth_key } = &self.shared.new;
                    for (is_there, name, ending) in
                        [(key, "key_file", "key"), (auth_key, "auth_key_file", "auth")]
                    {
                        if is_there.is_some() {
                            push_line(text, &format!("{name} = {}", quoted(&self.path(ending))));
                        }
                    }
                }
                _ => push_line(text, line),
            }
        }
    }
}

fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    Some(key.trim())
}

fn value(line: &str, key: &str) -> Option<String> {
    (key_of(line)? == key).then_some(())?;
    let table: toml::Table = line.parse().ok()?;
    table.get(key)?.as_str().map(str::to_owned)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The name with the next number behind it: `east-in`, `east-in-2`, `east-in-3`.
fn next(name: &str) -> String {
    let numbered = name.rsplit_once('-').and_then(|(stem, number)| Some((stem, number.parse::<u32>().ok()?)));
    match numbered.filter(|(_, number)| (2..u32::MAX).contains(number)) {
        Some((stem, number)) => format!("{stem}-{}", number + 1),
        None => format!("{name}-2"),
    }
}

/// The name as part of a file's name.
fn safe(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .collect()
}
