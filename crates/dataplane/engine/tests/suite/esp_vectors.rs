//! Other people's ESP packets, opened and sealed on every backend.
//!
//! `data/esp-vectors.jsonl` is a copy of what DPDK, OpenDataPlane, RFC 7634, draft-mcgrew-gcm-test-01
//! and scapy published (sources in `data/README.md`). Each of our suites' vectors is run twice: as a
//! bare job with the trailer looked at, and all the way through SA, processor and headers. What is not
//! run is named with its reason.
//!
//! - An SA's mode is told by the vector's next header: IPv4 or IPv6 in it is tunnel mode, anything else
//!   transport mode. That takes the draft's trailers, which say ICMP over all sorts of bytes, at their word.
//! - Where the source gives no outer header, and beside the one it gives, outer headers are made up: IPv4
//!   and IPv6, each with and without UDP.
//! - Sequence numbers are placed by [`Ipsec::continue_after`](forebay_ipsec::Ipsec::continue_after): with ESN
//!   the high half is the vector's (one vector's low half is zero, and two have the last number there is),
//!   without it the window is empty, so no number is too old.
//! - SPI zero (RFC 4303 2.1: for local use) is no SA's: its two vectors are run as bare jobs only.
//! - A dummy packet's vector (next header 59) is opened, and then dropped as meant.

use crate::support;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict};
use forebay_ipsec::{DropReason, Encapsulation, IvRange, Mode, SaConfig};
use forebay_wire::esp::Trailer;
use forebay_wire::{Ip, protocol};
use serde_json::Value;
use support::{Gateway, Rig, backends, config};

const COPY: &str = include_str!("../data/esp-vectors.jsonl");
const ORIGINAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/corpora/esp-ah/vectors.jsonl");

const SEAL: SessionId = SessionId(0);
const OPEN: SessionId = SessionId(1);

/// A vector that is run.
struct Vector {
    id: String,
    suite: Suite,
    keys: SaKeys,
    esn_hi: Option<u32>,
    udp: bool,
    esp: Vec<u8>,
    /// From the outer IP header.
    packet: Option<Vec<u8>>,
    /// The packet before transport mode got at it.
    plain_packet: Option<Vec<u8>>,
    accepted: bool,
    next_header: u8,
    padding: Vec<u8>,
    payload: Vec<u8>,
}

