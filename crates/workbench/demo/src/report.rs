//! The page of a demo run: one file, with every plot drawn and every sentence
//! said from the figures, that needs no network and no script.

mod charts;
pub(super) mod gain;
mod prediction;
mod setup;
mod side;
mod tables;
#[cfg(test)]
pub(super) mod tests;
mod time;
pub(super) mod words;

use super::figures::DemoFigures;
use element::{Element, element};
pub(super) use forebay_page::units;
use forebay_page::{STYLE, draw, element};
use side::{Side, legend, sides};

/// Writes the report as one self-contained HTML document.
///
/// Names in the figures come from configuration and captures: all are escaped.
pub fn render(figures: &DemoFigures) -> String {
    let sides = sides(figures);
    let body = element("main")
        .children(gain::header(&figures.gains))
        .children(figures.gains.iter().map(gain::section))
        .child(headline(figures))
        .child(setup::setup(figures, &sides))
        .child(shares(&sides))
        .child(sizes(&sides))
        .child(predictions(&sides))
        .child(latency(figures))
        .child(timeline(&sides))
        .child(load(&sides, figures.elapsed_s))
        .child(outcome(figures))
        .child(footer(figures));
    let page = element("html").at("lang", "en").child(head(figures)).child(element("body").child(body));
    let mut out = "<!DOCTYPE html>\n".to_owned();
    page.write(&mut out);
    out.push('\n');
    out
}

fn head(figures: &DemoFigures) -> Element {
    element("head")
        .child(element("meta").at("charset", "utf-8"))
        .child(element("meta").at("name", "viewport").at("content", "width=device-width, initial-scale=1"))
        .child(element("title").text(format!("Forebay demo: {}", figures.capture.name)))
        .child(element("style").verbatim(STYLE))
}

fn headline(figures: &DemoFigures) -> Element {
    let capture = &figures.capture;
    let clean = words::is_clean(figures);
    let sign = if clean { "\u{2713}" } else { "!" };
    let class = if clean { "verdict good" } else { "verdict bad" };
    // Where the page opens with something else, this is a section of it.
    let (part, heading) = if !figures.gains.is_empty() { ("section", "h2") } else { ("header", "h1") };
    let verdict = element(heading)
        .class(class)
        .child(element("span").class("sign").at("aria-hidden", "true").text(sign))
        .child(element("span").text(words::verdict(figures)));
    let intro = format!(
        "{} ({}, {}) went {}through gateway A, which sealed its packets, over UDP to gateway B, which opened \
         them. Compared with the original: {}.",
        if capture.name.is_empty() { "A capture without a name" } else { &capture.name },
        units::counted(capture.packets, "packet", "packets"),
        units::bytes(capture.bytes as f64),
        match figures.comparison.sent.checked_div(capture.packets) {
            Some(times) if times > 1 => format!("{} times ", units::count(times)),
            _ => String::new(),
        },
        words::faults(figures)
    );
    let name = if !figures.gains.is_empty() { "A capture through two gateways" } else { "Forebay demo run" };
    element(part)
        .child(element("p").class("name").text(name))
        .child(verdict)
        .child(element("p").class("intro").text(intro))
        .child(tiles(figures))
        .child(facts(figures))
}

fn tiles(figures: &DemoFigures) -> Element {
    let latency = &figures.latency;
    let tiles = [
        ("throughput", units::bits_per_second(figures.throughput_bps), "of the capture's own bytes"),
        ("packets per second", units::short(figures.packets_per_s), "plain packets"),
        ("latency, median", units::seconds(latency.p50_s), "half of the packets took less"),
        ("latency, p99", units::seconds(latency.p99_s), "one in a hundred took more"),
        ("elapsed", units::seconds(figures.elapsed_s), "first packet in to last out"),
    ];
    let tile = |(name, value, note): (&str, String, &str)| {
        element("div")
            .child(element("dt").text(name))
            .child(element("dd").class("value").text(value))
            .child(element("dd").class("note").text(note))
    };
    element("dl").class("tiles").children(tiles.into_iter().map(tile))
}

fn facts(figures: &DemoFigures) -> Element {
    let facts = [
        ("tunnel", &figures.proposal),
        ("scheduler", &figures.scheduler),
        ("machine", &figures.host),
        ("started", &figures.started),
    ];
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    let fact = |(name, fact): (&str, &String)| {
        element("div").child(element("dt").text(name)).child(element("dd").text(fact.as_str()))
    };
    element("dl").class("facts").children(known.map(fact))
}

