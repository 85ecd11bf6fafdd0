//! What a study comes to.

use serde::Serialize;

use crate::runs::Record;

/// All that a script said, in the order in which it said it.
#[derive(Debug, Default)]
pub struct Findings {
    /// Name of the study.
    pub name: String,
    /// Its comment, line by line; the first is the title.
    pub about: Vec<String>,
    /// What stands on the page.
    pub blocks: Vec<Block>,
    /// What was claimed elsewhere, and what came.
    pub claims: Vec<Claim>,
    /// Every run, once.
    pub runs: Vec<Record>,
    /// Whether only a fiftieth of the packets was run.
    pub quick: bool,
    /// Whether the script came to its end, or was broken off.
    pub complete: bool,
}

impl Findings {
    /// Whether every claim holds.
    pub fn all_hold(&self) -> bool {
        self.claims.iter().all(|claim| claim.holds)
    }
}

/// A claim, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// A short name, unique in its study.
    pub id: String,
    /// What the source says.
    pub claim: String,
    /// What was found here.
    pub figure: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why not, or under what condition.
    pub why: String,
}

/// A part of the page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Section(String),
    /// A paragraph.
    Text(String),
    /// A plot.
    Plot(Plot),
    /// A table.
    Table(Table),
    /// A map of cells.
    Heat(Heat),
}

/// Where values stand: on an axis of numbers, or over names.
#[derive(Clone, Debug, PartialEq)]
pub enum Xs {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Names: bars in groups.
    Names(Vec<String>),
}

impl Xs {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Xs::Numbers(numbers) => numbers.len(),
            Xs::Names(names) => names.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Where its values stand.
    pub xs: Xs,
    /// Its values, as many.
    pub ys: Vec<f64>,
}

/// Lines over numbers, or bars over names.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The x axis, with its unit.
    pub x: String,
    /// The y axis, with its unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
    /// Whether x is logarithmic.
    pub log_x: bool,
    /// Whether y is logarithmic.
    pub log_y: bool,
    /// What to see in it.
    pub note: String,
}

/// Rows of text.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// One a column.
    pub head: Vec<String>,
    /// As many cells each.
    pub rows: Vec<Vec<String>>,
}

/// Ratios over two quantities; the line where they pass 1 is drawn.
#[derive(Clone, Debug)]
pub struct Heat {
    /// What it shows.
    pub title: String,
    /// The columns' quantity, with its unit.
    pub x: String,
    /// The rows' quantity, with its unit.
    pub y: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The rows, from above.
    pub rows: Vec<String>,
    /// values\[row\]\[column\].
    pub values: Vec<Vec<f64>>,
    /// What to see in it.
    pub note: String,
}

/// What went into a page besides its findings.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The program's version.
    pub version: String,
    /// The machine, in words.
    pub host: String,
    /// When, in UTC.
    pub at: String,
}
