//! What every drawing is made of: text, lines, a processor's colour and mark, and axes.

use crate::element::{Element, Path, element};
use crate::units;

/// Width of a chart in its own units: two stand side by side in a wide window, one
/// fills a narrow one, and in both the text keeps about its size.
pub const WIDTH: f64 = 520.0;

/// Size of the text of axes and labels; style.css says the same.
pub const TEXT: f64 = 13.0;

/// Colours in style.css; a later processor gets the first again, with another mark.
const COLOURS: usize = 8;

/// A drawing and what it is called where it cannot be seen.
pub fn svg(width: f64, height: f64, name: &str) -> Element {
    let size = format!("0 0 {} {}", crate::element::number(width), crate::element::number(height));
    element("svg").at("viewBox", size).at("role", "img").at("aria-label", name)
}

/// What stands where a drawing would, were there figures for it.
pub fn nothing(message: &str) -> Element {
    let frame = rect(0.5, 0.5, WIDTH - 1.0, 63.0, "hollow");
    svg(WIDTH, 64.0, message).child(frame).child(text(WIDTH / 2.0, 36.0, "middle quiet", message))
}

/// Text whose place is its base line; `class` says its anchor and weight.
pub fn text(x: f64, y: f64, class: &str, content: impl Into<String>) -> Element {
    element("text").at("x", x).at("y", y).class(class).text(content)
}

/// A straight line.
pub fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Element {
    element("line").at("x1", from.0).at("y1", from.1).at("x2", to.0).at("y2", to.1).class(class)
}

/// A rectangle, whose sides are never negative.
pub fn rect(x: f64, y: f64, width: f64, height: f64, class: &str) -> Element {
    let rect = element("rect").at("x", x).at("y", y);
    rect.at("width", width.max(0.0)).at("height", height.max(0.0)).class(class)
}

/// The class that carries the colour of a processor's slot.
pub fn colour(slot: usize) -> String {
    format!("p{}", slot % COLOURS)
}

/// A class and the colour of a slot.
pub fn coloured(class: &str, slot: usize) -> String {
    format!("{class} {}", colour(slot))
}

/// The mark of a processor's slot: a shape as well, for those who see the colours alike.
pub fn mark(slot: usize, x: f64, y: f64, radius: f64, class: &str) -> Element {
    let r = radius;
    let path = match slot % 8 {
        0 => return element("circle").at("cx", x).at("cy", y).at("r", r).class(coloured(class, slot)),
        1 => polygon(&[(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)], 0.9, (x, y)),
        2 => polygon(&[(x, y - r), (x + r, y + r), (x - r, y + r)], 1.15, (x, y)),
        3 => polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], 1.3, (x, y)),
        4 => polygon(&[(x, y + r), (x + r, y - r), (x - r, y - r)], 1.15, (x, y)),
        5 => polygon(
            &[(x - r, y - r), (x + r, y - r), (x, y), (x + r, y + r), (x - r, y + r), (x, y)],
            1.1,
            (x, y),
        ),
        6 => {
            let (a, b) = (r, 0.36 * r);
            let cross = [
                (-b, -a),
                (b, -a),
                (b, -b),
                (a, -b),
                (a, b),
                (b, b),
                (b, a),
                (-b, a),
                (-b, b),
                (-a, b),
                (-a, -b),
                (-b, -b),
            ];
            polygon(&cross.map(|(dx, dy)| (x + dx, y + dy)), 1.2, (x, y))
        }
        _ => polygon(
            &[(x - r, y - r), (x, y), (x + r, y - r), (x + r, y + r), (x, y), (x - r, y + r)],
            1.1,
            (x, y),
        ),
    };
    path.element().class(coloured(class, slot))
}

/// A closed outline, drawn larger or smaller about its middle so that all marks weigh alike.
fn polygon(points: &[(f64, f64)], scale: f64, middle: (f64, f64)) -> Path {
    let place = |p: &(f64, f64)| [middle.0 + (p.0 - middle.0) * scale, middle.1 + (p.1 - middle.1) * scale];
    let mut path = Path::default();
    for (i, point) in points.iter().enumerate() {
        path = path.to(if i == 0 { 'M' } else { 'L' }, &place(point));
    }
    path.to('Z', &[])
}

