//! A demo run's summary for the terminal.

use super::figures::{DemoFigures, Gain, GatewayFigures, ProcessorFigures};
use super::report::{units, words};

/// Spaces between two columns.
const GAP: usize = 2;
/// A name is cut to this before a column is given up.
const NAME_MIN: usize = 12;

/// Writes the summary in lines of at most `width` characters, with colours where `color` says so.
///
/// Below some 40 characters the figures themselves need more room and are not cut.
pub fn table(figures: &DemoFigures, color: bool, width: usize) -> String {
    let pen = Pen { color };
    let gateways = [("Gateway A, sealing", &figures.sealing), ("Gateway B, opening", &figures.opening)];
    let layout = Layout::new(&gateways.map(|(_, gateway)| gateway), width);
    let mut out = gained(&figures.gains, &pen, width);
    out.push_str(&pen.verdict(figures, width));
    out.push_str(&facts(figures, &pen, width));
    for (title, gateway) in gateways {
        out.push('\n');
        out.push_str(&processors(title, gateway, &layout, &pen));
    }
    out
}

/// Writes with colours, or without.
struct Pen {
    color: bool,
}

impl Pen {
    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
        if self.color { format!("\x1b[{code}m{text}\x1b[0m{end}") } else { format!("{text}{end}") }
    }

    fn verdict(&self, figures: &DemoFigures, width: usize) -> String {
        let clean = words::is_clean(figures);
        let verdict = units::plain(&words::verdict(figures));
        let mut out = format!("{}\n", self.paint(if clean { "1;32" } else { "1;31" }, &verdict));
        if !clean {
            for line in wrapped(&words::faults(figures), width) {
                out.push_str(&format!("{}\n", self.paint("31", &line)));
            }
        }
        out
    }
}

/// Throughput by suite and way to place packets, a line each.
fn gained(gains: &[Gain], pen: &Pen, width: usize) -> String {
    let mut out = String::new();
    if gains.is_empty() {
        return out;
    }
    for line in wrapped(&units::plain(&super::report::gain::verdict(gains)), width) {
        out.push_str(&format!("{}\n", pen.bold(&line)));
    }
    let remarks = units::plain(&super::report::gain::remarks(gains)).replace('\u{b1}', "+/-");
    for line in wrapped(&remarks, width) {
        out.push_str(&format!("{line}\n"));
    }
    gains.iter().for_each(|gain| out.push_str(&gained_with(gain, pen, width)));
    out
}

fn gained_with(gain: &Gain, pen: &Pen, width: usize) -> String {
    let mut out = String::new();
    let title = format!("{} on {}", gain.proposal, gain.processors.join(" + "));
    out.push_str(&pen.dim(&format!("{}\n", cut(&printable(&title), width))));
    for run in &gain.runs {
        let shares: Vec<String> = run.shares.iter().map(|share| units::percent_short(*share)).collect();
        let rate = units::bits_per_second(run.throughput_bps);
        let ratio = units::ratio(run.of_core_alone, 1.0);
        let line =
            format!("{:<18}{rate:>12}{ratio:>8}  {}", cut(&printable(&run.name), 17), shares.join(" + "));
        out.push_str(&format!("{}\n", cut(&units::plain(&line), width)));
    }
    out.push('\n');
    out
}

/// What the run was, and its throughput, latency and drops.
fn facts(figures: &DemoFigures, pen: &Pen, width: usize) -> String {
    let capture = &figures.capture;
    let latency = &figures.latency;
    let mean_size = units::length(capture.mean_size);
    let drops: Vec<String> = figures
        .comparison
        .drops
        .iter()
        .filter(|(_, packets)| *packets > 0)
        .map(|(reason, packets)| format!("{} {reason}", units::count(*packets)))
        .collect();
    let facts = [
        (
            "capture",
            format!(
                "{}, {}, {}, mean {mean_size}{}",
                if capture.name.is_empty() { "no name" } else { &capture.name },
                units::counted(capture.packets, "packet", "packets"),
                units::bytes(capture.bytes as f64),
                match figures.comparison.sent.checked_div(capture.packets) {
                    Some(times) if times > 1 => format!(", {} times", units::count(times)),
                    _ => String::new(),
                }
            ),
        ),
        ("tunnel", figures.proposal.clone()),
        ("scheduler", figures.scheduler.clone()),
        (
            "throughput",
            format!(
                "{}, {} packets/s, in {}",
                units::bits_per_second(figures.throughput_bps),
                units::short(figures.packets_per_s),
                units::seconds(figures.elapsed_s)
            ),
        ),
        (
            "latency",
            format!(
                "p50 {}, p90 {}, p99 {}, p99.9 {}, mean {}",
                units::seconds(latency.p50_s),
                units::seconds(latency.p90_s),
                units::seconds(latency.p99_s),
                units::seconds(latency.p999_s),
                units::seconds(latency.mean_s)
            ),
        ),
        ("drops", drops.join(", ")),
    ];
    let mut out = String::new();
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        let mut heading = format!("{name:<12}");
        for line in wrapped(fact, width.saturating_sub(12)) {
            out.push_str(&format!("{}{line}\n", pen.dim(&heading)));
            heading = " ".repeat(12);
        }
    }
    out
}

/// A column: its heading in two lines, and its cell.
type Column = (&'static str, &'static str, fn(&ProcessorFigures) -> String);

/// All columns after the name, in the order shown.
const COLUMNS: [Column; 7] = [
    ("", "packets", |p| units::count(p.packets)),
    ("mean", "size", |p| if p.packets == 0 { units::NOTHING.to_owned() } else { units::length(p.mean_size) }),
    ("", "load", |p| units::percent(p.load)),
    ("service", "pred.", |p| units::seconds(p.predicted_service_s)),
    ("", "actual", |p| units::seconds(p.actual_service_s)),
    ("response", "pred.", |p| units::seconds(p.predicted_response_s)),
    ("", "actual", |p| units::seconds(p.actual_response_s)),
];

