//! One screen of `forebay top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, Wrap};

use forebay_gateway::control::rates::{ProcessorRates, Rates, SaRates};
use forebay_gateway::control::reasons::explanation;

use crate::control_client::{short, time};

/// By what SAs are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The most bits a second first.
    #[default]
    Rate,
    /// The most packets in all first.
    Total,
    /// The most forged and replayed packets first.
    Refused,
    /// By name.
    Name,
}

impl Order {
    /// The one behind it.
    pub fn next(self) -> Order {
        match self {
            Order::Rate => Order::Total,
            Order::Total => Order::Refused,
            Order::Refused => Order::Name,
            Order::Name => Order::Rate,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Order::Rate => "rate",
            Order::Total => "total",
            Order::Refused => "refused",
            Order::Name => "name",
        }
    }
}

/// What the keys have changed.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// The first SA that is shown.
    pub scroll: usize,
    /// By what they are sorted.
    pub order: Order,
    /// Whether nothing new is asked for.
    pub paused: bool,
    /// Whether the columns are explained in the place of the SAs.
    pub help: bool,
}

/// From this width on there are more columns; below the other one fewer.
const WIDE: u16 = 120;
const NARROW: u16 = 72;
/// Most columns of a name, of an address.
const NAME: u16 = 20;
const ADDRESS: u16 = 39;
/// Columns of a bar.
const BAR: usize = 10;

const HEAD: Style = Style::new().fg(Color::Cyan);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().fg(Color::DarkGray);

impl Screen {
    /// Draws it all.
    pub fn draw(&self, frame: &mut Frame<'_>, rates: &Rates) {
        let area = frame.area();
        let processors = (rates.processors.len() as u16 + 2).min(area.height / 3).max(3);
        let below = if area.width < NARROW { 3 } else { 4 };
        let bottom =
            (rates.drops.len().max(rates.links.len()) as u16 + 2).clamp(4, (area.height / below).max(4));
        let head_lines = heading(rates, self.paused, area.width);
        let rows = [
            Constraint::Length(head_lines.len() as u16),
            Constraint::Length(processors),
            Constraint::Min(3),
            Constraint::Length(bottom),
            Constraint::Length(1),
        ];
        let [head, middle, list, below, keys] = Layout::vertical(rows).areas(area);
        frame.render_widget(Paragraph::new(head_lines), head);
        frame.render_widget(processor_table(rates, middle), middle);
        match self.help {
            true => frame.render_widget(help(), list),
            false => frame.render_widget(self.sa_table(rates, list), list),
        }
        // Side by side neither has room for its numbers.
        let [left, right] = match area.width < NARROW {
            true => Layout::vertical([Constraint::Percentage(50); 2]).areas(below),
            false => {
                Layout::horizontal([Constraint::Percentage(55), Constraint::Percentage(45)]).areas(below)
            }
        };
        frame.render_widget(link_table(rates, left), left);
        frame.render_widget(drop_table(rates, right), right);
        let words = match area.width < NARROW {
            true => "q quit  ? help  s sort  space pause",
            false => "q quit   ? help   s sort   up/down scroll   space pause",
        };
        frame.render_widget(Paragraph::new(words).style(DIM), keys);
    }

