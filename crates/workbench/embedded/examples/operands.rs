//! Writes random operands of the custom instructions and of RISC-V's scalar cryptography with what the simulator makes
//! of them, for the tests of the same instructions in Verilog (`hardware/test/instructions.cc`).
//!
//! `cargo run --release -p forebay-embedded --example operands -- COUNT SEED`
//!
//! Standard output is a sequence of records of little-endian words: the number of the instruction in the list
//! `NAMES` of that test, rs1, rs2, the selector (funct7 of a custom instruction, the byte of an `aes32*`), ten words
//! of custom registers (the sum's two, the AES state, the MD5 state), four words of memory; then rd and the ten words
//! afterwards.

use std::io::{self, BufWriter, Write};

use forebay_embedded::instructions::ipsec;
use forebay_riscv::{Core, CustomCall, Isa, Memory, Program, Silent, Stop};

/// Numbers in the order of `NAMES`.
const CUSTOM: [&str; 7] =
    ["add64", "fold64", "enc_round", "enc_last_round", "dec_round", "dec_last_round", "md5_iteration"];
/// Encodings with rd, rs1 and rs2 zero: four `aes32*`, each with four bytes, then SHA-256's and SHA-512's.
const AES32: [u32; 4] = [0x22000033, 0x26000033, 0x2a000033, 0x2e000033];
const SHA: [u32; 10] = [
    0x10001013, 0x10101013, 0x10201013, 0x10301013, 0x5c000033, 0x54000033, 0x5e000033, 0x56000033,
    0x50000033, 0x52000033,
];
const BASE: u32 = 0x8000_0000;
const DATA: u32 = BASE + 0x1000;
/// Operands that one run of the loop takes.
const CHUNK: usize = 1_000;

struct Draw(u64);

impl Draw {
    /// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. A word in eight is an extreme.
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        match z >> 60 {
            0 => 0xffff_ffff,
            1 => 1 << (z & 31),
            _ => z as u32,
        }
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Some(Ok(count)), Some(Ok(seed))) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: operands COUNT SEED");
        std::process::exit(2);
    };
    let mut draw = Draw(seed);
    let mut out = BufWriter::new(io::stdout().lock());
    custom(&mut draw, count, &mut out)?;
    for (place, &encoding) in AES32.iter().enumerate() {
        for byte in 0..4 {
            let number = (CUSTOM.len() + place) as u32;
            scalar(number, encoding | byte << 30, byte, &mut draw, count / 4, &mut out)?;
        }
    }
    for (place, &encoding) in SHA.iter().enumerate() {
        let number = (CUSTOM.len() + AES32.len() + place) as u32;
        scalar(number, encoding, 0, &mut draw, count, &mut out)?;
    }
    out.flush()
}

fn record(out: &mut impl Write, words: impl IntoIterator<Item = u32>) -> io::Result<()> {
    words.into_iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

/// The registers as ten words.
fn flat(registers: &[u64]) -> impl Iterator<Item = u32> + '_ {
    [registers[0] as u32, (registers[0] >> 32) as u32]
        .into_iter()
        .chain(registers[1..].iter().map(|&one| one as u32))
}

fn custom(draw: &mut Draw, count: u64, out: &mut impl Write) -> io::Result<()> {
    let set = ipsec();
    for (number, name) in CUSTOM.iter().enumerate() {
        let known = set.custom.definitions().iter().find(|one| one.name == *name);
        let one = known.expect("the built-in set has it");
        for _ in 0..count {
            let [rs1, rs2, high, low] = [(); 4].map(|()| draw.word());
            let selector = one.funct7.0 + draw.word() % (one.funct7.1 - one.funct7.0 + 1);
            // The sum of a packet stays far below 2^48.
            let mut registers = vec![u64::from(high & 0xffff) << 32 | u64::from(low)];
            registers.extend((0..8).map(|_| u64::from(draw.word())));
            let words = [(); 4].map(|()| draw.word());
            record(
                out,
                [number as u32, rs1, rs2, selector].into_iter().chain(flat(&registers)).chain(words),
            )?;
            let words = &words[..one.words as usize];
            let call = &mut CustomCall { rs1, rs2, selector, words, registers: &mut registers };
            let rd = one.semantics.execute(call);
            record(out, [rd].into_iter().chain(flat(&registers)))?;
        }
    }
    Ok(())
}

/// Runs a loop of the instruction over operands in memory.
fn scalar(
    number: u32,
    encoding: u32,
    selector: u32,
    draw: &mut Draw,
    count: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    // SHA-256's have a number in the place of rs2.
    let rs2 = if encoding & 0x7f == 0x13 { 0 } else { 8 << 20 };
    let program = [
        0x0002_a383,                       // lw x7, 0(x5)
        0x0042_a403,                       // lw x8, 4(x5)
        encoding | rs2 | 7 << 15 | 9 << 7, // x9
        0x0092_a423,                       // sw x9, 8(x5)
        0x00c2_8293,                       // addi x5, x5, 12
        0xfe62_96e3,                       // bne x5, x6, -20
        0x0000_0073,                       // ecall
    ];
    let mut left = count;
    while left > 0 {
        let now = left.min(CHUNK as u64) as usize;
        left -= now as u64;
        let mut memory = Memory::new(BASE, 1 << 16);
        let mut operands = vec![0; 12 * now];
        for one in operands.chunks_exact_mut(12) {
            one[..4].copy_from_slice(&draw.word().to_le_bytes());
            one[4..8].copy_from_slice(&draw.word().to_le_bytes());
        }
        let code: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.slice_mut(BASE, code.len()).expect("room").copy_from_slice(&code);
        memory.slice_mut(DATA, operands.len()).expect("room").copy_from_slice(&operands);
        let mut core = Core::new(Program::new(Isa::full(), Vec::new()), memory, BASE);
        core.set_register(5, DATA);
        core.set_register(6, DATA + 12 * now as u32);
        let stop = core.run(&mut Silent, &mut (), u64::MAX);
        assert_eq!(stop.ok(), Some(Stop::Call), "the loop ends at its ecall");
        let results = core.memory.slice_mut(DATA, operands.len()).expect("room");
        for one in results.chunks_exact(12) {
            let word = |at: usize| u32::from_le_bytes([one[at], one[at + 1], one[at + 2], one[at + 3]]);
            let given = [number, word(0), word(4), selector].into_iter();
            record(out, given.chain([0; 14]).chain([word(8)]).chain([0; 10]))?;
        }
    }
    Ok(())
}
