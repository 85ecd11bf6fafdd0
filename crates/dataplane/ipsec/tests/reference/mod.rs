//! A gateway whose processor is RustCrypto: slow, plain, and by other people.

#![allow(dead_code, reason = "each test uses its part")]

use std::net::IpAddr;

use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm, aes::Aes192};
use forebay_crypto::{
    Cipher, Direction, Integrity, Job, JobSpec, Layout, Packet, SaKeys, SecretBytes, SessionId, Suite,
    Verdict,
};
use forebay_ipsec::{DropReason, Ipsec, IvRange, Mode, Next, Path, Prepared, Protocol, SaConfig, Spi, Stop};
use hmac::{Hmac, Mac};

/// SAs and their keys; does every job at once.
#[derive(Default)]
pub struct Gateway {
    pub sad: Ipsec,
    keys: Vec<SaKeys>,
    directions: Vec<Direction>,
}

/// A key of the suite's length that is all `fill`.
pub fn keys(suite: Suite, fill: u8) -> SaKeys {
    let secret = |len| SecretBytes::new(vec![fill; len]);
    let key = secret(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &secret(suite.integrity_key_len())).expect("keys of the suite's lengths")
}

/// An SA of AH with no selectors.
pub fn ah(proposal: &str, mode: Mode, spi: u32, [local, remote]: [&str; 2]) -> SaConfig {
    SaConfig { protocol: Protocol::Ah, mode, ..esp(proposal, mode, spi, [local, remote]) }
}

/// An SA of ESP with no selectors.
pub fn esp(proposal: &str, mode: Mode, spi: u32, [local, remote]: [&str; 2]) -> SaConfig {
    let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let suite = proposal.parse().expect("a proposal");
    let spi = Spi::new(spi).expect("not zero");
    SaConfig { mode, ..SaConfig::new("under test", spi, suite, address(local), address(remote)) }
}

/// The same SA as its other end has it.
pub fn other_end(config: &SaConfig) -> SaConfig {
    let config = config.clone();
    SaConfig {
        local: config.remote,
        remote: config.local,
        local_ts: config.remote_ts,
        remote_ts: config.local_ts,
        ..config
    }
}

impl Gateway {
    pub fn seals(&mut self, config: SaConfig, keys: SaKeys) -> SessionId {
        self.seals_from(config, keys, IvRange::for_throwaway_key())
    }

    pub fn seals_from(&mut self, config: SaConfig, keys: SaKeys, iv: IvRange) -> SessionId {
        let session = self.sad.add_outbound(config, iv);
        self.keys.push(keys);
        self.directions.push(Direction::Seal);
        session.expect("settings without fault")
    }

    pub fn opens(&mut self, config: SaConfig, keys: SaKeys) -> SessionId {
        let session = self.sad.add_inbound(config).expect("settings without fault");
        self.keys.push(keys);
        self.directions.push(Direction::Open);
        session
    }

    /// Takes a packet through all its SAs.
    pub fn pass(&mut self, direction: Direction, bytes: &[u8]) -> Result<Vec<u8>, DropReason> {
        let mut packet = buffer(bytes);
        self.pass_on(direction, &mut packet).map(|()| packet.bytes().to_vec())
    }

    pub fn pass_on(&mut self, direction: Direction, packet: &mut Packet) -> Result<(), DropReason> {
        let (mut spec, mut path) = (JobSpec::default(), Path::default());
        let before = packet.bytes().to_vec();
        let prepared = self.sad.prepare(direction, packet, &mut spec).inspect_err(|reason| {
            assert!(before.starts_with(packet.bytes()), "{reason} harms the packet");
        })?;
        if prepared == Prepared::Bypass {
            return Ok(());
        }
        loop {
            let verdict = self.work(&spec, packet);
            match self.sad.complete_on(&path, packet, &spec, verdict)? {
                Next::Deliver | Next::Unpack => return Ok(()),
                Next::Again => self.sad.again(&mut path, packet, &mut spec)?,
            }
        }
    }

