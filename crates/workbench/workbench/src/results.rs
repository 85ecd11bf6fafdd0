//! Folders of results: page, figures, tables, and a manifest. With the manifest, the scenario and the version that the
//! manifest names, the runs can be repeated.

pub mod explore;
pub mod pipeline;
mod request;
mod run;
mod search;
mod sweep;

use std::io;
use std::path::{Path, PathBuf};

use forebay_links::output::keep_apart;

pub use request::{Done, Request};
pub use run::{Kept, Packets, keep, plots_packets};
pub use search::keep as keep_search;
pub use sweep::SweepFolder;

/// The names of all files that a folder may be given. A folder is no place for a file of such a name that a run reads.
const FILES: [&str; 15] = [
    "config.toml",
    "figures.csv",
    "figures.json",
    "figures.parquet",
    "manifest.json",
    "output.bin",
    "packets.csv",
    "packets.parquet",
    "points.jsonl",
    "report.html",
    "scenario.toml",
    "search.json",
    "series.csv",
    "stacks.txt",
    "timeline.json",
];

/// Makes the folder `dir`, unless a file that it would be given is the one that `input` names.
fn begin(dir: &Path, input: &Path) -> io::Result<()> {
    keep_apart([input], files(dir)).map_err(io::Error::other)?;
    std::fs::create_dir_all(dir)
}

/// The paths of all files that the folder `dir` may be given.
pub fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let dir = dir.to_owned();
    FILES.into_iter().map(move |name| dir.join(name))
}
