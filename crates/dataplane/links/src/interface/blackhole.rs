//! Routes that discard.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::request::{self, Request};
use super::{NLM_F_CREATE, NLM_F_REPLACE, RTA_DST, RTM_DELROUTE, RTM_NEWROUTE, family};

/// Routes that discard what they are for, silently (`ip route add blackhole`), in the network namespace that the
/// thread was in when this was opened.
#[derive(Debug)]
pub struct Blackholes(OwnedFd);

impl Blackholes {
    /// Opens what makes them.
    ///
    /// # Errors
    /// Those of socket(2).
    pub fn open() -> io::Result<Blackholes> {
        request::open().map(Blackholes)
    }

    /// Discards what goes to the network, if no route to it has a smaller metric; one that is there already is
    /// replaced.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, and if the network's address has bits behind the prefix.
    pub fn add(&self, network: IpAddr, prefix: u8, metric: u32) -> io::Result<()> {
        self.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, network, prefix, metric)
    }

    /// The same, if there is no such route.
    ///
    /// # Errors
    /// As [`Blackholes::add`]; `AlreadyExists` if it is there.
    pub fn keep(&self, network: IpAddr, prefix: u8, metric: u32) -> io::Result<()> {
        self.request(RTM_NEWROUTE, NLM_F_CREATE, network, prefix, metric)
    }

    /// Takes one away.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, and if it is not there.
    pub fn remove(&self, network: IpAddr, prefix: u8, metric: u32) -> io::Result<()> {
        self.request(RTM_DELROUTE, 0, network, prefix, metric)
    }

    fn request(&self, kind: u16, flags: u16, network: IpAddr, prefix: u8, metric: u32) -> io::Result<()> {
        Request::new(kind, flags)
            .blackhole(family(network), prefix)
            .ip(RTA_DST, network)
            .attribute(RTA_PRIORITY, &metric.to_ne_bytes())
            .send(&self.0)
    }
}

// linux/rtnetlink.h.
const RTA_PRIORITY: u16 = 6;
