//! Plots of what the page has gathered from several runs, drawn by the module of the reports.

use forebay_page::plot::{Plot, Series};
use serde::Deserialize;

/// Lines over numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    title: String,
    x: String,
    y: String,
    log_x: bool,
    log_y: bool,
    series: Vec<Line>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    xs: Vec<f64>,
    ys: Vec<Option<f64>>,
}

/// A figure as HTML from its lines as JSON; a text instead of a number is an error, and `null` is left out.
///
/// # Errors
/// What is wrong with the JSON.
pub fn plot_json(lines: &str) -> Result<String, String> {
    let Lines { title, x, y, log_x, log_y, series } =
        serde_json::from_str(lines).map_err(|error| error.to_string())?;
    let line = |one: Line| {
        let ys = one.ys.into_iter().map(|y| y.unwrap_or(f64::NAN)).collect();
        Series::line(one.name, one.xs, ys)
    };
    let series = series.into_iter().map(line).collect();
    let mut html = String::new();
    Plot { title, x, y, log_x, log_y, series, ..Plot::default() }.figure().write(&mut html);
    Ok(html)
}
