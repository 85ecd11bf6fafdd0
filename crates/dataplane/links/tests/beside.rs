//! ESP in UDP beside a socket that an IKE daemon has on the port.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "support/namespace.rs"]
mod namespace;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use forebay_links::beside::{self, BesideLink, BesideOptions};
use forebay_links::udp::{self, UdpLink, UdpOptions, steer};
use forebay_links::{Link, TxReport};
use forebay_links_sys::option;
use forebay_wire::checksum::Sum;
use forebay_wire::{Ip, Udp};
use namespace::{Namespace, cable};

const SOL_UDP: i32 = 17;
const UDP_ENCAP: i32 = 100;
const UDP_ENCAP_ESPINUDP: i32 = 2;

const ENDS: [(&str, &str); 2] = [("10.8.0.1:4500", "10.8.0.2:4500"), ("[fd08::1]:4500", "[fd08::2]:4500")];

/// What charon and pluto do.
fn daemon(namespace: &Namespace, local: SocketAddr) -> UdpSocket {
    let socket = namespace.run(move || UdpSocket::bind(local).unwrap());
    option::set(socket.as_fd(), SOL_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    socket
}

fn open(namespace: &Namespace, options: BesideOptions) -> Vec<BesideLink> {
    namespace.run(move || beside::open(&options).unwrap())
}

fn take(link: &mut impl Link, count: usize, room: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while packets.len() < count && Instant::now() < until {
        let given = link.receive(room, &mut |head, body| packets.push([head, body].concat())).unwrap();
        assert!(given <= room);
    }
    packets
}

/// A packet as the engine makes it, with the checksum that IPv6 wants.
fn packet(from: SocketAddr, to: SocketAddr, may_fragment: bool, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let len = 8 + payload.len() as u16;
    match (from.ip(), to.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            packet.extend([0x45, 0x02]);
            packet.extend((20 + len).to_be_bytes());
            // The kernel puts another identification in the place of zero, in each fragment.
            let (identification, flags) = if may_fragment { (1, 0) } else { (0, 0x40) };
            packet.extend([0, identification, flags, 0, 64, 17, 0, 0]);
            packet.extend(a.octets());
            packet.extend(b.octets());
            let checksum = Sum::ZERO.bytes(&packet).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            packet.extend((0x6000_0000u32 | 2 << 20).to_be_bytes());
            packet.extend(len.to_be_bytes());
            packet.extend([17, 64]);
            packet.extend(a.octets());
            packet.extend(b.octets());
        }
        _ => unreachable!(),
    }
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(len.to_be_bytes());
    packet.extend([0; 2]);
    packet.extend(payload);
    if from.is_ipv6() {
        forebay_wire::udp::fill_checksum_v6(&mut packet, 40);
    }
    packet
}

/// ESP of an SPI, as far as links look at it.
fn esp(spi: u32, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at * 31 + len * 7 + 1) as u8).collect();
    bytes[..4].copy_from_slice(&spi.to_be_bytes());
    bytes
}

fn payload(packet: &[u8]) -> &[u8] {
    let ip = Ip::parse(packet).unwrap();
    let header = if packet[0] >> 4 == 4 { 20 } else { 40 };
    Udp::parse(&ip.bytes()[header..]).unwrap().payload()
}

#[test]
fn esp_comes_and_goes_while_the_daemon_hears_of_ike_only() {
    let Some([a, b]) = cable(1500) else { return };
    for (far, near) in ENDS.map(|(far, near)| (far.parse().unwrap(), near.parse::<SocketAddr>().unwrap())) {
        let daemon = daemon(&b, near);
        let mut beside = open(&b, BesideOptions::at(near)).remove(0);
        let mut peer: UdpLink = a.run(move || udp::open(&UdpOptions::at(far)).unwrap()).remove(0);
        // Trains, which the cable leaves as they are, and single ones.
        let mut lens = vec![1_400; 200];
        lens.extend([1_200, 9, 10, 64, 1_400, 1_400, 1_400, 700, 100]);
        let there: Vec<Vec<u8>> =
            lens.iter().map(|&len| packet(far, near, false, &esp(0x1234_5678, len))).collect();
        let mut burst: Vec<&[u8]> = there.iter().map(Vec::as_slice).collect();
        let ike = packet(far, near, false, b"\0\0\0\0an IKE message");
        let keepalive = packet(far, near, false, b"\xff");
        burst.insert(205, &ike);
        burst.insert(206, &keepalive);
        assert_eq!(peer.send(&burst), TxReport { taken: burst.len(), ..TxReport::default() });
        let taken = take(&mut beside, there.len(), 50);
        assert_eq!(taken.len(), there.len(), "{near}");
        for (taken, sent) in taken.iter().zip(&there) {
            assert!(payload(taken) == payload(sent));
            let (taken, sent) = (Ip::parse(taken).unwrap(), Ip::parse(sent).unwrap());
            assert_eq!((taken.source(), taken.destination()), (sent.source(), sent.destination()));
            assert_eq!(taken.traffic_class(), 2);
        }
        let mut bytes = [0; 2_000];
        let (len, from) = daemon.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..len], from), (&b"\0\0\0\0an IKE message"[..], far));
        daemon.set_nonblocking(true).unwrap();
        assert!(daemon.recv_from(&mut bytes).is_err(), "the daemon heard of more than IKE");

        let back: Vec<Vec<u8>> = lens.iter().map(|&len| packet(near, far, false, &esp(7, len))).collect();
        let burst: Vec<&[u8]> = back.iter().map(Vec::as_slice).collect();
        assert_eq!(beside.send(&burst), TxReport { taken: burst.len(), ..TxReport::default() });
        let taken = take(&mut peer, back.len(), 50);
        assert!(taken.iter().map(|one| payload(one)).eq(back.iter().map(|one| payload(one))), "{near}");
        let passed_over = beside.rx_drops();
        assert_eq!((passed_over.malformed, passed_over.truncated, passed_over.overrun), (0, 0, 0));
    }
    // A kernel with ESP has silently dropped its copies; one without answers each with an ICMP error.
    let known = "ip xfrm state add src 192.0.2.7 dst 192.0.2.8 proto esp spi 9 aead rfc4106(gcm(aes)) \
                 0x0102030405060708090a0b0c0d0e0f1011121314 128";
    if !b.command(known).0 {
        eprintln!("this kernel has no ESP: that its own stack is silent is not looked at");
        return;
    }
    let (_, told) = b.command("cat /proc/net/snmp /proc/net/snmp6 /proc/net/xfrm_stat");
    let count = |name: &str| {
        let line = told.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
    };
    assert_eq!(count("Icmp6OutDestUnreachs"), Some(0), "{told}");
    let icmp: Vec<&str> = told.lines().filter(|line| line.starts_with("Icmp:")).collect();
    let unreachable = icmp[0].split(' ').position(|word| word == "OutDestUnreachs").unwrap();
    assert_eq!(icmp[1].split(' ').nth(unreachable), Some("0"), "{told}");
    assert!(count("XfrmInNoStates").is_none_or(|count| count > 400), "{told}");
}

