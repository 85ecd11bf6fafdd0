//! Features of network interfaces, such as the offloads of a NIC, as ethtool(8) shows and changes them (`ethtool -k`, `-K`): by
//! the generic netlink family `ethtool` (Documentation/networking/ethtool-netlink.rst, `linux/ethtool_netlink.h`).

use std::io;
use std::os::fd::OwnedFd;

use forebay_netlink::{
    ACK, Attributes, ERROR, Frames, find, put_attribute, put_message, put_nested, u16_at, u32_at,
};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// UDP packets of one flow that are to be forwarded are joined as they arrive (`NETIF_F_GRO_UDP_FWD`, Linux 5.12).
pub const RX_UDP_GRO_FORWARDING: &str = "rx-udp-gro-forwarding";
/// The interface takes UDP packets of one flow as one and segments them itself (`NETIF_F_GSO_UDP_L4`).
pub const TX_UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Packets are joined as they arrive, without which [`RX_UDP_GRO_FORWARDING`] has no effect (`NETIF_F_GRO`).
pub const RX_GRO: &str = "rx-gro";
/// The kernel takes batches apart in front of the driver, where that does not segment (`NETIF_F_GSO`).
pub const TX_GENERIC_SEGMENTATION: &str = "tx-generic-segmentation";

/// A feature of an interface at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on.
    pub is_on: bool,
    /// Whether it can be changed: the driver has it and does not fix it.
    pub is_changeable: bool,
}

/// The features of the interfaces of the network namespace that the thread was in when this was opened.
#[derive(Debug)]
pub struct Features {
    socket: OwnedFd,
    /// The number that the kernel has given the family.
    family: u16,
    sequence: u32,
}

impl Features {
    /// Opens the socket and looks the family up.
    ///
    /// # Errors
    /// `Unsupported` if the kernel has no ethtool-netlink (before Linux 5.6).
    pub fn open() -> io::Result<Features> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::GENERIC))?;
        let mut features = Features { socket, family: CONTROLLER, sequence: 0 };
        let name = |message: &mut Vec<u8>| put_attribute(message, FAMILY_NAME, b"ethtool\0");
        let answer = features.exchange(GET_FAMILY, 0, name).map_err(|error| {
            // ENOENT: there is no such family.
            if error.kind() == io::ErrorKind::NotFound { io::ErrorKind::Unsupported.into() } else { error }
        })?;
        features.family = find(&answer, FAMILY_ID).and_then(|id| u16_at(id, 0)).ok_or_else(malformed)?;
        Ok(features)
    }

    /// The features with these names of an interface; `None` for one that this kernel does not have.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn read<const N: usize>(
        &mut self,
        interface: &str,
        names: [&str; N],
    ) -> io::Result<[Option<Feature>; N]> {
        let answer = self.exchange(FEATURES_GET, 0, |message| header(message, interface, 0))?;
        let set = |kind| find(&answer, kind).ok_or_else(malformed);
        // What the driver lets be changed, which lists the bits that are not set too; and what it never does.
        let (hardware, active, fixed) = (set(HARDWARE)?, set(ACTIVE)?, set(NEVER_CHANGED)?);
        Ok(names.map(|name| {
            let changeable = bit(hardware, name)?;
            let is_changeable = changeable && bit(fixed, name).is_none();
            Some(Feature { is_on: bit(active, name).is_some(), is_changeable })
        }))
    }

    /// Switches a feature of an interface; whether it is as asked for then, which the driver decides.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, if there is no such interface, or no such feature.
    pub fn switch(&mut self, interface: &str, name: &str, is_on: bool) -> io::Result<bool> {
        self.exchange(FEATURES_SET, ACK, |message| {
            header(message, interface, OMIT_REPLY);
            put_nested(message, WANTED, |set| {
                put_nested(set, BITS, |bits| {
                    put_nested(bits, BIT, |bit| {
                        put_attribute(bit, BIT_NAME, &[name.as_bytes(), &[0]].concat());
                        if is_on {
                            put_attribute(bit, BIT_VALUE, &[]);
                        }
                    });
                });
            });
        })?;
        let [feature] = self.read(interface, [name])?;
        Ok(feature.is_some_and(|feature| feature.is_on == is_on))
    }

    /// Sends a request; the attributes of the answer, which are none for an acknowledgement.
    fn exchange(&mut self, command: u8, flags: u16, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = Vec::new();
        // `genlmsghdr`: the command and a version.
        put_message(&mut request, self.family, flags, self.sequence, &[command, 1, 0, 0], write);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut room = vec![0; ANSWER];
        loop {
            let len = match recv(&self.socket, &mut room[..], RecvFlags::empty()) {
                Ok((len, _)) => len.min(ANSWER),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let frame = Frames::new(&room[..len]).next().and_then(Result::ok).ok_or_else(malformed)?;
            match frame.kind {
                // The answer to a request whose reader was interrupted by an error.
                _ if frame.sequence != self.sequence => {}
                ERROR => {
                    return match u32_at(frame.body, 0).ok_or_else(malformed)?.cast_signed() {
                        0 => Ok(vec![]),
                        code => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
                    };
                }
                _ => return Ok(frame.body.get(GENERIC_HEADER..).unwrap_or_default().to_vec()),
            }
        }
    }
}

/// Which interface a request is about.
fn header(message: &mut Vec<u8>, interface: &str, flags: u32) {
    put_nested(message, HEADER, |header| {
        put_attribute(header, HEADER_NAME, &[interface.as_bytes(), &[0]].concat());
        put_attribute(header, HEADER_FLAGS, &flags.to_ne_bytes());
    });
}

/// Whether a bit of a set is on, by its name; `None` if the set does not list it.
fn bit(set: &[u8], name: &str) -> Option<bool> {
    let bits = Attributes::behind(find(set, BITS)?, 0).map_while(Result::ok);
    let named = |bit: &&[u8]| {
        let found = find(bit, BIT_NAME).unwrap_or_default();
        found.strip_suffix(&[0]).unwrap_or(found) == name.as_bytes()
    };
    let found = bits.map(|(_, bit)| bit).find(named)?;
    Some(find(found, BIT_VALUE).is_some())
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Room for an answer: four sets of some sixty features with their names are about 8 KiB.
const ANSWER: usize = 32 << 10;
/// Length of `struct genlmsghdr` in bytes.
const GENERIC_HEADER: usize = 4;

// linux/genetlink.h.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
// linux/ethtool_netlink.h.
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const HEADER: u16 = 1;
const HARDWARE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const NEVER_CHANGED: u16 = 5;
const HEADER_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_OMIT_REPLY`: the acknowledgement is enough.
const OMIT_REPLY: u32 = 2;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;
