//! The start of a gateway: from the file to running workers.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use forebay_engine::{Clock, Engine, Limits, PendingSpiLimits, ProcessorSetup, RUNNING_CORE, Settings};
use forebay_ipsec::Ipsec;
use forebay_scheduler::Policy;
use forebay_time::Duration;

use super::caretaker::Caretaker;
use super::export::{self, KeyExport};
use super::host::Host;
use super::links::{OutsideLinks, inside, mss_clamp, outside, receive_queues};
use super::mirror::{Records, SyncLimits, XfrmSync};
use super::pin::pin;
use super::start_error::{StartError, link_error};
use forebay_config::{Changes, Config, KeySource, MssClamp, OutsideLink, STATE_FILES, Xfrm, deal};
use forebay_privileges as privileges;
use forebay_sas::esp_sa;
use forebay_state::numbers::Keeper;
use forebay_state::recorder::Recorder;
use forebay_state::windows;
use forebay_state::{IvStore, IvStoreError, Lock, Role, SaRecords, Taken};
use forebay_taps::{Side, Taps, TapsStatus};
use forebay_worker::Workers;
use forebay_worker::installed::{self, InstallError};
use forebay_worker::{Handle, Outside, OwnSettings, Setup, Steps, Worker};

/// A running gateway.
pub struct Service {
    config: Arc<Config>,
    workers: Workers,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Set by a worker that has failed: it moves no more packets, and waits for [`Service::stop`].
    failed: Arc<AtomicBool>,
    store: IvStore,
    records: SaRecords,
    caretaker: Caretaker,
    /// Whether the caretaker is this gateway's, and not its process's.
    is_owner: bool,
    xfrm_sync: Option<XfrmSync>,
    /// The workers and what keeps their numbers, where the host has no threads for them.
    steps: Vec<Steps>,
    keepers: Vec<Keeper>,
    window_keeper: Option<windows::Keeper>,
    taps: Taps,
    /// Of the keys that the follower has.
    exported: Arc<KeyExport>,
    /// An engine has refused the last version of the file, and there is nothing of any.
    is_empty: bool,
    /// No other gateway records in its state directory.
    _claim: Lock,
}

/// How often the claim of a state directory is tried again, and the time between two attempts.
const CLAIMS: (u32, std::time::Duration) = (100, std::time::Duration::from_millis(30));

/// Claims the state directory for a gateway in this role. One that was killed a moment ago may hold it until the system has ended it.
///
/// # Errors
/// As [`IvStore::claim`] and [`IvStore::enter`].
pub fn claim(store: &IvStore, role: Role) -> Result<Lock, IvStoreError> {
    let claimed = claim_alone(store)?;
    store.enter(role)?;
    Ok(claimed)
}

#[allow(clippy::disallowed_methods)] // what is waited for is the end of another process
fn claim_alone(store: &IvStore) -> Result<Lock, IvStoreError> {
    for attempt in 0..CLAIMS.0 {
        match store.claim() {
            Err(IvStoreError::InUse { .. }) => {
                if attempt == 0 {
                    tracing::info!("another gateway has the state directory; waiting up to 3 s for its end");
                }
                std::thread::sleep(CLAIMS.1);
            }
            claimed => return claimed,
        }
    }
    store.claim()
}

impl Service {
    /// Starts a gateway by `config` on a host, such as [`Machine`](crate::service::Machine). Each of its
    /// [`workers`] has a list of processors, as [`deal`] distributes them,
    /// the running core first. `seed` must be a number that no other party can know; `unix_time` returns the time
    /// since the Unix epoch.
    ///
    /// # Errors
    /// See [`StartError`]; what was opened is closed again.
    pub fn start_on(
        host: &dyn Host,
        config: Config,
        processors: Vec<Vec<ProcessorSetup>>,
        clock: Clock,
        seed: u64,
        unix_time: fn() -> std::time::Duration,
    ) -> Result<Service, StartError> {
        // Before there is anything that it is to guard.
        let caretaker = Caretaker::open(&config, host, None)?;
        let state = || {
            check(&config)?;
            let store = match &config.keys.state {
                Some(directory) => IvStore::on(directory, host.files()),
                None => IvStore::of_user().map_err(StartError::Ivs)?,
            };
            let claim = claim(&store, Role::Alone).map_err(StartError::Ivs)?;
            Ok((store, claim, caretaker.clone()))
        };
        let start = state()
            .and_then(|state| Service::start_with(host, config, processors, clock, seed, unix_time, state));
        let service = start.inspect_err(|_| caretaker.say_that_they_stay())?;
        Ok(Service { is_owner: true, ..service })
    }