/// Cuts text to about `pixels` at a font size, with an ellipsis where it was cut.
pub fn fit(content: &str, pixels: f64, size: f64) -> String {
    let room = (pixels / width_of("n", size)).max(1.0) as usize;
    if content.chars().count() <= room {
        return content.to_owned();
    }
    content.chars().take(room.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// Text in lines of at most about `pixels` at a font size, broken at spaces and after hyphens, slashes and commas; a
/// longer word has a line of its own.
pub fn wrap(content: &str, pixels: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in content.split_inclusive([' ', '-', '/', ',']) {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line}{}", word.trim_end()), size) <= pixels => {
                line.push_str(word)
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// About how wide text is; on the wide side, since no font is at hand to measure.
pub fn width_of(content: &str, size: f64) -> f64 {
    content.chars().count() as f64 * size * 0.58
}

/// An axis: which values it spans and where they lie in the drawing.
#[derive(Clone, Copy)]
pub struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

/// A value on an axis, and whether there is room to write it.
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Whether it is written wherever there is room, or only drawn.
    pub labelled: bool,
    /// Whether it is written before others: a power of ten on a logarithmic axis.
    pub first: bool,
}

impl Scale {
    /// From zero to the next round number at or above `high`, in about five steps.
    pub fn linear(high: f64, start: f64, end: f64) -> Self {
        let high = if units::usable(high) { high.clamp(1e-12, 1e30) } else { 1.0 };
        let step = round_up(high / 5.0);
        Self { logarithmic: false, low: 0.0, high: (high / step - 1e-9).ceil() * step, start, end }
    }

    /// From zero to a round number of packets or bytes, which come in whole numbers only.
    pub fn counts(high: f64, start: f64, end: f64) -> Self {
        Self::linear(high.max(5.0), start, end)
    }

    /// From round numbers at or below `low` to round numbers at or above `high`, in about five steps.
    pub fn between(low: f64, high: f64, start: f64, end: f64) -> Self {
        let step = round_up(((high - low) / 5.0).max(1e-12));
        let (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        Self { logarithmic: false, low, high: high.max(low + step), start, end }
    }

    /// From exactly `low` to exactly `high`.
    pub fn within(low: f64, high: f64, start: f64, end: f64) -> Self {
        Self { logarithmic: false, low, high, start, end }
    }

    /// From zero to exactly `high`, for times and shares that end where they end.
    pub fn exact(high: f64, start: f64, end: f64) -> Self {
        let high = if units::usable(high) { high.clamp(1e-12, 1e30) } else { 1.0 };
        Self { logarithmic: false, low: 0.0, high, start, end }
    }

    /// Over all values that a logarithm can show, or nothing where there are none.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, start: f64, end: f64) -> Option<Self> {
        let usable = values.into_iter().filter(|v| units::usable(*v)).map(|v| v.clamp(1e-12, 1e12));
        let (low, high) = usable.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let (low, high) = (round_down(low * 0.95), round_up(high * 1.05));
        Some(Self { logarithmic: true, low, high, start, end })
    }

    /// The same values laid along another stretch.
    pub fn along(self, start: f64, end: f64) -> Self {
        Self { start, end, ..self }
    }

    /// Where the axis begins and ends, as values.
    pub fn span(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Where a value lies; values outside lie on the nearer end.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let part = match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.start + part * (self.end - self.start)
    }

    /// The values to draw.
    pub fn ticks(&self) -> Vec<Tick> {
        if self.logarithmic { self.ticks_logarithmic() } else { self.ticks_linear() }
    }

    fn ticks_linear(&self) -> Vec<Tick> {
        let step = round_up((self.high - self.low) / 5.0);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| Tick { value: i as f64 * step, labelled: true, first: true }).collect()
    }

    /// Powers of ten, and twice and five times those while they are few enough to read.
    fn ticks_logarithmic(&self) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let stride = (decades / 6.0).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for exponent in first..=last {
            for (factor, labelled) in
                [(1.0, exponent % stride == 0), (2.0, decades < 2.1), (5.0, decades < 2.1)]
            {
                let value = factor * 10f64.powi(exponent);
                let within = value >= self.low * 0.999 && value <= self.high * 1.001;
                if within && (labelled || decades < 5.0) {
                    ticks.push(Tick { value, labelled, first: factor == 1.0 });
                }
            }
        }
        ticks
    }
}

