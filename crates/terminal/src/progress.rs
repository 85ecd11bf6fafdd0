//! Progress on stderr for what takes longer than two seconds, and stopping early without a trace.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_engine::Clock;
use forebay_time::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Shorter work shows nothing.
const QUIET: Duration = Duration::from_millis(2_000);

/// Parts of the whole that [`Progress::share`] shows.
pub const WHOLE: u64 = 1_000;

/// A bar that appears after two seconds, and only on a terminal.
pub struct Progress {
    clock: Clock,
    bar: Option<ProgressBar>,
    total: u64,
    what: &'static str,
    style: &'static str,
}

impl Progress {
    /// A bar over `total` bytes of work.
    pub fn bytes(what: &'static str, total: u64) -> Progress {
        let style = "{msg} [{bar:32}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        Progress { clock: Clock::start(), bar: None, total, what, style }
    }

    /// A bar over `total` packets.
    pub fn packets(what: &'static str, total: u64) -> Progress {
        let style = "{msg} [{bar:32}] {human_pos} of {human_len} packets, {per_sec}, {eta} left";
        Progress { style, ..Progress::bytes(what, total) }
    }

    /// A bar over a whole of [`WHOLE`] parts.
    pub fn share(what: &'static str) -> Progress {
        let style = "{msg} [{bar:32}] {percent} %, {eta} left";
        Progress { style, ..Progress::bytes(what, WHOLE) }
    }

    /// A counter of designs whose total number is not known in advance.
    pub fn designs(what: &'static str) -> Progress {
        let style = "{msg}: {human_pos} designs, {elapsed}";
        Progress { style, ..Progress::bytes(what, 0) }
    }

    /// A bar over runs, as many as are asked for so far ([`Progress::of`]).
    pub fn runs(what: &'static str) -> Progress {
        let style = "{msg} [{bar:32}] {human_pos} of {human_len} runs, {elapsed}";
        Progress { style, ..Progress::bytes(what, 0) }
    }

    /// Says that there is more, or less, in all.
    pub fn of(&mut self, total: u64) {
        self.total = total;
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
    }

    /// Shows that `done` of the total is done.
    pub fn at(&mut self, done: u64) {
        if self.bar.is_none() && self.clock.now().since(forebay_time::Time::ZERO) > QUIET && is_shown() {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template(self.style).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_message(self.what);
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether stderr is a terminal.
pub fn is_shown() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether output to stdout may be coloured.
pub fn is_coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user has asked to stop, or reads no more of what is printed. The first question installs the handler; a second interrupt
/// ends the program at once.
pub fn is_interrupted() -> bool {
    static HANDLER: OnceLock<()> = OnceLock::new();
    HANDLER.get_or_init(|| {
        let handler = || {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        };
        // Without a handler an interrupt ends the program as it always did.
        let _ = ctrlc::set_handler(handler);
    });
    INTERRUPTED.load(Ordering::Relaxed) || output::is_closed()
}

/// The same as an answer for work that can be broken off.
pub fn go_on() -> ControlFlow<()> {
    if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Why there is nothing: the user has broken the work off. Exit code 130.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; nothing was written")
    }
}

impl std::error::Error for Interrupted {}

impl miette::Diagnostic for Interrupted {}
