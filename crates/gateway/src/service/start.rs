//! From the file to a running gateway.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_engine::{Clock, Engine, EngineError, ProcessorSetup, Settings};
use forebay_ipsec::Sad;
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links::{Link, interface::Interface};

use super::installed::{InstallError, takes_ivs};
use super::port::Port;
use super::worker::{Handle, Protected, Setup, Worker};
use crate::config::{Changes, Config, MssClamp, PlainLink, ProtectedLink};
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
    handle: Handle,
    thread: JoinHandle<io::Result<()>>,
    store: IvStore,
}

impl Service {
    /// Starts a gateway by `config` on these processors, the running core first. `seed` is a number that nobody
    /// else can know, `now_ns` the time since the Unix epoch.
    ///
    /// # Errors
    /// See [`StartError`]; what was opened is closed again.
    pub fn start(
        config: Config,
        processors: Vec<ProcessorSetup>,
        clock: Clock,
        seed: u64,
        now_ns: u64,
    ) -> Result<Service, StartError> {
        let store = match &config.keys.state {
            Some(directory) => IvStore::new(directory),
            None => IvStore::of_user().map_err(StartError::Ivs)?,
        };
        let settings = Settings {
            scheduling: config.scheduler.scheduling.clone(),
            limits: config.limits.engine.clone(),
            order: config.scheduler.order,
            addresses: config.plain.answer,
            seed,
        };
        let engine =
            Engine::new(Sad::seeded(seed), &[], processors, settings, clock).map_err(StartError::Engine)?;
        let plain = plain(&config)?;
        let (protected, keepalive) = protected(&config)?;
        let setup = Setup {
            engine,
            plain,
            protected,
            icmp: icmp(&config)?,
            mss_clamp: mss_clamp(&config),
            keepalive,
            audit_per_second: if config.log.audit { config.log.audit_rate } else { 0 },
            window_waits: config.scheduler.scheduling.timeout.is_some(),
        };
        let (mut worker, handle) = Worker::new(setup).map_err(StartError::System)?;
        let changes = Changes::all(&config);
        let ivs = ivs(&store, &config, &changes, now_ns)?;
        worker.install(&config.sas, &changes, ivs).map_err(StartError::Install)?;
        routes(&config)?;
        let builder = std::thread::Builder::new().name("forebay-loop".to_owned());
        let thread = builder.spawn(move || worker.run()).map_err(StartError::System)?;
        Ok(Service { config: Arc::new(config), handle, thread, store })
    }

    /// The file by which it runs.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The way to its loop.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Goes by another version of the file from now on, as far as that is possible; says what is different.
    ///
    /// # Errors
    /// If there are no IVs for new SAs, or the engine refuses one.
    pub fn reload(&mut self, config: Config, now_ns: u64) -> Result<Changes, StartError> {
        let changes = Config::diff(&self.config, &config);
        let ivs = ivs(&self.store, &config, &changes, now_ns)?;
        let config = Arc::new(config);
        let (file, what) = (config.clone(), changes.clone());
        let changed = self.handle.ask(move |worker| worker.install(&file.sas, &what, ivs));
        match changed {
            Some(result) => result.map_err(StartError::Install)?,
            None => return Err(StartError::System(io::Error::other("the loop has ended"))),
        }
        self.config = config;
        Ok(changes)
    }

    /// Ends the loop, and waits for that; packets under way are lost.
    ///
    /// # Errors
    /// What the loop ended with.
    pub fn stop(self) -> io::Result<()> {
        self.handle.ask(Worker::stop);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the loop has panicked")))
    }

    /// Whether the loop runs.
    pub fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }
}

/// IVs for the SAs that are new.
fn ivs(
    store: &IvStore,
    config: &Config,
    changes: &Changes,
    now_ns: u64,
) -> Result<Vec<forebay_ipsec::IvRange>, StartError> {
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
            interface.set_up(true).map_err(failed("setting it up"))?;
            let queue = queues.into_iter().next().ok_or_else(|| lacking("a TUN device without a queue"))?;
            Ok(Port::new(name, Box::new(queue), QUEUE))
        }
        PlainLink::Xdp(_) => Err(lacking("AF_XDP on the plain side is not in this build")),
    }
}

fn lacking(what: &str) -> StartError {
    StartError::Lacking(what.to_owned())
}

fn protected(config: &Config) -> Result<(Vec<Protected>, Option<forebay_time::Duration>), StartError> {
    let mut links = Vec::new();
    let mut keepalive = None;
    for one in &config.protected {
        let failed = |what: String| link_error(format!("{}: {what}", one.name));
        match &one.link {
            ProtectedLink::Udp(options) => {
                keepalive = keepalive.or(options.keepalive);
                let local = options.listen;
                let udp_options = UdpOptions {
                    local,
                    workers: 1,
                    buffer: options.buffer,
                    offloads: options.gso && options.gro,
                };
                let opened = udp::open(&udp_options).map_err(failed(format!("UDP {local}")))?;
                for link in opened {
                    let local = (!local.ip().is_unspecified()).then(|| vec![local.ip()]);
                    let port = Port::new(&one.name, Box::new(link), QUEUE);
                    links.push(Protected { port, udp: true, raw: false, local });
                }
            }
            ProtectedLink::Raw(_) => return Err(lacking("raw links are not in this build yet")),
            ProtectedLink::Xdp { .. } => return Err(lacking("AF_XDP links are not in this build yet")),
        }
    }
    Ok((links, keepalive))
}

fn icmp(_config: &Config) -> Result<Vec<Box<dyn Link + Send>>, StartError> {
    Ok(vec![])
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
    let interface = Interface::by_name(&tun.name).map_err(link_error(format!("interface {}", tun.name)))?;
    for route in config.routes() {
        let added = interface.add_route(route.network(), route.prefix_len());
        match added {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other.map_err(link_error(format!("route to {route} by {}", tun.name)))?,
        }
    }
    Ok(())
}
