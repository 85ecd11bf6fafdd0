//! TUN devices against the kernel's own stack, in network namespaces of their own.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "support/build.rs"]
mod build;
#[path = "support/namespace.rs"]
mod namespace;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use build::Build;
use forebay_links::tun::{self, TunOptions, TunQueue};
use forebay_links::{Link, TxReport};
use forebay_links_sys::option;
use forebay_wire::Ip;
use forebay_wire::ip::set_traffic_class;
use namespace::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Makes a device with addresses `10.7.0.host` and `fd07::host` inside.
fn device(namespace: &Namespace, host: u8, offloads: bool, mtu: u32) -> TunQueue {
    let (name, queue) = namespace.run(move || {
        let (interface, mut queues) =
            tun::open(&TunOptions { offloads, ..TunOptions::default() }).expect("a TUN device");
        interface.set_mtu(mtu).unwrap();
        interface.set_up(true).unwrap();
        interface.add_address(format!("10.7.0.{host}").parse().unwrap(), 24).unwrap();
        interface.add_address(format!("fd07::{host}").parse().unwrap(), 64).unwrap();
        interface.add_route("10.7.0.0".parse().unwrap(), 24).unwrap();
        interface.add_route("fd07::".parse().unwrap(), 64).unwrap();
        (interface.name().to_owned(), queues.remove(0))
    });
    namespace.settle(&name);
    queue
}

fn wait_for(link: &dyn Link) -> bool {
    let fd = link.fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 })).unwrap() > 0
}

/// Carries packets between two devices until told to stop; every `lose`th is lost. What has become of them.
struct Wire {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Moved>,
}

/// What a wire has carried.
struct Moved {
    packets: usize,
    /// The longest packet in bytes.
    longest: usize,
    sent: TxReport,
    /// TCP segments over IPv4 that say that the sender has slowed down (CWR).
    reduced: usize,
}

impl Wire {
    fn between(a: TunQueue, b: TunQueue, lose: usize) -> Wire {
        Wire::with(a, b, lose, false)
    }

