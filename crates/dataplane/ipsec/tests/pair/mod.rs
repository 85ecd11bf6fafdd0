//! Two ends of one SA with a processor between them that is no cipher, but behaves like one: what is changed on
//! the way is found out, and what is not deciphered looks like nothing.

// Each test file uses a part of this.
#![allow(dead_code)]

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Suite, Verdict};
use forebay_ipsec::{DropReason, Ipsec, IvRange, Prepared, Protocol, SaConfig, Spi, Stop};

pub struct Pair {
    pub sealer: Ipsec,
    pub opener: Ipsec,
    pub suite: Suite,
    pub session: SessionId,
}

/// What is the same for both.
pub const PROTOCOLS: [Protocol; 2] = [Protocol::Esp, Protocol::Ah];

/// Makes it an SA of `protocol`: for AH with an ICV of 16 bytes.
pub fn speak(protocol: Protocol, config: &mut SaConfig) {
    config.protocol = protocol;
    if protocol == Protocol::Ah {
        config.suite = "sha256".parse().expect("a proposal");
    }
}

impl Pair {
    /// An SA over IPv4 with AES-GCM and everything else at its default, changed by `change`.
    pub fn new(change: impl FnOnce(&mut SaConfig)) -> Pair {
        let [local, remote] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().expect("an address"));
        let spi = Spi::new(0x1001).expect("not zero");
        let suite = "aes128gcm16".parse().expect("a proposal");
        let mut config = SaConfig::new("pair", spi, suite, local, remote);
        change(&mut config);
        let (mut sealer, mut opener) = (Ipsec::default(), Ipsec::default());
        let suite = config.suite;
        let session = sealer.add_outbound(config.clone(), IvRange::for_throwaway_key()).expect("no fault");
        std::mem::swap(&mut config.local, &mut config.remote);
        std::mem::swap(&mut config.local_ts, &mut config.remote_ts);
        assert_eq!(opener.add_inbound(config), Ok(session));
        Pair { sealer, opener, suite, session }
    }

    pub fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, DropReason> {
        let (mut packet, mut spec) = (buffer(plain), JobSpec::default());
        assert_eq!(self.sealer.prepare(Direction::Seal, &mut packet, &mut spec)?, Prepared::Job);
        Ok(self.finish_seal(packet, &spec))
    }

    /// What a prepared packet is once the processor and the last step have done their part.
    pub fn finish_seal(&mut self, mut packet: Packet, spec: &JobSpec) -> Vec<u8> {
        work(self.suite, Direction::Seal, &mut packet, spec);
        self.sealer.complete(&mut packet, spec, Verdict::Done).expect("sealed");
        packet.bytes().to_vec()
    }

    pub fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, DropReason> {
        let (mut packet, mut spec) = (buffer(sealed), JobSpec::default());
        assert_eq!(self.opener.prepare(Direction::Open, &mut packet, &mut spec)?, Prepared::Job);
        let verdict = work(self.suite, Direction::Open, &mut packet, &spec);
        self.opener.complete(&mut packet, &spec, verdict)?;
        Ok(packet.bytes().to_vec())
    }

    /// Opens packets as one burst; what became of each.
    pub fn open_burst(&mut self, sealed: &[Vec<u8>]) -> Vec<Result<Vec<u8>, DropReason>> {
        let mut jobs: Vec<Job> = sealed
            .iter()
            .enumerate()
            .map(|(n, bytes)| Job::new(buffer(bytes), JobSpec::default(), n as u64))
            .collect();
        let mut outcomes = vec![Err(DropReason::QueueFull); sealed.len()];
        let mut from = 0;
        while let Err((place, stop)) = self.opener.prepare_burst(Direction::Open, &mut jobs[from..]) {
            let Stop::Drop(reason) = stop else { panic!("there are no policies") };
            from += place;
            outcomes[jobs.remove(from).token as usize] = Err(reason);
        }
        for job in &mut jobs {
            job.verdict = work(self.suite, Direction::Open, &mut job.packet, &job.spec);
        }
        let mut from = 0;
        while let Err((place, stop)) = self.opener.complete_burst(&mut jobs[from..]) {
            let Stop::Drop(reason) = stop else { panic!("no SA is in another") };
            from += place;
            outcomes[jobs.remove(from).token as usize] = Err(reason);
        }
        for job in jobs {
            outcomes[job.token as usize] = Ok(job.packet.bytes().to_vec());
        }
        outcomes
    }

    /// Seals `plain` and changes what is deciphered of it, before it is enciphered: what a peer with
    /// other habits would send.
    pub fn seal_text(&mut self, plain: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let (mut packet, mut spec) = (buffer(plain), JobSpec::default());
        assert_eq!(self.sealer.prepare(Direction::Seal, &mut packet, &mut spec), Ok(Prepared::Job));
        let text_at = spec.iv as usize + self.suite.iv_len();
        let mut text = packet.buffer()[text_at..spec.icv as usize].to_vec();
        let before = text.len();
        change(&mut text);
        let icv_at = text_at + text.len();
        let icv_len = self.suite.icv_len();
        let start = packet.offset();
        packet.buffer_mut()[text_at..icv_at].copy_from_slice(&text);
        packet.set_bounds(start, icv_at + icv_len);
        let total = packet.len();
        let grown = |len: u32| (len as usize + text.len() - before) as u32;
        spec.cipher.len = grown(spec.cipher.len);
        if self.suite.covers_text() {
            spec.auth.len = grown(spec.auth.len);
        }
        spec.icv = icv_at as u32;
        set_len(packet.bytes_mut(), total);
        self.finish_seal(packet, &spec)
    }
}

