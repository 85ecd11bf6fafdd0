//! A page with plots: its frame, the script that lets a reader ask them, tables and text.

use crate::element::{Element, element};
use crate::plot::Plot;
use crate::units::micro;
use crate::{PARTS, SCRIPT, STYLE};
use crate::{heat::Heat, lanes::Lanes};

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading: what follows is its section.
    Section(String),
    /// A paragraph.
    Text(String),
    /// A remark on what stands before it, in small type.
    Remark(String),
    /// A plot; two stand side by side where there is room.
    Plot(Plot),
    /// A table.
    Table(Table),
    /// A map of cells.
    Heat(Heat),
    /// What happened when, in lanes.
    Lanes(Lanes),
    /// Text as it stands in a file, folded away under its name.
    Verbatim(String, String),
}

/// Rows of text.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// One a column.
    pub head: Vec<String>,
    /// As many cells each.
    pub rows: Vec<Vec<String>>,
}

/// What stands above the blocks of a page, and below them.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// What kind of page it is: "Forebay simulation".
    pub kind: String,
    /// What came out, as the heading.
    pub verdict: String,
    /// Whether that is good, where it is one or the other.
    pub good: Option<bool>,
    /// What a reader must know before all else: that a run was broken off.
    pub warnings: Vec<String>,
    /// Paragraphs of introduction.
    pub intro: Vec<String>,
    /// Remarks in small type.
    pub notes: Vec<String>,
    /// How the page was made.
    pub footer: String,
}

/// A page as one self-contained HTML document; all text is escaped.
pub fn page(title: &str, frame: &Frame, blocks: &[Block]) -> String {
    document(title, element("main").child(header(frame)).children(parts(blocks)).child(footer(&frame.footer)))
}

/// A document around `main`, with the style of all reports and the script of plots.
pub fn document(title: &str, main: Element) -> String {
    let head = element("head")
        .child(element("meta").at("charset", "utf-8"))
        .child(element("meta").at("name", "viewport").at("content", "width=device-width, initial-scale=1"))
        .child(element("title").text(title))
        .child(element("style").verbatim(STYLE).verbatim(PARTS));
    let script = element("script").verbatim(SCRIPT);
    let body = element("body").child(main).child(script);
    let mut out = "<!DOCTYPE html>\n".to_owned();
    element("html").at("lang", "en").child(head).child(body).write(&mut out);
    out.push('\n');
    out
}

/// What stands at the top of a page.
pub fn header(frame: &Frame) -> Element {
    let verdict = match frame.good {
        None => element("h1").text(frame.verdict.as_str()),
        Some(good) => {
            let (class, sign) = if good { ("verdict good", "\u{2713}") } else { ("verdict bad", "!") };
            let sign = element("span").class("sign").at("aria-hidden", "true").text(sign);
            element("h1").class(class).child(sign).child(element("span").text(frame.verdict.as_str()))
        }
    };
    let lines = |class: &'static str, lines: &[String]| -> Vec<Element> {
        lines.iter().map(|line| element("p").class(class).prose(line)).collect()
    };
    element("header")
        .child(element("p").class("name").text(frame.kind.as_str()))
        .child(verdict)
        .children(lines("warning", &frame.warnings))
        .children(lines("intro", &frame.intro))
        .children(lines("how", &frame.notes))
}

/// What stands at the end of a page, with a word on how plots are used.
pub fn footer(made: &str) -> Element {
    const USE: &str = "On a plot: rest the pointer for values, or step with the arrow keys; drag across to zoom, \
        double-click or Escape to see all again; press a name in a legend to hide or show it, with Shift to see \
        it alone.";
    element("footer").child(element("p").text(made)).child(element("p").class("use").text(USE))
}

