//! Models that are solved, not simulated: the Markov chain of a pipeline whose stages share
//! servers, closed forms of single queues and open networks of them, and the limits of inline cards.
//!
//! ```text
//! Network -> space: states, transitions; immediate ones followed to where time passes
//!         -> generator: sparse, listed by target; reachable states only
//!         -> gth (few states), band (narrow ones) or multilevel (many): the stationary distribution
//!         -> measures: throughput, loss, occupancy, utilisation, delay; residual and balance
//! ```
//!
//! The rules are those of docs/models.md, "Pipelines of stages", after \[N\] (the IXP425 as a VPN gateway, after Lin et
//! al., ACM TECS), of whose network processor [`Network::ixp425`] is the description; \[G\], of inline cards, is Bellows
//! et al., IPsec-Protected Transport of HDTV over IP. A stage works only while the next one has room; a
//! packet that finds the first stage full is lost. Times are seconds, rates 1/s or bit/s.

mod band;
mod coarsen;
mod error;
mod generator;
mod gth;
mod measures;
mod multilevel;
mod network;
mod solve;
mod space;

pub mod card;
pub mod closed;

pub use error::Error;
pub use measures::{Accuracy, Method, ServerFigures, Solution, StageFigures};
pub use network::{Branch, Discipline, Network, Server, Stage};
pub use solve::{Options, solve, solve_with};
