//! From the file to a running gateway.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_engine::{Clock, Engine, EngineError, Limits, ProcessorSetup, Settings, StrangerLimits};
use forebay_ipsec::{IvRange, Protocol, Sad};
use forebay_links::Link;
use forebay_links::beside::{self, BesideOptions};
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links_xdp::{Mode, Network, Take, XdpLink, XdpOptions};
use forebay_time::Duration;
use forebay_wire::{Family, protocol};
use ipnet::IpNet;

use super::ike_forward::IkeForward;
use super::installed::{InstallError, takes_ivs};
use super::mirror::{Follower, Most, OnPolicies};
use super::numbers::Caretaker;
use super::pin::pin;
use super::port::Port;
use super::routes::RouteTable;
use super::taps::{Side, Taps, Told};
use super::worker::{Handle, Protected, Setup, Worker};
use crate::config;
use crate::config::{
    Changes, Config, KeySource, MssClamp, PlainLink, ProtectedLink, Routes, Tun, Xdp, XdpMode, prefixes,
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
                io::ErrorKind::AddrInUse => {
                    "somebody else has it: beside an IKE daemon on UDP 4500 `beside_ike = true`"
                }
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
    handle: Handle,
    thread: JoinHandle<io::Result<()>>,
    store: IvStore,
    caretaker: Caretaker,
    routes: RouteTable,
    follower: Option<Follower>,
    taps: Taps,
    /// The engine has refused the last version of the file, and has nothing of any.
    is_empty: bool,
}

impl Service {
    /// Starts a gateway by `config` on these processors, the running core first. `seed` is a number that nobody
    /// else can know, `unix_time` tells the time since the Unix epoch.
    ///
    /// # Errors
    /// See [`StartError`]; what was opened is closed again.
    pub fn start(
        config: Config,
        processors: Vec<ProcessorSetup>,
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
        let settings = Settings {
            scheduling: config.scheduler.scheduling.clone(),
            limits: Limits { strangers: strangers(&config), ..config.limits.engine.clone() },
            order: config.scheduler.order,
            addresses: config.plain.answer,
            seed,
        };
        let engine =
            Engine::new(Sad::seeded(seed), &[], processors, settings, clock).map_err(StartError::Engine)?;
        let mut taps = Taps::new(unix_time);
        let plain = plain(&config)?.map_link(|name, link| taps.tapped(Side::Plain, name, link));
        let (protected, keepalive) = protected(&config, clock)?;
        let mut tapped = |name: &str, link| taps.tapped(Side::Protected, name, link);
        let tap = |one: Protected| Protected { port: one.port.map_link(&mut tapped), ..one };
        let protected = protected.into_iter().map(tap).collect();
        let setup = Setup {
            engine,
            plain,
            protected,
            icmp: icmp(),
            mss_clamp: mss_clamp(&config),
            mss_by_path: config.plain.mss_clamp == MssClamp::Auto,
            keepalive,
            audit: if config.log.audit { (config.log.audit_rate, config.log.audit_burst) } else { (0, 0) },
            window_waits: config.scheduler.scheduling.timeout.is_some(),
        };
        let (mut worker, handle) = Worker::new(setup).map_err(StartError::System)?;
        let changes = Changes::all(&config);
        let caretaker = Caretaker::new(store.clone());
        if let KeySource::Static { .. } = config.keys.source {
            caretaker.start(&mut worker, handle.clone()).map_err(StartError::System)?;
        }
        let ivs = ivs(&store, &config, &changes, now_ns)?;
        let numbers = caretaker.reserve(&config.sas, &changes.kept).map_err(StartError::Ivs)?;
        worker.install(&config.sas, &changes, ivs).map_err(StartError::Install)?;
        caretaker.give(&mut worker, &config.sas, numbers);
        let routes = RouteTable::new(&config).map_err(link_error("routes"))?;
        route(&routes, &config)?;
        export(&config)?;
        taps.change(config.taps.as_ref());
        let builder = std::thread::Builder::new().name("forebay-loop".to_owned());
        let cpu = config.processors.first().and_then(|core| core.cpus().first().copied());
        let (told, begun) = std::sync::mpsc::channel();
        let run = move || {
            let pinned = pin(cpu);
            let may_run = pinned.is_ok();
            let _ = told.send(pinned);
            if may_run { worker.run() } else { Ok(()) }
        };
        let thread = builder.spawn(run).map_err(StartError::System)?;
        let begun = begun.recv().unwrap_or_else(|_| Err(io::Error::other("the loop's thread ended at once")));
        begun.map_err(StartError::System)?;
        let follower = match &config.keys.source {
            KeySource::Static { .. } => None,
            KeySource::Xfrm(options) => {
                let most = Most { sas: config.limits.sas, policies: config.limits.policies };
                let started =
                    Follower::start(options, handle.clone(), unix_time, route_setter(&config, &routes), most);
                Some(started.map_err(link_error("the kernel's SAs (XFRM)"))?)
            }
        };
        Ok(Service {
            config: Arc::new(config),
            handle,
            thread,
            store,
            caretaker,
            routes,
            follower,
            taps,
            is_empty: false,
        })
    }

