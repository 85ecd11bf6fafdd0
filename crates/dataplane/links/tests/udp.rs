//! UDP sockets as links: what goes in as whole packets comes out as such.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "support/build.rs"]
mod build;
#[path = "support/namespace.rs"]
mod namespace;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use forebay_links::udp::{self, UdpLink, UdpOptions, steer};
use forebay_links::{Link, TxReport};
use forebay_wire::checksum::Sum;
use forebay_wire::{Fragments, Ip, Ipv4, Ipv6, Udp};
use namespace::{Namespace, cable};

fn open(namespace: &Namespace, options: UdpOptions) -> Vec<UdpLink> {
    namespace.run(move || udp::open(&options).unwrap())
}

fn one(namespace: &Namespace, local: &str) -> UdpLink {
    open(namespace, UdpOptions::at(local.parse().unwrap())).remove(0)
}

/// A packet as the engine makes it: its UDP checksum is none.
fn packet(from: SocketAddr, to: SocketAddr, class: u8, dont_fragment: bool, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let len = 8 + payload.len() as u16;
    match (from.ip(), to.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            packet.extend([0x45, class]);
            packet.extend((20 + len).to_be_bytes());
            packet.extend([0, 0, if dont_fragment { 0x40 } else { 0 }, 0, 64, 17, 0, 0]);
            packet.extend(a.octets());
            packet.extend(b.octets());
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            packet.extend((0x6000_0000 | u32::from(class) << 20).to_be_bytes());
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
    packet
}

/// Takes `count` packets, `room` at a time; fewer if no more come.
fn take(link: &mut UdpLink, count: usize, room: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while packets.len() < count && Instant::now() < until {
        let given = link.receive(room, &mut |head, body| packets.push([head, body].concat())).unwrap();
        assert!(given <= room);
    }
    packets
}

fn payload(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + i * 7 + 1) as u8).collect()
}

#[test]
fn bursts_of_all_kinds_arrive_whole_and_in_order() {
    let Some([a, b]) = cable(1500) else { return };
    for (from, to) in [("10.8.0.1:4500", "10.8.0.2:4501"), ("[fd08::1]:4500", "[fd08::2]:4501")] {
        for offloads in [true, false] {
            let (mut from, mut to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            // Other ports each time: a test beside this one that starts a program holds the sockets a while.
            from.set_port(from.port() + 2 * u16::from(offloads));
            to.set_port(to.port() + 2 * u16::from(offloads));
            let any = if from.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0u16; 8]) };
            let any = SocketAddr::new(any, from.port());
            let mut x =
                open(&a, UdpOptions { gso: offloads, gro: offloads, ..UdpOptions::at(any) }).remove(0);
            let mut y = open(&b, UdpOptions { gso: offloads, gro: offloads, ..UdpOptions::at(to) }).remove(0);
            let room = if from.is_ipv4() { 1472 } else { 1452 };
            let sizes = (2..40).chain([500; 70]).chain([1000, 1000, 3, room, room, room, 12, 8, 8]);
            let burst: Vec<Vec<u8>> = sizes
                .enumerate()
                .map(|(i, len)| {
                    packet(from, to, [0, 0, 2, 0xb8][i / 20 % 4], i / 33 % 2 == 0, &payload(i, len))
                })
                .collect();
            let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
            assert_eq!(x.send(&slices), TxReport { taken: burst.len(), ..TxReport::default() });
            let received = take(&mut y, burst.len(), 7);
            assert_eq!(received.len(), burst.len());
            for (i, (received, sent)) in received.iter().zip(&burst).enumerate() {
                let head = if from.is_ipv4() { 28 } else { 48 };
                assert!(received[head..] == sent[head..], "packet {i}: payload");
                if from.is_ipv4() {
                    let ip = Ipv4::parse(received).unwrap();
                    assert_eq!(
                        (ip.tos(), ip.ttl(), ip.bytes().len()),
                        (sent[1], 64, sent.len()),
                        "packet {i}"
                    );
                    assert_eq!(Sum::ZERO.bytes(&received[..20]).finish(), 0, "packet {i}: checksum");
                    assert!(received[12..26] == sent[12..26], "packet {i}: addresses, ports, length");
                } else {
                    Ipv6::parse(received).unwrap();
                    assert!(received[..46] == sent[..46], "packet {i}: headers");
                }
                Udp::parse(&received[head - 8..]).unwrap();
            }
            assert!(!y.pending());
            assert_eq!(y.rx_drops(), Default::default());
        }
    }
}

