//! The gateway's loop over links of memory: what goes where, what waits, and what is answered.

#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use forebay_config::Changes;
use forebay_crypto::{SaKeys, SecretBytes, SessionId, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Addresses, Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Encapsulation, Ipsec, IvRange, SaConfig, Spi};
use forebay_links::{Link, RxDrops, TxReport};
use forebay_sas::parse;
use forebay_scheduler::{AlphaLoop, Cost, Kind, Policy};
use forebay_time::Duration;
use forebay_worker::{Handle, Outside, OwnSettings, Poll, Port, Setup, Wait, Worker};
use rustix::event::PollFlags;

/// What a link of memory has been given, what it will give, and how it behaves.
#[derive(Default)]
struct State {
    to_give: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    /// Packets that it takes before it blocks.
    room: Option<usize>,
    mtu: Option<u32>,
    down: bool,
    /// Packets that it took and the kernel has not; each call of `send` moves one on.
    unsent: usize,
    passed_over: RxDrops,
}

#[derive(Clone)]
struct Memory(Arc<Mutex<State>>, Arc<OwnedFd>);

impl Memory {
    fn new() -> Memory {
        // Neither readable nor writable for long: poll sees it as writable, which is all that matters.
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        Memory(Arc::default(), Arc::new(fd))
    }

    fn give(&self, packet: Vec<u8>) {
        self.0.lock().unwrap().to_give.push_back(packet);
    }

    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap().sent)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    fn port(&self, name: &str) -> Port {
        Port::new(name, Box::new(self.clone()), 64)
    }
}

impl Link for Memory {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        if state.down {
            return Err(io::Error::other("the interface is gone"));
        }
        let count = room.min(state.to_give.len());
        for packet in state.to_give.drain(..count) {
            let (head, body) = packet.split_at(packet.len().min(28));
            take(head, body);
        }
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut state = self.0.lock().unwrap();
        let mut sent = TxReport::default();
        state.unsent = state.unsent.saturating_sub(1);
        for packet in packets {
            if state.down {
                sent.down += 1;
            } else if state.mtu.is_some_and(|mtu| packet.len() as u32 > mtu) {
                sent.too_big += 1;
                sent.mtu = state.mtu;
            } else if state.room == Some(0) {
                sent.would_block += 1;
            } else {
                state.room = state.room.map(|room| room - 1);
                state.sent.push(packet.to_vec());
                sent.taken += 1;
            }
        }
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }

    fn pending(&self) -> bool {
        !self.0.lock().unwrap().to_give.is_empty()
    }

    fn unsent(&self) -> bool {
        self.0.lock().unwrap().unsent > 0
    }

    fn rx_drops(&self) -> RxDrops {
        self.0.lock().unwrap().passed_over
    }
}

struct Gateway {
    worker: Worker,
    handle: Handle,
    inside: Memory,
    udp: Memory,
    raw: Memory,
    icmp: Memory,
}

const NEAR: [u8; 4] = [192, 0, 2, 1];
const FAR: [u8; 4] = [192, 0, 2, 2];

fn keys() -> SaKeys {
    let suite: Suite = "aes128gcm16".parse().unwrap();
    SaKeys::new(suite, &SecretBytes::new(vec![7; 20]), &SecretBytes::new(vec![])).unwrap()
}

fn sa(spi: u32, encapsulation: Encapsulation, remote_ts: &str) -> SaConfig {
    let spi = Spi::new(spi).unwrap();
    let suite = "aes128gcm16".parse().unwrap();
    SaConfig {
        encapsulation,
        remote_ts: vec![remote_ts.parse().unwrap()],
        ..SaConfig::new("sa", spi, suite, NEAR.into(), FAR.into())
    }
}

fn other_end(sa: SaConfig) -> SaConfig {
    SaConfig { local: sa.remote, remote: sa.local, local_ts: sa.remote_ts, remote_ts: sa.local_ts, ..sa }
}

