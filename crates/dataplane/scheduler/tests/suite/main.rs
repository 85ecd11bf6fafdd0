//! One program for all of these tests: each program of its own would be linked by itself.

mod adaptive;
mod baselines;
mod batch;
mod classes;
mod division;
mod host;
mod lateness;
mod processor_state;
mod registry;
mod rule;
mod window;
