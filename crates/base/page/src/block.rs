//! Plots and maps as JSON describes them: what studies give, and the playground.

use serde::Deserialize;

use crate::heat::Heat;
use crate::plot::{Plot, Series, Xs};
use crate::units::micro;

/// Lines over numbers or bars over names, and a paper's printed values.
#[derive(Clone, Debug, Deserialize)]
pub struct PlotBlock {
    title: String,
    x: String,
    y: String,
    series: Vec<SeriesBlock>,
    #[serde(default)]
    paper: Vec<SeriesBlock>,
    #[serde(default)]
    log_x: bool,
    #[serde(default)]
    log_y: bool,
    #[serde(default)]
    note: String,
    #[serde(default)]
    counterpart: String,
}

/// Values of one name.
#[derive(Clone, Debug, Deserialize)]
struct SeriesBlock {
    name: String,
    xs: Xs,
    ys: Vec<Option<f64>>,
    #[serde(default)]
    spread: Vec<Option<f64>>,
    #[serde(rename = "where", default)]
    place: String,
}

/// A map of ratios, or of values with a unit.
#[derive(Clone, Debug, Deserialize)]
pub struct HeatBlock {
    title: String,
    x: String,
    y: String,
    columns: Vec<String>,
    rows: Vec<String>,
    values: Vec<Vec<Option<f64>>>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    counterpart: String,
}

/// What JSON cannot say is left out of drawings.
fn numbers(values: Vec<Option<f64>>) -> Vec<f64> {
    values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

impl From<PlotBlock> for Plot {
    fn from(block: PlotBlock) -> Plot {
        let own: Vec<Series> = block.series.into_iter().map(Series::from).collect();
        let count = block.paper.len();
        let paper = block.paper.into_iter().enumerate().map(|(number, one)| {
            let mut of = belonging(&one.name, &own);
            if of.is_empty() && count == own.len() {
                of.push(number);
            }
            let name =
                if one.place.is_empty() { one.name.clone() } else { format!("{}, {}", one.name, one.place) };
            Series { name, printed: true, of, ..Series::from(one) }
        });
        let paper: Vec<Series> = paper.collect();
        Plot {
            title: micro(&block.title),
            x: micro(&block.x),
            y: micro(&block.y),
            series: own.into_iter().chain(paper).collect(),
            log_x: block.log_x,
            log_y: block.log_y,
            note: micro(&block.note),
            counterpart: block.counterpart,
        }
    }
}

/// The series that printed values belong to, by the words before the comma: of `core, printed` the series `core`, or else all
/// whose names go on behind that: `core, cold` and `core (warm)`.
fn belonging(printed: &str, own: &[Series]) -> Vec<usize> {
    let name = printed.split(", ").next().unwrap_or(printed);
    if let Some(at) = own.iter().position(|series| series.name == printed || series.name == name) {
        return vec![at];
    }
    let goes_on = |series: &Series| {
        let rest = series.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(", ") || rest.starts_with(" ("))
    };
    own.iter().enumerate().filter(|(_, series)| goes_on(series)).map(|(at, _)| at).collect()
}

impl From<SeriesBlock> for Series {
    fn from(block: SeriesBlock) -> Series {
        let xs = match block.xs {
            Xs::Names(names) => Xs::Names(names.iter().map(|name| micro(name)).collect()),
            numbers @ Xs::Numbers(_) => numbers,
        };
        Series {
            name: micro(&block.name),
            xs,
            ys: numbers(block.ys),
            spread: numbers(block.spread),
            ..Series::default()
        }
    }
}

impl From<HeatBlock> for Heat {
    fn from(block: HeatBlock) -> Heat {
        Heat {
            title: micro(&block.title),
            x: micro(&block.x),
            y: micro(&block.y),
            columns: block.columns.iter().map(|name| micro(name)).collect(),
            rows: block.rows.iter().map(|name| micro(name)).collect(),
            values: block.values.into_iter().map(numbers).collect(),
            unit: micro(&block.unit),
            note: micro(&block.note),
            counterpart: block.counterpart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values_belong_to_the_series_that_they_name() {
        let own = ["protocol, reference", "protocol, tuned", "FIFO 1 (receive)", "BW", "BW, held"];
        let own: Vec<Series> = own.iter().map(|name| Series::line(*name, Vec::new(), Vec::new())).collect();
        for (name, of) in [
            ("protocol, printed", vec![0, 1]),
            ("protocol, tuned", vec![1]),
            ("FIFO 1, printed 4", vec![2]),
            ("BW, printed 86.3", vec![3]),
            ("FIFO, printed", vec![]),
            ("limit of BW, printed", vec![]),
        ] {
            assert_eq!(belonging(name, &own), of, "{name}");
        }
    }
}