#[test]
fn what_is_too_big_says_so_and_what_may_be_fragmented_is() {
    let Some([a, b]) = cable(1400) else { return };
    let (from, to) = ("10.8.0.1:4500".parse().unwrap(), "10.8.0.2:4500".parse().unwrap());
    let (mut x, mut y) = (one(&a, "10.8.0.1:4500"), one(&b, "10.8.0.2:4500"));
    // A train that is too big, with one in front and one behind that are not.
    let mut burst = vec![packet(from, to, 0, true, &payload(0, 700))];
    burst.extend((1..6).map(|i| packet(from, to, 0, true, &payload(i, 1373))));
    burst.push(packet(from, to, 0, true, &payload(6, 1372)));
    let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
    let sent = a.run({
        let slices: Vec<Vec<u8>> = slices.iter().map(|s| s.to_vec()).collect();
        move || {
            let slices: Vec<&[u8]> = slices.iter().map(Vec::as_slice).collect();
            (x.send(&slices), x)
        }
    });
    let (sent, mut x) = sent;
    assert_eq!(sent, TxReport { taken: 2, too_big: 5, mtu: Some(1400), ..TxReport::default() });
    let received = take(&mut y, 2, 64);
    assert_eq!(received.iter().map(Vec::len).collect::<Vec<_>>(), [728, 1400]);

    for len in [1373, 9_000, 65_507] {
        let large = packet(from, to, 0, false, &payload(0, len));
        assert_eq!(x.send(&[&large]), TxReport { taken: 1, ..TxReport::default() }, "{len} bytes");
        assert!(take(&mut y, 1, 64)[0][28..] == large[28..], "{len} bytes");
    }
}

#[test]
fn keepalives_and_ike_are_not_for_the_engine() {
    let Some([a, b]) = cable(1500) else { return };
    let mut link = one(&b, "0.0.0.0:4500");
    let (give, ike) = mpsc::channel();
    link.set_ike(Box::new(move |head, payload| give.send((head.to_vec(), payload.to_vec())).unwrap()));
    let peer = a.run(|| UdpSocket::bind("10.8.0.1:4500").unwrap());
    for bytes in [&[0xff][..], b"\0\0\0\0ike message", b"\0\0\x01\0esp packet", &[0xff], &[0xfe]] {
        peer.send_to(bytes, "10.8.0.2:4500").unwrap();
    }
    let received = take(&mut link, 2, 64);
    assert_eq!(received.len(), 2);
    assert_eq!(&received[0][28..], b"\0\0\x01\0esp packet");
    assert_eq!(&received[0][12..20], [10, 8, 0, 1, 10, 8, 0, 2]);
    assert_eq!(&received[1][28..], [0xfe]);
    let counts = link.rx_drops();
    assert_eq!((counts.keepalives, counts.ike, counts.malformed), (2, 1, 0));
    let (head, payload) = ike.try_recv().unwrap();
    assert_eq!(payload, b"\0\0\0\0ike message");
    assert_eq!(head.len(), 28);
}

/// A routing rule for the mark sends packets by another way than all others: only marked ones arrive.
#[test]
fn marked_packets_go_their_own_way() {
    let Some([a, b]) = cable(1500) else { return };
    for rule in ["route add table 77 10.9.0.0/24 via 10.8.0.2", "rule add fwmark 0x4d lookup 77"] {
        a.ip(rule);
    }
    b.ip("addr add 10.9.0.2/24 dev lo");
    let (from, to): (SocketAddr, SocketAddr) =
        ("10.8.0.1:4500".parse().unwrap(), "10.9.0.2:4500".parse().unwrap());
    let mut y = one(&b, "0.0.0.0:4500");
    for (mark, port) in [(None, 4500), (Some(77), 4502), (Some(0xffff_ffff), 4504)] {
        let from = SocketAddr::new(from.ip(), port);
        let mut x = open(&a, UdpOptions { mark, ..UdpOptions::at(from) }).remove(0);
        let packet = packet(from, to, 0, true, &payload(3, 100));
        let sent = x.send(&[&packet]);
        let arrives = mark == Some(77);
        assert_eq!((sent.taken, sent.unreachable), (usize::from(arrives), usize::from(!arrives)), "{mark:?}");
        assert_eq!(take(&mut y, usize::from(arrives), 4).len(), usize::from(arrives));
    }
}

