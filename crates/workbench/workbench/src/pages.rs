//! Pages of runs, sweeps and searches: one HTML file each, which needs no network.

use forebay_page::document::{Block, Frame};

mod packets;
mod pipeline;
mod run;
#[cfg(feature = "results")]
mod sweep;

pub use pipeline::{parts as pipeline_parts, render as pipeline};
pub use run::{parts as simulation_parts, simulation};
#[cfg(feature = "results")]
pub use sweep::{Row, SweepPage, search};

/// What a page shows, for those who put it into a page of their own. The frame has no footer.
pub struct Parts {
    /// What came out, in words.
    pub frame: Frame,
    /// Plots and tables.
    pub blocks: Vec<Block>,
}
