//! A plot as SVG.

use super::{Plot, Series, Xs};
use crate::draw::{
    Scale, TEXT, Tick, WIDTH, axis_below, axis_below_at, axis_left, coloured, line, mark, rect, svg, text,
    width_of, wrap,
};
use crate::element::{Element, Path, element};
use crate::units;

const RIGHT: f64 = WIDTH - 12.0;
/// Height of the plot itself, without titles and labels.
const TALL: f64 = 236.0;
/// Distance of the lines of a text.
const LINE: f64 = 16.0;

/// Lines of more points have no marks, which would hide them.
const MARKED_MAX: usize = 40;

/// An axis of at most so many different values has its ticks at them and nowhere else.
const PLACES_MAX: usize = 12;

/// Dashes by slot, as in plot.js: lines that lie upon each other are told apart.
const DASHES: [&str; 8] = ["", "7 3", "2 3", "9 3 2 3", "5 2", "1 3", "12 4", "4 4 1 4"];

/// Where the plot lies in the drawing.
struct Frame {
    left: f64,
    top: f64,
    bottom: f64,
}

/// Size of the text of values above bars; parts.css says the same.
const VALUE: f64 = 12.0;

/// How high and how wide slanted text is, of its length.
const SLANT: f64 = 0.71;

/// Names below bars: in lines where they fit, else slanted.
enum Names {
    Lines(Vec<Vec<String>>),
    Slanted(f64),
}

impl Plot {
    /// The drawing, if there are values.
    pub(super) fn draw(&self) -> Option<Element> {
        let names = match &self.series.first()?.xs {
            Xs::Names(names) => Some(names),
            Xs::Numbers(_) => None,
        };
        let (y, from) = self.values_axis(names.is_some())?;
        let values: Vec<f64> = y.ticks().iter().map(|tick| tick.value).chain(from).collect();
        let words = units::ticks(&values);
        let said = |value: f64| {
            let at = values.iter().position(|one| *one == value);
            at.and_then(|at| words.get(at).cloned()).unwrap_or_else(|| units::digits(value))
        };
        let widest = words.iter().map(|words| width_of(words, TEXT)).fold(22.0, f64::max);
        let left = names.map_or(0.0, |names| Names::overhang(names)).max(widest + 12.0);
        let title = match from {
            Some(from) => format!("{} (the axis begins at {})", self.y, units::round(said(from))),
            None => self.y.clone(),
        };
        let titles = wrap(&title, WIDTH, TEXT);
        let top = 10.0 + LINE * titles.len() as f64;
        let frame = Frame { left, top, bottom: top + TALL };
        let y = y.along(frame.bottom, frame.top);
        let step = names.map_or(1.0, |names| (RIGHT - left) / names.len().max(1) as f64);
        let labels = names.map(|names| Names::of(names, step));
        let below = wrap(&self.x, RIGHT - left, TEXT);
        let foot = frame.bottom + labels.as_ref().map_or(LINE + 6.0, Names::height);
        let height = foot + LINE * below.len() as f64 + 4.0;
        let mut chart = svg(WIDTH, height, &format!("{}: {}", self.title, self.y));
        chart = chart.child(axis_left(&y, left, RIGHT, said));
        for (at, words) in titles.iter().enumerate() {
            chart = chart.child(text(0.0, 12.0 + LINE * at as f64, "quiet", words.as_str()));
        }
        for (at, words) in below.iter().enumerate() {
            let place = foot + LINE * (at as f64 + 0.8);
            chart = chart.child(text((left + RIGHT) / 2.0, place, "middle quiet", words.as_str()));
        }
        match (names, labels) {
            (Some(names), Some(labels)) => {
                let chart = labels.write(chart, names, &frame, step);
                Some(self.bars(chart, &y, names, &frame, step))
            }
            _ => self.lines(chart, &y, &frame),
        }
    }