    /// The screen without colours.
    pub fn as_text(&self, rates: &Rates, columns: u16, lines: u16) -> String {
        let backend = ratatui::backend::TestBackend::new(columns, lines);
        let Ok(mut terminal) = ratatui::Terminal::new(backend);
        let Ok(_) = terminal.draw(|frame| self.draw(frame, rates));
        let buffer = terminal.backend().buffer();
        let line = |y: u16| {
            let cells = (0..columns).filter_map(|x| buffer.cell((x, y))).map(|cell| cell.symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..lines).map(line).collect::<Vec<_>>().join("\n")
    }

    fn sa_table<'a>(&self, rates: &'a Rates, area: Rect) -> Table<'a> {
        let mut sas: Vec<&SaRates> = rates.sas.iter().collect();
        match self.order {
            Order::Rate => sas.sort_by(|a, b| b.bits.total_cmp(&a.bits)),
            Order::Total => sas.sort_by_key(|sa| std::cmp::Reverse(sa.total)),
            Order::Refused => {
                sas.sort_by(|a, b| (b.forged + b.replayed).total_cmp(&(a.forged + a.replayed)));
            }
            Order::Name => sas.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        let (wide, narrow) = (area.width >= WIDE, area.width < NARROW);
        let shown = usize::from(area.height.saturating_sub(2));
        let begin = self.scroll.min(sas.len().saturating_sub(shown));
        let rows = sas.iter().skip(begin).take(shown).map(|sa| {
            let refused = |rate: f64| Cell::new(right(count(rate))).style(if rate > 0.0 { BAD } else { DIM });
            let mut cells = vec![Cell::new(sa.name.clone()), Cell::new(sa.direction.clone())];
            if wide {
                cells.push(Cell::new(sa.spi.clone()));
                cells.push(Cell::new(sa.proposal.clone()));
            }
            if narrow {
                let rates = [count(sa.packets), short(sa.bits)].map(|rate| Cell::new(right(rate)));
                cells.extend(rates);
                cells.push(refused(sa.forged + sa.replayed));
                return Row::new(cells);
            }
            cells.extend([
                Cell::new(sa.remote.clone()),
                Cell::new(right(count(sa.packets))),
                Cell::new(right(short(sa.bits))),
                refused(sa.forged),
                refused(sa.replayed),
                Cell::new(right(short(sa.total as f64))),
            ]);
            Row::new(cells)
        });
        let mut header = vec!["SA", "dir"];
        let name = if wide { Constraint::Max(2 * NAME) } else { Constraint::Fill(3) };
        let peer = if wide { Constraint::Max(ADDRESS) } else { Constraint::Fill(2) };
        let mut widths = vec![name, Constraint::Length(3)];
        if wide {
            header.extend(["SPI", "proposal"]);
            widths.extend([Constraint::Length(10), Constraint::Length(17)]);
        }
        if narrow {
            header.extend([">packet/s", ">bit/s", ">refused/s"]);
            widths.extend([8, 7, 9].map(Constraint::Length));
        } else {
            header.extend(["peer", ">packet/s", ">bit/s", ">forged/s", ">replay/s", ">packets"]);
            widths.push(peer);
            widths.extend([8, 7, 8, 8, 7].map(Constraint::Length));
        }
        let title = match sas.len() {
            all if all > shown => {
                format!(
                    " SAs {} to {} of {all}, by {} ",
                    begin + 1,
                    (begin + shown).min(all),
                    self.order.word()
                )
            }
            1 => " 1 SA ".to_owned(),
            all => format!(" {all} SAs, by {} ", self.order.word()),
        };
        Table::new(rows, widths).header(header_row(&header)).block(block(title))
    }
}

fn block(title: impl Into<String>) -> Block<'static> {
    Block::new().borders(Borders::TOP).border_style(DIM).title(Span::styled(title.into(), HEAD))
}

/// Column heads; those that begin with `>` stand to the right, as their numbers do.
fn header_row(heads: &[&str]) -> Row<'static> {
    let cell = |head: &&str| match head.strip_prefix('>') {
        Some(head) => Cell::new(right(head.to_owned())),
        None => Cell::new((*head).to_owned()),
    };
    Row::new(heads.iter().map(cell).collect::<Vec<_>>()).style(Style::new().add_modifier(Modifier::BOLD))
}

fn right(text: String) -> Line<'static> {
    Line::from(text).right_aligned()
}

/// A rate of packets: whole numbers but for the small ones.
fn count(rate: f64) -> String {
    if rate == 0.0 { "-".to_owned() } else { short(rate) }
}

/// What the columns mean.
fn help() -> Paragraph<'static> {
    let lines = [
        "load       share of the time that the core works, polling included; of others crypto",
        "crypto     share of the time that is crypto",
        "queue      jobs that wait for the processor",
        "predicted  time from dispatch to completion that the scheduler expects, mean of jobs",
        "actual     the time that it took; off by: mean distance of the two, job by job",
        "bundle     packets per job (120 columns and more)",
        "alpha      factor on the predicted finish time (120 columns and more)",
        "forged     packets whose ICV is wrong; replay: received twice or too late",
        "late       completions after the job's deadline; redone: jobs done again by the core",
        "p/s        packets per second; k, M, G: thousands, millions, thousand millions",
        "keys       q quit, ? help, s sort SAs, up and down scroll, space pause",
    ];
    let lines: Vec<Line<'static>> = lines.into_iter().map(Line::from).collect();
    Paragraph::new(lines).wrap(Wrap { trim: false }).block(block(" help: ? again "))
}

