//! Tells the hosts of a network that an address is at this host's Ethernet address from now on: gratuitous ARP (RFC 5227 3)
//! and unsolicited neighbour advertisements (RFC 4861 7.2.6).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use forebay_links_sys::packet;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::interface::Interface;

/// What announces addresses of an interface.
#[derive(Debug)]
pub struct Announcer {
    socket: OwnedFd,
    interface: u32,
    ethernet: [u8; 6],
}

impl Announcer {
    /// For addresses of an interface.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, and if the interface has no Ethernet address.
    pub fn open(interface: &Interface) -> io::Result<Announcer> {
        // Protocol 0: it receives nothing.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Announcer { socket, interface: interface.index(), ethernet: interface.ethernet_address()? })
    }

    /// Announces an address once. Frames may be lost, so that it is to be repeated.
    ///
    /// # Errors
    /// What the system says.
    pub fn announce(&self, address: IpAddr) -> io::Result<()> {
        match address {
            // A request and a reply: some hosts listen to one kind only.
            IpAddr::V4(address) => [REQUEST, REPLY]
                .into_iter()
                .try_for_each(|operation| self.send(&arp(self.ethernet, address, operation))),
            IpAddr::V6(address) => self.send(&advertisement(self.ethernet, address)),
        }
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        packet::send(self.socket.as_fd(), self.interface, frame)
    }
}

const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// Sender and target are the address (RFC 5227 1.1, 3).
fn arp(ethernet: [u8; 6], address: Ipv4Addr, operation: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(60);
    frame.extend([0xff; 6]);
    frame.extend(ethernet);
    frame.extend([0x08, 0x06]);
    // Ethernet and IPv4, and the lengths of their addresses.
    frame.extend([0, 1, 0x08, 0, 6, 4]);
    frame.extend(operation.to_be_bytes());
    frame.extend(ethernet);
    frame.extend(address.octets());
    frame.extend([0xff; 6]);
    frame.extend(address.octets());
    frame.resize(60, 0);
    frame
}

/// To all nodes, as a router's, overriding what they know (RFC 4861 4.4).
fn advertisement(ethernet: [u8; 6], address: Ipv6Addr) -> Vec<u8> {
    const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    const ICMPV6: u8 = 58;
    let mut message = vec![136, 0, 0, 0, 0xa0, 0, 0, 0];
    message.extend(address.octets());
    // Target link-layer address, in units of 8 bytes.
    message.extend([2, 1]);
    message.extend(ethernet);
    let mut pseudo = Vec::with_capacity(80);
    pseudo.extend(address.octets());
    pseudo.extend(ALL_NODES.octets());
    pseudo.extend((message.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, ICMPV6]);
    pseudo.extend(&message);
    let mut sum: u32 = pseudo.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1];
    frame.extend(ethernet);
    frame.extend([0x86, 0xdd]);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    // The hop limit shows that it was not routed (RFC 4861 7.1.2).
    frame.extend([ICMPV6, 255]);
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: [u8; 6] = [2, 0, 0, 0, 0, 9];

    #[test]
    fn an_announcement_by_arp_has_the_address_as_sender_and_target() {
        let frame = arp(ETHERNET, Ipv4Addr::new(192, 0, 2, 9), REQUEST);
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[12..22], [0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
        assert_eq!(
            (&frame[22..28], &frame[28..32], &frame[38..42]),
            (&ETHERNET[..], &[192, 0, 2, 9][..], &[192, 0, 2, 9][..])
        );
    }

    #[test]
    fn an_advertisement_is_as_scapy_makes_it() {
        // bytes(Ether(src="02:00:00:00:00:09", dst="33:33:00:00:00:01") / IPv6(src="2001:db8::9", dst="ff02::1", hlim=255) /
        //       ICMPv6ND_NA(tgt="2001:db8::9", R=1, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr="02:00:00:00:00:09")).hex()
        let text: String = advertisement(ETHERNET, "2001:db8::9".parse().unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(text, SCAPY);
    }

    const SCAPY: &str = "33330000000102000000000986dd6000000000203aff20010db8000000000000000000000009ff02000000000000000000000000000188007912a000000020010db80000000000000000000000090201020000000009";
}
