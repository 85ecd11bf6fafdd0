//! The serving loop of a gateway's process: alone, of a pair, or of a cluster.
//!
//! [`Serving`] owns the data plane. It decides when the data plane starts and stops, which SAs it has, and which version of the file it
//! uses. It never waits, reads no clock of its own and handles no signals: its [`Process`] supplies the time, the file and the
//! processors, calls [`Serving::step`] repeatedly, and learns from each [`Step`] what happened and when the next step is due. The command
//! `forebay gateway` is one such process and the simulation with faults another; both step the same loop.
//!
//! The roles differ only in the trait `Role`:
//!
//! | | alone | pair | cluster |
//! |---|---|---|---|
//! | A data plane runs | always | while the gateway is active | always |
//! | SAs | all | all | those of the shares that it serves |
//! | Records are kept | here | here and at the peer | here and in etcd |
//! | Shared addresses | none | while it is active | those of the shares that it serves |
//! | At the end | | the peer takes over at once | the shares are handed over first |
//!
//! For addresses and the end, a pair is a cluster of one share. Its standby has no data plane, because
//! no store decides which records are the newest: a data plane begins after all records that the peer has sent, and restarts
//! if both gateways were active.
//!
//! The file of a gateway alone may name peers by host name. If the address of a name changes, the gateway reloads with the new address, as
//! a cluster reloads with other SAs when a share moves.

mod alone;
#[cfg(feature = "cluster")]
mod cluster;
mod names;
#[cfg(feature = "pair")]
mod pair;

use std::sync::Arc;

#[cfg(feature = "cluster")]
use forebay_cluster::{Cluster, ClusterError};
use forebay_config::{Changes, Config, ProcessorKind};
use forebay_control::StatusDoc;
use forebay_engine::{Clock, ProcessorSetup};
#[cfg(feature = "pair")]
use forebay_pair::{Pair, PairError};
use forebay_privileges as privileges;
use forebay_sas::{Finding, SasErrors};
use forebay_state::{IvStore, Lock, Role as RecordsOf};
use forebay_time::{Duration, Time};
use miette::{Context, IntoDiagnostic, Report};

use alone::Alone;

use crate::service::{
    Caretaker, Host, Machine, Service, SharedAddresses, StartError, claim, open_processors,
};

/// Time between two steps: of a gateway that serves, and of one that is on standby or hands over.
const SERVES: Duration = Duration::from_millis(20);
const STANDS_BY: Duration = Duration::from_millis(5);
/// Maximum time to hand over shares at the end.
const LEAVES_WITHIN: Duration = Duration::from_millis(4_000);

pub use names::{Resolver, SystemResolver};

/// A function that adds the other gateways of a pair or cluster to a status.
pub type Others = Arc<dyn Fn(&mut StatusDoc) + Send + Sync>;

/// The loop's interface to the process in which it runs.
pub trait Process {
    /// Reads the gateway's file as it is now.
    ///
    /// # Errors
    /// The errors of the file.
    fn read(&mut self) -> Result<Config, SasErrors>;

    /// The monotonic clock.
    fn clock(&self) -> Clock;

    /// The time since the Unix epoch.
    fn unix_time(&self) -> fn() -> std::time::Duration;

    /// A secret random number.
    fn seed(&mut self) -> u64;

    /// The machine on which the gateway runs.
    fn host(&self) -> &dyn Host {
        &Machine
    }

    /// Opens the processors of a file, separate ones for each worker. Their threads have no privileges, except those that a device's
    /// own library starts.
    ///
    /// # Errors
    /// As [`open_processors`].
    fn open_processors(&mut self, config: &Config) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
        let clock = self.clock();
        let takes_privileges =
            |kind: &ProcessorKind| matches!(kind, ProcessorKind::Device(device) if device.takes_privileges());
        match config.processors.iter().any(|one| takes_privileges(&one.kind)) {
            true => open_processors(config, clock),
            false => privileges::without(|| open_processors(config, clock)),
        }
    }

    /// The resolver of peers' host names, with a thread of its own.
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(SystemResolver)
    }

    /// Starts the pair's connection to the other gateway.
    ///
    /// # Errors
    /// As [`Pair::start`].
    #[cfg(feature = "pair")]
    fn pair(
        &mut self,
        settings: &forebay_config::Pair,
        store: IvStore,
        claim: Lock,
    ) -> Result<Arc<Pair>, PairError> {
        Pair::start(settings, store, claim, self.unix_time()).map(Arc::new)
    }

    /// Joins the cluster.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    #[cfg(feature = "cluster")]
    fn cluster(
        &mut self,
        settings: &forebay_config::Cluster,
        store: IvStore,
    ) -> Result<Arc<Cluster>, ClusterError> {
        Cluster::start(settings, store, self.unix_time()).map(Arc::new)
    }
}

