//! `forebay gateway`: the running gateway.
//!
//! SIGTERM and SIGINT end it, SIGHUP makes it read its file again, and a service manager that asks for it
//! (`Type=notify-reload`) hears when it is ready, reloads and ends.

mod control_plane;
mod log;
mod watchdog;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use clap::Args;
use forebay_config::{self as config, Changes, Config};
use forebay_engine::Clock;
use forebay_gateway::control::ReloadDoc;
use forebay_gateway::privileges;
use forebay_gateway::service::{Caretaker, Closed, Machine, SavedRules, Service, StartError};
use forebay_gateway::serving::{self, Event, Serving, Step};
use forebay_sas::SasErrors;
use forebay_time::{Duration, Time};
use miette::{Context, IntoDiagnostic, Report};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use control_plane::ControlPlane;
use forebay_terminal::Answer;
use forebay_terminal::host::seed;
use log::Logging;
use watchdog::Watchdog;

/// Longest time between two looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Between two signs of life to the service manager while there are no workers whose health could be asked for.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// Arguments of `forebay gateway`.
#[derive(Args)]
pub struct GatewayArgs {
    /// The gateway's configuration file (TOML); see forebay.toml(5) and docs/gateway.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command: until SIGINT or SIGTERM.
pub fn run(args: &GatewayArgs) -> miette::Result<Answer> {
    // Before anything that can fail: the file may have errors, and reading it takes time.
    let saved = SavedRules::of(&args.config);
    let closed = saved.install();
    let config = load(args, &saved).inspect_err(|_| eprintln!("{closed}"))?;
    let logging = Logging::start(&config.log);
    if let Closed::Failed { .. } = closed {
        tracing::warn!("{closed}");
    }
    for warning in &config.warnings {
        log::warning(warning);
    }
    let [end, reload] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    for (signal, seen) in [(SIGINT, &end), (SIGTERM, &end), (SIGHUP, &reload)] {
        flag::register(signal, seen.clone()).into_diagnostic().wrap_err("cannot register signal handlers")?;
    }
    let caretaker = Caretaker::open(&config, &Machine, Some(saved))?;
    let mut process = Process { args, logging, end, reload, clock: Clock::start(), caretaker };
    let ended = serve(&mut process, config);
    if ended.is_err() {
        process.caretaker.say_that_they_stay();
    }
    ended.map(|()| Answer::Yes)
}

/// What the loop needs of this process, and what asks it to end or to read its file again.
struct Process<'a> {
    args: &'a GatewayArgs,
    logging: Logging,
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    clock: Clock,
    caretaker: Caretaker,
}

impl serving::Process for Process<'_> {
    fn read(&mut self) -> Result<Config, SasErrors> {
        config::load(&self.args.config).inspect(|config| {
            self.logging.change(&config.log);
            config.warnings.iter().for_each(log::warning);
        })
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn unix_time(&self) -> fn() -> StdDuration {
        unix_time
    }

    fn seed(&mut self) -> u64 {
        seed()
    }
}

impl Process<'_> {
    fn file(&self) -> String {
        self.args.config.display().to_string()
    }

    fn is_ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }
}

