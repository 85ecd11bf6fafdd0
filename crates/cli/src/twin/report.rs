//! The comparison as a page: one file that needs no network and no script.

use super::compare::{Figures, Run, Twin};
use super::table;
use forebay_page::draw::{Scale, WIDTH, axis_below, axis_left, coloured, line, rect, svg, text};
use forebay_page::element::{Element, Path, element};
use forebay_page::units;

/// Colour of each side's marks.
const SIDES: [(&str, usize); 2] = [("engine", 0), ("simulator", 1)];

/// Writes the page.
pub fn render(twin: &Twin) -> String {
    let sign = if twin.holds { "\u{2713}" } else { "!" };
    let class = if twin.holds { "verdict good" } else { "verdict bad" };
    let verdict = element("h1")
        .class(class)
        .child(element("span").class("sign").at("aria-hidden", "true").text(sign))
        .child(element("span").text(table::verdict(twin)));
    let facts = format!(
        "{} {} packets at each rate; the engine's clock: {}. {}.",
        twin.setup,
        units::count(twin.packets),
        twin.clock,
        twin.host
    );
    let body = element("main")
        .child(
            element("header")
                .child(element("p").class("name").text("Forebay: engine and simulator"))
                .child(verdict)
                .child(element("p").class("intro").text(facts)),
        )
        .children(twin.runs.iter().map(section))
        .child(element("footer").child(element("p").text(format!("Made by forebay {}.", twin.version))));
    let head = element("head")
        .child(element("meta").at("charset", "utf-8"))
        .child(element("meta").at("name", "viewport").at("content", "width=device-width, initial-scale=1"))
        .child(element("title").text("Forebay: engine and simulator"))
        .child(element("style").style(forebay_page::STYLE));
    let mut out = "<!DOCTYPE html>\n".to_owned();
    element("html").at("lang", "en").child(head).child(element("body").child(body)).write(&mut out);
    out.push('\n');
    out
}

fn section(run: &Run) -> Element {
    let both = [&run.engine, &run.simulator];
    let plots = element("div")
        .class("pair")
        .child(figure("packets per processor", bars(both)))
        .child(figure("total latency, until released in the order of the SA", distribution(both)));
    element("section")
        .child(element("h2").text(format!("Offered: {}", run.rate)))
        .child(legend())
        .child(plots)
        .child(table_of(run))
        .child(element("p").class("how").text(table::why(run)))
}

fn figure(caption: &str, plot: Element) -> Element {
    element("figure").child(element("figcaption").text(caption)).child(plot)
}

fn legend() -> Element {
    let entry = |(name, slot): (&str, usize)| {
        let swatch = element("svg").at("viewBox", "0 0 14 14").class("swatch").at("aria-hidden", "true");
        element("li").child(swatch.child(rect(1.0, 1.0, 12.0, 12.0, &coloured("fill", slot)))).text(name)
    };
    element("ul").class("legend").children(SIDES.into_iter().map(entry))
}

/// Two bars for each processor.
fn bars(both: [&Figures; 2]) -> Element {
    const LEFT: f64 = 80.0;
    const ROW: f64 = 44.0;
    let most =
        both.iter().flat_map(|side| &side.processors).map(|one| one.packets as f64).fold(0.0, f64::max);
    let scale = Scale::counts(most, LEFT, WIDTH - 70.0);
    let bottom = 6.0 + ROW * both[0].processors.len() as f64;
    let mut chart = svg(WIDTH, bottom + 30.0, "packets per processor");
    chart = chart.child(axis_below(&scale, 4.0, bottom, units::short));
    for (row, one) in both[0].processors.iter().enumerate() {
        let y = 6.0 + ROW * row as f64;
        chart = chart.child(text(LEFT - 8.0, y + ROW / 2.0 + 4.0, "end", one.name.as_str()));
        for (k, (side, (name, slot))) in both.iter().zip(SIDES).enumerate() {
            let Some(one) = side.processors.get(row) else { continue };
            let (y, end) = (y + 4.0 + 18.0 * k as f64, scale.at(one.packets as f64));
            let bar = rect(LEFT, y, end - LEFT, 16.0, &coloured("fill mark", slot));
            chart = chart.child(bar.title(format!("{name}, {}: {} packets", one.name, one.packets)));
            chart = chart.child(text(end + 6.0, y + 12.5, "over", units::count(one.packets)));
        }
    }
    chart
}

/// Latency by percentile, as two lines.
fn distribution(both: [&Figures; 2]) -> Element {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 10.0;
    const BOTTOM: f64 = 170.0;
    let most = both.iter().flat_map(|side| &side.total_s).copied().fold(0.0, f64::max);
    let (across, up) = (Scale::exact(1.0, LEFT, WIDTH - 10.0), Scale::linear(most, BOTTOM, TOP));
    let mut chart = svg(WIDTH, BOTTOM + 30.0, "latency by share of packets");
    chart = chart.child(axis_left(&up, LEFT, WIDTH - 10.0, units::seconds));
    chart = chart.child(axis_below(&across, TOP, BOTTOM, units::percent_short));
    for (side, (name, slot)) in both.iter().zip(SIDES) {
        let mut path = Path::default();
        for (k, &value) in side.total_s.iter().enumerate() {
            let at = [across.at((k + 1) as f64 / 100.0), up.at(value)];
            path = path.to(if k == 0 { 'M' } else { 'L' }, &at);
        }
        let style = if slot == 0 { "0" } else { "6 4" };
        let drawn = path.element().class(coloured("twin", slot)).at("stroke-dasharray", style);
        chart = chart
            .child(drawn.at("fill", "none").at("stroke", "var(--c)").at("stroke-width", 2.0).title(name));
    }
    chart.child(line((LEFT, BOTTOM), (WIDTH - 10.0, BOTTOM), "axis"))
}

fn table_of(run: &Run) -> Element {
    let row = |kind: &'static str, cells: [String; 5]| {
        element("tr").children(cells.into_iter().map(move |cell| element(kind).text(cell)))
    };
    let head = row("th", ["", "engine", "simulator", "difference", "limit"].map(str::to_owned));
    let lines = run.lines.iter().map(|line| {
        let mut difference = format!("{:+.2} %", 100.0 * line.difference);
        if !line.holds {
            difference += " !";
        }
        let limit = line.limit.map_or(String::new(), |limit| format!("{:.0} %", 100.0 * limit));
        let values = [line.engine, line.simulator].map(|value| table::value(value, line.unit));
        let [engine, simulator] = values;
        row("td", [line.figure.clone(), engine, simulator, difference, limit])
    });
    element("table").child(head).children(lines)
}
