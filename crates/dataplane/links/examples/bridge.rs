//! A tunnel without crypto: TUN on one side, UDP on the other, the links of the gateway between them. It shows
//! what the links cost alone.
//!
//!     bridge <device> <address/prefix> <mtu> <local ip:port> <peer ip:port> [plain]
//!
//! With `plain`, without offloads. It runs until it is killed; what it has moved and dropped it says every
//! second on standard error if `BRIDGE_VERBOSE` is set.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use forebay_links::{Link, TxReport, tun, udp};
use forebay_wire::{ipv4, ipv6, protocol};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const BURST: usize = 256;
const UDP: usize = 8;
/// In the place of ESP's header: an SPI that is not zero, and a sequence number.
const LABEL: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 0];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, address, mtu, local, peer, plain @ ..] = &arguments[..] else {
        return Err("bridge <device> <address/prefix> <mtu> <local> <peer> [plain]".into());
    };
    let (address, prefix) = address.split_once('/').ok_or("address/prefix expected")?;
    let (local, peer): (SocketAddr, SocketAddr) = (local.parse()?, peer.parse()?);
    let offloads = plain.is_empty();

    let options = tun::TunOptions { name: device.clone(), queues: 1, offloads };
    let (interface, mut queues) = tun::open(&options)?;
    let mtu: u32 = mtu.parse()?;
    interface.set_mtu(mtu)?;
    interface.set_up(true)?;
    let (address, prefix): (IpAddr, u8) = (address.parse()?, prefix.parse()?);
    interface.add_address(address, prefix)?;
    interface.add_route(network(address, prefix), prefix)?;
    let options = udp::UdpOptions { gso: offloads, gro: offloads, ..udp::UdpOptions::at(local) };
    let (mut tun, mut udp) = (queues.remove(0), udp::open(&options)?.remove(0));
    let outer = outer_header(local, peer);

    let verbose = std::env::var_os("BRIDGE_VERBOSE").is_some();
    let mut buffers = Buffers::new(mtu);
    let mut totals = [Total::default(), Total::default()];
    let mut rounds = 0u64;
    loop {
        let out = buffers.move_burst(&mut tun, &mut udp, 0, |head, body, packet| {
            packet.extend(&outer);
            packet.extend(&LABEL);
            packet.extend(head);
            packet.extend(body);
            set_lengths(packet);
        })?;
        let skip = outer.len() + LABEL.len();
        let inward = buffers.move_burst(&mut udp, &mut tun, skip, |head, body, packet| {
            packet.extend(head);
            packet.extend(body);
        })?;
        totals[0].add(out);
        totals[1].add(inward);
        rounds += 1;
        if verbose && rounds.is_multiple_of(20_000) {
            eprintln!("out {:?} in {:?}", totals[0], totals[1]);
        }
        if out.0 + inward.0 == 0 {
            let (tun, udp) = (tun.fd(), udp.fd());
            let mut fds = [PollFd::new(&tun, PollFlags::IN), PollFd::new(&udp, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }))?;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    packets: usize,
    bursts: usize,
    dropped: usize,
}

impl Total {
    fn add(&mut self, (packets, sent): (usize, TxReport)) {
        self.packets += packets;
        self.bursts += usize::from(packets > 0);
        self.dropped += sent.dropped() + sent.would_block;
    }
}

/// Packets between two links.
struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    fn new(mtu: u32) -> Buffers {
        // No larger than need be: what is in use should stay in the processor's cache.
        Buffers((0..BURST).map(|_| Vec::with_capacity(mtu as usize + 64)).collect())
    }

    /// Moves one burst; of each packet, the first `skip` bytes are not sent.
    fn move_burst(
        &mut self,
        from: &mut dyn Link,
        to: &mut dyn Link,
        skip: usize,
        make: impl Fn(&[u8], &[u8], &mut Vec<u8>),
    ) -> Result<(usize, TxReport), Box<dyn Error>> {
        let mut count = 0;
        from.receive(BURST, &mut |head, body| {
            self.0[count].clear();
            make(head, body, &mut self.0[count]);
            count += 1;
        })?;
        let mut packets = [&[][..]; BURST];
        for (packet, bytes) in packets.iter_mut().zip(&self.0[..count]) {
            *packet = bytes.get(skip..).unwrap_or_default();
        }
        Ok((count, to.send(&packets[..count])))
    }
}

fn outer_header(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let mut header = match (local, peer) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let mut header = vec![0; ipv4::MIN_HEADER];
            (header[0], header[6], header[8], header[9]) = (0x45, 0x40, 64, protocol::UDP);
            header[12..16].copy_from_slice(&from.ip().octets());
            header[16..20].copy_from_slice(&to.ip().octets());
            header
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let mut header = vec![0; ipv6::HEADER];
            (header[0], header[6], header[7]) = (0x60, protocol::UDP, 64);
            header[8..24].copy_from_slice(&from.ip().octets());
            header[24..40].copy_from_slice(&to.ip().octets());
            header
        }
        _ => panic!("both ends have one family"),
    };
    header.extend(local.port().to_be_bytes());
    header.extend(peer.port().to_be_bytes());
    header.extend([0; 4]);
    header
}

/// The lengths in the outer headers; checksums are the kernel's to see to.
fn set_lengths(packet: &mut [u8]) {
    let len = packet.len();
    let ip = if packet[0] >> 4 == 4 { ipv4::MIN_HEADER } else { ipv6::HEADER };
    let at = if ip == ipv4::MIN_HEADER { 2 } else { 4 };
    let ip_len = if ip == ipv4::MIN_HEADER { len } else { len - ip };
    packet[at..at + 2].copy_from_slice(&(ip_len as u16).to_be_bytes());
    packet[ip + 4..ip + 6].copy_from_slice(&((len - ip) as u16).to_be_bytes());
    debug_assert!(len > ip + UDP);
}

/// The network that an address is in.
fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            (u32::from(v4) & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)).to_be_bytes().into()
        }
        IpAddr::V6(v6) => (u128::from(v6) & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0))
            .to_be_bytes()
            .into(),
    }
}
