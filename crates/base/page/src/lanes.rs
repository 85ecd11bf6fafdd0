//! What happened when: spans of time in one lane for each thing that was busy.

use serde::Serialize;

use crate::draw::{Scale, WIDTH, axis_below, coloured, fit, rect, svg, text};
use crate::element::{Element, element};
use crate::units;

const ROW: f64 = 26.0;
const LEFT: f64 = 110.0;
const WIDE: f64 = 2.0 * WIDTH + 40.0;

/// Lanes over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lanes {
    /// What it shows.
    pub title: String,
    /// Names of the lanes, from above.
    pub lanes: Vec<String>,
    /// What was done in them.
    pub spans: Vec<Span>,
    /// What to see in it.
    pub note: String,
}

/// Something that took a while.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// Its lane.
    pub lane: usize,
    /// Whose it is: its colour.
    pub slot: usize,
    /// What it was.
    pub name: String,
    /// When it began, in seconds.
    pub from: f64,
    /// When it ended.
    pub until: f64,
}

impl Lanes {
    /// The lanes with their title and note.
    pub fn figure(&self) -> Element {
        let figure = element("figure")
            .class("lanes")
            .child(element("figcaption").child(element("b").text(self.title.as_str())))
            .child(crate::document::scroll(&self.title, self.draw()))
            .child(element("script").at("type", "application/json").class("data").json(self));
        match self.note.is_empty() {
            true => figure,
            false => figure.child(element("p").class("how").text(self.note.as_str())),
        }
    }

    fn draw(&self) -> Element {
        let end = self.spans.iter().map(|span| span.until).fold(0.0, f64::max);
        let scale = Scale::exact(end, LEFT, WIDE - 8.0);
        let bottom = 6.0 + ROW * self.lanes.len() as f64;
        let mut drawing =
            svg(WIDE, bottom + 26.0, &self.title).child(axis_below(&scale, 4.0, bottom, units::seconds));
        for (lane, name) in self.lanes.iter().enumerate() {
            let y = 6.0 + ROW * lane as f64 + ROW / 2.0 + 4.0;
            drawing = drawing.child(text(LEFT - 8.0, y, "end", fit(name, LEFT - 12.0, 13.0)));
        }
        for span in &self.spans {
            let (from, until) = (scale.at(span.from), scale.at(span.until));
            let y = 6.0 + ROW * span.lane as f64 + 3.0;
            let said = format!(
                "{}, {} to {}: {}",
                span.name,
                units::seconds(span.from),
                units::seconds(span.until),
                units::seconds(span.until - span.from)
            );
            let bar =
                rect(from, y, (until - from).max(0.6), ROW - 6.0, &coloured("fill part point", span.slot));
            drawing = drawing.child(bar.title(said));
        }
        drawing
    }
}
