//! The captures that others collected because they broke something, packet by packet through a gateway: opened as
//! they are, sealed and opened again, and taken for what a peer has sealed. No crash; each drop has its reason.

use std::fs::File;
use std::path::Path;

use forebay_crypto::{Direction, JobSpec, Packet, Verdict};
use forebay_fuzz::{
    ah_open, ah_seal, esp_open, esp_seal, fragments, iptfs, nested, path_mtu, tally, wire_ip,
};
use forebay_ipsec::reassembly::ReassemblyLimits;
use forebay_ipsec::{
    Action, DropCounts, DropReason, Encapsulation, Ipsec, IvRange, Mode, Policy, PolicyPlace, Prepared,
    Protocol, Reassembler, Reassembly, SaConfig, Spi,
};
use forebay_links::capture::Reader;
use forebay_links::frame::locate;
use forebay_time::Time;
use forebay_wire::Ip;

const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora/malformed");
/// How many there are.
const COUNT: usize = 230;

/// All IP packets of a capture, as far as it can be read, with their time stamps.
fn packets(path: &Path) -> Vec<(Time, Vec<u8>)> {
    let mut packets = Vec::new();
    let file = File::open(path).expect("a file that can be read");
    let Ok(mut reader) = Reader::new(file, path.display().to_string()) else { return packets };
    while let Ok(Some(record)) = reader.next_record() {
        if let Ok(at) = locate(record.link, record.data) {
            let time = Time(record.timestamp_ns.saturating_mul(1_000));
            packets.push((time, record.data[at.start..].to_vec()));
        }
    }
    packets
}

/// A gateway in the middle of the captures' traffic: ESP, ESP in UDP and AH in both directions, policies that let
/// some pass and protect the rest, and reassembly.
struct Gateway {
    sad: Ipsec,
    reassembler: Reassembler,
    drops: DropCounts,
    sealed: u64,
    opened: u64,
    passed: u64,
}

impl Gateway {
    fn new() -> Gateway {
        let mut sad = Ipsec::default();
        let mut number = 0;
        let mut sa = |protocol, mode, encapsulation, proposal: &str| {
            number += 1;
            let [near, far] = [[192, 0, 2, 1].into(), [192, 0, 2, number as u8 + 1].into()];
            let suite = proposal.parse().expect("a proposal");
            let spi = Spi::new(0x1000 + number).expect("not zero");
            SaConfig { protocol, mode, encapsulation, ..SaConfig::new("sa", spi, suite, near, far) }
        };
        let (esp, udp) = (Encapsulation::None, Encapsulation::Udp);
        let configs = [
            sa(Protocol::Esp, Mode::Tunnel, esp, "aes128gcm16"),
            sa(Protocol::Esp, Mode::Tunnel, udp, "aes256-sha256"),
            sa(Protocol::Esp, Mode::Transport, esp, "chacha20poly1305"),
            sa(Protocol::Ah, Mode::Tunnel, esp, "sha256"),
            sa(Protocol::Ah, Mode::Transport, esp, "aes128gmac"),
        ];
        // By protocol to the one or the other.
        let words = ["[udp]", "[tcp]", "[icmp]", "[ipv6-icmp]", "any"];
        let (mut out, mut into) = (vec![], vec![]);
        for config in configs {
            out.push(sad.add_outbound(config.clone(), IvRange::for_throwaway_key()).expect("no fault"));
            into.push(sad.add_inbound(config).expect("no fault"));
        }
        for (direction, sas) in [(Direction::Seal, out), (Direction::Open, into)] {
            let ts = |word: &str| vec![word.parse().expect("a selector")];
            let mut add = |word, action| {
                let policy = Policy { remote_ts: ts(word), ..Policy::new(word, direction, action) };
                sad.add_policy(policy, PolicyPlace::Last).expect("SAs that exist");
            };
            add("[udp/53]", Action::Bypass);
            add("[tcp/80-443]", Action::Bypass);
            add("[47]", Action::Discard);
            for (word, sa) in words.into_iter().zip(sas) {
                add(word, Action::Protect(vec![sa]));
            }
        }
        Gateway {
            sad,
            reassembler: Reassembler::new(ReassemblyLimits::default(), 1),
            drops: DropCounts::default(),
            sealed: 0,
            opened: 0,
            passed: 0,
        }
    }