/// How many columns may be shown: a prediction never without what came of it.
const SHOWN: [usize; 4] = [7, 5, 3, 1];

/// Widths of the columns, the same for both gateways.
struct Layout {
    name: usize,
    columns: Vec<usize>,
}

impl Layout {
    /// Columns go until the names have room, then the names are cut.
    fn new(gateways: &[&GatewayFigures], width: usize) -> Self {
        let processors: Vec<&ProcessorFigures> = gateways.iter().flat_map(|g| &g.processors).collect();
        let length = |text: String| text.chars().count();
        let column = |(above, heading, cell): &Column| {
            let cells = processors.iter().map(|p| length(units::plain(&cell(p))));
            cells.chain([above.len(), heading.len()]).max().unwrap_or(0)
        };
        let mut columns: Vec<usize> = COLUMNS.iter().map(column).collect();
        let names = processors.iter().map(|p| length(printable(&p.name)));
        let longest = names.chain(["processor".len()]).max().unwrap_or(0);
        let room = |shown: usize| width.saturating_sub(columns[..shown].iter().map(|w| w + GAP).sum());
        let shown = SHOWN.into_iter().find(|n| room(*n) >= longest.min(NAME_MIN)).unwrap_or(1);
        let name = longest.min(room(shown).max(NAME_MIN));
        columns.truncate(shown);
        Self { name, columns }
    }

    fn line(&self, name: &str, cell: impl Fn(&Column) -> String) -> String {
        let mut line = format!("{:<1$}", cut(name, self.name), self.name);
        for (column, width) in COLUMNS.iter().zip(&self.columns) {
            line.push_str(&format!("{:GAP$}{:>width$}", "", units::plain(&cell(column))));
        }
        format!("{}\n", line.trim_end())
    }
}

fn processors(title: &str, gateway: &GatewayFigures, layout: &Layout, pen: &Pen) -> String {
    let mut out = pen.bold(title);
    if units::usable(gateway.packets_per_job) {
        out.push_str(&pen.dim(&format!(", {} packets per job", units::digits(gateway.packets_per_job))));
    }
    out.push('\n');
    if gateway.processors.is_empty() {
        return out + "no processors\n";
    }
    let above = layout.line("", |column| column.0.to_owned());
    if !above.trim().is_empty() {
        out.push_str(&pen.dim(&above));
    }
    out.push_str(&pen.dim(&layout.line("processor", |column| column.1.to_owned())));
    for processor in &gateway.processors {
        out.push_str(&layout.line(&printable(&processor.name), |column| column.2(processor)));
    }
    out
}

/// Breaks text between words, and within one that is longer than a line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(16);
    let mut lines = vec![String::new()];
    // A no-break space still holds a number to its unit here.
    for word in printable(text).split(' ') {
        let word: Vec<char> = word.chars().collect();
        for (i, piece) in word.chunks(width).enumerate() {
            let piece: String = piece.iter().collect();
            let line = lines.last_mut().expect("there is always a last line");
            let used = line.chars().count();
            if used > 0 && (i > 0 || used + 1 + piece.chars().count() > width) {
                lines.push(piece);
            } else {
                line.push_str(if used > 0 { " " } else { "" });
                line.push_str(&piece);
            }
        }
    }
    lines.iter().map(|line| units::plain(line)).collect()
}

/// Text that cannot steer the terminal: a name comes from a configuration.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{hostile, huge, plausible};
    use super::*;

    #[test]
    fn eighty_columns_hold_everything() {
        let text = table(&plausible(), false, 80);
        assert!(text.starts_with("One SA in strict order: core and worker carry so many times"), "{text}");
        assert!(text.contains("\nfinish time        1.36 Gbit/s   x1.70  59 % + 41 %\n"), "{text}");
        assert!(text.contains("\n\n7,312 of 7,312 packets identical\n"), "{text}");
        let without = table(&DemoFigures { gains: vec![], ..plausible() }, false, 80);
        assert!(without.starts_with("7,312 of 7,312 packets identical\n"), "{without}");
        assert!(text.is_ascii(), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches("response").count(), 2, "{text}");
        for expected in ["812 Mbit/s", "p99 1.21 ms", "card 1", "62.0 us", "149 us"] {
            assert!(text.contains(expected), "{expected} is missing in:\n{text}");
        }
    }

    #[test]
    fn rows_end_under_their_headings() {
        let text = table(&plausible(), false, 80);
        let at = text.lines().position(|line| line.starts_with("processor")).unwrap();
        let lines: Vec<&str> = text.lines().skip(at).take(5).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{lines:#?}");
    }

    #[test]
    fn narrow_terminals_lose_columns_not_alignment() {
        for width in [40, 50, 60, 79] {
            let text = table(&plausible(), false, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("card 1"), "{width}:\n{text}");
        }
    }

    #[test]
    fn every_figure_can_be_written() {
        for figures in [DemoFigures::default(), huge(), hostile()] {
            let text = table(&figures, false, 80);
            assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
    }

    #[test]
    fn colour_only_when_asked() {
        assert!(!table(&plausible(), false, 80).contains('\x1b'));
        let coloured = table(&plausible(), true, 80);
        assert!(coloured.contains("\x1b[1;32m7,312 of 7,312"), "{coloured}");
        assert_eq!(coloured.matches("\x1b[0m").count() * 2, coloured.matches('\x1b').count());
    }
}
