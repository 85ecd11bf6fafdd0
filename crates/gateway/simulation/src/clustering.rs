//! The parts of a machine of a cluster beside its loop: the cluster's own thread, and the path to the store.
//!
//! The choice of servers, records and their claims are the gateway's own code. The store is in memory and behaves like etcd; each machine's
//! path to it loses, delays and refuses requests.

use std::sync::Arc;

use forebay_cluster::Cluster;
use forebay_cluster::fake::Link;
use forebay_config as config;
use forebay_state::IvStore;
use forebay_time::{Duration, Time};

use crate::clock::{monotonic, unix_time};

/// The thread of a process that is one of a cluster.
pub struct Member {
    pub cluster: Arc<Cluster>,
    /// When it runs next.
    next: Time,
}

impl Member {
    /// One that serves nothing yet; `process` is a number that no other process has.
    pub fn new(settings: &config::Cluster, store: IvStore, way: Link, process: u64) -> Member {
        let names = [format!("process-{process:x}"), format!("instance-{process:x}")];
        let cluster = Cluster::stepped(settings, store, Arc::new(way), names, monotonic);
        Member { cluster: Arc::new(cluster), next: Time::ZERO }
    }

    /// Time passes.
    pub fn pass_time(&mut self, now: Time) {
        if now >= self.next {
            // What is in the way passes, or the oracle notices.
            let (wait, _) = self.cluster.step(unix_time());
            self.next = now + Duration::from_nanos(wait.as_nanos() as u64);
        }
    }

    /// It is woken, as when a data plane serves something else.
    pub fn wake(&mut self) {
        self.next = Time::ZERO;
    }
}
