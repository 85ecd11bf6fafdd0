//! What the scalar cryptography instructions compute (RISC-V Cryptography Extensions volume I, version 1.0.1).

/// AES S-box (FIPS 197 5.1.1), made from its definition.
pub const SBOX: [u8; 256] = sboxes().0;
/// Its inverse (FIPS 197 5.3.2).
pub const INVERSE_SBOX: [u8; 256] = sboxes().1;

/// Inverse in GF(2^8), then the affine map. 3 generates the field: p runs through the powers of 3, q through
/// those of its inverse.
const fn sboxes() -> ([u8; 256], [u8; 256]) {
    let (mut forward, mut inverse) = ([0; 256], [0; 256]);
    let (mut p, mut q) = (1_u8, 1_u8);
    loop {
        p ^= double(p);
        // q / 3 = q * 0xf6.
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 9;
        }
        let x = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4) ^ 0x63;
        forward[p as usize] = x;
        inverse[x as usize] = p;
        if p == 1 {
            break;
        }
    }
    forward[0] = 0x63;
    inverse[0x63] = 0;
    (forward, inverse)
}

/// Times x in GF(2^8).
pub(crate) const fn double(x: u8) -> u8 {
    (x << 1) ^ if x & 0x80 != 0 { 0x1b } else { 0 }
}

/// Times a small number.
const fn times(x: u8, factor: u8) -> u8 {
    let (two, mut sum) = (double(x), 0);
    let (four, eight) = (double(two), double(double(two)));
    if factor & 1 != 0 {
        sum ^= x;
    }
    if factor & 2 != 0 {
        sum ^= two;
    }
    if factor & 4 != 0 {
        sum ^= four;
    }
    if factor & 8 != 0 {
        sum ^= eight;
    }
    sum
}

/// What one byte gives to its column through S-box and MixColumns, row 0 in the low byte.
const fn columns(sbox: &[u8; 256], factors: [u8; 4]) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let s = sbox[i];
        table[i] = u32::from_le_bytes([
            times(s, factors[0]),
            times(s, factors[1]),
            times(s, factors[2]),
            times(s, factors[3]),
        ]);
        i += 1;
    }
    table
}

static ENCRYPT: [u32; 256] = columns(&SBOX, [2, 1, 1, 3]);
static DECRYPT: [u32; 256] = columns(&INVERSE_SBOX, [14, 9, 13, 11]);

fn byte(word: u32, select: i32) -> usize {
    (word >> (8 * (select & 3)) & 0xff) as usize
}

fn placed(value: u32, select: i32) -> u32 {
    value.rotate_left(8 * (select & 3) as u32)
}

/// S-box of a byte of `b` into `a`.
pub(crate) fn aes32esi(a: u32, b: u32, select: i32) -> u32 {
    a ^ placed(SBOX[byte(b, select)].into(), select)
}

/// S-box and MixColumns.
pub(crate) fn aes32esmi(a: u32, b: u32, select: i32) -> u32 {
    a ^ placed(ENCRYPT[byte(b, select)], select)
}

/// Inverse S-box.
pub(crate) fn aes32dsi(a: u32, b: u32, select: i32) -> u32 {
    a ^ placed(INVERSE_SBOX[byte(b, select)].into(), select)
}

/// Inverse S-box and inverse MixColumns.
pub(crate) fn aes32dsmi(a: u32, b: u32, select: i32) -> u32 {
    a ^ placed(DECRYPT[byte(b, select)], select)
}

pub(crate) fn sha256sum0(x: u32) -> u32 {
    x.rotate_right(2) ^ x.rotate_right(13) ^ x.rotate_right(22)
}

pub(crate) fn sha256sum1(x: u32) -> u32 {
    x.rotate_right(6) ^ x.rotate_right(11) ^ x.rotate_right(25)
}

pub(crate) fn sha256sig0(x: u32) -> u32 {
    x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3)
}

pub(crate) fn sha256sig1(x: u32) -> u32 {
    x.rotate_right(17) ^ x.rotate_right(19) ^ (x >> 10)
}

pub(crate) fn sha512sig0h(a: u32, b: u32) -> u32 {
    (a >> 1) ^ (a >> 7) ^ (a >> 8) ^ (b << 31) ^ (b << 24)
}

pub(crate) fn sha512sig0l(a: u32, b: u32) -> u32 {
    sha512sig0h(a, b) ^ (b << 25)
}

pub(crate) fn sha512sig1h(a: u32, b: u32) -> u32 {
    (a << 3) ^ (a >> 6) ^ (a >> 19) ^ (b >> 29) ^ (b << 13)
}

pub(crate) fn sha512sig1l(a: u32, b: u32) -> u32 {
    sha512sig1h(a, b) ^ (b << 26)
}

pub(crate) fn sha512sum0r(a: u32, b: u32) -> u32 {
    (a << 25) ^ (a << 30) ^ (a >> 28) ^ (b >> 7) ^ (b >> 2) ^ (b << 4)
}

pub(crate) fn sha512sum1r(a: u32, b: u32) -> u32 {
    (a << 23) ^ (a >> 14) ^ (a >> 18) ^ (b >> 9) ^ (b << 18) ^ (b << 14)
}

/// The 64 bits of a carry-less product.
pub(crate) fn clmul(a: u32, b: u32) -> u64 {
    (0..32).filter(|i| b >> i & 1 != 0).fold(0, |sum, i| sum ^ (u64::from(a) << i))
}

