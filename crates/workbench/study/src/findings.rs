//! What a study found, as `forebay.study` of Python hands it over.

use forebay_page::block::{HeatBlock, PlotBlock};
use forebay_page::document::{Table, remark};
use forebay_page::units::micro;
use serde::Deserialize;
use serde_json::Value;

/// All that a study said, in its order.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Findings {
    /// Name of the study.
    pub name: String,
    /// The paragraphs of its docstring; the first is the title.
    pub about: Vec<String>,
    /// What stands on the page.
    pub blocks: Vec<Block>,
    /// Claims and observations that were measured.
    pub claims: Vec<Claim>,
    /// Every run, once.
    pub runs: Vec<Record>,
    /// Whether only a fiftieth of the packets was run.
    pub quick: bool,
    /// Whether the study came to its end, or was interrupted.
    pub complete: bool,
    /// Of each other reading of the paper, how many claims hold with it.
    #[serde(default)]
    pub readings: Vec<ReadingCount>,
}

/// How many claims have their values in their bands with another reading of the paper.
#[derive(Clone, Debug, Deserialize)]
pub struct ReadingCount {
    /// What is read otherwise.
    pub says: String,
    /// Claims whose values lie in their bands.
    pub held: usize,
    /// Claims that were tested with it.
    pub claims: usize,
}

impl Findings {
    /// The claims, or the observations, that rest on one basis.
    pub fn of(&self, kind: Kind, basis: Basis) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| claim.kind == kind && claim.basis == basis)
    }
}

/// Whose a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A paper's.
    Claim,
    /// Ours.
    Observation,
}

/// What a statement rests on: whether it is a test, and if it is none, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A test.
    Test,
    /// Numbers that the paper prints decide it.
    Arithmetic,
    /// A parameter was fitted to it, or assumed for it.
    Fitted,
    /// It compares numbers of the paper with each other.
    Consistency,
    /// What goes in comes out.
    Input,
}

impl Basis {
    /// All, in the order of the page.
    pub const ALL: [Basis; 5] =
        [Basis::Test, Basis::Arithmetic, Basis::Fitted, Basis::Consistency, Basis::Input];
}

/// What band, repetitions and control come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds, and fails under its control.
    Holds,
    /// It does not hold.
    Fails,
    /// It holds under its control too, or its interval meets the end of the band.
    #[serde(rename = "not decided")]
    NotDecided,
}

/// What a claim came to with changed scenarios.
#[derive(Clone, Debug, Deserialize)]
pub struct Under {
    /// What was changed.
    pub says: String,
    /// Whether all values lie in the band.
    pub holds: bool,
    /// What was found, in words.
    pub figure: String,
}

/// Where the value that is nearest to the end of the band lies, over repetitions.
#[derive(Clone, Debug, Deserialize)]
pub struct Interval {
    /// What differs between the repetitions.
    pub over: String,
    /// How many there are.
    pub count: usize,
    /// In how many all values lie in the band.
    pub held: usize,
    /// The mean distance of that value from the end of the band, if it is a number.
    pub margin: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub half_width: Option<f64>,
}

/// A statement, the band of values for which it holds, and what was measured.
#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    /// A short name, unique in its study.
    pub id: String,
    /// Whose it is.
    pub kind: Kind,
    /// Our reading of it.
    pub claim: String,
    /// The paper's words; empty for observations.
    pub quote: String,
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// Parameters for which it was tested.
    pub parameters: Vec<Parameter>,
    /// The values for which it holds.
    pub band: Band,
    /// When the band was set as it is, if that is recorded.
    #[serde(default)]
    pub since: Option<Since>,
    /// What was found, in words.
    pub figure: String,
    /// Whether all measured values lie in the band.
    pub holds: bool,
    /// Why, or under what condition.
    pub why: String,
    /// What it rests on.
    pub basis: Basis,
    /// Why it is no test; empty if it is one.
    pub because: String,
    /// What band, repetitions and control come to.
    pub verdict: Verdict,
    /// Why it is not decided; empty if it is.
    pub open: String,
    /// With the wrong rule under which it must fail, if it names one.
    pub control: Option<Under>,
    /// With other readings of the paper.
    pub readings: Vec<Under>,
    /// Over repetitions, if they differ.
    pub interval: Option<Interval>,
}

/// A parameter of a claim.
#[derive(Clone, Debug, Deserialize)]
pub struct Parameter {
    /// The scenario's key, or a name.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Whose it is.
    pub whose: Whose,
    /// Where it is printed, or why it is assumed.
    pub source: String,
}

/// Whose a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Printed by the paper.
    Printed,
    /// Assumed here.
    Assumed,
}

/// Values for which a claim holds, both ends included.
#[derive(Clone, Debug, Deserialize)]
pub struct Band {
    /// The lower end, if there is one.
    pub low: Option<f64>,
    /// The upper end, if there is one.
    pub high: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// Where they come from.
    pub source: String,
}

/// The commit that set a band.
#[derive(Clone, Debug, Deserialize)]
pub struct Since {
    /// Its day, as `2026-11-26`.
    pub date: String,
    /// Its abbreviated name.
    pub commit: String,
}

/// A run: with scenario file and settings it can be made again.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// From 1, in the order in which the study asked.
    pub run: usize,
    /// The scenario file.
    pub scenario: String,
    /// What the study set in it.
    pub set: Vec<(String, String)>,
    /// How its figures were found: `simulation`, `solution`, `closed-form`.
    pub by: String,
    /// The document of figures.
    pub figures: Value,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
}

/// A part of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// A heading.
    Section(String),
    /// A paragraph.
    Text(String),
    /// A plot.
    Plot(PlotBlock),
    /// A table.
    Table(TableBlock),
    /// A map of ratios.
    Heat(HeatBlock),
}

/// Rows of text.
#[derive(Clone, Debug, Deserialize)]
pub struct TableBlock {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    note: String,
    counterpart: String,
}

impl TableBlock {
    /// What stands below it.
    pub fn remark(&self) -> Option<String> {
        remark(&self.counterpart, &micro(&self.note))
    }
}

impl From<TableBlock> for Table {
    fn from(block: TableBlock) -> Table {
        Table {
            title: micro(&block.title),
            head: block.head.iter().map(|cell| micro(cell)).collect(),
            rows: block.rows.iter().map(|row| row.iter().map(|cell| micro(cell)).collect()).collect(),
        }
    }
}
