//! No memory is taken or given for packets, whichever way they go.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "support/build.rs"]
mod build;
#[path = "support/namespace.rs"]
mod namespace;

use std::net::{SocketAddr, UdpSocket};

use allocation_counter::measure;
use build::Build;
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links::{Link, TxReport};
use forebay_wire::Family;
use namespace::cable;

/// Sends a burst by one link and takes what has come by the other.
fn turn(from: &mut dyn Link, to: &mut dyn Link, burst: &[&[u8]]) -> (TxReport, usize) {
    let sent = from.send(burst);
    let (mut count, mut bytes) = (0, 0);
    for _ in 0..200 {
        count +=
            to.receive(64, &mut |head, body| bytes += std::hint::black_box(head.len() + body.len())).unwrap();
        if count >= burst.len() {
            break;
        }
    }
    (sent, count)
}

#[test]
fn bursts_take_no_memory() {
    let Some([a, b]) = cable(1500) else { return };
    let build = Build { udp: true, ports: (4500, 4500), payload: vec![7; 1300], ..Build::default() };
    let addressed = |protocol: u8| {
        let mut packet = build.packet();
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 8, 0, 1, 10, 8, 0, 2]);
        packet
    };
    let (datagram, esp) = (addressed(17), addressed(50));

    let open =
        |local: &'static str| move || udp::open(&UdpOptions::at(local.parse().unwrap())).unwrap().remove(0);
    let (mut x, mut y) = (a.run(open("10.8.0.1:4500")), b.run(open("10.8.0.2:4500")));
    let mut longer = datagram.clone();
    longer.extend([0; 8]);
    let burst: Vec<&[u8]> = (0..100).map(|i| if i % 10 == 0 { &longer[..] } else { &datagram[..] }).collect();
    turn(&mut x, &mut y, &burst);
    let mut moved = 0;
    let counts = measure(|| moved = (0..20).map(|_| turn(&mut x, &mut y, &burst).1).sum());
    assert!(moved > 1_000, "{moved} packets");
    assert_eq!(counts.count_total, 0, "UDP: {counts:?}");

    let options = RawOptions::new(Family::V4, Carries::Esp);
    let (mut x, mut y) = (
        a.run(move || raw::open(&options).unwrap().remove(0)),
        b.run(move || raw::open(&options).unwrap().remove(0)),
    );
    let burst = vec![&esp[..]; 100];
    turn(&mut x, &mut y, &burst);
    let counts = measure(|| moved = (0..20).map(|_| turn(&mut x, &mut y, &burst).1).sum());
    assert!(moved > 1_000, "{moved} packets");
    assert_eq!(counts.count_total, 0, "raw: {counts:?}");

    let mut queue = a.run(|| {
        let (interface, mut queues) = tun::open(&TunOptions::default()).unwrap();
        interface.set_up(true).unwrap();
        interface.add_address("10.7.0.1".parse().unwrap(), 24).unwrap();
        interface.add_route("10.7.0.0".parse().unwrap(), 24).unwrap();
        queues.remove(0)
    });
    let sender = a.run(|| UdpSocket::bind("10.7.0.1:0").unwrap());
    let to: SocketAddr = "10.7.0.2:9".parse().unwrap();
    let (mut sent, mut received) = (0, 0);
    let counts = measure(|| {
        for _ in 0..20 {
            sent += queue.send(&burst).taken;
            for _ in 0..50 {
                sender.send_to(&[1; 1000], to).unwrap();
            }
            received += queue.receive(60, &mut |_, _| ()).unwrap();
        }
    });
    assert!(sent == 2_000 && received >= 1_000, "{sent} {received}");
    assert_eq!(counts.count_total, 0, "TUN: {counts:?}");
}
