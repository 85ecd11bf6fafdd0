//! Vector cryptography (RISC-V Cryptography Extensions volume II 1.0, 3): every group of four elements is a block.

use super::decode::{Crypto, crypto};
use super::{Shape, Vector, aligned, scaled};
use crate::scalar_crypto::{INVERSE_SBOX, MIX, ROUND_CONSTANTS, SBOX, UNMIX, mixed_column, substituted};

/// Elements of a group (EGS).
const GROUP: usize = 4;
/// log2 of the bytes of elements of 32 bits.
const E32: u32 = 2;
/// log2 of the bytes of elements of 64 bits.
const E64: u32 = 3;

type Block = [u8; 16];

impl Vector {
    /// An instruction of OP-VE; `None` if it is illegal with this `vtype`, `vl` and `vstart`.
    pub(super) fn crypto(&mut self, word: u32, shape: Shape) -> Option<u64> {
        use Crypto::*;
        let (operation, _) = crypto(word)?;
        let (vd, vs1, vs2) =
            ((word >> 7 & 31) as usize, (word >> 15 & 31) as usize, (word >> 20 & 31) as usize);
        let Shape { sew, lmul, .. } = shape;
        let sha = matches!(operation, Schedule | CompressHigh | CompressLow);
        let width = sew == E32 || sha && sew == E64 && self.sha512;
        // A group of elements has to fit into a group of registers (1.4.1).
        let fits = GROUP << sew <= scaled(self.vlenb, lmul);
        if self.vstart != 0 || !width || !fits || !self.vl.is_multiple_of(GROUP) || !aligned(vd, lmul) {
            return None;
        }
        let one_key = matches!(
            operation,
            EncryptFinal(true) | EncryptMiddle(true) | DecryptFinal(true) | DecryptMiddle(true) | RoundZero
        );
        let has_vs1 = sha || operation == Ghash;
        let legal = match one_key {
            // The key is one group of elements, outside of the destination.
            true => vd >> lmul.max(0) != vs2 >> lmul.max(0),
            false => aligned(vs2, lmul) && (!has_vs1 || aligned(vs1, lmul)),
        };
        if !legal || sha && (vd == vs1 || vd == vs2) {
            return None;
        }
        for group in 0..self.vl / GROUP {
            match (sha, sew) {
                (true, E32) => {
                    let [d, two, one] = [vd, vs2, vs1].map(|register| self.words(register, group));
                    let made = match operation {
                        Schedule => sha256::schedule(d, two, one),
                        CompressHigh => sha256::compress(d, two, [one[2], one[3]]),
                        _ => sha256::compress(d, two, [one[0], one[1]]),
                    };
                    let at = GROUP * group;
                    (0..GROUP).for_each(|i| self.set_element(vd, at + i, E32, made[i].into()));
                }
                (true, _) => {
                    let at = GROUP * group;
                    let [d, two, one] = [vd, vs2, vs1]
                        .map(|register| [0, 1, 2, 3].map(|i| self.element(register, at + i, E64)));
                    let made = match operation {
                        Schedule => sha512::schedule(d, two, one),
                        CompressHigh => sha512::compress(d, two, [one[2], one[3]]),
                        _ => sha512::compress(d, two, [one[0], one[1]]),
                    };
                    (0..GROUP).for_each(|i| self.set_element(vd, at + i, E64, made[i]));
                }
                _ => {
                    let key = self.block(vs2, if one_key { 0 } else { group });
                    let (state, third) = (self.block(vd, group), self.block(vs1, group));
                    let from = vd * self.vlenb + 16 * group;
                    let made = made(operation, state, key, third, vs1 as u32);
                    self.registers[from..from + 16].copy_from_slice(&made);
                }
            }
        }
        Some(0)
    }

