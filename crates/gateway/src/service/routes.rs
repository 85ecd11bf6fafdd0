//! Routes to the interface of programs, and behind each a blackhole.
//!
//! The interface is the process's: when that is killed, the interface and all routes to it are gone, and packets
//! would take the default route in the clear. So each network has a second route of a bad metric that discards, and
//! stays when the gateway is killed and when it is stopped, unless the file says otherwise: a restart must not let packets
//! out in the clear.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_links::interface::{Blackholes, Interface};
use ipnet::IpNet;

use crate::config::{Blackhole, Config, PlainLink};

/// The metric of blackholes: behind every other route.
const METRIC: u32 = 4_278_198_272;

/// The routes that a gateway has made. Its copies are of the same ones.
#[derive(Clone)]
pub struct RouteTable(Arc<Mutex<Table>>);

struct Table {
    /// `None` where routes are the system's.
    interface: Option<Interface>,
    blackhole: Blackhole,
    blackholes: Option<Blackholes>,
    /// In order.
    networks: Vec<IpNet>,
}

impl RouteTable {
    /// None yet, for the interface of `config`, which is there.
    ///
    /// # Errors
    /// If it is not.
    pub fn new(config: &Config) -> io::Result<RouteTable> {
        let (mut interface, mut blackholes, mut blackhole) = (None, None, Blackhole::None);
        if let PlainLink::Tun(tun) = &config.plain.link {
            interface = Some(Interface::by_name(&tun.name)?);
            blackhole = tun.blackhole;
            blackholes = Some(Blackholes::open()?);
        }
        let table = Table { interface, blackhole, blackholes, networks: Vec::new() };
        Ok(RouteTable(Arc::new(Mutex::new(table))))
    }

    /// Makes the networks that are routed to the interface these; others that were are no longer. With `again` all
    /// are routed anew, whatever somebody else has done to their routes.
    ///
    /// # Errors
    /// The first that cannot be routed, with the reason; the rest is as it should be.
    pub fn set(&self, mut networks: Vec<IpNet>, again: bool) -> Result<(), (IpNet, io::Error)> {
        networks.sort_unstable();
        networks.dedup();
        let table = &mut *self.lock();
        let Some(interface) = &table.interface else { return Ok(()) };
        let mut refused = None;
        for &network in
            networks.iter().filter(|network| again || table.networks.binary_search(network).is_err())
        {
            // The blackhole first: at no time is there a packet for the default route.
            let (address, prefix) = (network.network(), network.prefix_len());
            let blackhole = match &table.blackholes {
                Some(all) if table.blackhole != Blackhole::None => all.add(address, prefix, METRIC),
                Some(all) => {
                    // One that an earlier run has left; mostly there is none.
                    let _ = all.remove(address, prefix, METRIC);
                    Ok(())
                }
                None => Ok(()),
            };
            let routed = blackhole.and_then(|()| interface.add_route(address, prefix));
            // That it is routed there already is no error.
            let routed = routed.or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            });
            if let Err(error) = routed {
                refused.get_or_insert((network, error));
            }
        }
        for &network in table.networks.iter().filter(|network| networks.binary_search(network).is_err()) {
            // Somebody else may have taken it away.
            let _ = interface.remove_route(network.network(), network.prefix_len());
            table.discard_no_more(network);
        }
        table.networks = networks;
        refused.map_or(Ok(()), Err)
    }

    /// Deletes the blackholes if the file says so. The routes go with the interface.
    pub fn end(&self) {
        let table = &mut *self.lock();
        if table.blackhole == Blackhole::Remove {
            std::mem::take(&mut table.networks)
                .into_iter()
                .for_each(|network| table.discard_no_more(network));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn discard_no_more(&self, network: IpNet) {
        let Some(blackholes) = self.blackholes.as_ref().filter(|_| self.blackhole != Blackhole::None) else {
            return;
        };
        if let Err(error) = blackholes.remove(network.network(), network.prefix_len(), METRIC) {
            tracing::warn!(%network, %error, "the route that discards stays");
        }
    }
}
