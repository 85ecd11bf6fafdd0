//! Raw sockets as links: ESP, AH, and ICMP about packets too big.
#![cfg(target_os = "linux")]
// Real sockets are waited for.
#![allow(clippy::disallowed_methods)]

#[path = "support/namespace.rs"]
mod namespace;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use forebay_links::raw::{self, Carries, RawLink, RawOptions};
use forebay_links::udp::steer;
use forebay_links::{Link, TxReport};
use forebay_wire::checksum::Sum;
use forebay_wire::icmp::TooBig;
use forebay_wire::{Family, Ip};
use namespace::{Namespace, cable};

fn open(namespace: &Namespace, options: RawOptions) -> Vec<RawLink> {
    namespace.run(move || raw::open(&options).unwrap())
}

fn one(namespace: &Namespace, family: Family, carries: Carries) -> RawLink {
    open(namespace, RawOptions::new(family, carries)).remove(0)
}

fn packet(hosts: (u8, u8), family: Family, protocol: u8, class: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    if family == Family::V4 {
        packet.extend([0x45, class]);
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([1, 2, flags, 0, 63, protocol, 0, 0, 10, 8, 0, hosts.0, 10, 8, 0, hosts.1]);
        let checksum = Sum::ZERO.bytes(&packet).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet.extend((0x6000_0000 | u32::from(class) << 20).to_be_bytes());
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 63]);
        for host in [hosts.0, hosts.1] {
            packet.extend([0xfd, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    }
    packet.extend(payload);
    packet
}

fn payload(spi: u32, len: usize) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..len).map(|at| (at * 31 + 1) as u8).collect();
    payload[..4].copy_from_slice(&spi.to_be_bytes());
    payload
}

fn take(link: &mut RawLink, count: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while packets.len() < count && Instant::now() < until {
        link.receive(5, &mut |head, body| packets.push([head, body].concat())).unwrap();
    }
    packets
}

#[test]
fn esp_and_ah_arrive_as_they_were_sent() {
    let Some([a, b]) = cable(1500) else { return };
    for family in [Family::V4, Family::V6] {
        for (carries, protocol) in [(Carries::Esp, 50), (Carries::Ah, 51)] {
            let (mut x, mut y) = (one(&a, family, carries), one(&b, family, carries));
            let room = if family == Family::V4 { 1480 } else { 1460 };
            let burst: Vec<Vec<u8>> = (8..300)
                .chain([room - 1, room, 9])
                .map(|len| packet((1, 2), family, protocol, len as u8, 0x40, &payload(7, len)))
                .collect();
            let slices: Vec<&[u8]> = burst.iter().map(Vec::as_slice).collect();
            assert_eq!(x.send(&slices), TxReport { taken: burst.len(), ..TxReport::default() });
            let received = take(&mut y, burst.len());
            assert_eq!(received.len(), burst.len(), "{family:?} {carries:?}");
            for (its, ours) in received.iter().zip(&burst) {
                assert!(its == ours, "{family:?} {carries:?}: {its:02x?} instead of {ours:02x?}");
            }
            assert!(!y.pending());
        }
    }
}

#[test]
fn what_may_be_fragmented_is_and_what_may_not_says_its_limit() {
    let Some([a, b]) = cable(1400) else { return };
    let (mut x, mut y) = (one(&a, Family::V4, Carries::Esp), one(&b, Family::V4, Carries::Esp));
    let small = packet((1, 2), Family::V4, 50, 0, 0x40, &payload(7, 100));
    let large = packet((1, 2), Family::V4, 50, 0, 0x40, &payload(7, 1381));
    let may = packet((1, 2), Family::V4, 50, 0, 0, &payload(7, 9000));
    let burst: [&[u8]; 4] = [&small, &large, &may, &small];
    let (sent, mut x) = a.run({
        let burst = burst.map(<[u8]>::to_vec);
        move || (x.send(&burst.each_ref().map(|packet| &packet[..])), x)
    });
    assert_eq!(sent, TxReport { taken: 3, too_big: 1, mtu: Some(1400), ..TxReport::default() });
    let received = take(&mut y, 3);
    assert!(received == [small.clone(), may, small.clone()]);

    let mut v6 = one(&a, Family::V6, Carries::Esp);
    let large = packet((1, 2), Family::V6, 50, 0, 0, &payload(7, 1361));
    let (sent, _) = a.run(move || (v6.send(&[&large]), v6));
    assert_eq!(sent, TxReport { too_big: 1, mtu: Some(1400), ..TxReport::default() });

    let nowhere = [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 50, 0, 0, 10, 8, 0, 1, 192, 0, 2, 1][..], b"", b"\x60"];
    assert_eq!(x.send(&nowhere), TxReport { unreachable: 1, unfit: 2, ..TxReport::default() });
}

