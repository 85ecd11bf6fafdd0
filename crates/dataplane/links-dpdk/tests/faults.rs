//! What does not go well: devices that are not there or not right, links that are down, buffers that are used up.
#![cfg(target_os = "linux")]
#![cfg(dpdk)]
// The other end is waited for.
#![allow(clippy::disallowed_methods)]

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_links::{Link, TxReport};
use forebay_links_dpdk::{Change, Opened, PortOptions, Side, Unavailable, Watch, look, open};

/// A device whose frames come back to itself.
const RING: &str = "net_ring";
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn options(device: &str, arguments: &str) -> PortOptions {
    PortOptions {
        addresses: vec!["10.8.0.2/24".parse().unwrap()],
        neighbours: vec![("10.8.0.9".parse::<IpAddr>().unwrap(), PEER)],
        ..PortOptions::new(device, arguments, Side::Inside)
    }
}

fn refused(options: &PortOptions) -> Unavailable {
    match open(options) {
        Ok(_) => panic!("{} was opened", options.device),
        Err(why) => {
            assert!(!why.to_string().is_empty() && !why.help().is_empty());
            why
        }
    }
}

/// Packets to the neighbour that is given.
fn packets(count: usize, len: usize) -> Vec<Vec<u8>> {
    let packet = |n: usize| {
        let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 63, 17, 0, 0];
        packet.extend([10, 8, 0, 7, 10, 8, 0, 9]);
        let checksum = forebay_wire::checksum::Sum::ZERO.bytes(&packet).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.resize(len, n as u8);
        packet
    };
    (0..count).map(packet).collect()
}

fn send(link: &mut dyn Link, packets: &[Vec<u8>]) -> TxReport {
    let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let sent = link.send(&slices);
    assert_eq!(sent.taken + sent.would_block + sent.dropped(), packets.len(), "each once: {sent:?}");
    sent
}

#[test]
fn what_is_not_there_is_said() {
    let nothing = options("net_nothing0", "");
    assert_eq!(refused(&nothing), Unavailable::NoDriver { device: "net_nothing0".to_owned() });
    assert_eq!(look("net_nothing0"), Err(Unavailable::NoDriver { device: "net_nothing0".to_owned() }));
    let on_bus = "0000:7f:1f.6".to_owned();
    assert_eq!(look(&on_bus), Err(Unavailable::NotOnBus { device: on_bus.clone() }));
    assert_eq!(refused(&options(&on_bus, "")), Unavailable::NotOnBus { device: on_bus });
    for (device, arguments) in [("net_af_packet7", "iface=is-not-there"), ("net_af_packet7", "")] {
        let why = refused(&options(device, arguments));
        assert!(matches!(why, Unavailable::NotMade { .. }), "{device} {arguments}: {why:?}");
    }
    // Looking makes nothing, so nothing is in the way.
    assert_eq!(look("net_null7"), Ok(()));
    assert_eq!(look("net_null7"), Ok(()));
}

#[test]
fn a_device_belongs_to_one_link_and_may_be_opened_again_after_it() {
    for _ in 0..3 {
        let opened = open(&options("net_null1", "")).unwrap();
        assert_eq!(refused(&options("net_null1", "")), Unavailable::InUse { device: "net_null1".to_owned() });
        drop(opened);
    }
}

#[test]
fn a_device_gives_as_many_queues_as_it_has() {
    let many = PortOptions { queues: 64, ..options("net_tap7", "iface=fbtest7") };
    match open(&many) {
        Err(Unavailable::NotMade { .. }) => eprintln!("skipped: TAP needs privileges"),
        Err(why) => panic!("{why}"),
        Ok(opened) => assert!((1..64).contains(&opened.links.len()), "{} queues", opened.links.len()),
    }
}

