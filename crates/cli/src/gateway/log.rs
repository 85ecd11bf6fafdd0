//! The log: lines on stderr, as text or JSON, from a level on that a reload may change.

use std::io::IsTerminal;

use forebay_config::{Level, Log};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
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
        let _ = match log.json {
            true => registry.with(lines.json()).try_init(),
            false => registry.with(lines).try_init(),
        };
        Logging { level }
    }

    /// Sets the log level.
    pub fn change(&self, log: &Log) {
        let _ = self.level.modify(|level| *level = filter(log));
    }
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
