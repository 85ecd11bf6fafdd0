//! A machine of a gateway that several are by a store: what it serves, and its way to the store.
//!
//! Who serves, records and their claims are the gateway's own code; the store is one of memory that behaves like etcd, and each machine's
//! way to it loses, delays and refuses requests.

use std::sync::Arc;

use forebay_cluster::fake::Link;
use forebay_cluster::{Cluster, Served};
use forebay_config::Config;
use forebay_gateway::service::{Service, StartError};
use forebay_state::{IvStore, IvStoreError};
use forebay_time::{Duration, Time};

use crate::clock::{monotonic, unix_time};
use crate::host::SimHost;

/// Between two tries to serve other shares.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest time in which shares are handed over at the end.
const LEAVES_WITHIN: Duration = Duration::from_millis(4_000);

/// The part of a process that is one of a cluster.
pub struct Member {
    pub cluster: Cluster,
    pub served: Served,
    /// Its file as it has read it last, and the share of each SA.
    config: Config,
    shares: Vec<u16>,
    /// When the cluster's own thread runs next, and not before when another try is made.
    next: Time,
    again: Time,
    /// Since when it leaves.
    pub leaves: Option<Time>,
}

impl Member {
    /// One that serves nothing yet.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn new(config: Config, host: &SimHost, way: &Link, process: u64) -> Result<Member, String> {
        let settings = config.cluster.as_ref().ok_or("its file has no section [cluster]")?;
        let store = IvStore::on("/state", Arc::new(host.disk().clone()));
        let names = [format!("process-{process:x}"), format!("instance-{process:x}")];
        let cluster = Cluster::stepped(settings, store, Arc::new(way.clone()), names, monotonic);
        let shares = cluster.assign(&config.sas).map_err(|error| error.to_string())?;
        let (served, next, again) = (Served::new(), Time::ZERO, Time::ZERO);
        Ok(Member { cluster, served, config, shares, next, again, leaves: None })
    }

    /// The file without what it does not serve.
    pub fn part(&self) -> Config {
        part(&self.config, &self.shares, &self.served)
    }

    /// Does what is due. Whether it serves something that it did not serve before.
    ///
    /// # Errors
    /// Why it cannot serve what it is to serve; it tries again.
    pub fn pass_time(&mut self, service: &mut Service, now: Time) -> Result<bool, StartError> {
        if now >= self.next {
            // What is in the way passes, or the oracle notices.
            let (wait, _) = self.cluster.step(unix_time());
            self.next = now + Duration::from_nanos(wait.as_nanos() as u64);
        }
        let wanted = self.cluster.wanted();
        if wanted == self.served || now < self.again {
            return Ok(false);
        }
        // As it is woken when a data plane serves something else.
        self.next = now;
        let is_new = wanted.iter().any(|(share, term)| self.served.get(share) != Some(term));
        let (config, shares) = (&self.config, &self.shares);
        let followed = self.cluster.follow(&mut self.served, wanted, &mut |served| {
            service.reload(part(config, shares, served), unix_time().as_nanos() as u64).map(drop)
        });
        if followed.is_err() {
            self.again = now + AGAIN;
        }
        followed.map(|()| is_new)
    }

    /// Goes by another version of the file.
    ///
    /// # Errors
    /// Why it goes by the last one still.
    pub fn reload(&mut self, service: &mut Service, config: Config) -> Result<(), StartError> {
        let shares = self.cluster.assign(&config.sas);
        let shares = shares.map_err(|error| StartError::Lacking(error.to_string()))?;
        let reloaded = service.reload(part(&config, &shares, &self.served), unix_time().as_nanos() as u64);
        match &reloaded {
            Ok(_) => (self.config, self.shares) = (config, shares),
            // Records are where the version says that is in use.
            Err(_) => drop(self.cluster.assign(&self.config.sas)),
        }
        reloaded.map(drop)
    }

    /// Whether the process that leaves has nothing left to hand over, or does not wait for it any longer.
    pub fn has_left(&mut self, now: Time) -> bool {
        let Some(since) = self.leaves else { return false };
        let goes_on = self.cluster.is_leaving();
        !goes_on || now.since(since) >= LEAVES_WITHIN
    }
}

fn part(config: &Config, shares: &[u16], served: &Served) -> Config {
    let keeps: Vec<bool> = shares.iter().map(|share| served.contains_key(share)).collect();
    config.of_shares(&keeps)
}

/// Whether a machine with a full disk, or one that cannot reach the store, may be refused so.
pub fn may_fail(error: &StartError) -> bool {
    matches!(error, StartError::Ivs(IvStoreError::Write { .. } | IvStoreError::NotNoted(_)))
}
