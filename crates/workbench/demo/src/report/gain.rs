//! What the page opens with: throughput over the core alone, over fixed splits, and by finish time.

use super::super::figures::{Gain, GainRun};
use super::draw::{
    Scale, TEXT, WIDTH, axis_below, axis_left, colour, coloured, fit, line, mark, nothing, rect, svg, text,
    width_of,
};
use super::element::{Element, Path, element};
use super::side::swatch;
use super::{units, words};
use forebay_page::document::caption;

/// With more of the machine in other hands the figures say little.
const BUSY: f64 = 0.05;
/// Differences below this are none.
const EQUAL: f64 = 0.02;

/// The page's own header, if anything was compared.
pub fn header(gains: &[Gain]) -> Option<Element> {
    let first = gains.first()?;
    let intro = format!(
        "Packets as long as those of the capture, in its order, of one SA, in memory, offered to {} as fast as they are \
         taken. The packets left in strict order each time. {}",
        words::list(&first.processors),
        remarks(gains)
    );
    let header = element("header")
        .child(element("p").class("name").text("Forebay demo run"))
        .child(element("h1").text(verdict(gains)))
        .child(element("p").class("intro").text(intro));
    Some(header)
}

/// `On one SA in strict order, core and worker carry 1.9 times the packets of the core alone with aes128gcm16`.
pub fn verdict(gains: &[Gain]) -> String {
    let Some(first) = gains.first() else { return "Nothing was compared".to_owned() };
    let told = gains.iter().filter_map(|gain| {
        let ours = gain.runs.last()?;
        Some(format!("{} with {}", units::digits(ours.of_core_alone), gain.proposal))
    });
    let told: Vec<String> = told.collect();
    format!(
        "One SA in strict order: {} carry so many times the packets of the core alone: {}",
        words::list(&first.processors),
        words::list(&told)
    )
}

/// How well that is known, and how it compares with the best fixed split.
pub fn remarks(gains: &[Gain]) -> String {
    let mut told: Vec<String> = gains.iter().filter_map(remark).collect();
    let others = gains.iter().map(|gain| gain.others).fold(0.0, f64::max);
    if others > BUSY {
        told.push(format!(
            "Other programs used {} of the machine meanwhile, so that these figures are not those of a quiet machine.",
            units::percent_short(others)
        ));
    }
    told.join(" ")
}

fn remark(gain: &Gain) -> Option<String> {
    let (ours, split) = (gain.runs.last()?, gain.runs.iter().find(|run| run.name == "best fixed split")?);
    let ratio = ours.of_core_alone / split.of_core_alone;
    let beside = match ratio {
        ratio if ratio > 1.0 + EQUAL => {
            format!("{} times the best fixed split that a search found", units::digits(ratio))
        }
        ratio if ratio >= 1.0 - EQUAL => "the same as the best fixed split that a search found".to_owned(),
        ratio if ratio.is_finite() => {
            format!(
                "and the best fixed split that a search found has {} times that",
                units::digits(1.0 / ratio)
            )
        }
        _ => return None,
    };
    Some(format!(
        "{}: {} \u{b1} {} (95 %, {}), {beside}.",
        gain.proposal,
        units::digits(ours.of_core_alone),
        units::digits(ours.half_width),
        units::counted(gain.rounds, "round", "rounds"),
    ))
}

/// Plots and table.
pub fn section(gain: &Gain) -> Element {
    let legend = gain
        .processors
        .iter()
        .enumerate()
        .map(|(slot, name)| element("li").class(colour(slot)).child(swatch(slot)).text(name.as_str()));
    let figure = |title: &str, plot: Element| {
        element("figure").child(element("figcaption").child(element("b").text(title))).child(plot)
    };
    let how = "The bars show the throughput of plain packets, their colours which processor did how many of them. The \
               marks are fixed splits, which always give the other processors the same share of the packets. The best \
               share depends on suite, packets and machine, and has to be searched for; finish time needs no \
               setting.";
    element("section")
        .class("gain")
        .child(element("h2").text(gain.proposal.as_str()))
        .child(element("ul").class("legend").children(legend))
        .child(
            element("div")
                .class("pair")
                .child(figure("Throughput", bars(gain)))
                .child(figure("Fixed splits and finish time", splits(gain))),
        )
        .child(element("p").class("how").text(how))
        .child(table(gain))
}

fn bars(gain: &Gain) -> Element {
    const LEFT: f64 = 138.0;
    const STEP: f64 = 52.0;
    const HEIGHT: f64 = 36.0;
    let most = gain.runs.iter().map(|run| run.throughput_bps).filter(|rate| units::usable(*rate));
    let most = most.fold(0.0, f64::max);
    if !units::usable(most) {
        return nothing("no throughput");
    }
    let bottom = 8.0 + STEP * gain.runs.len() as f64;
    let scale = Scale::exact(most, LEFT, WIDTH - 128.0);
    let mut chart = svg(WIDTH, bottom, "Throughput by way to place packets");
    for (number, run) in gain.runs.iter().enumerate() {
        let y = 4.0 + STEP * number as f64;
        let name = fit(&run.name, LEFT - 9.0, TEXT);
        chart = chart
            .child(text(LEFT - 9.0, y + 23.0, "end strong", name))
            .child(bar(gain, run, &scale, y, HEIGHT));
        let told = match number {
            0 => units::bits_per_second(run.throughput_bps),
            _ => {
                let rate = units::bits_per_second(run.throughput_bps);
                format!("{rate}, {}", units::ratio(run.of_core_alone, 1.0))
            }
        };
        chart = chart.child(text(scale.at(run.throughput_bps) + 8.0, y + 23.0, "", told));
    }
    chart
}