impl Vector {
    fn read(row: &Value, suite: Suite) -> Vector {
        let hex = |name: &str| bytes(row[name].as_str().unwrap_or_default());
        let key = [hex("enc_key"), hex("salt")].concat();
        let number = |name: &str| row[name].as_u64();
        Vector {
            id: id(row).to_owned(),
            suite,
            keys: keys(suite, &key, &hex("auth_key")),
            esn_hi: number("esn_hi").map(|high| high as u32),
            udp: row["udp_encap"].as_bool().unwrap_or(false),
            esp: hex("esp"),
            packet: row["packet"].as_str().map(bytes),
            // Empty for a dummy packet: there was nothing before it.
            plain_packet: row["plain_packet"].as_str().filter(|hex| !hex.is_empty()).map(bytes),
            accepted: match row["expect"].as_str() {
                Some("accept") => true,
                Some("reject:auth") => false,
                other => panic!("{}: expects {other:?}", id(row)),
            },
            // A packet that is refused has no known next header.
            next_header: number("next_header").unwrap_or(0) as u8,
            padding: hex("pad"),
            payload: hex("decapsulated"),
        }
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.esp[at..at + 4].try_into().expect("four bytes"))
    }

    fn spi(&self) -> u32 {
        self.word(0)
    }

    fn sequence(&self) -> u64 {
        u64::from(self.esn_hi.unwrap_or(0)) << 32 | u64::from(self.word(4))
    }

    fn iv(&self) -> &[u8] {
        &self.esp[8..8 + self.suite.iv_len()]
    }

    fn mode(&self) -> Mode {
        match self.next_header {
            protocol::IPV4 | protocol::IPV6 => Mode::Tunnel,
            _ => Mode::Transport,
        }
    }

    /// SPI to trailer, in the clear, with room for the ICV.
    fn plain_esp(&self) -> Vec<u8> {
        let trailer = [self.padding.len() as u8, self.next_header];
        let icv = vec![0; self.suite.icv_len()];
        [&self.esp[..8], self.iv(), &self.payload, &self.padding, &trailer, &icv].concat()
    }

    /// The job that opens or seals the ESP packet that `packet` is.
    fn spec(&self, direction: Direction, packet: &Packet) -> JobSpec {
        let span = |from: usize, to: usize| Span { start: from as u32, len: (to - from) as u32 };
        let esp_at = packet.offset();
        let iv_at = esp_at + 8;
        let icv_at = esp_at + packet.len() - self.suite.icv_len();
        // Sealing, the chain starts with the block that becomes the IV.
        let chained = direction == Direction::Seal && self.suite.is_chained();
        let text_at = if chained { iv_at } else { iv_at + self.suite.iv_len() };
        JobSpec {
            session: if direction == Direction::Seal { SEAL } else { OPEN },
            cipher: span(text_at, icv_at),
            iv: iv_at as u32,
            auth: span(esp_at, if self.suite.covers_text() { icv_at } else { iv_at }),
            icv: icv_at as u32,
            seq_hi: self.esn_hi,
        }
    }

    fn job(&self, direction: Direction, esp: &[u8]) -> Job {
        let mut packet = Packet::with_capacity(esp.len());
        assert!(packet.fill(esp));
        let spec = self.spec(direction, &packet);
        Job::new(packet, spec, 0)
    }

    /// An SA that the vector could belong to, between the addresses of `outer`.
    fn sa(&self, outer: &Outer, direction: Direction) -> SaConfig {
        let ip = Ip::parse(&outer.headers).expect("headers that were made here or published");
        let ends = match direction {
            Direction::Seal => [ip.source(), ip.destination()],
            Direction::Open => [ip.destination(), ip.source()],
        };
        let config = config(self.suite, self.mode(), self.spi(), ends);
        SaConfig { esn: self.esn_hi.is_some(), encapsulation: outer.encapsulation, ..config }
    }

    /// What comes out of the whole path, given what stood in front of the ESP header.
    fn opened(&self, outer: &Outer) -> Vec<u8> {
        match self.mode() {
            Mode::Tunnel => self.payload.clone(),
            Mode::Transport => packet(&outer.headers, self.next_header, &self.payload),
        }
    }

    /// The same as a receiver passes it on: behind a NAT sums are computed anew (RFC 3948 3.1.2), and that of one vector is
    /// wrong.
    fn received(&self, outer: &Outer) -> Vec<u8> {
        self.repaired(outer, self.opened(outer))
    }

    fn repaired(&self, outer: &Outer, mut packet: Vec<u8>) -> Vec<u8> {
        if self.mode() == Mode::Transport && outer.encapsulation == Encapsulation::Udp {
            forebay_wire::nat::repair_checksum(&mut packet, None);
        }
        packet
    }
}

/// What stands in front of the ESP header.
struct Outer {
    /// The IP header alone, with nothing behind it: its lengths are filled in by [`packet`].
    headers: Vec<u8>,
    encapsulation: Encapsulation,
}

impl Outer {
    fn made_up() -> Vec<Outer> {
        let v4: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
        let v6: [IpAddr; 2] = ["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()];
        let mut all = Vec::new();
        for ends in [v4, v6] {
            for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
                let headers = match ends {
                    [IpAddr::V4(from), IpAddr::V4(to)] => {
                        let fixed = [0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 50, 0, 0];
                        [&fixed[..], &from.octets(), &to.octets()].concat()
                    }
                    [IpAddr::V6(from), IpAddr::V6(to)] => {
                        let fixed = [0x60, 0, 0, 0, 0, 0, 50, 64];
                        [&fixed[..], &from.octets(), &to.octets()].concat()
                    }
                    _ => unreachable!("ends of one family"),
                };
                all.push(Outer { headers, encapsulation });
            }
        }
        all
    }

    /// The published outer header of a vector, if there is one.
    fn published(vector: &Vector) -> Option<Outer> {
        let packet = vector.packet.as_ref()?;
        let (udp_len, encapsulation) =
            if vector.udp { (8, Encapsulation::Udp) } else { (0, Encapsulation::None) };
        let headers = packet[..packet.len() - vector.esp.len() - udp_len].to_vec();
        Some(Outer { headers: self::packet(&headers, 50, &[]), encapsulation })
    }

    /// The IP packet with `esp` in it.
    fn around(&self, esp: &[u8]) -> Vec<u8> {
        match self.encapsulation {
            Encapsulation::None => packet(&self.headers, protocol::ESP, esp),
            Encapsulation::Udp => {
                // Another source port, as behind a NAT; no checksum (RFC 3948 2.1).
                let [high, low] = (8 + esp.len() as u16).to_be_bytes();
                let datagram = [&[0x30, 0x39, 0x11, 0x94, high, low, 0, 0], esp].concat();
                packet(&self.headers, protocol::UDP, &datagram)
            }
        }
    }
}

