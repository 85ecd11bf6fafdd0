//! Links by DPDK on one end of a cable (veth, by AF_PACKET), the kernel's own stack and sockets on the other.
#![cfg(target_os = "linux")]
#![cfg(dpdk)]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "../../links/tests/support/namespace.rs"]
mod namespace;

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::{Link, TxReport};
use forebay_links_dpdk::{Opened, PortOptions, Side, open};
use forebay_wire::checksum::Sum;
use forebay_wire::{Family, Ip};
use namespace::{Namespace, cable};

/// Devices have names of their own in a process.
static DEVICES: AtomicU32 = AtomicU32::new(0);

/// The device on the second end of a cable whose kernel has no addresses there, and asks for those of the device.
fn opened(mtu: u16, arguments: &'static str, side: Side) -> Option<([Namespace; 2], Opened)> {
    let ends = cable(mtu.into())?;
    for address in ["10.8.0.2", "fd08::2"] {
        ends[0].ip(&format!("neighbour del {address} dev cable"));
    }
    ends[1].ip("address flush dev cable");
    let opened = ends[1].run(move || {
        let number = DEVICES.fetch_add(1, Ordering::Relaxed);
        let options = PortOptions {
            addresses: vec!["10.8.0.2/24".parse().unwrap(), "fd08::2/64".parse().unwrap()],
            gateways: vec!["10.8.0.1".parse().unwrap()],
            mtu,
            ..PortOptions::new(&format!("net_af_packet{number}"), &format!("iface=cable{arguments}"), side)
        };
        open(&options)
    });
    match opened {
        Ok(opened) => Some((ends, opened)),
        Err(why) => panic!("{why}"),
    }
}

fn outside() -> Side {
    Side::Outside { ports: vec![4500] }
}

fn take(link: &mut dyn Link, count: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while packets.len() < count && Instant::now() < until {
        link.receive(50, &mut |head, body| packets.push([head, body].concat())).unwrap();
    }
    packets
}