#[test]
fn what_is_for_others_is_left_alone() {
    let Some([a, b]) = cable(1500) else { return };
    b.ip("address add 10.8.0.3/24 dev cable");
    for (far, near) in ENDS.map(|(far, near)| (far.parse().unwrap(), near.parse::<SocketAddr>().unwrap())) {
        let _daemon = daemon(&b, near);
        let mut workers = open(&b, BesideOptions { workers: 3, ..BesideOptions::at(near) });
        let peer = a.run(move || UdpSocket::bind::<SocketAddr>(far).unwrap());
        let spis = [0x100u32, 0x101, 0x102, 0x103, 0xffff_ffff];
        spis.iter().for_each(|&spi| assert!(peer.send_to(&esp(spi, 100), near).is_ok()));
        // Another port, another address, too short.
        peer.send_to(&esp(0x103, 100), SocketAddr::new(near.ip(), 4_501)).unwrap();
        if far.is_ipv4() {
            a.ip("neighbour replace 10.8.0.3 lladdr 02:00:00:00:00:02 dev cable nud permanent");
            peer.send_to(&esp(0x103, 100), "10.8.0.3:4500").unwrap();
        }
        peer.send_to(&[1; 8], near).unwrap();
        for (worker, link) in workers.iter_mut().enumerate() {
            let expected: Vec<Vec<u8>> =
                spis.iter().filter(|&&spi| steer(spi, 3) == worker).map(|&spi| esp(spi, 100)).collect();
            let taken = take(link, expected.len(), 50);
            assert!(taken.iter().map(|one| payload(one)).eq(expected.iter().map(Vec::as_slice)));
            assert_eq!(link.receive(9, &mut |_, _| {}).unwrap(), 0);
        }
    }
}

#[test]
fn fragments_of_esp_come_and_others_do_not() {
    let Some([a, b]) = cable(1500) else { return };
    for (far, near) in ENDS.map(|(far, near)| (far.parse().unwrap(), near.parse::<SocketAddr>().unwrap())) {
        let _daemon = daemon(&b, near);
        let mut beside = open(&b, BesideOptions::at(near)).remove(0);
        let peer = a.run(move || UdpSocket::bind::<SocketAddr>(far).unwrap());
        let sent = [esp(9, 4_000), esp(10, 3_000)];
        peer.send_to(&sent[0], near).unwrap();
        peer.send_to(&[0; 4_000], near).unwrap();
        peer.send_to(&esp(11, 4_000), SocketAddr::new(near.ip(), 4_501)).unwrap();
        peer.send_to(&sent[1], near).unwrap();
        let taken = take(&mut beside, 6, 50);
        assert_eq!(taken.len(), 6, "{near}");
        assert_eq!(beside.receive(9, &mut |_, _| {}).unwrap(), 0);
        // Behind each other they are the datagrams.
        let header = if near.is_ipv4() { 20 } else { 48 };
        let whole: Vec<u8> = taken.iter().flat_map(|fragment| fragment[header..].to_vec()).collect();
        let (first, second) = whole.split_at(4_008);
        assert!(first[8..] == sent[0] && second[8..] == sent[1]);
    }
}

#[test]
fn what_is_too_big_goes_in_fragments_or_not_at_all() {
    let Some([a, b]) = cable(1500) else { return };
    let (far, near) = (ENDS[0].0.parse().unwrap(), ENDS[0].1.parse::<SocketAddr>().unwrap());
    let _daemon = daemon(&b, near);
    let mut beside = open(&b, BesideOptions::at(near)).remove(0);
    let mut peer: UdpLink = a.run(move || udp::open(&UdpOptions::at(far)).unwrap()).remove(0);
    let (may, may_not) = (packet(near, far, true, &esp(5, 3_000)), packet(near, far, false, &esp(5, 3_000)));
    let sent = b.run(move || {
        let sent = beside.send(&[&may, &may_not]);
        (sent, beside)
    });
    assert_eq!(sent.0, TxReport { taken: 1, too_big: 1, mtu: Some(1_500), ..TxReport::default() });
    assert!(payload(&take(&mut peer, 1, 9)[0]) == esp(5, 3_000));
}
