//! One SA's keys, expanded, and what is done with them to a packet.

use forebay_crypto::{Cipher, Direction, Integrity, JobSpec, Layout, SaKeys, Suite, Verdict};

use crate::ffi::{Aead, BLOCK, Cbc, CbcMac, Ccm, Ctr, DIGEST_MAX, Gmac, Hmac, SeqHi, TripleDes, equal};

/// A key session.
pub struct Session {
    suite: Suite,
    direction: Direction,
    /// Begin of the nonce, whose secrecy nothing rests on; unused where the suite has none.
    salt: [u8; 4],
    keys: Keys,
}

enum Keys {
    Combined(Aead),
    Ccm(Ccm),
    Gmac(Gmac),
    Separate(Text, Mac),
}

/// A cipher that leaves integrity to another algorithm.
enum Text {
    Cbc(Cbc),
    Ctr(Ctr),
    TripleDes(TripleDes),
    Null,
}

/// An integrity algorithm of its own.
enum Mac {
    None,
    Hmac(Hmac),
    Cbc(CbcMac),
}

impl Session {
    /// Expands `keys`; `None` if AWS-LC refuses them.
    pub fn new(keys: &SaKeys, direction: Direction) -> Option<Session> {
        let (suite, key) = (keys.suite(), keys.cipher());
        let expanded = match suite.cipher() {
            Cipher::AesCcm(_) => Keys::Ccm(Ccm::new(key, suite.icv_len(), direction)?),
            Cipher::AesGmac(_) => Keys::Gmac(Gmac::new(key)?),
            cipher => match Text::new(cipher, key, direction)? {
                Some(text) => Keys::Separate(text, Mac::new(suite.integrity(), keys.integrity())?),
                None => Keys::Combined(Aead::new(cipher, key, suite.icv_len())?),
            },
        };
        let mut salt = [0; 4];
        salt[..keys.salt().len()].copy_from_slice(keys.salt());
        Some(Session { suite, direction, salt, keys: expanded })
    }

    /// Does what `spec` says to `buffer`, in place.
    #[inline]
    pub fn run(&mut self, spec: &JobSpec, buffer: &mut [u8]) -> Verdict {
        // ESP's order first: nearly every job has it, and the long way costs a packet of 64 bytes dearly.
        if let Keys::Combined(aead) = &self.keys
            && let Some((nonce, parts)) = in_esp_order(aead, self.salt, spec, buffer)
        {
            let seq_hi = spec.seq_hi.map(u32::to_be_bytes);
            return combined(aead, self.direction, &nonce, parts, seq_hi).unwrap_or(Verdict::Failed);
        }
        self.run_in_any_order(spec, buffer)
    }

    #[inline(never)]
    fn run_in_any_order(&mut self, spec: &JobSpec, buffer: &mut [u8]) -> Verdict {
        let Some(at) = Layout::check(spec, self.suite, self.direction, buffer.len()) else {
            return Verdict::Failed;
        };
        let seq_hi = spec.seq_hi.map(u32::to_be_bytes);
        let verdict = match (&mut self.keys, self.direction) {
            (Keys::Combined(aead), direction) => {
                let nonce = nonce(self.salt, &at, buffer);
                let parts = buffer.get_disjoint_mut([at.auth.clone(), at.cipher.clone(), at.icv.clone()]);
                parts.ok().and_then(|parts| combined(aead, direction, &nonce, parts, seq_hi))
            }
            (Keys::Ccm(ccm), direction) => with_ccm(ccm, direction, self.salt, &at, seq_hi, buffer),
            (Keys::Gmac(gmac), direction) => with_gmac(gmac, direction, self.salt, &at, seq_hi, buffer),
            (Keys::Separate(text, mac), Direction::Seal) => {
                seal_separate(text, mac, self.salt, &at, seq_hi, buffer)
            }
            (Keys::Separate(text, mac), Direction::Open) => {
                open_separate(text, mac, self.salt, &at, seq_hi, buffer)
            }
        };
        verdict.unwrap_or(Verdict::Failed)
    }
}

