//! The plots over time: latencies, and the packets of each interval.

use super::super::figures::{Latency, TimePoint};
use super::draw::{
    Scale, TEXT, WIDTH, axis_below, axis_left, coloured, line, nothing, rect, svg, text, width_of,
};
use super::element::{Element, element};
use super::side::Side;
use super::units::{self, usable};

/// Columns of a chart: more would be narrower than a line.
const COLUMNS_MAX: usize = 90;

const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 14.0;

/// A column of the histogram.
pub struct Bin {
    /// Its shortest time, in seconds.
    pub low: f64,
    /// Its longest time, in seconds.
    pub high: f64,
    /// Packets in it.
    pub count: u64,
}

/// The histogram with empty ends cut off, and coarser where it is too fine to draw.
pub fn bins(latency: &Latency) -> Vec<Bin> {
    let mut bounds: Vec<(f64, u64)> = latency.histogram.iter().copied().filter(|b| usable(b.0)).collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ratio = match bounds.as_slice() {
        [first, second, ..] => (second.0 / first.0).clamp(1.02, 2.0),
        _ => 1.25,
    };
    let mut low = bounds.first().map_or(0.0, |first| first.0 / ratio);
    let mut bins: Vec<Bin> = Vec::new();
    for (high, count) in bounds {
        match bins.last_mut() {
            Some(last) if high <= low => last.count = last.count.saturating_add(count),
            _ => bins.push(Bin { low, high, count }),
        }
        low = high;
    }
    let first = bins.iter().position(|bin| bin.count > 0).unwrap_or(bins.len());
    let last = bins.iter().rposition(|bin| bin.count > 0).map_or(first, |last| last + 1);
    coarser(bins.drain(first..last).collect())
}

fn coarser(bins: Vec<Bin>) -> Vec<Bin> {
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return bins };
    if bins.len() <= COLUMNS_MAX {
        return bins;
    }
    let columns = COLUMNS_MAX / 2;
    let (low, step) = (first.low, (last.high / first.low).ln() / columns as f64);
    let edge = |i: usize| low * (step * i as f64).exp();
    let mut wide: Vec<Bin> =
        (0..columns).map(|i| Bin { low: edge(i), high: edge(i + 1), count: 0 }).collect();
    for bin in bins {
        let place = ((bin.low * bin.high).sqrt() / low).ln() / step;
        let bin_wide = &mut wide[(place as usize).min(columns - 1)];
        bin_wide.count = bin_wide.count.saturating_add(bin.count);
    }
    wide
}

/// The four percentiles, by name.
pub fn percentiles(latency: &Latency) -> [(&'static str, f64); 4] {
    [("p50", latency.p50_s), ("p90", latency.p90_s), ("p99", latency.p99_s), ("p99.9", latency.p999_s)]
}

/// The latencies on a logarithmic axis, with the percentiles marked.
pub fn latency(latency: &Latency) -> Element {
    const TOP: f64 = 96.0;
    const BOTTOM: f64 = 296.0;
    let chart = svg(WIDTH, 338.0, "Histogram of latencies");
    let bins = bins(latency);
    let marked = percentiles(latency).into_iter().filter(|p| usable(p.1));
    let spanned = bins.iter().flat_map(|bin| [bin.low, bin.high]).chain(marked.clone().map(|p| p.1));
    let Some(x) = Scale::logarithmic(spanned, LEFT, RIGHT) else {
        return nothing("no latencies were measured");
    };
    let y = Scale::counts(bins.iter().map(|bin| bin.count).max().unwrap_or(0) as f64, BOTTOM, TOP);
    let mut chart = chart.child(axis_left(&y, LEFT, RIGHT, units::short));
    chart = chart.child(axis_below(&x, TOP, BOTTOM, units::seconds));
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let (from, to) = (x.at(bin.low), x.at(bin.high));
        let top = y.at(bin.count as f64).min(BOTTOM - 1.0);
        let told = format!(
            "{} to {}: {} packets",
            units::seconds(bin.low),
            units::seconds(bin.high),
            units::count(bin.count)
        );
        chart = chart.child(rect(from, top, (to - from).max(1.0), BOTTOM - top, "neutral part").title(told));
    }
    // Labels after all lines, so that none is crossed by a later line.
    for (i, (_, value)) in marked.clone().enumerate() {
        chart = chart.child(line((x.at(value), percentile_line(i) - 11.0), (x.at(value), BOTTOM), "limit"));
    }
    for (i, (name, value)) in marked.enumerate() {
        chart = chart.child(percentile(name, value, x.at(value), percentile_line(i)));
    }
    let label = "time from admission in gateway A to release in gateway B";
    chart.child(text((LEFT + RIGHT) / 2.0, BOTTOM + 36.0, "middle quiet", label)).child(text(
        2.0,
        TOP - 12.0,
        "quiet",
        "packets",
    ))
}

