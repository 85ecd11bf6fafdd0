//! What a device's links are to be.

use std::net::IpAddr;

use forebay_links::Link;
use ipnet::IpNet;

use crate::{Mac, Unavailable};

/// Which packets a link takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// All that is sent to the link's Ethernet address and not for its own IP addresses.
    Inside,
    /// ESP, AH, and ESP in UDP at these ports, for the link's own IP addresses.
    Outside {
        /// UDP ports; 4500 (RFC 3948).
        ports: Vec<u16>,
    },
}

/// What a device's links are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// DPDK's name of the device: a PCI address (`0000:3d:00.0`), or the name of a virtual device with a number
    /// (`net_memif0`), which is made if there is none.
    pub device: String,
    /// What it is made with, `key=value,key=value`.
    pub arguments: String,
    /// Its own IP addresses, each with the network that is on its Ethernet.
    pub addresses: Vec<IpNet>,
    /// Routers for other destinations, at most one of each IP version.
    pub gateways: Vec<IpAddr>,
    /// Neighbours that are not asked for.
    pub neighbours: Vec<(IpAddr, Mac)>,
    /// Largest packet in bytes.
    pub mtu: u16,
    /// Number of queues, each of which becomes a link; as many as the device has, if these are fewer.
    pub queues: u16,
    /// Frames that have room in a queue, each direction.
    pub descriptors: u16,
    /// Buffers of all queues together; `None`: as many as its queues, its caches and bursts can have.
    pub buffers: Option<u32>,
    /// Which packets are taken.
    pub side: Side,
}

impl PortOptions {
    /// A queue of 1,024 frames in each direction, for packets of 1,500 bytes.
    pub fn new(device: &str, arguments: &str, side: Side) -> PortOptions {
        PortOptions {
            device: device.to_owned(),
            arguments: arguments.to_owned(),
            addresses: vec![],
            gateways: vec![],
            neighbours: vec![],
            mtu: 1_500,
            queues: 1,
            descriptors: 1_024,
            buffers: None,
            side,
        }
    }
}

/// An opened device.
pub struct Opened {
    /// A link for each of its queues.
    pub links: Vec<Box<dyn Link + Send>>,
    /// ICMP errors about packets that were too big for their path, of an outside.
    pub icmp: Option<crate::IcmpLink>,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Whether its link is up.
    pub is_up: bool,
    /// Looks at it from now on.
    pub watch: crate::Watch,
}

/// What has changed about the link of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its link is up again, or for the first time.
    Up,
    /// Its link is down.
    Down {
        /// The device connects to its other end when it is made and never again, so that it is made again when a process
        /// listens there.
        is_made_again: bool,
    },
    /// The device was made again. The link is up when the other end has agreed.
    MadeAgain,
    /// The device cannot be made again. It is tried anew when it is next looked at.
    Failed(Unavailable),
}

/// Of a build without DPDK there is none.
#[cfg(not(dpdk))]
#[derive(Debug)]
pub enum Watch {}

#[cfg(not(dpdk))]
impl Watch {
    /// As in a build with DPDK.
    pub fn wait(&mut self) -> Option<Option<Change>> {
        match *self {}
    }

    /// As in a build with DPDK.
    pub fn look(&mut self) -> Option<Option<Change>> {
        match *self {}
    }
}
