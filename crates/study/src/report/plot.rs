//! Plots: lines over numbers, bars over names, and maps of ratios.

use forebay_page::draw::{
    Scale, WIDTH, axis_below, axis_left, colour, coloured, fit, line, mark, nothing, rect, svg, text,
};
use forebay_page::element::{Element, Path, element};
use forebay_page::units;

use crate::findings::{Heat, Plot, Series, Xs};

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 48.0;

/// A plot with its title, legend and note.
pub(super) fn plot(plot: &Plot) -> Element {
    let drawing = draw(plot).unwrap_or_else(|| nothing("no values"));
    let mut figure = element("figure").class("plot").child(
        element("figcaption").child(element("b").text(plot.title.as_str())).text(format!(": {}", plot.y)),
    );
    if plot.series.len() > 1 {
        let entry = |(slot, series): (usize, &Series)| {
            let swatch = svg(14.0, 14.0, "").class("swatch").child(mark(slot, 7.0, 7.0, 5.0, "fill"));
            element("li")
                .class(colour(slot))
                .at("data-slot", slot.to_string())
                .at("tabindex", "0")
                .at("role", "button")
                .at("aria-pressed", "true")
                .child(swatch)
                .text(series.name.as_str())
        };
        figure =
            figure.child(element("ul").class("legend").children(plot.series.iter().enumerate().map(entry)));
    }
    figure = figure.child(drawing);
    if plot.note.is_empty() {
        figure
    } else {
        figure.child(element("p").class("how").text(plot.note.as_str()))
    }
}

fn draw(plot: &Plot) -> Option<Element> {
    let values = || plot.series.iter().flat_map(|series| series.ys.iter().copied()).filter(|y| y.is_finite());
    let y = match plot.log_y {
        true => Scale::logarithmic(values(), BOTTOM, TOP)?,
        false => Scale::linear(values().fold(0.0, f64::max), BOTTOM, TOP),
    };
    let chart = svg(WIDTH, HEIGHT, &format!("{}: {}", plot.title, plot.y))
        .child(axis_left(&y, LEFT, RIGHT, units::digits))
        .child(text((LEFT + RIGHT) / 2.0, HEIGHT - 8.0, "middle quiet", plot.x.as_str()));
    let Xs::Names(names) = &plot.series.first()?.xs else {
        return lines(plot, chart, &y);
    };
    Some(bars(plot, chart, &y, names))
}

fn lines(plot: &Plot, chart: Element, y: &Scale) -> Option<Element> {
    let points = |series: &Series| -> Vec<(f64, f64)> {
        match &series.xs {
            Xs::Numbers(xs) => xs.iter().copied().zip(series.ys.iter().copied()).collect(),
            Xs::Names(_) => Vec::new(),
        }
    };
    let xs = || plot.series.iter().flat_map(points).map(|(x, _)| x).filter(|x| x.is_finite());
    let x = match plot.log_x {
        true => Scale::logarithmic(xs(), LEFT, RIGHT)?,
        false => Scale::linear(xs().fold(0.0, f64::max), LEFT, RIGHT),
    };
    let mut chart = chart.child(axis_below(&x, TOP, BOTTOM, units::digits));
    for (slot, series) in plot.series.iter().enumerate() {
        let shown = points(series).into_iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let mut path = Path::default();
        let mut marks = Vec::new();
        for (number, (at, value)) in shown.enumerate() {
            let place = (x.at(at), y.at(value));
            path = path.to(if number == 0 { 'M' } else { 'L' }, &[place.0, place.1]);
            let said = format!("{}: {}", series.name, units::digits(value));
            marks.push(
                element("g")
                    .class("point")
                    .at("data-x", place.0)
                    .at("data-at", format!("{} {}", plot.x, units::round(units::digits(at))))
                    .at("data-value", said)
                    .child(mark(slot, place.0, place.1, 4.0, "fill")),
            );
        }
        let group = element("g").class(coloured("series", slot)).at("data-slot", slot.to_string());
        chart = chart.child(group.child(path.element().class(coloured("curve", slot))).children(marks));
    }
    Some(chart)
}