    /// Takes a packet in from the peer's side and from this side.
    fn take(&mut self, now: Time, bytes: &[u8]) {
        let mut packet = Packet::with_capacity(65_575);
        if !packet.fill(bytes) {
            self.drops.count(DropReason::TooLong);
            return;
        }
        self.sad.advance(now);
        match self.reassembler.push(now, &mut packet) {
            Reassembly::Whole | Reassembly::Complete => self.pass(Direction::Open, &mut packet),
            Reassembly::Held => {}
            Reassembly::Dropped(reason) => self.drops.count(reason),
        }
        assert!(packet.fill(bytes));
        self.pass(Direction::Seal, &mut packet);
    }

    fn pass(&mut self, direction: Direction, packet: &mut Packet) {
        let mut spec = JobSpec::default();
        let done = match self.sad.prepare(direction, packet, &mut spec) {
            Ok(Prepared::Bypass) => {
                self.passed += 1;
                Ok(())
            }
            // The cipher changes nothing here, so that what comes in looks like a peer's; see the targets for
            // a real one.
            Ok(Prepared::Job) => match self.sad.complete(packet, &spec, Verdict::Done) {
                Ok(_) => {
                    *if direction == Direction::Seal { &mut self.sealed } else { &mut self.opened } += 1;
                    Ok(())
                }
                Err(reason) => Err(reason),
            },
            Err(reason) => Err(reason),
        };
        match done {
            Ok(()) => {
                let whole = Ip::parse(packet.bytes()).map(|ip| ip.bytes().len());
                assert_eq!(whole, Ok(packet.len()));
            }
            Err(reason) => self.drops.count(reason),
        }
    }
}

#[test]
fn every_packet_of_every_malformed_capture() {
    let Ok(folder) = std::fs::read_dir(CAPTURES) else {
        eprintln!("skipped: {CAPTURES} is absent");
        return;
    };
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "md"));
    paths.sort();
    assert_eq!(paths.len(), COUNT);
    let mut gateway = Gateway::new();
    let mut count = 0u64;
    for path in &paths {
        for (now, packet) in packets(path) {
            count += 1;
            gateway.take(now, &packet);
            through_the_targets(count, &packet);
        }
    }
    let Gateway { drops, sealed, opened, passed, reassembler, .. } = gateway;
    let report = |drops: &DropCounts| {
        drops.iter().map(|(reason, n)| format!("{reason} {n}")).collect::<Vec<_>>().join(", ")
    };
    eprintln!("{} captures, {count} packets: {sealed} sealed, {opened} opened, {passed} passed", paths.len());
    eprintln!("dropped: {}; held and dropped: {}", report(&drops), report(reassembler.drops()));
    let tally = tally();
    eprintln!("with a real cipher: {} delivered; dropped: {}", tally.delivered, report(&tally.drops));
    assert!(count > 1_000 && sealed > 0 && passed > 0);
}

/// Each packet by SAs of ever other kinds.
fn through_the_targets(count: u64, packet: &[u8]) {
    wire_ip(packet);
    let with = |head: &[u8]| [head, packet].concat();
    let [suite, rules] = [count as u8, (count / 7) as u8];
    for shape in [0, 1, 6, 15] {
        let head = [suite, shape, rules, 0];
        esp_seal(&with(&head));
        ah_seal(&with(&head));
        path_mtu(&with(&[suite, shape | 0x10, rules, 0, 5, 0]));
        for mode in [0, 1, 2] {
            let head = [suite, shape | mode << 6, rules, 0];
            esp_open(&with(&head));
            ah_open(&with(&head));
        }
        nested(&with(&[shape, suite, shape, rules, 0, suite, 1, 0, 0, 0, 0, 0, 0]));
    }
    let [high, low] = (packet.len().min(2_000) as u16).to_be_bytes();
    let one = [&[0, high, low][..], &packet[..packet.len().min(2_000)]].concat();
    fragments(&[&one[..], &one].concat());
    iptfs(&[&[suite, 0, 0, 0][..], &one, &one].concat());
}