impl Text {
    /// Expands `key`; the inner `None` is for an AEAD.
    fn new(cipher: Cipher, key: &[u8], direction: Direction) -> Option<Option<Text>> {
        Some(Some(match (cipher, direction) {
            (Cipher::AesCbc(_), Direction::Seal) => Text::Cbc(Cbc::encryptor(key)?),
            (Cipher::AesCbc(_), Direction::Open) => Text::Cbc(Cbc::decryptor(key)?),
            (Cipher::AesCtr(_), _) => Text::Ctr(Ctr::new(key)?),
            (Cipher::TripleDesCbc, _) => Text::TripleDes(TripleDes::new(key, direction)?),
            (Cipher::Null, _) => Text::Null,
            _ => return Some(None),
        }))
    }

    /// The IV field is the chain's first block, so the chain itself starts from zero.
    fn seal(&mut self, salt: [u8; 4], at: &Layout, buffer: &mut [u8]) -> Option<()> {
        let done = match self {
            Text::Cbc(cbc) => cbc.apply([0; BLOCK], &mut buffer[at.cipher.clone()]),
            Text::TripleDes(des) => des.apply(&[0; TripleDes::BLOCK], &mut buffer[at.cipher.clone()]),
            Text::Ctr(ctr) => apply_ctr(ctr, salt, at, buffer),
            Text::Null => true,
        };
        done.then_some(())
    }

    fn open(&mut self, salt: [u8; 4], at: &Layout, buffer: &mut [u8]) -> Option<()> {
        let done = match self {
            Text::Cbc(cbc) => {
                let iv = *buffer[at.iv.clone()].first_chunk()?;
                cbc.apply(iv, &mut buffer[at.cipher.clone()])
            }
            Text::TripleDes(des) => {
                let iv = *buffer[at.iv.clone()].first_chunk()?;
                des.apply(&iv, &mut buffer[at.cipher.clone()])
            }
            Text::Ctr(ctr) => apply_ctr(ctr, salt, at, buffer),
            Text::Null => true,
        };
        done.then_some(())
    }
}

impl Mac {
    fn new(integrity: Integrity, key: &[u8]) -> Option<Mac> {
        match integrity {
            Integrity::None => Some(Mac::None),
            Integrity::AesXcbc => CbcMac::xcbc(key).map(Mac::Cbc),
            Integrity::AesCmac => CbcMac::cmac(key).map(Mac::Cbc),
            _ => Hmac::new(integrity, key).map(Mac::Hmac),
        }
    }

    /// What the ICV of `message` is the begin of.
    #[inline]
    fn digest(&mut self, message: &[u8], seq_hi: SeqHi) -> Option<[u8; DIGEST_MAX]> {
        match self {
            Mac::None => Some([0; DIGEST_MAX]),
            Mac::Hmac(hmac) => hmac.digest(message, seq_hi),
            Mac::Cbc(mac) => mac.digest(message, seq_hi),
        }
    }
}

/// Nonce, and AAD, text and ICV, if they have the order of every ESP packet: AAD, IV, text, ICV.
#[inline]
fn in_esp_order<'a>(
    aead: &Aead,
    salt: [u8; 4],
    spec: &JobSpec,
    buffer: &'a mut [u8],
) -> Option<([u8; 12], [&'a mut [u8]; 3])> {
    if !Layout::aead_in_esp_order(spec, Aead::IV, aead.icv_len(), buffer.len()) {
        return None;
    }
    let (front, rest) = buffer.split_at_mut_checked(spec.cipher.start as usize)?;
    let (text, rest) = rest.split_at_mut_checked(spec.cipher.len as usize)?;
    let icv_at = (spec.icv as usize).checked_sub(front.len() + text.len())?;
    let icv = rest.get_mut(icv_at..)?.get_mut(..aead.icv_len())?;
    let (front, iv) = front.split_at_mut_checked(spec.iv as usize)?;
    let aad = front.get_mut(spec.auth.range())?;
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&salt);
    *nonce.last_chunk_mut()? = *iv.first_chunk::<{ Aead::IV }>()?;
    Some((nonce, [aad, text, icv]))
}

#[inline]
fn combined(
    aead: &Aead,
    direction: Direction,
    nonce: &[u8; 12],
    [aad, text, icv]: [&mut [u8]; 3],
    seq_hi: SeqHi,
) -> Option<Verdict> {
    let mut apply = |aad: &[u8]| match direction {
        Direction::Seal => aead.seal(nonce, aad, text, icv).then_some(Verdict::Done),
        Direction::Open => Some(verdict(aead.open(nonce, aad, text, icv))),
    };
    match seq_hi {
        None => apply(aad),
        Some(seq_hi) => with_esn(aad, seq_hi, apply),
    }
}