#[test]
fn workers_get_what_their_spi_says() {
    let Some([a, b]) = cable(1500) else { return };
    for local in ["10.8.0.2:0", "[fd08::2]:0"] {
        let options = UdpOptions { workers: 3, ..UdpOptions::at(local.parse().unwrap()) };
        let mut links = open(&b, options);
        let to = links[0].local();
        assert!(links.iter().all(|link| link.local() == to));
        let peer = a.run(move || UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap());
        let spis = || (0..90u32).map(|i| 0xc000_0000 + i * 0x0011_0107);
        for spi in spis() {
            peer.send_to(&[&spi.to_be_bytes()[..], b"rest"].concat(), to).unwrap();
        }
        let head = if to.is_ipv4() { 28 } else { 48 };
        for (worker, link) in links.iter_mut().enumerate() {
            let expected: Vec<u32> = spis().filter(|&spi| steer(spi, 3) == worker).collect();
            let received = take(link, expected.len(), 64);
            let found: Vec<u32> = received
                .iter()
                .map(|packet| u32::from_be_bytes(packet[head..head + 4].try_into().unwrap()))
                .collect();
            assert_eq!(found, expected, "worker {worker}");
        }
    }
}

#[test]
fn a_full_queue_leaves_the_last_packets() {
    let Some([a, b]) = cable(1500) else { return };
    let (well, text) = a.command("tc qdisc add dev cable root tbf rate 1mbit burst 4k limit 10m");
    if !well {
        eprintln!("skipped: no queue that holds packets: {text}");
        return;
    }
    let (from, to) = ("10.8.0.1:4500".parse().unwrap(), "10.8.0.2:4500".parse().unwrap());
    let options = UdpOptions { buffer: 100_000, ..UdpOptions::at(from) };
    let mut x = open(&a, options).remove(0);
    let mut y = one(&b, "10.8.0.2:4500");
    let burst: Vec<Vec<u8>> =
        (0..400).map(|i| packet(from, to, 0, true, &payload(i, 1000 + i / 50))).collect();
    let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
    let sent = x.send(&slices);
    assert!(sent.would_block > 0 && sent.taken > 0, "{sent:?}");
    assert_eq!(sent.taken + sent.would_block, burst.len(), "{sent:?}");
    let more = x.send(&slices[sent.taken..sent.taken + 1]);
    assert_eq!(more.would_block, 1);
    a.command("tc qdisc del dev cable root"); // drops what it holds
    let kept = take(&mut y, 4, 64);
    for (i, packet) in kept.iter().enumerate() {
        assert!(packet[28..] == burst[i][28..], "packet {i}");
    }
}

#[test]
fn what_is_not_taken_in_time_is_counted() {
    let Some([a, b]) = cable(1500) else { return };
    let (from, to) = ("10.8.0.1:4500".parse().unwrap(), "10.8.0.2:4500".parse().unwrap());
    let mut x = one(&a, "10.8.0.1:4500");
    let mut y = open(&b, UdpOptions { buffer: 20_000, ..UdpOptions::at(to) }).remove(0);
    let packet = packet(from, to, 0, true, &payload(0, 1000));
    assert_eq!(x.send(&vec![&packet[..]; 1000]).taken, 1000);
    let mut received = 0;
    let mut counts = y.rx_drops();
    // A train that is dropped counts as one.
    for _ in 0..10 {
        received += take(&mut y, 1, 1000).len();
        counts = y.rx_drops();
        if counts.overrun > 0 {
            break;
        }
    }
    assert!(received < 1000 && counts.overrun > 0, "{received} {counts:?}");
}

#[test]
fn what_cannot_be_sent_is_counted_by_reason() {
    let Some([a, _b]) = cable(1500) else { return };
    let mut x = one(&a, "10.8.0.1:4500");
    let from: SocketAddr = "10.8.0.1:4500".parse().unwrap();
    let well = packet(from, "10.8.0.2:4500".parse().unwrap(), 0, true, b"payload");
    let nowhere = packet(from, "192.0.2.1:4500".parse().unwrap(), 0, true, b"payload");
    let other_port = packet("10.8.0.1:500".parse().unwrap(), "10.8.0.2:4500".parse().unwrap(), 0, true, b"x");
    let not_ours = packet("10.8.0.7:4500".parse().unwrap(), "10.8.0.2:4500".parse().unwrap(), 0, true, b"x");
    let mut fragment = well.clone();
    fragment[6] = 0x20; // goes by another socket
    let tcp = build::Build::default().packet();
    let burst: [&[u8]; 9] = [&well, &nowhere, &other_port, &well, &not_ours, &fragment, &tcp, b"", &well];
    let sent = x.send(&burst);
    // From an address that is not ours, the kernel finds no route.
    assert_eq!(sent, TxReport { taken: 4, unreachable: 2, unfit: 3, ..TxReport::default() });
    a.ip("link set cable down");
    let sent = x.send(&[&well]);
    assert_eq!(sent.unreachable, 1, "{sent:?}");
    a.ip("link set cable up");
    assert_eq!(x.send(&[&well]).taken, 1);
}

