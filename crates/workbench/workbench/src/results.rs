//! Folders of results: page, figures, tables, and a manifest. With the manifest, the scenario and the version that the
//! manifest names, the runs can be repeated.

pub mod explore;
pub mod pipeline;
mod request;
mod run;
mod search;
mod sweep;

pub use request::{Done, Request};
pub use run::{Kept, Packets, keep, plots_packets};
pub use search::keep as keep_search;
pub use sweep::SweepFolder;
