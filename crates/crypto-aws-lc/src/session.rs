//! One SA's keys, expanded, and what is done with them to a packet.

use forebay_crypto::{Cipher, Direction, JobSpec, Layout, SaKeys, Suite, Verdict};

use crate::ffi::{Aead, BLOCK, Cbc, Ctr, Hmac, equal};

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
    Separate(Text, Hmac),
}

/// A cipher that leaves integrity to another algorithm.
enum Text {
    Cbc(Cbc),
    Ctr(Ctr),
}

impl Session {
    /// Expands `keys`; `None` if AWS-LC refuses them.
    pub fn new(keys: &SaKeys, direction: Direction) -> Option<Session> {
        let (suite, key) = (keys.suite(), keys.cipher());
        let text = match (suite.cipher(), direction) {
            (Cipher::AesCbc(_), Direction::Seal) => Some(Text::Cbc(Cbc::encryptor(key)?)),
            (Cipher::AesCbc(_), Direction::Open) => Some(Text::Cbc(Cbc::decryptor(key)?)),
            (Cipher::AesCtr(_), _) => Some(Text::Ctr(Ctr::new(key)?)),
            _ => None,
        };
        let expanded = match text {
            Some(text) => Keys::Separate(text, Hmac::new(suite.integrity(), keys.integrity())?),
            None => Keys::Combined(Aead::new(suite.cipher(), key, suite.icv_len())?),
        };
        let mut salt = [0; 4];
        salt[..keys.salt().len()].copy_from_slice(keys.salt());
        Some(Session { suite, direction, salt, keys: expanded })
    }

    /// Does what `spec` says to `buffer`, in place.
    #[inline]
    pub fn run(&mut self, spec: &JobSpec, buffer: &mut [u8]) -> Verdict {
        let Some(at) = Layout::check(spec, self.suite, self.direction, buffer.len()) else {
            return Verdict::Failed;
        };
        let seq_hi = spec.seq_hi.map(u32::to_be_bytes);
        let verdict = match (&mut self.keys, self.direction) {
            (Keys::Combined(aead), direction) => combined(aead, direction, self.salt, &at, seq_hi, buffer),
            (Keys::Separate(text, hmac), Direction::Seal) => {
                seal_separate(text, hmac, self.salt, &at, seq_hi, buffer)
            }
            (Keys::Separate(text, hmac), Direction::Open) => {
                open_separate(text, hmac, self.salt, &at, seq_hi, buffer)
            }
        };
        verdict.unwrap_or(Verdict::Failed)
    }
}

type SeqHi = Option<[u8; 4]>;

#[inline]
fn combined(
    aead: &Aead,
    direction: Direction,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    // Salt, then the packet's IV (RFC 4106 4, RFC 7634 2).
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&salt);
    nonce[4..].copy_from_slice(&buffer[at.iv.clone()]);
    let parts = buffer.get_disjoint_mut([at.auth.clone(), at.cipher.clone(), at.icv.clone()]);
    let [aad, text, icv] = parts.ok()?;
    let mut apply = |aad: &[u8]| match direction {
        Direction::Seal => aead.seal(&nonce, aad, text, icv).then_some(Verdict::Done),
        Direction::Open if aead.open(&nonce, aad, text, icv) => Some(Verdict::Done),
        Direction::Open => Some(Verdict::AuthFailed),
    };
    match seq_hi {
        None => apply(aad),
        Some(seq_hi) => with_esn(aad, seq_hi, apply),
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
    text: &Text,
    hmac: &mut Hmac,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    match text {
        // The IV field is the chain's first block, so the chain itself starts from zero.
        Text::Cbc(cbc) => cbc.apply([0; BLOCK], &mut buffer[at.cipher.clone()]).then_some(())?,
        Text::Ctr(ctr) => apply_ctr(ctr, salt, at, buffer),
    }
    let digest = hmac.digest(&buffer[at.auth.clone()], seq_hi.as_ref().map_or(&[], |h| h))?;
    buffer[at.icv.clone()].copy_from_slice(digest.get(..at.icv.len())?);
    Some(Verdict::Done)
}

/// Verify the ICV, and decrypt only what it vouches for (RFC 4303 3.4.4.1).
fn open_separate(
    text: &Text,
    hmac: &mut Hmac,
    salt: [u8; 4],
    at: &Layout,
    seq_hi: SeqHi,
    buffer: &mut [u8],
) -> Option<Verdict> {
    let digest = hmac.digest(&buffer[at.auth.clone()], seq_hi.as_ref().map_or(&[], |h| h))?;
    if !equal(digest.get(..at.icv.len())?, &buffer[at.icv.clone()]) {
        return Some(Verdict::AuthFailed);
    }
    match text {
        Text::Cbc(cbc) => {
            let mut iv = [0; BLOCK];
            iv.copy_from_slice(&buffer[at.iv.clone()]);
            cbc.apply(iv, &mut buffer[at.cipher.clone()]).then_some(())?;
        }
        Text::Ctr(ctr) => apply_ctr(ctr, salt, at, buffer),
    }
    Some(Verdict::Done)
}

/// Nonce, IV, and a block counter that starts from one (RFC 3686 4).
fn apply_ctr(ctr: &Ctr, salt: [u8; 4], at: &Layout, buffer: &mut [u8]) {
    let mut counter = [0; BLOCK];
    counter[..4].copy_from_slice(&salt);
    counter[4..12].copy_from_slice(&buffer[at.iv.clone()]);
    counter[15] = 1;
    ctr.apply(counter, &mut buffer[at.cipher.clone()]);
}
