//! From the file to a running gateway.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use forebay_engine::{Clock, Engine, EngineError, ProcessorSetup, RUNNING_CORE, Settings};
use forebay_ipsec::{IvRange, Protocol, Sad};
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links::{Link, interface::Interface};
use forebay_links_xdp::{Mode, Network, Take, XdpLink, XdpOptions};
use forebay_scheduler::Policy;
use forebay_time::Duration;
use forebay_wire::{Family, protocol};
use ipnet::IpNet;

use super::hand_off::HandOff;
use super::homes::{Paths, Share, homes};
use super::installed::{self, InstallError, takes_ivs};
use super::mirror::{Follower, OnPolicies};
use super::pin::pin;
use super::port::Port;
use super::worker::{Protected, Setup, Worker};
use super::workers::Workers;
use crate::config;
use crate::config::{
    Changes, Config, KeySource, MssClamp, PlainLink, ProtectedLink, Routes, Tun, Xdp, XdpMode, deal, prefixes,
};
use crate::esp_sa;
use crate::iv_store::{IvStore, IvStoreError};

/// Packets that wait for a link without room.
const QUEUE: usize = 4_096;

/// Why a gateway did not start, or did not change.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A link or interface.
    Link {
        /// Which, and what was to be done.
        what: String,
        /// Why it was not.
        error: io::Error,
    },
    /// The engine.
    Engine(EngineError),
    /// No IVs for the outbound SAs.
    Ivs(IvStoreError),
    /// An SA or policy.
    Install(InstallError),
    /// Something that this build or machine does not have.
    Lacking(String),
    /// A thread or descriptor.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Link { what, error } => write!(f, "{what}: {error}"),
            StartError::Engine(error) => error.fmt(f),
            StartError::Ivs(error) => error.fmt(f),
            StartError::Install(error) => error.fmt(f),
            StartError::Lacking(what) => f.write_str(what),
            StartError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl miette::Diagnostic for StartError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = match self {
            StartError::Ivs(error) => return error.help(),
            StartError::Link { error, .. } => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "links need CAP_NET_ADMIN and CAP_NET_RAW: run as root, or as the systemd unit does"
                }
                io::ErrorKind::AddrInUse => "somebody else has it: an IKE daemon listens on UDP 4500 too",
                io::ErrorKind::AddrNotAvailable => "no interface of this host has the address",
                io::ErrorKind::NotFound => "is there TUN in this kernel? modprobe tun",
                _ => return None,
            },
            _ => return None,
        };
        Some(Box::new(hint))
    }
}

fn link_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> StartError {
    let what = what.into();
    move |error| StartError::Link { what, error }
}

/// A running gateway.
pub struct Service {
    config: Arc<Config>,
    workers: Workers,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// The workers that have the file's SAs.
    homes: Vec<usize>,
    store: IvStore,
    follower: Option<Follower>,
    /// An engine has refused the last version of the file, and there is nothing of any.
    is_empty: bool,
}