#[test]
fn fragments_of_larger_packets_go_too() {
    let Some([a, b]) = cable(1500) else { return };
    for (from, to) in [("10.8.0.1:4500", "10.8.0.2:4500"), ("[fd08::1]:4500", "[fd08::2]:4500")] {
        let (mut x, mut y) = (one(&a, from), one(&b, to));
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut large = packet(from, to, 0, false, &payload(0, 5_000));
        match from {
            // The kernel puts another one in the place of zero, in each fragment.
            SocketAddr::V4(_) => large[5] = 1,
            SocketAddr::V6(_) => forebay_wire::udp::fill_checksum_v6(&mut large, 40),
        }
        let small = packet(from, to, 0, true, &payload(1, 50));
        let mut fragments = Fragments::new(&Ip::parse(&large).unwrap(), 1_400, 9).unwrap();
        let mut burst = vec![small.clone()];
        let mut room = [0; 1_400];
        while let Some(len) = fragments.next_into(&mut room) {
            burst.push(room[..len].to_vec());
        }
        burst.push(small.clone());
        let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
        assert_eq!(x.send(&slices), TxReport { taken: 6, ..TxReport::default() });
        let mut received = take(&mut y, 3, 64);
        received.sort_by_key(Vec::len); // what is put together may be overtaken
        let head = if from.is_ipv4() { 28 } else { 48 };
        for (received, sent) in received.iter().zip([&small, &small, &large]) {
            assert!(received[head..] == sent[head..], "{} bytes from {from}", received.len());
        }
        assert_eq!(received.len(), 3, "to {to}");
    }
}

/// TTL and hop limit of an SA are those of its packets, in trains of one flow too.
#[test]
fn packets_have_the_hops_that_they_say() {
    let Some([a, b]) = cable(1500) else { return };
    for (from, to) in [("10.8.0.1:4700", "10.8.0.2:4701"), ("[fd08::1]:4700", "[fd08::2]:4701")] {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let (mut x, mut y) = (one(&a, &from.to_string()), one(&b, &to.to_string()));
        let at = if from.is_ipv4() { 8 } else { 7 };
        let hops = [64, 64, 7, 7, 7, 255, 64, 1];
        let burst = hops.iter().map(|&hops| {
            let mut packet = packet(from, to, 0, true, &payload(1, 500));
            packet[at] = hops;
            packet
        });
        let burst: Vec<Vec<u8>> = burst.collect();
        let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
        assert_eq!(x.send(&slices).taken, burst.len());
        let received: Vec<u8> = take(&mut y, burst.len(), 7).iter().map(|packet| packet[at]).collect();
        assert_eq!(received, hops, "from {from}");
    }
}

#[test]
fn packets_whose_flow_label_the_kernel_refuses_go_without_it() {
    // `struct in6_flowlabel_req` of linux/in6.h: a new label that no other socket may have. After that the kernel takes labels
    // of such sockets only, as kernels before 5.3 always do.
    const HOLD: &str = "import socket,struct,time\ns=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\n\
        s.setsockopt(41,32,struct.pack('!16sI',socket.inet_pton(10,'fd08::2'),0x54321)+struct.pack('=BBHHHI',0,1,1,60,60,0))\n\
        print('held',flush=True)\ntime.sleep(60)\n";
    let Some([a, b]) = cable(1500) else { return };
    let (from, to): (SocketAddr, SocketAddr) =
        ("[fd08::1]:4700".parse().unwrap(), "[fd08::2]:4701".parse().unwrap());
    let (mut x, mut y) = (one(&a, &from.to_string()), one(&b, &to.to_string()));
    let burst = |lengths: &[usize]| -> Vec<Vec<u8>> {
        let labelled = lengths.iter().enumerate().map(|(i, &len)| {
            let mut packet = packet(from, to, 0, true, &payload(i, len));
            // The third has none.
            packet[1..4].copy_from_slice(if i == 2 { &[0, 0, 0] } else { &[1, 0x23, 0x45] });
            packet
        });
        labelled.collect()
    };
    let mut send = |packets: &[Vec<u8>]| {
        let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let sent = x.send(&slices);
        assert_eq!((sent.taken, take(&mut y, packets.len(), 7).len()), (packets.len(), packets.len()));
        x.labels_flows()
    };
    assert!(send(&burst(&[500, 500, 400, 300])));
    let mut holder = a.run(|| {
        let mut python = std::process::Command::new("python3");
        python.args(["-c", HOLD]).stdout(std::process::Stdio::piped()).spawn().expect("python3")
    });
    let mut said = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut said).expect("the label is held");
    // A train of equal ones, and others.
    assert!(!send(&burst(&[500, 500, 500, 400, 300])));
    assert!(!send(&burst(&[400, 300])));
    let _ = holder.kill();
    let _ = holder.wait();
}
