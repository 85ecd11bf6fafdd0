//! Pages of figures: HTML and SVG written from Rust, in one file that needs no network.
//!
//! The reports of a demo run, of a study and of a simulation are made of these, so that they look alike.

pub mod block;
pub mod document;
pub mod draw;
pub mod element;
pub mod heat;
pub mod lanes;
mod made;
pub mod plot;
pub mod units;

pub use made::Made;

/// The style sheet of all reports: light and dark, screen and print.
pub const STYLE: &str = include_str!("style.css");

/// The rest of it, of pages with plots.
pub const PARTS: &str = include_str!("parts.css");

/// The script of plots.
pub const SCRIPT: &str = include_str!("plot.js");