/// The differences between a gateway alone, one of a pair and one of a cluster.
trait Role {
    /// Whether a data plane should start if none `runs`, and whether a running one should continue.
    fn wants_data_plane(&self, _runs: bool) -> bool {
        true
    }

    /// The part of a version of the file that a data plane gets.
    fn part(&mut self, config: Config) -> miette::Result<Config> {
        Ok(config)
    }

    /// Whether the gateway uses the version of the file that [`Role::part`] was given last.
    fn changed(&mut self, _is_in_use: bool) {}

    /// The store of a data plane that is about to start, and the lock of its directory.
    fn prepare(&mut self, now: Time) -> Result<(IvStore, Lock), StartError>;

    /// Handles the start of a data plane: it has the shared addresses, or is about to get them.
    fn started(&mut self, _process: &dyn Process) -> Result<(), StartError> {
        Ok(())
    }

    /// Maintains a running data plane.
    fn look(&mut self, _service: &mut Service, _process: &dyn Process) -> Option<Event> {
        None
    }

    /// Called repeatedly while no data plane runs and none should.
    fn stand_by(&mut self) {}

    /// Whether shares remain to be handed over, so that the end has to wait.
    fn is_leaving(&mut self) -> bool {
        false
    }

    /// The gateway has ended.
    fn leave(&mut self) {}

    /// The part of a status about the other gateways.
    fn others(&self) -> Option<Others> {
        None
    }
}

/// The error of a second start of a data plane that runs from the start of the process to its end.
fn once() -> StartError {
    StartError::Lacking("this data plane cannot start again".to_owned())
}

/// An event in a step.
#[derive(Debug)]
pub enum Event {
    /// A data plane has started.
    Started,
    /// The data plane has ended, because the other gateway is active, or for a restart.
    Stopped,
    /// The gateway is ready to take over.
    StandsBy,
    /// The data plane serves other shares.
    Serves {
        /// Whether it serves some that it did not serve before.
        more: bool,
    },
    /// Peers with host names in the file have other addresses now.
    Resolved,
    /// It cannot serve other shares, or use other addresses of peers, and tries again soon.
    Unserved(StartError),
    /// The gateway has ended.
    Ended,
}

/// The result of a step.
#[derive(Debug)]
pub struct Step {
    /// Time until the next one.
    pub wait: Duration,
    /// What happened.
    pub event: Option<Event>,
    /// The reason for which the present file is not used, if it was read; the last version without errors is used.
    pub refused: Option<Report>,
}

impl Step {
    /// A step after which the next one is due at once.
    fn done(event: Event) -> Step {
        Step { wait: Duration::ZERO, event: Some(event), refused: None }
    }
}

/// The file of a data plane that starts.
struct Ready {
    config: Config,
    processors: Vec<Vec<ProcessorSetup>>,
    /// Whether the file has to be read again.
    is_old: bool,
}

impl Ready {
    fn open(process: &mut dyn Process, caretaker: &Caretaker, config: Config) -> miette::Result<Ready> {
        let processors = process.open_processors(&config)?;
        caretaker.configure(&config)?;
        Ok(Ready { config, processors, is_old: false })
    }
}

/// A gateway's process from its start to its end. See the [module](self).
pub struct Serving {
    role: Box<dyn Role>,
    caretaker: Caretaker,
    service: Option<Service>,
    /// The file of the next data plane, while none runs.
    ready: Option<Ready>,
    /// The file of the last data plane.
    last: Option<Arc<Config>>,
    /// The deadline of handing over shares, once the gateway has to end.
    ends: Option<Time>,
}

