//! Network interfaces: up and down, MTU, addresses and routes, by rtnetlink (rtnetlink(7)).

mod blackhole;
mod request;
mod way;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use blackhole::Blackholes;
use forebay_netlink::{find, put_attribute, put_nested, u32_at};
use request::Request;
pub use way::{HostAddress, NextHop, RouteLookup};

/// A network interface of the network namespace that the thread was in which asked for it.
#[derive(Clone, Debug)]
pub struct Interface {
    name: String,
    index: u32,
    netlink: Arc<OwnedFd>,
}

/// The name of the interface with a number.
///
/// # Errors
/// If there is none.
pub fn name_of(index: u32) -> io::Result<String> {
    Ok(rustix::net::netdevice::index_to_name(request::any_socket()?, index)?)
}

impl Interface {
    /// The interface with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn by_name(name: &str) -> io::Result<Interface> {
        let index = rustix::net::netdevice::name_to_index(request::any_socket()?, name)?;
        Ok(Interface { name: name.into(), index, netlink: Arc::new(request::open()?) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Brings it up or takes it down.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or if it is gone.
    pub fn set_up(&self, up: bool) -> io::Result<()> {
        let up = if up { IFF_UP } else { 0 };
        Request::new(RTM_NEWLINK, 0).link(self.index, up, IFF_UP).send(&self.netlink)
    }

    /// Gives it the name back by which it was asked for, if it has another one now; whether it had. Kernels before 6.2 rename
    /// only an interface that is down: there it loses its routes, and IPv6 addresses.
    ///
    /// # Errors
    /// As [`Interface::set_up`]; `AlreadyExists` if another interface has the name.
    pub fn keep_name(&self) -> io::Result<bool> {
        if name_of(self.index)? == self.name {
            return Ok(false);
        }
        let name = [self.name.as_bytes(), &[0]].concat();
        let rename = || {
            Request::new(RTM_NEWLINK, 0)
                .link(self.index, 0, 0)
                .attribute(IFLA_IFNAME, &name)
                .send(&self.netlink)
        };
        match rename() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                // They look at the name last: in vain the interface would lose its routes at every attempt.
                if rustix::net::netdevice::name_to_index(request::any_socket()?, &self.name).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                self.set_up(false)?;
                let renamed = rename();
                self.set_up(true)?;
                renamed?;
            }
            renamed => renamed?,
        }
        Ok(true)
    }

