//! What a gateway needs of its machine; the simulation implements another machine.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use forebay_engine::Clock;
use forebay_ipsec::Protocol;
use forebay_links::Link;
use forebay_links::nftables::{Counted, Nftables, Table};

use super::addresses::OnInterface;
use super::offloads::Interfaces;
use super::routes::Routing;
use super::start_error::{StartError, lacking};
use forebay_config::{Config, NetworkDevice, Raw, SharedAddress, Tun, Udp, Xdp};
use forebay_state::Files;
use forebay_state::numbers;
use forebay_worker::Wait;

/// The queues of a link, one for each worker.
pub type Queues = Vec<Box<dyn Link + Send>>;

/// The packet filter of a host. Tables stay when the process ends.
pub trait Firewall: Send {
    /// Puts a table in the place of what has its name, in one transaction; the [content](Counted::content) that it has then.
    ///
    /// # Errors
    /// If the host has no packet filter or refuses the table; nothing has changed then.
    fn replace(&mut self, table: &Table) -> io::Result<u64>;

    /// Changes what is in the sets of the table `before` to what is in those of `table`, in one transaction; the content that it
    /// has then.
    ///
    /// # Errors
    /// As [`Firewall::replace`], and if `before` is not what is there.
    fn change(&mut self, before: &Table, table: &Table) -> io::Result<u64>;

    /// Deletes a table; that there is none is no error.
    ///
    /// # Errors
    /// As [`Firewall::replace`].
    fn delete(&mut self, name: &str) -> io::Result<()>;

    /// What the table of this name has; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    fn counted(&mut self, name: &str) -> io::Result<Counted>;
}

/// An address of a host that other hosts have at other times.
pub trait Address: Send {
    /// Has the host keep it for so many seconds from now on; it goes by itself when they have passed.
    ///
    /// # Errors
    /// If it cannot be added.
    fn lease(&self, seconds: u32) -> io::Result<()>;

    /// Tells the hosts of its network that it is here.
    ///
    /// # Errors
    /// If that cannot be sent.
    fn announce(&self) -> io::Result<()>;

    /// Removes it.
    ///
    /// # Errors
    /// If it cannot be removed; [`io::ErrorKind::AddrNotAvailable`] if it is not there.
    fn remove(&self) -> io::Result<()>;
}

/// nftables of this machine, opened at its first use and, where that failed, again at the next.
#[derive(Debug, Default)]
pub(super) struct Kernel(Option<Nftables>);

impl Kernel {
    fn nftables(&mut self) -> io::Result<&mut Nftables> {
        match &mut self.0 {
            Some(nftables) => Ok(nftables),
            none => Ok(none.insert(Nftables::open()?)),
        }
    }
}

impl Firewall for Kernel {
    fn replace(&mut self, table: &Table) -> io::Result<u64> {
        self.nftables()?.replace(table)
    }

    fn change(&mut self, before: &Table, table: &Table) -> io::Result<u64> {
        self.nftables()?.change(before, table)
    }

    fn delete(&mut self, name: &str) -> io::Result<()> {
        self.nftables()?.delete(name)
    }

    fn counted(&mut self, name: &str) -> io::Result<Counted> {
        self.nftables()?.counted(name)
    }
}

/// A machine that gateways run on. [`Machine`](super::Machine) is the one at hand.
pub trait Host: Send + Sync {
    /// Creates the TUN interface to the inside.
    ///
    /// # Errors
    /// If it cannot be created or set up.
    fn tun(&self, tun: &Tun, workers: usize) -> Result<Queues, StartError>;

    /// Opens the sockets at one address of a link of ESP in UDP, which is called `name`.
    ///
    /// # Errors
    /// If they cannot be opened.
    fn udp(
        &self,
        name: &str,
        udp: &Udp,
        local: SocketAddr,
        workers: usize,
        clock: Clock,
    ) -> Result<Queues, StartError>;

    /// Opens raw sockets for one protocol at one address of a link, which is called `name`.
    ///
    /// # Errors
    /// If they cannot be opened.
    fn raw(
        &self,
        name: &str,
        raw: &Raw,
        local: IpAddr,
        protocol: Protocol,
        workers: usize,
    ) -> Result<Queues, StartError>;

    /// Opens a network card by AF_XDP for the packets that `side` says.
    ///
    /// # Errors
    /// If it cannot be opened, and where there are no cards.
    fn card(&self, _side: CardSide<'_>, _workers: usize) -> Result<Queues, StartError> {
        Err(lacking("this host has no network cards"))
    }

    /// Opens a network device by DPDK for the link called `name`, and for an outside what receives ICMP errors by it; `ports`
    /// are the UDP ports of an outside, and `None` for the inside.
    ///
    /// # Errors
    /// If it cannot be opened, and where there are none.
    fn network_device(
        &self,
        _name: &str,
        _device: &NetworkDevice,
        _ports: Option<&[u16]>,
        _workers: usize,
    ) -> Result<(Queues, Queues), StartError> {
        Err(lacking("this host has no network devices by DPDK"))
    }

    /// Opens what receives ICMP errors about packets that were too big for their path. If `says_so`, what cannot be
    /// opened is logged.
    fn icmp(&self) -> Queues;

    /// Opens the routing table; `None` where the gateway makes no routes.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn routing(&self, config: &Config) -> io::Result<Option<Box<dyn Routing>>>;

    /// Finds the interface of an address that gateways share.
    ///
    /// # Errors
    /// If it is not there, or the address could not be announced.
    fn address(&self, shared: &SharedAddress) -> io::Result<Box<dyn Address>> {
        Ok(Box::new(OnInterface::open(shared)?))
    }

    /// The packet filter in which the guard keeps its table.
    fn firewall(&self) -> Box<dyn Firewall>;

    /// The interfaces whose offloads the gateway looks after; `None` where they have none.
    fn interfaces(&self) -> Option<Box<dyn Interfaces>> {
        None
    }

    /// The file system that holds the gateway's state.
    fn files(&self) -> Arc<dyn Files>;

    /// What worker number `worker` waits by.
    fn wait(&self, worker: usize) -> Box<dyn Wait>;

    /// Whether workers run on threads of their own. If not, the caller runs them: see
    /// [`Service::step`](super::Service::step).
    fn has_threads(&self) -> bool {
        true
    }

    /// How many sequence numbers an SA's first reservation covers.
    fn sequence_block(&self) -> u64 {
        numbers::BLOCK
    }
}

/// Which of a gateway's links a network card is.
#[derive(Clone, Copy, Debug)]
pub enum CardSide<'a> {
    /// The inside.
    Inside(&'a Config, &'a Xdp),
    /// The outside, with the UDP ports of ESP in UDP.
    Outside(&'a Xdp, &'a [u16]),
}