/// A gateway with SAs out, and the gateway that they lead to.
fn gateway(change: impl FnOnce(&mut Setup)) -> Gateway {
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
    let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
    let addresses = Addresses { v4: Some([10, 1, 0, 1].into()), v6: None };
    let settings = Settings { addresses, ..Settings::default() };
    let engine = Engine::new(Ipsec::default(), &[], vec![core], settings, Clock::start()).unwrap();
    let [inside, udp, raw, icmp] = [(); 4].map(|()| Memory::new());
    let mut setup = Setup {
        engine,
        inside: inside.port("inside").into(),
        outside: vec![
            Outside { port: udp.port("udp").into(), protocols: vec![17], local: Some([0; 4].into()) },
            Outside { port: raw.port("raw").into(), protocols: vec![50], local: Some([0; 4].into()) },
        ],
        icmp: vec![Box::new(icmp.clone())],
        own: OwnSettings { audit: (10, 10), processors: vec![0], ..OwnSettings::default() },
        wait: Box::new(Poll::default()),
    };
    change(&mut setup);
    let (worker, handle) = Worker::new(setup).unwrap();
    Gateway { worker, handle, inside, udp, raw, icmp }
}

fn both_ways() -> (Gateway, Gateway) {
    let [mut near, mut far] = [(); 2].map(|()| gateway(|_| {}));
    for (spi, encapsulation, net) in
        [(0x1001, Encapsulation::Udp, "10.2.0.0/16"), (0x1002, Encapsulation::None, "10.3.0.0/16")]
    {
        let config = sa(spi, encapsulation, net);
        near.worker.engine().add_outbound(config.clone(), IvRange::for_throwaway_key(), &keys()).unwrap();
        far.worker.engine().add_inbound(other_end(config), &keys()).unwrap();
    }
    (near, far)
}

fn plain(net: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 7, 0, 0, 64, 253, 0, 0];
    packet.extend([10, 1, 0, 9, 10, net, 0, 9]);
    packet.resize(len, net);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

fn rounds(worker: &mut Worker) {
    for _ in 0..1_000 {
        if !worker.round() && worker.engine().in_flight() == 0 {
            return;
        }
    }
    panic!("it does not come to rest");
}

#[test]
fn packets_go_by_the_link_of_their_sa_and_come_out_plain_on_the_other_side() {
    let (mut near, mut far) = both_ways();
    let packets: Vec<_> = (0..500).map(|n| plain(2 + (n % 2) as u8, 100 + n)).collect();
    for packet in &packets {
        near.inside.give(packet.clone());
    }
    rounds(&mut near.worker);
    let (udp, raw) = (near.udp.take(), near.raw.take());
    assert_eq!((udp.len(), raw.len()), (250, 250));
    assert!(udp.iter().all(|packet| packet[9] == 17) && raw.iter().all(|packet| packet[9] == 50));
    udp.into_iter().for_each(|packet| far.udp.give(packet));
    raw.into_iter().for_each(|packet| far.raw.give(packet));
    rounds(&mut far.worker);
    let mut opened = far.inside.take();
    opened.sort_by_key(Vec::len);
    assert_eq!(opened, packets);
    let counts: Vec<_> =
        far.worker.ports().map(|port| (port.counts().packets_in, port.counts().packets_out)).collect();
    assert_eq!(counts, [(0, 500), (250, 0), (250, 0)]);
}

