//! Routes to the gateway's interface, and a blackhole route behind each.
//!
//! The interface belongs to the process: when the process is killed, the interface and all routes to it disappear, and packets
//! would take the default route in the clear. Each network therefore has a second route with a high metric that discards packets. It
//! stays when the gateway is killed or stopped, unless the file says otherwise, so that no packet leaves in the clear during a
//! restart.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_links::interface::{
    Blackholes, HostAddress, Interface, OtherRoute, RouteLookup, give_route_back,
};
use forebay_planted::{Fault, planted};
use ipnet::IpNet;

use forebay_config::{Blackhole, Config, InsideLink};

use super::family::{is_absent, warn_of_absent, without};

/// The metric of blackholes: behind every other route.
const METRIC: u32 = 4_278_198_272;
/// `ENODEV`.
const NO_DEVICE: i32 = 19;
/// Most networks that are looked at in one look: the kernel is asked about each.
const LOOKED_AT: usize = 1_000;

/// The routing table of the host, as far as a gateway changes it.
pub trait Routing: Send {
    /// Routes a network to the gateway's interface.
    ///
    /// # Errors
    /// What the system says; `AlreadyExists` if it is routed there.
    fn add_route(&self, network: IpNet) -> io::Result<()>;

    /// Gives the interface the name and the addresses back that it has lost, and the settings by which the gateway's ICMP errors
    /// come in; how many.
    ///
    /// # Errors
    /// What the system says.
    fn keep_addresses(&self) -> io::Result<u64> {
        Ok(0)
    }

    /// Lends the interface addresses of the host where it is given none: one of the networks of this side, `own`, as the source of
    /// what the host sends by it. Without such a one of IPv4 another, for the host alone: where `rp_filter` is on, Linux drops
    /// what comes in by an interface without any, unless its source is routed there.
    ///
    /// # Errors
    /// What the system says.
    fn lend_address(&self, _own: &[(IpAddr, IpAddr)]) -> io::Result<()> {
        Ok(())
    }

    /// Removes such a route.
    ///
    /// # Errors
    /// What the system says.
    fn remove_route(&self, network: IpNet) -> io::Result<()>;

    /// The same, if there is none; others are not replaced.
    ///
    /// # Errors
    /// As [`Routing::add_route`].
    fn keep_route(&self, network: IpNet) -> io::Result<()> {
        self.add_route(network)
    }

    /// Adds the routes again that [`Routing::add_route`] replaced, where there are none in their place now.
    fn give_back(&self) {}

    /// Adds a route behind all others that discards.
    ///
    /// # Errors
    /// What the system says.
    fn add_blackhole(&self, network: IpNet) -> io::Result<()>;

    /// The same, if there is none.
    ///
    /// # Errors
    /// What the system says; `AlreadyExists` if it is there.
    fn keep_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.add_blackhole(network)
    }

    /// Removes such a route.
    ///
    /// # Errors
    /// What the system says.
    fn remove_blackhole(&self, network: IpNet) -> io::Result<()>;
}

/// The routes of this machine, by rtnetlink.
pub(super) struct Kernel {
    name: String,
    addresses: Vec<IpNet>,
    /// As long as there is one of the name.
    interface: Mutex<Option<Interface>>,
    blackholes: Blackholes,
    /// Routes of others that had the place of those to the interface.
    replaced: Mutex<BTreeMap<IpNet, OtherRoute>>,
    /// Addresses that gateways share: this host has them at times only.
    shared: Vec<IpAddr>,
    /// Of each IP version.
    lent: Mutex<[Option<Lent>; 2]>,
}

/// An address that the interface has because another one has it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lent {
    address: IpAddr,
    is_source: bool,
}

impl Kernel {
    /// Those to the interface with this name and these addresses, which need not be there yet.
    pub(super) fn open(interface: &str, addresses: &[IpNet], shared: Vec<IpAddr>) -> io::Result<Kernel> {
        let (name, interface) = (interface.to_owned(), Mutex::default());
        let (addresses, blackholes) = (addresses.to_vec(), Blackholes::open()?);
        let (replaced, lent) = (Mutex::default(), Mutex::default());
        Ok(Kernel { name, addresses, interface, blackholes, replaced, shared, lent })
    }

