//! Sections and settings of strongSwan's files (strongswan.conf(5)): an included file is read in place, and a section inherits
//! from the sections that it refers to.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::ike::ImportedIke;
use super::super::include::{Here, Includes, Place};

/// How many sections are made whole: each reference makes those that it leads to once more.
const WHOLE_MAX: usize = 100_000;

/// A section with what is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) settings: Vec<(String, String, Place)>,
    pub(super) sections: Vec<Section>,
    /// Absolute names of the sections from which it inherits, `name.name`.
    references: Vec<(String, Place)>,
}

impl Section {
    /// A setting, of which the last one applies.
    pub(super) fn get(&self, key: &str) -> Option<(&str, &Place)> {
        let last = self.settings.iter().rev().find(|(name, ..)| name == key);
        last.map(|(_, value, place)| (value.as_str(), place))
    }

    pub(super) fn value(&self, key: &str) -> &str {
        self.get(key).map_or("", |(value, _)| value)
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The absolute names of all sections that are referred to, and of those around them.
    pub(super) fn referred(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (name, _) in &self.references {
            let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
            names.extend(ends.map(|end| name[..end].to_owned()));
        }
        self.sections.iter().for_each(|section| names.extend(section.referred()));
        names
    }

    /// The section with all that it and those in it inherit. What is its own goes first.
    pub(super) fn whole(&self, imported: &mut ImportedIke) -> Section {
        let mut heirs = Heirs { root: self, left: WHOLE_MAX, imported };
        heirs.whole(self, &mut vec![String::new()])
    }

    /// Adds another section's contents behind the own ones; of two settings with one name the other's applies.
    fn extend(&mut self, other: Section) {
        self.settings.extend(other.settings);
        self.references.extend(other.references);
        for section in other.sections {
            match self.sections.iter_mut().find(|own| own.name == section.name) {
                Some(own) => own.extend(section),
                None => self.sections.push(section),
            }
        }
    }

    /// Adds what another section has and this one does not.
    fn inherit(&mut self, other: Section) {
        let own = self.settings.len();
        for setting in other.settings {
            if !self.settings[..own].iter().any(|(name, ..)| *name == setting.0) {
                self.settings.push(setting);
            }
        }
        for section in other.sections {
            match self.sections.iter_mut().find(|own| own.name == section.name) {
                Some(own) => own.inherit(section),
                None => self.sections.push(section),
            }
        }
    }
}

/// Makes sections whole.
struct Heirs<'a> {
    root: &'a Section,
    left: usize,
    imported: &'a mut ImportedIke,
}

impl Heirs<'_> {
    /// A section with what it inherits. The end of `path` is its absolute name, before it stand those whose making led here.
    fn whole(&mut self, section: &Section, path: &mut Vec<String>) -> Section {
        let mut whole = Section { references: Vec::new(), ..section.clone() };
        if self.left == 0 {
            self.imported.lose(
                &section.place,
                &section.name,
                "it refers to too many others: what it inherits is not followed",
            );
            return whole;
        }
        self.left -= 1;
        whole.sections.clear();
        for inner in &section.sections {
            let name = match path.last().filter(|name| !name.is_empty()) {
                Some(around) => format!("{around}.{}", inner.name),
                None => inner.name.clone(),
            };
            path.push(name);
            whole.sections.push(self.whole(inner, path));
            path.pop();
        }
        for (name, place) in &section.references {
            if path.contains(name) {
                let why = format!("`{name}` leads back to it: what it inherits from there is not followed");
                self.imported.lose(place, &section.name, why);
            } else if let Some(found) = self.find(name, path) {
                path.push(name.clone());
                whole.inherit(self.whole(&found, path));
                path.pop();
            } else {
                let why = format!("it inherits from `{name}`, which is not in the file");
                self.imported.lose(place, &section.name, why);
            }
        }
        whole
    }

    /// The section of an absolute name, which may be one that a section around it inherits.
    fn find(&mut self, name: &str, path: &mut Vec<String>) -> Option<Section> {
        let (mut at, mut walked) = (Cow::Borrowed(self.root), String::new());
        for part in name.split('.') {
            let own = match &at {
                Cow::Borrowed(section) => section.section(part).map(Cow::Borrowed),
                Cow::Owned(section) => section.section(part).cloned().map(Cow::Owned),
            };
            at = match own {
                Some(own) => own,
                None if path.contains(&walked) => return None,
                None => {
                    path.push(walked.clone());
                    let whole = self.whole(&at, path);
                    path.pop();
                    Cow::Owned(whole.section(part)?.clone())
                }
            };
            walked = if walked.is_empty() { part.to_owned() } else { format!("{walked}.{part}") };
        }
        Some(at.into_owned())
    }
}

/// Reads sections and settings. What cannot be read is remarked, and what is around it read.
pub(super) fn parse(
    text: &str,
    here: &Here,
    includes: &mut Includes<'_>,
    imported: &mut ImportedIke,
) -> Section {
    let mut open = vec![Section::default()];
    parse_into(&mut open, text, here, includes, imported);
    open.pop().unwrap_or_default()
}