fn with_ccm(
    ccm: &mut Ccm,
    direction: Direction,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    // Three bytes of salt, then the packet's IV (RFC 4309 4).
    let mut nonce = [0; Ccm::NONCE];
    nonce[..3].copy_from_slice(&salt[..3]);
    nonce[3..].copy_from_slice(&buffer[at.iv.clone()]);
    let parts = buffer.get_disjoint_mut([at.auth.clone(), at.cipher.clone(), at.icv.clone()]);
    let [aad, text, icv] = parts.ok()?;
    let mut apply = |aad: &[u8]| match direction {
        Direction::Seal => ccm.seal(&nonce, aad, text, icv).then_some(Verdict::Done),
        Direction::Open => Some(verdict(ccm.open(&nonce, aad, text, icv))),
    };
    match seq_hi {
        None => apply(aad),
        Some(seq_hi) => with_esn(aad, seq_hi, apply),
    }
}

fn with_gmac(
    gmac: &mut Gmac,
    direction: Direction,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    let nonce = nonce(salt, at, buffer);
    let covered = &buffer[at.auth.clone()];
    let tag = match &seq_hi {
        None => gmac.tag(&nonce, [covered, &[], &[]]),
        // The number's high half stands behind the SPI (RFC 4543 3.3).
        Some(seq_hi) => {
            let (spi, rest) = covered.split_at_checked(4)?;
            gmac.tag(&nonce, [spi, seq_hi, rest])
        }
    }?;
    settle(direction, &tag, &mut buffer[at.icv.clone()])
}

/// Salt, then the packet's IV (RFC 4106 4, RFC 4543 3.2, RFC 7634 2).
#[inline]
fn nonce(salt: [u8; 4], at: &Layout, buffer: &[u8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&salt);
    nonce[4..].copy_from_slice(&buffer[at.iv.clone()]);
    nonce
}

#[inline]
fn verdict(matches: bool) -> Verdict {
    if matches { Verdict::Done } else { Verdict::AuthFailed }
}

/// Writes the begin of `digest` as the ICV, or holds it against the one that is there.
#[inline]
fn settle(direction: Direction, digest: &[u8], icv: &mut [u8]) -> Option<Verdict> {
    let digest = digest.get(..icv.len())?;
    match direction {
        Direction::Open => Some(verdict(equal(digest, icv))),
        Direction::Seal => {
            icv.copy_from_slice(digest);
            Some(Verdict::Done)
        }
    }
}

/// Calls `apply` with the AAD in which the number's high half stands behind the SPI (RFC 4106 5).
#[inline]
fn with_esn<T>(aad: &[u8], seq_hi: [u8; 4], apply: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let (spi, rest) = aad.split_at_checked(4)?;
    let mut whole = [0; Layout::ESN_AAD_MAX + JobSpec::SEQ_HI_LEN];
    whole[..4].copy_from_slice(spi);
    whole[4..8].copy_from_slice(&seq_hi);
    whole.get_mut(8..8 + rest.len())?.copy_from_slice(rest);
    apply(&whole[..8 + rest.len()])
}

/// Encrypt, then compute the ICV over the ciphertext (RFC 4303 3.3.2).
fn seal_separate(
    text: &mut Text,
    mac: &mut Mac,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    text.seal(salt, at, buffer)?;
    let digest = mac.digest(&buffer[at.auth.clone()], seq_hi)?;
    settle(Direction::Seal, &digest, &mut buffer[at.icv.clone()])
}

/// Verify the ICV, and decrypt only what it vouches for (RFC 4303 3.4.4.1).
fn open_separate(
    text: &mut Text,
    mac: &mut Mac,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    let digest = mac.digest(&buffer[at.auth.clone()], seq_hi)?;
    let verdict = settle(Direction::Open, &digest, &mut buffer[at.icv.clone()])?;
    if verdict == Verdict::Done {
        text.open(salt, at, buffer)?;
    }
    Some(verdict)
}

/// Nonce, IV, and a block counter that starts from one (RFC 3686 4).
fn apply_ctr(ctr: &Ctr, salt: [u8; 4], at: &Layout, buffer: &mut [u8]) -> bool {
    let mut counter = [0; BLOCK];
    counter[..4].copy_from_slice(&salt);
    counter[4..12].copy_from_slice(&buffer[at.iv.clone()]);
    counter[15] = 1;
    ctr.apply(counter, &mut buffer[at.cipher.clone()]);
    true
}