    /// What to lend of the host's addresses of an IP version: what is lent, as long as nothing is better.
    fn choose(&self, v6: bool, own: &[(IpAddr, IpAddr)], lent: Option<Lent>) -> io::Result<Option<Lent>> {
        let index = Mutex::new(0);
        self.with(|interface| {
            *index.lock().unwrap_or_else(PoisonError::into_inner) = interface.index();
            Ok(())
        })?;
        let index = index.into_inner().unwrap_or_else(PoisonError::into_inner);
        let can_be_lent = |one: &&HostAddress| {
            one.index != index
                && one.address.is_ipv6() == v6
                && !one.address.is_loopback()
                && !self.shared.contains(&one.address)
        };
        let is_source = |address| own.iter().any(|(first, last)| (first..=last).contains(&&address));
        let addresses = RouteLookup::open()?.addresses()?;
        let best = addresses.iter().filter(can_be_lent).max_by_key(|one| {
            let is_lent = lent.is_some_and(|lent| lent.address == one.address);
            (is_source(one.address), is_lent, one.is_first, Reverse(one.index))
        });
        let best = best.map(|one| Lent { address: one.address, is_source: is_source(one.address) });
        // IPv6 knows no `rp_filter`.
        Ok(best.filter(|best| best.is_source || !v6))
    }

    /// Notes the route whose place one to the interface takes, and says so.
    fn note_replaced(&self, network: IpNet) {
        let found = Mutex::new(None);
        let look = |interface: &Interface| {
            *found.lock().unwrap_or_else(PoisonError::into_inner) =
                interface.replaces(network.network(), network.prefix_len())?;
            Ok(())
        };
        // What cannot be asked for is not said.
        if self.with(look).is_err() {
            return;
        }
        let Some(route) = found.into_inner().unwrap_or_else(PoisonError::into_inner) else { return };
        let router = route.gateway().map_or_else(|| "a router".to_owned(), |router| router.to_string());
        tracing::warn!(
            %network, interface = self.name,
            "a route by {router} is replaced by the one to the interface; it comes back at the end if `blackhole` is \
             \"remove\" or \"none\". Give `routes` of [inside] if it is to stay"
        );
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).insert(network, route);
    }

    fn give_one_back(&self, network: IpNet, route: &OtherRoute) {
        match give_route_back(route) {
            Ok(()) => tracing::info!(%network, "the earlier route to the network is back"),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                tracing::warn!(%network, %error, "cannot add the earlier route to the network again: add it by hand (ip route add)")
            }
        }
    }

    /// Does something with the interface: with the one that has the name now, if that is another one.
    fn with(&self, work: impl Fn(&Interface) -> io::Result<()>) -> io::Result<()> {
        let mut known = self.interface.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interface) = &*known {
            match work(interface) {
                Err(error) if error.raw_os_error() == Some(NO_DEVICE) => *known = None,
                done => return done,
            }
        }
        work(known.insert(Interface::by_name(&self.name)?))
    }
}

impl Routing for Kernel {
    fn add_route(&self, network: IpNet) -> io::Result<()> {
        self.note_replaced(network);
        self.with(|interface| interface.add_route(network.network(), network.prefix_len()))
    }

    fn keep_route(&self, network: IpNet) -> io::Result<()> {
        self.with(|interface| interface.keep_route(network.network(), network.prefix_len()))
    }