impl Service {
    /// Starts a gateway by `config`. For each of its [`workers`] there is a list of processors, as [`deal`] says, the
    /// running core first. `seed` is a number that nobody else can know, `unix_time` tells the time since the Unix
    /// epoch.
    ///
    /// # Errors
    /// See [`StartError`]; what was opened is closed again.
    pub fn start(
        config: Config,
        processors: Vec<Vec<ProcessorSetup>>,
        clock: Clock,
        seed: u64,
        unix_time: fn() -> std::time::Duration,
    ) -> Result<Service, StartError> {
        let now_ns = unix_time().as_nanos() as u64;
        check(&config)?;
        let store = match &config.keys.state {
            Some(directory) => IvStore::new(directory),
            None => IvStore::of_user().map_err(StartError::Ivs)?,
        };
        let count = processors.len();
        let plain = plain(&config, count)?;
        let (protected, keepalive) = protected(&config, count)?;
        let hand_offs = HandOff::between(count).map_err(StartError::System)?;
        let paths = Arc::new(Paths::new(count));
        let dealt = deal(config.processors.len(), count);
        let links = plain.into_iter().zip(protected).zip(hand_offs);
        let (mut workers, mut handles) = (vec![], vec![]);
        for (place, ((processors, ((plain, protected), hand_off)), dealt)) in
            processors.into_iter().zip(links).zip(dealt).enumerate()
        {
            let settings = settings(&config, &dealt, seed);
            let engine = Engine::new(Sad::seeded(seed), &[], processors, settings, clock);
            let (worker, handle) = Worker::new(Setup {
                engine: engine.map_err(StartError::Engine)?,
                plain,
                protected,
                icmp: icmp(place == 0),
                mss_clamp: mss_clamp(&config),
                mss_by_path: config.plain.mss_clamp == MssClamp::Auto,
                keepalive,
                audit: if config.log.audit {
                    (config.log.audit_rate, config.log.audit_burst)
                } else {
                    (0, 0)
                },
                window_waits: config.scheduler.scheduling.timeout.is_some(),
                share: Share::of(place, count),
                hand_off,
                paths: paths.clone(),
                processors: dealt,
            });
            workers.push(worker);
            handles.push(handle);
        }
        let changes = Changes::all(&config);
        let homes = homes(&config.sas, count, |_| None);
        let ivs = ivs(&store, &config, &changes, &homes, count, now_ns)?;
        for ((place, worker), ivs) in workers.iter_mut().enumerate().zip(ivs) {
            worker.install(&config.sas, &homes, &changes, ivs).map_err(StartError::Install)?;
            let others = handles.iter().enumerate().filter(|(other, _)| *other != place);
            worker.meet(others.map(|(_, handle)| handle.clone()).collect());
        }
        routes(&config)?;
        export(&config)?;
        let mut service = Service {
            workers: Workers::new(handles),
            threads: vec![],
            homes,
            store,
            follower: None,
            is_empty: false,
            config: Arc::new(config),
        };
        if let Err(error) = service.begin(workers, unix_time) {
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
        let cpus = config.processors.first().map_or(&[][..], |core| core.cpus());
        for (place, mut worker) in workers.into_iter().enumerate() {
            let cpu = cpus.get(place).copied();
            let (told, begun) = std::sync::mpsc::channel();
            let run = move || {
                let pinned = pin(cpu);
                let may_run = pinned.is_ok();
                let _ = told.send(pinned);
                if may_run { worker.run() } else { Ok(()) }
            };
            let builder = std::thread::Builder::new().name(format!("forebay-loop-{place}"));
            self.threads.push(builder.spawn(run).map_err(StartError::System)?);
            let begun =
                begun.recv().unwrap_or_else(|_| Err(io::Error::other("the loop's thread ended at once")));
            begun.map_err(StartError::System)?;
        }
        if let KeySource::Xfrm(options) = &config.keys.source {
            let started = Follower::start(options, self.workers.clone(), unix_time, route_setter(&config));
            self.follower = Some(started.map_err(link_error("the kernel's SAs (XFRM)"))?);
        }
        Ok(())
    }

    /// The file by which it runs.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The ways to its loops.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Goes by another version of the file from now on, as far as that is possible; says what is different.
    ///
    /// # Errors
    /// If there are no IVs for new SAs, or SAs or policies that an engine would refuse: then nothing has changed. If one
    /// refuses them that has found no fault before, there are none any more until the next reload. If a route or the
    /// export of keys fails, SAs and policies are the new ones.
    pub fn reload(&mut self, config: Config, now_ns: u64) -> Result<Changes, StartError> {
        let ended = || StartError::System(io::Error::other("the loop has ended"));
        check(&config)?;
        installed::check(&config.sas).map_err(StartError::Install)?;
        let changes = match self.is_empty {
            false => Config::diff(&self.config, &config),
            true => Changes::all(&config),
        };
        let config = Arc::new(config);
        let count = self.workers.handles().len();
        let stays = |place: usize| changes.kept[place].and_then(|old| self.homes.get(old).copied());
        let homes = Arc::new(homes(&config.sas, count, stays));
        let (file, at, what) = (config.clone(), homes.clone(), changes.clone());
        let checked =
            self.workers.ask(move |worker| worker.check(&file.sas, &at, &what)).ok_or_else(ended)?;
        for checked in checked {
            checked.map_err(|error| StartError::Install(InstallError::Keys(error)))?;
        }
        let ivs = ivs(&self.store, &config, &changes, &homes, count, now_ns)?;
        // Each is taken once.
        let ivs: Vec<_> = ivs.into_iter().map(Mutex::new).collect();
        let (file, at, what) = (config.clone(), homes.clone(), changes.clone());
        let install = move |worker: &mut Worker| {
            let ivs = ivs
                .get(worker.share().place())
                .map(|ivs| ivs.lock().map(|mut ivs| std::mem::take(&mut *ivs)));
            worker.install(&file.sas, &at, &what, ivs.and_then(Result::ok).unwrap_or_default())
        };
        let changed: Result<Vec<()>, InstallError> =
            self.workers.change(install).ok_or_else(ended)?.into_iter().collect();
        self.is_empty = changed.is_err();
        if self.is_empty {
            self.workers.change(Worker::uninstall).ok_or_else(ended)?;
        }
        changed.map_err(StartError::Install)?;
        // From here on it is by this file that it runs, whatever else fails.
        self.config = config;
        self.homes = homes.to_vec();
        routes(&self.config)?;
        export(&self.config)?;
        Ok(changes)
    }

    /// Ends the loops, and waits for that; packets under way are lost.
    ///
    /// # Errors
    /// What the first loop that failed ended with.
    pub fn stop(self) -> io::Result<()> {
        drop(self.follower);
        self.workers.ask(Worker::stop);
        let ended = self.threads.into_iter().enumerate().map(|(place, thread)| {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("it has panicked")));
            ended.map_err(|error| io::Error::new(error.kind(), format!("the loop of core {place}: {error}")))
        });
        // All of them, whatever one says.
        ended.collect::<Vec<_>>().into_iter().collect()
    }

    /// Whether all loops run: without one of them SAs have nobody.
    pub fn is_running(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }
}