/// Runs the gateway until SIGINT or SIGTERM, or until it fails.
fn serve(process: &mut Process<'_>, config: Config) -> miette::Result<()> {
    let (pair, cluster) = (config.pair.clone(), config.cluster.clone());
    let sas = config.sas.entries.len();
    let caretaker = process.caretaker.clone();
    let mut serving = Serving::start(process, config, caretaker)?;
    let mut told = Told::start(&serving, process)?;
    match (pair, cluster) {
        (Some(pair), _) => tracing::info!(number = pair.number, "gateway of a pair started; it stands by"),
        (_, Some(cluster)) => tracing::info!(name = cluster.name, sas, "gateway of a cluster started"),
        _ => tracing::info!(sas, "gateway started"),
    }
    let mut ends = false;
    loop {
        if process.is_ended() && !std::mem::replace(&mut ends, true) {
            tell(&[NotifyState::Stopping]);
            serving.end(process.clock.now());
        }
        let step = serving.step(process)?;
        let wait = step.wait.min(LOOK_EVERY);
        if told.happened(step, &serving)? {
            return Ok(());
        }
        let request = told.control_plane.reload_request();
        if !ends && (process.reload.swap(false, Ordering::Relaxed) || request.is_some()) {
            tell_of_reload();
            let outcome = reload(&mut serving, process);
            told.control_plane.reloaded(&outcome);
            told.control_plane.show(serving.service());
            // Who asked may have gone.
            request.map(|request| request.try_send(outcome));
            tell(&[NotifyState::Ready]);
        }
        told.are_alive(&serving, process.clock.now());
        rest(StdDuration::from_nanos(wait.as_nanos()));
    }
}

/// What others are told of the gateway: who asks by the control socket, the service manager, and who reads the log.
struct Told {
    control_plane: ControlPlane,
    /// Of the data plane, if one runs.
    watchdog: Option<Watchdog>,
    alive: Time,
}

impl Told {
    /// Begins to answer, drops the privileges that starting took, and tells the service manager.
    fn start(serving: &Serving, process: &Process<'_>) -> miette::Result<Told> {
        let config = serving.config().ok_or_else(|| miette::miette!("there is no configuration"))?;
        let mut control_plane = ControlPlane::start(config, process, serving.others());
        control_plane.show(serving.service());
        let watchdog = serving.service().map(watchdog).transpose()?;
        let kept = privileges::settle(config).into_diagnostic().wrap_err("cannot drop privileges")?;
        tell(&[NotifyState::Ready]);
        let capabilities = kept.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
        tracing::info!(%capabilities, "privileges dropped");
        Ok(Told { control_plane, watchdog, alive: Time::ZERO })
    }