    /// The same in a process that looks after its host already, and has claimed the directory of records, as a gateway of a
    /// pair does while it stands by.
    ///
    /// # Errors
    /// As [`Service::start_on`].
    // Long because every part of a gateway needs those before it.
    pub fn start_with(
        host: &dyn Host,
        config: Config,
        processors: Vec<Vec<ProcessorSetup>>,
        clock: Clock,
        seed: u64,
        unix_time: fn() -> std::time::Duration,
        (store, claim, caretaker): (IvStore, Lock, Caretaker),
    ) -> Result<Service, StartError> {
        check(&config)?;
        caretaker.attach(&config, host)?;
        caretaker.configure(&config)?;
        let mut taps = Taps::new(unix_time);
        let (mut workers, handles) = set_up(host, &config, processors, &mut taps, clock, seed)?;
        let changes = Changes::all(&config);
        let no_worker = || StartError::System(io::Error::other("no worker"));
        let first = handles.first().cloned().ok_or_else(no_worker)?;
        let (records, window_keeper) =
            SaRecords::new(store.clone(), unix_time, host.sequence_block(), first.clone());
        let window_keeper = match host.has_threads() {
            true => window_keeper.start().map(|()| None).map_err(StartError::System)?,
            false => Some(window_keeper),
        };
        if let KeySource::Xfrm(_) = config.keys.source {
            records.open_all().map_err(StartError::Ivs)?;
        }
        let mut opened = records.open(&config, &changes, unix_time()).map_err(StartError::Ivs)?;
        let mut keepers = Vec::new();
        let worker = workers.first_mut().ok_or_else(no_worker)?;
        if let KeySource::Static { .. } = config.keys.source {
            let keeper = records.numbers_keeper(worker, first);
            match host.has_threads() {
                true => keeper.start().map_err(StartError::System)?,
                false => keepers.push(keeper),
            }
        }
        worker.install(&config.sas, &changes, opened.take_ivs()).map_err(StartError::Install)?;
        records.attend(worker);
        records.give(worker, &config.sas, opened, &Taken::default());
        for other in &mut workers[1..] {
            // Every core is to do every SA.
            let checked = other.check(&config.sas, &changes);
            checked.map_err(|error| StartError::Install(InstallError::Keys(error)))?;
        }
        caretaker.route(&config)?;
        let exported = Arc::new(KeyExport::default());
        export(&config, &exported, store.directory())?;
        taps.change(config.taps.as_ref());
        let mut service = Service {
            config: Arc::new(config),
            workers: Workers::new(handles),
            threads: vec![],
            failed: Arc::default(),
            store,
            records,
            caretaker,
            is_owner: false,
            xfrm_sync: None,
            steps: vec![],
            keepers,
            window_keeper,
            taps,
            exported,
            is_empty: false,
            _claim: claim,
        };
        if !host.has_threads() {
            let handles = service.workers.handles().iter();
            service.steps = handles.zip(workers).map(|(handle, worker)| handle.stepped(worker)).collect();
        } else if let Err(error) = service.begin(workers, unix_time) {
            // Those that have begun end.
            let _ = service.stop();
            return Err(error);
        }
        Ok(service)
    }

    /// Lets the workers run, each on its CPU.
    fn begin(
        &mut self,
        workers: Vec<Worker>,
        unix_time: fn() -> std::time::Duration,
    ) -> Result<(), StartError> {
        let config = self.config.clone();
        let cpus = config.pinned();
        for (place, mut worker) in workers.into_iter().enumerate() {
            let cpu = cpus.get(place).copied();
            let (told, begun) = std::sync::mpsc::channel();
            let failed = self.failed.clone();
            let run = move || {
                privileges::give_up();
                let pinned = pin(cpu);
                let may_run = pinned.is_ok();
                let _ = told.send(pinned);
                if may_run { worker.run_until_stopped(&failed) } else { Ok(()) }
            };
            // Without a number the only one, and the first.
            let number = if place == 0 { String::new() } else { format!("-{place}") };
            let builder = std::thread::Builder::new().name(format!("forebay-loop{number}"));
            self.threads.push(builder.spawn(run).map_err(StartError::System)?);
            let begun = begun
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the worker thread ended during start")));
            begun.map_err(StartError::System)?;
        }
        if let KeySource::Xfrm(options) = &config.keys.source {
            let most = SyncLimits { sas: config.limits.sas, policies: config.limits.policies };
            let on_policies = self.caretaker.on_policies(&config);
            let (workers, exported) = (self.workers.clone(), self.exported.clone());
            let used_ivs = self.store.used_ivs().map_err(StartError::Ivs)?;
            let records = Records { windows: self.records.windows().clone(), used_ivs };
            let started = XfrmSync::start(options, workers, unix_time, on_policies, exported, most, records);
            self.xfrm_sync = Some(started.map_err(link_error("the kernel's SAs (XFRM)"))?);
        }
        Ok(())
    }

