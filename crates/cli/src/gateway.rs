//! `forebay gateway`: the running gateway.
//!
//! SIGTERM and SIGINT end it, SIGHUP makes it read its file again, and a service manager that asks for it
//! (`Type=notify-reload`) hears when it is ready, reloads and ends.

mod clustered;
mod control_plane;
mod log;
mod paired;
mod watchdog;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use clap::Args;
use forebay_config::{self as config, Config, ProcessorKind};
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::control::ReloadDoc;
use forebay_gateway::privileges;
use forebay_gateway::service::{
    Caretaker, Closed, Machine, SavedRules, Service, StartError, claim, open_processors,
};
use forebay_state::IvStore;
use miette::{Context, IntoDiagnostic};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use control_plane::ControlPlane;
use forebay_terminal::Answer;
use forebay_terminal::host::{seed, unix_ns};
use log::Logging;
use watchdog::Watchdog;

/// Between two looks at signals.
const LOOK_EVERY: StdDuration = StdDuration::from_millis(20);

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
    let process = Process { args, logging, end, reload, clock: Clock::start(), caretaker };
    let ended = match (&config.pair, &config.cluster) {
        (Some(_), _) => paired::run(&process, config),
        (None, Some(_)) => clustered::run(&process, config),
        (None, None) => alone(&process, config),
    };
    match &ended {
        Ok(_) => process.caretaker.end(),
        Err(_) => process.caretaker.say_that_they_stay(),
    }
    ended
}

/// Runs a gateway that works with no others.
fn alone(process: &Process<'_>, config: Config) -> miette::Result<Answer> {
    let clock = process.clock;
    let store = store(&config)?;
    let claimed = claim(&store, forebay_state::Role::Alone).map_err(StartError::Ivs)?;
    let processors = processors(&config, clock)?;
    let state = (store, claimed, process.caretaker.clone());
    let mut service = Service::start_with(&Machine, config, processors, clock, seed(), unix_time, state)?;
    let mut control_plane = ControlPlane::start(service.config(), process, None);
    control_plane.tell_of(&service);
    let _watchdog =
        Watchdog::start(service.workers().clone()).into_diagnostic().wrap_err("cannot start the watchdog")?;
    process.settle(service.config())?;
    tracing::info!(sas = service.config().sas.entries.len(), "gateway started");
    process.serve(&mut service, &mut control_plane, &mut Alone);
    tell(&[NotifyState::Stopping]);
    service.stop().into_diagnostic().wrap_err("a worker thread failed")?;
    tracing::info!("gateway stopped");
    Ok(Answer::Yes)
}

/// What looks after a data plane beside what every gateway does.
trait Attendant {
    /// Looks after it; false if it is to end.
    fn look(&mut self, _service: &mut Service) -> bool {
        true
    }

    /// What the data plane is to have of another version of the file.
    ///
    /// # Errors
    /// If the version cannot be used.
    fn part(&mut self, config: Config) -> miette::Result<Config> {
        Ok(config)
    }

    /// The version of the file that [`Attendant::part`] was given last is the one by which the gateway runs, or is not.
    fn changed(&mut self, _is_in_use: bool) {}
}

/// A gateway that works with no others.
struct Alone;

impl Attendant for Alone {}

/// The state directory of a file.
fn store(config: &Config) -> miette::Result<IvStore> {
    Ok(match &config.keys.state {
        Some(directory) => IvStore::new(directory),
        None => IvStore::of_user().map_err(StartError::Ivs)?,
    })
}

/// The processors of a file, for each worker its own.
fn processors(config: &Config, clock: Clock) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
    // The threads of processors, too, have no privileges, but for those that a device's own library starts.
    let takes_privileges =
        |kind: &ProcessorKind| matches!(kind, ProcessorKind::Device(device) if device.takes_privileges());
    Ok(match config.processors.iter().any(|one| takes_privileges(&one.kind)) {
        true => open_processors(config, clock)?,
        false => privileges::without(|| open_processors(config, clock))?,
    })
}

/// What outlives the data plane.
struct Process<'a> {
    args: &'a GatewayArgs,
    logging: Logging,
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    clock: Clock,
    caretaker: Caretaker,
}

impl Process<'_> {
    fn file(&self) -> String {
        self.args.config.display().to_string()
    }

    fn is_ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Drops the privileges that starting took, and tells the service manager.
    fn settle(&self, config: &Config) -> miette::Result<()> {
        let kept = privileges::settle(config).into_diagnostic().wrap_err("cannot drop privileges")?;
        tell(&[NotifyState::Ready]);
        let capabilities = kept.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
        tracing::info!(%capabilities, "privileges dropped");
        Ok(())
    }

    /// Looks after a data plane until it fails, the process is to end, or the attendant says no.
    fn serve(&self, service: &mut Service, control_plane: &mut ControlPlane, attendant: &mut dyn Attendant) {
        while service.is_running() && !self.is_ended() && attendant.look(service) {
            let request = control_plane.reload_request();
            if self.reload.swap(false, Ordering::Relaxed) || request.is_some() {
                tell_of_reload();
                let outcome = change(service, self.args, &self.logging, attendant);
                control_plane.show(service.config());
                // Who asked may have gone.
                request.map(|request| request.try_send(outcome));
                tell(&[NotifyState::Ready]);
            }
            rest(LOOK_EVERY);
        }
    }
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
    let again = config::load(&args.config).map_err(miette::Report::new);
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

/// Reads the file again; one with an error changes nothing.
fn change(
    service: &mut Service,
    args: &GatewayArgs,
    logging: &Logging,
    attendant: &mut dyn Attendant,
) -> ReloadDoc {
    let mut config = match config::load(&args.config) {
        Ok(config) => config,
        Err(errors) => {
            let outcome = control_plane::refused(&errors);
            tracing::error!("configuration rejected, nothing changed: {:?}", miette::Report::new(errors));
            return outcome;
        }
    };
    logging.change(&config.log);
    config.warnings.iter().for_each(log::warning);
    let warnings = std::mem::take(&mut config.warnings);
    let before = service.config().clone();
    let changed = attendant.part(config).and_then(|config| Ok(service.reload(config, unix_ns()?)?));
    attendant.changed(changed.is_ok());
    match changed {
        Ok(changes) => {
            let name = |config: &Config, place: usize| {
                config.sas.entries.get(place).map(|sa| sa.config.name.clone())
            };
            let added = (0..).zip(&changes.kept).filter(|(_, kept)| kept.is_none());
            let added: Vec<_> = added.filter_map(|(place, _)| name(service.config(), place)).collect();
            let removed: Vec<_> = changes.removed.iter().filter_map(|&place| name(&before, place)).collect();
            let (added, removed) = (names(&added), names(&removed));
            tracing::info!(added, removed, policies = changes.policies, "configuration reloaded");
            for setting in &changes.restart {
                tracing::warn!("{setting}: restart required");
            }
            control_plane::outcome(&changes, &warnings)
        }
        Err(report) => {
            tracing::error!("reload failed, nothing changed: {report:?}");
            control_plane::failed(report.to_string())
        }
    }
}