/// Each percentile's label has a line of its own, so that they never meet.
fn percentile_line(i: usize) -> f64 {
    18.0 + 20.0 * i as f64
}

fn percentile(name: &str, value: f64, x: f64, y: f64) -> Element {
    let label = format!("{name}  {}", units::seconds(value));
    let left = x + 8.0 + width_of(&label, TEXT) > WIDTH;
    let (at, anchor) = if left { (x - 6.0, "end strong over") } else { (x + 6.0, "strong over") };
    text(at, y, anchor, label)
}

/// Some time of a run and the packets done in it.
pub struct Interval {
    /// When it began, in seconds from the run's start.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// Packets by processor.
    pub packets: Vec<u64>,
}

impl Interval {
    /// Packets of all processors.
    pub fn total(&self) -> f64 {
        self.packets.iter().map(|p| *p as f64).sum()
    }
}

/// A gateway's intervals, joined where they are too many to draw.
pub fn intervals(side: &Side<'_>) -> Vec<Interval> {
    let points: Vec<&TimePoint> = side.figures.timeline.iter().filter(|p| usable(p.t_s)).collect();
    let stride = points.len().div_ceil(COLUMNS_MAX).max(1);
    let mut intervals: Vec<Interval> = Vec::new();
    for joined in points.chunks(stride) {
        let start = intervals.last().map_or(0.0, |last| last.end);
        let end = joined.iter().map(|p| p.t_s).fold(start, f64::max);
        let mut packets = vec![0u64; side.figures.processors.len()];
        for point in joined {
            packets.iter_mut().zip(&point.packets).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
        intervals.push(Interval { start, end, packets });
    }
    intervals
}

/// The usual length of the intervals.
pub fn interval_length(intervals: &[Interval]) -> f64 {
    let mut lengths: Vec<f64> = intervals.iter().map(|i| i.end - i.start).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(0.0)
}

/// The packets of each interval, stacked by processor; `until` and `most` over both gateways.
pub fn timeline(side: &Side<'_>, until: f64, most: f64) -> Element {
    const TOP: f64 = 30.0;
    const BOTTOM: f64 = 206.0;
    let chart = svg(WIDTH, 248.0, &format!("Packets over time by processor, {}", side.name));
    let intervals = intervals(side);
    if intervals.is_empty() {
        return nothing("no intervals were recorded");
    }
    let (x, y) = (Scale::exact(until, LEFT, RIGHT), Scale::counts(most, BOTTOM, TOP));
    let mut chart = chart.child(axis_left(&y, LEFT, RIGHT, units::short));
    for interval in &intervals {
        chart = chart.child(column(side, interval, &x, &y));
    }
    let label = format!("packets per {}", units::seconds(interval_length(&intervals)));
    chart
        .child(axis_below(&x, BOTTOM, BOTTOM + 4.0, units::seconds))
        .child(text(2.0, TOP - 14.0, "quiet", label))
        .child(text((LEFT + RIGHT) / 2.0, BOTTOM + 38.0, "middle quiet", "time from the start of the run"))
}

fn column(side: &Side<'_>, interval: &Interval, x: &Scale, y: &Scale) -> Element {
    let mut group = element("g");
    let (from, to) = (x.at(interval.start), x.at(interval.end));
    let mut done = 0.0;
    for ((slot, processor), count) in side.processors().zip(&interval.packets).filter(|(_, c)| **c > 0) {
        let (low, high) = (y.at(done), y.at(done + *count as f64));
        let told = format!(
            "{}, {} to {}: {} of {} packets",
            processor.name,
            units::seconds(interval.start),
            units::seconds(interval.end),
            units::count(*count),
            units::short(interval.total())
        );
        // A hair's gap between columns, unless they are as thin as that themselves.
        let width = if to - from > 4.0 { to - from - 1.0 } else { (to - from).max(0.5) };
        group = group.child(rect(from, high, width, low - high, &coloured("fill mark", slot)).title(told));
        done += *count as f64;
    }
    group
}