/// Runs a program on the first end while the link does its part.
fn beside(link: &mut dyn Link, end: &Namespace, words: &'static str) -> bool {
    let child = end.run(move || {
        let mut words = words.split_whitespace();
        Command::new(words.next().unwrap()).args(words).stdout(std::process::Stdio::null()).spawn().unwrap()
    });
    let mut child = child;
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        link.receive(64, &mut |_, _| {}).unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn esp(family: Family, to_peer: bool, len: usize) -> Vec<u8> {
    let hosts = if to_peer { [2, 1] } else { [1, 2] };
    let mut packet = Vec::new();
    if family == Family::V4 {
        packet.extend([0x45, 0xb8]);
        packet.extend((len as u16).to_be_bytes());
        packet.extend([1, 2, 0x40, 0, 63, 50, 0, 0, 10, 8, 0, hosts[0], 10, 8, 0, hosts[1]]);
        let checksum = Sum::ZERO.bytes(&packet).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((len as u16 - 40).to_be_bytes());
        packet.extend([50, 63]);
        for host in hosts {
            packet.extend([0xfd, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    }
    let at = packet.len();
    packet.extend((at..len).map(|n| (n * 31 + len) as u8 | 1));
    packet
}

#[test]
fn the_link_is_a_host_of_its_ethernet() {
    let Some((ends, mut opened)) = opened(1500, "", Side::Inside) else { return };
    let link = &mut opened.links[0];
    // Found by ARP and Neighbour Discovery, and answers.
    for ping in ["ping -q -c 3 -i 0.05 -W 2 10.8.0.2", "ping -q -c 3 -i 0.05 -W 2 fd08::2"] {
        assert!(beside(&mut **link, &ends[0], ping), "{ping}: {:?}", link.rx_drops());
    }
    assert!(link.device().unwrap().is_up);
    assert_eq!(link.device().unwrap().neighbours, 2, "who asked is known");
}

#[test]
fn esp_comes_and_goes_in_both_ip_versions_also_in_large_frames() {
    for (mtu, arguments) in [(1500, ""), (8000, ",blocksz=12288,framesz=12288,framecnt=256")] {
        let Some((ends, mut opened)) = opened(mtu, arguments, outside()) else { return };
        let link = &mut opened.links[0];
        for family in [Family::V4, Family::V6] {
            let mut peer =
                ends[0].run(move || raw::open(&RawOptions::new(family, Carries::Esp)).unwrap().remove(0));
            let largest = usize::from(mtu);
            let lens = || (family.header_len() + 8..120).chain([700, largest - 1, largest]);
            let there: Vec<_> = lens().map(|len| esp(family, false, len)).collect();
            let back: Vec<_> = lens().map(|len| esp(family, true, len)).collect();
            // The first packet has the neighbour asked for.
            let until = Instant::now() + Duration::from_secs(3);
            while link.send(&[&back[0]]).taken == 0 && Instant::now() < until {
                link.receive(64, &mut |_, _| panic!("nothing was sent")).unwrap();
            }
            take(&mut peer, 1);
            for _ in 0..4 {
                for (packets, sends) in [(&there, true), (&back, false)] {
                    let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
                    let taken = TxReport { taken: slices.len(), ..TxReport::default() };
                    let (sent, came) = match sends {
                        true => (peer.send(&slices), take(&mut **link, slices.len())),
                        false => (link.send(&slices), take(&mut peer, slices.len())),
                    };
                    assert_eq!(sent, taken, "{family:?} {mtu}");
                    assert!(came == *packets, "{family:?} {mtu}: {} of {}", came.len(), packets.len());
                }
            }
            let over = esp(family, true, largest + 1);
            assert_eq!(link.send(&[&over]).mtu, Some(mtu.into()));
        }
    }
}

#[test]
fn datagrams_of_programs_have_their_checksums_completed() {
    let Some((ends, mut opened)) = opened(1500, "", Side::Inside) else { return };
    let link = &mut opened.links[0];
    for (local, remote) in [("10.8.0.1:0", "10.8.0.2:9"), ("[fd08::1]:0", "[fd08::2]:9")] {
        let (local, remote): (SocketAddr, SocketAddr) = (local.parse().unwrap(), remote.parse().unwrap());
        ends[0].ip(&format!(
            "route replace {} via {}",
            if local.is_ipv4() { "10.9.0.0/16" } else { "fd09::/16" },
            remote.ip()
        ));
        let to: SocketAddr = if local.is_ipv4() { "10.9.0.5:9" } else { "[fd09::5]:9" }.parse().unwrap();
        let socket = ends[0].run(move || UdpSocket::bind(local).unwrap());
        for _ in 0..20 {
            socket.send_to(&[7; 333], to).unwrap();
            let found = take(&mut **link, 1);
            let Ok(ip) = Ip::parse(&found[0]) else { panic!("no packet") };
            let at = if local.is_ipv4() { 20 } else { 40 };
            let (packet, len) = (ip.bytes(), ip.bytes().len() - at);
            let addresses = if local.is_ipv4() { &packet[12..20] } else { &packet[8..40] };
            let sum = Sum::ZERO.bytes(addresses).word(17).word(len as u16).bytes(&packet[at..]);
            assert_eq!(sum.finish(), 0);
        }
    }
}

#[test]
fn frames_that_are_not_for_the_gateway_are_counted_by_what_they_are() {
    let Some((ends, mut opened)) = opened(1500, "", outside()) else { return };
    let link = &mut opened.links[0];
    let mac = opened.mac;
    let frame = |packet: &[u8]| [&mac[..], &[2, 0, 0, 0, 0, 1, 8, 0], packet].concat();
    let udp = |payload: &[u8]| {
        let mut packet = esp(Family::V4, false, 28 + payload.len());
        packet[9] = 17;
        packet[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[22..24].copy_from_slice(&4500u16.to_be_bytes());
        packet[28..].copy_from_slice(payload);
        frame(&packet)
    };
    let good = esp(Family::V4, false, 100);
    let mut wrong = frame(&good);
    wrong[24] ^= 1;
    let mut short = frame(&good);
    short.truncate(60);
    let frames = [
        (udp(&[0xff]), "keepalive"),
        (udp(&[0, 0, 0, 0, 9, 9]), "ike"),
        (wrong, "malformed"),
        (short, "malformed"),
        (frame(&[0x45]), "malformed"),
        (frame(&esp(Family::V6, false, 100)[..30]), "malformed"),
        ([&mac[..], &[9; 40]].concat(), "foreign"),
        ([&[2, 0, 0, 0, 0, 7][..], &frame(&good)[6..]].concat(), "foreign"),
        ([&mac[..], &[2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0], &good].concat(), "foreign"),
        // ARP that says nothing.
        ([&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 6], &[0; 28]].concat(), "foreign"),
    ];
    while link.receive(64, &mut |_, _| {}).unwrap() > 0 {}
    for (bytes, kind) in &frames {
        let before = link.rx_drops();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let send = "import socket, sys; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('cable', 0)); \
                    s.send(bytes.fromhex(sys.argv[1]))";
        let status = ends[0].run(move || Command::new("python3").args(["-c", send, &hex]).status().unwrap());
        assert!(status.success());
        let until = Instant::now() + Duration::from_secs(3);
        let seen = loop {
            link.receive(64, &mut |_, _| panic!("{kind} was taken")).unwrap();
            let now = link.rx_drops();
            let seen = [
                ("keepalive", now.keepalives - before.keepalives),
                ("ike", now.ike - before.ike),
                ("malformed", now.malformed - before.malformed),
                ("foreign", now.foreign - before.foreign),
            ];
            let wanted = seen.iter().any(|(name, count)| name == kind && *count > 0);
            if wanted || Instant::now() > until {
                break seen;
            }
        };
        assert!(seen.iter().any(|(name, count)| name == kind && *count > 0), "{kind}: {seen:?} {bytes:02x?}");
        // The kernels' own messages may come between.
        let others = seen.iter().filter(|(name, count)| name != kind && *name != "foreign" && *count > 0);
        assert_eq!(others.count(), 0, "{kind}: {seen:?}");
    }
    // After all that, what is for the gateway comes.
    let mut peer = ends[0].run(|| raw::open(&RawOptions::new(Family::V4, Carries::Esp)).unwrap().remove(0));
    // The kernel has to find the device first, which answers.
    peer.send(&[&good]);
    assert_eq!(take(&mut **link, 1), [good]);
}

#[test]
fn path_mtu_errors_are_passed_on() {
    let Some((ends, mut opened)) = opened(1500, "", outside()) else { return };
    let link = &mut opened.links[0];
    let sealed = esp(Family::V4, true, 100);
    let mut icmp = vec![3, 4, 0, 0, 0, 0, 0x05, 0x14];
    icmp.extend(&sealed[..28]);
    let checksum = Sum::ZERO.bytes(&icmp).finish();
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut message = esp(Family::V4, false, 20 + icmp.len());
    message[9] = 1;
    message[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&message[..20]).finish();
    message[10..12].copy_from_slice(&checksum.to_be_bytes());
    message[20..].copy_from_slice(&icmp);
    let mut peer = ends[0].run(|| raw::open(&RawOptions::new(Family::V4, Carries::Esp)).unwrap().remove(0));
    peer.send(&[&message]);
    let errors = opened.icmp.as_mut().unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    let mut found = vec![];
    while found.is_empty() && Instant::now() < until {
        link.receive(64, &mut |_, _| panic!("not for the engine")).unwrap();
        found.extend(take_now(errors));
    }
    assert_eq!(found, [message]);
}

fn take_now(link: &mut dyn Link) -> Vec<Vec<u8>> {
    let mut packets = vec![];
    link.receive(64, &mut |head, body| packets.push([head, body].concat())).unwrap();
    packets
}

#[test]
fn a_device_that_vanishes_is_no_crash() {
    let Some((ends, mut opened)) = opened(1500, "", outside()) else { return };
    let link = &mut opened.links[0];
    let packets = vec![esp(Family::V4, true, 100); 300];
    let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    ends[0].ip("link del cable");
    for _ in 0..20 {
        let sent = link.send(&slices);
        assert_eq!(sent.taken + sent.would_block + sent.dropped(), 300);
        link.receive(64, &mut |_, _| {}).unwrap();
        link.rx_drops();
        link.device();
    }
}
