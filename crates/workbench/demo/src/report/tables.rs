//! The figures behind each plot, as tables.

use super::super::figures::{DemoFigures, ProcessorFigures};
use super::charts::SIZES;
use super::element::{Element, element};
use super::side::{Side, swatch};
use super::time;
use super::units;
use forebay_page::document::caption as titled;

/// Columns of a table: heading, and what stands below it.
type Column<'a> = (&'static str, Box<dyn Fn(&Side<'_>, &ProcessorFigures) -> String + 'a>);

fn column<'a>(
    heading: &'static str,
    cell: impl Fn(&Side<'_>, &ProcessorFigures) -> String + 'a,
) -> Column<'a> {
    (heading, Box::new(cell))
}

/// Packets and bytes of each processor.
pub fn shares(sides: &[Side<'_>]) -> Element {
    let columns = [
        column("packets", |_, p| units::count(p.packets)),
        column("share", |side, p| units::percent(units::share(p.packets as f64, side.packets()))),
        column("bytes", |_, p| units::bytes(p.bytes as f64)),
        column("share", |side, p| units::percent(units::share(p.bytes as f64, side.bytes()))),
    ];
    by_processor("Packets and bytes by processor", sides, &columns)
}

/// Packet lengths of each processor.
pub fn sizes(sides: &[Side<'_>]) -> Element {
    let mut columns = vec![column("mean length", |_, p| match p.packets {
        0 => units::NOTHING.to_owned(),
        _ => units::length(p.mean_size),
    })];
    for (class, name) in SIZES.iter().enumerate() {
        columns.push(column(name, move |_, p| units::count(p.sizes[class])));
    }
    by_processor("Packets by length in bytes and processor", sides, &columns)
}

/// Predictions and what came, and the cost model as fitted at the end.
pub fn predictions(sides: &[Side<'_>]) -> Element {
    let columns = [
        column("service, predicted", |_, p| units::seconds(p.predicted_service_s)),
        column("actual", |_, p| units::seconds(p.actual_service_s)),
        column("response, predicted", |_, p| units::seconds(p.predicted_response_s)),
        column("actual", |_, p| units::seconds(p.actual_response_s)),
        column("mean error", |_, p| units::seconds(p.response_error_s)),
        column("fitted setup per job", |_, p| units::seconds(p.fitted_init_s)),
        column("fitted time per 16\u{a0}B", |_, p| units::seconds(p.fitted_block_s)),
        column("samples", |_, p| units::count(p.samples.len() as u64)),
    ];
    by_processor("Predicted and actual times by processor", sides, &columns)
}

/// Loads of the processors.
pub fn loads(sides: &[Side<'_>], elapsed_s: f64) -> Element {
    let columns = [
        column("load", |_, p| units::percent(p.load)),
        column("time at work", move |_, p| units::seconds(p.load * elapsed_s)),
        column("packets", |_, p| units::count(p.packets)),
        column("packets per second", move |_, p| units::short(units::share(p.packets as f64, elapsed_s))),
        column("rate", move |_, p| units::bits_per_second(units::share(p.bytes as f64 * 8.0, elapsed_s))),
    ];
    by_processor("Load and rate by processor, over the whole run", sides, &columns)
}

fn by_processor(caption: &str, sides: &[Side<'_>], columns: &[Column<'_>]) -> Element {
    let mut table = table(caption, "processor", columns.iter().map(|column| column.0));
    for side in sides {
        let span = format!("{}", columns.len() + 1);
        let heading = element("th").at("colspan", span).at("scope", "rowgroup").text(side.title());
        let mut group = element("tbody").child(element("tr").class("group").child(heading));
        for (slot, processor) in side.processors() {
            let name = element("th").at("scope", "row").child(swatch(slot)).text(processor.name.as_str());
            group = group.child(row(name, columns.iter().map(|(_, cell)| cell(side, processor))));
        }
        table = table.child(group);
    }
    scroll(table)
}

/// The latency's mean and percentiles.
pub fn latency(figures: &DemoFigures) -> Element {
    let latency = &figures.latency;
    let rows = [
        ("mean", latency.mean_s),
        ("p50 (median)", latency.p50_s),
        ("p90", latency.p90_s),
        ("p99", latency.p99_s),
        ("p99.9", latency.p999_s),
    ];
    let rows =
        rows.map(|(name, s)| (name.to_owned(), vec![units::seconds(s), units::ratio(s, latency.p50_s)]));
    pairs("Latency", "", &["time", "against the median"], rows)
}

/// The histogram's bins as drawn.
pub fn histogram(figures: &DemoFigures) -> Element {
    let rows = time::bins(&figures.latency).into_iter().map(|bin| {
        let range = format!("{} to {}", units::seconds(bin.low), units::seconds(bin.high));
        (range, vec![units::count(bin.count)])
    });
    folded("All bins of the histogram", pairs("Packets by latency", "latency", &["packets"], rows))
}

/// The intervals of a gateway as drawn.
pub fn timeline(side: &Side<'_>) -> Element {
    let caption = format!("Packets by interval, {}", side.title());
    let mut table = table(&caption, "interval", side.figures.processors.iter().map(|p| p.name.as_str()));
    let mut body = element("tbody");
    for interval in time::intervals(side) {
        let name = format!("{} to {}", units::seconds(interval.start), units::seconds(interval.end));
        let name = element("th").at("scope", "row").text(name);
        body = body.child(row(name, interval.packets.iter().map(|p| units::count(*p))));
    }
    table = table.child(body);
    folded(&format!("All intervals of {}", side.name), scroll(table))
}

/// What came out against what went in.
pub fn comparison(figures: &DemoFigures) -> Element {
    let c = &figures.comparison;
    let rows = [
        ("identical", c.identical),
        ("different", c.different),
        ("missing", c.missing),
        ("out of order within their SA", c.out_of_order),
        ("duplicated", c.duplicated),
    ];
    let sent = figures.comparison.sent as f64;
    let rows = rows.map(|(name, n)| {
        (name.to_owned(), vec![units::count(n), units::percent(units::share(n as f64, sent))])
    });
    pairs("Packets out against packets in", "", &["packets", "of those sent"], rows)
}

/// Drops of both gateways.
pub fn drops(figures: &DemoFigures) -> Element {
    let drops = &figures.comparison.drops;
    if drops.iter().all(|(_, packets)| *packets == 0) {
        return element("p").text("Neither gateway dropped a packet.");
    }
    let rows = drops.iter().map(|(reason, packets)| (reason.clone(), vec![units::count(*packets)]));
    pairs("Drops of both gateways", "reason", &["packets"], rows)
}

/// What the capture holds.
pub fn protocols(figures: &DemoFigures) -> Element {
    let capture = &figures.capture;
    let rows = capture.protocols.iter().map(|(name, packets, bytes)| {
        let share = units::share(*packets as f64, capture.packets as f64);
        let mean = units::share(*bytes as f64, *packets as f64);
        let cells = vec![
            units::count(*packets),
            units::percent(share),
            units::bytes(*bytes as f64),
            units::length(mean),
        ];
        (name.clone(), cells)
    });
    pairs("Protocols in the capture", "protocol", &["packets", "share", "bytes", "mean length"], rows)
}

fn pairs(
    caption: &str,
    first: &str,
    headings: &[&str],
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) -> Element {
    let rows = rows.into_iter().map(|(name, cells)| row(element("th").at("scope", "row").text(name), cells));
    scroll(table(caption, first, headings.iter().copied()).child(element("tbody").children(rows)))
}

fn table<'a>(caption: &str, first: &str, headings: impl Iterator<Item = &'a str>) -> Element {
    let headings = headings.map(|heading| element("th").at("scope", "col").text(heading));
    let first = if first.is_empty() { element("td") } else { element("th").at("scope", "col").text(first) };
    let head = element("tr").child(first).children(headings);
    element("table").child(titled(caption)).child(element("thead").child(head))
}

fn row(name: Element, cells: impl IntoIterator<Item = String>) -> Element {
    element("tr").child(name).children(cells.into_iter().map(|cell| element("td").text(cell)))
}

/// A table wider than the window is moved sideways by itself, not with the page.
fn scroll(table: Element) -> Element {
    element("div").class("scroll").child(table)
}

/// Long tables open on demand; a browser needs no script for that.
fn folded(summary: &str, content: Element) -> Element {
    element("details").child(element("summary").text(summary)).child(content)
}