fn bars(plot: &Plot, chart: Element, y: &Scale, names: &[String]) -> Element {
    let step = (RIGHT - LEFT) / names.len().max(1) as f64;
    let width = step * 0.8 / plot.series.len().max(1) as f64;
    let mut chart = chart;
    for (number, name) in names.iter().enumerate() {
        let x = LEFT + step * (number as f64 + 0.5);
        chart = chart.child(text(x, BOTTOM + 17.0, "middle", fit(name, step, 13.0)));
    }
    for (slot, series) in plot.series.iter().enumerate() {
        let mut group = element("g").class(coloured("series", slot)).at("data-slot", slot.to_string());
        for (number, (value, name)) in series.ys.iter().zip(names).enumerate() {
            let x = LEFT + step * (number as f64 + 0.1) + width * slot as f64;
            let (top, middle) = (y.at(*value), LEFT + step * (number as f64 + 0.5));
            let bar = rect(x, top, width * 0.94, BOTTOM - top, &coloured("fill", slot));
            group = group.child(
                element("g")
                    .class("point")
                    .at("data-x", middle)
                    .at("data-at", name.as_str())
                    .at("data-value", format!("{}: {}", series.name, units::digits(*value)))
                    .child(bar),
            );
        }
        chart = chart.child(group);
    }
    chart.child(line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis"))
}

/// A map of ratios: above 1 in one colour, below in another, the stronger the further, with the line between.
pub(super) fn heat(heat: &Heat) -> Element {
    const SIDE: f64 = 84.0;
    const CELL: f64 = 34.0;
    const WIDE: f64 = 860.0;
    let (columns, rows) = (heat.columns.len().max(1), heat.rows.len());
    let step = (WIDE - SIDE) / columns as f64;
    let bottom = 24.0 + CELL * rows as f64;
    let mut drawing = svg(WIDE, bottom + 46.0, &heat.title)
        .child(text(SIDE - 10.0, 15.0, "end quiet", heat.y.as_str()))
        .child(text((SIDE + WIDE) / 2.0, bottom + 40.0, "middle quiet", heat.x.as_str()));
    for (number, name) in heat.columns.iter().enumerate() {
        drawing =
            drawing.child(text(SIDE + step * (number as f64 + 0.5), bottom + 18.0, "middle", name.as_str()));
    }
    for (row, values) in heat.values.iter().enumerate() {
        let y = 24.0 + CELL * row as f64;
        drawing = drawing.child(text(SIDE - 10.0, y + CELL / 2.0 + 5.0, "end", heat.rows[row].as_str()));
        for (column, value) in values.iter().enumerate() {
            let x = SIDE + step * column as f64;
            let strength = (value.log2().abs() / 2.0).clamp(0.0, 1.0) * 0.75 + 0.05;
            let cell = rect(x, y, step, CELL, &coloured("cell", usize::from(*value <= 1.0)))
                .at("fill-opacity", strength)
                .title(format!(
                    "{} {}, {} {}: {}",
                    heat.y,
                    heat.rows[row],
                    heat.x,
                    heat.columns[column],
                    units::digits(*value)
                ));
            drawing = drawing.child(cell).child(text(
                x + step / 2.0,
                y + CELL / 2.0 + 5.0,
                "middle",
                format!("\u{d7}{}", units::round(units::digits(*value))),
            ));
        }
    }
    drawing = drawing.child(border(heat, step, SIDE, CELL));
    let mut figure = element("figure")
        .class("heat")
        .child(element("figcaption").child(element("b").text(heat.title.as_str())))
        .child(element("div").class("scroll").child(drawing));
    if !heat.note.is_empty() {
        figure = figure.child(element("p").class("how").text(heat.note.as_str()));
    }
    figure
}

/// The line between cells above 1 and others.
fn border(heat: &Heat, step: f64, side: f64, cell: f64) -> Element {
    let above =
        |row: usize, column: usize| heat.values.get(row).and_then(|row| row.get(column)).map(|v| *v > 1.0);
    let mut group = element("g");
    for row in 0..heat.rows.len() {
        for column in 0..heat.columns.len() {
            let (x, y) = (side + step * column as f64, 24.0 + cell * row as f64);
            let here = above(row, column);
            if above(row, column + 1).is_some_and(|right| Some(right) != here) {
                group = group.child(line((x + step, y), (x + step, y + cell), "crossing"));
            }
            if above(row + 1, column).is_some_and(|below| Some(below) != here) {
                group = group.child(line((x, y + cell), (x + step, y + cell), "crossing"));
            }
        }
    }
    group
}
