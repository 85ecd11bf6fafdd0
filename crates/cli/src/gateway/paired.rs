//! A gateway of a pair: a process that stands by or runs the data plane, as the pair decides.
//!
//! Standing by, it has the processors open, so that a take-over is only a start of the data plane.
//! It keeps the capabilities that starting takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use forebay_config::{self as config, Changes, Config};
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::control::PairDoc;
use forebay_gateway::service::{Machine, Service, SharedAddresses, StartError, claim};
use forebay_pair::{Pair, PairStatus, Verdict};
use forebay_sas::{Finding, SasErrors};
use forebay_state::Role;
use forebay_terminal::Answer;
use forebay_terminal::host::seed;
use forebay_time::Duration;
use miette::{Context, IntoDiagnostic};
use sd_notify::NotifyState;

use super::control_plane::{self, ControlPlane, Others};
use super::watchdog::Watchdog;
use super::{Attendant, Process, processors, rest, store, tell, tell_of_reload, unix_time};

/// Between two looks at what the pair decides.
const LOOK_EVERY: StdDuration = StdDuration::from_millis(5);

/// Runs the command: until SIGINT or SIGTERM.
pub fn run(process: &Process<'_>, config: Config) -> miette::Result<Answer> {
    let Some(settings) = config.pair.clone() else { return Ok(Answer::Broken) };
    let store = store(&config)?;
    let claimed = claim(&store, Role::Pair).map_err(StartError::Ivs)?;
    let mut addresses = SharedAddresses::open(&settings.addresses)?;
    let mut ready = Ready::new(process, config)?;
    let pair = Arc::new(Pair::start(&settings, store, claimed, unix_time)?);
    let others: Others = Arc::new({
        let pair = pair.clone();
        move |status| status.pair = Some(told(&pair.status()))
    });
    let mut control_plane = ControlPlane::start(&ready.config, process, Some(others));
    process.settle(&ready.config)?;
    tracing::info!(number = settings.number, "gateway of a pair started; it stands by");
    loop {
        let active = stand_by(process, &pair, &mut ready, &control_plane);
        if !active {
            break;
        }
        addresses.add(process.clock.now())?;
        // SAs may have been replaced since, and a standby need not be told.
        if let Err(report) = ready.read_again(process) {
            tracing::error!("the last version of the file without errors is used: {report:?}");
        }
        let Ready { config, processors } = ready;
        let (mut verdict, mut last) =
            serve(process, &pair, &mut addresses, &mut control_plane, config, processors)?;
        while verdict == Verdict::Restart && !process.is_ended() {
            let Ready { config, processors } = Ready::new(process, load(process, last))?;
            (verdict, last) = serve(process, &pair, &mut addresses, &mut control_plane, config, processors)?;
        }
        addresses.remove();
        pair.stopped();
        if process.is_ended() {
            pair.resign();
            break;
        }
        ready = Ready::new(process, load(process, last))?;
        tracing::info!("this gateway stands by");
    }
    tell(&[NotifyState::Stopping]);
    tracing::info!("gateway stopped");
    Ok(Answer::Yes)
}

/// What a take-over starts with.
struct Ready {
    config: Config,
    processors: Vec<Vec<ProcessorSetup>>,
}

impl Ready {
    fn new(process: &Process<'_>, config: Config) -> miette::Result<Ready> {
        process.caretaker.configure(&config)?;
        Ok(Ready { processors: processors(&config, process.clock)?, config })
    }

    /// Goes by the file as it is now: what changed, and the file's warnings.
    ///
    /// # Errors
    /// If it cannot be used; nothing has changed then.
    fn read_again(&mut self, process: &Process<'_>) -> miette::Result<(Changes, Vec<Finding>)> {
        let mut config = config::load(&process.args.config)?;
        let warnings = std::mem::take(&mut config.warnings);
        let mut changes = Config::diff(&self.config, &config);
        if !changes.restart.is_empty() {
            self.processors = processors(&config, process.clock)?;
        }
        // The data plane starts with all others.
        changes.restart.retain(|changed| OF_PROCESS.contains(&changed.section.as_str()));
        process.caretaker.configure(&config)?;
        process.logging.change(&config.log);
        self.config = config;
        Ok((changes, warnings))
    }
}

/// Sections by which the process goes, and not its data plane.
const OF_PROCESS: [&str; 3] = ["[pair]", "[control]", "[privileges]"];