#[test]
fn what_was_sealed_waits_for_a_full_link_and_programs_wait_for_it() {
    let (mut near, _) = both_ways();
    near.udp.set(|state| state.room = Some(10));
    for n in 0..1_000 {
        near.inside.give(plain(2, 100 + n));
    }
    rounds(&mut near.worker);
    assert_eq!(near.udp.take().len(), 10);
    let left = near.inside.0.lock().unwrap().to_give.len();
    assert!(left >= 700, "no more is taken than was at first: {left}");
    // poll(2) says that it is writable.
    near.udp.set(|state| state.room = None);
    let (done, orders) = (std::time::Instant::now(), near.worker.counts().naps);
    while near.udp.0.lock().unwrap().sent.len() < 990 && done.elapsed().as_secs() < 20 {
        near.worker.step().unwrap();
    }
    assert!(near.worker.counts().naps > orders);
    let sent = near.udp.take();
    assert_eq!(sent.len(), 990);
    assert!(sent.windows(2).all(|pair| pair[0].len() <= pair[1].len()), "in order");
}

#[test]
fn a_link_without_room_keeps_a_limited_queue_and_the_rest_is_counted() {
    let (mut near, mut far) = both_ways();
    for n in 0..1_000 {
        near.inside.give(plain(2, 100 + n));
    }
    rounds(&mut near.worker);
    far.inside.set(|state| state.room = Some(0));
    for packet in near.udp.take() {
        far.udp.give(packet);
    }
    rounds(&mut far.worker);
    let lost = far.worker.ports().next().unwrap().counts().lost.queue_full;
    assert!((1..1_000).contains(&lost), "{lost}");
    far.inside.set(|state| state.room = None);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut heard = 0;
    while heard < 1_000 - lost as usize && std::time::Instant::now() < end {
        far.worker.step().unwrap();
        heard += far.inside.take().len();
    }
    assert_eq!(heard, 1_000 - lost as usize);
}

/// As AF_XDP does where the kernel has no memory for more: nothing comes, and nothing says when there is room.
#[test]
fn packets_that_a_link_took_and_the_kernel_did_not_are_tried_again_without_new_ones() {
    let (mut near, _) = both_ways();
    for link in [&near.udp, &near.inside] {
        link.set(|state| state.unsent = 10);
    }
    for _ in 0..20 {
        near.worker.step().unwrap();
    }
    assert!(!near.udp.unsent() && !near.inside.unsent());
}

#[test]
fn a_link_that_is_down_loses_packets_and_nothing_else() {
    let (mut near, _) = both_ways();
    near.udp.set(|state| state.down = true);
    near.inside.give(plain(2, 100));
    near.inside.give(plain(3, 100));
    rounds(&mut near.worker);
    assert_eq!((near.udp.take().len(), near.raw.take().len()), (0, 1));
    let counts = near.worker.ports().nth(1).unwrap().counts().clone();
    assert_eq!((counts.lost.down, counts.packets_out), (1, 0));
    assert!(counts.errors > 0);
    near.udp.set(|state| state.down = false);
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    assert_eq!(near.udp.take().len(), 1);
}

/// Bytes that were not sent are none of those that were, in whatever way the link refuses them.
#[test]
fn bytes_out_are_those_of_the_packets_that_a_link_took() {
    let (mut near, _) = both_ways();
    let counted = |near: &Gateway| {
        let counts = near.worker.ports().nth(1).unwrap().counts().clone();
        (counts.packets_out, counts.bytes_out)
    };
    near.udp.set(|state| state.down = true);
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    assert_eq!(counted(&near), (0, 0), "the link is down");
    near.udp.set(|state| (state.down, state.mtu) = (false, Some(600)));
    near.inside.give(plain(2, 1_000));
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    let sent: usize = near.udp.take().iter().map(Vec::len).sum();
    assert!((100..600).contains(&sent), "one of the two: {sent}");
    assert_eq!(counted(&near), (1, sent as u64), "one is too big");
    near.udp.set(|state| (state.room, state.mtu) = (Some(1), None));
    (0..3).for_each(|_| near.inside.give(plain(2, 100)));
    near.worker.round();
    near.worker.round();
    let sent = sent + near.udp.take().iter().map(Vec::len).sum::<usize>();
    assert_eq!(counted(&near), (2, sent as u64), "two wait");
}