    /// Sets the largest packet in bytes.
    ///
    /// # Errors
    /// As [`Interface::set_up`], and if it takes no such packets.
    pub fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        Request::new(RTM_NEWLINK, 0)
            .link(self.index, 0, 0)
            .attribute(IFLA_MTU, &mtu.to_ne_bytes())
            .send(&self.netlink)
    }

    /// Sets how many packets may wait to be sent: of a TUN device, to be read; 500 at first.
    ///
    /// # Errors
    /// As [`Interface::set_up`].
    pub fn set_queue_len(&self, packets: u32) -> io::Result<()> {
        let request = Request::new(RTM_NEWLINK, 0).link(self.index, 0, 0);
        request.attribute(IFLA_TXQLEN, &packets.to_ne_bytes()).send(&self.netlink)
    }

    /// How many packets could not be sent: of a TUN device, were not read in time or came while it was down.
    ///
    /// # Errors
    /// If it is gone.
    pub fn dropped(&self) -> io::Result<u64> {
        // The eighth of `rtnl_link_stats64`.
        const TX_DROPPED: usize = 7 * 8;
        self.read(IFLA_STATS64, |stats| {
            stats.get(TX_DROPPED..)?.first_chunk().map(|n| u64::from_ne_bytes(*n))
        })
    }

    /// The largest packet in bytes.
    ///
    /// # Errors
    /// If it is gone.
    pub fn mtu(&self) -> io::Result<u32> {
        self.read(IFLA_MTU, |value| value.first_chunk().map(|mtu| u32::from_ne_bytes(*mtu)))
    }

    /// The interface's own Ethernet address.
    ///
    /// # Errors
    /// If it is gone, or has none.
    pub fn ethernet_address(&self) -> io::Result<[u8; 6]> {
        self.read(IFLA_ADDRESS, |value| value.try_into().ok())
    }

    fn read<T>(&self, kind: u16, value: impl FnOnce(&[u8]) -> Option<T>) -> io::Result<T> {
        const IFINFOMSG: usize = 16;
        Request::new(RTM_GETLINK, 0)
            .link(self.index, 0, 0)
            .ask(&self.netlink, |answer| find(answer.get(IFINFOMSG..)?, kind).and_then(value))
    }

    /// Gives it an address; one that it has already is no error. Nothing is routed to it for that: the network of the
    /// prefix may be that of another interface, too. An IPv6 address works some milliseconds later, when the kernel has seen
    /// that the link is up.
    ///
    /// # Errors
    /// As [`Interface::set_up`], and if the prefix is too long.
    pub fn add_address(&self, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.new_address(NLM_F_CREATE | NLM_F_REPLACE, address, prefix, RT_SCOPE_UNIVERSE)
    }

    /// The same, if it has no such address.
    ///
    /// # Errors
    /// As [`Interface::add_address`]; `AlreadyExists` if it has it.
    pub fn keep_address(&self, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.new_address(NLM_F_CREATE | NLM_F_EXCL, address, prefix, RT_SCOPE_UNIVERSE)
    }

    /// Gives it an address that another interface of this machine has, if it has no such address: as a source of packets by this
    /// interface, or only so that it is one with an address.
    ///
    /// # Errors
    /// As [`Interface::keep_address`].
    pub fn lend_address(&self, address: IpAddr, is_source: bool) -> io::Result<()> {
        let prefix = if address.is_ipv6() { 128 } else { 32 };
        let scope = if is_source { RT_SCOPE_UNIVERSE } else { RT_SCOPE_HOST };
        self.new_address(NLM_F_CREATE | NLM_F_EXCL, address, prefix, scope)
    }

    fn new_address(&self, flags: u16, address: IpAddr, prefix: u8, scope: u8) -> io::Result<()> {
        let no_dad = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
        Request::new(RTM_NEWADDR, flags)
            .address(family(address), prefix, self.index, no_dad)
            .scope(scope)
            .ip(IFA_LOCAL, address)
            .ip(IFA_ADDRESS, address)
            .attribute(IFA_FLAGS, &(u32::from(no_dad) | IFA_F_NOPREFIXROUTE).to_ne_bytes())
            .send(&self.netlink)
    }

    /// The same for some seconds: then the kernel takes the address away, unless it was added again. So the address of
    /// a process that is killed does not stay. IPv6 addresses are not checked for duplicates.
    ///
    /// # Errors
    /// As [`Interface::add_address`].
    pub fn lease_address(&self, address: IpAddr, prefix: u8, seconds: u32) -> io::Result<()> {
        let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
        // `ifa_cacheinfo`: preferred and valid for so long; when it was made and changed is the kernel's to say.
        let lifetimes = [seconds, seconds, 0, 0].map(u32::to_ne_bytes);
        Request::new(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE)
            .address(family(address), prefix, self.index, flags)
            .ip(IFA_LOCAL, address)
            .ip(IFA_ADDRESS, address)
            .attribute(IFA_CACHEINFO, lifetimes.as_flattened())
            .send(&self.netlink)
    }

    /// Has the kernel accept packets that come in by this interface from an address of this machine, as a gateway's own
    /// ICMP errors do; of itself it drops them (`accept_local`, and `rp_filter` where that is strict, of its sysctls).
    /// Whether anything had to be changed for that. The kernel's IPv6 accepts them always.
    ///
    /// # Errors
    /// As [`Interface::set_up`].
    pub fn accept_own_sources(&self) -> io::Result<bool> {
        let settings = self.settings()?;
        // The stricter one of the interface's and that of all interfaces counts.
        let rp_filter = settings.rp_filter.max(all_rp_filter(&self.netlink)?);
        let accepts = settings.accept_local != 0;
        if accepts && rp_filter != STRICT {
            return Ok(false);
        }
        let mut conf = Vec::new();
        put_nested(&mut conf, AF_INET.into(), |family| {
            put_nested(family, IFLA_INET_CONF, |conf| {
                put_attribute(conf, ACCEPT_LOCAL, &1u32.to_ne_bytes());
                if rp_filter == STRICT {
                    put_attribute(conf, RP_FILTER, &LOOSE.to_ne_bytes());
                }
            });
        });
        let request = Request::new(RTM_NEWLINK, 0).link(self.index, 0, 0);
        request.attribute(IFLA_AF_SPEC, &conf).send(&self.netlink)?;
        Ok(true)
    }

    fn settings(&self) -> io::Result<Settings> {
        self.read(IFLA_AF_SPEC, |families| {
            let values = find(find(families, AF_INET.into())?, IFLA_INET_CONF)?;
            // A number for each, from the first on.
            let value = |kind: u16| u32_at(values, (usize::from(kind) - 1) * 4);
            Some(Settings { accept_local: value(ACCEPT_LOCAL)?, rp_filter: value(RP_FILTER)? })
        })
    }

    /// Takes an address away.
    ///
    /// # Errors
    /// As [`Interface::set_up`]; `AddrNotAvailable` if it does not have the address.
    pub fn remove_address(&self, address: IpAddr, prefix: u8) -> io::Result<()> {
        Request::new(RTM_DELADDR, 0)
            .address(family(address), prefix, self.index, 0)
            .ip(IFA_LOCAL, address)
            .ip(IFA_ADDRESS, address)
            .send(&self.netlink)
    }

    /// Sends what goes to the network out by this interface; a route that is there already is replaced.
    ///
    /// # Errors
    /// As [`Interface::set_up`], and if the interface is down or the network's address has bits behind the
    /// prefix.
    pub fn add_route(&self, network: IpAddr, prefix: u8) -> io::Result<()> {
        self.new_route(NLM_F_CREATE | NLM_F_REPLACE, network, prefix)
    }

    /// The route of another interface that [`Interface::add_route`] would replace: to exactly this network, with the metric
    /// that a route has without one.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn replaces(&self, network: IpAddr, prefix: u8) -> io::Result<Option<OtherRoute>> {
        let asked = Request::new(RTM_GETROUTE, 0).route_as_it_stands(family(network)).ip(RTA_DST, network);
        match asked.ask(&self.netlink, |answer| Some(OtherRoute::of(answer, prefix, self.index))) {
            Err(error) if matches!(error.raw_os_error(), Some(NO_ROUTE | NO_HOST_ROUTE)) => Ok(None),
            found => found,
        }
    }

    /// The same, if there is no such route; one by another interface with the same metric stays.
    ///
    /// # Errors
    /// As [`Interface::add_route`]; `AlreadyExists` if it is there.
    pub fn keep_route(&self, network: IpAddr, prefix: u8) -> io::Result<()> {
        self.new_route(NLM_F_CREATE, network, prefix)
    }

    fn new_route(&self, flags: u16, network: IpAddr, prefix: u8) -> io::Result<()> {
        Request::new(RTM_NEWROUTE, flags)
            .route(family(network), prefix)
            .ip(RTA_DST, network)
            .attribute(RTA_OIF, &self.index.to_ne_bytes())
            .send(&self.netlink)
    }

    /// Sends what goes to the network out by this interface no longer.
    ///
    /// # Errors
    /// As [`Interface::set_up`], and if there is no such route.
    pub fn remove_route(&self, network: IpAddr, prefix: u8) -> io::Result<()> {
        Request::new(RTM_DELROUTE, 0)
            .route(family(network), prefix)
            .ip(RTA_DST, network)
            .attribute(RTA_OIF, &self.index.to_ne_bytes())
            .send(&self.netlink)
    }
}

