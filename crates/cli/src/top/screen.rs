//! One screen of `forebay top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};

use super::rates::{ProcessorRates, Rates, SaRates};
use crate::control_client::{explanation, short, time};

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
}

/// From this width on there are more columns.
const WIDE: u16 = 110;
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
        let bottom = (rates.drops.len().max(rates.links.len()) as u16 + 2).clamp(4, (area.height / 4).max(4));
        let rows = [
            Constraint::Length(2),
            Constraint::Length(processors),
            Constraint::Min(3),
            Constraint::Length(bottom),
            Constraint::Length(1),
        ];
        let [head, middle, list, below, keys] = Layout::vertical(rows).areas(area);
        frame.render_widget(heading(rates, self.paused), head);
        frame.render_widget(processor_table(rates, middle), middle);
        frame.render_widget(self.sa_table(rates, list), list);
        let share = if area.width >= WIDE { 55 } else { 52 };
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(share), Constraint::Percentage(100 - share)])
                .areas(below);
        frame.render_widget(link_table(rates, left), left);
        frame.render_widget(drop_table(rates, right), right);
        frame
            .render_widget(Paragraph::new("q quit   s sort   up/down scroll   space pause").style(DIM), keys);
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
        let wide = area.width >= WIDE;
        let shown = usize::from(area.height.saturating_sub(2));
        let begin = self.scroll.min(sas.len().saturating_sub(shown));
        let rows = sas.iter().skip(begin).take(shown).map(|sa| {
            let refused = |rate: f64| Cell::new(right(count(rate))).style(if rate > 0.0 { BAD } else { DIM });
            let mut cells = vec![Cell::new(sa.name.clone()), Cell::new(sa.direction.clone())];
            if wide {
                cells.push(Cell::new(sa.spi.clone()));
                cells.push(Cell::new(sa.proposal.clone()));
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
        header.extend(["peer", ">packet/s", ">bit/s", ">forged/s", ">replay/s", ">packets"]);
        widths.extend([peer, Constraint::Length(8), Constraint::Length(7)]);
        widths.extend([Constraint::Length(8), Constraint::Length(8), Constraint::Length(7)]);
        let title = match sas.len() {
            all if all > shown => {
                format!(
                    " SAs {} to {} of {all}, by {} ",
                    begin + 1,
                    (begin + shown).min(all),
                    self.order.word()
                )
            }
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

fn heading(rates: &Rates, paused: bool) -> Paragraph<'static> {
    // What programs send and get.
    let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    let inside = rates.links.iter().filter(|link| link.is_inside);
    let (sent, got) = inside
        .fold(((0.0, 0.0), (0.0, 0.0)), |(sent, got), link| (add(sent, link.received), add(got, link.sent)));
    let dropped: f64 = rates.drops.iter().map(|drop| drop.1).sum();
    let (in_flight, room) = rates.in_flight;
    let mut first = vec![
        Span::styled(format!("forebay {} ", rates.version), HEAD),
        Span::raw(format!("{}, up {}", rates.config, time(rates.uptime_s))),
        Span::styled(if paused { "  PAUSED" } else { "" }, BAD),
    ];
    if let Some((text, is_bad)) = &rates.others {
        first.push(Span::styled(format!("   {text}"), if *is_bad { BAD } else { DIM }));
    }
    let second = vec![
        Span::raw(format!(
            "out {} p/s {}bit/s   in {} p/s {}bit/s   ",
            short(sent.0),
            short(sent.1),
            short(got.0),
            short(got.1)
        )),
        Span::raw(format!("in flight {in_flight} of {}   ", in_flight + room)),
        Span::styled(format!("dropped {} p/s", short(dropped)), if dropped > 0.0 { BAD } else { DIM }),
    ];
    Paragraph::new(vec![Line::from(first), Line::from(second)])
}

fn processor_table(rates: &Rates, area: Rect) -> Table<'_> {
    let wide = area.width >= WIDE;
    let rows = rates.processors.iter().map(|one| processor_row(one, wide));
    let mut header =
        vec!["processor", "load", ">packet/s", ">bit/s", ">queue", ">predicted", ">actual", ">off by"];
    let mut widths = vec![Constraint::Max(NAME), Constraint::Length(BAR as u16 + 6)];
    widths.extend([Constraint::Length(8), Constraint::Length(7), Constraint::Length(5)]);
    widths.extend([Constraint::Length(9), Constraint::Length(7), Constraint::Length(7)]);
    if wide {
        header.extend([">bundle", ">alpha", "kind", "state"]);
        widths.extend([
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(4),
            Constraint::Length(5),
        ]);
    }
    Table::new(rows, widths).header(header_row(&header)).block(block(" processors "))
}

fn processor_row(one: &ProcessorRates, wide: bool) -> Row<'static> {
    let filled = (one.load * BAR as f64).round() as usize;
    let colour = match one.load {
        load if load > 0.9 => Color::Red,
        load if load > 0.6 => Color::Yellow,
        _ => Color::Green,
    };
    let bar = Line::from(vec![
        Span::styled("█".repeat(filled), Style::new().fg(colour)),
        Span::styled("░".repeat(BAR - filled), DIM),
        Span::raw(match 100.0 * one.load {
            small if small < 10.0 => format!("{small:>5.1}%"),
            load => format!("{load:>5.0}%"),
        }),
    ]);
    let (predicted, actual, off) = match one.response {
        Some((predicted, actual, off)) => (time(predicted), time(actual), time(off)),
        None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
    };
    let name = if one.out { format!("{} (out)", one.name) } else { one.name.clone() };
    let mut cells = vec![
        Cell::new(name),
        Cell::new(bar),
        Cell::new(right(count(one.packets))),
        Cell::new(right(short(one.bits))),
        Cell::new(right(one.queue.to_string())),
        Cell::new(right(predicted)),
        Cell::new(right(actual)),
        Cell::new(right(off)),
    ];
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
mod tests {
    use forebay_gateway::control::{ClusterDoc, PairDoc, StatusDoc};

    use super::super::rates::tests::status;
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