    /// Where the host has no threads: runs worker number `worker` for a poll iteration, and waits after it if nothing
    /// moved.
    ///
    /// # Errors
    /// What [`Worker::step`] fails with: then the gateway has ended.
    pub fn step(&mut self, worker: usize) -> io::Result<()> {
        self.steps.get(worker).and_then(|steps| steps.with(Worker::step)).unwrap_or(Ok(()))
    }

    /// Where the host has no threads: the workers themselves.
    pub fn steps(&self) -> &[Steps] {
        &self.steps
    }

    /// Where the host has no threads: reserves and notes the numbers that SAs have asked for, and with `again` does what
    /// the threads do from time to time: tries what has failed before, and lowers what is too far ahead.
    pub fn keep_numbers(&mut self, again: bool) {
        self.keepers.iter_mut().for_each(|keeper| keeper.look(again));
        self.window_keeper.iter_mut().for_each(|keeper| keeper.look(again));
    }

    /// The file by which it runs.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The address of the peer of each SA of the file as it is now: that of an SA in UDP may be another than the file's, because
    /// peers that move are followed. Nothing if the worker has ended.
    pub fn peers(&self) -> Vec<Option<IpAddr>> {
        let peers = |worker: &mut Worker| {
            let sessions = worker.sessions().to_vec();
            let sad = worker.engine().sad();
            sessions.into_iter().map(|session| sad.config(session).map(|config| config.remote)).collect()
        };
        self.workers.first(peers).unwrap_or_default()
    }

    /// The ways to its loops.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// What looks after the host.
    pub fn caretaker(&self) -> &Caretaker {
        &self.caretaker
    }

    /// The status of the captures.
    pub fn taps(&self) -> TapsStatus {
        self.taps.told()
    }

    /// Goes by another version of the file from now on, as far as that is possible; says what is different.
    ///
    /// # Errors
    /// If there are no IVs for new SAs, or SAs or policies that an engine would refuse: then nothing has changed. If one
    /// refuses them that has found no fault before, there are none any more until the next reload. If the guard, a route or the
    /// export of keys fails, SAs and policies are the new ones ([`StartError::InPart`]).
    pub fn reload(&mut self, config: Config, now_ns: u64) -> Result<Changes, StartError> {
        let ended = || StartError::System(io::Error::other("the worker thread has ended"));
        check(&config)?;
        installed::check(&config.sas).map_err(StartError::Install)?;
        let changes = match self.is_empty {
            false => Config::diff(&self.config, &config),
            true => Changes::all(&config),
        };
        let config = Arc::new(config);
        let (file, what) = (config.clone(), changes.clone());
        let checked = self.workers.ask(move |worker| worker.check(&file.sas, &what)).ok_or_else(ended)?;
        for checked in checked {
            checked.map_err(|error| StartError::Install(InstallError::Keys(error)))?;
        }
        self.settle_lives()?;
        let now = std::time::Duration::from_nanos(now_ns);
        let mut opened = self.records.open(&config, &changes, now).map_err(StartError::Ivs)?;
        let (file, what, records) = (config.clone(), changes.clone(), self.records.clone());
        let changed = self.workers.change(move |worker| {
            let taken = records.take(worker, &what);
            let installed = worker.install(&file.sas, &what, opened.take_ivs());
            records.give(worker, &file.sas, opened, &taken);
            (installed, taken)
        });
        let (changed, taken) = changed.ok_or_else(ended)?;
        self.records.settle(&self.config.sas, &taken);
        let what = changes.clone();
        self.workers.ask(move |worker| worker.set_biases(&what)).ok_or_else(ended)?;
        self.is_empty = changed.is_err();
        if self.is_empty {
            let records = self.records.clone();
            self.workers.change(move |worker| records.uninstall(worker)).ok_or_else(ended)?;
            self.records.forget(&config.sas);
        }
        changed.map_err(StartError::Install)?;
        // From here on it is by this file that it runs, whatever else fails.
        self.config = config;
        if changes.taps || self.taps.have_failed() {
            self.taps.change(self.config.taps.as_ref());
        }
        let guarded = self.caretaker.configure(&self.config);
        let routed = self.caretaker.route(&self.config);
        let exported = export(&self.config, &self.exported, self.store.directory());
        match guarded.and(routed).and(exported) {
            Ok(()) => Ok(changes),
            Err(error) => Err(StartError::InPart { changes: Box::new(changes), error: Box::new(error) }),
        }
    }

