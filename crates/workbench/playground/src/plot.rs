//! Plots and maps of what the page has gathered from several runs, drawn by the module of the reports.

use forebay_page::block::{HeatBlock, PlotBlock};
use forebay_page::heat::Heat;
use forebay_page::plot::Plot;
use serde::Deserialize;

/// A figure, as studies describe theirs too.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Drawing {
    Plot(PlotBlock),
    Heat(HeatBlock),
}

/// A figure as HTML from its description as JSON; a text instead of a number is an error, and `null` is left out.
///
/// # Errors
/// What is wrong with the JSON.
pub fn plot_json(drawing: &str) -> Result<String, String> {
    let drawing = serde_json::from_str(drawing).map_err(|error| error.to_string())?;
    let figure = match drawing {
        Drawing::Plot(plot) => Plot::from(plot).figure(),
        Drawing::Heat(heat) => Heat::from(heat).figure(),
    };
    let mut html = String::new();
    figure.write(&mut html);
    Ok(html)
}
