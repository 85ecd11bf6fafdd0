//! ESP, with the real cipher in the middle.

use std::net::IpAddr;

use forebay_crypto::{
    Cipher, Direction, Job, JobSpec, Layout, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite,
    Verdict,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_ipsec::{DropReason, Encapsulation, IvRange, Mode, Prepared, SaConfig, Sad, Spi};
use forebay_time::Time;
use forebay_wire::Ip;

const SPI: u32 = 0x1001;
const SUITES: [&str; 4] = ["aes128gcm16", "aes128-sha256", "aes256ctr-sha512", "chacha20poly1305"];
/// Longest input that is tried, in bytes; the longest packets have their own tests.
const INPUT_MAX: usize = 4_096;

/// An SA of the kind that `kind` says by its bits, and a processor with its keys: session 0 of the
/// gateway's direction, session 1 of the other.
struct Gateway {
    sad: Sad,
    processor: AwsLc,
    suite: Suite,
    config: SaConfig,
}

impl Gateway {
    fn new(kind: u8, direction: Direction) -> Gateway {
        let bit = |n: u8| kind >> n & 1 == 1;
        let suite: Suite = SUITES[usize::from(kind >> 4 & 3)].parse().expect("a proposal");
        let [near, far]: [IpAddr; 2] = match bit(2) {
            false => ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()],
            true => ["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()],
        };
        let config = SaConfig {
            mode: if bit(0) { Mode::Transport } else { Mode::Tunnel },
            esn: bit(3),
            encapsulation: if bit(1) { Encapsulation::Udp } else { Encapsulation::None },
            ..SaConfig::new("fuzzed", Spi::new(SPI).expect("not zero"), suite, near, far)
        };
        let mut sad = Sad::default();
        let session = match direction {
            Direction::Seal => sad.add_outbound(config.clone(), IvRange::for_throwaway_key()),
            Direction::Open => sad.add_inbound(config.clone()),
        };
        assert_eq!(session, Ok(SessionId(0)));
        let key = |len: usize| SecretBytes::new((0..len).map(|at| at as u8).collect());
        let keys = SaKeys::new(
            suite,
            &key(suite.cipher_key_len() + suite.salt_len()),
            &key(suite.integrity_key_len()),
        );
        let keys = keys.expect("keys of the suite's lengths");
        let mut processor = AwsLc::new();
        let other = if direction == Direction::Seal { Direction::Open } else { Direction::Seal };
        for (session, direction) in [(0, direction), (1, other)] {
            processor.open_session(SessionId(session), &keys, direction).expect("a session");
        }
        Gateway { sad, processor, suite, config }
    }

    fn crypt(&mut self, packet: Packet, spec: JobSpec) -> Job {
        let (mut jobs, mut done) = (vec![Job::new(packet, spec, 0)], Vec::new());
        self.processor.submit(Time::ZERO, &mut jobs);
        self.processor.poll(Time::ZERO, &mut done);
        done.pop().expect("done at once")
    }

    fn pass(&mut self, direction: Direction, bytes: &[u8]) -> Result<Vec<u8>, DropReason> {
        let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
        assert_eq!(self.sad.prepare(direction, &mut packet, &mut spec)?, Prepared::Job, "there are no policies");
        let size = packet.buffer().len();
        assert!(Layout::check(&spec, self.suite, direction, size).is_some(), "{spec:?}");
        let mut job = self.crypt(packet, spec);
        assert_ne!(job.verdict, Verdict::Failed, "{spec:?}");
        self.sad.complete(&mut job.packet, &job.spec, job.verdict)?;
        let delivered = job.packet.bytes();
        assert_eq!(Ip::parse(delivered).map(|ip| ip.bytes().len()), Ok(delivered.len()));
        Ok(delivered.to_vec())
    }

    /// What a peer that has the keys may send: any text, trailer included, under a good ICV.
    fn sealed_text(&mut self, sequence: u32, text: &[u8]) -> Vec<u8> {
        let suite = self.suite;
        let text = &text[..text.len() - text.len() % suite.align()];
        let (text_at, icv_at) = (8 + suite.iv_len(), 8 + suite.iv_len() + text.len());
        let mut esp = vec![0; icv_at + suite.icv_len()];
        esp[..4].copy_from_slice(&SPI.to_be_bytes());
        esp[4..8].copy_from_slice(&sequence.to_be_bytes());
        esp[8] = 1;
        esp[text_at..icv_at].copy_from_slice(text);
        let packet = buffer(&esp);
        let span =
            |from: usize, to: usize| Span { start: (packet.offset() + from) as u32, len: (to - from) as u32 };
        let chained = matches!(suite.cipher(), Cipher::AesCbc(_));
        let spec = JobSpec {
            session: SessionId(1),
            cipher: span(if chained { 8 } else { text_at }, icv_at),
            iv: span(8, 8).start,
            auth: span(0, if suite.is_aead() { 8 } else { icv_at }),
            icv: span(icv_at, icv_at).start,
            seq_hi: self.config.esn.then_some(0),
        };
        let job = self.crypt(packet, spec);
        assert_eq!(job.verdict, Verdict::Done);
        self.around(job.packet.bytes())
    }

    /// The outer headers, from the far end to the near one.
    fn around(&self, esp: &[u8]) -> Vec<u8> {
        let (mut payload, mut protocol) = (vec![], 50);
        if self.config.encapsulation == Encapsulation::Udp {
            protocol = 17;
            let [high, low] = (8 + esp.len() as u16).to_be_bytes();
            payload.extend_from_slice(&[0x11, 0x94, 0x11, 0x94, high, low, 0, 0]);
        }
        payload.extend_from_slice(esp);
        let mut packet = match (self.config.remote, self.config.local) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let [high, low] = (20 + payload.len() as u16).to_be_bytes();
                let fixed = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
                [&fixed[..], &from.octets(), &to.octets()].concat()
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let [high, low] = (payload.len() as u16).to_be_bytes();
                [&[0x60, 0, 0, 0, high, low, protocol, 64][..], &from.octets(), &to.octets()].concat()
            }
            _ => unreachable!("ends of one family"),
        };
        packet.extend_from_slice(&payload);
        packet
    }
}

fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(bytes.len());
    assert!(packet.fill(bytes));
    packet
}

/// Opens what `data` says behind its first byte, which says for what SA: as a packet off the wire, or as the
/// text of a peer who has the keys and means no good.
pub fn esp_open(data: &[u8]) {
    let [kind, data @ ..] = data else { return };
    if data.len() > INPUT_MAX {
        return;
    }
    let mut gateway = Gateway::new(*kind, Direction::Open);
    if kind >> 7 == 0 {
        assert!(gateway.pass(Direction::Open, data).is_err(), "nobody forges an ICV by chance");
        return;
    }
    let sealed = gateway.sealed_text(1, data);
    if gateway.pass(Direction::Open, &sealed).is_ok() {
        let again = gateway.pass(Direction::Open, &sealed);
        assert_eq!(again, Err(DropReason::InStateSeqError), "a replay");
    }
    assert!(gateway.pass(Direction::Open, data).is_err());
}

/// Seals the packet behind the first byte of `data`, which says with what SA; what was sealed must open to
/// the packet.
pub fn esp_seal(data: &[u8]) {
    let [kind, data @ ..] = data else { return };
    if data.len() > INPUT_MAX {
        return;
    }
    let mut sealer = Gateway::new(*kind, Direction::Seal);
    let Ok(sealed) = sealer.pass(Direction::Seal, data) else { return };
    let mut opener = Gateway::new(*kind, Direction::Open);
    let mut config = opener.config.clone();
    (config.local, config.remote) = (config.remote, config.local);
    opener.sad = Sad::default();
    opener.sad.add_inbound(config).expect("settings without fault");
    let plain = Ip::parse(data).expect("only IP packets are sealed").bytes();
    let opened = match opener.pass(Direction::Open, &sealed) {
        // A packet with next header 59 is as good as a dummy packet.
        Err(DropReason::InDummy) => return,
        other => other.expect("what was sealed opens"),
    };
    assert_eq!(opened.len(), plain.len());
    // Transport mode writes the checksum of IPv4 headers anew.
    let checksum = if plain[0] >> 4 == 4 { 10..12 } else { 0..0 };
    for (at, (opened, plain)) in opened.iter().zip(plain).enumerate() {
        assert!(opened == plain || checksum.contains(&at), "byte {at}");
    }
}
