//! How much was checked.

use std::fmt;

/// What became of the vectors of every source.
#[derive(Clone, Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

/// What became of the vectors of one source.
#[derive(Clone, Debug)]
pub struct Row {
    /// The source, or the kind of random jobs.
    pub source: String,
    /// Number of vectors run: each once, whether it makes for one job or for one in each direction.
    pub run: usize,
    /// Number of vectors that were not, and why.
    pub skipped: Vec<(usize, String)>,
}

impl Report {
    /// The sources, in the order of their files.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Number of vectors run of the sources whose names start with `prefix`.
    pub fn run(&self, prefix: &str) -> usize {
        self.rows.iter().filter(|row| row.source.starts_with(prefix)).map(|row| row.run).sum()
    }

    /// Number of vectors not run of the sources whose names start with `prefix`.
    pub fn skipped(&self, prefix: &str) -> usize {
        let rows = self.rows.iter().filter(|row| row.source.starts_with(prefix));
        rows.flat_map(|row| &row.skipped).map(|(n, _)| n).sum()
    }

    pub(crate) fn add_run(&mut self, source: &str, n: usize) {
        self.row(source).run += n;
    }

    pub(crate) fn add_skipped(&mut self, source: &str, n: usize, why: &str) {
        let skipped = &mut self.row(source).skipped;
        match skipped.iter_mut().find(|(_, reason)| reason == why) {
            Some((count, _)) => *count += n,
            None => skipped.push((n, why.to_owned())),
        }
    }

    fn row(&mut self, source: &str) -> &mut Row {
        let index = self.rows.iter().position(|row| row.source == source).unwrap_or_else(|| {
            self.rows.push(Row { source: source.to_owned(), run: 0, skipped: Vec::new() });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            write!(f, "{:38} {:6} run", row.source, row.run)?;
            for (n, why) in &row.skipped {
                write!(f, ", {n} skipped: {why}")?;
            }
            writeln!(f)?;
        }
        write!(f, "{:38} {:6} run, {} skipped", "all", self.run(""), self.skipped(""))
    }
}