/// The file as it is now; the `last` version, if this one has errors. A pair must not end by them.
fn load(process: &Process<'_>, last: Config) -> Config {
    config::load(&process.args.config).unwrap_or_else(|errors| {
        tracing::error!(
            "the last version of the file without errors is used: {:?}",
            miette::Report::new(errors)
        );
        last
    })
}

/// Waits until the pair wants this gateway to be active; false if the process is to end. Meanwhile the file is read again
/// where that is asked for.
fn stand_by(process: &Process<'_>, pair: &Pair, ready: &mut Ready, control_plane: &ControlPlane) -> bool {
    for look in 0_u64.. {
        if process.is_ended() {
            break;
        }
        let request = control_plane.reload_request();
        if process.reload.swap(false, Ordering::Relaxed) || request.is_some() {
            tell_of_reload();
            let outcome = match ready.read_again(process) {
                Ok((changes, warnings)) => {
                    warnings.iter().for_each(super::log::warning);
                    tracing::info!(
                        sas = ready.config.sas.entries.len(),
                        "configuration reloaded; this gateway stands by"
                    );
                    control_plane::outcome(&changes, &warnings)
                }
                Err(report) => {
                    tracing::error!("configuration rejected, nothing changed: {report:?}");
                    match report.downcast_ref::<SasErrors>() {
                        Some(errors) => control_plane::refused(errors),
                        None => control_plane::failed(report.to_string()),
                    }
                }
            };
            request.map(|request| request.try_send(outcome));
            tell(&[NotifyState::Ready]);
        }
        // There are no workers whose health could be asked for.
        if look.is_multiple_of(100) {
            tell(&[NotifyState::Watchdog]);
        }
        if pair.verdict() != Verdict::Standby {
            return true;
        }
        rest(LOOK_EVERY);
    }
    false
}

/// Runs a data plane until the pair decides otherwise, or the process is to end; what the pair decides, and the file by which
/// it ran last.
fn serve(
    process: &Process<'_>,
    pair: &Pair,
    addresses: &mut SharedAddresses,
    control_plane: &mut ControlPlane,
    config: Config,
    processors: Vec<Vec<ProcessorSetup>>,
) -> miette::Result<(Verdict, Config)> {
    let (store, claimed) = pair.prepare().map_err(StartError::Ivs)?;
    let state = (store, claimed, process.caretaker.clone());
    let clock = process.clock;
    let mut service = Service::start_with(&Machine, config, processors, clock, seed(), unix_time, state)?;
    addresses.announce(clock.now());
    control_plane.tell_of(&service);
    let watchdog =
        Watchdog::start(service.workers().clone()).into_diagnostic().wrap_err("cannot start the watchdog")?;
    tracing::info!(sas = service.config().sas.entries.len(), "data plane started");
    process.serve(&mut service, control_plane, &mut Active { pair, addresses, clock });
    drop(watchdog);
    control_plane.tell_of_none();
    let (is_running, last) = (service.is_running(), service.config().copy());
    service.stop().into_diagnostic().wrap_err("a worker thread failed")?;
    if !is_running {
        return Err(miette::miette!("the data plane ended by itself"));
    }
    tracing::info!("data plane stopped");
    Ok((pair.verdict(), last))
}

/// The active gateway of a pair.
struct Active<'a> {
    pair: &'a Pair,
    addresses: &'a mut SharedAddresses,
    clock: Clock,
}

impl Attendant for Active<'_> {
    fn look(&mut self, _service: &mut Service) -> bool {
        let every = self.pair.announce_every().map(|every| Duration::from_millis(every.as_millis() as u64));
        self.addresses.look_after(self.clock.now(), every);
        self.pair.verdict() == Verdict::Active
    }
}

/// The status of a pair in the words of the control socket.
fn told(status: &PairStatus) -> PairDoc {
    PairDoc {
        number: status.number,
        role: status.role.word().to_owned(),
        term: status.term,
        links: status.links,
        peer: status.peer.map(|role| role.word().to_owned()),
        in_sync: status.in_sync,
        waiting: status.waiting,
        noted: status.noted,
        lag_s: status.takes.as_secs_f64(),
        take_overs: status.take_overs,
        last_take_over: status.last.map(|(at, _)| at.as_secs_f64()),
        reason: status.last.map(|(_, why)| why.to_owned()),
        waits: status.waits.map(str::to_owned),
        refused: status.refused,
    }
}