/// Settings of an interface for IPv4, as its sysctls.
struct Settings {
    accept_local: u32,
    rp_filter: u32,
}

/// The setting of all interfaces.
fn all_rp_filter(netlink: &OwnedFd) -> io::Result<u32> {
    const ALL: i32 = -1;
    // `netconfmsg`: the family, and padding.
    let request = Request::new(RTM_GETNETCONF, 0).family(AF_INET);
    request
        .attribute(NETCONFA_IFINDEX, &ALL.to_ne_bytes())
        .ask(netlink, |answer| u32_at(find(answer.get(4..)?, NETCONFA_RP_FILTER)?, 0))
}

/// A route to a network that is not by the interface of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRoute {
    /// `rtmsg` without its flags, and the attributes that make the route.
    head: [u8; RTMSG],
    attributes: Vec<(u16, Vec<u8>)>,
}

impl OtherRoute {
    fn of(answer: &[u8], prefix: u8, index: u32) -> Option<OtherRoute> {
        let mut head: [u8; RTMSG] = *answer.first_chunk()?;
        let [_, len, _, _, table, _, _, kind, ..] = head;
        // The flags are those of the answer.
        head[8..].fill(0);
        let rest = answer.get(RTMSG..)?;
        let known = |kind| Some((kind, find(rest, kind)?.to_vec()));
        let number =
            |kind| find(rest, kind).and_then(|value| Some(u32::from_ne_bytes(*value.first_chunk()?)));
        // Without a metric, IPv6 takes IP6_RT_PRIO_USER.
        let usual = if head[0] == AF_INET6 { 1_024 } else { 0 };
        let replaced = len == prefix && table == 254 && kind == RTN_UNICAST;
        let other = number(RTA_OIF) != Some(index) && number(RTA_PRIORITY).unwrap_or(0) == usual;
        let attributes =
            [RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_METRICS, RTA_MULTIPATH, RTA_VIA];
        (replaced && other)
            .then(|| OtherRoute { head, attributes: attributes.into_iter().filter_map(known).collect() })
    }