    /// With `mark`, every 50th packet that is not lost experiences congestion, if it can say so.
    fn with(mut a: TunQueue, mut b: TunQueue, lose: usize, mark: bool) -> Wire {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let (mut packets, mut longest, mut all, mut reduced) = (0, 0, TxReport::default(), 0);
            let mut carry = |from: &mut TunQueue, to: &mut TunQueue| {
                let mut burst: Vec<Vec<u8>> = Vec::new();
                from.receive(200, &mut |head, body| burst.push([head, body].concat())).unwrap();
                for (i, packet) in burst.iter_mut().enumerate().filter(|_| mark) {
                    let class = Ip::parse(packet).unwrap().traffic_class();
                    if class & 3 == 2 && (packets + i) % 50 == 0 {
                        set_traffic_class(packet, class | 3);
                    }
                    reduced += usize::from(packet[0] == 0x45 && packet[9] == 6 && packet[33] & 0x80 != 0);
                }
                packets += burst.len();
                longest = burst.iter().map(Vec::len).max().unwrap_or(0).max(longest);
                let before = packets - burst.len();
                let kept =
                    burst.iter().enumerate().filter(|(i, _)| lose == 0 || (before + i) % lose != lose - 1);
                let burst: Vec<&[u8]> = kept.map(|(_, packet)| packet.as_slice()).collect();
                let sent = to.send(&burst);
                assert_eq!(sent.taken + sent.dropped(), burst.len());
                all.taken += sent.taken;
                all.unfit += sent.dropped();
                burst.len()
            };
            while !stopped.load(Ordering::Relaxed) {
                if carry(&mut a, &mut b) + carry(&mut b, &mut a) == 0 {
                    let (x, y) = (a.fd(), b.fd());
                    let mut fds = [PollFd::new(&x, PollFlags::IN), PollFd::new(&y, PollFlags::IN)];
                    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap();
                }
            }
            Moved { packets, longest, sent: all, reduced }
        });
        Wire { stop, thread }
    }

    fn stop(self) -> Moved {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Bytes that repeat after no short distance.
fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

/// Sends `len` bytes both ways at once over one connection, in pieces of odd lengths.
fn exchange(a: &Namespace, b: &Namespace, at: IpAddr, len: usize) {
    let listener = b.run(move || TcpListener::bind(SocketAddr::new(at, 0)).unwrap());
    let to = listener.local_addr().unwrap();
    let both = move |stream: TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let sending = thread::spawn(move || {
            let bytes = pattern(len);
            let mut rest = &bytes[..];
            for size in (1..).map(|i| 1 + i * 7919 % 70_001) {
                let (now, later) = rest.split_at(rest.len().min(size));
                writer.write_all(now).unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        let mut stream = stream;
        stream.read_to_end(&mut received).unwrap();
        sending.join().unwrap();
        assert!(received == pattern(len), "{} of {len} bytes, or others", received.len());
    };
    let server = b.spawn(move || both(listener.accept().unwrap().0));
    let client = a.spawn(move || both(TcpStream::connect_timeout(&to, Duration::from_secs(10)).unwrap()));
    client.join().unwrap();
    server.join().unwrap();
}

fn addresses() -> [IpAddr; 2] {
    ["10.7.0.2".parse().unwrap(), "fd07::2".parse().unwrap()]
}

#[test]
fn tcp_streams_stay_whole_through_splitting_and_merging() {
    for (offloads, lose, mtu) in [((true, true), 0, 1420), ((true, true), 97, 1501), ((true, false), 0, 9000)]
    {
        let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else { return };
        let (x, y) = (device(&a, 1, offloads.0, mtu), device(&b, 2, offloads.1, mtu));
        let wire = Wire::between(x, y, lose);
        for at in addresses() {
            exchange(&a, &b, at, 6_000_011);
        }
        let Moved { packets, longest, sent, .. } = wire.stop();
        assert!(longest <= mtu as usize, "{longest} bytes at MTU {mtu}");
        assert!(packets >= 4 * 6_000_000 / mtu as usize);
        assert_eq!(sent.unfit, 0, "{sent:?}");
        // The stacks have seen no wrong checksum.
        for namespace in [&a, &b] {
            let (_, errors) = namespace.command("cat /proc/net/snmp");
            let rows: Vec<&str> = errors.lines().filter(|line| line.starts_with("Tcp:")).collect();
            let at = rows[0].split_whitespace().position(|name| name == "InCsumErrors").unwrap();
            assert_eq!(rows[1].split_whitespace().nth(at), Some("0"), "{}", rows[1]);
        }
    }
}

#[test]
fn marks_of_congestion_get_through() {
    let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else { return };
    for namespace in [&a, &b] {
        assert!(namespace.command("sysctl -w net.ipv4.tcp_ecn=1").0);
    }
    let wire = Wire::with(device(&a, 1, true, 1420), device(&b, 2, true, 1420), 0, true);
    exchange(&a, &b, addresses()[0], 3_000_011);
    let moved = wire.stop();
    // Echoed by the receiver, which the sender has answered.
    assert!(moved.reduced > 0);
    assert_eq!(moved.sent.unfit, 0);
    for namespace in [&a, &b] {
        let (_, counts) = namespace.command("nstat -asz IpExtInCEPkts IpExtInECT0Pkts");
        let of = |name: &str| {
            let line =
                counts.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{counts}"));
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        assert!(of("IpExtInCEPkts") > 0 && of("IpExtInECT0Pkts") > 0, "{counts}");
    }
}

#[test]
fn datagrams_of_all_sizes_arrive() {
    let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else { return };
    let wire = Wire::between(device(&a, 1, true, 1420), device(&b, 2, true, 1420), 0);
    for at in addresses() {
        let receiver = b.run(move || UdpSocket::bind(SocketAddr::new(at, 0)).unwrap());
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let to = receiver.local_addr().unwrap();
        let any = if at.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let sender = a.run(move || UdpSocket::bind(any).unwrap());
        let largest = if at.is_ipv6() { 65_527 } else { 65_507 };
        // Fragments from 1373 or 1393 bytes on.
        let sizes = (0..40).chain((1_360..1_400).step_by(3)).chain([2_000, 9_001, 40_000, 65_506, largest]);
        let bytes = pattern(largest);
        let mut buffer = vec![0; 70_000];
        for size in sizes {
            sender.send_to(&bytes[..size], to).unwrap();
            let (len, _) =
                receiver.recv_from(&mut buffer).unwrap_or_else(|e| panic!("{size} bytes to {at}: {e}"));
            assert!(buffer[..len] == bytes[..size], "{size} bytes");
        }
        // Several by one call of the program's: a super-packet (UDP_SEGMENT).
        option::set(sender.as_fd(), 17, 103, 1000).unwrap();
        for _ in 0..10 {
            sender.send_to(&bytes[..5_333], to).unwrap();
            for piece in bytes[..5_333].chunks(1000) {
                let (len, _) = receiver.recv_from(&mut buffer).unwrap();
                assert!(buffer[..len] == *piece, "{len} bytes for {}", piece.len());
            }
        }
    }
    wire.stop();
}

#[test]
fn what_is_merged_the_kernel_splits_into_the_same_packets() {
    let Some(namespace) = Namespace::new() else { return };
    let mut ours = device(&namespace, 1, true, 1500);
    let mut plain = device(&namespace, 2, false, 1500);
    // From hosts behind the first device to hosts behind the second.
    for (option, value) in [("ipv4.ip_forward", 1), ("ipv6.conf.all.forwarding", 1)] {
        let (well, text) = namespace.command(&format!("sysctl -w net.{option}={value}"));
        assert!(well, "{text}");
    }
    for host in 1..5 {
        namespace.ip(&format!("route add 10.1.0.{host}/32 dev forebay0"));
        namespace.ip(&format!("route add fd00::1:{host:x}/128 dev forebay0"));
    }
    namespace.ip("route add 10.1.0.9/32 dev forebay1");
    namespace.ip("route add fd00::109/128 dev forebay1");
    for host in 1..5 {
        namespace.ip(&format!("route add fd00::10{host:x}/128 dev forebay0"));
    }
    for udp in [false, true] {
        for v6 in [false, true] {
            let mut packets = Vec::new();
            let mut build = Build { v6, udp, hosts: (3, 9), class: 2, ..Build::default() };
            build.options = vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8];
            for i in 0..60u8 {
                build.payload = vec![i; if i % 20 == 19 { 5 } else { 1211 }];
                build.flags = if i % 20 == 19 { 0x18 } else { 0x10 };
                if udp && i % 20 == 0 {
                    build.ports.0 += 1;
                }
                packets.push(build.packet());
                build.sequence = build.sequence.wrapping_add(build.payload.len() as u32);
                build.identification += 1;
            }
            let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            let sent = ours.send(&slices);
            assert_eq!(sent, TxReport { taken: packets.len(), ..TxReport::default() });

            let mut received: Vec<Vec<u8>> = Vec::new();
            let until = Instant::now() + Duration::from_secs(5);
            while received.len() < packets.len() && Instant::now() < until {
                wait_for(&plain);
                let ports = if v6 { 42..44 } else { 22..24 };
                plain
                    .receive(500, &mut |head, body| {
                        if head.get(ports.clone()) == Some(&5001u16.to_be_bytes()) {
                            received.push([head, body].concat());
                        }
                    })
                    .unwrap();
            }
            build.ttl -= 1;
            let expected = packets.into_iter().map(|mut packet| {
                forwarded(&mut packet);
                packet
            });
            let expected: Vec<Vec<u8>> = expected.collect();
            assert_eq!(received.len(), expected.len(), "udp {udp}, v6 {v6}");
            for (i, (its, ours)) in received.iter().zip(&expected).enumerate() {
                assert!(its == ours, "udp {udp}, v6 {v6}, packet {i}: {its:02x?} instead of {ours:02x?}");
            }
        }
    }
}

/// What a router does.
fn forwarded(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[7] -= 1;
        return;
    }
    packet[8] -= 1;
    packet[10..12].fill(0);
    let checksum = forebay_wire::checksum::Sum::ZERO.bytes(&packet[..20]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[test]
fn a_device_that_is_down_refuses_and_one_that_is_up_again_takes() {
    let Some(namespace) = Namespace::new() else { return };
    let mut queue = device(&namespace, 1, true, 1500);
    let packet = Build::default().packet();
    let burst = [&packet[..]; 3];
    for _ in 0..2 {
        namespace.ip("link set forebay0 down");
        assert_eq!(queue.send(&burst), TxReport { down: 3, ..TxReport::default() });
        // What has come before may still be there; nothing is an error.
        queue.receive(9, &mut |_, _| ()).unwrap();
        namespace.ip("link set forebay0 up");
        assert_eq!(queue.send(&burst), TxReport { taken: 3, ..TxReport::default() });
    }
    assert_eq!(queue.send(&[b"\x10 is no version"]), TxReport { unfit: 1, ..TxReport::default() });
    assert_eq!(queue.send(&[]), TxReport::default());
}

#[test]
fn what_is_not_read_in_time_is_counted() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(|| {
        let (interface, mut queues) = tun::open(&TunOptions::default()).unwrap();
        interface.set_queue_len(20).unwrap();
        interface.set_up(true).unwrap();
        interface.add_address("10.7.0.1".parse().unwrap(), 24).unwrap();
        interface.add_route("10.7.0.0".parse().unwrap(), 24).unwrap();
        let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
        for _ in 0..60 {
            socket.send_to(b"one", "10.7.0.2:9").unwrap();
        }
        let mut count = 0;
        queues[0].receive(1000, &mut |head, _| count += u64::from(head[0] == 0x45)).unwrap();
        assert!(count <= 20, "{count}");
        let dropped = interface.dropped().unwrap();
        assert!(dropped >= 60 - count);
        assert_eq!(queues[0].rx_drops().overrun, dropped);
    });
}

/// Batches that the kernel hands over at once count by their packets, in each queue, and what was taken makes room again.
#[test]
fn what_waits_is_bounded_in_packets() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(|| {
        // A kernel with IPv6 says by itself who is there.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let (interface, mut queues) = tun::open(&TunOptions { queues: 2, ..TunOptions::default() }).unwrap();
        interface.set_queue_len(1000).unwrap();
        interface.set_up(true).unwrap();
        interface.add_address("10.7.0.1".parse().unwrap(), 24).unwrap();
        interface.add_route("10.7.0.0".parse().unwrap(), 24).unwrap();
        if let Err(error) = tun::bound(&mut queues, 100) {
            return eprintln!("skipped: no programs in the kernel: {error}");
        }
        // A flow has one queue: the other one's bound is its own.
        let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
        option::set(socket.as_fd(), 17, 103, 500).unwrap(); // UDP_SEGMENT
        let send = |batches: usize, packets: usize| {
            for _ in 0..batches {
                socket.send_to(&vec![7; 500 * packets], "10.7.0.2:9").unwrap();
            }
        };
        let mut dropped = 0;
        for (batches, packets, expected) in [(30, 32, 128_usize), (300, 1, 100), (3, 40, 120), (99, 1, 99)] {
            send(batches, packets);
            let mut come = 0;
            // In bursts, as a gateway does, the last of which finds nothing.
            let mut receive = || {
                queues.iter_mut().map(|one| one.receive(64, &mut |_, _| come += 1).unwrap()).sum::<usize>()
            };
            while receive() > 0 {}
            assert_eq!(come, expected, "{batches} times {packets}");
            dropped += batches - expected.div_ceil(packets);
            assert_eq!(queues[0].rx_drops().overrun, dropped as u64);
        }
    });
}

#[test]
fn queues_share_a_device() {
    let Some(namespace) = Namespace::new() else { return };
    let (interface, mut queues) = namespace.run(|| {
        let options = TunOptions { name: "many".into(), queues: 3, offloads: true };
        let (interface, queues) = tun::open(&options).unwrap();
        interface.add_address("10.7.0.1".parse().unwrap(), 24).unwrap();
        interface.set_up(true).unwrap();
        interface.add_route("192.0.2.0".parse().unwrap(), 24).unwrap();
        (interface, queues)
    });
    assert_eq!((interface.name(), queues.len()), ("many", 3));
    namespace.run(|| {
        for port in 1..100 {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.send_to(b"one", ("192.0.2.7", port)).unwrap();
        }
    });
    let counts: Vec<usize> = queues
        .iter_mut()
        .map(|queue| {
            let mut count = 0;
            queue.receive(1000, &mut |head, _| count += usize::from(head[0] == 0x45)).unwrap();
            count
        })
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 99, "{counts:?}");
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}