    /// The axis of values, not yet laid anywhere; and where it begins if that is not at zero.
    fn values_axis(&self, named: bool) -> Option<(Scale, Option<f64>)> {
        let ends = |series: &Series| -> Vec<f64> {
            let ends = (0..series.spread.len()).filter_map(|at| series.ends(at));
            series.ys.iter().copied().chain(ends.flat_map(|(low, high)| [low, high])).collect()
        };
        let values: Vec<f64> = self.series.iter().flat_map(ends).filter(|y| y.is_finite()).collect();
        if self.log_y {
            return Some((Scale::logarithmic(values, 0.0, 1.0)?, None));
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        // Bars that are almost as long as each other would look the same from zero on.
        if named && low > 0.8 * high && low < high {
            let scale = Scale::between(low - (high - low), high, 0.0, 1.0);
            return Some((scale, Some(scale.span().0)));
        }
        match low < 0.0 {
            true => Some((Scale::between(low, high, 0.0, 1.0), None)),
            false => Some((Scale::linear(high, 0.0, 1.0), None)),
        }
    }

    fn lines(&self, chart: Element, y: &Scale, frame: &Frame) -> Option<Element> {
        let points = |series: &Series| -> Vec<(f64, f64)> {
            match &series.xs {
                Xs::Numbers(xs) => xs.iter().copied().zip(series.ys.iter().copied()).collect(),
                Xs::Names(_) => Vec::new(),
            }
        };
        let mut places: Vec<f64> = self.series.iter().flat_map(points).map(|(x, _)| x).collect();
        places.retain(|x| x.is_finite() && (!self.log_x || *x > 0.0));
        places.sort_by(f64::total_cmp);
        places.dedup();
        let few = places.len() <= PLACES_MAX;
        let (lowest, highest) = (places.first().copied()?, places.last().copied()?);
        let x = match self.log_x {
            true => Scale::logarithmic(places.iter().copied(), frame.left, RIGHT)?,
            // From zero, unless the values begin far from it.
            false if lowest > 0.25 * highest && lowest < highest => {
                let room = (highest - lowest) * 0.04;
                Scale::within(lowest - room, highest + room, frame.left, RIGHT)
            }
            false if few && lowest >= 0.0 => Scale::exact(highest, frame.left, RIGHT),
            false if lowest < 0.0 => Scale::between(lowest, highest, frame.left, RIGHT),
            false => Scale::linear(highest, frame.left, RIGHT),
        };
        let axis = match few {
            true => axis_below_at(&x, ticks(&places), frame.top, frame.bottom, units::digits),
            false => axis_below(&x, frame.top, frame.bottom, units::digits),
        };
        let mut chart = chart.child(axis);
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
                let one = match series.printed {
                    true => self.printed(slot, place[0], place[1]),
                    false => mark(slot, place[0], place[1], 4.0, "fill point"),
                };
                marks.push(one.title(said));
            }
            if !series.printed {
                let curve = path.element().class(coloured("curve", slot));
                group = group.child(curve.at("stroke-dasharray", DASHES[slot % DASHES.len()]));
            }
            let marked = series.printed || marks.len() <= MARKED_MAX;
            chart = chart.child(if marked { group.children(marks) } else { group });
        }
        Some(chart)
    }

    fn bars(&self, chart: Element, y: &Scale, names: &[String], frame: &Frame, step: f64) -> Element {
        let own: Vec<usize> = (0..self.series.len()).filter(|slot| !self.series[*slot].printed).collect();
        let width = step * 0.8 / own.len().max(1) as f64;
        // The left edge of the bar of a series, and its middle.
        let edge =
            |number: usize, order: usize| frame.left + step * (number as f64 + 0.1) + width * order as f64;
        // Values stand above the bars if there is room for all of them.
        let fits = |value: &f64| units::shown(*value).chars().count() as f64 * VALUE * 0.56 + 1.5 <= width;
        let values = own.iter().flat_map(|slot| &self.series[*slot].ys).filter(|value| value.is_finite());
        let is_said =
            own.iter().all(|slot| self.series[*slot].spread.is_empty()) && values.into_iter().all(fits);
        // Where the marks of printed values stand: in the middle of the bars that they are for.
        let places = |series: &Series| -> Vec<(String, f64, f64)> {
            let Xs::Names(places) = &series.xs else { return Vec::new() };
            let orders = series.of.iter().filter_map(|of| own.iter().position(|slot| slot == of));
            let orders: Vec<f64> = orders.map(|order| width * (order as f64 + 0.47)).collect();
            let within = match orders.len() {
                0 => step * 0.4,
                count => orders.iter().sum::<f64>() / count as f64,
            };
            let place = |(place, value): (&String, &f64)| {
                let number = names.iter().position(|name| name == place)?;
                value.is_finite().then(|| (place.clone(), edge(number, 0) + within, *value))
            };
            places.iter().zip(&series.ys).filter_map(place).collect()
        };
        let printed = self.series.iter().filter(|series| series.printed).flat_map(places);
        let marks: Vec<(f64, f64)> = printed.map(|(_, x, value)| (x, y.at(value))).collect();
        let mut chart = chart;
        for (order, slot) in own.iter().enumerate() {
            let series = &self.series[*slot];
            let mut group = element("g").class(coloured("series", *slot));
            for (number, (value, name)) in series.ys.iter().zip(names).enumerate() {
                if !value.is_finite() {
                    continue;
                }
                let (x, top) = (edge(number, order), y.at(*value));
                let bar = rect(x, top, width * 0.94, frame.bottom - top, &coloured("fill point", *slot));
                group = group.child(bar.title(format!("{}, {name}: {}", series.name, units::digits(*value))));
                let middle = x + width * 0.47;
                if let Some((low, high)) = series.ends(number) {
                    group = group.child(line((middle, y.at(low)), (middle, y.at(high)), "whisker"));
                }
                if is_said {
                    let over = marks.iter().filter(|(x, at)| {
                        (x - middle).abs() < width / 2.0 && (top - 22.0..top + 6.0).contains(at)
                    });
                    let above = over.map(|(_, at)| at - 5.0).fold(top, f64::min);
                    group = group.child(text(middle, above - 4.0, "middle value", units::shown(*value)));
                }
            }
            chart = chart.child(group);
        }
        for (slot, series) in self.series.iter().enumerate().filter(|(_, series)| series.printed) {
            let mut group = element("g").class(coloured("series", slot));
            for (place, x, value) in places(series) {
                let title = format!("{}, {place}: {}", series.name, units::digits(value));
                group = group.child(self.printed(slot, x, y.at(value)).title(title));
            }
            chart = chart.child(group);
        }
        chart.child(line((frame.left, frame.bottom), (RIGHT, frame.bottom), "axis"))
    }
}

