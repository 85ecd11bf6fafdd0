//! Network devices by DPDK, as `[inside]` and `[[outside]]` name them.

use std::net::IpAddr;
use std::str::FromStr;

use forebay_scenario::Unit;
use ipnet::IpNet;

use super::reader::Reader;

/// A network device by DPDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkDevice {
    /// DPDK's name of it.
    pub device: String,
    /// What it is made with.
    pub arguments: String,
    /// The link's own addresses with the networks that are on its Ethernet.
    pub addresses: Vec<IpNet>,
    /// Next hops to other networks.
    pub gateways: Vec<IpAddr>,
    /// Neighbours whose Ethernet address is given.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Largest packet in bytes.
    pub mtu: u16,
    /// Its queues, each with a core of its own.
    pub queues: usize,
    /// Packets that have room in a queue.
    pub descriptors: u16,
}

/// `ADDRESS=MAC`.
struct Neighbour(IpAddr, [u8; 6]);

impl FromStr for Neighbour {
    type Err = ();

    fn from_str(text: &str) -> Result<Neighbour, ()> {
        let (address, mac) = text.split_once('=').ok_or(())?;
        let mut bytes = [0; 6];
        let mut parts = mac.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        // A group is no neighbour.
        let is_one = bytes[0] & 1 == 0 && bytes != [0; 6] && parts.next().is_none();
        if is_one { Ok(Neighbour(address.parse().map_err(|_| ())?, bytes)) } else { Err(()) }
    }
}

/// Reads the keys of a network device.
pub(super) fn device(section: &Reader<'_>) -> Option<NetworkDevice> {
    let device = section.text("device").filter(|device| is_name(device, section));
    let arguments = if section.has("arguments") { section.text("arguments") } else { Some(String::new()) };
    let addresses = section
        .each_parsed::<IpNet>("addresses", "expected an address with its prefix length: \"10.1.0.1/24\"");
    let gateways = match section.has("gateway") {
        true => section.each_parsed::<IpAddr>("gateway", "expected an address: \"10.1.0.254\""),
        false => Some(vec![]),
    };
    let neighbours = match section.has("neighbours") {
        true => section.each_parsed::<Neighbour>(
            "neighbours",
            "expected an IP address and an Ethernet address: \"10.1.0.9=02:00:00:00:00:09\"",
        ),
        false => Some(vec![]),
    };
    let neighbours: Option<Vec<_>> =
        neighbours.map(|all| all.into_iter().map(|Neighbour(address, mac)| (address, mac)).collect());
    let mtu = section.whole("mtu").map(|mtu| mtu as u16);
    let queues = section.count("queues");
    let descriptors = section.whole("descriptors").map(|descriptors| descriptors as u16);
    if descriptors.is_some_and(|descriptors| !descriptors.is_power_of_two()) {
        let message = format!("`descriptors` is {}", descriptors?);
        section.conflict("descriptors", message, "expected a power of two: 1024, 2048");
    }
    let (addresses, gateways, mtu) = (addresses?, gateways?, mtu?);
    check_addresses(&addresses, mtu, section);
    check_gateways(&addresses, &gateways, section);
    Some(NetworkDevice {
        device: device?,
        arguments: arguments?,
        addresses,
        gateways,
        neighbours: neighbours?,
        mtu,
        queues: queues?,
        descriptors: descriptors?,
    })
}

/// What is behind the name is not part of it.
fn is_name(device: &str, section: &Reader<'_>) -> bool {
    let is_odd = device.contains(|char: char| char == ',' || char.is_whitespace() || char.is_control());
    if is_odd {
        let help =
            "`device` is a PCI address or a name such as net_memif0; put what it is made with in `arguments`";
        section.conflict("device", "`device` has a comma or a space", help);
    }
    !is_odd
}

fn check_addresses(addresses: &[IpNet], mtu: u16, section: &Reader<'_>) {
    let own: Vec<IpAddr> = addresses.iter().map(IpNet::addr).collect();
    super::links::check_distinct("addresses", &own, section);
    for net in addresses {
        let own = net.addr();
        // Of a /31, a /32 and their like all addresses are hosts (RFC 3021).
        let is_no_host = net.prefix_len() + 2 <= net.max_prefix_len()
            && (matches!(net, IpNet::V4(v4) if v4.broadcast() == v4.addr()) || net.network() == own);
        if own.is_unspecified() || own.is_multicast() || is_no_host {
            let help = "give an address of a host, with the length of its network: \"10.1.0.1/24\"";
            section.conflict("addresses", format!("{net} is not the address of a host"), help);
        }
    }
    if mtu < 1280 && addresses.iter().any(|address| matches!(address, IpNet::V6(_))) {
        let message = format!("an MTU of {mtu} with an IPv6 address");
        section.conflict("mtu", message, "IPv6 requires at least 1280 (RFC 8200 5)");
    }
}

fn check_gateways(addresses: &[IpNet], gateways: &[IpAddr], section: &Reader<'_>) {
    for (at, gateway) in gateways.iter().enumerate() {
        if gateways[..at].iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            let help = "give at most one IPv4 and one IPv6 address";
            section.conflict("gateway", "several next hops of one IP version in `gateway`", help);
        }
        let is_link_local = matches!(gateway, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let has_version = addresses.iter().any(|own| own.addr().is_ipv4() == gateway.is_ipv4());
        let is_near = addresses.iter().any(|own| own.contains(gateway)) || is_link_local && has_version;
        let is_own = addresses.iter().any(|own| own.addr() == *gateway);
        if is_own || !is_near {
            let what =
                if is_own { "is an address of the link itself" } else { "is in no network of `addresses`" };
            let help = "give the router's address in the network of the link";
            section.conflict("gateway", format!("the next hop {gateway} {what}"), help);
        }
    }
}

/// Reads the UDP ports of an outside device.
pub(super) fn udp_ports(section: &Reader<'_>) -> Option<Vec<u16>> {
    let ports = section.each("ports", |values, node| values.whole_of("ports", node, Unit::None, 1, 65_535));
    let ports: Vec<u16> = ports?.into_iter().map(|port| port as u16).collect();
    super::links::check_distinct("ports", &ports, section);
    Some(ports)
}