/// How many cores move packets by a file, on this machine.
///
/// # Errors
/// If the queues of its links, or `pin`, do not go together.
pub fn workers(config: &Config) -> Result<usize, StartError> {
    let workers = config.workers(receive_queues);
    let checked = config.check_workers(workers, receive_queues);
    checked.map_err(|(what, hint)| StartError::Lacking(format!("{what}: {hint}")))?;
    Ok(workers)
}

/// Receive queues of a network card; one if that cannot be told.
fn receive_queues(interface: &str) -> usize {
    let queues = std::fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    let is_receive = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("rx-"));
    queues.map_or(0, |all| all.flatten().filter(|one| is_receive(&one.file_name())).count()).max(1)
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
        limits: config.limits.engine.clone(),
        order: config.scheduler.order,
        addresses: config.plain.answer,
        seed,
    }
}

/// What the file may say and this build does not do; and what is more than the file itself allows.
fn check(config: &Config) -> Result<(), StartError> {
    let udp = |one: &config::Protected| {
        if let ProtectedLink::Udp(udp) = &one.link { Some(udp.clone()) } else { None }
    };
    let of_udp: Vec<_> = config.protected.iter().filter_map(udp).collect();
    let unbuilt = [
        (of_udp.iter().any(|udp| udp.ike_forward.is_some()), "`ike_forward`"),
        (config.taps.is_some(), "`[taps]`"),
    ];
    if let Some((_, what)) = unbuilt.iter().find(|(asked, _)| *asked) {
        return Err(lacking(&format!("{what}: this version reads it and does not do it yet")));
    }
    let (sas, policies) = (config.sas.entries.len(), config.sas.policies.len());
    if sas > config.limits.sas || policies > config.limits.policies {
        let (most_sas, most_policies) = (config.limits.sas, config.limits.policies);
        let what = format!(
            "{sas} SAs and {policies} policies, [limits] allows {most_sas} and {most_policies}: raise `sas`, `policies`"
        );
        return Err(StartError::Lacking(what));
    }
    Ok(())
}

/// Writes the keys of all SAs for Wireshark, if that is wanted, for their owner's eyes only.
fn export(config: &Config) -> Result<(), StartError> {
    let Some(path) = &config.esp_sa_export else { return Ok(()) };
    let text = esp_sa::export(&config.sas.entries);
    let write = || -> io::Result<()> {
        let aside = path.with_extension("tmp");
        let _ = std::fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&aside, path)
    };
    write().map_err(link_error(format!("esp_sa_export {}", path.display())))
}

