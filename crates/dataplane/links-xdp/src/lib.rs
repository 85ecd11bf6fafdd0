//! A link by AF_XDP (Documentation/networking/af_xdp.rst in Linux): frames of an Ethernet device are received and
//! sent in memory shared with the kernel, without its network stack.
//!
//! A small XDP program inspects each frame that arrives: frames for the gateway go to the socket of their receive
//! queue, and all others continue into the kernel unchanged. The program is assembled here from a few dozen
//! instructions, so neither a compiler nor a loader is needed. It is removed when the last link of the device is
//! dropped.
//!
//! The program leaves some IPsec packets to the kernel: frames with VLAN tags, IPv4 with options, IPv6 with extension
//! headers, and fragments. Links over sockets receive those. A device that strips VLAN tags hides them from the
//! program as well, so stripping has to be switched off where there are VLANs (`ethtool -K <device> rxvlan off`).
//!
//! On the inside, this link completes checksums that senders on a veth or bridge leave to their device. It does not
//! segment the large packets that they leave to it (TSO, GSO). The kernel sends none to a veth whose driver runs the
//! program. With [`Mode::Generic`] such packets are lost, so segmentation offload has to be switched off at the
//! sender's end (`ethtool -K <device> tso off gso off tx-udp-segmentation off`).
#![cfg(target_os = "linux")]
// When an entry about a neighbour is old; and how long a device is waited for.
#![allow(clippy::disallowed_methods)]

mod area;
mod frames;
mod link;
mod neighbours;
mod program;
mod ring;
mod socket;

pub use link::{Copying, MAX_PACKET, Mode, XdpLink, XdpOptions, open};
pub use program::{Network, Take};