    /// The file by which it runs.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The way to its loop.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What can be told of the captures.
    pub fn taps(&self) -> Told {
        self.taps.told()
    }

    /// Goes by another version of the file from now on, as far as that is possible; says what is different.
    ///
    /// # Errors
    /// If there are no IVs for new SAs: then nothing has changed. If the engine refuses an SA or policy: then it has
    /// none any more until the next reload. If a route or the export of keys fails, SAs and policies are the new ones.
    pub fn reload(&mut self, config: Config, now_ns: u64) -> Result<Changes, StartError> {
        check(&config)?;
        let changes = match self.is_empty {
            false => Config::diff(&self.config, &config),
            true => Changes::all(&config),
        };
        let ivs = ivs(&self.store, &config, &changes, now_ns)?;
        let numbers = self.caretaker.reserve(&config.sas, &changes.kept).map_err(StartError::Ivs)?;
        let config = Arc::new(config);
        let (file, what, caretaker) = (config.clone(), changes.clone(), self.caretaker.share());
        let changed = self.handle.ask(move |worker| {
            let used = caretaker.take_back(worker, |place| what.removed.contains(&place));
            let installed = worker.install(&file.sas, &what, ivs);
            caretaker.give(worker, &file.sas, numbers);
            (installed, used)
        });
        let (changed, used) =
            changed.ok_or_else(|| StartError::System(io::Error::other("the loop has ended")))?;
        self.caretaker.settle(&used);
        self.is_empty = changed.is_err();
        changed.map_err(StartError::Install)?;
        // From here on it is by this file that it runs, whatever else fails.
        self.config = config;
        if changes.taps || self.taps.have_failed() {
            self.taps.change(self.config.taps.as_ref());
        }
        route(&self.routes, &self.config)?;
        export(&self.config)?;
        Ok(changes)
    }

    /// Ends the loop, and waits for that; packets under way are lost.
    ///
    /// # Errors
    /// What the loop ended with.
    pub fn stop(self) -> io::Result<()> {
        drop(self.follower);
        let routes = self.routes;
        let caretaker = self.caretaker.share();
        let used = self.handle.ask(move |worker| {
            worker.stop();
            caretaker.take_back(worker, |_| true)
        });
        self.caretaker.settle(&used.unwrap_or_default());
        let ended = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the loop has panicked")));
        // With the loop its interface is gone; what it failed with is no reason to let packets out in the clear.
        if ended.is_ok() {
            routes.end();
        }
        ended
    }

    /// Whether the loop runs.
    pub fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }
}

