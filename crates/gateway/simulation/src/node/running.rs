//! A machine's process, as its serving loop sees it.

use std::path::Path as FilePath;
use std::sync::Arc;

use forebay_cluster::{Cluster, ClusterError};
use forebay_config::{self as config, Config};
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::service::Host;
use forebay_gateway::serving::Process;
use forebay_pair::{Pair, PairError};
use forebay_sas::SasErrors;
use forebay_state::{IvStore, Lock};

use super::{Node, Others};
use crate::clock::unix_time;
use crate::site::Site;
use crate::{clustering, pairing, processors};

/// A process that starts or steps, as the loop sees it.
pub(super) struct Running<'a> {
    pub(super) node: &'a mut Node,
    pub(super) site: &'a Site,
}

impl Process for Running<'_> {
    fn read(&mut self) -> Result<Config, SasErrors> {
        let newest = || self.site.file(self.node.machine);
        let file = self.node.file.clone().unwrap_or_else(newest);
        config::parse(&file, "gateway.toml", FilePath::new("/"))
    }

    fn clock(&self) -> Clock {
        self.node.clock.clock()
    }

    fn unix_time(&self) -> fn() -> std::time::Duration {
        unix_time
    }

    fn seed(&mut self) -> u64 {
        self.node.seed(self.site)
    }

    fn host(&self) -> &dyn Host {
        &self.node.host
    }

    fn open_processors(&mut self, config: &Config) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
        let (seed, node) = (self.node.seed(self.site), &mut *self.node);
        let (setups, controls) = processors::build(config, &node.clock, seed, &node.interleaving);
        node.controls = controls;
        Ok(setups)
    }

    fn pair(&mut self, settings: &config::Pair, store: IvStore, claim: Lock) -> Result<Arc<Pair>, PairError> {
        let node = &mut *self.node;
        let Others::Pair(side, path) = &node.others else { unreachable!("a machine of a pair has a path") };
        let (name, turn) = (node.life << 8 | node.machine as u64, node.clock.turn());
        let (pair, member) = pairing::Member::new(settings, (store, claim), path, *side, name, turn)?;
        node.pairing = Some(member);
        Ok(pair)
    }

    fn cluster(&mut self, settings: &config::Cluster, store: IvStore) -> Result<Arc<Cluster>, ClusterError> {
        let Others::Cluster(way) = &self.node.others else { unreachable!("a cluster has a store") };
        let name = self.node.life << 8 | self.node.machine as u64;
        let member = clustering::Member::new(settings, store, way.clone(), name);
        let cluster = member.cluster.clone();
        self.node.clustering = Some(member);
        Ok(cluster)
    }
}
