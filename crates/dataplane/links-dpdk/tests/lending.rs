//! Buffers of ports that are lent with the packets in them: worked in, sent as they are, given back, and not lent when there are few.
#![cfg(target_os = "linux")]
#![cfg(dpdk)]
// The other end is waited for.
#![allow(clippy::disallowed_methods)]

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forebay_links_dpdk::{Opened, PortOptions, Side, open};
use forebay_packet::Packet;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// What is away of all ports is counted together.
static ONE_BY_ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both ends of a memif; `None` where it cannot be had.
fn cable(number: u32, buffers: Option<u32>) -> Option<(Vec<Opened>, PathBuf)> {
    let name = format!("forebay-lending-{number}-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(&name);
    let ends = (0..2).map(|end| {
        let role = ["server", "client"][end];
        let mac = MACS[end].map(|byte| format!("{byte:02x}")).join(":");
        // DPDK takes the same path for the same socket.
        let folder = format!("{}{}", std::env::temp_dir().display(), ["", "/."][end]);
        let arguments = format!("role={role},socket={folder}/{name},socket-abstract=no,mac={mac}");
        let neighbour: IpAddr = [10, 8, end as u8, 9].into();
        open(&PortOptions {
            addresses: vec![format!("10.8.{end}.2/24").parse().unwrap()],
            neighbours: vec![(neighbour, MACS[1 - end])],
            buffers,
            ..PortOptions::new(&format!("net_memif{}", number + end as u32), &arguments, Side::Inside)
        })
    });
    match ends.collect::<Result<Vec<_>, _>>() {
        Ok(ends) => Some((ends, path)),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// A packet from one end to the other.
fn packet(from: u8, len: usize, mark: u8) -> Packet {
    let mut bytes = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 63, 17, 0, 0];
    bytes.extend([10, 9, 0, mark, 10, 8, from, 9]);
    let checksum = forebay_wire::checksum::Sum::ZERO.bytes(&bytes).finish();
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.resize(len, mark);
    let mut packet = Packet::with_capacity(2_000);
    assert!(packet.fill(&bytes));
    packet
}

fn copy(head: &[u8], body: &[u8]) -> Option<Packet> {
    let mut packet = Packet::with_capacity(2_000);
    packet.fill_parts(head, body).then_some(packet)
}

/// Sends packets, each of which goes, and gives what arrives.
fn pass(ends: &mut [Opened], from: usize, mut packets: Vec<Packet>) -> Vec<Packet> {
    let mut arrived = vec![];
    let mut sent = 0;
    let until = Instant::now() + Duration::from_secs(20);
    let total = packets.len();
    while arrived.len() < total {
        assert!(Instant::now() < until, "{sent} sent, {} arrived of {total}", arrived.len());
        let mut now: Vec<&mut Packet> = packets[sent..].iter_mut().take(32).collect();
        let report = ends[from].links[0].send_packets(&mut now);
        assert_eq!(report.dropped() - report.down, 0, "{report:?}");
        // One that is not connected yet drops: again.
        if report.down == 0 {
            sent += report.taken;
        }
        let link = &mut ends[1 - from].links[0];
        link.receive_packets(64, &mut arrived, &mut copy).unwrap();
    }
    assert_eq!(sent, total);
    arrived
}

#[test]
fn packets_are_worked_in_and_sent_in_the_ports_buffers() {
    let _alone = alone();
    let Some((mut ends, path)) = cable(40, None) else { return };
    let mut arrived = pass(&mut ends, 1, (0..100).map(|mark| packet(1, 1_000, mark)).collect());
    for (mark, packet) in arrived.iter_mut().enumerate() {
        assert!(packet.is_lent() && packet.len() == 1_000 && packet.bytes()[999] == mark as u8);
        assert!(packet.offset() >= Packet::HEADROOM);
        assert!(packet.buffer().len() - packet.offset() - packet.len() >= Packet::TAILROOM);
        // As what an outer header in front and padding behind make of it.
        assert!(packet.grow(60, 40).is_some());
        packet.bytes_mut().copy_from_slice(self::packet(0, 1_100, mark as u8).bytes());
    }
    let until = Instant::now() + Duration::from_secs(20);
    let (mut sent, mut back) = (0, vec![]);
    while sent < 32 {
        assert!(Instant::now() < until);
        let mut some: Vec<&mut Packet> = arrived[sent..32].iter_mut().collect();
        // A client has room when it has asked for packets.
        ends[1].links[0].receive_packets(64, &mut back, &mut copy).unwrap();
        sent += ends[0].links[0].send_packets(&mut some).taken;
        assert!(arrived[..sent].iter().all(|packet| !packet.has_buffer()), "their buffers are the device's");
        assert!(arrived[sent..32].iter().all(Packet::is_lent));
    }
    let rest: Vec<Packet> = arrived.drain(32..).collect();
    assert!(rest.iter().all(Packet::is_lent));
    while back.len() < 32 {
        assert!(Instant::now() < until);
        ends[1].links[0].receive_packets(64, &mut back, &mut copy).unwrap();
    }
    back.extend(pass(&mut ends, 0, rest));
    for (mark, packet) in back.iter().enumerate() {
        assert_eq!(packet.bytes(), self::packet(0, 1_100, mark as u8).bytes());
    }
    drop((back, ends));
    let _ = std::fs::remove_file(path);
}

#[test]
fn headers_that_leave_no_room_for_ethernet_are_copied() {
    let _alone = alone();
    let Some((mut ends, path)) = cable(42, None) else { return };
    let mut arrived = pass(&mut ends, 1, vec![packet(1, 100, 1)]);
    let one = &mut arrived[0];
    assert!(one.is_lent());
    // To the very begin of its memory, which is before the device's buffer.
    let front = one.offset();
    assert!(one.grow(front, 0).is_some());
    let len = one.len();
    let fresh = packet(0, len, 5);
    one.bytes_mut().copy_from_slice(fresh.bytes());
    let back = pass(&mut ends, 0, arrived);
    assert_eq!(back[0].bytes(), packet(0, len, 5).bytes());
    drop((back, ends));
    let _ = std::fs::remove_file(path);
}

#[test]
fn with_few_buffers_packets_are_copied_and_none_is_lost() {
    let _alone = alone();
    let Some((mut ends, path)) = cable(44, Some(2_047)) else { return };
    let mut held = vec![];
    for round in 0..100 {
        held.extend(pass(&mut ends, 1, (0..32).map(|n| packet(1, 200, n + round)).collect()));
    }
    let lent = held.iter().filter(|packet| packet.is_lent()).count();
    assert_eq!(held.len(), 3_200);
    assert!((500..2_047).contains(&lent), "{lent} of 2,047 buffers are lent");
    assert!(!held[3_199].is_lent(), "the last came when few were left");
    drop(held);
    let again = pass(&mut ends, 1, (0..32).map(|n| packet(1, 200, n)).collect());
    assert!(again.iter().all(Packet::is_lent), "all have come back");
    drop((again, ends));
    let _ = std::fs::remove_file(path);
}

#[test]
fn what_is_lent_outlives_its_port() {
    let _alone = alone();
    let Some((mut ends, path)) = cable(46, None) else { return };
    let mut lent = pass(&mut ends, 1, (0..40).map(|mark| packet(1, 300, mark)).collect());
    assert!(lent.iter().all(Packet::is_lent));
    let before = dpdk_sys::port::away();
    drop(ends);
    assert!(dpdk_sys::port::away() >= before + 40, "{} are away", dpdk_sys::port::away());
    for (mark, packet) in lent.iter().enumerate() {
        assert_eq!(packet.bytes(), self::packet(1, 300, mark as u8).bytes());
    }
    // They can be sent by another port, or dropped, by any thread.
    let Some((mut others, other)) = cable(48, None) else { return };
    let rest = lent.split_off(20);
    for packet in &mut lent {
        let mark = packet.bytes()[299];
        packet.bytes_mut().copy_from_slice(self::packet(0, 300, mark).bytes());
    }
    assert_eq!(pass(&mut others, 0, lent).len(), 20);
    std::thread::spawn(move || drop(rest)).join().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while dpdk_sys::port::away() > before {
        assert!(Instant::now() < until, "{} are away for ever", dpdk_sys::port::away());
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(others);
    for path in [path, other] {
        let _ = std::fs::remove_file(path);
    }
}
