//! What a plot shows, in plain language, said from the figures.

use super::super::figures::{DemoFigures, Latency, ProcessorFigures};
use super::side::Side;
use super::time;
use super::units::{self, usable};

/// The size classes in words.
const LENGTHS: [&str; 6] =
    ["up to 64", "65 to 128", "129 to 256", "257 to 512", "513 to 1,024", "more than 1,024"];

/// Whether every packet came out once, as it went in, and in order.
pub fn is_clean(figures: &DemoFigures) -> bool {
    let c = &figures.comparison;
    let spoiled = [c.different, c.missing, c.out_of_order, c.duplicated];
    c.sent > 0 && c.identical == c.sent && spoiled == [0; 4]
}

/// `7,312 of 7,312 packets identical`.
pub fn verdict(figures: &DemoFigures) -> String {
    let sent = figures.comparison.sent;
    let noun = if sent == 1 { "packet" } else { "packets" };
    format!("{} of {} {noun} identical", units::count(figures.comparison.identical), units::count(sent))
}

/// What the comparison found beside the identical packets.
pub fn faults(figures: &DemoFigures) -> String {
    let comparison = &figures.comparison;
    let found = [
        (comparison.different, "different"),
        (comparison.missing, "missing"),
        (comparison.out_of_order, "out of order"),
        (comparison.duplicated, "duplicated"),
    ];
    let found: Vec<String> =
        found.iter().filter(|f| f.0 > 0).map(|f| format!("{} {}", units::count(f.0), f.1)).collect();
    match found.as_slice() {
        [] if comparison.sent == 0 => "no packets were sent".to_owned(),
        [] => "none different, missing, out of order or duplicated".to_owned(),
        found => list(found),
    }
}

/// The share of each processor.
pub fn shares(side: &Side<'_>) -> String {
    let total = side.packets();
    let working = working(side);
    let (Some(most), Some(longest)) =
        (largest(&working, |p| p.packets as f64), largest(&working, |p| p.bytes as f64))
    else {
        return format!("{} did no packets.", side.name);
    };
    let packets = |p: &ProcessorFigures| units::percent(units::share(p.packets as f64, total));
    let bytes = |p: &ProcessorFigures| units::percent(units::share(p.bytes as f64, side.bytes()));
    let mut said = match working.len() {
        1 => format!("In {} all packets were done by {}.", side.name, most.name),
        _ if std::ptr::eq(most, longest) => format!(
            "In {} the largest part fell to {}: {} of the packets and {} of the bytes.",
            side.name,
            most.name,
            packets(most),
            bytes(most)
        ),
        _ => format!(
            "In {} most packets fell to {} ({}), most bytes to {} ({}, in {} of the packets).",
            side.name,
            most.name,
            packets(most),
            longest.name,
            bytes(longest),
            packets(longest)
        ),
    };
    let idle: Vec<&str> =
        side.figures.processors.iter().filter(|p| p.packets == 0).map(|p| p.name.as_str()).collect();
    if !idle.is_empty() {
        said += &format!(" {} got none.", list(&idle));
    }
    said
}

/// The processors that took the small packets and the large ones.
pub fn sizes(side: &Side<'_>) -> String {
    let working: Vec<_> = working(side).into_iter().filter(|p| usable(p.mean_size)).collect();
    let (Some(small), Some(large)) =
        (largest(&working, |p| -p.mean_size), largest(&working, |p| p.mean_size))
    else {
        return format!("{} has no packet lengths to show.", side.name);
    };
    let [short, long] = [small, large].map(|p| units::length(p.mean_size));
    let mut said = match working.len() {
        1 => {
            return format!(
                "{}'s packets, all done by {}, were {short} long on average.",
                side.name, small.name
            );
        }
        _ if large.mean_size < 1.25 * small.mean_size => {
            format!(
                "In {} all processors got packets of about the same length ({short} to {long} on average).",
                side.name
            )
        }
        _ => format!(
            "In {} {} was given the smallest packets, {short} on average, and {} the largest, {long}.",
            side.name, small.name, large.name
        ),
    };
    let class = (0..LENGTHS.len()).find(|class| working.iter().any(|p| p.sizes[*class] > 0));
    if let Some((class, taker)) = class.and_then(|c| Some((c, largest(&working, |p| p.sizes[c] as f64)?))) {
        let total = working.iter().map(|p| p.sizes[class] as f64).sum();
        let share = units::percent(units::share(taker.sizes[class] as f64, total));
        said += &format!(" Of the packets of {} bytes, {share} went to {}.", LENGTHS[class], taker.name);
    }
    said
}

