//! One gateway of a cluster: its data plane runs all the time and serves the SAs of the gateway's shares.
//!
//! When a share leaves or joins, the data plane reloads with other SAs; SAs that stay are not disturbed.

use std::sync::Arc;

use forebay_cluster::{Cluster, ClusterStatus, Served};
use forebay_config::{self as config, Config};
use forebay_control::ClusterDoc;
use forebay_planted::{Fault, planted};
use forebay_state::{IvStore, Lock};
use forebay_time::{Duration, Time};

use super::{Event, Others, Process, Role, once};
use crate::service::{Service, SharedAddresses, StartError};

/// Time between two announcements of an address.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(30_000);
/// Time between two attempts to serve other shares.
const AGAIN: Duration = Duration::from_millis(500);

/// A whole file, and the share of each of its SAs.
type Shares = (Config, Vec<u16>);

pub(super) struct Sharing {
    cluster: Arc<Cluster>,
    settings: config::Cluster,
    claim: Option<Lock>,
    served: Served,
    /// The version of the file in use, and one that is being tried.
    file: Option<Shares>,
    next: Option<Shares>,
    addresses: Option<SharedAddresses>,
    /// Earliest time of another attempt.
    again: Time,
}

impl Sharing {
    pub(super) fn new(cluster: Arc<Cluster>, settings: &config::Cluster, claim: Lock) -> Sharing {
        let (settings, claim, served) = (settings.clone(), Some(claim), Served::new());
        Sharing {
            cluster,
            settings,
            claim,
            served,
            file: None,
            next: None,
            addresses: None,
            again: Time::ZERO,
        }
    }

    /// Makes the data plane serve the shares of this gateway, and gives this host their addresses.
    fn follow(
        &mut self,
        service: &mut Service,
        wanted: Served,
        process: &dyn Process,
    ) -> Result<(), StartError> {
        let Sharing { cluster, settings, served, file, addresses, .. } = self;
        let (Some(file), Some(addresses)) = (file, addresses) else { return Ok(()) };
        cluster.follow(served, wanted, &mut |served| {
            let reloaded = service.reload(part(file, served), process.unix_time()().as_nanos() as u64);
            StartError::or_in_part(reloaded)?;
            let of = |place: usize| settings.addresses.get(place).map(|one| cluster.share_of(one.of));
            let now = process.clock().now();
            addresses.hold(|place| of(place).is_some_and(|share| served.contains_key(&share)), now)?;
            addresses.announce(now);
            Ok(())
        })
    }

    /// Tries to serve the wanted shares, and returns the result.
    fn try_to_serve(&mut self, service: &mut Service, wanted: Served, process: &dyn Process) -> Event {
        let more = wanted.iter().any(|(share, term)| self.served.get(share) != Some(term));
        match self.follow(service, wanted, process) {
            Ok(()) => Event::Serves { more },
            Err(error) => {
                self.again = process.clock().now() + AGAIN;
                Event::Unserved(error)
            }
        }
    }
}

/// A file without SAs that are not served.
fn part((config, shares): &Shares, served: &Served) -> Config {
    let keeps: Vec<bool> = shares.iter().map(|share| served.contains_key(share)).collect();
    config.of_shares(&keeps)
}

impl Role for Sharing {
    fn part(&mut self, config: Config) -> miette::Result<Config> {
        let shares = self.cluster.assign(&config.sas)?;
        let next = (config, shares);
        let part = part(&next, &self.served);
        self.next = Some(next);
        Ok(part)
    }

    fn changed(&mut self, is_in_use: bool) {
        match self.next.take() {
            Some(next) if is_in_use => self.file = Some(next),
            // Records stay in the shares of the version in use.
            Some(_) => {
                let before = self.file.as_ref().map(|(config, _)| self.cluster.assign(&config.sas));
                if let Some(Err(error)) = before {
                    tracing::error!(%error, "cannot use the previous shares");
                }
            }
            None => {}
        }
    }

    fn prepare(&mut self, _now: Time) -> Result<(IvStore, Lock), StartError> {
        Ok((self.cluster.store(), self.claim.take().ok_or_else(once)?))
    }

    fn started(&mut self, process: &dyn Process) -> Result<(), StartError> {
        // One of the interfaces may be the gateway's own.
        let shared = self.settings.addresses.iter().map(|one| &one.shared);
        self.addresses = Some(SharedAddresses::open(process.host(), shared)?);
        Ok(())
    }

    fn look(&mut self, service: &mut Service, process: &dyn Process) -> Option<Event> {
        let now = process.clock().now();
        let is_certain = self.cluster.is_certain();
        // Others may have taken over.
        let stops = self.settings.stops_alone && !is_certain && !planted(Fault::StopsAloneIgnored);
        let wanted = if stops { Served::new() } else { self.cluster.wanted() };
        let is_due = wanted != self.served && now >= self.again;
        let event = is_due.then(|| self.try_to_serve(service, wanted, process));
        // Another gateway may have the addresses by now.
        let every = is_certain.then_some(ANNOUNCE_EVERY);
        self.addresses.iter_mut().for_each(|addresses| addresses.look_after(now, every));
        event
    }

    fn is_leaving(&mut self) -> bool {
        self.cluster.is_leaving()
    }

    fn leave(&mut self) {
        self.addresses.iter_mut().for_each(SharedAddresses::remove);
        self.cluster.leave();
    }

    fn others(&self) -> Option<Others> {
        let cluster = self.cluster.clone();
        Some(Arc::new(move |status| status.cluster = Some(told(cluster.status()))))
    }
}

/// The status of a cluster for the control socket.
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