impl Serving {
    /// Begins with `config`, on a host that `caretaker` maintains. A gateway of a pair is then on standby; others have a
    /// data plane.
    ///
    /// # Errors
    /// The reason of the failure.
    pub fn start(process: &mut dyn Process, config: Config, caretaker: Caretaker) -> miette::Result<Serving> {
        let store = match &config.keys.state {
            Some(directory) => IvStore::on(directory, process.host().files()),
            None => IvStore::of_user().map_err(StartError::Ivs)?,
        };
        let records_of = match (&config.pair, &config.cluster) {
            (Some(_), _) => RecordsOf::Pair,
            (None, Some(_)) => RecordsOf::Cluster,
            (None, None) => RecordsOf::Alone,
        };
        let claimed = claim(&store, records_of).map_err(StartError::Ivs)?;
        // Addresses that a killed gateway has left are removed before slow operations.
        let shared = config.pair.iter().flat_map(|pair| &pair.addresses);
        let addresses = SharedAddresses::open(process.host(), shared)?;
        // The others must not rely on this gateway before it can take over.
        let ready = Ready::open(process, &caretaker, config)?;
        let role = role(process, &ready.config, (store, claimed), addresses)?;
        let (service, last, ends) = (None, None, None);
        let mut serving = Serving { role, caretaker, service, ready: Some(ready), last, ends };
        if serving.role.wants_data_plane(false) {
            serving.take_over(process)?;
        }
        Ok(serving)
    }

    /// The data plane, while one runs.
    pub fn service(&self) -> Option<&Service> {
        self.service.as_ref()
    }

    /// The same, for callers that step its workers and keepers.
    pub fn service_mut(&mut self) -> Option<&mut Service> {
        self.service.as_mut()
    }

    /// The file that the gateway uses. In a cluster it has the SAs that the gateway serves.
    pub fn config(&self) -> Option<&Config> {
        let running = self.service.as_ref().map(|service| &**service.config());
        running.or(self.ready.as_ref().map(|ready| &ready.config)).or(self.last.as_deref())
    }

    /// The part of a status about the other gateways, if there are any.
    pub fn others(&self) -> Option<Others> {
        self.role.others()
    }

    /// Makes the gateway end: the following steps hand over its shares, within some seconds, and then end it.
    pub fn end(&mut self, now: Time) {
        self.ends.get_or_insert(now + LEAVES_WITHIN);
    }

    /// Does what is due.
    ///
    /// # Errors
    /// The reason for which the gateway has ended by itself.
    pub fn step(&mut self, process: &mut dyn Process) -> miette::Result<Step> {
        let is_running = self.service.as_ref().is_some_and(Service::is_running);
        let leaves = is_running && self.ends.is_some_and(|until| process.clock().now() < until);
        if self.service.is_some() && !is_running || self.ends.is_some() && !(leaves && self.role.is_leaving())
        {
            return self.finish();
        }
        let wants_one = self.role.wants_data_plane(self.service.is_some());
        match &mut self.service {
            Some(_) if !wants_one && !leaves => {
                self.stop()?;
                Ok(Step::done(Event::Stopped))
            }
            Some(service) => {
                let wait = if leaves { STANDS_BY } else { SERVES };
                Ok(Step { wait, event: self.role.look(service, process), refused: None })
            }
            None => self.without_data_plane(process, !wants_one),
        }
    }

    fn without_data_plane(&mut self, process: &mut dyn Process, stands_by: bool) -> miette::Result<Step> {
        if stands_by {
            self.role.stand_by();
        }
        let Some(ready) = &mut self.ready else {
            let (config, refused) = self.read_or_last(process)?;
            self.ready = Some(Ready::open(process, &self.caretaker, config)?);
            return Ok(Step { wait: Duration::ZERO, event: stands_by.then_some(Event::StandsBy), refused });
        };
        if stands_by {
            ready.is_old = true;
            return Ok(Step { wait: STANDS_BY, event: None, refused: None });
        }
        // SAs may have been replaced since, and a standby need not be reloaded.
        let mut refused = None;
        if ready.is_old {
            let read = process.read().map_err(Report::new);
            refused = read.and_then(|config| self.make_ready(config, process)).err();
        }
        self.take_over(process)?;
        Ok(Step { refused, ..Step::done(Event::Started) })
    }

    /// The present file, or the last version if this one has errors: errors must not end a gateway of a pair or cluster.
    fn read_or_last(&self, process: &mut dyn Process) -> miette::Result<(Config, Option<Report>)> {
        match (process.read(), &self.last) {
            (Ok(config), Some(last)) => Ok((config.until_process_restarts(last).0, None)),
            (Ok(config), None) => Ok((config, None)),
            (Err(errors), Some(last)) => Ok((last.copy(), Some(errors.into()))),
            (Err(errors), None) => Err(errors.into()),
        }
    }