/// Pieces of text with space between them, on as many lines as they need.
fn wrapped(pieces: Vec<Span<'static>>, width: u16) -> Vec<Line<'static>> {
    const SPACE: &str = "   ";
    let mut lines: Vec<Line<'static>> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + SPACE.len() + piece.width() <= usize::from(width) => {
                line.push_span(Span::raw(SPACE));
                line.push_span(piece);
            }
            _ => lines.push(Line::from(piece)),
        }
    }
    lines
}

fn heading(rates: &Rates, paused: bool, width: u16) -> Vec<Line<'static>> {
    // What programs send and get.
    let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    let inside = rates.links.iter().filter(|link| link.is_inside);
    let (sent, got) = inside
        .fold(((0.0, 0.0), (0.0, 0.0)), |(sent, got), link| (add(sent, link.received), add(got, link.sent)));
    let dropped: f64 = rates.drops.iter().map(|drop| drop.1).sum();
    let (in_flight, room) = rates.in_flight;
    let program = format!("forebay {} {}, up {}", rates.version, rates.config, time(rates.uptime_s));
    let mut first = vec![Span::styled(program, HEAD)];
    first.extend(paused.then(|| Span::styled("PAUSED", BAD)));
    if let Some((text, is_bad)) = &rates.others {
        first.push(Span::styled(text.clone(), if *is_bad { BAD } else { DIM }));
    }
    let passed = |word: &str, (packets, bits): (f64, f64)| {
        Span::raw(format!("{word} {} p/s {}bit/s", short(packets), short(bits)))
    };
    let bad = |is_bad: bool| if is_bad { BAD } else { DIM };
    let [late, redone, refused] = rates.odd;
    let odd = format!("late {} redone {} refused {} /s", short(late), short(redone), short(refused));
    let second = vec![
        passed("out", sent),
        passed("in", got),
        Span::raw(format!("in flight {in_flight} of {}", in_flight + room)),
        Span::styled(format!("dropped {} p/s", short(dropped)), bad(dropped > 0.0)),
        Span::styled(odd, bad(late + redone + refused > 0.0)),
    ];
    let mut lines = wrapped(first, width);
    lines.extend(wrapped(second, width));
    lines
}

fn processor_table(rates: &Rates, area: Rect) -> Table<'_> {
    let (wide, narrow) = (area.width >= WIDE, area.width < NARROW);
    let rows = rates.processors.iter().map(|one| processor_row(one, wide, narrow));
    let mut header = vec!["processor", if wide { "load" } else { ">load" }];
    let mut widths = vec![if wide { Constraint::Max(NAME) } else { Constraint::Fill(1) }];
    widths.push(Constraint::Length(if wide { BAR as u16 + 6 } else { 6 }));
    if !narrow {
        header.push(">crypto");
        widths.push(Constraint::Length(6));
    }
    header.extend([">packet/s", ">bit/s", ">queue"]);
    widths.extend([8, 7, 5].map(Constraint::Length));
    if !narrow {
        header.extend([">predicted", ">actual", ">off by"]);
        widths.extend([9, 7, 7].map(Constraint::Length));
    }
    if wide {
        header.extend([">bundle", ">alpha", "kind", "state"]);
        widths.extend([6, 6, 4, 5].map(Constraint::Length));
    }
    Table::new(rows, widths).header(header_row(&header)).block(block(" processors "))
}

