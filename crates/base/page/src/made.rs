//! The origin of a page.

use serde::Deserialize;

/// The program, machine and time that made a page.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Made {
    /// The program's version.
    pub version: String,
    /// The machine, in words.
    pub host: String,
    /// The time in UTC (RFC 3339).
    pub at: String,
}

impl Made {
    /// By what, where and when, as the beginning of a sentence that `rest` ends.
    pub fn sentence(&self, rest: &str) -> String {
        format!("Made by forebay {} on {}, {}{rest}", self.version, self.host, self.at)
    }
}
