//! Plots: lines over numbers, bars over names.
//!
//! What is drawn here is what a reader without scripts sees, and what is printed. `plot.js` draws the same
//! values again, from the data that stands in the figure, in the size of the window and as the reader zooms.

use serde::Serialize;

use crate::draw::{
    Scale, WIDTH, axis_below, axis_left, colour, coloured, fit, line, mark, nothing, rect, svg, text,
};
use crate::element::{Element, Path, element};
use crate::units;

const HEIGHT: f64 = 310.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 48.0;

/// Lines of more points have no marks, which would hide them.
const MARKED_MAX: usize = 40;

/// Tables of more rows are only in the data, for the reader to take away.
const ROWS_MAX: usize = 250;

/// Where values stand: on an axis of numbers, or over names.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
}

impl Series {
    /// A line over numbers.
    pub fn line(name: impl Into<String>, xs: Vec<f64>, ys: Vec<f64>) -> Series {
        Series { name: name.into(), xs: Xs::Numbers(xs), ys, spread: Vec::new() }
    }

    /// Bars over names.
    pub fn bars(name: impl Into<String>, names: &[String], ys: Vec<f64>) -> Series {
        Series { name: name.into(), xs: Xs::Names(names.to_vec()), ys, spread: Vec::new() }
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
                let swatch = svg(14.0, 14.0, "").class("swatch").child(mark(slot, 7.0, 7.0, 5.0, "fill"));
                element("li").class(colour(slot)).child(swatch).text(series.name.as_str())
            };
            let entries = self.series.iter().enumerate().map(entry);
            figure = figure.child(element("ul").class("legend").children(entries));
        }
        figure = figure.child(drawing);
        if !self.note.is_empty() {
            figure = figure.child(element("p").class("how").text(self.note.as_str()));
        }
        figure
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
            .child(element("caption").text(format!("{}: {}", self.title, self.y)))
            .child(element("thead").child(head))
            .child(element("tbody").children(rows));
        Some(
            element("details")
                .class("values")
                .child(element("summary").text("Values"))
                .child(crate::document::scroll(&self.title, table)),
        )
    }

    fn draw(&self) -> Option<Element> {
        let ends = |series: &Series| -> Vec<f64> {
            let ends = (0..series.spread.len()).filter_map(|at| series.ends(at));
            series.ys.iter().copied().chain(ends.flat_map(|(low, high)| [low, high])).collect()
        };
        let values = || self.series.iter().flat_map(ends).filter(|y| y.is_finite());
        let y = match self.log_y {
            true => Scale::logarithmic(values(), BOTTOM, TOP)?,
            false => Scale::linear(values().fold(0.0, f64::max), BOTTOM, TOP),
        };
        let chart = svg(WIDTH, HEIGHT, &format!("{}: {}", self.title, self.y))
            .child(axis_left(&y, LEFT, RIGHT, units::digits))
            .child(text(0.0, 12.0, "quiet", self.y.as_str()))
            .child(text((LEFT + RIGHT) / 2.0, HEIGHT - 8.0, "middle quiet", self.x.as_str()));
        match &self.series.first()?.xs {
            Xs::Names(names) => Some(self.bars(chart, &y, names)),
            Xs::Numbers(_) => self.lines(chart, &y),
        }
    }

    fn lines(&self, chart: Element, y: &Scale) -> Option<Element> {
        let points = |series: &Series| -> Vec<(f64, f64)> {
            match &series.xs {
                Xs::Numbers(xs) => xs.iter().copied().zip(series.ys.iter().copied()).collect(),
                Xs::Names(_) => Vec::new(),
            }
        };
        let xs = || self.series.iter().flat_map(points).map(|(x, _)| x).filter(|x| x.is_finite());
        let x = match self.log_x {
            true => Scale::logarithmic(xs(), LEFT, RIGHT)?,
            false => Scale::linear(xs().fold(0.0, f64::max), LEFT, RIGHT),
        };
        let mut chart = chart.child(axis_below(&x, TOP, BOTTOM, units::digits));
        for (slot, series) in self.series.iter().enumerate() {
            let all = points(series);
            let mut group = element("g").class(coloured("series", slot));
            group = group.children(band(series, &all, &x, y, slot));
            let mut path = Path::default();
            let mut marks = Vec::new();
            for (at, value) in all.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                let place = [x.at(*at), y.at(*value)];
                path = path.to(if marks.is_empty() { 'M' } else { 'L' }, &place);
                let said =
                    format!("{}, {} {}: {}", series.name, self.x, units::digits(*at), units::digits(*value));
                marks.push(mark(slot, place[0], place[1], 4.0, "fill point").title(said));
            }
            group = group.child(path.element().class(coloured("curve", slot)));
            chart = chart.child(if marks.len() > MARKED_MAX { group } else { group.children(marks) });
        }
        Some(chart)
    }

    fn bars(&self, chart: Element, y: &Scale, names: &[String]) -> Element {
        let step = (RIGHT - LEFT) / names.len().max(1) as f64;
        let width = step * 0.8 / self.series.len().max(1) as f64;
        let mut chart = chart;
        for (number, name) in names.iter().enumerate() {
            let x = LEFT + step * (number as f64 + 0.5);
            chart = chart.child(text(x, BOTTOM + 17.0, "middle", fit(name, step, 13.0)));
        }
        for (slot, series) in self.series.iter().enumerate() {
            let mut group = element("g").class(coloured("series", slot));
            for (number, (value, name)) in series.ys.iter().zip(names).enumerate() {
                if !value.is_finite() {
                    continue;
                }
                let x = LEFT + step * (number as f64 + 0.1) + width * slot as f64;
                let top = y.at(*value);
                let bar = rect(x, top, width * 0.94, BOTTOM - top, &coloured("fill point", slot));
                group = group.child(bar.title(format!("{}, {name}: {}", series.name, units::digits(*value))));
                if let Some((low, high)) = series.ends(number) {
                    let middle = x + width * 0.47;
                    group = group.child(line((middle, y.at(low)), (middle, y.at(high)), "whisker"));
                }
            }
            chart = chart.child(group);
        }
        chart.child(line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis"))
    }
}

/// The confidence band of a line.
fn band(series: &Series, points: &[(f64, f64)], x: &Scale, y: &Scale, slot: usize) -> Option<Element> {
    let ends: Vec<(f64, f64, f64)> = (points.iter().enumerate())
        .filter_map(|(at, (place, _))| series.ends(at).map(|(low, high)| (*place, low, high)))
        .collect();
    if ends.len() < 2 {
        return None;
    }
    let mut path = Path::default();
    for (at, (place, _, high)) in ends.iter().enumerate() {
        path = path.to(if at == 0 { 'M' } else { 'L' }, &[x.at(*place), y.at(*high)]);
    }
    for (place, low, _) in ends.iter().rev() {
        path = path.to('L', &[x.at(*place), y.at(*low)]);
    }
    Some(path.to('Z', &[]).element().class(coloured("spread", slot)))
}