    /// The next hop, if it is a router.
    pub fn gateway(&self) -> Option<IpAddr> {
        let value = &self.attributes.iter().find(|(kind, _)| *kind == RTA_GATEWAY)?.1;
        let v4 = <[u8; 4]>::try_from(&value[..]).map(IpAddr::from);
        v4.or_else(|_| <[u8; 16]>::try_from(&value[..]).map(IpAddr::from)).ok()
    }
}

/// Adds a route again that [`Interface::replaces`] has found, if the network has none now.
///
/// # Errors
/// Without `CAP_NET_ADMIN`, if there is a route, and if its interface or next hop is gone.
pub fn give_route_back(route: &OtherRoute) -> io::Result<()> {
    give_back(&request::open()?, route)
}

fn give_back(netlink: &OwnedFd, route: &OtherRoute) -> io::Result<()> {
    let request = Request::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL).head(&route.head);
    route
        .attributes
        .iter()
        .fold(request, |request, (kind, value)| request.attribute(*kind, value))
        .send(netlink)
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv6() { AF_INET6 } else { AF_INET }
}

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/netconf.h, linux/netlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETNETCONF: u16 = 82;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_RP_FILTER: u16 = 3;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_STATS64: u16 = 23;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET_CONF: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const RTA_DST: u16 = 1;
const RTM_GETROUTE: u16 = 26;
const RTMSG: usize = 12;
const RTN_UNICAST: u8 = 1;
/// What the scope of an address says of it: it is known everywhere, or to this machine alone.
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_HOST: u8 = 254;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_VIA: u16 = 18;
/// `ENETUNREACH` and `EHOSTUNREACH`.
const NO_ROUTE: i32 = 101;
const NO_HOST_ROUTE: i32 = 113;
const IFF_UP: u32 = 1;
/// Disables duplicate address detection: no host behind a TUN device could have the address.
const IFA_F_NODAD: u8 = 2;
/// Adds no route to the network of the prefix.
const IFA_F_NOPREFIXROUTE: u32 = 0x200;
/// `IPV4_DEVCONF_RP_FILTER` and `IPV4_DEVCONF_ACCEPT_LOCAL` (linux/ip.h).
const RP_FILTER: u16 = 8;
const ACCEPT_LOCAL: u16 = 23;
/// Values of `rp_filter`: the way back must be by the same interface, or by any.
const STRICT: u32 = 1;
const LOOSE: u32 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