/// What the file may say and this build does not do; and what is more than the file itself allows.
fn check(config: &Config) -> Result<(), StartError> {
    let one_queue = match &config.plain.link {
        PlainLink::Tun(tun) => tun.queues == 1,
        PlainLink::Xdp(_) => true,
    };
    let udp = |one: &config::Protected| {
        if let ProtectedLink::Udp(udp) = &one.link { Some(udp.clone()) } else { None }
    };
    let of_udp: Vec<_> = config.protected.iter().filter_map(udp).collect();
    let unbuilt = [(!one_queue || of_udp.iter().any(|udp| udp.queues > 1), "several queues of a link")];
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

/// IVs for the SAs that are new.
fn ivs(store: &IvStore, config: &Config, changes: &Changes, now_ns: u64) -> Result<Vec<IvRange>, StartError> {
    let new = config
        .sas
        .entries
        .iter()
        .zip(&changes.kept)
        .filter(|(entry, kept)| kept.is_none() && takes_ivs(entry));
    store.ranges(new.map(|(entry, _)| &entry.keys), now_ns, config.keys.iv_reserve).map_err(StartError::Ivs)
}

fn plain(config: &Config) -> Result<Port, StartError> {
    match &config.plain.link {
        PlainLink::Tun(tun) => {
            let options = TunOptions { name: tun.name.clone(), queues: 1, offloads: tun.offload };
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
            let queue = queues.into_iter().next().ok_or_else(|| lacking("a TUN device without a queue"))?;
            Ok(Port::new(name, Box::new(queue), QUEUE))
        }
        PlainLink::Xdp(card) => {
            let network = |net: IpNet| Network { address: net.network(), prefix: net.prefix_len() };
            let take = Take::Plain { to: config.routes().into_iter().map(network).collect() };
            let mut links = xdp(card, take)?;
            if links.len() > 1 {
                return Err(lacking("one queue of a card on the plain side: queues = [0]"));
            }
            let link = links.pop().ok_or_else(|| lacking("a card without a queue"))?;
            Ok(Port::new(&card.interface, Box::new(link), QUEUE))
        }
    }
}

/// The links of a card by AF_XDP, one a queue.
fn xdp(card: &Xdp, take: Take) -> Result<Vec<XdpLink>, StartError> {
    let queues = match &card.queues {
        None => 1,
        Some(queues) if queues.iter().copied().eq(0..queues.len() as u32) => queues.len() as u32,
        Some(_) => return Err(lacking("AF_XDP takes the first queues of a card: 0, 1, ...")),
    };
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

/// The sockets of a link of ESP in UDP.
fn udp_links(
    settings: &config::Udp,
    options: UdpOptions,
    clock: Clock,
) -> io::Result<Vec<Box<dyn Link + Send>>> {
    if settings.beside_ike {
        let UdpOptions { local, workers, buffer, mark, .. } = options;
        let links = beside::open(&BesideOptions { local, workers, buffer, mark })?;
        return Ok(links.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>).collect());
    }
    let mut links = udp::open(&options)?;
    if let (Some(daemon), Some(first)) = (settings.ike_forward, links.first()) {
        let forward = IkeForward::start(daemon, first.replier()?, clock)?;
        links.iter_mut().for_each(|link| forward.attach(link));
    }
    Ok(links.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>).collect())
}

