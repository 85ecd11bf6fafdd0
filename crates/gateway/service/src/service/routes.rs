//! Routes to the interface of programs, and behind each a blackhole.
//!
//! The interface is the process's: when that is killed, the interface and all routes to it are gone, and packets
//! would take the default route in the clear. So each network has a second route of a bad metric that discards, and
//! stays when the gateway is killed and when it is stopped, unless the file says otherwise: a restart must not let packets
//! out in the clear.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_links::interface::{Blackholes, Interface};
use forebay_planted::{Fault, planted};
use ipnet::IpNet;

use forebay_config::{Blackhole, Config, InsideLink};

/// The metric of blackholes: behind every other route.
const METRIC: u32 = 4_278_198_272;

/// The routing table of the host, as far as a gateway changes it.
pub trait Routing: Send {
    /// Routes a network to the gateway's interface.
    ///
    /// # Errors
    /// What the system says; `AlreadyExists` if it is routed there.
    fn add_route(&self, network: IpNet) -> io::Result<()>;

    /// Removes such a route.
    ///
    /// # Errors
    /// What the system says.
    fn remove_route(&self, network: IpNet) -> io::Result<()>;

    /// Adds a route behind all others that discards.
    ///
    /// # Errors
    /// What the system says.
    fn add_blackhole(&self, network: IpNet) -> io::Result<()>;

    /// Removes such a route.
    ///
    /// # Errors
    /// What the system says.
    fn remove_blackhole(&self, network: IpNet) -> io::Result<()>;
}

/// The routes of this machine, by rtnetlink.
pub(super) struct Kernel {
    interface: Interface,
    blackholes: Blackholes,
}

impl Kernel {
    /// Those to the interface with this name, which is there.
    pub(super) fn open(interface: &str) -> io::Result<Kernel> {
        Ok(Kernel { interface: Interface::by_name(interface)?, blackholes: Blackholes::open()? })
    }
}

impl Routing for Kernel {
    fn add_route(&self, network: IpNet) -> io::Result<()> {
        self.interface.add_route(network.network(), network.prefix_len())
    }

    fn remove_route(&self, network: IpNet) -> io::Result<()> {
        self.interface.remove_route(network.network(), network.prefix_len())
    }

    fn add_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.blackholes.add(network.network(), network.prefix_len(), METRIC)
    }

    fn remove_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.blackholes.remove(network.network(), network.prefix_len(), METRIC)
    }
}

/// The routes that a gateway has made. Its copies are of the same ones.
#[derive(Clone)]
pub struct RouteTable(Arc<Mutex<Table>>);

struct Table {
    /// `None` where routes are the system's.
    routing: Option<Box<dyn Routing>>,
    blackhole: Blackhole,
    /// Routed to the interface.
    networks: BTreeSet<IpNet>,
    /// Discarded behind all other routes: these and more.
    discarded: BTreeSet<IpNet>,
}

impl RouteTable {
    /// None yet, of a gateway by `config`; without `routing` they are the system's.
    pub fn new(config: &Config, routing: Option<Box<dyn Routing>>) -> RouteTable {
        let blackhole = match &config.inside.link {
            InsideLink::Tun(tun) => tun.blackhole,
            InsideLink::Xdp { .. } => Blackhole::None,
        };
        let (networks, discarded) = (BTreeSet::new(), BTreeSet::new());
        RouteTable(Arc::new(Mutex::new(Table { routing, blackhole, networks, discarded })))
    }

    /// Routes exactly these networks to the interface, discards exactly `discarded` behind all other routes, and removes what
    /// else this table has made. With `again`, all are made anew, in case another process has changed their routes.
    ///
    /// # Errors
    /// The first that cannot be routed, with the reason; the rest is as it should be.
    pub fn set(
        &self,
        networks: Vec<IpNet>,
        discarded: Vec<IpNet>,
        again: bool,
    ) -> Result<(), (IpNet, io::Error)> {
        let (networks, discarded) = (BTreeSet::from_iter(networks), BTreeSet::from_iter(discarded));
        let table = &mut *self.lock();
        let Some(routing) = &table.routing else { return Ok(()) };
        let mut refused = None;
        let mut note = |network: IpNet, made: io::Result<()>| {
            // That it is routed there already is no error.
            if let Err(error) = made
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                refused.get_or_insert((network, error));
            }
        };
        // The blackholes first: at no time is there a packet for the default route.
        for &network in discarded.iter().filter(|network| again || !table.discarded.contains(network)) {
            match table.blackhole {
                // One that an earlier run has left; mostly there is none.
                Blackhole::None => drop(routing.remove_blackhole(network)),
                _ => note(network, routing.add_blackhole(network)),
            }
        }
        for &network in networks.iter().filter(|network| again || !table.networks.contains(network)) {
            note(network, routing.add_route(network));
        }
        for &network in table.networks.difference(&networks) {
            // Another process may have removed the route.
            let _ = routing.remove_route(network);
        }
        table.discarded.difference(&discarded).for_each(|&network| table.discard_no_more(network));
        (table.networks, table.discarded) = (networks, discarded);
        refused.map_or(Ok(()), Err)
    }

    /// Deletes the blackholes if the file says so. The routes go with the interface.
    pub fn end(&self) {
        let table = &mut *self.lock();
        if table.blackhole == Blackhole::Remove || planted(Fault::BlackholesRemoved) {
            let discarded = std::mem::take(&mut table.discarded);
            discarded.into_iter().for_each(|network| table.discard_no_more(network));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn discard_no_more(&self, network: IpNet) {
        let Some(routing) = self.routing.as_ref().filter(|_| self.blackhole != Blackhole::None) else {
            return;
        };
        if let Err(error) = routing.remove_blackhole(network) {
            tracing::warn!(%network, %error, "cannot delete the blackhole route");
        }
    }
}