/// The IP packet of `header`, with lengths, protocol and checksum set, and `payload`.
fn packet(header: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = [header, payload].concat();
    let len = packet.len() as u16;
    if header[0] >> 4 == 6 {
        packet[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        // The last of the header's next headers, behind its extension headers.
        let (mut named_at, mut at) = (6, 40);
        while at < header.len() {
            (named_at, at) = (at, at + 8 + 8 * usize::from(header[at + 1]));
        }
        packet[named_at] = protocol;
        return packet;
    }
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[9] = protocol;
    packet[10..12].fill(0);
    let mut sum: u32 =
        packet[..header.len()].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
    packet
}

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half a byte in {hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn keys(suite: Suite, key: &[u8], auth_key: &[u8]) -> SaKeys {
    let secret = |bytes: &[u8]| SecretBytes::new(bytes.to_vec());
    SaKeys::new(suite, &secret(key), &secret(auth_key)).expect("keys of the suite's lengths")
}

fn id(row: &Value) -> &str {
    row["id"].as_str().expect("an id")
}

/// The suite of a vector, or why this version has none for it.
fn suite_of(row: &Value) -> Result<Suite, String> {
    let field = |name: &str| row[name].as_str().unwrap_or_default();
    if field("proto") != "esp" {
        return Err(format!("{}, not ESP", field("proto").to_uppercase()));
    }
    let bits = field("enc_key").len() * 4;
    let cipher = match field("enc") {
        combined @ ("aes-gcm" | "aes-ccm") => {
            format!("aes{bits}{}{}", &combined[4..], row["icv_len"].as_u64().unwrap_or(16))
        }
        "aes-gmac" => format!("aes{bits}gmac"),
        "chacha20-poly1305" => "chacha20poly1305".to_owned(),
        "aes-cbc" => format!("aes{bits}"),
        "aes-ctr" => format!("aes{bits}ctr"),
        "3des-cbc" => "3des".to_owned(),
        "null" => "null".to_owned(),
        other => return Err(format!("no cipher of ours, {other}")),
    };
    let proposal = match field("auth") {
        "none" => cipher,
        "hmac-md5-96" => format!("{cipher}-md5"),
        "hmac-sha1-96" => format!("{cipher}-sha1"),
        "hmac-sha2-256-128" => format!("{cipher}-sha256"),
        "hmac-sha2-384-192" => format!("{cipher}-sha384"),
        "hmac-sha2-512-256" => format!("{cipher}-sha512"),
        "aes-xcbc-96" => format!("{cipher}-aesxcbc"),
        other => return Err(format!("no integrity algorithm of ours, {other}")),
    };
    Ok(proposal.parse().unwrap_or_else(|error| panic!("{}: {error}", id(row))))
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

fn vectors() -> Vec<Vector> {
    rows(COPY).iter().filter_map(|row| suite_of(row).ok().map(|suite| Vector::read(row, suite))).collect()
}

/// Past the test harness, which keeps the words of tests that pass to itself.
fn say(line: &str) {
    _ = writeln!(std::io::stderr(), "esp_vectors: {line}");
}

/// The number that the cipher turns into `iv`: what stands in the IV field before sealing. It is
/// had by deciphering `iv` as a text of one block with an IV of zeros, under an ICV over something else.
fn chain_start(rig: &mut Rig, iv: &[u8]) -> Vec<u8> {
    let mut packet = Packet::with_capacity(256);
    assert!(packet.fill(&[&[0; 32], iv, &[0; 64]].concat()));
    let at = packet.offset() as u32;
    let nothing = Span { start: at, len: 0 };
    let auth = Span { start: at, len: 16 };
    let seal = JobSpec { session: SEAL, cipher: nothing, iv: at + 16, auth, icv: at + 48, seq_hi: None };
    let sealed = rig.run(vec![Job::new(packet, seal, 0)]).remove(0);
    let open = JobSpec { session: OPEN, cipher: Span { start: at + 32, len: iv.len() as u32 }, ..seal };
    let opened = rig.run(vec![Job::new(sealed.packet, open, 0)]).remove(0);
    assert_eq!(opened.verdict, Verdict::Done);
    opened.packet.bytes()[32..32 + iv.len()].to_vec()
}

#[test]
fn what_is_run_and_what_is_not() {
    let (mut run, mut passed_over) =
        (BTreeMap::<String, usize>::new(), BTreeMap::<String, Vec<String>>::new());
    for row in rows(COPY) {
        match suite_of(&row) {
            Ok(_) => *run.entry(row["source"].as_str().unwrap_or("?").to_owned()).or_default() += 1,
            Err(reason) => passed_over.entry(reason).or_default().push(id(&row).to_owned()),
        }
    }
    for (source, count) in &run {
        say(&format!("{count} of {source}"));
    }
    for (reason, ids) in &passed_over {
        say(&format!("{} not run, {reason}: {}", ids.len(), ids.join(", ")));
    }
    let named = vectors().into_iter().filter(|vector| vector.spi() == 0);
    say(&format!("as bare jobs only, SPI 0: {}", named.map(|v| v.id).collect::<Vec<_>>().join(", ")));
    assert_eq!(run.values().sum::<usize>(), 76);
    assert_eq!(passed_over.values().map(Vec::len).sum::<usize>(), 19);
}

#[test]
fn the_copy_is_what_was_published() {
    let Ok(text) = std::fs::read_to_string(ORIGINAL) else {
        say(&format!("not compared with {ORIGINAL}, which is not here"));
        return;
    };
    let (copied, published) = (rows(COPY), rows(&text));
    assert_eq!(copied.len(), published.len());
    for (copy, row) in copied.iter().zip(&published) {
        for (field, value) in copy.as_object().expect("an object") {
            assert_eq!(value, &row[field], "{}: {field}", id(row));
        }
        // Nothing that would be run was left out.
        assert_eq!(suite_of(copy), suite_of(row), "{}", id(row));
    }
}

#[test]
fn each_vector_as_a_bare_job_both_ways_on_every_backend() {
    for backend in backends() {
        let (mut opened, mut sealed) = (0, 0);
        for vector in vectors() {
            let mut rig = Rig::new(backend);
            rig.open(SEAL, &vector.keys, Direction::Seal);
            rig.open(OPEN, &vector.keys, Direction::Open);
            let context = format!("{} ({}) on {}", vector.id, vector.suite, backend.name);

            let job = rig.run(vec![vector.job(Direction::Open, &vector.esp)]).remove(0);
            assert_eq!(job.verdict == Verdict::Done, vector.accepted, "{context}: {:?}", job.verdict);
            if !vector.accepted {
                assert_eq!(job.verdict, Verdict::AuthFailed, "{context}");
                continue;
            }
            let text = &job.packet.buffer()[job.spec.cipher.range()];
            let trailer = Trailer::parse(text).expect("a trailer");
            let payload_len = text.len() - trailer.len();
            assert_eq!(trailer.next_header, vector.next_header, "{context}");
            assert_eq!(&text[payload_len..text.len() - 2], vector.padding, "{context}");
            assert_eq!(&text[..payload_len], vector.payload, "{context}");
            opened += 1;

            let mut plain = vector.plain_esp();
            if vector.suite.is_chained() {
                let start = chain_start(&mut rig, vector.iv());
                plain[8..8 + start.len()].copy_from_slice(&start);
            }
            let job = rig.run(vec![vector.job(Direction::Seal, &plain)]).remove(0);
            assert_eq!(job.verdict, Verdict::Done, "{context}");
            assert_eq!(job.packet.bytes(), vector.esp, "{context}: sealed");
            sealed += 1;
        }
        say(&format!("{}: {opened} opened and {sealed} sealed as bare jobs", backend.name));
        assert_eq!((opened, sealed), (75, 75), "{}", backend.name);
    }
}

#[test]
fn each_vector_through_the_whole_path_both_ways_on_every_backend() {
    for backend in backends() {
        let (mut published, mut made_up, mut sealed) = (0, 0, 0);
        for vector in vectors().iter().filter(|vector| vector.spi() != 0 && vector.accepted) {
            let given = Outer::published(vector);
            published += usize::from(given.is_some());
            for outer in given.iter().chain(&Outer::made_up()) {
                let context = format!("{} ({}) on {}", vector.id, vector.suite, backend.name);
                let mut gateway = Gateway::new(backend);
                let session = gateway.add_inbound(vector.sa(outer, Direction::Open), &vector.keys);
                gateway.sad.continue_after(session, vector.esn_hi.map_or(0, |_| vector.sequence() - 1));

                let packet = outer.around(&vector.esp);
                let received = gateway.pass(Direction::Open, &packet);
                if vector.next_header == protocol::NONE {
                    assert_eq!(received, Err(DropReason::InDummy), "{context}");
                } else {
                    assert_eq!(received.as_ref(), Ok(&vector.received(outer)), "{context}");
                }
                if let (Some(plain), Mode::Transport, true) = (
                    &vector.plain_packet,
                    vector.mode(),
                    given.as_ref().is_some_and(|g| std::ptr::eq(g, outer)),
                ) {
                    let plain = vector.repaired(outer, plain.clone());
                    assert_eq!(received.as_ref(), Ok(&plain), "{context}: the packet before ESP");
                }
                let again = gateway.pass(Direction::Open, &packet);
                assert_eq!(again, Err(DropReason::InStateSeqError), "{context}: the same packet again");
                made_up += 1;
                sealed += usize::from(seals_alike(vector, outer, &mut gateway, &context));
            }
        }
        made_up -= published;
        say(&format!(
            "{}: {published} opened in the published outer header and {made_up} in one made up, {sealed} sealed",
            backend.name
        ));
        // All but the 23 without outer header and two with SPI 0; four outer headers for each of 73.
        assert_eq!((published, made_up), (50, 73 * 4), "{}", backend.name);
        // The 48 without a chain, in four outer headers each; and 27 of them in the published one.
        assert_eq!(sealed, 48 * 4 + 27, "{}", backend.name);
    }
}

/// Whether the suite's IV can be chosen (no chain) or there is none; seals what was opened and compares the ESP packet.
fn seals_alike(vector: &Vector, outer: &Outer, gateway: &mut Gateway, context: &str) -> bool {
    if vector.suite.is_chained() {
        return false;
    }
    let iv = vector.iv().try_into().map_or(1, u64::from_be_bytes);
    let ivs = IvRange::share(iv, iv + 1, 0, 1);
    let session = gateway.add_outbound(vector.sa(outer, Direction::Seal), &vector.keys, ivs);
    gateway.sad.continue_after(session, vector.sequence() - 1);
    let sealed = gateway.pass(Direction::Seal, &vector.opened(outer)).expect(context);
    let esp = &sealed[sealed.len() - vector.esp.len()..];
    assert_eq!(esp, vector.esp, "{context}: sealed");
    true
}

/// The sources have one forged packet, so each byte of the others is forged here.
#[test]
fn one_flipped_bit_in_any_byte_is_refused_on_every_backend() {
    for backend in backends() {
        let mut refused = 0;
        let covered = |vector: &&Vector| vector.spi() != 0 && vector.suite.icv_len() > 0;
        for vector in vectors().iter().filter(covered) {
            let outer = &Outer::made_up()[0];
            let mut gateway = Gateway::new(backend);
            let session = gateway.add_inbound(vector.sa(outer, Direction::Open), &vector.keys);
            gateway.sad.continue_after(session, vector.esn_hi.map_or(0, |_| vector.sequence() - 1));
            for at in 0..vector.esp.len() {
                let context = format!("{} ({}) on {}, byte {at}", vector.id, vector.suite, backend.name);
                let mut forged = vector.esp.clone();
                forged[at] ^= 1 << (at % 8);
                let reason = gateway.pass(Direction::Open, &outer.around(&forged)).expect_err(&context);
                match at {
                    0..4 => assert_eq!(reason, DropReason::InNoStates, "{context}"),
                    // Another number may be one that no ESN has, or zero.
                    4..8 => assert!(
                        matches!(reason, DropReason::InStateProtoError | DropReason::InStateSeqError),
                        "{context}: {reason}"
                    ),
                    _ => assert_eq!(reason, DropReason::InStateProtoError, "{context}"),
                }
                refused += 1;
            }
            if !vector.accepted {
                let reason = gateway.pass(Direction::Open, &outer.around(&vector.esp));
                assert_eq!(reason, Err(DropReason::InStateProtoError), "{}", vector.id);
                continue;
            }
            // Nothing that was refused has moved the window.
            let genuine = gateway.pass(Direction::Open, &outer.around(&vector.esp));
            let dummy = vector.next_header == protocol::NONE;
            assert!(genuine.is_ok() || (dummy && genuine == Err(DropReason::InDummy)), "{}", vector.id);
        }
        say(&format!("{}: {refused} forged packets refused", backend.name));
        assert!(refused >= 6_000, "{}: {refused}", backend.name);
    }
}

#[test]
fn spi_zero_is_no_sa() {
    let vector = vectors().into_iter().find(|vector| vector.spi() == 0).expect("two of them");
    let mut gateway = Gateway::new(backends()[0]);
    let outer = &Outer::made_up()[0];
    assert_eq!(gateway.pass(Direction::Open, &outer.around(&vector.esp)), Err(DropReason::InNoStates));
}
