//! Links by AF_XDP on one end of a cable (veth), the kernel's own sockets on the other.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "../../links/tests/support/namespace.rs"]
mod namespace;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use forebay_links::raw::{self, Carries, RawLink, RawOptions};
use forebay_links::udp::{self, UdpLink, UdpOptions};
use forebay_links::{Link, TxReport};
use forebay_links_xdp::{Copying, Mode, Network, Take, XdpLink, XdpOptions};
use forebay_wire::checksum::Sum;
use forebay_wire::{Family, Fragments, Ip};
use namespace::{Namespace, cable};

const MODES: [Mode; 2] = [Mode::Generic, Mode::Driver];

fn outside() -> Take {
    let to = ["10.8.0.2", "fd08::2"].map(|to| Network::from(to.parse::<IpAddr>().unwrap()));
    Take::Outside { to: to.to_vec(), ports: vec![4500] }
}

/// The link on the cable's end; `None`, with a message, where the kernel has no AF_XDP.
fn open(namespace: &Namespace, take: Take, mode: Mode) -> Option<XdpLink> {
    let options = XdpOptions { mode, frames: 512, ..XdpOptions::new("cable", take) };
    match namespace.run(move || forebay_links_xdp::open(&options)) {
        Ok(mut links) => {
            assert_eq!(links[0].mode(), mode);
            Some(links.remove(0))
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{mode:?}: {error}"),
    }
}

fn take(link: &mut dyn Link, count: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while packets.len() < count && Instant::now() < until {
        link.receive(50, &mut |head, body| packets.push([head, body].concat())).unwrap();
    }
    packets
}

fn raw(namespace: &Namespace, family: Family, carries: Carries) -> RawLink {
    namespace.run(move || raw::open(&RawOptions::new(family, carries)).unwrap().remove(0))
}

fn packet(hosts: (u8, u8), family: Family, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    if family == Family::V4 {
        packet.extend([0x45, 0xb8]);
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([1, 2, 0x40, 0, 63, protocol, 0, 0, 10, 8, 0, hosts.0, 10, 8, 0, hosts.1]);
        let checksum = Sum::ZERO.bytes(&packet).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 63]);
        for host in [hosts.0, hosts.1] {
            packet.extend([0xfd, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    }
    packet.extend(payload);
    packet
}

fn payload(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + i * 7 + 1) as u8).collect()
}

#[test]
fn esp_and_ah_come_and_go() {
    for mode in MODES {
        let Some([a, b]) = cable(1500) else { return };
        let Some(mut xdp) = open(&b, outside(), mode) else { return };
        for family in [Family::V4, Family::V6] {
            for (carries, protocol) in [(Carries::Esp, 50), (Carries::Ah, 51)] {
                let mut peer = raw(&a, family, carries);
                let largest = 1500 - family.header_len();
                let lens = || (8..120).chain([700, largest - 1, largest]);
                let there: Vec<_> =
                    lens().map(|len| packet((1, 2), family, protocol, &payload(len, len))).collect();
                let back: Vec<_> =
                    lens().map(|len| packet((2, 1), family, protocol, &payload(len, len))).collect();
                for _ in 0..8 {
                    let slices: Vec<&[u8]> = there.iter().map(Vec::as_slice).collect();
                    assert_eq!(peer.send(&slices), TxReport { taken: there.len(), ..TxReport::default() });
                    assert!(take(&mut xdp, there.len()) == there, "{mode:?} {family:?} {carries:?}");
                    let slices: Vec<&[u8]> = back.iter().map(Vec::as_slice).collect();
                    assert_eq!(xdp.send(&slices), TxReport { taken: back.len(), ..TxReport::default() });
                    assert!(take(&mut peer, back.len()) == back, "{mode:?} {family:?} {carries:?}");
                }
                assert!(!xdp.pending());
            }
        }
    }
}