/// The lines and values of an axis below a chart, whose plot reaches from `top` to `bottom`.
pub fn axis_below(scale: &Scale, top: f64, bottom: f64, label: impl Fn(f64) -> String) -> Element {
    axis_below_at(scale, scale.ticks(), top, bottom, label)
}

/// The same with ticks at the values that are given.
pub fn axis_below_at(
    scale: &Scale,
    mut ticks: Vec<Tick>,
    top: f64,
    bottom: f64,
    label: impl Fn(f64) -> String,
) -> Element {
    let mut group = element("g");
    for tick in &ticks {
        let x = scale.at(tick.value);
        group = group.child(line((x, top), (x, bottom), if tick.labelled { "grid" } else { "grid faint" }));
    }
    // What is written first keeps its place; what would touch it is left out.
    ticks.sort_by_key(|tick| (!tick.first, figures(tick.value)));
    let mut written: Vec<(f64, f64)> = Vec::new();
    for tick in ticks.iter().filter(|tick| tick.labelled) {
        let (x, content) = (scale.at(tick.value), units::round(label(tick.value)));
        let half = width_of(&content, TEXT) / 2.0 + 1.5;
        if written.iter().all(|(from, to)| x + half <= *from || x - half >= *to) {
            written.push((x - half, x + half));
            group = group.child(text(x, bottom + 17.0, "middle", content));
        }
    }
    group.child(line((scale.start, bottom), (scale.end, bottom), "axis"))
}

/// How many figures a number has, zeros at its ends not counted; of a power of ten none.
fn figures(value: f64) -> usize {
    let text = format!("{value:e}");
    let figures: String = text.split('e').next().unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    if figures == "1" { 0 } else { figures.trim_end_matches('0').len() }
}

/// The lines and values of an axis at the left of a chart, whose plot reaches from `left` to `right`.
pub fn axis_left(scale: &Scale, left: f64, right: f64, label: impl Fn(f64) -> String) -> Element {
    let mut group = element("g");
    for tick in scale.ticks() {
        let y = scale.at(tick.value);
        group = group.child(line((left, y), (right, y), if tick.labelled { "grid" } else { "grid faint" }));
        if tick.labelled {
            group = group.child(text(left - 7.0, y + 4.0, "end", units::round(label(tick.value))));
        }
    }
    group
}

/// The next of 1, 2, 5, 10, ... at or above a value.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| value <= f * decade * (1.0 + 1e-9));
    factor.unwrap_or(10.0) * decade
}

/// The next of 1, 2, 5, 10, ... at or below a value.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|f| value >= f * decade * (1.0 - 1e-9));
    factor.unwrap_or(1.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_and_nothing_of_it_is_lost() {
        let lines = wrap("fetch-and-decode waits, all of them", 80.0, TEXT);
        assert!(lines.len() > 2, "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "fetch-and-decodewaits,allofthem");
        assert!(lines.iter().all(|line| width_of(line, TEXT) <= 80.0), "{lines:?}");
        assert_eq!(wrap("unbreakable", 10.0, TEXT), ["unbreakable"]);
        assert!(wrap("", 10.0, TEXT).is_empty());
    }

    #[test]
    fn round_values_of_an_axis_are_written_before_others() {
        let all = [1.0, 2.5, 5.0, 7.5, 10.0, 50.0];
        let ticks = all.map(|value| Tick { value, labelled: true, first: value == 1.0 || value == 50.0 });
        let scale = Scale::logarithmic(all, 0.0, 160.0).unwrap();
        let mut out = String::new();
        axis_below_at(&scale, ticks.into(), 0.0, 1.0, units::digits).write(&mut out);
        assert!(
            out.contains(">10</text>") && out.contains(">5</text>") && !out.contains(">7.5</text>"),
            "{out}"
        );
        assert_eq!([10.0, 100.0, 2.5, 7.0, 1_024.0].map(figures), [0, 0, 2, 1, 4]);
    }

    #[test]
    fn an_axis_between_two_values_has_round_ends_and_ticks_within() {
        let scale = Scale::between(0.96, 1.0, 0.0, 100.0);
        let (low, high) = scale.span();
        assert!(low <= 0.96 && high >= 1.0 && low > 0.9, "{low} {high}");
        assert!(scale.ticks().iter().all(|tick| (low..=high + 1e-9).contains(&tick.value)));
        assert!(scale.ticks().len() >= 4);
    }
}