    /// A block, or zeros where a register that is none of the operands would lie outside.
    fn block(&self, register: usize, group: usize) -> Block {
        let from = register * self.vlenb + 16 * group;
        self.registers.get(from..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    fn words(&self, register: usize, group: usize) -> [u32; 4] {
        [0, 1, 2, 3].map(|i| self.element(register, GROUP * group + i, E32) as u32)
    }
}

/// The new block of vd, from its old one and those of vs2 and vs1, whose number is the round of a key expansion.
fn made(operation: Crypto, state: Block, key: Block, third: Block, round: u32) -> Block {
    match operation {
        Crypto::EncryptFinal(_) => add(encrypted(state), key),
        Crypto::EncryptMiddle(_) => add(columns(encrypted(state), MIX), key),
        Crypto::DecryptFinal(_) => add(decrypted(state), key),
        Crypto::DecryptMiddle(_) => columns(add(decrypted(state), key), UNMIX),
        Crypto::RoundZero => add(state, key),
        Crypto::KeyForward1 => key_forward1(key, round),
        Crypto::KeyForward2 => key_forward2(state, key, round),
        Crypto::Multiply => product(state, key),
        _ => product(add(state, third), key),
    }
}

fn add(a: Block, b: Block) -> Block {
    (u128::from_le_bytes(a) ^ u128::from_le_bytes(b)).to_le_bytes()
}

/// SubBytes and ShiftRows (FIPS 197 5.1.1, 5.1.2).
fn encrypted(state: Block) -> Block {
    std::array::from_fn(|at| SBOX[usize::from(state[(at + 4 * (at % 4)) % 16])])
}

/// InvShiftRows and InvSubBytes (FIPS 197 5.3.1, 5.3.2).
fn decrypted(state: Block) -> Block {
    std::array::from_fn(|at| INVERSE_SBOX[usize::from(state[(at + 12 * (at % 4)) % 16])])
}

/// MixColumns or its inverse (FIPS 197 5.1.3, 5.3.3).
fn columns(state: Block, factors: [u8; 4]) -> Block {
    std::array::from_fn(|at| mixed_column(&state[at & 12..], at & 3, factors))
}

fn words(block: Block) -> [u32; 4] {
    let value = u128::from_le_bytes(block);
    [0, 32, 64, 96].map(|by| (value >> by) as u32)
}

/// Four words of a key expansion from those `before` and the first of them: each adds the one to its left.
fn expanded(before: [u32; 4], mut last: u32) -> Block {
    let made = before.map(|word| {
        last ^= word;
        last
    });
    std::array::from_fn(|at| made[at / 4].to_le_bytes()[at % 4])
}

/// `vaeskf1.vi`: the next round key of AES-128. A round outside 1 to 10 has bit 3 of its number inverted.
fn key_forward1(key: Block, round: u32) -> Block {
    let round = round & 15;
    let round = if (1..=10).contains(&round) { round } else { round ^ 8 };
    let key = words(key);
    expanded(key, substituted(key[3].rotate_right(8)) ^ u32::from(ROUND_CONSTANTS[round as usize - 1]))
}

/// `vaeskf2.vi`: the next round key of AES-256. A round outside 2 to 14 has bit 3 of its number inverted.
fn key_forward2(before: Block, key: Block, round: u32) -> Block {
    let round = round & 15;
    let round = if (2..=14).contains(&round) { round } else { round ^ 8 };
    let last = words(key)[3];
    let last = match round % 2 {
        0 => substituted(last.rotate_right(8)) ^ u32::from(ROUND_CONSTANTS[round as usize / 2 - 1]),
        _ => substituted(last),
    };
    expanded(words(before), last)
}

/// The product in GHASH's field (NIST SP 800-38D 6.3), whose bits stand the other way round in each byte.
fn product(a: Block, b: Block) -> Block {
    let turned = |block: Block| u128::from_le_bytes(block.map(u8::reverse_bits));
    let (a, mut b) = (turned(a), turned(b));
    let mut sum = 0;
    for bit in 0..128 {
        sum ^= b & 0_u128.wrapping_sub(a >> bit & 1);
        b = b << 1 ^ 0x87 & 0_u128.wrapping_sub(b >> 127);
    }
    sum.to_le_bytes().map(u8::reverse_bits)
}

/// SHA-2 on words of one width (FIPS 180-4 4.1.2, 4.1.3, 6.2.2, 6.4.2): two rounds, and four words of the schedule.
macro_rules! sha2 {
    ($name:ident, $word:ident, $big0:expr, $big1:expr, $small0:expr, $small1:expr) => {
        mod $name {
            fn big(x: $word, by: [u32; 3]) -> $word {
                x.rotate_right(by[0]) ^ x.rotate_right(by[1]) ^ x.rotate_right(by[2])
            }

            fn small(x: $word, by: [u32; 3]) -> $word {
                x.rotate_right(by[0]) ^ x.rotate_right(by[1]) ^ x >> by[2]
            }

            /// `W[16..20]` of `W[0..4]` in `d`, `W[4]`, `W[9..12]` in `two`, and `W[12..16]` in `one`.
            pub(super) fn schedule(d: [$word; 4], two: [$word; 4], one: [$word; 4]) -> [$word; 4] {
                let next = |w14, w9: $word, w1, w0| {
                    small(w14, $small1).wrapping_add(w9).wrapping_add(small(w1, $small0)).wrapping_add(w0)
                };
                let w16 = next(one[2], two[1], d[1], d[0]);
                let w17 = next(one[3], two[2], d[2], d[1]);
                let w18 = next(w16, two[3], d[3], d[2]);
                let w19 = next(w17, one[0], two[0], d[3]);
                [w16, w17, w18, w19]
            }

            /// Two rounds on {f, e, b, a} in `two` and {h, g, d, c} in `d`.
            pub(super) fn compress(d: [$word; 4], two: [$word; 4], inputs: [$word; 2]) -> [$word; 4] {
                let ([mut h, mut g, d, mut c], [mut f, mut e, mut b, mut a]) = (d, two);
                let mut fourth = d;
                for input in inputs {
                    let choice = (e & f) ^ (!e & g);
                    let majority = (a & b) ^ (a & c) ^ (b & c);
                    let t1 = h.wrapping_add(big(e, $big1)).wrapping_add(choice).wrapping_add(input);
                    let t2 = big(a, $big0).wrapping_add(majority);
                    (h, g, f, e) = (g, f, e, fourth.wrapping_add(t1));
                    (fourth, c, b, a) = (c, b, a, t1.wrapping_add(t2));
                }
                [f, e, b, a]
            }
        }
    };
}

sha2!(sha256, u32, [2, 13, 22], [6, 11, 25], [7, 18, 3], [17, 19, 10]);
sha2!(sha512, u64, [28, 34, 39], [14, 18, 41], [1, 8, 7], [19, 61, 6]);
