//! A gateway without others. Its data plane starts once.
//!
//! The file may have host names of peers. The gateway uses a copy with their addresses; if an address changes, it reloads another copy, and the
//! SAs continue with their numbers, windows and lifetimes as at every reload.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use forebay_config::Config;
use forebay_engine::Clock;
use forebay_sas::HostName;
use forebay_state::{IvStore, Lock};
use forebay_time::{Duration, Time};

use super::names::{Choice, Names, Resolver, choose};
use super::{Event, Process, Role, once};
use crate::service::{Service, StartError};

/// Between two tries to go by other addresses.
const AGAIN: Duration = Duration::from_millis(5_000);
/// Most names of SAs in a line of the log.
const NAMED_MAX: usize = 16;

/// A name, and whether an address of IPv6 is wanted.
type Wanted = (HostName, bool);
/// The addresses of names that have one.
type Addresses = BTreeMap<Wanted, IpAddr>;

pub(super) struct Alone {
    state: Option<(IvStore, Lock)>,
    names: Names,
    /// The version of the file that is in use, as it was read, with the addresses; and one that is being tried.
    file: Option<(Config, Addresses)>,
    next: Option<(Config, Addresses)>,
    /// The answers that were looked at last.
    seen: u64,
    /// Not before that another try.
    again: Time,
}

impl Alone {
    pub(super) fn new(state: (IvStore, Lock), resolver: Arc<dyn Resolver>, clock: Clock) -> Alone {
        let names = Names::new(resolver, clock);
        Alone { state: Some(state), names, file: None, next: None, seen: 0, again: Time::ZERO }
    }

    /// The addresses of the names in a file, by the last answers. `used` are those to which packets go now.
    fn addresses(&self, config: &Config, used: &Addresses) -> Addresses {
        let last = self.file.as_ref().map(|(_, addresses)| addresses);
        let address = |wanted: Wanted| {
            let (last, used) = (last.and_then(|last| last.get(&wanted).copied()), used.get(&wanted).copied());
            let answers = self.names.answers(&wanted.0);
            match choose(&answers, wanted.1, last, used) {
                Choice::Keep => Some((wanted, last?)),
                Choice::Move(to) => Some((wanted, to)),
                Choice::None => None,
            }
        };
        config.names_wanted().into_iter().filter_map(address).collect()
    }
}

fn names(config: &Config) -> BTreeSet<HostName> {
    config.names_wanted().into_iter().map(|(name, _)| name).collect()
}

fn with_addresses(config: &Config, addresses: &Addresses) -> Config {
    config.with_addresses(&|name, v6| addresses.get(&(name.clone(), v6)).copied())
}

/// The addresses to which packets go now, of names whose SAs have one in common: peers that moved are followed.
fn used(service: &Service) -> Addresses {
    let mut used: BTreeMap<Wanted, Option<IpAddr>> = BTreeMap::new();
    for (entry, address) in service.config().sas.entries.iter().zip(service.peers()) {
        let Some(name) = entry.remote_name.clone() else { continue };
        let known = used.entry((name, entry.config.local.is_ipv6())).or_insert(address);
        *known = known.filter(|_| *known == address);
    }
    used.into_iter().filter_map(|(wanted, address)| Some((wanted, address?))).collect()
}

/// Tells the log of names with other addresses than before, and of SAs that are left out.
fn tell(before: Option<&Addresses>, after: &Addresses, config: &Config) {
    for ((name, v6), to) in after {
        match before.and_then(|before| before.get(&(name.clone(), *v6))) {
            None => tracing::info!(%name, %to, "peer's host name resolved"),
            Some(from) if from != to => {
                tracing::info!(%name, %from, %to, "peer's host name has another address");
            }
            Some(_) => {}
        }
    }
    for one in config.names.iter().filter(|one| !one.left_out.is_empty()) {
        let sas = one.left_out.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(" ");
        let (name, version, count) = (&one.name, if one.v6 { 6 } else { 4 }, one.left_out.len());
        match one.address {
            None => tracing::warn!(
                %name, sas, count,
                "no IPv{version} address of the peer is known: packets for these SAs are dropped until its name resolves"
            ),
            Some(address) => tracing::warn!(
                %name, %address, sas, count,
                "another SA to the peer's address has the SPI, or an SA around these has no address: their packets are dropped"
            ),
        }
    }
}

impl Role for Alone {
    fn part(&mut self, config: Config) -> miette::Result<Config> {
        if config.names_wanted().is_empty() && self.file.is_none() {
            return Ok(config);
        }
        // Those of the version that is in use, too: this one may be refused.
        let in_use = self.file.as_ref().map_or_else(BTreeSet::new, |(config, _)| names(config));
        self.names.resolve(&in_use | &names(&config));
        self.seen = self.names.version();
        let addresses = self.addresses(&config, &Addresses::new());
        let part = with_addresses(&config, &addresses);
        tell(self.file.as_ref().map(|(_, before)| before), &addresses, &part);
        self.next = Some((config, addresses));
        Ok(part)
    }

    fn changed(&mut self, is_in_use: bool) {
        match self.next.take() {
            Some(next) if is_in_use => self.file = Some(next),
            // What was resolved meanwhile is for the version of before, too.
            Some(_) => self.seen = 0,
            None => {}
        }
        if let Some((config, _)) = &self.file {
            self.names.keep(&names(config));
        }
    }

    fn prepare(&mut self, _now: Time) -> Result<(IvStore, Lock), StartError> {
        self.state.take().ok_or_else(once)
    }

    fn look(&mut self, service: &mut Service, process: &dyn Process) -> Option<Event> {
        let (version, now) = (self.names.version(), process.clock().now());
        let (config, before) = self.file.as_ref().filter(|_| version != self.seen && now >= self.again)?;
        let after = self.addresses(config, &used(service));
        if after == *before {
            self.seen = version;
            return None;
        }
        let part = with_addresses(config, &after);
        let reloaded = service.reload(part, process.unix_time()().as_nanos() as u64);
        match StartError::or_in_part(reloaded) {
            Ok(_) => {
                tell(Some(before), &after, service.config());
                self.seen = version;
                self.file.iter_mut().for_each(|(_, addresses)| addresses.clone_from(&after));
                Some(Event::Resolved)
            }
            Err(error) => {
                self.again = now + AGAIN;
                Some(Event::Unserved(error))
            }
        }
    }
}