/// One bar, divided by who did the packets.
fn bar(gain: &Gain, run: &GainRun, scale: &Scale, y: f64, height: f64) -> Element {
    let mut bar = element("g");
    let mut done = 0.0;
    for (slot, (share, name)) in run.shares.iter().zip(&gain.processors).enumerate() {
        if !units::usable(*share) {
            continue;
        }
        let (from, to) = (scale.at(run.throughput_bps * done), scale.at(run.throughput_bps * (done + share)));
        let told = format!("{}, {name}: {} of the packets", run.name, units::percent(*share));
        bar = bar.child(rect(from, y, to - from, height, &coloured("fill part mark", slot)).title(told));
        let label = units::percent_short(*share);
        if width_of(&label, TEXT) + 4.0 < to - from {
            bar = bar.child(text((from + to) / 2.0, y + 23.0, &coloured("middle inside", slot), label));
        }
        done += share;
    }
    bar
}

fn splits(gain: &Gain) -> Element {
    const LEFT: f64 = 52.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 196.0;
    let right = WIDTH - 12.0;
    let points: Vec<(f64, f64)> = gain
        .splits
        .iter()
        .copied()
        .filter(|(share, rate)| share.is_finite() && units::usable(*rate))
        .collect();
    let named = [("finish time", gain.runs.last()), ("core alone", gain.runs.first())];
    let named: Vec<(&str, f64)> = (named.into_iter())
        .filter_map(|(name, run)| Some((name, run?.throughput_bps)))
        .filter(|(_, rate)| units::usable(*rate))
        .collect();
    let most =
        points.iter().map(|(_, rate)| *rate).chain(named.iter().map(|(_, rate)| *rate)).fold(0.0, f64::max);
    if points.is_empty() || !units::usable(most) {
        return nothing("no fixed splits");
    }
    let (unit, divisor) = if most < 1e9 { ("Mbit/s", 1e6) } else { ("Gbit/s", 1e9) };
    let (x, y) = (Scale::exact(1.0, LEFT, right), Scale::linear(most / divisor, BOTTOM, TOP));
    let mut chart = svg(WIDTH, 240.0, "Throughput over the share of a fixed split")
        .child(axis_left(&y, LEFT, right, units::digits))
        .child(axis_below(&x, TOP, BOTTOM, units::percent_short))
        .child(text(0.0, 12.0, "quiet", unit))
        .child(text(
            (LEFT + right) / 2.0,
            BOTTOM + 38.0,
            "middle quiet",
            "share of the packets that a fixed split gives the other processors",
        ));
    let mut path = Path::default();
    for (number, (share, rate)) in points.iter().enumerate() {
        path = path.to(if number == 0 { 'M' } else { 'L' }, &[x.at(*share), y.at(rate / divisor)]);
    }
    chart = chart.child(path.element().class("frame"));
    for (share, rate) in &points {
        let told = format!("{} to the others: {}", units::percent(*share), units::bits_per_second(*rate));
        chart = chart.child(mark(2, x.at(*share), y.at(rate / divisor), 4.0, "fill").title(told));
    }
    for &(name, rate) in &named {
        let at = y.at(rate / divisor);
        // The names stay apart however close the lines are.
        let is_highest = named.iter().all(|(_, other)| *other <= rate);
        let name_at = if is_highest { at - 6.0 } else { at + 16.0 };
        let class = if name == "core alone" { "limit" } else { "guide thick" };
        chart = chart.child(line((LEFT, at), (right, at), class)).child(text(
            right - 4.0,
            name_at,
            "end strong over",
            name,
        ));
    }
    chart
}

fn table(gain: &Gain) -> Element {
    let head = ["", "packets/s", "plain bits", "of the core alone"].map(str::to_owned).into_iter();
    let head = head.chain(gain.processors.iter().cloned()).map(|name| element("th").text(name));
    let rows = gain.runs.iter().map(|run| {
        let cells = [
            units::count(run.packets_per_s as u64),
            units::bits_per_second(run.throughput_bps),
            units::ratio(run.of_core_alone, 1.0),
        ];
        let shares = run.shares.iter().map(|share| units::percent(*share));
        let cells = cells.into_iter().chain(shares).map(|cell| element("td").text(cell));
        element("tr").child(element("th").at("scope", "row").text(run.name.as_str())).children(cells)
    });
    let table = element("table")
        .child(caption("Four ways to place the same packets"))
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(rows));
    element("div")
        .class("scroll")
        .at("tabindex", "0")
        .at("role", "region")
        .at("aria-label", "Gain")
        .child(table)
}