#[test]
fn what_was_lost_before_a_link_gave_it_is_told() {
    let (near, _) = both_ways();
    let passed_over = RxDrops { overrun: 3, truncated: 2, malformed: 1, keepalives: 9, ike: 9, foreign: 9 };
    near.udp.set(|state| state.passed_over = passed_over);
    assert_eq!(near.worker.ports().nth(1).unwrap().rx_drops(), passed_over);
}

#[test]
fn a_packet_too_big_for_its_link_teaches_the_sa_and_the_next_one_is_answered() {
    let (mut near, _) = both_ways();
    near.udp.set(|state| state.mtu = Some(1_000));
    let mut packet = plain(2, 1_000);
    // Not to be fragmented.
    packet[6] = 0x40;
    packet[10] = packet[10].wrapping_sub(0x40);
    near.inside.give(packet.clone());
    rounds(&mut near.worker);
    assert_eq!((near.udp.take().len(), near.inside.take().len()), (0, 0));
    near.inside.give(packet);
    rounds(&mut near.worker);
    assert_eq!(near.udp.take().len(), 0);
    let answers = near.inside.take();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0][9], 1, "ICMP");
    assert_eq!(answers[0][20..22], [3, 4], "fragmentation needed");
    let mtu = u16::from_be_bytes([answers[0][26], answers[0][27]]);
    assert!((900..1_000).contains(&mtu), "{mtu}");
}

#[test]
fn nothing_that_comes_in_stops_it() {
    let (mut near, mut far) = both_ways();
    for len in [0, 1, 19, 20, 21, 60, 1_500, 9_000, 65_535] {
        for first in [0x00, 0x45, 0x46, 0x60, 0xff] {
            let mut bytes = vec![first; len];
            if let Some(protocol) = bytes.get_mut(9) {
                *protocol = 50;
            }
            for link in [&near.inside, &near.udp, &near.raw, &near.icmp, &far.udp, &far.raw] {
                link.give(bytes.clone());
            }
        }
    }
    rounds(&mut near.worker);
    rounds(&mut far.worker);
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    assert_eq!(near.udp.take().len(), 1);
    assert!(near.worker.engine().drops().total() > 0);
}

#[test]
fn keepalives_go_to_peers_that_heard_nothing_else() {
    let mut near = gateway(|setup| setup.own.keepalive = Some(Duration::from_millis(1)));
    let config = sa(0x1001, Encapsulation::Udp, "10.2.0.0/16");
    near.worker.engine().add_outbound(config, IvRange::for_throwaway_key(), &keys()).unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut heard = vec![];
    while heard.is_empty() && std::time::Instant::now() < end {
        near.worker.round();
        heard = near.udp.take();
    }
    let packet = &heard[0];
    assert_eq!((packet.len(), packet[28], &packet[12..20]), (29, 0xff, &[192, 0, 2, 1, 192, 0, 2, 2][..]));
    assert_eq!(packet[20..26], [0x11, 0x94, 0x11, 0x94, 0, 9]);
}

#[test]
fn outbound_sas_follow_a_peer_that_moves() {
    let (mut near, mut far) = both_ways();
    // The way back of the SA in UDP.
    let back = other_end(SaConfig { remote_ts: vec![], ..sa(0x2001, Encapsulation::Udp, "10.1.0.0/16") });
    far.worker.engine().add_outbound(back, IvRange::for_throwaway_key(), &keys()).unwrap();
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    let mut sealed = near.udp.take().remove(0);
    sealed[12..16].copy_from_slice(&[198, 51, 100, 7]);
    sealed[20..22].copy_from_slice(&1_024_u16.to_be_bytes());
    far.udp.give(sealed);
    rounds(&mut far.worker);
    assert_eq!(far.worker.counts().moved_peers, 1);
    far.inside.give(plain(1, 100));
    rounds(&mut far.worker);
    let back = far.udp.take().remove(0);
    assert_eq!((&back[16..20], &back[22..24]), (&[198, 51, 100, 7][..], &[4, 0][..]));
}