    fn keep_addresses(&self) -> io::Result<u64> {
        let was_renamed = Cell::new(false);
        // While another interface has the name, this one works all the same.
        let named = self.with(|interface| interface.keep_name().map(|renamed| was_renamed.set(renamed)));
        let mut restored = u64::from(was_renamed.get());
        for one in &self.addresses {
            match self.with(|interface| interface.keep_address(one.addr(), one.prefix_len())) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // It is given the address when it can have one.
                Err(error) if is_absent(&error, one.addr()) => {}
                kept => (restored, ()) = (restored + 1, kept?),
            }
        }
        let accepts = Cell::new(false);
        self.with(|interface| interface.accept_own_sources().map(|changed| accepts.set(changed)))?;
        named.map(|()| restored + u64::from(accepts.get()))
    }

    fn lend_address(&self, own: &[(IpAddr, IpAddr)]) -> io::Result<()> {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        for (v6, lent) in [false, true].into_iter().zip(&mut *lent) {
            if self.addresses.iter().any(|one| one.addr().is_ipv6() == v6) {
                continue;
            }
            let best = self.choose(v6, own, *lent)?;
            if let Some(old) = lent.take_if(|old| best != Some(*old)) {
                let bits = if v6 { 128 } else { 32 };
                // It may be gone.
                let _ = self.with(|interface| interface.remove_address(old.address, bits));
            }
            let Some(Lent { address, is_source }) = best else { continue };
            match self.with(|interface| interface.lend_address(address, is_source)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                added => {
                    added?;
                    tracing::info!(interface = self.name, %address, is_source, "the interface has an address of this host, because it is given none");
                }
            }
            *lent = best;
        }
        Ok(())
    }

    fn remove_route(&self, network: IpNet) -> io::Result<()> {
        let removed = self.with(|interface| interface.remove_route(network.network(), network.prefix_len()));
        let earlier = self.replaced.lock().unwrap_or_else(PoisonError::into_inner).remove(&network);
        if let Some(route) = earlier {
            self.give_one_back(network, &route);
        }
        removed
    }

    fn give_back(&self) {
        let replaced = std::mem::take(&mut *self.replaced.lock().unwrap_or_else(PoisonError::into_inner));
        replaced.iter().for_each(|(&network, route)| self.give_one_back(network, route));
    }

    fn add_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.blackholes.add(network.network(), network.prefix_len(), METRIC)
    }

    fn keep_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.blackholes.keep(network.network(), network.prefix_len(), METRIC)
    }

    fn remove_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.blackholes.remove(network.network(), network.prefix_len(), METRIC)
    }
}

/// The routes that a gateway has made.
#[derive(Default)]
pub struct RouteTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// `None` where routes are the system's.
    routing: Option<Box<dyn Routing>>,
    blackhole: Blackhole,
    /// Whether there is one.
    has_interface: bool,
    /// The blackholes were deleted because the gateway ends.
    has_ended: bool,
    /// Routed to the interface.
    networks: BTreeSet<IpNet>,
    /// Discarded behind all other routes: these and more.
    discarded: BTreeSet<IpNet>,
    /// One more with each change of what is discarded.
    version: u64,
    restored: u64,
    /// Where the last look ended.
    looked_at: usize,
    /// What was wrong at the last look, so that it is said once.
    trouble: Option<String>,
    /// That this host lacks an IP version was said.
    said_absent: bool,
}

impl RouteTable {
    /// By `config` from now on, with an interface that has no routes yet; without `routing` they are the system's. What is
    /// discarded stays.
    pub fn attach(&self, config: &Config, routing: Option<Box<dyn Routing>>) {
        let table = &mut *self.lock();
        table.blackhole = match &config.inside.link {
            InsideLink::Tun(tun) => tun.blackhole,
            InsideLink::Xdp { .. } | InsideLink::Dpdk(_) => Blackhole::None,
        };
        table.routing = routing;
        table.networks.clear();
        table.has_interface = false;
        table.has_ended = false;
    }

    /// The interface is there from now on.
    pub fn interface_opened(&self) {
        self.lock().has_interface = true;
    }

    /// Takes over what an earlier start has discarded: [`RouteTable::set`] removes of it what is not to be discarded any more.
    pub fn adopt(&self, discarded: &[IpNet]) {
        self.lock().discarded.extend(discarded);
    }

    /// The interface and the routes to it go.
    pub fn detach(&self) {
        let table = &mut *self.lock();
        table.networks.clear();
        table.has_interface = false;
    }

    /// Whether routes are the gateway's.
    pub fn is_ours(&self) -> bool {
        self.lock().routing.is_some()
    }

    /// What is routed to the interface.
    pub fn networks(&self) -> Vec<IpNet> {
        self.lock().networks.iter().copied().collect()
    }

    /// What is discarded behind all other routes.
    pub fn discarded(&self) -> Vec<IpNet> {
        self.lock().discarded().collect()
    }

    /// Whether it is the gateway that discards, and goes on doing so when it ends.
    pub fn discards(&self) -> bool {
        self.lock().discards()
    }

    /// A number that is another one when something else is discarded.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// How many routes were restored.
    pub fn restored(&self) -> u64 {
        self.lock().restored
    }

    /// Restores routes that another program has deleted.
    pub fn look_after(&self, own: &[(IpAddr, IpAddr)]) {
        self.lock().look_after(own);
    }