    /// Notes how far SAs have come in their lives.
    fn settle_lives(&self) -> Result<(), StartError> {
        let (records, config) = (self.records.clone(), self.config.clone());
        let lives = self.workers.first(move |worker| records.lives(worker, &config.sas));
        let lives =
            lives.ok_or_else(|| StartError::System(io::Error::other("the worker thread has ended")))?;
        self.records.settle_lives(&self.config.sas, &lives);
        Ok(())
    }

    /// Ends the workers, and waits for that; packets in flight are lost. What SAs have sent and received is saved, also
    /// that of a worker that failed.
    ///
    /// # Errors
    /// What the follower of the kernel's SAs or the first loop that failed ended with.
    pub fn stop(mut self) -> io::Result<()> {
        let followed = self.xfrm_sync.take().map_or(Ok(()), XfrmSync::stop);
        // With the loops the interface goes.
        self.caretaker.detach();
        let followed = followed
            .map_err(|error| io::Error::new(error.kind(), format!("XFRM synchronization stopped: {error}")));
        // The others first, so that nothing is received behind what is taken back.
        let others = self.workers.handles().iter().skip(1);
        let stopped: Vec<_> = others.map(|worker| worker.post(Worker::stop)).collect();
        stopped.into_iter().for_each(|stopped| _ = stopped.recv());
        let (records, config) = (self.records.clone(), self.config.clone());
        // From one that has panicked nothing can be taken back.
        let taken = self.workers.first(move |worker| {
            worker.stop();
            records.take_all(worker, &config.sas)
        });
        self.records.end(&self.config.sas, &taken.unwrap_or_default());
        self.steps.iter().for_each(Steps::end);
        let ended = self.threads.into_iter().enumerate().map(|(place, thread)| {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
            ended.map_err(|error| io::Error::new(error.kind(), format!("worker thread {place}: {error}")))
        });
        // All of them, whatever one says.
        let ended: io::Result<()> = ended.collect::<Vec<_>>().into_iter().collect();
        let ended = followed.and(ended);
        // What a loop failed with is no reason to let packets out in the clear.
        if ended.is_ok() && self.is_owner {
            self.caretaker.end();
        }
        ended
    }

    /// Whether all worker threads run, and the follower of the kernel's SAs where there is one; SAs are not
    /// maintained without them.
    pub fn is_running(&self) -> bool {
        !self.failed.load(Ordering::Acquire)
            && !self.threads.iter().any(JoinHandle::is_finished)
            && self.xfrm_sync.as_ref().is_none_or(XfrmSync::is_running)
    }
}

/// The workers with their engines and links, and the ways to them.
fn set_up(
    host: &dyn Host,
    config: &Config,
    processors: Vec<Vec<ProcessorSetup>>,
    taps: &mut Taps,
    clock: Clock,
    seed: u64,
) -> Result<(Vec<Worker>, Vec<Handle>), StartError> {
    let count = processors.len();
    let inside = inside(host, config, count)?;
    let OutsideLinks { links: outside, keepalive, icmp } = outside(host, config, count, clock)?;
    // The first worker's.
    let mut icmp = Some(icmp);
    let dealt = deal(config, count);
    let mut setups: Vec<Setup> = vec![];
    for (place, ((processors, (inside, outside)), dealt)) in
        processors.into_iter().zip(inside.into_iter().zip(outside)).zip(dealt).enumerate()
    {
        let settings = settings(config, &dealt, seed);
        let engine = match setups.first() {
            Some(first) => first.engine.beside(place as u32, processors, settings, clock),
            None => {
                let mut ipsec = Ipsec::seeded(seed);
                if let KeySource::Xfrm(Xfrm { policies: true, .. }) = &config.keys.source {
                    // The kernel's policies decide, and none of them is a decision too.
                    ipsec.require_policies();
                }
                Engine::new(ipsec, &[], processors, settings, clock)
            }
        };
        let inside = inside.map_link(|name, link| taps.tapped(Side::Inside, name, link));
        let mut tapped = |name: &str, link| taps.tapped(Side::Outside, name, link);
        let tap = |one: Outside| Outside { port: one.port.map_link(&mut tapped), ..one };
        setups.push(Setup {
            engine: engine.map_err(StartError::Engine)?,
            inside,
            outside: outside.into_iter().map(tap).collect(),
            icmp: icmp.take().map_or_else(Vec::new, |mut icmp| {
                if config.outside.iter().any(|one| !matches!(one.link, OutsideLink::Dpdk { .. })) {
                    icmp.extend(host.icmp());
                }
                icmp
            }),
            own: OwnSettings {
                mss_clamp: mss_clamp(config),
                mss_by_path: config.inside.mss_clamp == MssClamp::Auto,
                keepalive,
                audit: if config.log.audit {
                    (config.log.audit_rate, config.log.audit_burst)
                } else {
                    (0, 0)
                },
                window_waits: config.scheduler.scheduling.timeout.is_some(),
                processors: dealt,
            },
            wait: host.wait(place),
        });
    }
    Worker::all(setups).map_err(StartError::System)
}

