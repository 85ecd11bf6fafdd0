//! Stacked bars of cycles by cause.

use forebay_page::draw::{Scale, TEXT, WIDTH, axis_below, coloured, fit, nothing, rect, svg, text, width_of};
use forebay_page::element::{Element, element};
use forebay_page::units;

use super::Point;
use crate::figures::Figures;

const ROW: f64 = 24.0;
const LEFT: f64 = 130.0;

/// A bar: its name, what it is when pointed at, and cycles by cause.
struct Bar {
    name: String,
    causes: Vec<f64>,
}

/// Cycles of each group of functions.
pub(super) fn groups(figures: &Figures) -> Element {
    let mut groups: Vec<_> = figures.groups.iter().filter(|one| one.cycles > 0).collect();
    groups.sort_by_key(|one| std::cmp::Reverse(one.cycles));
    let per = if figures.packets > 0 { figures.packets as f64 } else { 1.0 };
    let unit = if figures.packets > 0 { "cycles a packet" } else { "cycles" };
    let bars: Vec<Bar> = groups
        .iter()
        .map(|one| Bar {
            name: one.name.clone(),
            causes: one.causes.iter().map(|&cycles| cycles as f64 / per).collect(),
        })
        .collect();
    chart(figures, &bars, unit)
}

/// All cycles of each point.
pub(super) fn points(points: &[Point]) -> Element {
    let Some(first) = points.first() else { return nothing("No configuration") };
    /// More would be a page of their own.
    const SHOWN: usize = 200;
    let bar = |point: &Point| {
        let packets = point.figures.packets.max(1) as f64;
        Bar {
            name: point.name.clone(),
            causes: point.figures.causes.iter().map(|one| one.cycles as f64 / packets).collect(),
        }
    };
    let bars: Vec<Bar> = points.iter().take(SHOWN).map(bar).collect();
    chart(&first.figures, &bars, if first.figures.packets > 0 { "cycles a packet" } else { "cycles" })
}

fn chart(figures: &Figures, bars: &[Bar], unit: &str) -> Element {
    let sum = |bar: &Bar| bar.causes.iter().sum::<f64>();
    let most = bars.iter().map(sum).fold(0.0, f64::max);
    if most == 0.0 {
        return nothing("No cycles");
    }
    let width = 2.0 * WIDTH;
    let longest = bars.iter().map(|bar| width_of(&bar.name, TEXT)).fold(LEFT, f64::max).min(width / 2.2);
    let (left, bottom) = (longest + 12.0, ROW * bars.len() as f64);
    let scale = Scale::linear(most, left, width - 70.0);
    // Causes that are there have colours of their own, as far as those reach.
    let shown: Vec<usize> =
        (0..figures.causes.len()).filter(|&cause| bars.iter().any(|bar| bar.causes[cause] > 0.0)).collect();
    let name = format!("{unit} by cause");
    let mut drawing = svg(width, bottom + 40.0, &name);
    drawing = drawing.child(axis_below(&scale, 0.0, bottom, units::short));
    for (row, bar) in bars.iter().enumerate() {
        let y = ROW * row as f64;
        drawing = drawing.child(text(left - 8.0, y + 16.0, "end", fit(&bar.name, left - 12.0, TEXT)));
        let mut from = 0.0;
        for (slot, &cause) in shown.iter().enumerate().filter(|(_, cause)| bar.causes[**cause] > 0.0) {
            let cycles = bar.causes[cause];
            let (x, end) = (scale.at(from), scale.at(from + cycles));
            let title =
                format!("{}, {}: {} {unit}", bar.name, figures.causes[cause].name, units::digits(cycles));
            let part = rect(x, y + 3.0, end - x, ROW - 6.0, &coloured("fill part mark", slot));
            drawing = drawing.child(part.title(title));
            from += cycles;
        }
        drawing = drawing.child(text(scale.at(from) + 6.0, y + 16.0, "quiet", units::digits(from)));
    }
    let legend = shown.iter().enumerate().map(|(slot, &cause)| {
        let square = rect(0.0, 0.0, 14.0, 14.0, &coloured("fill", slot));
        let swatch = svg(14.0, 14.0, "").class("swatch").child(square);
        let item = element("li").class(forebay_page::draw::colour(slot));
        item.child(swatch).text(figures.causes[cause].name.as_str())
    });
    element("figure")
        .child(element("figcaption").text(name))
        .child(element("ul").class("legend").children(legend))
        .child(drawing)
}
