//! Pages of runs and of sweeps.

mod bars;
mod flame;
mod frontier;

use forebay_page::Made;
use forebay_page::document;
use forebay_page::element::{Element, element};
use forebay_page::units;

use crate::area::Part;
use crate::figures::Figures;

pub use frontier::{Point, best, marginal};

/// The page of a run.
pub fn run(name: &str, figures: &Figures, made: &Made) -> String {
    let verdict = match figures.packets {
        0 => format!("{} cycles", units::count(figures.cycles)),
        _ => format!("{} cycles a byte", units::digits(figures.cycles_per_byte)),
    };
    let tile = |value: String, name: &str, note: String| {
        element("div")
            .child(element("dt").text(name))
            .child(element("dd").class("value").text(value))
            .child(element("dd").class("note").text(note))
    };
    let share = |side: &str| units::percent(units::share(figures.side(side) as f64, figures.cycles as f64));
    let tiles = element("dl")
        .class("tiles")
        .child(tile(units::count(figures.cycles), "cycles", format!("{:.3} an instruction", figures.cpi)))
        .child(tile(units::count(figures.instructions), "instructions", String::new()))
        .child(tile(
            units::count(figures.cycles_per_packet.round() as u64),
            "cycles a packet",
            format!("{} packets of {} bytes", figures.packets, figures.bytes / figures.packets.max(1)),
        ))
        .child(tile(share("protocol"), "protocol", format!("{} cryptography", share("crypto"))))
        .child(tile(
            format!("{:.0} MHz", figures.clock.mhz),
            "clock",
            format!("{} us a packet; limit: {}", units::digits(figures.us_per_packet), figures.clock.limit),
        ))
        .child(tile(format!("{:.0} kGE", figures.area_kge), "area", "sources below".to_owned()));
    let header = element("header")
        .child(element("p").class("name").text(format!("Forebay explore: {name}")))
        .child(element("h1").text(verdict))
        .child(tiles);
    let main = element("main")
        .child(header)
        .child(section("By function and cause").child(bars::groups(figures)))
        .child(
            section("Who calls what")
                .child(element("p").class("how").text(
                    "A box is a function called by the one above it; its width is its cycles, with those of \
                     all that it calls. The colour is the group.",
                ))
                .child(flame::graph(figures)),
        )
        .child(section("Functions").child(functions(figures)))
        .child(section("Kinds of instructions").child(classes(figures)))
        .child(section("Area").child(area(figures)))
        .child(footer(made));
    document::document(&format!("Forebay explore: {name}"), main)
}

/// The page of several points: what speed costs, and where the cycles go.
pub fn points(name: &str, points: &[Point], made: &Made) -> String {
    let frontier = best(points);
    let header = element("header")
        .child(element("p").class("name").text(format!("Forebay explore: {name}")))
        .child(element("h1").text(format!(
            "{} of {} configurations are on the frontier",
            frontier.len(),
            points.len()
        )))
        .child(element("p").class("intro").text(
            "A configuration is on the frontier if none that is as fast is smaller, or, where energies are given, takes less energy \
             for a packet and is no larger. Time counts the clock that the \
             longest path allows; instructions of synthesized hardware have its area, other parts that of \
             published figures.",
        ));
    let main = element("main")
        .child(header)
        .child(section("Speed against area").child(frontier::plot(points, &frontier)))
        .child(section("The frontier").child(frontier::table(points, &frontier)))
        .child(section("What an option pays").child(frontier::marginals(points)))
        .child(section("All configurations").child(bars::points(points)))
        .child(footer(made));
    document::document(&format!("Forebay explore: {name}"), main)
}

fn section(title: &str) -> Element {
    element("section").child(element("h2").text(title))
}

fn footer(made: &Made) -> Element {
    element("footer").text(format!("Forebay {}, on {}, {}", made.version, made.host, made.at))
}

/// A table in a frame that scrolls sideways; the first column is text.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Element {
    let cell = |name: &'static str, text: String| element(name).text(text);
    let head = element("tr").children(head.iter().map(|one| cell("th", (*one).to_owned())));
    let row = |row: Vec<String>| element("tr").children(row.into_iter().map(|one| cell("td", one)));
    let body = element("tbody").children(rows.into_iter().map(row));
    element("div").class("scroll").child(element("table").child(element("thead").child(head)).child(body))
}

fn functions(figures: &Figures) -> Element {
    let mut head = vec!["function", "instructions", "cycles", "share"];
    let shown: Vec<usize> = (0..figures.causes.len()).filter(|&at| figures.causes[at].cycles > 0).collect();
    head.extend(shown.iter().map(|&at| figures.causes[at].name.as_str()));
    let rows = figures.functions.iter().map(|one| {
        let mut row = vec![
            one.name.clone(),
            units::count(one.instructions),
            units::count(one.cycles),
            units::percent(units::share(one.cycles as f64, figures.cycles as f64)),
        ];
        row.extend(shown.iter().map(|&at| units::count(one.causes[at])));
        row
    });
    table(&head, rows)
}

fn classes(figures: &Figures) -> Element {
    let all: u64 = figures.instructions;
    let percent = |part: u64, whole: u64| units::percent(units::share(part as f64, whole as f64));
    let sides = [figures.side("protocol"), figures.side("crypto")];
    let rows = figures.classes.iter().filter(|one| one.instructions > 0).map(|one| {
        vec![
            one.name.clone(),
            units::count(one.instructions),
            percent(one.instructions, all),
            units::count(one.cycles),
            percent(one.cycles, figures.cycles),
            percent(one.protocol_cycles, sides[0]),
            percent(one.crypto_cycles, sides[1]),
        ]
    });
    let head = ["kind", "instructions", "share", "cycles", "share", "of protocol", "of cryptography"];
    table(&head, rows)
}

fn area(figures: &Figures) -> Element {
    let row = |one: &Part| vec![one.name.clone(), format!("{:.2}", one.kge), one.source.word().to_owned()];
    let all = [vec!["together".to_owned(), format!("{:.2}", figures.area_kge), String::new()]];
    table(&["part", "kGE", "source"], figures.area.iter().map(row).chain(all))
}