impl Names {
    /// As they fit into `step` each.
    fn of(names: &[String], step: f64) -> Names {
        let lines: Vec<Vec<String>> = names.iter().map(|name| wrap(name, step - 4.0, TEXT)).collect();
        let widest = lines.iter().flatten().map(|line| width_of(line, TEXT)).fold(0.0, f64::max);
        match widest <= step && lines.iter().all(|lines| lines.len() <= 3) {
            true => Names::Lines(lines),
            false => Names::Slanted(names.iter().map(|name| width_of(name, TEXT)).fold(0.0, f64::max)),
        }
    }

    /// The room at the left that slanted names need, of which each ends below the middle of its bars.
    fn overhang(names: &[String]) -> f64 {
        let count = names.len() as f64;
        let room = |(number, name): (usize, &String)| {
            let share = (number as f64 + 0.5) / count;
            (SLANT * (width_of(name, TEXT) + TEXT) - RIGHT * share) / (1.0 - share)
        };
        match Names::of(names, (RIGHT - 34.0) / count) {
            Names::Slanted(_) => names.iter().enumerate().map(room).fold(0.0, f64::max),
            Names::Lines(_) => 0.0,
        }
    }

    /// The room that they take.
    fn height(&self) -> f64 {
        match self {
            Names::Lines(lines) => 6.0 + LINE * lines.iter().map(Vec::len).max().unwrap_or(1) as f64,
            Names::Slanted(widest) => 14.0 + SLANT * widest,
        }
    }

    fn write(&self, chart: Element, names: &[String], frame: &Frame, step: f64) -> Element {
        let mut chart = chart;
        for (number, name) in names.iter().enumerate() {
            let x = frame.left + step * (number as f64 + 0.5);
            match self {
                Names::Lines(lines) => {
                    for (at, words) in lines[number].iter().enumerate() {
                        let y = frame.bottom + 1.0 + LINE * (at as f64 + 1.0);
                        chart = chart.child(text(x, y, "middle", words.as_str()));
                    }
                }
                Names::Slanted(_) => {
                    let y = frame.bottom + 14.0;
                    let turn =
                        format!("rotate(-45 {} {})", crate::element::number(x), crate::element::number(y));
                    chart = chart.child(text(x, y, "end", name.as_str()).at("transform", turn));
                }
            }
        }
        chart
    }
}

/// Ticks at values; the ends are written before others.
fn ticks(places: &[f64]) -> Vec<Tick> {
    let end = |at: usize| at == 0 || at + 1 == places.len();
    places.iter().enumerate().map(|(at, &value)| Tick { value, labelled: true, first: end(at) }).collect()
}

impl Plot {
    /// The mark of a printed value of a series: hollow, in the colour of the series that it belongs to; else in that of text,
    /// and of another shape for each of those.
    pub(super) fn printed(&self, slot: usize, x: f64, y: f64) -> Element {
        let alone = |series: &&Series| series.printed && series.of.len() != 1;
        let (shape, class) = match self.series[slot].of[..] {
            [of] => (0, coloured("printed", of)),
            _ => (self.series[..slot].iter().filter(alone).count(), "printed alone".to_owned()),
        };
        let mut path = Path::default();
        for (at, (dx, dy)) in PRINTED[shape % PRINTED.len()].iter().enumerate() {
            path = path.to(if at == 0 { 'M' } else { 'L' }, &[x + dx, y + dy]);
        }
        path.to('Z', &[]).element().class(class)
    }
}

/// Shapes of printed values, as in plot.js: diamond, square, triangles.
const PRINTED: [&[(f64, f64)]; 4] = [
    &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
    &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
    &[(0.0, -5.0), (5.0, 4.5), (-5.0, 4.5)],
    &[(0.0, 5.0), (5.0, -4.5), (-5.0, -4.5)],
];

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
