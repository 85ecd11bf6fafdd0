//! The folder of a search for the highest rate.

use std::path::Path;

use forebay_links::output;
use forebay_page::Made;
use forebay_sim::{Bound, Highest, Scenario};

use super::request::Request;
use super::run::{self, Kept};
use crate::{Error, pages, search};

/// Writes the folder of the run at the rate that was found, and `search.json` with all rates that were tried.
///
/// # Errors
/// If the folder cannot be written, or the scenario cannot be read again.
pub fn keep(
    dir: &Path,
    request: Request<'_>,
    found: &Highest,
    bound: Bound,
    kept: Kept,
    made: &Made,
) -> Result<(), Error> {
    // The run at the rate found, as a run of its own would be kept.
    let mut sets = request.sets.to_vec();
    sets.push(format!("traffic.rate={}", found.rate));
    let at = Scenario::load(request.scenario, &sets)?;
    run::keep(dir, request, &at, &found.outcome, kept, made, pages::search(found, bound))?;
    let document = search::summary(found, bound);
    output::write(dir.join("search.json"), format!("{document:#}\n")).map_err(Error::writing(dir))
}