/// How many cores move packets by a file, on this machine.
///
/// # Errors
/// If `pin` does not go with them.
pub fn workers(config: &Config) -> Result<usize, StartError> {
    let workers = config.workers(receive_queues);
    let checked = config.check_workers(workers);
    checked.map_err(|(what, hint)| StartError::Lacking(format!("{what}: {hint}")))?;
    Ok(workers)
}

/// The settings of an engine with those of the processors that were dealt out to it.
fn settings(config: &Config, dealt: &[usize], seed: u64) -> Settings {
    let mut scheduling = config.scheduler.scheduling.clone();
    // What the file says of a processor that another engine has, the running core does here.
    let here = |place: usize| dealt.iter().position(|&one| one == place).unwrap_or(RUNNING_CORE);
    match &mut scheduling.policy {
        Policy::Single { processor } => *processor = here(*processor),
        Policy::SizeThreshold { small, large, .. } => (*small, *large) = (here(*small), here(*large)),
        // Others name no processor.
        _ => {}
    }
    Settings {
        scheduling,
        limits: Limits { pending_spi: pending_spi(config), ..config.limits.engine.clone() },
        order: config.scheduler.order,
        addresses: config.inside.answer,
        seed,
    }
}

/// What is more than the file itself allows.
fn check(config: &Config) -> Result<(), StartError> {
    let (sas, policies) = (config.sas.entries.len(), config.sas.policies.len());
    if sas > config.limits.sas || policies > config.limits.policies {
        let (most_sas, most_policies) = (config.limits.sas, config.limits.policies);
        let what = format!(
            "{sas} SAs and {policies} policies, [limits] allows {most_sas} and {most_policies}: raise `sas`, `policies`"
        );
        return Err(StartError::Lacking(what));
    }
    let nowhere = |entry: &&forebay_sas::SaEntry| entry.config.remote.is_unspecified();
    if let Some(entry) = config.sas.entries.iter().find(nowhere) {
        let name = entry.remote_name.as_ref().map_or("", |name| name.as_str());
        let what = format!(
            "SA {}: the host name `{name}` of its peer is not resolved here: write its address",
            entry.config.name
        );
        return Err(StartError::Lacking(what));
    }
    Ok(())
}

/// Writes the keys of all SAs for Wireshark, if that is wanted; those of the kernel's are left to who follows them.
///
/// # Errors
/// If the file is one of the state directory, and if it cannot be written.
fn export(config: &Config, exported: &KeyExport, state: &Path) -> Result<(), StartError> {
    // Where that is may be known to the environment alone, and not to the file.
    let rules = std::fs::read_dir(state).into_iter().flatten().flatten().map(|one| one.path());
    let rules = rules.filter(|path| path.extension().is_some_and(|extension| extension == "rules"));
    let used = STATE_FILES.iter().map(|name| state.join(name)).chain(rules);
    if let Err(same) = forebay_links::output::keep_apart(used, &config.esp_sa_export) {
        let what = format!("`esp_sa_export` names a file of the state directory: {same}");
        return Err(StartError::Lacking(what));
    }
    if let KeySource::Xfrm(_) = &config.keys.source {
        exported.set(config.esp_sa_export.as_deref());
        return Ok(());
    }
    let Some(path) = &config.esp_sa_export else { return Ok(()) };
    let text = esp_sa::export(&config.sas.entries);
    export::write(path, &text).map_err(link_error(format!("esp_sa_export {}", path.display())))
}

/// An IKE daemon's SA may be used by the peer before the kernel's news of it is here.
fn pending_spi(config: &Config) -> PendingSpiLimits {
    match &config.keys.source {
        KeySource::Xfrm(_) => PendingSpiLimits { packets: 256, wait: Duration::from_millis(2_000) },
        KeySource::Static { .. } => PendingSpiLimits::NONE,
    }
}