/// IVs for the SAs that are new, for each worker those of its own.
fn ivs(
    store: &IvStore,
    config: &Config,
    changes: &Changes,
    homes: &[usize],
    workers: usize,
    now_ns: u64,
) -> Result<Vec<Vec<IvRange>>, StartError> {
    let new = config.sas.entries.iter().zip(homes).zip(&changes.kept);
    let new = new.filter(|((entry, _), kept)| kept.is_none() && takes_ivs(entry)).map(|(new, _)| new);
    let ranges = store.ranges(new.clone().map(|(entry, _)| &entry.keys), now_ns, config.keys.iv_reserve);
    let mut dealt: Vec<Vec<IvRange>> = (0..workers).map(|_| vec![]).collect();
    for ((_, &home), range) in new.zip(ranges.map_err(StartError::Ivs)?) {
        dealt[home].push(range);
    }
    Ok(dealt)
}

/// A port to programs for each worker.
fn plain(config: &Config, workers: usize) -> Result<Vec<Port>, StartError> {
    match &config.plain.link {
        PlainLink::Tun(tun) => {
            let options = TunOptions { name: tun.name.clone(), queues: workers, offloads: tun.offload };
            let name = &tun.name;
            let (interface, queues) = tun::open(&options).map_err(link_error(format!("interface {name}")))?;
            let failed = |what: &str| link_error(format!("interface {name}: {what}"));
            interface.set_mtu(tun.mtu.into()).map_err(failed("setting its MTU"))?;
            for address in &tun.addresses {
                let added = interface.add_address(address.addr(), address.prefix_len());
                added.map_err(failed(&format!("adding the address {address}")))?;
            }
            interface.set_queue_len(tun.queue_length).map_err(failed("setting the length of its queue"))?;
            interface.set_up(true).map_err(failed("setting it up"))?;
            Ok(queues.into_iter().map(|queue| Port::new(name, Box::new(queue), QUEUE)).collect())
        }
        PlainLink::Xdp(card) => {
            let network = |net: IpNet| Network { address: net.network(), prefix: net.prefix_len() };
            let take = Take::Plain { to: config.routes().into_iter().map(network).collect() };
            let links = xdp(card, take, workers)?;
            Ok(links.into_iter().map(|link| Port::new(&card.interface, Box::new(link), QUEUE)).collect())
        }
    }
}

/// The links of a card by AF_XDP, one a queue: [`workers`] has seen to it that it has as many as there are workers.
fn xdp(card: &Xdp, take: Take, workers: usize) -> Result<Vec<XdpLink>, StartError> {
    if card.queues.as_ref().is_some_and(|queues| !queues.iter().copied().eq(0..queues.len() as u32)) {
        return Err(lacking("AF_XDP takes the first queues of a card: 0, 1, ..."));
    }
    let queues = workers as u32;
    let mode = match card.mode {
        XdpMode::Auto => Mode::Best,
        XdpMode::Copy => Mode::Driver,
        XdpMode::Generic => Mode::Generic,
        XdpMode::ZeroCopy => return Err(lacking("zero-copy AF_XDP is not in this build: mode = \"auto\"")),
    };
    let options = XdpOptions { interface: card.interface.clone(), queues, take, mode, frames: card.frames };
    forebay_links_xdp::open(&options).map_err(link_error(format!("AF_XDP on {}", card.interface)))
}

fn lacking(what: &str) -> StartError {
    StartError::Lacking(what.to_owned())
}