/// Where an SA's peer is.
fn peer_of(worker: &mut Worker, session: SessionId) -> SocketAddr {
    let sa = worker.engine().sad().config(session).unwrap().clone();
    SocketAddr::new(sa.remote, sa.udp.remote)
}

#[test]
fn peers_behind_one_address_move_each_with_its_own_pair_of_sas() {
    // Pairs by selectors, as from a file, and by reqid, as from the kernel.
    for by_reqid in [false, true] {
        let config = |spi: u32, peer: u32| {
            let sa = sa(spi + peer, Encapsulation::Udp, &format!("10.{}.0.0/16", 2 + peer));
            match by_reqid {
                true => SaConfig { reqid: 1 + peer, remote_ts: vec![], ..sa },
                false => sa,
            }
        };
        let mut hub = gateway(|_| {});
        let (mut sessions, mut peers) = (vec![], vec![]);
        for number in 0..2 {
            let engine = hub.worker.engine();
            let inbound = engine.add_inbound(config(0x1001, number), &keys()).unwrap();
            let outbound = config(0x2001, number);
            let outbound = engine.add_outbound(outbound, IvRange::for_throwaway_key(), &keys()).unwrap();
            sessions.push([inbound, outbound]);
            let mut peer = gateway(|_| {});
            let sa = other_end(config(0x1001, number));
            peer.worker.engine().add_outbound(sa, IvRange::for_throwaway_key(), &keys()).unwrap();
            peers.push(peer);
        }
        let mut hear = |hub: &mut Gateway, peer: usize, port: u16| {
            let mut packet = plain(2 + peer as u8, 100);
            let (source, destination) = packet[12..20].split_at_mut(4);
            source.swap_with_slice(destination);
            peers[peer].inside.give(packet);
            rounds(&mut peers[peer].worker);
            let mut sealed = peers[peer].udp.take().remove(0);
            sealed[12..16].copy_from_slice(&[198, 51, 100, 7]);
            sealed[20..22].copy_from_slice(&port.to_be_bytes());
            hub.udp.give(sealed);
            rounds(&mut hub.worker);
            let places = sessions.iter().flatten().map(|&session| peer_of(&mut hub.worker, session).port());
            (places.collect::<Vec<_>>(), hub.worker.counts().moved_peers)
        };
        assert_eq!(hear(&mut hub, 0, 1_000), (vec![1_000, 1_000, 4_500, 4_500], 1));
        assert_eq!(hear(&mut hub, 1, 2_000), (vec![1_000, 1_000, 2_000, 2_000], 2));
        // Each stays where it is while the other sends.
        assert_eq!(hear(&mut hub, 0, 1_000), (vec![1_000, 1_000, 2_000, 2_000], 2));
        assert_eq!(hear(&mut hub, 1, 2_000), (vec![1_000, 1_000, 2_000, 2_000], 2));
    }
}

#[test]
fn orders_are_obeyed_between_rounds_and_wake_a_sleeper() {
    let Gateway { mut worker, handle, .. } = gateway(|_| {});
    let thread = std::thread::spawn(move || worker.run());
    for number in 0..100_u32 {
        let session = handle.ask(move |worker| {
            let config = sa(0x1000 + number, Encapsulation::None, "10.2.0.0/16");
            worker.engine().add_outbound(config, IvRange::for_throwaway_key(), &keys()).unwrap()
        });
        assert_eq!(session, Some(SessionId(number)));
    }
    assert_eq!(handle.ask(|worker| worker.engine().sad().iter().count()), Some(100));
    assert_eq!(handle.ask(Worker::stop), Some(()));
    thread.join().unwrap().unwrap();
    assert_eq!(handle.ask(|_| ()), None);
}

