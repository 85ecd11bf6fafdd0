//! The route to an address: the interface, the next hop, and its Ethernet address.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use forebay_netlink::{DUMP, find};

use super::request::{self, Request};
use super::{
    IFA_ADDRESS, IFA_LOCAL, NLM_F_CREATE, RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_VIA, RTM_GETROUTE, RTMSG, family,
};

/// Where packets for an address leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The number of the interface.
    pub index: u32,
    /// The next hop: a router, or the destination itself.
    pub address: IpAddr,
}

/// An address of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The number of its interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Whether it is the first of its network on the interface, and not alone in it (/32, /128).
    pub is_first: bool,
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
        self.next_hop_of(to, 0)
    }

    /// The same for packets with a firewall mark, which routing rules may look at.
    ///
    /// # Errors
    /// As [`RouteLookup::next_hop`].
    pub fn next_hop_of(&self, to: IpAddr, mark: u32) -> io::Result<NextHop> {
        let bits = if to.is_ipv6() { 128 } else { 32 };
        let request = Request::new(RTM_GETROUTE, 0).route_to(family(to), bits).ip(RTA_DST, to);
        request.attribute(RTA_MARK, &mark.to_ne_bytes()).ask(&self.0, |answer| {
            let attributes = answer.get(RTMSG..)?;
            let index = u32::from_ne_bytes(*find(attributes, RTA_OIF)?.first_chunk()?);
            let gateway = find(attributes, RTA_GATEWAY).and_then(ip).or_else(|| {
                // A router of the other family: two bytes say which, then its address.
                find(attributes, RTA_VIA).and_then(|via| ip(via.get(2..)?))
            });
            Some(NextHop { index, address: gateway.unwrap_or(to) })
        })
    }

    /// All addresses of the host.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn addresses(&self) -> io::Result<Vec<HostAddress>> {
        let mut found = Vec::new();
        Request::new(RTM_GETADDR, DUMP).address(0, 0, 0, 0).ask_for_all(&self.0, |answer| {
            found.extend(HostAddress::of(answer));
        })?;
        Ok(found)
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

impl HostAddress {
    fn of(answer: &[u8]) -> Option<HostAddress> {
        const IFADDRMSG: usize = 8;
        const SECONDARY: u8 = 1;
        let [_, prefix, flags, _, index @ ..] = *answer.first_chunk::<IFADDRMSG>()?;
        let attributes = answer.get(IFADDRMSG..)?;
        // Of a link between two, `IFA_ADDRESS` is the other's.
        let address = ip(find(attributes, IFA_LOCAL).or_else(|| find(attributes, IFA_ADDRESS))?)?;
        let is_alone = prefix == if address.is_ipv6() { 128 } else { 32 };
        let is_first = flags & SECONDARY == 0 && !is_alone;
        Some(HostAddress { index: u32::from_ne_bytes(index), address, is_first })
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

// linux/rtnetlink.h, linux/neighbour.h.
const RTA_MARK: u16 = 16;
const RTM_GETADDR: u16 = 22;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
