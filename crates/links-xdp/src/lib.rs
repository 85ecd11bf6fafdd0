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
//! On the plain side, senders have to compute checksums and send no super-packets: a veth or bridge that leaves
//! that to the device does not fit (`ethtool -K <device> tx off` at the sender's end).
#![cfg(target_os = "linux")]
// When an entry about a neighbour is old.
#![allow(clippy::disallowed_methods)]

mod area;
mod assembler;
mod kernel;
mod link;
mod neighbours;
mod program;
mod ring;
mod socket;

pub use link::{Mode, XdpLink, XdpOptions, open};
pub use program::{Network, Take};