fn processor_row(one: &ProcessorRates, wide: bool, narrow: bool) -> Row<'static> {
    let filled = (one.load * BAR as f64).round() as usize;
    let colour = match one.load {
        load if load > 0.9 => Color::Red,
        load if load > 0.6 => Color::Yellow,
        _ => Color::Green,
    };
    let percent = |share: f64| match 100.0 * share {
        small if small < 10.0 => format!("{small:>5.1}%"),
        load => format!("{load:>5.0}%"),
    };
    let load = match wide {
        true => Line::from(vec![
            Span::styled("█".repeat(filled), Style::new().fg(colour)),
            Span::styled("░".repeat(BAR - filled), DIM),
            Span::raw(percent(one.load)),
        ]),
        false => right(percent(one.load)).style(Style::new().fg(colour)),
    };
    let (predicted, actual, off) = match one.response {
        Some((predicted, actual, off)) => (time(predicted), time(actual), time(off)),
        None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
    };
    let name = if one.out { format!("{} (out)", one.name) } else { one.name.clone() };
    let mut cells = vec![Cell::new(name), Cell::new(load)];
    cells.extend((!narrow).then(|| Cell::new(right(percent(one.crypto)))));
    let counts = [count(one.packets), short(one.bits), one.queue.to_string()];
    cells.extend(counts.map(|count| Cell::new(right(count))));
    if !narrow {
        cells.extend([predicted, actual, off].map(|text| Cell::new(right(text))));
    }
    if wide {
        cells.extend([
            Cell::new(right(format!("{:.1}", one.bundle))),
            Cell::new(right(format!("{:.2}", one.alpha))),
            Cell::new(one.kind.clone()),
            Cell::new(if one.out { "out" } else { "ok" }),
        ]);
    }
    Row::new(cells).style(if one.out { BAD } else { Style::new() })
}

fn link_table(rates: &Rates, area: Rect) -> Table<'_> {
    let wide = area.width >= WIDE / 2;
    let rows = rates.links.iter().map(|link| {
        let mut cells = vec![
            Cell::new(link.name.clone()),
            Cell::new(right(count(link.received.0))),
            Cell::new(right(short(link.received.1))),
            Cell::new(right(count(link.sent.0))),
            Cell::new(right(short(link.sent.1))),
        ];
        cells.extend(wide.then(|| Cell::new(right(link.queue.to_string()))));
        Row::new(cells)
    });
    let mut widths = vec![Constraint::Max(NAME)];
    widths.extend([Constraint::Length(7); 4]);
    let mut header = vec!["link", ">in p/s", ">bit/s", ">out p/s", ">bit/s"];
    if wide {
        widths.push(Constraint::Length(5));
        header.push(">queue");
    }
    Table::new(rows, widths).header(header_row(&header)).block(block(" links "))
}

fn drop_table(rates: &Rates, area: Rect) -> Table<'_> {
    let wide = area.width >= 60;
    let rows = rates.drops.iter().map(|(reason, rate, total)| {
        let style = if *rate > 0.0 { BAD } else { Style::new() };
        let mut cells = vec![
            Cell::new(right(count(*rate))),
            Cell::new(right(short(*total as f64))),
            Cell::new(reason.clone()),
        ];
        if wide {
            cells.push(Cell::new(explanation(reason)).style(DIM));
        }
        Row::new(cells).style(style)
    });
    let mut widths = vec![Constraint::Length(6), Constraint::Length(6)];
    widths.push(if wide { Constraint::Length(20) } else { Constraint::Fill(1) });
    if wide {
        widths.push(Constraint::Fill(1));
    }
    Table::new(rows, widths).header(header_row(&[">p/s", ">all", "dropped", ""])).block(block(" drops "))
}

#[cfg(test)]
use forebay_gateway::control::{EngineDoc, LinkDoc, ProcessorDoc, SaDoc, StatusDoc};
// The status of the tests of rates.
#[cfg(test)]
#[path = "../../../gateway/control/src/rates/sample.rs"]
mod sample;

#[cfg(test)]
mod tests {
    use forebay_gateway::control::{ClusterDoc, PairDoc};

    use super::sample::status;
    use super::*;