#[test]
fn what_is_not_the_gateways_goes_on_to_the_kernel() {
    for mode in MODES {
        let Some([a, b]) = cable(1500) else { return };
        let Some(mut xdp) = open(&b, outside(), mode) else { return };
        for (local, remote) in [("10.8.0.1:4500", "10.8.0.2:4500"), ("[fd08::1]:4500", "[fd08::2]:4500")] {
            let (local, remote): (SocketAddr, SocketAddr) = (local.parse().unwrap(), remote.parse().unwrap());
            let peer = a.run(move || UdpSocket::bind(local).unwrap());
            let daemon = b.run(move || UdpSocket::bind(remote).unwrap());
            daemon.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            let ike = b"\0\0\0\0an IKE message";
            let large = payload(0, 3_000);
            // A keepalive, IKE, a runt, fragments; among them two of ESP.
            let esp = b"\xc0\0\0\x01\0\0\0\x01and so on";
            let bursts: [&[u8]; 6] = [b"\xff", esp, ike, b"\xc0\0\0\x01", &large, esp];
            for bytes in bursts {
                peer.send_to(bytes, remote).unwrap();
            }
            let found = take(&mut xdp, 2);
            assert_eq!(found.len(), 2, "{mode:?} {local}");
            let head = if local.is_ipv4() { 28 } else { 48 };
            assert!(found.iter().all(|packet| packet[head..] == *esp));
            let mut buffer = [0; 4000];
            for expected in [&b"\xff"[..], ike, b"\xc0\0\0\x01", &large] {
                let (len, from) = daemon.recv_from(&mut buffer).unwrap();
                assert_eq!((&buffer[..len], from), (expected, local), "{mode:?}");
            }
            // Another port, and TCP.
            let other = b.run(move || UdpSocket::bind(SocketAddr::new(remote.ip(), 500)).unwrap());
            other.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            peer.send_to(esp, other.local_addr().unwrap()).unwrap();
            assert_eq!(other.recv(&mut buffer).unwrap(), esp.len());
            let listener = b.run(move || TcpListener::bind(SocketAddr::new(remote.ip(), 0)).unwrap());
            let to = listener.local_addr().unwrap();
            let text = payload(1, 300_000);
            let sent = text.clone();
            let client = a.spawn(move || TcpStream::connect(to).unwrap().write_all(&sent).unwrap());
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            client.join().unwrap();
            assert!(received == text);
            // ESP to others.
            let family = Family::of(local.ip());
            let mut sender = raw(&a, family, Carries::Esp);
            let mut forward = raw(&b, family, Carries::Esp);
            let host = if local.is_ipv4() { "10.8.0.3/24" } else { "fd08::3/64" };
            b.ip(&format!("address add {host} dev cable nodad"));
            b.settle("cable");
            let link = "lladdr 02:00:00:00:00:02 dev cable nud permanent";
            a.ip(&format!("neighbour replace {} {link}", host.split_once('/').unwrap().0));
            let not_ours = packet((1, 3), family, 50, &payload(0, 50));
            // An IPv6 address needs a moment longer than the kernel says.
            let found = (0..50).find_map(|_| {
                assert_eq!(sender.send(&[&not_ours]).taken, 1);
                take_for(&mut forward, Duration::from_millis(50)).pop()
            });
            assert!(found.as_ref() == Some(&not_ours), "{mode:?} {found:02x?} instead of {not_ours:02x?}");
            take_for(&mut forward, Duration::from_millis(50));
            // Fragments of ESP are put together by the kernel.
            let large = packet((1, 2), family, 50, &large);
            let mut may = large.clone();
            may[6] = if local.is_ipv4() { 0 } else { may[6] };
            let mut fragments = Fragments::new(&Ip::parse(&may).unwrap(), 1400, 7).unwrap();
            let mut room = [0; 1400];
            while let Some(len) = fragments.next_into(&mut room) {
                assert_eq!(sender.send(&[&room[..len]]).taken, 1);
            }
            let whole = take(&mut forward, 1);
            assert!(whole[0][head - 8..] == large[head - 8..]);
        }
        assert!(take_none(&mut xdp), "{mode:?}");
    }
}

fn take_none(link: &mut dyn Link) -> bool {
    link.receive(9, &mut |_, _| ()).unwrap() == 0
}

#[test]
fn an_inside_link_takes_what_goes_to_its_networks() {
    for mode in MODES {
        let Some([a, b]) = cable(1500) else { return };
        let network = |address: &str, prefix| Network { address: address.parse().unwrap(), prefix };
        let to = vec![
            network("192.0.2.64", 26),
            network("198.51.100.0", 24),
            network("2001:db8:7::", 45),
            network("2001:db8:a::1", 128),
        ];
        let Some(mut xdp) = open(&b, Take::Inside { to }, mode) else { return };
        a.ip("route add default via 10.8.0.2");
        a.ip("route add default via fd08::2");
        let sender = a.run(|| UdpSocket::bind("0.0.0.0:7").unwrap());
        let sender_v6 = a.run(|| UdpSocket::bind("[::]:8").unwrap());
        let mut expected: Vec<IpAddr> = Vec::new();
        for (to, taken) in [
            ("192.0.2.63", false),
            ("192.0.2.64", true),
            ("192.0.2.127", true),
            ("192.0.2.128", false),
            ("10.8.0.2", false),
            ("198.51.100.255", true),
            ("2001:db8:7::9", true),
            ("2001:db8:f::9", false),
            ("2001:db8:8::9", false),
            ("2001:db8:a::1", true),
            ("2001:db8:a::2", false),
        ] {
            let to: IpAddr = to.parse().unwrap();
            let socket = if to.is_ipv4() { &sender } else { &sender_v6 };
            socket.send_to(b"something", (to, 9)).unwrap();
            expected.extend(taken.then_some(to));
        }
        let found = take(&mut xdp, expected.len());
        let found: Vec<IpAddr> =
            found.iter().map(|packet| Ip::parse(packet).unwrap().destination()).collect();
        assert_eq!(found, expected, "{mode:?}");
        assert!(take_none(&mut xdp));
    }
}