    /// Something has happened, or not. Whether it was the end.
    fn happened(&mut self, Step { event, refused, .. }: Step, serving: &Serving) -> miette::Result<bool> {
        if let Some(report) = refused {
            tracing::error!("the last version of the file without errors is used: {report:?}");
        }
        let Some(event) = event else { return Ok(false) };
        self.control_plane.show(serving.service());
        match event {
            Event::Started => {
                self.watchdog = serving.service().map(watchdog).transpose()?;
                let sas = serving.config().map_or(0, |config| config.sas.entries.len());
                tracing::info!(sas, "data plane started");
            }
            Event::Stopped => {
                self.watchdog = None;
                tracing::info!("data plane stopped");
            }
            Event::StandsBy => tracing::info!("this gateway stands by"),
            Event::Serves { .. } | Event::Resolved => {}
            Event::Unserved(error) => {
                tracing::error!(
                    "cannot serve other shares, or use other addresses of peers: {:?}",
                    Report::new(error)
                );
            }
            Event::Ended => {
                tracing::info!("gateway stopped");
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells the service manager that the process lives, where no worker does it.
    fn are_alive(&mut self, serving: &Serving, now: Time) {
        if serving.service().is_none() && now.since(self.alive) >= ALIVE_EVERY {
            self.alive = now;
            tell(&[NotifyState::Watchdog]);
        }
    }
}

fn watchdog(service: &Service) -> miette::Result<Watchdog> {
    Watchdog::start(service.workers().clone()).into_diagnostic().wrap_err("cannot start the watchdog")
}

#[allow(clippy::disallowed_methods)] // the command line may wait
fn rest(time: StdDuration) {
    std::thread::sleep(time);
}

/// Time since the Unix epoch; zero on a clock that stands before.
#[allow(clippy::disallowed_methods)] // the command line is where time comes from
fn unix_time() -> StdDuration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// The file, as a reload will read it: by the user that the gateway has become.
fn load(args: &GatewayArgs, saved: &SavedRules) -> miette::Result<Config> {
    let config = config::load(&args.config)?;
    if !privileges::prepare(&config, saved.path().parent())? {
        return Ok(config);
    }
    let user = config.privileges.user.unwrap_or_default();
    let again = config::load(&args.config).map_err(Report::new);
    again.wrap_err_with(|| {
        format!("cannot read the configuration as the user `{user}`, which every reload requires")
    })
}

/// Tells the service manager, if there is one that wants to know.
fn tell(state: &[NotifyState<'_>]) {
    // No service manager is no error, and one that cannot be notified must not delay packets.
    let _ = sd_notify::notify(false, state);
}

/// Tells it that the file is read again: with `Type=notify-reload` it wants to know since when.
fn tell_of_reload() {
    let now = NotifyState::monotonic_usec_now().ok();
    let state: Vec<NotifyState<'_>> = std::iter::once(NotifyState::Reloading).chain(now).collect();
    tell(&state);
}

/// Names of SAs for the log: so many that a line can be read, and how many more there are.
fn names(all: &[String]) -> String {
    const MOST: usize = 16;
    let some = all.iter().take(MOST).cloned().collect::<Vec<_>>().join(" ");
    match all.len().saturating_sub(MOST) {
        0 if all.is_empty() => "none".to_owned(),
        0 => some,
        more => format!("{some} and {more} more"),
    }
}

/// Reads the file again, and says what is different.
fn reload(serving: &mut Serving, process: &mut Process<'_>) -> ReloadDoc {
    let before = serving.service().map(|service| service.config().clone());
    match serving.reload(process) {
        Ok((changes, warnings)) => {
            match (before, serving.config()) {
                (Some(before), Some(after)) => log_changes(&changes, &before, after),
                (_, after) => {
                    let sas = after.map_or(0, |after| after.sas.entries.len());
                    tracing::info!(sas, "configuration reloaded; this gateway stands by");
                }
            }
            for setting in &changes.restart {
                tracing::warn!("{setting}: restart required");
            }
            let mut outcome = control_plane::outcome(&changes, &warnings);
            outcome.warnings.extend(control_plane::guard(&process.caretaker.document()));
            outcome
        }
        Err(report) => match report.downcast::<SasErrors>() {
            Ok(errors) => {
                let outcome = control_plane::refused(&errors);
                tracing::error!("configuration rejected, nothing changed: {:?}", Report::new(errors));
                outcome
            }
            Err(report) => match report.downcast::<StartError>() {
                Ok(StartError::InPart { changes, error }) => {
                    if let (Some(before), Some(after)) = (before, serving.config()) {
                        log_changes(&changes, &before, after);
                    }
                    for setting in &changes.restart {
                        tracing::warn!("{setting}: restart required");
                    }
                    let report = Report::new(*error);
                    tracing::error!("reload failed in part; the file is in use: {report:?}");
                    control_plane::failed_in_part(&changes, &report)
                }
                Ok(error) => reload_failed(&Report::new(error)),
                Err(report) => reload_failed(&report),
            },
        },
    }
}

fn reload_failed(report: &Report) -> ReloadDoc {
    tracing::error!("reload failed, nothing changed: {report:?}");
    control_plane::failed(report)
}

fn log_changes(changes: &Changes, before: &Config, after: &Config) {
    let name = |config: &Config, place: usize| config.sas.entries.get(place).map(|sa| sa.config.name.clone());
    let added = (0..).zip(&changes.kept).filter(|(_, kept)| kept.is_none());
    let added: Vec<_> = added.filter_map(|(place, _)| name(after, place)).collect();
    let removed: Vec<_> = changes.removed.iter().filter_map(|&place| name(before, place)).collect();
    let (added, removed) = (names(&added), names(&removed));
    tracing::info!(added, removed, policies = changes.policies, "configuration reloaded");
}
