//! The log: lines on stderr, as text or JSON, from a level on that a reload may change. Where stderr is the journal, each
//! line begins with its priority (sd-daemon(3)), and the time is the journal's.

use std::fmt;
use std::io::IsTerminal;

use forebay_config::{Level, Log};
use forebay_sas::Finding;
use forebay_terminal::journal;
use tracing::{Event, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

/// The way to the log.
pub struct Logging {
    level: Handle<LevelFilter, Registry>,
}

impl Logging {
    /// Starts the log of the process.
    pub fn start(log: &Log) -> Logging {
        let (filter, level) = reload::Layer::new(filter(log));
        let colour = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
        let registry = tracing_subscriber::registry().with(filter);
        // This fails if a test has installed a log already; the test then keeps its own.
        let _ = match (log.json, journal::is_stderr()) {
            (true, false) => registry.with(lines.json()).try_init(),
            (false, false) => registry.with(lines).try_init(),
            (true, true) => {
                let format = ForJournal(Format::default().json().without_time());
                registry.with(lines.fmt_fields(JsonFields::new()).event_format(format)).try_init()
            }
            (false, true) => {
                let format = ForJournal(Format::default().without_time().with_ansi(false));
                registry.with(lines.event_format(format)).try_init()
            }
        };
        Logging { level }
    }

    /// Sets the log level.
    pub fn change(&self, log: &Log) {
        let _ = self.level.modify(|level| *level = filter(log));
    }
}

/// Logs what should be looked at in a configuration, with what to do about it.
pub fn warning(finding: &Finding) {
    let help = finding.plain().hint.split_whitespace().collect::<Vec<_>>().join(" ");
    tracing::warn!(help, "{finding}");
}

fn filter(log: &Log) -> LevelFilter {
    match log.level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

/// Events with the priority of their level in front of each line.
struct ForJournal<F>(F);

impl<S, N, F> FormatEvent<S, N> for ForJournal<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        let priority = match *event.metadata().level() {
            tracing::Level::ERROR => journal::ERROR,
            tracing::Level::WARN => journal::WARNING,
            tracing::Level::INFO => journal::INFO,
            _ => journal::DEBUG,
        };
        writer.write_str(&journal::with_priority(priority, &text))
    }
}