/// A reload that keeps some SAs and removes some, and changes nothing else.
fn changes(kept: Vec<Option<usize>>, removed: Vec<usize>) -> Changes {
    Changes {
        kept,
        removed,
        moved: vec![],
        policies: false,
        biases: vec![],
        log: false,
        taps: false,
        metrics: false,
        esp_sa_export: false,
        restart: vec![],
    }
}

#[test]
fn a_file_that_the_engine_refuses_leaves_nothing_of_any_file() {
    let Gateway { mut worker, .. } = gateway(|_| {});
    let file = |second: u32| {
        let sa = |name: &str, spi: u32| {
            format!(
                "[[sa]]\nname = \"{name}\"\ndirection = \"in\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
                 key = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n",
                format!("{spi:08x}").repeat(5)
            )
        };
        let policy = "[[policy]]\ndirection = \"in\"\naction = \"protect\"\nsa = [\"a\", \"b\"]\n";
        parse(&format!("{}{}{policy}", sa("a", 0x1001), sa("b", second)), "test").unwrap()
    };
    let changes = |kept, removed| Changes { policies: true, ..changes(kept, removed) };
    let inbound = forebay_crypto::Direction::Open;
    worker.install(&file(0x1002), &changes(vec![None, None], vec![]), vec![]).unwrap();
    let engine = worker.engine();
    let sad = engine.sad();
    assert_eq!((sad.iter().count(), sad.policies(inbound).count()), (2, 1));
    drop(sad);
    // Another SA has the SPI.
    let other = other_end(sa(0x2002, Encapsulation::None, "10.2.0.0/16"));
    worker.engine().add_inbound(other, &keys()).unwrap();
    worker.install(&file(0x2002), &changes(vec![Some(0), None], vec![1]), vec![]).unwrap_err();
    let engine = worker.engine();
    let sad = engine.sad();
    let left: Vec<u32> = sad.iter().map(|(_, _, sa, _)| sa.spi.get()).collect();
    assert_eq!((left, sad.policies(inbound).count()), (vec![0x2002], 0));
    drop(sad);
    // And the next is put in whole.
    worker.install(&file(0x1002), &changes(vec![None, None], vec![]), vec![]).unwrap();
    let engine = worker.engine();
    let sad = engine.sad();
    assert_eq!((sad.iter().count(), sad.policies(inbound).count()), (3, 1));
    drop(sad);
}

/// A reload adds an outbound SA to a peer that has moved, as a rekey does: the file says where the peer was at first.
#[test]
fn a_new_outbound_sa_goes_to_where_its_peer_has_moved() {
    let (mut far, mut near) = (gateway(|_| {}), gateway(|_| {}));
    near.worker
        .engine()
        .add_outbound(sa(0x1001, Encapsulation::Udp, "10.2.0.0/16"), IvRange::for_throwaway_key(), &keys())
        .unwrap();
    let entry = |name: &str, direction: &str, spi: u32, key: &str| {
        format!(
            "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
             key = \"{}\"\nlocal = \"192.0.2.2\"\nremote = \"192.0.2.1\"\nencapsulation = \"udp\"\n",
            key.repeat(20)
        )
    };
    let inbound = entry("in", "in", 0x1001, "07");
    let old = parse(&format!("{inbound}{}", entry("old", "out", 0x2001, "08")), "test").unwrap();
    let new = parse(&format!("{inbound}{}", entry("new", "out", 0x2002, "09")), "test").unwrap();
    let ivs = || vec![IvRange::for_throwaway_key()];
    far.worker.install(&old, &changes(vec![None; 2], vec![]), ivs()).unwrap();
    near.inside.give(plain(2, 100));
    rounds(&mut near.worker);
    let mut sealed = near.udp.take().remove(0);
    sealed[12..16].copy_from_slice(&[198, 51, 100, 7]);
    sealed[20..22].copy_from_slice(&1_024_u16.to_be_bytes());
    far.udp.give(sealed);
    rounds(&mut far.worker);
    far.worker.install(&new, &changes(vec![Some(0), None], vec![1]), ivs()).unwrap();
    let session = far.worker.sessions()[1];
    let sa = far.worker.engine().sad().config(session).unwrap().clone();
    assert_eq!((sa.remote, sa.udp.remote), ([198, 51, 100, 7].into(), 1_024));
}