    /// Opens packets as a burst, which are prepared and completed in runs where they are alike.
    pub fn pass_burst(&mut self, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, DropReason>> {
        let mut jobs: Vec<Job> =
            packets.iter().map(|bytes| Job::new(buffer(bytes), JobSpec::default(), 0)).collect();
        self.sad.prepare_burst(Direction::Open, &mut jobs).expect("all have jobs");
        for job in &mut jobs {
            job.verdict = self.work(&job.spec, &mut job.packet);
        }
        let (mut from, mut failed) = (0, Vec::new());
        while let Err((place, stop)) = self.sad.complete_burst(&mut jobs[from..]) {
            let at = from + place;
            match stop {
                Stop::Again => {
                    let job = &mut jobs[at];
                    let result = self.pass_rest(Path::default(), &mut job.packet, &mut job.spec);
                    failed.extend(result.err().map(|reason| (at, reason)));
                }
                Stop::Drop(reason) => failed.push((at, reason)),
                other => panic!("{other:?}"),
            }
            from = at + 1;
        }
        let mut results: Vec<_> = jobs.iter().map(|job| Ok(job.packet.bytes().to_vec())).collect();
        failed.into_iter().for_each(|(at, reason)| results[at] = Err(reason));
        results
    }

    /// Takes a packet on that goes through another SA next.
    fn pass_rest(
        &mut self,
        mut path: Path,
        packet: &mut Packet,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        loop {
            self.sad.again(&mut path, packet, spec)?;
            let verdict = self.work(spec, packet);
            match self.sad.complete_on(&path, packet, spec, verdict)? {
                Next::Deliver | Next::Unpack => return Ok(()),
                Next::Again => {}
            }
        }
    }

    /// Does a job on a copy, as a lane would, and puts the copy in the packet's place.
    pub fn work(&self, spec: &JobSpec, packet: &mut Packet) -> Verdict {
        let mut copy = Packet::with_capacity(packet.capacity());
        assert!(copy.copy_from(packet));
        let index = spec.session.0 as usize;
        let (keys, direction) = (&self.keys[index], self.directions[index]);
        let size = copy.buffer().len();
        assert!(Layout::check(spec, keys.suite(), direction, size).is_some(), "{} {spec:?}", keys.suite());
        let verdict = work(keys, direction, spec, &mut copy);
        *packet = copy;
        verdict
    }
}

/// A buffer with these bytes, and room for what SAs add.
pub fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(bytes.len().max(2_048));
    assert!(packet.fill(bytes));
    packet
}

fn work(keys: &SaKeys, direction: Direction, spec: &JobSpec, packet: &mut Packet) -> Verdict {
    let suite = keys.suite();
    let buffer = packet.buffer_mut();
    let iv = buffer[spec.iv as usize..][..suite.iv_len()].to_vec();
    let auth = &buffer[spec.auth.range()];
    let aad = match spec.seq_hi {
        Some(high) if suite.is_aead() => [&auth[..4], &high.to_be_bytes(), &auth[4..]].concat(),
        Some(high) => [auth, &high.to_be_bytes()].concat(),
        None => auth.to_vec(),
    };
    let nonce = [keys.salt(), &iv].concat();
    let place = spec.icv as usize..spec.icv as usize + suite.icv_len();
    let icv = buffer[place.clone()].to_vec();
    let text = &mut buffer[spec.cipher.range()];
    let tag = match (suite.cipher(), direction) {
        (Cipher::Null, _) => mac(keys, &aad)[..suite.icv_len()].to_vec(),
        (_, Direction::Seal) => gcm(keys.cipher(), &nonce, &aad, text, None).expect("short text"),
        (_, Direction::Open) => match gcm(keys.cipher(), &nonce, &aad, text, Some(&icv)) {
            Some(tag) => tag,
            None => return Verdict::AuthFailed,
        },
    };
    if direction == Direction::Seal {
        buffer[place].copy_from_slice(&tag);
    } else if tag != icv {
        return Verdict::AuthFailed;
    }
    Verdict::Done
}

fn mac(keys: &SaKeys, message: &[u8]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
        let mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes every key");
        mac.chain_update(message).finalize().into_bytes().to_vec()
    }
    match keys.suite().integrity() {
        Integrity::HmacSha1 => run::<Hmac<sha1::Sha1>>(keys.integrity(), message),
        Integrity::HmacSha256 => run::<Hmac<sha2::Sha256>>(keys.integrity(), message),
        Integrity::HmacSha384 => run::<Hmac<sha2::Sha384>>(keys.integrity(), message),
        Integrity::HmacSha512 => run::<Hmac<sha2::Sha512>>(keys.integrity(), message),
        other => unreachable!("{other:?} is not in the tests"),
    }
}

/// Seals without a tag, opens with one; what stands in `tag` is as long as the suite's ICV, here 16.
fn gcm(key: &[u8], nonce: &[u8], aad: &[u8], text: &mut [u8], tag: Option<&[u8]>) -> Option<Vec<u8>> {
    fn run<A: KeyInit + AeadInPlace>(
        key: &[u8],
        nonce: &[u8],
        aad: &[u8],
        text: &mut [u8],
        tag: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let aead = A::new_from_slice(key).expect("a key of the suite's length");
        match tag {
            None => aead.encrypt_in_place_detached(nonce.into(), aad, text).ok().map(|tag| tag.to_vec()),
            Some(tag) => aead
                .decrypt_in_place_detached(nonce.into(), aad, text, tag.into())
                .ok()
                .map(|()| tag.to_vec()),
        }
    }
    match key.len() {
        16 => run::<Aes128Gcm>(key, nonce, aad, text, tag),
        24 => run::<AesGcm<Aes192, U12>>(key, nonce, aad, text, tag),
        _ => run::<Aes256Gcm>(key, nonce, aad, text, tag),
    }
}
