//! `forebay top`: a running gateway, live.

mod screen;

use std::io::IsTerminal;
use std::time::{Duration as StdDuration, Instant};

use clap::Args;
use forebay_gateway::control::rates::Rates;
use forebay_gateway::control::{Client, Request, Response, StatusDoc};
use miette::{IntoDiagnostic, miette};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::control_client::{SocketArgs, report};
use forebay_terminal::Answer;
use screen::Screen;

/// Arguments of `forebay top`.
#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    gateway: SocketArgs,
    /// Refresh interval in seconds.
    #[arg(long, short = 'd', default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Print this many screens as text instead, for scripts and screen readers.
    #[arg(long, value_name = "N")]
    print: Option<u32>,
    /// With --print: size of the screens in columns and lines.
    #[arg(long, value_name = "COLUMNSxLINES", default_value = "80x24", value_parser = size, requires = "print")]
    size: (u16, u16),
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    if (0.1..=3_600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected 0.1 to 3600 seconds".to_owned())
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('x').and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)));
    parsed
        .filter(|&(x, y): &(u16, u16)| (20..=1_000).contains(&x) && (5..=1_000).contains(&y))
        .ok_or_else(|| "expected columns and lines: 80x24".to_owned())
}

/// Runs the command: until `q`.
pub fn run(args: &TopArgs) -> miette::Result<Answer> {
    let mut client = args.gateway.connect()?;
    let first = look(&mut client)?;
    let interval = StdDuration::from_secs_f64(args.interval);
    if let Some(count) = args.print {
        return print(client, first, interval, count, args.size);
    }
    if !std::io::stdout().is_terminal() {
        return Err(miette!(
            help = "use `--print 1` to print one screen as text",
            "standard output is not a terminal"
        ));
    }
    let mut terminal = ratatui::init();
    let outcome = watch(&mut terminal, client, first, interval);
    ratatui::restore();
    outcome.map(|()| Answer::Yes)
}

fn look(client: &mut Client) -> miette::Result<StatusDoc> {
    match client.ask(Request::Status).map_err(report)? {
        Response::Status(status) => Ok(*status),
        _ => Err(miette!("the gateway sent a reply of another type than was requested")),
    }
}

#[allow(clippy::disallowed_methods)] // the command line may wait
fn print(
    mut client: Client,
    first: StatusDoc,
    interval: StdDuration,
    count: u32,
    (columns, lines): (u16, u16),
) -> miette::Result<Answer> {
    let mut before = first;
    for _ in 0..count {
        std::thread::sleep(interval);
        let now = look(&mut client)?;
        let screen = Screen::default();
        println!("{}", screen.as_text(&Rates::between(&before, &now), columns, lines));
        before = now;
    }
    Ok(Answer::Yes)
}

#[allow(clippy::disallowed_methods)] // the command line may wait
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    mut client: Client,
    first: StatusDoc,
    interval: StdDuration,
) -> miette::Result<()> {
    let mut screen = Screen::default();
    let mut rates = Rates::between(&first, &first);
    let mut before = first;
    loop {
        let next = Instant::now() + interval;
        loop {
            terminal.draw(|frame| screen.draw(frame, &rates)).into_diagnostic()?;
            let left = next.saturating_duration_since(Instant::now());
            if !event::poll(left).into_diagnostic()? {
                break;
            }
            if let Event::Key(key) = event::read().into_diagnostic()?
                && key.kind == KeyEventKind::Press
                && !press(key.code, key.modifiers, &mut screen)
            {
                return Ok(());
            }
            screen.scroll = screen.scroll.min(before.sas.len().saturating_sub(1));
        }
        if !screen.paused {
            let now = look(&mut client)?;
            rates = Rates::between(&before, &now);
            before = now;
        }
    }
}

/// Does what a key asks for; whether to go on.
fn press(key: KeyCode, modifiers: KeyModifiers, screen: &mut Screen) -> bool {
    match key {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
        KeyCode::Char('?' | 'h') => screen.help = !screen.help,
        KeyCode::Char('s') => screen.order = screen.order.next(),
        KeyCode::Down | KeyCode::Char('j') => screen.scroll = screen.scroll.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => screen.scroll = screen.scroll.saturating_sub(1),
        KeyCode::PageDown => screen.scroll = screen.scroll.saturating_add(10),
        KeyCode::PageUp => screen.scroll = screen.scroll.saturating_sub(10),
        KeyCode::Home => screen.scroll = 0,
        _ => {}
    }
    true
}