/// The peer moves, its SAs are replaced, and by the new ones it is where the file says: the new inbound SA was told of the move by another
/// one, that followed the peer before the new one was there or after that.
#[test]
fn a_peer_that_has_moved_and_is_back_by_a_new_sa_is_followed() {
    for is_there_before in [false, true] {
        let mut far = gateway(|_| {});
        let entry = |direction: &str, spi: u32| {
            format!(
                "[[sa]]\nname = \"{direction}-{spi}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
                 key = \"{}\"\nlocal = \"192.0.2.2\"\nremote = \"192.0.2.1\"\nencapsulation = \"udp\"\n",
                format!("{spi:08x}").repeat(5)
            )
        };
        let [old, new, out] = [entry("in", 0x1001), entry("in", 0x1002), entry("out", 0x2001)];
        let [one, both] =
            [out.clone() + &old, out.clone() + &old + &new].map(|text| parse(&text, "test").unwrap());
        let (first, kept) = if is_there_before { (&both, vec![None; 3]) } else { (&one, vec![None; 2]) };
        far.worker.install(first, &changes(kept, vec![]), vec![IvRange::for_throwaway_key()]).unwrap();
        let hear = |far: &mut Gateway, spi: u32, from: [u8; 4]| {
            let mut near = gateway(|_| {});
            let (sa, key) = (sa(spi, Encapsulation::Udp, "10.2.0.0/16"), spi.to_be_bytes().repeat(5));
            let keys = SaKeys::new(sa.suite, &SecretBytes::new(key), &SecretBytes::new(vec![])).unwrap();
            near.worker.engine().add_outbound(sa, IvRange::for_throwaway_key(), &keys).unwrap();
            near.inside.give(plain(2, 100));
            rounds(&mut near.worker);
            let mut sealed = near.udp.take().remove(0);
            sealed[12..16].copy_from_slice(&from);
            far.udp.give(sealed);
            rounds(&mut far.worker);
            let outbound = far.worker.sessions()[0];
            peer_of(&mut far.worker, outbound).ip()
        };
        let moved = [198, 51, 100, 7];
        assert_eq!(hear(&mut far, 0x1001, moved), IpAddr::from(moved));
        if !is_there_before {
            far.worker.install(&both, &changes(vec![Some(0), Some(1), None], vec![]), vec![]).unwrap();
        }
        assert_eq!(hear(&mut far, 0x1002, NEAR), IpAddr::from(NEAR), "before the move: {is_there_before}");
        assert_eq!(far.worker.counts().moved_peers, 2);
    }
}

/// Two peers have one address in the file, and have moved to two places.
#[test]
fn a_new_sa_goes_to_where_its_pair_is_and_nowhere_if_peers_are_in_doubt() {
    let Gateway { mut worker, .. } = gateway(|_| {});
    let file = |second: u32, peers: u32| {
        let entry = |direction: &str, spi: u32, peer: u32| {
            format!(
                "[[sa]]\nname = \"{direction}-{peer}\"\ndirection = \"{direction}\"\nspi = {spi}\n\
                 proposal = \"aes128gcm16\"\nkey = \"{}\"\nlocal = \"192.0.2.2\"\nremote = \"192.0.2.1\"\n\
                 encapsulation = \"udp\"\nremote_ts = [\"10.{peer}.0.0/16\"]\n",
                format!("{spi:08x}").repeat(5)
            )
        };
        let pair = |peer| entry("in", 0x1000 + peer, peer) + &entry("out", second * peer + 0x2000, peer);
        parse(&(1..=peers).map(pair).collect::<String>(), "test").unwrap()
    };
    let ivs = |count| (0..count).map(|_| IvRange::for_throwaway_key()).collect();
    worker.install(&file(1, 2), &changes(vec![None; 4], vec![]), ivs(2)).unwrap();
    for (place, session) in worker.sessions().to_vec().into_iter().enumerate() {
        let to = SocketAddr::from(([198, 51, 100, 7], 1_000 + place as u16 / 2));
        assert_eq!(worker.engine().move_peer(session, to), Ok(true));
    }
    let kept = vec![Some(0), None, Some(2), None, None, None];
    worker.install(&file(16, 3), &changes(kept, vec![1, 3]), ivs(3)).unwrap();
    let sessions = worker.sessions().to_vec();
    let places: Vec<u16> = sessions.iter().map(|&session| peer_of(&mut worker, session).port()).collect();
    assert_eq!(places, [1_000, 1_000, 1_001, 1_001, 4_500, 4_500]);
}

