//! Runs scenario files of any model and returns their figures.
//!
//! [`Model::load`] reads a file of any model; [`Model::run`] simulates or solves it and returns the results. [`sweep`]
//! runs a model with every combination of values of its keys, [`search`] finds the highest rate that it carries,
//! [`size_buffers`] sizes the buffers of pipelines, and [`explore`] runs embedded cores, of which one execution times
//! many. [`pool`] makes many runs on all cores, whose number affects only the time taken. [`flat()`] makes tables of
//! figures; with the feature `pages` there are also pages of runs, with `results` folders of results. Without the feature
//! `embedded` (on by default) the models are those of the simulator alone, which compile for WebAssembly too.
//!
//! This crate prints nothing and asks nothing: it reports progress to the caller, which decides whether to continue.

#[cfg(feature = "results")]
pub mod columnar;
mod error;
#[cfg(feature = "embedded")]
pub mod explore;
mod flat;
mod grid;
mod model;
#[cfg(feature = "pages")]
pub mod pages;
pub mod pool;
#[cfg(feature = "results")]
pub mod results;
pub mod search;
pub mod size_buffers;
pub mod sweep;

pub use error::Error;
pub use flat::flat;
pub use grid::{Axis, Grid};
pub use model::{Model, NoFigures, Options, Outcome, Ran, Row, Step, Watch, Way, Written};