fn shares(sides: &[Side<'_>]) -> Element {
    section("Who did the work")
        .child(legend(sides))
        .child(pair(sides, "shares", charts::shares))
        .child(said(
            sides,
            words::shares,
            "A processor whose part of the bytes is wider than its part of the packets was given longer \
             packets than the others.",
        ))
        .child(tables::shares(sides))
}

fn sizes(sides: &[Side<'_>]) -> Element {
    let processors = sides.iter().flat_map(Side::processors).filter(|(_, p)| p.packets > 0);
    let longest = processors.map(|(_, p)| p.mean_size).filter(|size| size.is_finite()).fold(0.0, f64::max);
    section("Which packets went where")
        .child(legend(sides))
        .child(pair(sides, "packets by length", charts::sizes))
        .child(pair(sides, "mean length", |side| charts::mean_sizes(side, longest)))
        .child(said(
            sides,
            words::sizes,
            "Each column stands for all packets of one length and shows which processors did them; a \
             column is full however few they were, so the number above it says how much it weighs. A \
             hollow column had none.",
        ))
        .child(tables::sizes(sides))
}

fn predictions(sides: &[Side<'_>]) -> Element {
    let (responses, services) = (prediction::responses(sides), prediction::services(sides));
    section("What was predicted, and what came")
        .child(legend(sides))
        .child(pair(sides, "response of each sampled job", |side| prediction::scatter(side, responses)))
        .child(pair(sides, "service", |side| prediction::service(side, services)))
        .child(said(
            sides,
            words::predictions,
            "A mark is a sampled job. On the diagonal it was answered when the scheduler said it would be; \
             above it, later. The band is a factor of two to either side. Below, the upright stroke is the \
             predicted service time and the mark the actual one. Both axes are logarithmic.",
        ))
        .child(tables::predictions(sides))
}

fn latency(figures: &DemoFigures) -> Element {
    let chart = element("figure").child(time::latency(&figures.latency));
    let beside = element("div").child(paragraph(words::latency(&figures.latency))).child(paragraph(
        "The axis is logarithmic: a tail to the right is longer than it looks. A latency holds everything \
         between the gateways' doors: waiting for a processor, both ciphers, the link, and the wait for \
         earlier packets so that order is kept.",
    ));
    section("How long packets took")
        .child(element("div").class("pair").child(chart).child(beside.child(tables::latency(figures))))
        .child(tables::histogram(figures))
}

fn timeline(sides: &[Side<'_>]) -> Element {
    let intervals: Vec<_> = sides.iter().flat_map(time::intervals).collect();
    let until = intervals.iter().map(|i| i.end).fold(0.0, f64::max);
    let most = intervals.iter().map(time::Interval::total).fold(0.0, f64::max);
    section("How the work ran")
        .child(legend(sides))
        .child(pair(sides, "packets over time", |side| time::timeline(side, until, most)))
        .child(said(
            sides,
            words::timeline,
            "A column is an interval of the run, its colours the processors that did its packets. The last \
             interval may be shorter than the others.",
        ))
        .child(element("div").class("pair").children(sides.iter().map(tables::timeline)))
}

fn load(sides: &[Side<'_>], elapsed_s: f64) -> Element {
    let loads = sides.iter().flat_map(Side::processors).map(|(_, p)| p.load);
    let busiest = loads.filter(|load| load.is_finite()).fold(0.0, f64::max);
    section("How busy the processors were")
        .child(pair(sides, "load", |side| charts::loads(side, busiest)))
        .child(said(
            sides,
            words::load,
            "Load is the share of the run's time in which a processor worked on jobs.",
        ))
        .child(tables::loads(sides, elapsed_s))
}

fn outcome(figures: &DemoFigures) -> Element {
    let capture = &figures.capture;
    let lengths = format!(
        "{} holds packets of {} on average; half are no longer than {}.",
        capture.name,
        units::length(capture.mean_size),
        units::length(capture.median_size as f64)
    );
    let compared = element("div").child(tables::comparison(figures)).child(tables::drops(figures));
    let held = element("div").child(tables::protocols(figures)).child(paragraph(lengths));
    section("What came out, and what went in").child(element("div").class("pair").child(compared).child(held))
}

fn footer(figures: &DemoFigures) -> Element {
    let made = format!(
        "Made by forebay {} (figures of layout {}). A name has the same colour and mark in every plot; \
         rest the pointer on a shape for its numbers, or on a legend's entry to see one processor alone.",
        figures.version, figures.schema
    );
    element("footer").child(paragraph(made))
}

fn section(heading: &str) -> Element {
    element("section").child(element("h2").text(heading))
}

/// The same plot of both gateways, side by side where there is room.
fn pair(sides: &[Side<'_>], subject: &str, plot: impl Fn(&Side<'_>) -> Element) -> Element {
    let figure = |side: &Side<'_>| {
        let rest = format!(", {}: {subject}", side.role);
        let caption = element("figcaption").child(element("b").text(side.name)).text(rest);
        element("figure").child(caption).child(plot(side))
    };
    element("div").class("pair").children(sides.iter().map(figure))
}

/// What is seen in each gateway, under its plots, then how to read them.
fn said(sides: &[Side<'_>], seen: impl Fn(&Side<'_>) -> String, how: &str) -> Element {
    let seen = element("div").class("pair").children(sides.iter().map(|side| paragraph(seen(side))));
    element("div").class("said").child(seen).child(paragraph(how).class("how"))
}

fn paragraph(text: impl Into<String>) -> Element {
    element("p").text(text)
}
