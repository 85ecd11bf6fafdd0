//! `forebay gateway`: the running gateway.
//!
//! SIGTERM and SIGINT end it, SIGHUP makes it read its file again, and a service manager that asks for it
//! (`Type=notify-reload`) hears when it is ready, reloads and ends.

mod log;
mod processors;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use clap::Args;
use forebay_engine::Clock;
use forebay_gateway::config;
use forebay_gateway::service::Service;
use miette::{Context, IntoDiagnostic};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Answer;
use crate::pass::{seed, unix_ns};
use log::Logging;

/// Between two looks at signals.
const LOOK_EVERY: StdDuration = StdDuration::from_millis(20);

/// Arguments of `forebay gateway`.
#[derive(Args)]
pub struct GatewayArgs {
    /// The gateway's file (TOML): see docs/gateway.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command: until SIGINT or SIGTERM.
pub fn run(args: &GatewayArgs) -> miette::Result<Answer> {
    let config = config::load(&args.config)?;
    let logging = Logging::start(&config.log);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let [end, reload] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    for (signal, seen) in [(SIGINT, &end), (SIGTERM, &end), (SIGHUP, &reload)] {
        flag::register(signal, seen.clone()).into_diagnostic().wrap_err("signals")?;
    }
    let clock = Clock::start();
    let processors = processors::set_up(&config, clock)?;
    let mut service = Service::start(config, processors, clock, seed(), unix_time)?;
    tell(NotifyState::Ready);
    tracing::info!(sas = service.config().sas.entries.len(), "the gateway runs");
    while service.is_running() && !end.load(Ordering::Relaxed) {
        if reload.swap(false, Ordering::Relaxed) {
            tell(NotifyState::Reloading);
            change(&mut service, args, &logging);
            tell(NotifyState::Ready);
        }
        #[allow(clippy::disallowed_methods)] // the command line may wait
        std::thread::sleep(LOOK_EVERY);
    }
    tell(NotifyState::Stopping);
    service.stop().into_diagnostic().wrap_err("the gateway's loop")?;
    tracing::info!("the gateway has ended");
    Ok(Answer::Yes)
}

/// Time since the Unix epoch; zero on a clock that stands before.
#[allow(clippy::disallowed_methods)] // the command line is where time comes from
fn unix_time() -> StdDuration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// Tells the service manager, if there is one that wants to know.
fn tell(state: NotifyState<'_>) {
    // Nobody to be told is no error; and one who cannot be told is not to hinder packets.
    let _ = sd_notify::notify(false, &[state]);
}

/// Reads the file again; one with an error changes nothing.
fn change(service: &mut Service, args: &GatewayArgs, logging: &Logging) {
    let loaded = config::load(&args.config).map_err(miette::Report::new);
    let changed = loaded.and_then(|config| {
        logging.change(&config.log);
        config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(service.reload(config, unix_ns()?)?)
    });
    match changed {
        Ok(changes) => {
            let added = changes.kept.iter().filter(|kept| kept.is_none()).count();
            tracing::info!(added, removed = changes.removed.len(), "the file was read again");
            for setting in &changes.restart {
                tracing::warn!("{setting}: after a restart only");
            }
        }
        Err(report) => tracing::error!("nothing was changed: {report:?}"),
    }
}