/// Sets the length in an IP header; the IPv4 checksum stays unchanged, because these tests do not verify it.
pub fn set_len(packet: &mut [u8], len: usize) {
    if packet[0] >> 4 == 6 {
        packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
    } else {
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    }
}

pub fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(bytes.len().max(2_048));
    assert!(packet.fill(bytes));
    packet
}

/// Does a job: every byte is changed by its place and the IV, and the ICV is a hash of all that it covers.
pub fn work(suite: Suite, direction: Direction, packet: &mut Packet, spec: &JobSpec) -> Verdict {
    let iv_at = spec.iv as usize..spec.iv as usize + suite.iv_len();
    // In AH there is nothing to decipher, and the ICV is in front.
    let text = if spec.cipher.len == 0 { iv_at.end..iv_at.end } else { iv_at.end..spec.icv as usize };
    let icv_at = spec.icv as usize..spec.icv as usize + suite.icv_len();
    let buffer = packet.buffer_mut();
    let iv = hash(&buffer[iv_at], 1);
    let cipher = |text: &mut [u8]| {
        text.iter_mut().zip(iv..).for_each(|(byte, at)| *byte ^= (at.wrapping_mul(0x9e37_79b9) >> 13) as u8)
    };
    let icv = |buffer: &[u8]| -> Vec<u8> {
        let start = iv ^ u64::from(spec.seq_hi.map_or(7, |high| high ^ 0x5555));
        let start = hash(&buffer[spec.auth.range()], start);
        let covered = hash(&buffer[text.clone()], start);
        (0..suite.icv_len() as u64).map(|at| hash(&at.to_be_bytes(), covered) as u8).collect()
    };
    match direction {
        Direction::Seal => {
            cipher(&mut buffer[text.clone()]);
            let icv = icv(buffer);
            buffer[icv_at].copy_from_slice(&icv);
        }
        Direction::Open => {
            if buffer[icv_at] != icv(buffer) {
                return Verdict::AuthFailed;
            }
            cipher(&mut buffer[text.clone()]);
        }
    }
    Verdict::Done
}

/// FNV-1a, begun with `seed`.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x1000_0000_01b3);
    let mixed =
        bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mixed ^ mixed >> 29
}

/// An IPv4 packet from 10.1.0.1 to 10.2.0.1 with a good checksum.
pub fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut header = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    let checksum = slow_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], payload].concat()
}

/// Does `change` to an IPv4 header and gives it a good checksum again.
pub fn with_header(mut packet: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let header_len = usize::from(packet[0] & 15) * 4;
    change(&mut packet[..header_len]);
    packet[10..12].fill(0);
    let checksum = slow_checksum(&packet[..header_len]).to_be_bytes();
    packet[10..12].copy_from_slice(&checksum);
    packet
}

/// An IPv6 packet from 2001:db8:1::1 to 2001:db8:2::1.
pub fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, next_header, 64];
    for net in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
    packet.extend(payload);
    packet
}

/// The Internet checksum as RFC 1071 describes it, a word at a time.
pub fn slow_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}
