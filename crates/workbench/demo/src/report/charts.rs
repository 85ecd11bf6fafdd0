//! The plots of work: who got how much, of which sizes, and how busy that made them.

use super::super::figures::ProcessorFigures;
use super::draw::{
    Scale, TEXT, WIDTH, axis_below, axis_left, coloured, fit, line, mark, rect, svg, text, width_of,
};
use super::element::{Element, element};
use super::side::Side;
use super::units;

/// Tops of the size classes of [`ProcessorFigures::sizes`].
pub const SIZES: [&str; 6] =
    ["≤\u{a0}64", "≤\u{a0}128", "≤\u{a0}256", "≤\u{a0}512", "≤\u{a0}1,024", ">\u{a0}1,024"];

/// Each processor's part of a gateway's packets, and of their bytes.
pub fn shares(side: &Side<'_>) -> Element {
    let packets: Vec<f64> = side.processors().map(|(_, p)| p.packets as f64).collect();
    let bytes: Vec<f64> = side.processors().map(|(_, p)| p.bytes as f64).collect();
    let chart = svg(WIDTH, 132.0, &format!("Share of packets and bytes by processor, {}", side.name));
    let packet_text = |v: f64| format!("{} packets", units::short(v));
    let chart = chart.child(share_bar(side, 8.0, "packets", &packets, packet_text));
    let chart = chart.child(share_bar(side, 58.0, "bytes", &bytes, units::bytes));
    let scale = Scale::exact(1.0, SHARE_LEFT, WIDTH - 20.0);
    chart.child(axis_below(&scale, 102.0, 107.0, units::percent_short))
}

const SHARE_LEFT: f64 = 78.0;

fn share_bar(side: &Side<'_>, y: f64, name: &str, values: &[f64], write: impl Fn(f64) -> String) -> Element {
    const HEIGHT: f64 = 40.0;
    let scale = Scale::exact(1.0, SHARE_LEFT, WIDTH - 20.0);
    let total: f64 = values.iter().sum();
    let group = element("g").child(text(SHARE_LEFT - 9.0, y + 17.0, "end strong", name));
    let sum = if name == "packets" { units::short(total) } else { units::bytes(total) };
    let group = group.child(text(SHARE_LEFT - 9.0, y + 33.0, "end quiet", sum));
    if !units::usable(total) {
        return group.child(rect(scale.at(0.0), y, scale.at(1.0) - scale.at(0.0), HEIGHT, "hollow"));
    }
    let mut done = 0.0;
    let mut bar = group;
    for ((slot, processor), value) in side.processors().zip(values).filter(|(_, value)| **value > 0.0) {
        let (from, to) = (scale.at(done / total), scale.at((done + value) / total));
        let share = value / total;
        let shape = rect(from, y, to - from, HEIGHT, &coloured("fill part mark", slot));
        bar = bar.child(shape.title(format!(
            "{}: {} ({})",
            processor.name,
            write(*value),
            units::percent(share)
        )));
        let label = units::percent_short(share);
        if width_of(&label, TEXT) + 4.0 < to - from {
            bar = bar.child(text((from + to) / 2.0, y + 25.0, &coloured("middle inside", slot), label));
        }
        done += value;
    }
    bar
}

/// Of the packets of each size, the parts that the processors did.
pub fn sizes(side: &Side<'_>) -> Element {
    const LEFT: f64 = 50.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 206.0;
    let chart = svg(WIDTH, 248.0, &format!("Processors by packet size, {}", side.name));
    let scale = Scale::exact(1.0, BOTTOM, TOP);
    let mut chart = chart.child(axis_left(&scale, LEFT, WIDTH - 6.0, units::percent_short));
    let step = (WIDTH - 6.0 - LEFT) / SIZES.len() as f64;
    for (class, name) in SIZES.iter().enumerate() {
        let x = LEFT + step * class as f64 + step * 0.14;
        chart = chart.child(size_column(side, class, x, step * 0.72, &scale));
        chart = chart.child(text(x + step * 0.36, BOTTOM + 18.0, "middle", *name));
    }
    chart = chart.child(line((LEFT, BOTTOM), (WIDTH - 6.0, BOTTOM), "axis"));
    let middle = (LEFT + WIDTH) / 2.0;
    chart.child(text(
        middle,
        BOTTOM + 38.0,
        "middle quiet",
        "packet length in bytes (above: packets of that length)",
    ))
}

