//! A link by AF_XDP (Documentation/networking/af_xdp.rst in Linux): frames of an Ethernet device come into
//! and go out of memory shared with the kernel, past its stack.
//!
//! A small XDP program looks at each frame that comes: what is for the gateway goes to the socket of its
//! receive queue, all else goes on to the kernel as if nobody had looked. The program is made of a few dozen
//! instructions here, so neither a compiler nor a loader is needed; it goes when the last link of the device
//! is dropped.
//!
//! What the program leaves to the kernel although it is IPsec: frames with VLAN tags, IPv4 with options, IPv6
//! with extension headers, and fragments. Links over sockets get those. A device that takes tags off frames
//! hides them from the program as well: where there are VLANs, that is to be switched off
//! (`ethtool -K <device> rxvlan off`).
//!
//! On the inside, checksums that senders on a veth or bridge leave to their device are completed here. Trains of
//! packets that they leave to it (TSO, GSO) are not taken apart: the kernel sends none to a veth whose driver runs the
//! program; with [`Mode::Generic`] they are lost, so they have to be switched off at the sender's end
//! (`ethtool -K <device> tso off gso off tx-udp-segmentation off`).
#![cfg(target_os = "linux")]
// When an entry about a neighbour is old; and how long a device is waited for.
#![allow(clippy::disallowed_methods)]

mod area;
mod assembler;
mod frames;
mod kernel;
mod link;
mod neighbours;
mod program;
mod ring;
mod socket;

pub use link::{MAX_PACKET, Mode, XdpLink, XdpOptions, open};
pub use program::{Network, Take};