/// Blocks as sections, plots two in a row.
pub fn parts(blocks: &[Block]) -> Vec<Element> {
    let mut parts = Vec::new();
    let mut part: Option<Element> = None;
    let mut figures: Vec<Element> = Vec::new();
    let flush = |part: &mut Option<Element>, figures: &mut Vec<Element>| {
        if !figures.is_empty() {
            let row = element("div").class("pair plots").children(figures.drain(..));
            *part = Some(part.take().unwrap_or_else(|| element("section")).child(row));
        }
    };
    for block in blocks {
        if let Block::Plot(plot) = block {
            figures.push(plot.figure());
            continue;
        }
        flush(&mut part, &mut figures);
        let open = || element("section");
        part = match block {
            Block::Section(title) => {
                parts.extend(part.take());
                Some(open().child(element("h2").text(title.as_str())))
            }
            Block::Text(words) => Some(part.unwrap_or_else(open).child(element("p").prose(words))),
            Block::Remark(words) => {
                Some(part.unwrap_or_else(open).child(element("p").class("how").prose(words)))
            }
            Block::Table(one) => Some(part.unwrap_or_else(open).child(table(one))),
            Block::Heat(one) => Some(part.unwrap_or_else(open).child(one.figure())),
            Block::Lanes(one) => Some(part.unwrap_or_else(open).child(one.figure())),
            Block::Verbatim(name, text) => Some(
                part.unwrap_or_else(open).child(
                    element("details")
                        .child(element("summary").text(name.as_str()))
                        .child(element("pre").text(text.as_str())),
                ),
            ),
            Block::Plot(_) => part,
        };
    }
    flush(&mut part, &mut figures);
    parts.extend(part);
    parts
}

/// A table that scrolls by itself where the window is narrow.
pub fn table(table: &Table) -> Element {
    let words: Vec<bool> = (0..table.head.len()).map(|column| is_of_words(table, column)).collect();
    let cell = |kind: &'static str, column: usize, text: &String| {
        let is_words = words.get(column) == Some(&true);
        let class = [(is_words, "words"), (text.chars().count() > LONG, "long")];
        let class: Vec<&str> = class.iter().filter(|(is, _)| *is).map(|(_, class)| *class).collect();
        let cell = element(kind).text(text.as_str());
        if class.is_empty() { cell } else { cell.class(class.join(" ")) }
    };
    let row = |kind: &'static str, cells: &[String]| {
        element("tr").children(cells.iter().enumerate().map(|(column, text)| cell(kind, column, text)))
    };
    let body = element("tbody").children(table.rows.iter().map(|cells| row("td", cells)));
    let whole = element("table")
        .child(caption(&table.title))
        .child(
            element("thead").child(row("th", &table.head.iter().map(|cell| micro(cell)).collect::<Vec<_>>())),
        )
        .child(body);
    scroll(&table.title, whole)
}

/// Cells of more characters may be broken into lines.
const LONG: usize = 26;

/// Whether most of a column's cells are words, which begin at the left, and not numbers.
fn is_of_words(table: &Table, column: usize) -> bool {
    let cells = table.rows.iter().filter_map(|row| row.get(column)).filter_map(|cell| cell.chars().next());
    let (words, all) = cells.fold((0, 0), |(words, all), first| {
        (words + usize::from(first.is_alphabetic() || matches!(first, '[' | '(')), all + 1)
    });
    2 * words > all
}

/// The title of a table, which stays in the window while the table is scrolled.
pub fn caption(title: &str) -> Element {
    element("caption").child(element("span").text(title))
}

/// What stands below a figure or table: which one of a source it is the counterpart of, and what to see in it.
pub fn remark(counterpart: &str, note: &str) -> Option<String> {
    let counterpart = match counterpart {
        "" => String::new(),
        of => format!("Counterpart of {of}."),
    };
    let words = [counterpart.as_str(), note].map(str::trim);
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Room of its own for what may be wider than the window, which the keyboard reaches too.
pub fn scroll(name: &str, what: Element) -> Element {
    element("div").class("scroll").at("tabindex", "0").at("role", "region").at("aria-label", name).child(what)
}
