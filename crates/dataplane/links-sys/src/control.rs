//! Control messages: what goes with a datagram beside its bytes.

use std::net::IpAddr;

use crate::address;

/// Control data that the kernel returns with a received datagram or takes with a sent one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Received: the address that the datagram was sent to. Sent: the address it comes from.
    pub local: Option<IpAddr>,
    /// DSCP and ECN (`IP_TOS`, `IPV6_TCLASS`).
    pub traffic_class: Option<u8>,
    /// Time to live or hop limit; sent: the socket's own if there is none.
    pub hop_limit: Option<u8>,
    /// Sent: the flow label of IPv6. Received: not used.
    pub flow_label: Option<u32>,
    /// Length of each part but the last, if the bytes are several datagrams in one (`UDP_GRO`,
    /// `UDP_SEGMENT`).
    pub segment: Option<u16>,
    /// Received by packet sockets: bytes before the IP header (`PACKET_AUXDATA`).
    pub network: Option<u16>,
}

/// linux/in6.h.
const IPV6_FLOWINFO: libc::c_int = 11;

/// A header of a control message: length as a `size_t`, level, type.
const HEADER: usize = size_of::<libc::cmsghdr>();
/// What headers and data are aligned to.
const ALIGN: usize = size_of::<usize>();

/// Room for all that [`Control`] can hold: packet info of IPv6 (20 bytes), class, hop limit, flow label and segment
/// length, each with its header.
pub(crate) const ROOM: usize = (HEADER + 24) + 4 * (HEADER + ALIGN);

/// The bytes of control messages, aligned as their headers want.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Buffer(pub(crate) [u8; ROOM]);

impl Buffer {
    pub(crate) const EMPTY: Buffer = Buffer([0; ROOM]);

    /// Writes the messages for sending; `v6` is the family of the socket. Returns their length.
    #[inline]
    pub(crate) fn write(&mut self, control: &Control, v6: bool) -> usize {
        let mut at = 0;
        match control.local {
            Some(IpAddr::V4(local)) => {
                // in_pktinfo: interface, local address, destination (ignored).
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&local.octets());
                at = self.put(at, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(IpAddr::V6(local)) => {
                // in6_pktinfo: local address, interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&local.octets());
                at = self.put(at, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if let Some(class) = control.traffic_class {
            let class = libc::c_int::from(class).to_ne_bytes();
            at = match v6 {
                true => self.put(at, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class),
                false => self.put(at, libc::IPPROTO_IP, libc::IP_TOS, &class),
            };
        }
        if let Some(hops) = control.hop_limit {
            let hops = libc::c_int::from(hops).to_ne_bytes();
            at = match v6 {
                true => self.put(at, libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &hops),
                false => self.put(at, libc::IPPROTO_IP, libc::IP_TTL, &hops),
            };
        }
        if let Some(label) = control.flow_label.filter(|_| v6) {
            at = self.put(at, libc::IPPROTO_IPV6, IPV6_FLOWINFO, &label.to_be_bytes());
        }
        if let Some(segment) = control.segment {
            at = self.put(at, libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        at
    }

    /// Appends one message; `ROOM` holds one of each kind, so there is always place.
    #[inline]
    fn put(&mut self, at: usize, level: libc::c_int, kind: libc::c_int, data: &[u8]) -> usize {
        let message = &mut self.0[at..];
        message[..8].copy_from_slice(&(HEADER + data.len()).to_ne_bytes());
        message[8..12].copy_from_slice(&level.to_ne_bytes());
        message[12..16].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER..HEADER + data.len()].copy_from_slice(data);
        at + HEADER + data.len().next_multiple_of(ALIGN)
    }

    /// Reads what the kernel has written, `len` bytes; what is not known is passed over.
    #[inline]
    pub(crate) fn read(&self, len: usize) -> Control {
        let mut control = Control::default();
        let mut rest = &self.0[..len.min(ROOM)];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let [l0, l1, l2, l3, l4, l5, l6, l7, v0, v1, v2, v3, t0, t1, t2, t3] = *header;
            let len = usize::from_ne_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
            let Some(data) = rest.get(HEADER..len) else { break };
            let level = libc::c_int::from_ne_bytes([v0, v1, v2, v3]);
            let kind = libc::c_int::from_ne_bytes([t0, t1, t2, t3]);
            control.learn(level, kind, data);
            rest = rest.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        }
        control
    }
}

impl Control {
    #[inline]
    fn learn(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // The destination in the header; `ipi_spec_dst` before it is where an answer comes from.
                self.local = data.get(8..).and_then(<[u8]>::first_chunk).map(|b| address::ipv4(*b));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.local = data.first_chunk().map(|b| address::ipv6(*b));
            }
            // One byte here, an int when sent.
            (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = data.first().copied(),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => self.traffic_class = int(data).map(|n| n as u8),
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                self.hop_limit = int(data).map(|n| n as u8);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => self.segment = int(data).and_then(|n| u16::try_from(n).ok()),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // tpacket_auxdata: status, length, length kept (32 bits each), `tp_mac`, `tp_net`.
                self.network = data.get(14..16).map(|b| u16::from_ne_bytes([b[0], b[1]]));
            }
            _ => {}
        }
    }
}

#[inline]
fn int(data: &[u8]) -> Option<libc::c_int> {
    data.first_chunk().map(|b| libc::c_int::from_ne_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_but_for_the_places_of_addresses_and_ints() {
        let mut buffer = Buffer::EMPTY;
        let control = Control {
            local: Some("2001:db8::7".parse().unwrap()),
            traffic_class: Some(0xb9),
            hop_limit: Some(17),
            flow_label: Some(0x1_2345),
            segment: Some(1400),
            network: None,
        };
        let len = buffer.write(&control, true);
        assert_eq!(len, 40 + 24 + 24 + 24 + 24);
        let control = Control { flow_label: None, ..control };
        // UDP_SEGMENT is another option than UDP_GRO.
        assert_eq!(buffer.read(len), Control { segment: None, ..control });
    }

    #[test]
    fn nonsense_ends_the_list() {
        let mut buffer = Buffer([0xff; ROOM]);
        assert_eq!(buffer.read(ROOM), Control::default());
        buffer.0[..8].copy_from_slice(&0usize.to_ne_bytes());
        assert_eq!(buffer.read(ROOM), Control::default());
    }
}
