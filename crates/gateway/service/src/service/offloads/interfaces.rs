//! The interfaces of a host, and the states of their offloads.

use std::io;
use std::net::IpAddr;

use forebay_links::features::{Feature, Features, RX_GRO, RX_UDP_GRO_FORWARDING, TX_GENERIC_SEGMENTATION};
use forebay_links::interface::{RouteLookup, name_of};

/// Interfaces of a host with their offloads.
pub trait Interfaces: Send {
    /// The name of the interface by which the host reaches an address with packets of a firewall mark, 0 for none; `None` for
    /// an address of its own.
    ///
    /// # Errors
    /// If there is no route.
    fn towards(&mut self, address: IpAddr, mark: u32) -> io::Result<Option<String>>;

    /// The addresses of the host, each with the name of its interface.
    ///
    /// # Errors
    /// If they cannot be read.
    fn addresses(&mut self) -> io::Result<Vec<(String, IpAddr)>>;

    /// The offloads of an interface, as [`Features::read`].
    ///
    /// # Errors
    /// If there is no such interface.
    fn read(&mut self, interface: &str, names: [&str; 2]) -> io::Result<[Option<Feature>; 2]>;

    /// Switches an offload, as [`Features::switch`].
    ///
    /// # Errors
    /// If that is not allowed.
    fn switch(&mut self, interface: &str, name: &str, is_on: bool) -> io::Result<bool>;
}

/// The interfaces of this machine, by netlink.
#[derive(Default)]
pub(in super::super) struct Kernel {
    routes: Option<RouteLookup>,
    features: Option<Features>,
}

impl Kernel {
    fn routes(&mut self) -> io::Result<&RouteLookup> {
        match &mut self.routes {
            Some(routes) => Ok(routes),
            none => Ok(none.insert(RouteLookup::open()?)),
        }
    }

    fn features(&mut self) -> io::Result<&mut Features> {
        match &mut self.features {
            Some(features) => Ok(features),
            none => Ok(none.insert(Features::open()?)),
        }
    }
}

impl Interfaces for Kernel {
    fn towards(&mut self, address: IpAddr, mark: u32) -> io::Result<Option<String>> {
        let name = name_of(self.routes()?.next_hop_of(address, mark)?.index)?;
        Ok((name != "lo").then_some(name))
    }

    fn addresses(&mut self) -> io::Result<Vec<(String, IpAddr)>> {
        // Behind an error half an answer may wait in the socket.
        let addresses = self.routes()?.addresses().inspect_err(|_| self.routes = None)?;
        // An interface may have gone since.
        Ok(addresses.iter().filter_map(|one| Some((name_of(one.index).ok()?, one.address))).collect())
    }

    fn read(&mut self, interface: &str, names: [&str; 2]) -> io::Result<[Option<Feature>; 2]> {
        self.features()?.read(interface, names)
    }

    fn switch(&mut self, interface: &str, name: &str, is_on: bool) -> io::Result<bool> {
        self.features()?.switch(interface, name, is_on)
    }
}

/// How an offload is that is to be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is on.
    On,
    /// It is off, and can be switched on.
    Off,
    /// It is off, and the driver fixes it.
    Fixed,
    /// It would have no effect, because `rx-gro` is off.
    WithoutGro,
    /// It is off, and `tx-generic-segmentation` as well: the interface is to be given no batches.
    WithoutGso,
    /// This kernel does not have it.
    Lacking,
    /// The driver did not switch it on when it was asked to.
    Refused,
    /// The interface is not there.
    Absent,
}

impl State {
    /// Its word in the status.
    pub(super) fn word(self) -> &'static str {
        match self {
            State::On => "on",
            State::Off => "off",
            State::Fixed => "fixed",
            State::WithoutGro => "without rx-gro",
            State::WithoutGso => "without tx-generic-segmentation",
            State::Lacking => "lacking",
            State::Refused => "refused",
            State::Absent => "no such interface",
        }
    }

    /// That of an offload of an interface.
    ///
    /// # Errors
    /// If the interface is not there.
    pub(super) fn read(
        interfaces: &mut dyn Interfaces,
        interface: &str,
        name: &'static str,
    ) -> io::Result<State> {
        let (needs, without) = match name {
            RX_UDP_GRO_FORWARDING => (RX_GRO, State::WithoutGro),
            _ => (TX_GENERIC_SEGMENTATION, State::WithoutGso),
        };
        let [offload, needed] = interfaces.read(interface, [name, needs])?;
        let is_missing = !is_on(needed);
        Ok(match offload {
            None => State::Lacking,
            Some(Feature { is_on: true, .. }) if is_missing && without == State::WithoutGro => without,
            Some(Feature { is_on: true, .. }) => State::On,
            Some(Feature { is_changeable: false, .. }) => State::Fixed,
            Some(_) if is_missing => without,
            Some(_) => State::Off,
        })
    }
}

pub(super) fn is_on(feature: Option<Feature>) -> bool {
    feature.is_some_and(|feature| feature.is_on)
}
