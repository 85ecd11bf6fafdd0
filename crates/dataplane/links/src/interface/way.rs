//! The way to an address: the interface, the next hop on it, and that one's address on the Ethernet.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use forebay_netlink::find;

use super::request::{self, Request};
use super::{NLM_F_CREATE, RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_VIA, RTM_GETROUTE, RTMSG, family};

/// Where packets for an address leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The number of the interface.
    pub index: u32,
    /// The next hop: a router, or the destination itself.
    pub address: IpAddr,
}

/// Asks the kernel for ways, in the namespace that the thread was in when this was opened.
#[derive(Debug)]
pub struct RouteLookup(OwnedFd);

impl RouteLookup {
    /// Opens what asks.
    ///
    /// # Errors
    /// Those of socket(2).
    pub fn open() -> io::Result<RouteLookup> {
        request::open().map(RouteLookup)
    }

    /// The next hop to an address, by the kernel's routes.
    ///
    /// # Errors
    /// If there is no route.
    pub fn next_hop(&self, to: IpAddr) -> io::Result<NextHop> {
        let bits = if to.is_ipv6() { 128 } else { 32 };
        Request::new(RTM_GETROUTE, 0).route_to(family(to), bits).ip(RTA_DST, to).ask(&self.0, |answer| {
            let attributes = answer.get(RTMSG..)?;
            let index = u32::from_ne_bytes(*find(attributes, RTA_OIF)?.first_chunk()?);
            let gateway = find(attributes, RTA_GATEWAY).and_then(ip).or_else(|| {
                // A router of the other family: two bytes say which, then its address.
                find(attributes, RTA_VIA).and_then(|via| ip(via.get(2..)?))
            });
            Some(NextHop { index, address: gateway.unwrap_or(to) })
        })
    }

    /// The address on the Ethernet of a neighbour on an interface, if the kernel knows it.
    ///
    /// # Errors
    /// If the kernel has never heard of it.
    pub fn neighbour(&self, hop: &NextHop) -> io::Result<Option<[u8; 6]>> {
        // Of incomplete and failed ones it has no address that counts.
        const KNOWN: u16 = 0x02 | 0x04 | 0x08 | 0x10 | NUD_NOARP | NUD_PERMANENT;
        let (state, address) = self.look_up(hop)?;
        Ok(address.filter(|_| state & KNOWN != 0))
    }

    /// The state of a neighbour, and its address on the Ethernet.
    fn look_up(&self, hop: &NextHop) -> io::Result<(u16, Option<[u8; 6]>)> {
        const NDMSG: usize = 12;
        Request::new(RTM_GETNEIGH, 0)
            .neighbour(family(hop.address), hop.index, 0, 0)
            .ip(NDA_DST, hop.address)
            .ask(&self.0, |answer| {
                let state = u16::from_ne_bytes(*answer.get(8..)?.first_chunk()?);
                Some((
                    state,
                    find(answer.get(NDMSG..)?, NDA_LLADDR).and_then(|address| address.try_into().ok()),
                ))
            })
    }

    /// Has the kernel ask the neighbour for its address on the Ethernet; the answer is not waited for. An address that
    /// somebody has set by hand is not asked for: the kernel would forget it.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`.
    pub fn resolve(&self, hop: &NextHop) -> io::Result<()> {
        const NTF_USE: u8 = 1;
        if self.look_up(hop).is_ok_and(|(state, _)| state & (NUD_NOARP | NUD_PERMANENT) != 0) {
            return Ok(());
        }
        Request::new(RTM_NEWNEIGH, NLM_F_CREATE)
            .neighbour(family(hop.address), hop.index, 0, NTF_USE)
            .ip(NDA_DST, hop.address)
            .send(&self.0)
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

// linux/rtnetlink.h, linux/neighbour.h.
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