/// Notes how many descriptors a worker waits for; none is ever ready, and no time is spent.
struct Asked(Arc<Mutex<Vec<usize>>>);

impl Wait for Asked {
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], _: Duration) -> io::Result<Vec<PollFlags>> {
        self.0.lock().unwrap().push(asked.len());
        Ok(vec![PollFlags::empty(); asked.len()])
    }

    fn rest(&mut self, _: bool) {}
}

#[test]
fn icmp_messages_that_follow_each_other_do_not_wake_the_worker_one_by_one() {
    let asked = Arc::new(Mutex::new(vec![]));
    let mut gateway = gateway(|setup| setup.wait = Box::new(Asked(asked.clone())));
    let mut step = || {
        gateway.worker.step().unwrap();
        asked.lock().unwrap().pop()
    };
    // Bell, inside, two links outside, and ICMP.
    step();
    assert_eq!(step(), Some(5));
    // It is looked at in every 64th round at least; a busy machine may spend its rest before the worker sleeps.
    let rests = (0..1_000).any(|_| {
        gateway.icmp.give(vec![0; 60]);
        step() == Some(4)
    });
    assert!(rests, "ICMP was asked for all the time");
    std::thread::sleep(std::time::Duration::from_millis(11));
    let mut last = step();
    if last == Some(4) {
        // That round has read it once more.
        std::thread::sleep(std::time::Duration::from_millis(11));
        last = step();
    }
    assert_eq!(last, Some(5));
}

/// A thread on a CPU that is as busy as the test says.
struct Loaded {
    share: f64,
    begun: std::time::Instant,
}

impl Wait for Loaded {
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], _: Duration) -> io::Result<Vec<PollFlags>> {
        Ok(vec![PollFlags::empty(); asked.len()])
    }

    fn rest(&mut self, _: bool) {}

    fn busy(&mut self) -> Option<Duration> {
        Some(Duration::from_secs(self.begun.elapsed().as_secs_f64() * self.share))
    }
}

#[test]
fn adaptive_alpha_follows_the_load_of_the_workers_cpu() {
    for (policy, share, rises) in [
        (Policy::AdaptiveAlpha(AlphaLoop::DEFAULT), 1.0, true),
        (Policy::AdaptiveAlpha(AlphaLoop::DEFAULT), 0.5, false),
        (Policy::FinishTime, 1.0, false),
    ] {
        let mut gateway = gateway(|setup| {
            let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
            let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
            let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
            let mut settings = Settings::default();
            settings.scheduling.policy = policy;
            setup.engine = Engine::new(Ipsec::default(), &[], vec![core], settings, Clock::start()).unwrap();
            setup.wait = Box::new(Loaded { share, begun: std::time::Instant::now() });
        });
        // Some steps of 10 ms, each of a few reports.
        for _ in 0..30 {
            gateway.worker.step().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let alpha = gateway.worker.engine().alpha(0);
        assert_eq!(alpha > 1.5, rises, "alpha is {alpha} at a load of {share}");
    }
}