/// How near the predictions came.
pub fn predictions(side: &Side<'_>) -> String {
    let samples = side.figures.processors.iter().flat_map(|p| &p.samples);
    let mut ratios: Vec<f64> =
        samples.filter(|s| usable(s.0) && usable(s.1)).map(|s| s.1 / s.0).filter(|r| usable(*r)).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(middle) = ratios.get(ratios.len() / 2) else {
        return format!("{} recorded no predictions to compare.", side.name);
    };
    let near = ratios.iter().filter(|r| (0.5..=2.0).contains(*r)).count();
    let mut said = format!(
        "In {} {} of {} were answered within a factor of two of the prediction; the median job took {} \
         times as long as predicted.",
        side.name,
        units::percent(near as f64 / ratios.len() as f64),
        units::counted(ratios.len() as u64, "sampled job", "sampled jobs"),
        units::digits(*middle)
    );
    let off = |p: &ProcessorFigures| (p.actual_service_s / p.predicted_service_s).ln().abs();
    let measured: Vec<&ProcessorFigures> = working(side).into_iter().filter(|p| off(p).is_finite()).collect();
    if let Some(worst) = largest(&measured, off) {
        let ratio = worst.actual_service_s / worst.predicted_service_s;
        said += &match off(worst) < 0.1 {
            true => {
                " The mean service time of every processor lies within a tenth of its prediction.".to_owned()
            }
            false => format!(
                " Its mean service time was furthest off for {}: {} times the prediction.",
                worst.name,
                units::digits(ratio)
            ),
        };
    }
    said
}

/// How long packets took.
pub fn latency(latency: &Latency) -> String {
    if !usable(latency.p50_s) {
        return "No latency was measured in this run.".to_owned();
    }
    let mut said = format!(
        "Half of the packets were through both gateways within {}, from admission in A to release in B.",
        units::seconds(latency.p50_s)
    );
    if usable(latency.p99_s) {
        let times = latency.p99_s / latency.p50_s;
        said += &format!(" One in a hundred took longer than {}", units::seconds(latency.p99_s));
        said += &format!(", {} times the median", units::digits(times));
        said += &match usable(latency.p999_s) {
            true => format!(", and one in a thousand longer than {}.", units::seconds(latency.p999_s)),
            false => ".".to_owned(),
        };
    }
    if latency.histogram.iter().any(|bin| !usable(bin.0) && bin.1 > 0) {
        said += " Packets beyond the histogram's bounds are not drawn.";
    }
    said
}

/// When there was most to do.
pub fn timeline(side: &Side<'_>) -> String {
    let intervals = time::intervals(side);
    let busy = intervals.iter().filter(|i| i.total() > 0.0).count();
    let Some(peak) =
        intervals.iter().filter(|i| i.total() > 0.0).max_by(|a, b| a.total().total_cmp(&b.total()))
    else {
        return format!("{} did no packets in any interval.", side.name);
    };
    format!(
        "{} was at its busiest between {} and {}, with {} packets; it did packets in {} of {}.",
        side.name,
        units::seconds(peak.start),
        units::seconds(peak.end),
        units::short(peak.total()),
        busy,
        units::counted(intervals.len() as u64, "interval", "intervals")
    )
}

/// The utilization of the processors.
pub fn load(side: &Side<'_>) -> String {
    let loads: Vec<&ProcessorFigures> =
        side.figures.processors.iter().filter(|p| p.load.is_finite()).collect();
    let (Some(most), Some(least)) = (largest(&loads, |p| p.load), largest(&loads, |p| -p.load)) else {
        return format!("{} has no loads to show.", side.name);
    };
    let mut said = match loads.len() {
        1 => format!("In {} {} worked {} of the time.", side.name, most.name, units::percent(most.load)),
        _ => format!(
            "In {} {} was the busiest, at {}, and {} the least busy, at {}.",
            side.name,
            most.name,
            units::percent(most.load),
            least.name,
            units::percent(least.load)
        ),
    };
    said += match most.load {
        l if l > 1.005 => " A load above 100\u{a0}% means that jobs overlapped in time on one processor.",
        l if l >= 0.9 => " A processor so near 100\u{a0}% sets the pace of the run.",
        l if l < 0.7 => {
            " No processor worked nearly all the time: something beside the ciphers set the pace of the run."
        }
        _ => "",
    };
    said
}

fn working<'a>(side: &Side<'a>) -> Vec<&'a ProcessorFigures> {
    side.figures.processors.iter().filter(|p| p.packets > 0).collect()
}

fn largest<'a>(
    processors: &[&'a ProcessorFigures],
    by: impl Fn(&ProcessorFigures) -> f64,
) -> Option<&'a ProcessorFigures> {
    processors.iter().copied().max_by(|a, b| by(a).total_cmp(&by(b)))
}

/// `a`, `a and b`, `a, b and c`.
/// `one, two and three`.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