#[test]
fn neighbours_are_found_and_what_cannot_go_is_counted() {
    for mode in MODES {
        let Some([a, b]) = cable(1500) else { return };
        b.ip("neighbour flush all nud permanent dev cable");
        a.ip("neighbour flush all nud permanent dev cable");
        let Some(mut xdp) = open(&b, outside(), mode) else { return };
        let mut peer = udp_peer(&a);
        let datagram = |to: u8, len: usize| {
            let mut udp = [4500u16, 4500, 8 + len as u16, 0].map(u16::to_be_bytes).as_flattened().to_vec();
            udp.extend(payload(to.into(), len));
            packet((2, to), Family::V4, 17, &udp)
        };
        let well = datagram(1, 100);
        // Netlink is the calling thread's namespace's.
        let (counts, mut xdp) = b.run(move || {
            let mut counts = Vec::new();
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                let sent = xdp.send(&[&well]);
                counts.push(sent);
                if sent.taken == 1 {
                    break;
                }
            }
            (counts, xdp)
        });
        assert_eq!(counts.last(), Some(&TxReport { taken: 1, ..TxReport::default() }));
        assert_eq!(counts[0], TxReport { unreachable: 1, ..TxReport::default() }, "it takes a moment");
        assert_eq!(take(&mut peer, 1).len(), 1);

        let (well, too_big, nobody) = (datagram(1, 1472), datagram(1, 1473), datagram(9, 10));
        let mut nowhere = well.clone();
        nowhere[16] = 192;
        let sent;
        (sent, xdp) = b.run(move || {
            let sent = xdp.send(&[&well, &too_big, &nobody, &nowhere, b"", &well]);
            (sent, xdp)
        });
        let expected = TxReport {
            taken: 2,
            too_big: 1,
            mtu: Some(1500),
            unreachable: 2,
            unfit: 1,
            ..TxReport::default()
        };
        assert_eq!(sent, expected);
        assert_eq!(take(&mut peer, 2).len(), 2);
        // The device down and up again.
        b.ip("link set cable down");
        let well = datagram(1, 10);
        let sent;
        (sent, xdp) = b.run({
            let well = well.clone();
            move || (xdp.send(&[&well]), xdp)
        });
        assert_eq!(sent.taken, 0, "{mode:?} {sent:?}");
        b.ip("link set cable up");
        b.settle("cable");
        let found = b.run(move || {
            let until = Instant::now() + Duration::from_secs(5);
            while Instant::now() < until {
                xdp.send(&[&well]);
                if !take_for(&mut peer, Duration::from_millis(20)).is_empty() {
                    return true;
                }
            }
            false
        });
        assert!(found, "{mode:?}");
    }
}

fn take_for(link: &mut dyn Link, time: Duration) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + time;
    while packets.is_empty() && Instant::now() < until {
        link.receive(50, &mut |head, body| packets.push([head, body].concat())).unwrap();
    }
    packets
}

fn udp_peer(namespace: &Namespace) -> UdpLink {
    namespace.run(|| udp::open(&UdpOptions::at("10.8.0.1:4500".parse().unwrap())).unwrap().remove(0))
}

#[test]
fn what_is_more_than_the_ring_holds_waits_with_the_sender() {
    let Some([_a, b]) = cable(1500) else { return };
    let Some(xdp) = open(&b, outside(), Mode::Generic) else { return };
    let mut xdp = xdp;
    let (sent, _) = b.run(move || {
        let packet = packet((2, 1), Family::V4, 50, &payload(0, 100));
        let burst: Vec<&[u8]> = vec![&packet; 5_000];
        (xdp.send(&burst), xdp)
    });
    assert_eq!(sent.taken + sent.would_block, 5_000, "{sent:?}");
    assert!(sent.taken >= 512, "{sent:?}");
}

