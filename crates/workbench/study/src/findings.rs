//! What a study comes to.

use serde::Serialize;

pub use forebay_page::Made;
pub use forebay_page::document::{Block, Table};
pub use forebay_page::heat::Heat;
pub use forebay_page::plot::{Plot, Series, Xs};

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
    /// The source's own words, where they are given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// What was found here.
    pub figure: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why not, or under what condition.
    pub why: String,
}