/// Reads a file into the section that is open last.
fn parse_into(
    open: &mut Vec<Section>,
    text: &str,
    here: &Here,
    includes: &mut Includes<'_>,
    imported: &mut ImportedIke,
) {
    let outside = open.len();
    let mut cursor = Cursor { rest: text, line: 1 };
    loop {
        cursor.skip_blank();
        if cursor.rest.is_empty() {
            break;
        }
        let place = here.place(cursor.line);
        if cursor.take('}') {
            if open.len() == outside {
                imported.lose(&place, "}", "no section is open here");
            } else {
                close(open);
            }
        } else if let Some(pattern) = cursor.take_include() {
            match includes.open(here, &pattern) {
                Ok(texts) => {
                    for (inner, text) in texts {
                        parse_into(open, &text.text, &inner, includes, imported);
                    }
                }
                Err(why) => imported.lose(&place, &format!("include {pattern}"), why),
            }
        } else {
            let name = cursor.take_while(is_of_name).to_owned();
            cursor.skip_blank();
            let mut references = Vec::new();
            if !name.is_empty() && cursor.take(':') {
                references = cursor.take_references(here);
            }
            if cursor.take('{') {
                open.push(Section { name, place, references, ..Section::default() });
            } else if !name.is_empty() && references.is_empty() && cursor.take('=') {
                let (value, is_closed) = cursor.take_value();
                if !is_closed {
                    imported.lose(
                        &place,
                        &name,
                        "its quotes are not closed, so that nothing behind it is read",
                    );
                }
                if let Some(section) = open.last_mut() {
                    section.settings.push((name, value, place));
                }
            } else {
                imported.lose(&place, &name, "expected `name {`, `name = value` or `}`");
                if cursor.line == place.line {
                    cursor.take_while(|letter| letter != '\n' && letter != '}');
                }
            }
        }
    }
    while open.len() > outside {
        if let Some(section) = open.last() {
            imported.lose(&section.place, &section.name, "this section is not closed");
        }
        close(open);
    }
}

/// A section goes into the one around it; of two with one name the later one adds to the first.
fn close(open: &mut Vec<Section>) {
    let Some(closed) = open.pop() else { return };
    let Some(around) = open.last_mut() else { return };
    match around.sections.iter_mut().find(|section| section.name == closed.name) {
        Some(before) => before.extend(closed),
        None => around.sections.push(closed),
    }
}

/// Whether a letter may be part of the name of a section or a setting.
fn is_of_name(letter: char) -> bool {
    !letter.is_whitespace() && !"#{}:.,=\"".contains(letter)
}

/// What is left of a text.
struct Cursor<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Cursor<'t> {
    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take(&mut self, letter: char) -> bool {
        let rest = self.rest.strip_prefix(letter);
        self.line += usize::from(rest.is_some() && letter == '\n');
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.take(letter);
        Some(letter)
    }

    /// White space, ends of lines and comments.
    fn skip_blank(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with('#') {
                break;
            }
            self.take_while(|letter| letter != '\n');
        }
    }

    /// The pattern of `include PATTERN`, unless that is a setting with this name.
    fn take_include(&mut self) -> Option<String> {
        let after = self.rest.strip_prefix("include")?;
        let pattern = after.trim_start_matches([' ', '\t']);
        if pattern.len() == after.len() || pattern.starts_with('=') {
            return None;
        }
        self.rest = pattern;
        let mut taken = String::new();
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                letter if letter.is_whitespace() => break,
                '#' | '}' => break,
                '"' => {
                    self.next();
                    self.take_quoted(&mut taken);
                    break;
                }
                '\\' if self.rest[1..].starts_with(['"', '#', '}', ' ']) => {
                    self.next();
                    taken.extend(self.next());
                }
                _ => taken.extend(self.next()),
            }
        }
        Some(taken)
    }

    /// `name.name, name.name` up to what is no part of it.
    fn take_references(&mut self, here: &Here) -> Vec<(String, Place)> {
        let mut references = Vec::new();
        loop {
            self.skip_blank();
            let place = here.place(self.line);
            let name = self.take_while(|letter| is_of_name(letter) || letter == '.').trim_matches('.');
            if !name.is_empty() {
                references.push((name.to_owned(), place));
            }
            self.skip_blank();
            if !self.take(',') {
                return references;
            }
        }
    }

    /// A value up to the end of the line, a comment or the end of the section: its words and what is in quotes, with single spaces
    /// between them. And whether all quotes are closed.
    fn take_value(&mut self) -> (String, bool) {
        let mut value = String::new();
        loop {
            self.take_while(|letter| letter.is_whitespace() && letter != '\n');
            if self.rest.is_empty() || self.rest.starts_with(['#', '}', '\n']) {
                return (value, true);
            }
            if !value.is_empty() {
                value.push(' ');
            }
            if self.take('"') {
                if !self.take_quoted(&mut value) {
                    return (value, false);
                }
            } else {
                let word = self.take_while(|letter| !letter.is_whitespace() && !"#}\"".contains(letter));
                value.push_str(word);
            }
        }
    }

    /// What stands up to the closing quotes, and whether there are some.
    fn take_quoted(&mut self, value: &mut String) -> bool {
        while let Some(letter) = self.next() {
            match letter {
                '"' => return true,
                '\\' => match self.next() {
                    Some('n') => value.push('\n'),
                    Some('r') => value.push('\r'),
                    Some('t') => value.push('\t'),
                    Some('\n') | None => {}
                    Some(other) => value.push(other),
                },
                '\r' => {}
                other => value.push(other),
            }
        }
        false
    }
}
