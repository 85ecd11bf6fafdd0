//! Runs scenario files of any model and returns their figures.
//!
//! [`Model::load`] reads a file of any model; [`Model::run`] simulates or solves it and returns the results. [`pool`]
//! makes many runs on all cores, whose number affects only the time taken; [`explore`] does so for embedded cores, of
//! which one execution times many. [`flat()`] and `columnar` make tables of figures.
//!
//! This crate prints nothing and asks nothing: it reports progress to the caller, which decides whether to continue.

#[cfg(feature = "results")]
pub mod columnar;
pub mod explore;
mod flat;
mod model;
#[cfg(feature = "results")]
pub mod pages;
pub mod pool;
#[cfg(feature = "results")]
pub mod results;

pub use flat::flat;
pub use model::{Model, NoFigures, Options, Outcome, Ran, Step, Watch, Way};