/// The links to peers, and how long one of those in UDP stays silent.
fn protected(config: &Config, clock: Clock) -> Result<(Vec<Protected>, Option<Duration>), StartError> {
    let mut links = Vec::new();
    let mut keepalive = None;
    for one in &config.protected {
        let failed = |what: String| link_error(format!("{}: {what}", one.name));
        match &one.link {
            ProtectedLink::Udp(udp) => {
                keepalive = keepalive.or(udp.keepalive);
                let local = udp.listen;
                let options = UdpOptions {
                    local,
                    workers: 1,
                    buffer: udp.buffer,
                    offloads: udp.gso && udp.gro,
                    mark: udp.mark,
                };
                let opened = udp_links(udp, options, clock).map_err(failed(format!("UDP {local}")))?;
                for link in opened {
                    let port = Port::new(&one.name, link, QUEUE);
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
                            RawOptions { local, carries, workers: 1, buffer: raw.buffer, mark: raw.mark };
                        let opened = raw::open(&options)
                            .map_err(failed(format!("a raw socket of protocol {number} at {local}")))?;
                        for link in opened {
                            let name = format!("{}-{number}", one.name);
                            let port = Port::new(&name, Box::new(link), QUEUE);
                            links.push(Protected { port, protocols: vec![number], local: Some(local) });
                        }
                    }
                }
            }
            ProtectedLink::Xdp { card, ports } => {
                let take = Take::Protected { to: vec![], ports: ports.clone() };
                for (queue, link) in xdp(card, take)?.into_iter().enumerate() {
                    let port = Port::new(&format!("{}-{queue}", one.name), Box::new(link), QUEUE);
                    let protocols = vec![protocol::UDP, protocol::ESP, protocol::AH];
                    links.push(Protected { port, protocols, local: None });
                }
            }
        }
    }
    Ok((links, keepalive))
}

/// What tells of packets too big on their way to peers. Without raw sockets gateways do without: packets are as
/// large as SAs' `mtu` says.
fn icmp() -> Vec<Box<dyn Link + Send>> {
    let mut links: Vec<Box<dyn Link + Send>> = Vec::new();
    for family in [Family::V4, Family::V6] {
        match raw::open(&RawOptions::new(family, Carries::TooBig)) {
            Ok(opened) => links.extend(opened.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>)),
            Err(error) => {
                tracing::warn!(?family, %error, "the gateway does not hear of smaller paths by ICMP")
            }
        }
    }
    links
}

/// An IKE daemon's SA may be used by the peer before the kernel's news of it is here.
fn strangers(config: &Config) -> StrangerLimits {
    match &config.keys.source {
        KeySource::Xfrm(_) => StrangerLimits { packets: 256, wait: Duration::from_millis(2_000) },
        KeySource::Static { .. } => StrangerLimits::NONE,
    }
}

fn mss_clamp(config: &Config) -> Option<u16> {
    match (config.plain.mss_clamp, &config.plain.link) {
        (MssClamp::Off, _) => None,
        (MssClamp::At(mss), _) => Some(mss.saturating_add(40)),
        (MssClamp::Auto, PlainLink::Tun(tun)) => Some(tun.mtu),
        (MssClamp::Auto, PlainLink::Xdp(_)) => None,
    }
}

/// Routes to the interface what the file says, or what its policies protect.
fn route(routes: &RouteTable, config: &Config) -> Result<(), StartError> {
    // What the kernel's policies protect is not known yet, or known already.
    if let (KeySource::Xfrm(_), PlainLink::Tun(Tun { routes: Routes::Auto, .. })) =
        (&config.keys.source, &config.plain.link)
    {
        return Ok(());
    }
    let refused = |(network, error)| link_error(format!("route to {network}"))(error);
    routes.set(config.routes(), true).map_err(refused)
}

/// What routes to the interface the networks that the kernel's policies protect, if the file leaves that to us.
fn route_setter(config: &Config, routes: &RouteTable) -> OnPolicies {
    let PlainLink::Tun(Tun { routes: Routes::Auto, .. }) = &config.plain.link else {
        return Box::new(|_| {});
    };
    let routes = routes.clone();
    Box::new(move |policies| {
        let protects = |policy: &&forebay_xfrm::Policy| {
            policy.way == forebay_xfrm::Way::Out
                && matches!(policy.action, forebay_xfrm::PolicyAction::Protect(_))
        };
        let networks = policies.iter().filter(protects).flat_map(|policy| prefixes(&policy.remote_ts));
        if let Err((network, error)) = routes.set(networks.collect(), false) {
            tracing::warn!(%network, %error, "no route to what a policy protects");
        }
    })
}