    /// Uses another version of the file while no data plane runs; if that fails, nothing is changed.
    fn make_ready(&mut self, config: Config, process: &mut dyn Process) -> miette::Result<Changes> {
        let (config, waiting, mut changes) = match self.config() {
            Some(before) => {
                let (config, waiting) = config.until_process_restarts(before);
                let changes = Config::diff(before, &config);
                (config, waiting, changes)
            }
            None => {
                let changes = Changes::all(&config);
                (config, vec![], changes)
            }
        };
        match &mut self.ready {
            Some(ready) if changes.restart.is_empty() => {
                self.caretaker.configure(&config)?;
                ready.config = config;
            }
            _ => self.ready = Some(Ready::open(process, &self.caretaker, config)?),
        }
        // The data plane starts with all others.
        changes.restart = waiting;
        Ok(changes)
    }

    /// Starts a data plane.
    fn take_over(&mut self, process: &mut dyn Process) -> miette::Result<()> {
        let Some(Ready { config, processors, .. }) = self.ready.take() else { return Err(once().into()) };
        let config = self.role.part(config)?;
        let (clock, unix_time, seed) = (process.clock(), process.unix_time(), process.seed());
        let (store, claim) = self.role.prepare(clock.now())?;
        let state = (store, claim, self.caretaker.clone());
        let service = Service::start_with(process.host(), config, processors, clock, seed, unix_time, state)?;
        self.service = Some(service);
        self.role.changed(true);
        Ok(self.role.started(process)?)
    }

    /// Ends the data plane, if one runs.
    fn stop(&mut self) -> miette::Result<()> {
        let Some(service) = self.service.take() else { return Ok(()) };
        let is_running = service.is_running();
        self.last = Some(service.config().clone());
        service.stop().into_diagnostic().wrap_err("a worker thread failed")?;
        if is_running { Ok(()) } else { Err(miette::miette!("the data plane ended without a request")) }
    }

    /// Ends the gateway. After an error the host stays closed.
    fn finish(&mut self) -> miette::Result<Step> {
        let stopped = self.stop();
        self.role.leave();
        stopped?;
        self.caretaker.end();
        Ok(Step::done(Event::Ended))
    }

    /// Reloads the file, and returns the changes and the settings that require attention.
    ///
    /// # Errors
    /// The reason for which nothing was changed: [`SasErrors`] of the file, or a failure of the gateway.
    /// With [`StartError::InPart`] SAs and policies are the new ones.
    pub fn reload(&mut self, process: &mut dyn Process) -> miette::Result<(Changes, Vec<Finding>)> {
        let mut config = process.read()?;
        let warnings = std::mem::take(&mut config.warnings);
        let Some(service) = &mut self.service else {
            return Ok((self.make_ready(config, process)?, warnings));
        };
        if !config.has_source_of(service.config()) {
            // The SAs of one source cannot go on as those of the other.
            return Ok((Changes::none(service.config(), &config), warnings));
        }
        let (config, waiting) = config.until_restart(service.config());
        let now_ns = process.unix_time()().as_nanos() as u64;
        let part = self.role.part(config);
        let changed = part.and_then(|config| match service.reload(config, now_ns) {
            Err(StartError::InPart { mut changes, error }) => {
                changes.restart.clone_from(&waiting);
                Err(StartError::InPart { changes, error }.into())
            }
            changed => Ok(changed?),
        });
        let is_in_part = |report: &Report| matches!(report.downcast_ref(), Some(StartError::InPart { .. }));
        self.role.changed(changed.as_ref().map_or_else(is_in_part, |_| true));
        Ok((Changes { restart: waiting, ..changed? }, warnings))
    }
}

/// The role of a gateway according to its file.
#[cfg_attr(not(all(feature = "pair", feature = "cluster")), allow(unused_variables))]
fn role(
    process: &mut dyn Process,
    config: &Config,
    (store, claimed): (IvStore, Lock),
    addresses: SharedAddresses,
) -> miette::Result<Box<dyn Role>> {
    match (&config.pair, &config.cluster) {
        #[cfg(feature = "pair")]
        (Some(settings), _) => {
            let pair = process.pair(settings, store, claimed)?;
            Ok(Box::new(pair::Paired::new(pair, addresses)))
        }
        #[cfg(feature = "cluster")]
        (None, Some(settings)) => {
            let cluster = process.cluster(settings, store)?;
            Ok(Box::new(cluster::Sharing::new(cluster, settings, claimed)))
        }
        (None, None) => Ok(Box::new(Alone::new((store, claimed), process.resolver(), process.clock()))),
        #[allow(unreachable_patterns)] // with both features
        _ => Err(StartError::Lacking("this build has neither pairs nor clusters".to_owned()).into()),
    }
}
