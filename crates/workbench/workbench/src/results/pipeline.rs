//! The folder of a simulated pipeline or inline card.

use std::io;
use std::path::Path;

use forebay_links::output;
use forebay_page::Made;
use serde::Serialize;

use super::request::{manifest, write_json};
use crate::{Error, Model, Outcome, Ran, pages};

/// Writes the folder of the runs of the model of the file `path` with `sets`; `document` is their
/// figures as JSON, [`Model::document`] for example.
///
/// # Errors
/// If the folder cannot be written.
pub fn keep(
    dir: &Path,
    path: &Path,
    sets: &[String],
    model: &Model,
    ran: &Ran<'_>,
    document: &impl Serialize,
    made: &Made,
) -> Result<(), Error> {
    let Outcome::Runs(outcomes) = &ran.outcome else { return Ok(()) };
    let mut manifest = manifest("scenario", path, sets, made);
    manifest["seed"] = ran.seed.into();
    let resolved = model.resolved_toml();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let page = pages::pipeline(&name, outcomes, &ran.notes, &resolved, made);
    let write = || -> io::Result<()> {
        super::begin(dir, path)?;
        output::write(dir.join("report.html"), page)?;
        output::write(dir.join("scenario.toml"), format!("# All defaults filled in.\n{resolved}"))?;
        write_json(&dir.join("figures.json"), document)?;
        if let Some(series) = &outcomes[0].series {
            output::write(dir.join("series.csv"), series.csv())?;
        }
        write_json(&dir.join("manifest.json"), &manifest)
    };
    write().map_err(Error::writing(dir))
}