/// The links to peers for each worker, and how long one of those in UDP stays silent.
fn protected(config: &Config, workers: usize) -> Result<(Vec<Vec<Protected>>, Option<Duration>), StartError> {
    let mut links: Vec<Vec<Protected>> = (0..workers).map(|_| vec![]).collect();
    let mut keepalive = None;
    for one in &config.protected {
        let failed = |what: String| link_error(format!("{}: {what}", one.name));
        match &one.link {
            ProtectedLink::Udp(udp) => {
                keepalive = keepalive.or(udp.keepalive);
                let local = udp.listen;
                let options = UdpOptions {
                    local,
                    workers,
                    buffer: udp.buffer,
                    offloads: udp.gso && udp.gro,
                    mark: udp.mark,
                };
                let opened = udp::open(&options).map_err(failed(format!("UDP {local}")))?;
                for (links, link) in links.iter_mut().zip(opened) {
                    let port = Port::new(&one.name, Box::new(link), QUEUE);
                    links.push(Protected { port, protocols: vec![protocol::UDP], local: Some(local.ip()) });
                }
            }
            ProtectedLink::Raw(raw) => {
                for &local in &raw.addresses {
                    for &what in &raw.protocols {
                        let (carries, number) = match what {
                            Protocol::Esp => (Carries::Esp, protocol::ESP),
                            Protocol::Ah => (Carries::Ah, protocol::AH),
                        };
                        let options =
                            RawOptions { local, carries, workers, buffer: raw.buffer, mark: raw.mark };
                        let opened = raw::open(&options)
                            .map_err(failed(format!("a raw socket of protocol {number} at {local}")))?;
                        for (links, link) in links.iter_mut().zip(opened) {
                            let name = format!("{}-{number}", one.name);
                            let port = Port::new(&name, Box::new(link), QUEUE);
                            links.push(Protected { port, protocols: vec![number], local: Some(local) });
                        }
                    }
                }
            }
            ProtectedLink::Xdp { card, ports } => {
                let take = Take::Protected { to: vec![], ports: ports.clone() };
                let opened = xdp(card, take, workers)?;
                for (queue, (links, link)) in links.iter_mut().zip(opened).enumerate() {
                    let port = Port::new(&format!("{}-{queue}", one.name), Box::new(link), QUEUE);
                    let protocols = vec![protocol::UDP, protocol::ESP, protocol::AH];
                    links.push(Protected { port, protocols, local: None });
                }
            }
        }
    }
    Ok((links, keepalive))
}

/// What tells of packets too big on their way to peers, to each worker, who knows what it has sent. Without raw sockets
/// gateways do without, which is said once: packets are as large as SAs' `mtu` says.
fn icmp(says_so: bool) -> Vec<Box<dyn Link + Send>> {
    let mut links: Vec<Box<dyn Link + Send>> = Vec::new();
    for family in [Family::V4, Family::V6] {
        match raw::open(&RawOptions::new(family, Carries::TooBig)) {
            Ok(opened) => links.extend(opened.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>)),
            Err(error) if !says_so => tracing::debug!(?family, %error, "no ICMP"),
            Err(error) => {
                tracing::warn!(?family, %error, "the gateway does not hear of smaller paths by ICMP")
            }
        }
    }
    links
}

fn mss_clamp(config: &Config) -> Option<u16> {
    match (config.plain.mss_clamp, &config.plain.link) {
        (MssClamp::Off, _) => None,
        (MssClamp::At(mss), _) => Some(mss.saturating_add(40)),
        (MssClamp::Auto, PlainLink::Tun(tun)) => Some(tun.mtu),
        (MssClamp::Auto, PlainLink::Xdp(_)) => None,
    }
}

fn routes(config: &Config) -> Result<(), StartError> {
    let PlainLink::Tun(tun) = &config.plain.link else { return Ok(()) };
    for route in config.routes() {
        add_route(&tun.name, route).map_err(link_error(format!("route to {route} by {}", tun.name)))?;
    }
    Ok(())
}

/// Routes a network to the interface; that it is routed there already is no error.
fn add_route(interface: &str, route: IpNet) -> io::Result<()> {
    match Interface::by_name(interface)?.add_route(route.network(), route.prefix_len()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// What routes to the interface the networks that the kernel's policies protect, if the file leaves that to us.
fn route_setter(config: &Config) -> OnPolicies {
    let PlainLink::Tun(Tun { name, routes: Routes::Auto, .. }) = &config.plain.link else {
        return Box::new(|_| {});
    };
    let name = name.clone();
    Box::new(move |policies| {
        for policy in policies {
            let protects = matches!(policy.action, forebay_xfrm::PolicyAction::Protect(_));
            if policy.way != forebay_xfrm::Way::Out || !protects {
                continue;
            }
            for route in prefixes(&policy.remote_ts) {
                if let Err(error) = add_route(&name, route) {
                    tracing::warn!(%route, interface = %name, %error, "no route to what a policy protects");
                }
            }
        }
    })
}