#[test]
fn tagged_frames_are_not_taken() {
    const SCRIPT: &str = "from scapy.all import *;\
        e=Ether(src='02:00:00:00:00:01',dst='02:00:00:00:00:02');\
        p=IP(src='10.8.0.1',dst='10.8.0.2')/UDP(sport=4500,dport=4500)/(b'\\xc0'+b'esp and so on');\
        sendp([e/Dot1Q(vlan=7)/p,e/Dot1AD(vlan=7)/Dot1Q(vlan=9)/p,e/p],iface='cable',verbose=0)";
    for mode in MODES {
        let Some([a, b]) = cable(1500) else { return };
        // An empty `to` takes packets to any address.
        let take_all = Take::Outside { to: vec![], ports: vec![4500] };
        let Some(mut xdp) = open(&b, take_all, mode) else { return };
        let sent = a.run(|| Command::new("/usr/bin/python3").args(["-c", SCRIPT]).output());
        if !sent.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no scapy");
            return;
        }
        let found = take(&mut xdp, 1);
        assert_eq!(found[0][12..20], [10, 8, 0, 1, 10, 8, 0, 2], "{mode:?}");
        assert_eq!(found.len(), 1);
        assert!(take_none(&mut xdp));
    }
}

#[test]
fn each_queue_has_its_link() {
    let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else { return };
    let pid = b.path().split('/').nth(2).unwrap().to_owned();
    let queues = "numtxqueues 2 numrxqueues 2";
    a.ip(&format!("link add cable {queues} type veth peer name cable {queues} netns {pid}"));
    for (end, host) in [(&a, 1), (&b, 2)] {
        end.ip(&format!("address add 10.8.0.{host}/24 dev cable"));
        end.ip("link set cable up");
    }
    for end in [&a, &b] {
        end.settle("cable");
    }
    let options = XdpOptions { queues: 2, frames: 512, ..XdpOptions::new("cable", outside()) };
    let mut links = b.run(move || forebay_links_xdp::open(&options)).unwrap();
    let peer = a.run(|| UdpSocket::bind("10.8.0.1:0").unwrap());
    for i in 0..200u32 {
        // Other flows, other queues.
        let socket = a.run(|| UdpSocket::bind("10.8.0.1:0").unwrap());
        let socket = if i % 2 == 0 { &peer } else { &socket };
        let esp = [&(i + 300).to_be_bytes()[..], b"\0\0\0\x01and so on"].concat();
        socket.send_to(&esp, "10.8.0.2:4500").unwrap();
    }
    let mut found: Vec<u32> = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while found.len() < 200 && Instant::now() < until {
        for link in &mut links {
            let spi = |packet: &[u8]| u32::from_be_bytes(packet[28..32].try_into().unwrap());
            link.receive(64, &mut |head, _| found.push(spi(head) - 300)).unwrap();
        }
    }
    found.sort();
    assert_eq!(found, (0..200).collect::<Vec<_>>());
}

#[test]
fn options_that_cannot_be_are_refused() {
    let Some([_a, b]) = cable(1500) else { return };
    let refused =
        |options: XdpOptions| b.run(move || forebay_links_xdp::open(&options).err().map(|e| e.kind()));
    let good = XdpOptions::new("cable", outside());
    let bad = io::ErrorKind::InvalidInput;
    assert_eq!(refused(XdpOptions { frames: 500, ..good.clone() }), Some(bad));
    assert_eq!(refused(XdpOptions { queues: 0, ..good.clone() }), Some(bad));
    assert_eq!(refused(XdpOptions { take: Take::Inside { to: vec![] }, ..good.clone() }), Some(bad));
    let without_copies = XdpOptions { mode: Mode::Driver, copying: Copying::ZeroCopy, ..good.clone() };
    assert_eq!(refused(without_copies), Some(io::ErrorKind::Unsupported), "a veth copies");
    assert!(refused(XdpOptions { queues: 9, ..good.clone() }).is_some(), "queues that are not there");
    assert!(refused(XdpOptions { interface: "nothing".into(), ..good.clone() }).is_some());
    // Everything that a program may look for.
    let to = (0..255u8).map(|i| Network { address: [10, i, 0, 0].into(), prefix: 16 }).collect();
    assert_eq!(refused(XdpOptions { take: Take::Inside { to }, ..good.clone() }), None);
    let to =
        (0..255u16).map(|i| Network { address: [0xfd00, i, 3, 7, 5, 6, 7, i].into(), prefix: 128 }).collect();
    let take = Take::Outside { to, ports: (4500..4750).collect() };
    assert_eq!(refused(XdpOptions { take, ..good.clone() }), None);
}
