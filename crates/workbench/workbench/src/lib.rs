//! Scenario files of any model into figures.
//!
//! [`Model::load`] reads a file, whatever its model is; [`Model::run`] simulates or solves it and gives what came of it.
//! [`pool`] makes many runs on all cores, whose number changes nothing but the time taken; [`explore`] does so for
//! embedded cores, of which one execution times many. [`flat()`] and `columnar` make tables of figures.
//!
//! Nothing is printed here, and nobody is asked: whoever runs something is told how far it is, and says whether it goes
//! on.

#[cfg(feature = "parquet")]
pub mod columnar;
pub mod explore;
mod flat;
mod model;
pub mod pool;

pub use flat::flat;
pub use model::{Model, NoFigures, Options, Outcome, Ran, Step, Watch, Way};