    /// Lends the interface an address, as [`Routing::lend_address`].
    pub fn lend_address(&self, own: &[(IpAddr, IpAddr)]) {
        self.lock().lend_address(own);
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
        let (mut refused, mut absent) = (None, None);
        let mut note = |network: IpNet, made: io::Result<()>| {
            if made.as_ref().is_err_and(|error| is_absent(error, network.addr())) {
                absent.get_or_insert(network);
                return;
            }
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
        if let Some(network) = absent.filter(|_| !std::mem::replace(&mut table.said_absent, true)) {
            warn_of_absent(
                network.addr(),
                &format!("no routes to {network} and other networks of it, and {}", without(network.addr())),
            );
        }
        for &network in table.networks.difference(&networks) {
            // Another process may have removed the route.
            let _ = routing.remove_route(network);
        }
        table.discarded.difference(&discarded).for_each(|&network| table.discard_no_more(network));
        table.version += u64::from(table.discarded != discarded);
        (table.networks, table.discarded) = (networks, discarded);
        refused.map_or(Ok(()), Err)
    }

    /// Deletes the blackholes if the file says so. The routes go with the interface. Those whose place they had come back,
    /// unless blackholes stay: then the file wants no packet to leave in the clear.
    pub fn end(&self) {
        let table = &mut *self.lock();
        if let Some(routing) = table.routing.as_ref().filter(|_| table.blackhole != Blackhole::Keep) {
            routing.give_back();
        }
        if table.blackhole == Blackhole::Remove || planted(Fault::BlackholesRemoved) {
            let discarded = std::mem::take(&mut table.discarded);
            (table.has_ended, table.version) = (true, table.version + 1);
            discarded.into_iter().for_each(|network| table.discard_no_more(network));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn discarded(&self) -> impl Iterator<Item = IpNet> {
        let are_made = self.discards();
        self.discarded.iter().copied().filter(move |_| are_made)
    }

    fn discards(&self) -> bool {
        self.routing.is_some() && self.blackhole != Blackhole::None && !self.has_ended
    }

    fn lend_address(&self, own: &[(IpAddr, IpAddr)]) {
        let Some(routing) = self.routing.as_ref().filter(|_| self.has_interface) else { return };
        if let Err(error) = routing.lend_address(own) {
            tracing::debug!(%error, "cannot lend the interface an address");
        }
    }

    fn look_after(&mut self, own: &[(IpAddr, IpAddr)]) {
        self.lend_address(own);
        let Some(routing) = &self.routing else { return };
        let discards = self.discarded().map(|network| (network, true));
        let all = discards.chain(self.networks.iter().map(|&network| (network, false)));
        let (mut restored, mut seen, mut trouble) = (0, 0, None::<String>);
        // Routes may need the addresses.
        if self.has_interface {
            match routing.keep_addresses() {
                Ok(addresses) => restored += addresses,
                Err(error) => trouble = Some(format!("name or address of the interface: {error}")),
            }
        }
        for (network, discards) in all.skip(self.looked_at).take(LOOKED_AT) {
            seen += 1;
            let kept = if discards { routing.keep_blackhole(network) } else { routing.keep_route(network) };
            match kept {
                Ok(()) => restored += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_absent(&error, network.addr()) => {}
                Err(error) => drop(trouble.get_or_insert_with(|| format!("{network}: {error}"))),
            }
        }
        self.looked_at = if seen < LOOKED_AT { 0 } else { self.looked_at + seen };
        self.restored += restored;
        if restored > 0 {
            tracing::warn!(
                routes = restored,
                "routes to protected networks, or the name, addresses or settings of the interface, were deleted or changed by another program; they are installed again. Have it leave this interface alone (docs/troubleshooting.md)"
            );
        }
        if let Some(trouble) = trouble.as_ref().filter(|_| self.trouble != trouble) {
            tracing::warn!(
                "cannot restore a route to a protected network, look at `ip route` and who changes it: {trouble}"
            );
        }
        self.trouble = trouble;
    }

    fn discard_no_more(&self, network: IpNet) {
        let Some(routing) = &self.routing else { return };
        // Without a wish for any there is mostly none.
        if let Err(error) = routing.remove_blackhole(network)
            && self.blackhole != Blackhole::None
        {
            tracing::warn!(%network, %error, "cannot delete the blackhole route: delete it by hand (ip route del blackhole NETWORK)");
        }
    }
}
