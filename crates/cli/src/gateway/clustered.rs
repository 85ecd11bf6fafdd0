//! A gateway of a cluster: its data plane runs all the time and serves the SAs of the gateway's shares.
//!
//! A share that goes or comes is a reload with other SAs: those that stay are not disturbed.

use std::sync::Arc;

use forebay_cluster::{Cluster, ClusterStatus, Served};
use forebay_config::{ClusterAddress, Config};
use forebay_engine::Clock;
use forebay_gateway::control::ClusterDoc;
use forebay_gateway::service::{Machine, Service, SharedAddresses, StartError, claim};
use forebay_state::Role;
use forebay_terminal::Answer;
use forebay_terminal::host::{seed, unix_ns};
use forebay_time::{Duration, Time};
use miette::{Context, IntoDiagnostic};
use sd_notify::NotifyState;

use super::control_plane::{ControlPlane, Others};
use super::watchdog::Watchdog;
use super::{Attendant, Process, processors, rest, store, tell, unix_time};

/// Between two announcements of an address.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(30_000);
/// Longest time to hand over shares at the end, and between two looks.
const LEAVES_WITHIN: Duration = Duration::from_millis(4_000);
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(5);
/// Between two tries to serve other shares.
const AGAIN: Duration = Duration::from_millis(500);

/// Runs the command: until SIGINT or SIGTERM.
pub fn run(process: &Process<'_>, config: Config) -> miette::Result<Answer> {
    let Some(settings) = config.cluster.clone() else { return Ok(Answer::Broken) };
    let clock = process.clock;
    let store = store(&config)?;
    let claimed = claim(&store, Role::Cluster).map_err(StartError::Ivs)?;
    let cluster = Arc::new(Cluster::start(&settings, store, unix_time)?);
    let shares = cluster.assign(&config.sas)?;
    let processors = processors(&config, clock)?;
    let nothing = config.of_shares(&vec![false; shares.len()]);
    let state = (cluster.store(), claimed, process.caretaker.clone());
    let mut service = Service::start_with(&Machine, nothing, processors, clock, seed(), unix_time, state)?;
    // One of the interfaces may be the gateway's own.
    let addresses = SharedAddresses::open(settings.addresses.iter().map(|one| &one.shared))?;
    let others: Others = Arc::new({
        let cluster = cluster.clone();
        move |status| status.cluster = Some(told(cluster.status()))
    });
    let mut control_plane = ControlPlane::start(service.config(), process, Some(others));
    control_plane.tell_of(&service);
    let _watchdog =
        Watchdog::start(service.workers().clone()).into_diagnostic().wrap_err("cannot start the watchdog")?;
    process.settle(service.config())?;
    tracing::info!(name = settings.name, sas = config.sas.entries.len(), "gateway of a cluster started");
    let mut share = Sharing {
        cluster: &cluster,
        served: Served::new(),
        config,
        shares,
        next: None,
        addresses,
        settings: settings.addresses,
        stops_alone: settings.stops_alone,
        clock,
        again: Time::ZERO,
    };
    process.serve(&mut service, &mut control_plane, &mut share);
    tell(&[NotifyState::Stopping]);
    // Until the others have the shares; without etcd they take them when the lease ends.
    let until = clock.now() + LEAVES_WITHIN;
    while cluster.is_leaving() && service.is_running() && clock.now() < until {
        share.look(&mut service);
        rest(LOOK_EVERY);
    }
    let stopped = service.stop().into_diagnostic().wrap_err("a worker thread failed");
    share.addresses.remove();
    cluster.leave();
    stopped?;
    tracing::info!("gateway stopped");
    Ok(Answer::Yes)
}

/// Has the data plane serve what the cluster wants.
struct Sharing<'a> {
    cluster: &'a Cluster,
    served: Served,
    /// All of the file, and the share of each of its SAs.
    config: Config,
    shares: Vec<u16>,
    /// The same of a version that is being tried.
    next: Option<(Config, Vec<u16>)>,
    addresses: SharedAddresses,
    settings: Vec<ClusterAddress>,
    /// Whether it serves nothing while others may have taken over.
    stops_alone: bool,
    clock: Clock,
    /// Not before that another try.
    again: Time,
}

impl Sharing<'_> {
    /// Has the data plane serve what the cluster wants, and this host have the addresses of that.
    fn follow(&mut self, service: &mut Service, wanted: Served) -> miette::Result<()> {
        let Sharing { cluster, config, shares, addresses, settings, clock, .. } = self;
        cluster.follow(&mut self.served, wanted, &mut |served| {
            let keeps: Vec<bool> = shares.iter().map(|share| served.contains_key(share)).collect();
            service.reload(config.of_shares(&keeps), unix_ns()?)?;
            let holds = |place: usize| {
                settings.get(place).is_some_and(|one| served.contains_key(&cluster.share_of(one.of)))
            };
            let now = clock.now();
            addresses.hold(holds, now)?;
            addresses.announce(now);
            Ok(())
        })
    }
}

impl Attendant for Sharing<'_> {
    fn look(&mut self, service: &mut Service) -> bool {
        let now = self.clock.now();
        let is_certain = self.cluster.is_certain();
        let wanted = if self.stops_alone && !is_certain { Served::new() } else { self.cluster.wanted() };
        if wanted != self.served
            && now >= self.again
            && let Err(report) = self.follow(service, wanted)
        {
            tracing::error!("cannot serve other shares: {report:?}");
            self.again = now + AGAIN;
        }
        // Another gateway may have them by now.
        let every = is_certain.then_some(ANNOUNCE_EVERY);
        self.addresses.look_after(now, every);
        true
    }

    fn part(&mut self, config: Config) -> miette::Result<Config> {
        let shares = self.cluster.assign(&config.sas)?;
        let keeps: Vec<bool> = shares.iter().map(|share| self.served.contains_key(share)).collect();
        let part = config.of_shares(&keeps);
        self.next = Some((config, shares));
        Ok(part)
    }

    fn changed(&mut self, is_in_use: bool) {
        match self.next.take() {
            Some((config, shares)) if is_in_use => (self.config, self.shares) = (config, shares),
            // Records are where the version says that is in use.
            Some(_) => {
                if let Err(error) = self.cluster.assign(&self.config.sas) {
                    tracing::error!(%error, "cannot go by the shares of before");
                }
            }
            None => {}
        }
    }
}

/// The status of a cluster in the words of the control socket.
fn told(status: ClusterStatus) -> ClusterDoc {
    ClusterDoc {
        name: status.name,
        members: status.members,
        shares: status.shares,
        serves: status.serves,
        unowned: status.unowned,
        connected: !status.is_cut_off,
        silence_s: status.silence.map(|silence| silence.as_secs_f64()),
        transactions: status.written.0,
        records: status.written.1,
        lag_s: status.takes.as_secs_f64(),
        take_overs: status.taken,
        last_take_over: status.last.as_ref().map(|(at, _)| at.as_secs_f64()),
        reason: status.last.map(|(_, why)| why),
        trouble: status.trouble,
    }
}
