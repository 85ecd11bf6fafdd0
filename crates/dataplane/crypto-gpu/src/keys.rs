//! What an SA's keys become on the device: a record of 512 bytes, made here once for each session.
//!
//! All of it is computed bit by bit or byte by byte, without tables: slow, and of the same duration for every key.

use forebay_crypto::{Cipher, Integrity, SaKeys};
use zeroize::{Zeroize, Zeroizing};

/// Words of a record. See `kernels/dialect.cl`.
pub const RECORD_WORDS: usize = 128;
/// Bytes of a record.
pub const RECORD_LEN: usize = 4 * RECORD_WORDS;
const SALT: usize = 60;
const ROUNDS: usize = 61;
const POWERS: usize = 64;
/// How many powers of H there are: one for each number of blocks of a chunk.
const POWER_COUNT: usize = 16;
const INNER: usize = 64;
const OUTER: usize = 72;
/// Bytes of the longest key schedule, that of AES-256.
const SCHEDULE_MAX: usize = 15 * 16;

/// A record, wiped when it is dropped.
pub type Record = Zeroizing<[u8; RECORD_LEN]>;

/// The record of these keys.
pub fn record(keys: &SaKeys) -> Record {
    let mut words = Zeroizing::new([0_u32; RECORD_WORDS]);
    let suite = keys.suite();
    match suite.cipher() {
        Cipher::ChaCha20Poly1305 => {
            for (word, bytes) in words.iter_mut().zip(keys.cipher().chunks_exact(4)) {
                *word = little(bytes);
            }
        }
        Cipher::AesGcm(_) | Cipher::AesCbc(_) | Cipher::AesCtr(_) => {
            let schedule = Schedule::new(keys.cipher());
            schedule.planes(&mut words[..SALT]);
            words[ROUNDS] = schedule.rounds as u32;
            if matches!(suite.cipher(), Cipher::AesGcm(_)) {
                powers(schedule.encipher_zeros(), &mut words[POWERS..]);
            }
        }
        _ => {}
    }
    if !keys.salt().is_empty() {
        words[SALT] = little(keys.salt());
    }
    if suite.integrity() == Integrity::HmacSha256 {
        hmac_states(keys.integrity(), &mut words);
    }
    let mut bytes = Zeroizing::new([0; RECORD_LEN]);
    for (to, word) in bytes.chunks_exact_mut(4).zip(words.iter()) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// AES's key schedule (FIPS 197 5.2).
struct Schedule {
    bytes: Zeroizing<[u8; SCHEDULE_MAX]>,
    rounds: usize,
}

impl Schedule {
    fn new(key: &[u8]) -> Schedule {
        let (len, rounds) = (key.len(), key.len() / 4 + 6);
        let mut bytes = Zeroizing::new([0; SCHEDULE_MAX]);
        bytes[..len].copy_from_slice(key);
        let mut constant = 1;
        for at in (len..16 * (rounds + 1)).step_by(4) {
            let mut word = [bytes[at - 4], bytes[at - 3], bytes[at - 2], bytes[at - 1]];
            if at % len == 0 {
                word.rotate_left(1);
                word = word.map(substitute);
                word[0] ^= constant;
                constant = times(constant, 2);
            } else if len == 32 && at % len == 16 {
                word = word.map(substitute);
            }
            for (i, byte) in word.iter().enumerate() {
                bytes[at + i] = bytes[at + i - len] ^ byte;
            }
            word.zeroize();
        }
        Schedule { bytes, rounds }
    }

    /// The round keys as bit planes: of each round eight, 16 bits each, bit 4r + c of plane i being bit i of the byte of
    /// row r and column c.
    fn planes(&self, words: &mut [u32]) {
        for (round, key) in self.bytes.chunks_exact(16).take(self.rounds + 1).enumerate() {
            for (place, byte) in key.iter().enumerate() {
                let (row, column) = (place % 4, place / 4);
                for plane in 0..8 {
                    let bit = u32::from(byte >> plane & 1);
                    words[4 * round + plane / 2] |= bit << (4 * row + column + 16 * (plane % 2));
                }
            }
        }
    }

    /// GHASH's H (NIST SP 800-38D 7.1): what a block of zeros is enciphered to.
    fn encipher_zeros(&self) -> u128 {
        let mut state = Zeroizing::new([0_u8; 16]);
        for round in 0..=self.rounds {
            if round > 0 {
                let rows = Zeroizing::new(state.map(substitute));
                for (place, byte) in state.iter_mut().enumerate() {
                    *byte = rows[(place + 4 * (place % 4)) % 16];
                }
                if round < self.rounds {
                    state.chunks_exact_mut(4).for_each(mix_column);
                }
            }
            for (byte, key) in state.iter_mut().zip(&self.bytes[16 * round..]) {
                *byte ^= key;
            }
        }
        u128::from_be_bytes(*state)
    }
}

fn mix_column(column: &mut [u8]) {
    let old = [column[0], column[1], column[2], column[3]];
    for (row, byte) in column.iter_mut().enumerate() {
        let of = |n: usize| old[(row + n) % 4];
        *byte = times(of(0), 2) ^ times(of(1), 3) ^ of(2) ^ of(3);
    }
}

/// A product in AES's field.
fn times(a: u8, b: u8) -> u8 {
    let (mut sum, mut a) = (0, a);
    for bit in 0..8 {
        sum ^= a & (b >> bit & 1).wrapping_neg();
        a = a << 1 ^ (a >> 7).wrapping_neg() & 0x1b;
    }
    sum
}

/// AES's S-box: the inverse as the 254th power, then the affine map (FIPS 197 5.1.1).
fn substitute(x: u8) -> u8 {
    let (mut inverse, mut square) = (1, x);
    for _ in 0..7 {
        square = times(square, square);
        inverse = times(inverse, square);
    }
    let turned = |n| inverse.rotate_left(n);
    inverse ^ turned(1) ^ turned(2) ^ turned(3) ^ turned(4) ^ 0x63
}

/// H, H^2 and on, as the kernels have them.
fn powers(h: u128, words: &mut [u32]) {
    let mut power = Zeroizing::new(h);
    for words in words.chunks_exact_mut(4).take(POWER_COUNT) {
        let (high, low) = ((*power >> 64) as u64, *power as u64);
        for (word, part) in words.iter_mut().zip([high, high >> 32, low, low >> 32]) {
            *word = part as u32;
        }
        *power = ghash_times(*power, h);
    }
}

/// A product in GHASH's field (NIST SP 800-38D 6.3).
fn ghash_times(x: u128, y: u128) -> u128 {
    let (mut sum, mut v) = (0, x);
    for bit in (0..128).rev() {
        sum ^= v & (y >> bit & 1).wrapping_neg();
        v = v >> 1 ^ (v & 1).wrapping_neg() & 0xe1 << 120;
    }
    sum
}

/// SHA-256's state after each of HMAC's pads (RFC 2104 2).
fn hmac_states(key: &[u8], words: &mut [u32; RECORD_WORDS]) {
    const START: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    for (at, pad) in [(INNER, 0x36), (OUTER, 0x5c)] {
        let mut block = [pad; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        let mut state = START;
        sha2::compress256(&mut state, &[block.into()]);
        words[at..at + 8].copy_from_slice(&state);
        block.zeroize();
        state.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use forebay_crypto::SecretBytes;

    use super::*;

    #[test]
    fn the_s_box_is_that_of_the_standard() {
        // FIPS 197, figure 7.
        let some = [(0x00, 0x63), (0x01, 0x7c), (0x53, 0xed), (0x9a, 0xb8), (0xff, 0x16)];
        some.iter().for_each(|&(from, to)| assert_eq!(substitute(from), to));
        let mut all: Vec<u8> = (0..=255).map(substitute).collect();
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(i, &byte)| i == usize::from(byte)), "a permutation");
    }

    #[test]
    fn key_schedules_are_those_of_the_standard() {
        // FIPS 197 appendix A: the last word of each expansion.
        let key = |text: &str| u128::from_str_radix(text, 16).expect("hexadecimal").to_be_bytes();
        let short = key("2b7e151628aed2a6abf7158809cf4f3c");
        let schedule = Schedule::new(&short);
        assert_eq!((schedule.rounds, &schedule.bytes[172..176]), (10, &[0xb6, 0x63, 0x0c, 0xa6][..]));
        let long = [key("603deb1015ca71be2b73aef0857d7781"), key("1f352c073b6108d72d9810a30914dff4")];
        let schedule = Schedule::new(&long.concat());
        assert_eq!((schedule.rounds, &schedule.bytes[236..]), (14, &[0x70, 0x6c, 0x63, 0x1e][..]));
    }

    #[test]
    fn h_and_its_square_are_those_of_the_specification() {
        // The GCM specification of McGrew and Viega, test case 1: H of the key of zeros.
        let h = Schedule::new(&[0; 16]).encipher_zeros();
        assert_eq!(h, 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        let one = 1 << 127;
        assert_eq!(ghash_times(h, one), h);
        assert_eq!(ghash_times(ghash_times(h, h), h), ghash_times(h, ghash_times(h, h)));
    }

    #[test]
    fn a_record_has_key_salt_and_rounds_where_the_kernels_look() {
        let keys = |proposal: &str, key: Vec<u8>, auth: Vec<u8>| {
            let suite = proposal.parse().expect("a proposal");
            SaKeys::new(suite, &SecretBytes::new(key), &SecretBytes::new(auth)).expect("lengths")
        };
        let chacha = record(&keys("chacha20poly1305", (0..36).collect(), vec![]));
        assert_eq!(chacha[..32], (0..32).collect::<Vec<u8>>());
        assert_eq!(chacha[4 * SALT..4 * SALT + 4], [32, 33, 34, 35]);
        let gcm = record(&keys("aes256gcm16", (0..36).collect(), vec![]));
        assert_eq!(gcm[4 * ROUNDS], 14);
        let hmac = record(&keys("null-sha256", vec![], vec![7; 32]));
        assert!(hmac[..4 * INNER].iter().all(|&byte| byte == 0));
        assert!(hmac[4 * INNER..4 * INNER + 64].iter().any(|&byte| byte != 0));
    }
}