#[test]
fn workers_get_what_their_spi_says() {
    let Some([a, b]) = cable(1500) else { return };
    for family in [Family::V4, Family::V6] {
        for (carries, protocol, at) in [(Carries::Esp, 50, 0), (Carries::Ah, 51, 4)] {
            let mut x = one(&a, family, carries);
            let mut links = open(&b, RawOptions { workers: 3, ..RawOptions::new(family, carries) });
            let spis: Vec<u32> = (0..60).map(|i| 0xc000_0000 + i * 0x0011_0107).collect();
            for spi in &spis {
                let mut payload = payload(1, 40);
                payload[at..at + 4].copy_from_slice(&spi.to_be_bytes());
                x.send(&[&packet((1, 2), family, protocol, 0, 0x40, &payload)]);
            }
            for (worker, link) in links.iter_mut().enumerate() {
                let expected: Vec<u32> =
                    spis.iter().copied().filter(|&spi| steer(spi, 3) == worker).collect();
                let start = family.header_len() + at;
                let found: Vec<u32> = take(link, expected.len())
                    .iter()
                    .map(|packet| u32::from_be_bytes(packet[start..start + 4].try_into().unwrap()))
                    .collect();
                assert_eq!(found, expected, "{family:?} {carries:?} worker {worker}");
            }
        }
    }
}

#[test]
fn only_icmp_about_what_was_too_big_is_given() {
    let Some([a, b]) = cable(1500) else { return };
    for family in [Family::V4, Family::V6] {
        let (mut x, mut y) = (one(&a, family, Carries::TooBig), one(&b, family, Carries::TooBig));
        let quoted = packet((2, 9), family, 50, 0, 0x40, &payload(7, 60));
        let message = |kind: u8, code: u8| {
            let mut icmp = vec![kind, code, 0, 0];
            icmp.extend(if family == Family::V4 { [0, 0, 0x05, 0] } else { [0, 0, 0x05, 0x14] });
            icmp.extend(&quoted);
            let pseudo = match family {
                Family::V4 => Sum::ZERO,
                Family::V6 => {
                    let packet = packet((1, 2), family, 58, 0, 0, &icmp);
                    Sum::ZERO.bytes(&packet[8..40]).word(58).word(icmp.len() as u16)
                }
            };
            let checksum = pseudo.bytes(&icmp).finish();
            icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
            packet((1, 2), family, if family == Family::V4 { 1 } else { 58 }, 0, 0x40, &icmp)
        };
        let (wanted, others) = match family {
            Family::V4 => ((3, 4), [(3, 1), (11, 0), (8, 0)]),
            Family::V6 => ((2, 0), [(1, 0), (3, 0), (128, 0)]),
        };
        for (kind, code) in others {
            x.send(&[&message(kind, code)]);
        }
        let wanted = message(wanted.0, wanted.1);
        assert_eq!(x.send(&[&wanted]).taken, 1);
        let received = take(&mut y, 1);
        assert!(received == [wanted]);
        let parsed = TooBig::parse(&received[0]).expect("a message");
        assert_eq!(parsed.mtu, if family == Family::V4 { 1280 } else { 1300 });
        assert_eq!(
            Ip::parse(&quoted).unwrap().source(),
            match family {
                Family::V4 => "10.8.0.2".parse::<IpAddr>().unwrap(),
                Family::V6 => "fd08::2".parse().unwrap(),
            }
        );
        assert!(take_none(&mut y));
    }
}

fn take_none(link: &mut RawLink) -> bool {
    link.receive(9, &mut |_, _| ()).unwrap() == 0
}
