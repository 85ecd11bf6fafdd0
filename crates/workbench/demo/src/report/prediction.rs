//! The plots of what the scheduler predicted against what came.

use super::charts::{ROW, names_width, row_name};
use super::draw::{Scale, WIDTH, axis_below, axis_left, coloured, line, mark, nothing, svg, text};
use super::element::{Element, Path, element};
use super::side::Side;
use super::units::{self, usable};

/// Marks drawn of each processor: more only cover each other and swell the page.
const SAMPLES_MAX: usize = 400;

/// The span of all responses, predicted and actual, of both gateways: one scale makes them comparable.
pub fn responses(sides: &[Side<'_>]) -> Option<Scale> {
    let samples = sides.iter().flat_map(Side::processors).flat_map(|(_, p)| &p.samples);
    Scale::logarithmic(samples.filter(|s| usable(s.0) && usable(s.1)).flat_map(|s| [s.0, s.1]), 0.0, 1.0)
}

/// Predicted against actual response of a gateway's sampled jobs.
pub fn scatter(side: &Side<'_>, scale: Option<Scale>) -> Element {
    const LEFT: f64 = 66.0;
    const TOP: f64 = 28.0;
    const BOTTOM: f64 = 408.0;
    const RIGHT: f64 = WIDTH - 14.0;
    let chart = svg(WIDTH, 452.0, &format!("Predicted against actual response, {}", side.name));
    let Some(scale) = scale else {
        return nothing("no jobs were sampled");
    };
    let (x, y) = (scale.along(LEFT, RIGHT), scale.along(BOTTOM, TOP));
    let chart = chart.child(axis_left(&y, LEFT, RIGHT, units::seconds));
    let chart = chart.child(axis_below(&x, TOP, BOTTOM, units::seconds)).child(guides(&x, &y));
    let chart = chart.child(marks(side, &x, &y));
    let chart = chart.child(text(RIGHT, BOTTOM + 37.0, "end quiet", "predicted response \u{2192}"));
    chart.child(text(2.0, TOP - 13.0, "quiet", "actual response \u{2191}"))
}

/// Where the answer took as long as predicted, twice as long, and half as long.
fn guides(x: &Scale, y: &Scale) -> Element {
    let (low, high) = x.span();
    let equal = line((x.at(low), y.at(low)), (x.at(high), y.at(high)), "guide");
    let band = Path::default().to('M', &[x.at(low), y.at(low)]).to('L', &[x.at(low), y.at(low * 2.0)]);
    let band = band.to('L', &[x.at(high / 2.0), y.at(high)]).to('L', &[x.at(high), y.at(high)]);
    let band =
        band.to('L', &[x.at(high), y.at(high / 2.0)]).to('L', &[x.at(low * 2.0), y.at(low)]).to('Z', &[]);
    element("g").child(band.element().class("band")).child(equal)
}

fn marks(side: &Side<'_>, x: &Scale, y: &Scale) -> Element {
    let mut group = element("g");
    for (slot, processor) in side.processors() {
        let stride = processor.samples.len().div_ceil(SAMPLES_MAX).max(1);
        let samples = processor.samples.iter().step_by(stride);
        for (predicted, actual) in samples.filter(|s| usable(s.0) && usable(s.1)) {
            let told = format!(
                "{}: predicted {}, took {} ({})",
                processor.name,
                units::seconds(*predicted),
                units::seconds(*actual),
                units::ratio(*actual, *predicted)
            );
            group =
                group.child(mark(slot, x.at(*predicted), y.at(*actual), 3.0, "fill dot mark").title(told));
        }
    }
    group
}

/// The span of all mean service times of both gateways.
pub fn services(sides: &[Side<'_>]) -> Option<Scale> {
    let processors = sides.iter().flat_map(Side::processors);
    Scale::logarithmic(processors.flat_map(|(_, p)| [p.predicted_service_s, p.actual_service_s]), 0.0, 1.0)
}

/// Predicted and actual mean service time of each processor.
pub fn service(side: &Side<'_>, scale: Option<Scale>) -> Element {
    let bottom = 6.0 + ROW * side.figures.processors.len().max(1) as f64;
    let chart = svg(WIDTH, bottom + 46.0, &format!("Predicted and actual service time, {}", side.name));
    let Some(scale) = scale else {
        return nothing("no service was measured");
    };
    let names = names_width(side);
    let scale = scale.along(names, WIDTH - 78.0);
    let mut chart = chart.child(axis_below(&scale, 4.0, bottom, units::seconds));
    for (i, (slot, p)) in side.processors().enumerate() {
        let y = 6.0 + ROW * i as f64;
        let ratio = units::ratio(p.actual_service_s, p.predicted_service_s);
        chart = chart.child(row_name(slot, &p.name, names, y));
        chart = chart.child(pair(&scale, y + ROW / 2.0, slot, (p.predicted_service_s, p.actual_service_s)));
        chart = chart.child(text(WIDTH - 4.0, y + ROW / 2.0 + 4.5, "end strong", ratio));
    }
    chart = chart.child(text(
        (names + WIDTH - 78.0) / 2.0,
        bottom + 38.0,
        "middle quiet",
        "mean service time of a job",
    ));
    chart.child(text(WIDTH - 4.0, bottom + 38.0, "end quiet", "actual / pred."))
}

/// A bar for the prediction, a mark for what was measured.
fn pair(scale: &Scale, y: f64, slot: usize, (predicted, actual): (f64, f64)) -> Element {
    let mut group = element("g");
    if usable(predicted) && usable(actual) {
        group = group.child(line((scale.at(predicted), y), (scale.at(actual), y), &coloured("stem", slot)));
    }
    if usable(predicted) {
        let x = scale.at(predicted);
        let told = format!("predicted {}", units::seconds(predicted));
        group =
            group.child(line((x, y - 11.0), (x, y + 11.0), &coloured("stem thick mark", slot)).title(told));
    }
    if usable(actual) {
        let told = format!("actual {}", units::seconds(actual));
        group = group.child(mark(slot, scale.at(actual), y, 5.0, "fill part mark").title(told));
    }
    group
}
