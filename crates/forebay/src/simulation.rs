//! Simulate a design in virtual time and read its figures.
//!
//! A scenario is a TOML file, as for `forebay simulate`: a host with processors behind a bus, a pipeline of stages, an
//! inline card, or firmware on a core. [`Model::load`] and [`Model::parse`] read it and report everything that is wrong
//! with it at once; [`Model::run`] gives an [`Outcome`] with typed figures; [`Model::document`] is the JSON that the
//! command prints. A run is a pure function of scenario and seed: it gives the same figures on every machine.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use forebay::simulation::{Model, Options, Outcome, Way};
//!
//! let scenario = r#"
//! model = "host"
//! seed = 1
//! traffic = { source = "fixed", value = 1500, packets = 1000, rate = "100 Mbit/s" }
//! [[processor]]
//! name = "cpu"
//! kind = "cpu"
//! init = "1 us"
//! block = "900 ns"
//! "#;
//! // As `--set` on the command line.
//! let sets = ["traffic.packets=500".to_owned()];
//! let model = Model::parse(scenario, "host.toml", &sets, Path::new("."))?;
//! let ran = model.run(Way::Simulation, &Options::default(), &|_| ControlFlow::Continue(()))?;
//! let Outcome::Host(host) = &ran.outcome else { panic!("a host scenario") };
//! assert_eq!(host.figures.packets, 500);
//! assert_eq!(model.document(&ran.outcome)["packets"], 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `simulate.rs` compares policies. For loops over many runs, the host model's own functions are here too:
//! [`run`], [`replicate`] with confidence intervals, [`highest_rate`] for the largest rate that a design carries.

pub use forebay_diagnostics::{FileErrors, Finding, Problem};
pub use forebay_sim::{
    BusFigures, ClassFigures, Estimate, Figures, Latency, Options as HostOptions, Outcome as HostOutcome,
    ProcessorFigures, Replications, RunError, Scenario, highest_rate, replicate, run,
};
pub use forebay_workbench::{Model, NoFigures, Options, Outcome, Ran, Step, Watch, Way, flat};
