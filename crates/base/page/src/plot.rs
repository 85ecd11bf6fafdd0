//! Plots: lines over numbers, bars over names.
//!
//! What is drawn here is what a reader without scripts sees, and what is printed. `plot.js` draws the same
//! values again, from the data that stands in the figure, in the size of the window and as the reader zooms.

mod drawing;

use serde::{Deserialize, Serialize};

use crate::document::remark;
use crate::draw::{colour, mark, nothing, svg};
use crate::element::{Element, element};
use crate::units;

/// Tables of more rows are only in the data, for the reader to take away.
const ROWS_MAX: usize = 250;

/// Where values stand: on an axis of numbers, or over names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Xs {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Names: bars in groups.
    Names(Vec<String>),
}

impl Default for Xs {
    fn default() -> Self {
        Xs::Numbers(Vec::new())
    }
}

impl Xs {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Xs::Numbers(numbers) => numbers.len(),
            Xs::Names(names) => names.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As text.
    fn text(&self, at: usize) -> Option<String> {
        match self {
            Xs::Numbers(numbers) => numbers.get(at).map(|number| units::round(units::digits(*number))),
            Xs::Names(names) => names.get(at).cloned(),
        }
    }
}

/// One line of a plot.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Where its values stand.
    pub xs: Xs,
    /// Its values, as many; what is not finite is left out.
    pub ys: Vec<f64>,
    /// Half the width of each value's confidence interval, as many; empty: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<f64>,
    /// Whether a source prints these values: marks without a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
    /// Of printed values: the series of the plot that they belong to, or the several that they are for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<usize>,
}

impl Series {
    /// A line over numbers.
    pub fn line(name: impl Into<String>, xs: Vec<f64>, ys: Vec<f64>) -> Series {
        Series { name: name.into(), xs: Xs::Numbers(xs), ys, ..Series::default() }
    }

    /// Bars over names.
    pub fn bars(name: impl Into<String>, names: &[String], ys: Vec<f64>) -> Series {
        Series { name: name.into(), xs: Xs::Names(names.to_vec()), ys, ..Series::default() }
    }

    /// The ends of the interval of a value.
    fn ends(&self, at: usize) -> Option<(f64, f64)> {
        let (y, half) = (*self.ys.get(at)?, *self.spread.get(at)?);
        (y.is_finite() && half.is_finite()).then_some((y - half, y + half))
    }
}

/// Lines over numbers, or bars over names.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The x axis, with its unit.
    pub x: String,
    /// The y axis, with its unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
    /// Whether x is logarithmic.
    pub log_x: bool,
    /// Whether y is logarithmic.
    pub log_y: bool,
    /// What to see in it.
    pub note: String,
    /// The figure or table of a source that this is the counterpart of, or empty.
    pub counterpart: String,
}

impl Plot {
    /// The plot with its title, legend, note, values and data.
    pub fn figure(&self) -> Element {
        let drawing = self.draw().unwrap_or_else(|| nothing("no values"));
        let mut figure = element("figure")
            .class("plot")
            .child(element("figcaption").child(element("b").text(self.title.as_str())));
        if self.series.len() > 1 {
            let entry = |(slot, series): (usize, &Series)| {
                let sign = if series.printed {
                    self.printed(slot, 7.0, 7.0)
                } else {
                    mark(slot, 7.0, 7.0, 5.0, "fill")
                };
                let swatch = svg(14.0, 14.0, "").class("swatch").child(sign);
                element("li").class(colour(slot)).child(swatch).text(series.name.as_str())
            };
            let entries = self.series.iter().enumerate().map(entry);
            figure = figure.child(element("ul").class("legend").children(entries));
        }
        figure
            .child(drawing)
            .children(
                remark(&self.counterpart, &self.note).map(|words| element("p").class("how").prose(&words)),
            )
            .children(self.values())
            .child(element("script").at("type", "application/json").class("data").json(self))
    }

    /// All values as a table, folded away: for those who cannot see the drawing, or want the number.
    fn values(&self) -> Option<Element> {
        let longest = self.series.iter().max_by_key(|series| series.xs.len())?;
        if longest.xs.is_empty() || longest.xs.len() > ROWS_MAX {
            return None;
        }
        let alike = self.series.iter().all(|series| series.xs == longest.xs);
        let cell = |series: &Series, at: usize| {
            let value = series.ys.get(at).copied().filter(|y| y.is_finite());
            let value = value.map_or_else(|| units::NOTHING.to_owned(), units::digits);
            match series.spread.get(at).filter(|half| half.is_finite()) {
                Some(half) => format!("{value} ± {}", units::digits(*half)),
                None => value,
            }
        };
        let x = if self.x.is_empty() { "" } else { self.x.as_str() };
        let mut head = element("tr");
        let mut rows = Vec::new();
        if alike {
            head = head.child(element("th").text(x));
            head = head.children(self.series.iter().map(|series| element("th").text(series.name.as_str())));
            for at in 0..longest.xs.len() {
                let cells = self.series.iter().map(|series| element("td").text(cell(series, at)));
                let name = element("td").text(longest.xs.text(at).unwrap_or_default());
                rows.push(element("tr").child(name).children(cells));
            }
        } else {
            head = head.children(["", x, self.y.as_str()].map(|name| element("th").text(name)));
            for series in &self.series {
                for at in 0..series.xs.len() {
                    let cells =
                        [series.name.clone(), series.xs.text(at).unwrap_or_default(), cell(series, at)];
                    rows.push(element("tr").children(cells.map(|cell| element("td").text(cell))));
                }
            }
        }
        let table = element("table")
            .child(crate::document::caption(&format!("{}: {}", self.title, self.y)))
            .child(element("thead").child(head))
            .child(element("tbody").children(rows));
        Some(
            element("details")
                .class("values")
                .child(element("summary").text("Values"))
                .child(crate::document::scroll(&self.title, table)),
        )
    }
}