fn size_column(side: &Side<'_>, class: usize, x: f64, width: f64, scale: &Scale) -> Element {
    let total: f64 = side.processors().map(|(_, p)| p.sizes[class] as f64).sum();
    let top = scale.at(1.0);
    let column = element("g").child(text(x + width / 2.0, top - 8.0, "middle quiet", units::short(total)));
    if total == 0.0 {
        return column.child(rect(x, top, width, scale.at(0.0) - top, "hollow"));
    }
    let mut done = 0.0;
    let mut column = column;
    for (slot, processor) in side.processors().filter(|(_, p)| p.sizes[class] > 0) {
        let count = processor.sizes[class];
        let (from, to) = (scale.at(done / total), scale.at((done + count as f64) / total));
        let share = count as f64 / total;
        let told = format!(
            "{}, {} bytes: {} packets ({})",
            processor.name,
            SIZES[class],
            units::count(count),
            units::percent(share)
        );
        column = column.child(rect(x, to, width, from - to, &coloured("fill part mark", slot)).title(told));
        if from - to > TEXT + 3.0 {
            let label = units::percent_short(share);
            column = column.child(text(
                x + width / 2.0,
                (from + to) / 2.0 + 4.5,
                &coloured("middle inside", slot),
                label,
            ));
        }
        done += count as f64;
    }
    column
}

/// The mean length of the packets that each processor did; `longest` over both gateways.
pub fn mean_sizes(side: &Side<'_>, longest: f64) -> Element {
    let row = |p: &ProcessorFigures| match p.packets {
        0 => (0.0, "no packets".to_owned()),
        _ => (p.mean_size, units::length(p.mean_size)),
    };
    row_bars(side, "mean packet length in bytes", Scale::counts(longest, 0.0, 1.0), units::short, row)
}

/// How much of the time each processor worked; `busiest` over both gateways.
pub fn loads(side: &Side<'_>, busiest: f64) -> Element {
    let scale = match busiest.is_finite() && busiest > 1.0 {
        true => Scale::linear(busiest, 0.0, 1.0),
        false => Scale::exact(1.0, 0.0, 1.0),
    };
    let row = |p: &ProcessorFigures| (p.load, units::percent(p.load));
    row_bars(side, "share of the run in which it worked", scale, units::percent_short, row)
}

/// Height of a row.
pub const ROW: f64 = 30.0;

/// Space for the names at the left of a gateway's rows: what the longest needs, within reason.
pub fn names_width(side: &Side<'_>) -> f64 {
    let names = side.figures.processors.iter().map(|p| width_of(&p.name, TEXT));
    names.fold(50.0, f64::max).min(150.0) + 32.0
}

/// A bar for each processor; `row` gives its value and the value's text.
fn row_bars(
    side: &Side<'_>,
    what: &str,
    scale: Scale,
    write: impl Fn(f64) -> String,
    row: impl Fn(&ProcessorFigures) -> (f64, String),
) -> Element {
    let names = names_width(side);
    let scale = scale.along(names, WIDTH - 78.0);
    let bottom = 6.0 + ROW * side.figures.processors.len().max(1) as f64;
    let chart = svg(WIDTH, bottom + 46.0, &format!("{}: {what}", side.name));
    let mut chart = chart.child(axis_below(&scale, 4.0, bottom, write));
    for (i, (slot, processor)) in side.processors().enumerate() {
        let y = 6.0 + ROW * i as f64;
        let (value, label) = row(processor);
        let end = scale.at(value);
        let bar = rect(names, y + 5.0, end - names, ROW - 10.0, &coloured("fill mark", slot));
        let told = format!("{}: {label}, {what}", processor.name);
        chart = chart.child(row_name(slot, &processor.name, names, y)).child(bar.title(told));
        chart = chart.child(text(end + 7.0, y + ROW / 2.0 + 4.5, "strong over", label));
    }
    if side.figures.processors.is_empty() {
        chart = chart.child(text(names + 12.0, bottom - ROW / 2.0 + 4.0, "quiet", "no processors"));
    }
    chart.child(text((names + WIDTH - 78.0) / 2.0, bottom + 38.0, "middle quiet", what))
}

/// A processor's name and mark at the left of its row.
pub fn row_name(slot: usize, name: &str, width: f64, y: f64) -> Element {
    let middle = y + ROW / 2.0;
    let short = fit(name, width - 32.0, TEXT);
    let label = text(width - 26.0, middle + 4.5, "end", short).title(name);
    element("g").child(label).child(mark(slot, width - 14.0, middle, 5.0, "fill"))
}