    #[test]
    fn everything_that_matters_is_on_the_smallest_terminal() {
        let rates = Rates::between(&status(10), &status(12));
        let text = Screen::default().as_text(&rates, 80, 24);
        assert_eq!(text.lines().count(), 24);
        for part in [
            "forebay 0.1.0 /etc/forebay/gateway.toml, up 12.0s",
            "out 2000 p/s 16.0Mbit/s   in 1000 p/s 8.00Mbit/s",
            "in flight 12 of 4096",
            "core      ",
            "card.1 (out)",
            "2.0us",
            "3.0us",
            "1.5us",
            " SAs 1 to ",
            "tunnel-039-in",
            "in_state_seq_error",
            "udp-1",
            "q quit",
        ] {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    /// At every width each number is whole and each name can be told.
    #[test]
    fn nothing_is_cut_at_the_usual_widths() {
        let mut after = status(12);
        after.links[0].packets_in = 99_999_999;
        after.links[0].bytes_in = 99_999_999_999;
        let rates = Rates::between(&status(10), &after);
        for (columns, parts) in [
            (50, vec!["tunnel-039-in", "core", "card.1 (out)", "refused/s", "? help", "dropped 13 p/s"]),
            (
                80,
                vec!["tunnel-039-in", "2001:db8", "dropped 13 p/s", "late 0 redone 2 refused 1 /s", "crypto"],
            ),
            (160, vec!["bundle", "0x00001027", "30%", "? help"]),
        ] {
            let text = Screen::default().as_text(&rates, columns, 30);
            for part in parts {
                assert!(text.contains(part), "no `{part}` at {columns} columns in\n{text}");
            }
            assert!(!text.contains(" -0"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
        }
        let idle = Rates::between(&StatusDoc::default(), &StatusDoc::default());
        let text = Screen::default().as_text(&idle, 80, 24);
        assert!(text.contains("dropped 0 p/s") && !text.contains(" -0"), "{text}");
        let help = Screen { help: true, ..Screen::default() }.as_text(&rates, 80, 30);
        for part in ["off by", "bundle     packets per job", "redone", "help: ? again"] {
            assert!(help.contains(part), "no `{part}` in\n{help}");
        }
    }

    #[test]
    fn the_first_line_says_how_it_stands_with_the_other_gateways() {
        let mut now = status(12);
        let first = |now: &StatusDoc| {
            let text = Screen::default().as_text(&Rates::between(&status(10), now), 80, 24);
            text.lines().next().unwrap().to_owned()
        };
        let mut pair = PairDoc {
            role: "active".into(),
            peer: Some("standby".into()),
            in_sync: true,
            ..PairDoc::default()
        };
        now.pair = Some(pair.clone());
        assert!(first(&now).ends_with("pair: active, in sync"), "{}", first(&now));
        pair.peer = None;
        now.pair = Some(pair);
        assert!(first(&now).ends_with("pair: active, peer NOT heard"), "{}", first(&now));
        now.pair = None;
        let cluster =
            ClusterDoc { connected: true, shares: 256, serves: vec![1, 5], ..ClusterDoc::default() };
        now.cluster = Some(cluster);
        assert!(first(&now).ends_with("cluster: 2 of 256 shares"), "{}", first(&now));
    }

    #[test]
    fn a_wide_terminal_shows_more_and_a_tiny_one_does_no_harm() {
        let rates = Rates::between(&status(10), &status(12));
        let text = Screen::default().as_text(&rates, 160, 50);
        for part in ["0x00001027", "aes128gcm16", "bundle", "the sequence number is zero", "4.0"] {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
        for (columns, lines) in [(1, 1), (20, 5), (40, 10), (300, 3), (5, 100)] {
            Screen { scroll: 1_000, ..Screen::default() }.as_text(&rates, columns, lines);
            Screen::default().as_text(&Rates::default(), columns, lines);
        }
    }

    #[test]
    fn sas_are_sorted_and_scrolled() {
        let rates = Rates::between(&status(10), &status(12));
        let first = |screen: &Screen| {
            let text = screen.as_text(&rates, 80, 24);
            let line = text.lines().find(|line| line.starts_with("tunnel-")).unwrap().to_owned();
            line.split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(first(&Screen::default()), "tunnel-039-in");
        assert_eq!(first(&Screen { scroll: 2, ..Screen::default() }), "tunnel-037-in");
        assert_eq!(first(&Screen { order: Order::Name, ..Screen::default() }), "tunnel-000-out");
        assert_eq!(first(&Screen { order: Order::Refused, ..Screen::default() }), "tunnel-005-in");
    }
}
