//! Maps over two quantities: of ratios, or of values with a unit.

use serde::Serialize;

use crate::document::remark;
use crate::draw::{TEXT, coloured, line, rect, svg, text, width_of, wrap};
use crate::element::{Element, element};
use crate::units;

/// Values over two quantities. Of ratios the line where they pass 1 is drawn.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Heat {
    /// What it shows.
    pub title: String,
    /// The columns' quantity, with its unit.
    pub x: String,
    /// The rows' quantity, with its unit.
    pub y: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The rows, from above.
    pub rows: Vec<String>,
    /// values\[row\]\[column\].
    pub values: Vec<Vec<f64>>,
    /// The unit of the values; empty: they are ratios.
    pub unit: String,
    /// What to see in it.
    pub note: String,
    /// The figure or table of a source that this is the counterpart of, or empty.
    pub counterpart: String,
}

impl Heat {
    /// The map with its title and note.
    pub fn figure(&self) -> Element {
        let figure = element("figure")
            .class("heat")
            .child(element("figcaption").child(element("b").text(self.title.as_str())))
            .child(crate::document::scroll(&self.title, draw(self)))
            .child(element("script").at("type", "application/json").class("data").json(self));
        figure.children(
            remark(&self.counterpart, &self.note).map(|words| element("p").class("how").prose(&words)),
        )
    }
}

/// Of ratios: above 1 in one colour, below in another, the stronger the further, with the line between. Of values: the stronger
/// the greater.
fn draw(heat: &Heat) -> Element {
    const CELL: f64 = 34.0;
    const WIDE: f64 = 860.0;
    let shade = Shade::of(heat);
    let (columns, rows) = (heat.columns.len().max(1), heat.rows.len());
    let side = heat.rows.iter().map(|name| width_of(name, TEXT)).fold(60.0, f64::max) + 14.0;
    let step = (WIDE - side) / columns as f64;
    let bottom = 24.0 + CELL * rows as f64;
    let lines: Vec<Vec<String>> = heat.columns.iter().map(|name| wrap(name, step - 4.0, TEXT)).collect();
    let foot = bottom + 17.0 * lines.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let mut drawing = svg(WIDE, foot + 29.0, &heat.title)
        .child(text(0.0, 15.0, "quiet", heat.y.as_str()))
        .child(text((side + WIDE) / 2.0, foot + 22.0, "middle quiet", heat.x.as_str()));
    for (number, lines) in lines.iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            let y = bottom + 17.0 * (at as f64 + 1.0);
            drawing = drawing.child(text(side + step * (number as f64 + 0.5), y, "middle", line.as_str()));
        }
    }
    for (row, values) in heat.values.iter().enumerate() {
        let y = 24.0 + CELL * row as f64;
        drawing = drawing.child(text(side - 10.0, y + CELL / 2.0 + 5.0, "end", heat.rows[row].as_str()));
        for (column, value) in values.iter().enumerate() {
            let x = side + step * column as f64;
            let (slot, strength) = shade.at(*value);
            let words = units::shown(*value);
            let said = if heat.unit.is_empty() { format!("\u{d7}{words}") } else { words };
            let place = format!("{} {}, {} {}", heat.y, heat.rows[row], heat.x, heat.columns[column]);
            let cell = rect(x, y, step, CELL, &coloured("cell", slot))
                .at("fill-opacity", strength)
                .title(format!("{place}: {} {}", units::digits(*value), heat.unit).trim_end().to_owned());
            drawing = drawing.child(cell).child(text(x + step / 2.0, y + CELL / 2.0 + 5.0, "middle", said));
        }
    }
    match shade {
        Shade::Ratio => drawing.child(border(heat, step, side, CELL)),
        Shade::Between(..) => drawing,
    }
}

/// How values are coloured.
enum Shade {
    Ratio,
    /// From the least value to the greatest.
    Between(f64, f64),
}

impl Shade {
    fn of(heat: &Heat) -> Shade {
        if heat.unit.is_empty() {
            return Shade::Ratio;
        }
        let values = heat.values.iter().flatten().copied().filter(|value| value.is_finite());
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(v), m.max(v)));
        Shade::Between(least, most)
    }

    /// The slot of the colour, and how strong it is: never so strong that the text on it cannot be read.
    fn at(&self, value: f64) -> (usize, f64) {
        let (slot, share) = match self {
            Shade::Ratio => (usize::from(value <= 1.0), value.log2().abs() / 2.0),
            Shade::Between(least, most) if most > least => (0, (value - least) / (most - least)),
            Shade::Between(..) => (0, 0.0),
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        (slot, share * 0.5 + 0.05)
    }
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