#[test]
fn buffers_that_are_used_up_are_counted_and_come_back() {
    const BUFFERS: u32 = 1_023;
    let few = PortOptions { buffers: Some(BUFFERS), mtu: 1_500, ..options(&format!("{RING}1"), "") };
    let mut opened = match open(&few) {
        Ok(opened) => opened,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let link = &mut opened.links[0];
    // Its own announcements come back to it.
    for _ in 0..20 {
        link.receive(64, &mut |_, _| panic!("nothing is for the gateway")).unwrap();
    }
    for round in 0..3 {
        let mut lost = 0;
        let mut sent = 0;
        for _ in 0..40 {
            let report = send(&mut **link, &packets(64, 100));
            (sent, lost) = (sent + report.taken, lost + report.no_buffers + report.would_block);
        }
        assert!(sent >= 500 && sent <= BUFFERS as usize, "round {round}: {sent} of {BUFFERS} buffers");
        assert_eq!(sent + lost, 40 * 64);
        // They are for another host, and the buffers come back when they have been looked at.
        let before = link.rx_drops().foreign;
        for _ in 0..200 {
            link.receive(64, &mut |_, _| panic!("nothing is for the gateway")).unwrap();
        }
        assert_eq!(link.rx_drops().foreign - before, sent as u64);
    }
}

#[test]
fn a_link_that_is_down_drops_and_says_so() {
    let socket = std::env::temp_dir().join(format!("forebay-memif-{}.sock", std::process::id()));
    let arguments = format!("role=server,socket={},socket-abstract=no", socket.display());
    let mut opened = match open(&options("net_memif7", &arguments)) {
        Ok(opened) => opened,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let link = &mut opened.links[0];
    assert!(!opened.is_up && !link.device().unwrap().is_up);
    let sent = send(&mut **link, &packets(300, 100));
    // What fits a burst may wait for the other end.
    assert!(sent.down >= 300 - 64 && sent.would_block == 0, "{sent:?}");
    assert_eq!(link.receive(64, &mut |_, _| panic!("nothing comes")).unwrap(), 0);
}

#[test]
fn packets_that_cannot_be_sent_are_told_apart() {
    let mut opened = open(&options("net_null2", "")).unwrap();
    let link = &mut opened.links[0];
    let mut burst = packets(6, 100);
    burst[0] = packets(1, 1_501).remove(0);
    burst[1][0] = 0x15;
    // To another network, which no router has; to nobody known; and to the link itself, which is no echo request.
    burst[2][16..20].copy_from_slice(&[192, 0, 2, 1]);
    burst[3][16..20].copy_from_slice(&[10, 8, 0, 77]);
    burst[4][16..20].copy_from_slice(&[10, 8, 0, 2]);
    let sent = send(&mut **link, &burst);
    let expected = TxReport {
        taken: 1,
        too_big: 1,
        mtu: Some(1_500),
        unfit: 1,
        unreachable: 2,
        refused: 1,
        ..TxReport::default()
    };
    assert_eq!(sent, expected);
    assert!(link.nap().is_some() && link.pending());
    let mut told = vec![];
    link.receive(64, &mut |head, body| told.push([head, body].concat())).unwrap();
    // Fragmentation needed, from the link's own address to the source (RFC 1191 4).
    assert_eq!((told.len(), &told[0][12..22]), (1, &[10, 8, 0, 2, 10, 8, 0, 7, 3, 4][..]));
    assert_eq!(told[0][26..28], 1_500u16.to_be_bytes());
}

#[test]
fn a_packet_that_is_longer_than_the_inside_mtu_leaves_in_fragments() {
    let mut opened = open(&options("net_ring3", "")).unwrap();
    let link = &mut opened.links[0];
    for _ in 0..20 {
        link.receive(64, &mut |_, _| panic!("nothing is for the gateway")).unwrap();
    }
    let mut burst = packets(5, 100);
    for (at, len) in [(1, 3_000), (3, 1_501)] {
        burst[at] = packets(1, len).remove(0);
        // It may be divided.
        burst[at][6] = 0;
        burst[at][10..12].fill(0);
        let checksum = forebay_wire::checksum::Sum::ZERO.bytes(&burst[at][..20]).finish();
        burst[at][10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let before = link.rx_drops();
    assert_eq!(send(&mut **link, &burst), TxReport { taken: 5, ..TxReport::default() });
    for _ in 0..20 {
        link.receive(64, &mut |_, _| panic!("they are for another host")).unwrap();
    }
    // Three packets that fit, and three and two fragments; none has a wrong checksum.
    let now = link.rx_drops();
    assert_eq!((now.foreign - before.foreign, now.malformed), (3 + 3 + 2, before.malformed));
    // To the link itself nothing is too big that a tunnel carries.
    let mut request = packets(1, 3_000).remove(0);
    request[9] = 1;
    request[16..20].copy_from_slice(&[10, 8, 0, 2]);
    request[20..28].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(send(&mut **link, &[request]).taken, 1);
    let mut replies = vec![];
    link.receive(64, &mut |head, body| replies.push(head.len() + body.len())).unwrap();
    assert_eq!(replies, [3_000]);
}

#[test]
fn an_echo_request_out_of_a_tunnel_is_answered_into_it() {
    let mut opened = open(&options("net_ring2", "")).unwrap();
    let link = &mut opened.links[0];
    let mut request = packets(1, 60).remove(0);
    request[9] = 1;
    request[16..20].copy_from_slice(&[10, 8, 0, 2]);
    request[20..28].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(send(&mut **link, &[request]).taken, 1);
    assert!(link.pending());
    let mut replies = vec![];
    link.receive(64, &mut |head, body| replies.push([head, body].concat())).unwrap();
    assert_eq!(replies.len(), 1);
    assert_eq!((&replies[0][12..20], replies[0][20]), (&[10, 8, 0, 2, 10, 8, 0, 7][..], 0));
}

/// Both ends of a device whose ends find each other by a socket: the name and arguments of the one that listens, and of the one that
/// connects. DPDK tells memifs of one process apart by how their path is written.
fn ends(driver: &str) -> ([(&'static str, String); 2], PathBuf) {
    let folder = std::env::temp_dir();
    let name = format!("forebay-both-{driver}-{}.sock", std::process::id());
    let path = folder.join(&name);
    let ends = match driver {
        "memif" => [
            ("net_memif20", format!("role=server,socket={},socket-abstract=no", path.display())),
            ("net_memif21", format!("role=client,socket={}/./{name},socket-abstract=no", folder.display())),
        ],
        _ => [
            ("eth_vhost20", format!("iface={}", path.display())),
            ("net_virtio_user20", format!("path={}", path.display())),
        ],
    };
    (ends, path)
}

/// Looks at a device until it says what is expected.
fn expect(watch: &mut Watch, expected: &Change) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match watch.look() {
            Some(Some(change)) if change == *expected => return,
            Some(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            other => panic!("{expected:?} did not come: {other:?}"),
        }
    }
}

/// Whether a packet arrives at the other end; it is sent until then.
fn passes(from: &mut Opened, to: &mut Opened) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    let frames = packets(1, 100);
    let before = to.links[0].rx_drops().foreign;
    while Instant::now() < until {
        send(&mut *from.links[0], &frames);
        to.links[0].receive(64, &mut |_, _| panic!("it is not for this Ethernet address")).unwrap();
        if to.links[0].rx_drops().foreign > before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_device_that_connects_is_made_again_when_its_other_end_is_back() {
    for driver in ["memif", "vhost"] {
        let ([listens, connects], path) = ends(driver);
        let mut server = match open(&options(listens.0, &listens.1)) {
            Ok(opened) => opened,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let mut client = open(&options(connects.0, &connects.1)).unwrap();
        let mac = client.mac;
        if !client.is_up {
            expect(&mut client.watch, &Change::Up);
        }
        assert!(passes(&mut client, &mut server) && passes(&mut server, &mut client), "{driver}");
        for times in 1..4 {
            drop(server);
            expect(&mut client.watch, &Change::Down { is_made_again: true });
            // Nobody listens, so nothing is tried.
            for _ in 0..10 {
                assert_eq!(client.watch.look(), Some(None), "{driver}");
            }
            let lost = send(&mut *client.links[0], &packets(200, 100));
            assert!(lost.down > 0 && lost.taken + lost.down == 200, "{driver}: {lost:?}");
            server = open(&options(listens.0, &listens.1)).unwrap();
            expect(&mut client.watch, &Change::MadeAgain);
            expect(&mut client.watch, &Change::Up);
            assert!(passes(&mut client, &mut server) && passes(&mut server, &mut client), "{driver}");
            assert_eq!(client.links[0].device().unwrap().made_again, times, "{driver}");
        }
        assert_eq!(client.mac, mac);
        let Opened { links, mut watch, .. } = client;
        drop(links);
        assert_eq!(watch.look(), None, "the links are gone");
        drop(server);
        let _ = std::fs::remove_file(path);
    }
}