/// The 128 bits of a carry-less product.
pub(crate) fn clmul_double(a: u64, b: u64) -> u128 {
    (0..64).filter(|i| b >> i & 1 != 0).fold(0, |sum, i| sum ^ (u128::from(a) << i))
}

/// Nibbles (`bits` 4) or bytes (8) of `a`, of `width` bits, chosen by those of `b`.
pub(crate) fn xperm(a: u64, b: u64, bits: u32, width: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let places = u64::from(width / bits);
    (0..width / bits).fold(0, |sum, at| {
        let chosen = (b >> (at * bits)) & mask;
        let value = if chosen < places { (a >> (chosen as u32 * bits)) & mask } else { 0 };
        sum | (value << (at * bits))
    })
}

/// Bits of the low half to even places, of the high half to odd ones.
pub(crate) fn zip(x: u32) -> u32 {
    (0..16).fold(0, |sum, i| sum | ((x >> i & 1) << (2 * i)) | ((x >> (i + 16) & 1) << (2 * i + 1)))
}

/// The inverse of [`zip`].
pub(crate) fn unzip(x: u32) -> u32 {
    (0..16).fold(0, |sum, i| sum | ((x >> (2 * i) & 1) << i) | ((x >> (2 * i + 1) & 1) << (i + 16)))
}

/// The two columns of an AES state that RV64's instructions make: bytes of both sources after ShiftRows, row by row.
fn shifted(a: u64, b: u64, places: [usize; 8]) -> [u8; 8] {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    places.map(|at| if at < 8 { a[at] } else { b[at - 8] })
}

/// ShiftRows and its inverse (FIPS 197 5.1.2, 5.3.1) of the first two columns.
const FORWARD: [usize; 8] = [0, 5, 10, 15, 4, 9, 14, 3];
const BACKWARD: [usize; 8] = [0, 13, 10, 7, 4, 1, 14, 11];

/// A byte of a column through MixColumns or its inverse, whose matrix begins with the row `factors`.
pub(crate) fn mixed_column(column: &[u8], row: usize, factors: [u8; 4]) -> u8 {
    (0..4).fold(0, |sum, at| sum ^ times(column[at], factors[(at + 4 - row) & 3]))
}

/// Two columns.
fn mixed(bytes: [u8; 8], factors: [u8; 4]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| mixed_column(&bytes[at & 4..], at & 3, factors)))
}

/// The first rows of MixColumns' matrix and of its inverse's (FIPS 197 5.1.3, 5.3.3).
pub(crate) const MIX: [u8; 4] = [2, 3, 1, 1];
pub(crate) const UNMIX: [u8; 4] = [14, 11, 13, 9];

/// Half of a last round of encryption, without the key.
pub(crate) fn aes64es(a: u64, b: u64) -> u64 {
    u64::from_le_bytes(shifted(a, b, FORWARD).map(|byte| SBOX[usize::from(byte)]))
}

/// Half of a middle round of encryption, without the key.
pub(crate) fn aes64esm(a: u64, b: u64) -> u64 {
    mixed(aes64es(a, b).to_le_bytes(), MIX)
}

/// Half of a last round of decryption, without the key.
pub(crate) fn aes64ds(a: u64, b: u64) -> u64 {
    u64::from_le_bytes(shifted(a, b, BACKWARD).map(|byte| INVERSE_SBOX[usize::from(byte)]))
}

/// Half of a middle round of decryption, without the key.
pub(crate) fn aes64dsm(a: u64, b: u64) -> u64 {
    mixed(aes64ds(a, b).to_le_bytes(), UNMIX)
}

/// The inverse MixColumns of two words of a round key.
pub(crate) fn aes64im(a: u64) -> u64 {
    mixed(a.to_le_bytes(), UNMIX)
}

/// Constants of the key expansion by round (FIPS 197 5.2).
pub(crate) const ROUND_CONSTANTS: [u8; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// SubWord.
pub(crate) fn substituted(word: u32) -> u32 {
    u32::from_le_bytes(word.to_le_bytes().map(|byte| SBOX[usize::from(byte)]))
}

/// The first half of a step of the key expansion; round 10 has neither RotWord nor a constant, and those above are
/// reserved: `decode` refuses them.
pub(crate) fn aes64ks1i(a: u64, round: u32) -> u64 {
    let high = (a >> 32) as u32;
    let word = match ROUND_CONSTANTS.get(round as usize) {
        Some(&constant) => substituted(high.rotate_right(8)) ^ u32::from(constant),
        None => substituted(high),
    };
    u64::from(word) << 32 | u64::from(word)
}

/// The second half.
pub(crate) fn aes64ks2(a: u64, b: u64) -> u64 {
    let low = (a >> 32) as u32 ^ b as u32;
    u64::from(low ^ (b >> 32) as u32) << 32 | u64::from(low)
}

pub(crate) fn sha512sig0(x: u64) -> u64 {
    x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7)
}

pub(crate) fn sha512sig1(x: u64) -> u64 {
    x.rotate_right(19) ^ x.rotate_right(61) ^ (x >> 6)
}

pub(crate) fn sha512sum0(x: u64) -> u64 {
    x.rotate_right(28) ^ x.rotate_right(34) ^ x.rotate_right(39)
}

pub(crate) fn sha512sum1(x: u64) -> u64 {
    x.rotate_right(14) ^ x.rotate_right(18) ^ x.rotate_right(41)
}
