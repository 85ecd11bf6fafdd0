//! The points of a sweep of configurations.

use std::path::Path;

use forebay_diagnostics::{Findings, Place, Problem, Text};

use crate::{Error, Grid};

/// Most configurations.
const POINTS_MAX: usize = 100_000;

/// Keys and what is set at each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    /// The keys.
    pub keys: Vec<String>,
    /// The points: values in the order of the keys; `None` is the value of the configuration.
    pub values: Vec<Vec<Option<String>>>,
}

impl Points {
    /// Every combination of a grid's values.
    ///
    /// # Errors
    /// [`Error::TooMany`] above 100,000 configurations.
    pub fn combinations(grid: &Grid) -> Result<Points, Error> {
        let count = grid.count();
        if count > POINTS_MAX {
            return Err(Error::TooMany { found: format!("{count} configurations: {POINTS_MAX} at most") });
        }
        let point = |number| grid.point(number).into_iter().map(Some).collect();
        Ok(Points { keys: grid.keys(), values: (0..count).map(point).collect() })
    }

    /// The configuration, and each value of each key alone.
    pub fn one_at_a_time(grid: &Grid) -> Points {
        let keys = grid.keys();
        let mut values = vec![vec![None; keys.len()]];
        for (at, axis) in grid.axes.iter().enumerate() {
            for value in &axis.values {
                let mut point = vec![None; keys.len()];
                point[at] = Some(value.clone());
                values.push(point);
            }
        }
        Points { keys, values }
    }

    /// Reads a file with one point in each line, such as `icache.size=4096 memory.width=128`; `#` begins a comment.
    ///
    /// # Errors
    /// If the file cannot be read, a word has no `=`, or there are no points or too many.
    pub fn load(path: &Path) -> Result<Points, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::of_file(path, error, ""))?;
        let mut keys: Vec<String> = Vec::new();
        let mut lines = Vec::new();
        let mut findings = Findings::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let mut pairs = Vec::new();
            for pair in line.split_whitespace() {
                let Some((key, value)) = pair.split_once('=') else {
                    findings.add(no_assignment(pair), place(&text, pair));
                    continue;
                };
                if pairs.iter().any(|(known, _): &(String, String)| known == key) {
                    findings.add(twice(key), place(&text, pair));
                }
                if !keys.iter().any(|known| known == key) {
                    keys.push(key.to_owned());
                }
                pairs.push((key.to_owned(), value.to_owned()));
            }
            lines.push(pairs);
        }
        let name = path.display().to_string();
        findings.finish(&name, &[Text { title: &name, name: &name, shown: &text, lines: true }])?;
        if lines.is_empty() || lines.len() > POINTS_MAX {
            let found = format!("{} points; 1 to {POINTS_MAX} can be", lines.len());
            return Err(Error::of_file(path, found, ""));
        }
        let value = |pairs: &[(String, String)], key: &String| {
            pairs.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.clone())
        };
        let values = lines.iter().map(|pairs| keys.iter().map(|key| value(pairs, key)).collect()).collect();
        Ok(Points { keys, values })
    }
}

fn no_assignment(pair: &str) -> Problem {
    let help = "write lines such as `icache.size=4096 memory.width=128`, without spaces in values".to_owned();
    Problem::Conflict { message: format!("`{pair}` has no `=`"), help }
}

fn twice(key: &str) -> Problem {
    let message = format!("`{key}` is set twice");
    Problem::Conflict { message, help: "a line is one configuration: keep one of the values".to_owned() }
}

/// Where a piece of the text stands in it.
fn place(text: &str, piece: &str) -> Place {
    let from = piece.as_ptr().addr() - text.as_ptr().addr();
    Place { source: 0, span: from..from + piece.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_a_value_are_all_reported_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("points.txt");
        std::fs::write(&path, "# two keys\na=1 b=2\nb\na=3 c # no value\n").unwrap();
        let Err(Error::Input(errors)) = Points::load(&path) else { panic!("two words have no value") };
        let found: Vec<_> = errors.findings().iter().map(|one| (one.line(), one.to_string())).collect();
        let expected = [(Some(3), "`b` has no `=`".to_owned()), (Some(4), "`c` has no `=`".to_owned())];
        assert_eq!(found, expected);
        std::fs::write(&path, "a=1 b=2 a=2\n").unwrap();
        assert!(Points::load(&path).is_err_and(|error| error.to_string().contains("`a` is set twice")));
        std::fs::write(&path, "a=1 b=2\na=3\n").unwrap();
        let points = Points::load(&path).unwrap();
        assert_eq!(points.keys, ["a", "b"]);
        assert_eq!(points.values[1], [Some("3".to_owned()), None]);
    }
}
