//! The custom instructions of \[E\] in Rust, one piece of code each; `data/ipsec.toml` says the same in a file.

use std::sync::Arc;

use forebay_riscv::{Custom, CustomCall, Definition, INVERSE_SBOX, SBOX, Semantics};

use super::{Cost, Datapath, Instructions};
use crate::area::Source;
use crate::hardware::module;

/// Places of the custom registers: the sum, the AES state, the MD5 state.
const ACC: usize = 0;
const AES: usize = 1;
const MD5: usize = 5;
const REGISTERS: usize = 9;
/// The round key of [`ipsec_keys`].
const KEY: usize = 9;

/// Registers, in gate equivalents counted from cells as `data/area.toml` explains.
const REGISTERS_COST: [(&str, f64); 3] = [("acc", 533.0), ("AES state", 1_066.0), ("MD5 state", 1_066.0)];

/// The synthesized module of an instruction, and how often it goes through it.
const HARDWARE: [(&str, &str, u32); 7] = [
    ("add64", "add64", 1),
    ("fold64", "fold64", 1),
    ("enc_round", "enc_dec_round-column", 4),
    ("enc_last_round", "enc_dec_round-column", 4),
    ("dec_round", "enc_dec_round-column", 4),
    ("dec_last_round", "enc_dec_round-column", 4),
    ("md5_iteration", "md5_iteration", 1),
];

/// These with what their hardware takes; a module is counted once.
fn with_costs(definitions: Vec<Definition>, registers: usize, more: &[(&str, f64)]) -> Instructions {
    let of = |name: &str| HARDWARE.into_iter().find(|(one, ..)| *one == name);
    let datapath = |one: &Definition| {
        let (_, name, steps) = of(&one.name)?;
        Some(Datapath { module: module(name)?, steps })
    };
    let datapaths: Vec<Option<Datapath>> = definitions.iter().map(datapath).collect();
    let mut costs: Vec<Cost> = REGISTERS_COST
        .iter()
        .chain(more)
        .map(|(name, gates)| Cost::new(name, *gates, Source::Counted))
        .collect();
    let mut counted: Vec<&str> = Vec::new();
    for (one, path) in definitions.iter().zip(&datapaths) {
        if let Some(Datapath { module, .. }) =
            path.filter(|path| !counted.contains(&path.module.name.as_str()))
        {
            counted.push(&module.name);
            costs.push(Cost::new(&one.name, module.gates, Source::Synthesized));
        }
    }
    let custom = Custom::new(definitions, registers).expect("their encodings do not clash");
    Instructions { custom, costs, datapaths }
}

/// ADD64, FOLD64, ENC_ROUND, DEC_ROUND and MD5_ITERATION, and what moves words into and out of their registers.
pub fn ipsec() -> Instructions {
    with_costs(definitions(), REGISTERS, &[])
}

/// The same with rounds as \[E\] III.C.2 defines them: the round key is a custom register too, which an instruction of
/// its own fills. `enc_round` and `dec_round` have other encodings than those of [`ipsec`].
pub fn ipsec_keys() -> Instructions {
    let is_round = |one: &Definition| one.words > 0;
    let mut all = definitions();
    for one in all.iter_mut().filter(|one| is_round(one)) {
        (one.funct3, one.words) = (5, 0);
        let reads_memory = Arc::clone(&one.semantics);
        one.semantics = Arc::new(move |call: &mut CustomCall<'_>| {
            let key = [0, 1, 2, 3].map(|at| call.registers[KEY + at] as u32);
            let CustomCall { rs1, rs2, selector, .. } = *call;
            let registers = &mut *call.registers;
            reads_memory.execute(&mut CustomCall { rs1, rs2, selector, words: &key, registers })
        });
    }
    let put_key: Arc<dyn Semantics> = Arc::new(put::<KEY>);
    let name = "aes_key_put".to_owned();
    let place = (0, 3);
    all.push(Definition {
        name,
        opcode: 0x0b,
        funct3: 4,
        funct7: place,
        latency: 1,
        words: 0,
        semantics: put_key,
    });
    with_costs(all, REGISTERS + 4, &[("AES round key", 1_066.0)])
}

fn definitions() -> Vec<Definition> {
    let one = |name: &str, opcode, funct3, funct7, semantics: Arc<dyn Semantics>| Definition {
        name: name.to_owned(),
        opcode,
        funct3,
        funct7,
        latency: 1,
        words: 0,
        semantics,
    };
    // [E] III.C.2: the state is processed in four cycles.
    let round = |name, kind, semantics| Definition {
        latency: 4,
        words: 4,
        ..one(name, 0x0b, 3, (kind, kind), semantics)
    };
    vec![
        one("add64", 0x0b, 0, (0, 0), Arc::new(add64)),
        one("fold64", 0x0b, 0, (1, 1), Arc::new(fold64)),
        one("aes_put", 0x0b, 1, (0, 3), Arc::new(put::<AES>)),
        one("aes_get", 0x0b, 2, (0, 3), Arc::new(get::<AES>)),
        round("enc_round", 0, Arc::new(encipher::<true>)),
        round("enc_last_round", 1, Arc::new(encipher::<false>)),
        round("dec_round", 2, Arc::new(decipher::<true>)),
        round("dec_last_round", 3, Arc::new(decipher::<false>)),
        one("md5_iteration", 0x2b, 0, (0, 63), Arc::new(md5_iteration)),
        one("md5_put", 0x2b, 1, (0, 3), Arc::new(put::<MD5>)),
        one("md5_get", 0x2b, 2, (0, 3), Arc::new(get::<MD5>)),
    ]
}

fn put<const FIRST: usize>(call: &mut CustomCall<'_>) -> u32 {
    call.registers[FIRST + (call.selector & 3) as usize] = call.rs1.into();
    0
}

fn get<const FIRST: usize>(call: &mut CustomCall<'_>) -> u32 {
    call.registers[FIRST + (call.selector & 3) as usize] as u32
}

/// The four halves of both sources are added up.
fn add64(call: &mut CustomCall<'_>) -> u32 {
    let halves = |word: u32| u64::from(word & 0xffff) + u64::from(word >> 16);
    call.registers[ACC] = call.registers[ACC].wrapping_add(halves(call.rs1) + halves(call.rs2));
    0
}

/// The sum in 16 bits, carries added in again (RFC 1071 2).
fn fold64(call: &mut CustomCall<'_>) -> u32 {
    let mut sum = std::mem::take(&mut call.registers[ACC]);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

type State = [[u8; 4]; 4];

fn state(call: &CustomCall<'_>) -> State {
    [0, 1, 2, 3].map(|column| (call.registers[AES + column] as u32).to_le_bytes())
}

fn keep(call: &mut CustomCall<'_>, state: State) {
    for (column, bytes) in state.into_iter().enumerate() {
        let key = call.words[column];
        call.registers[AES + column] = (u32::from_le_bytes(bytes) ^ key).into();
    }
}

/// SubBytes and ShiftRows (FIPS 197 5.1.1, 5.1.2), MixColumns (5.1.3), AddRoundKey.
fn encipher<const MIX: bool>(call: &mut CustomCall<'_>) -> u32 {
    let s = state(call);
    let shifted: State =
        [0, 1, 2, 3].map(|column| [0, 1, 2, 3].map(|row| SBOX[usize::from(s[(column + row) % 4][row])]));
    keep(call, if MIX { shifted.map(|column| mixed(column, [2, 3, 1, 1])) } else { shifted });
    0
}

/// The equivalent inverse cipher's round (FIPS 197 5.3.5).
fn decipher<const MIX: bool>(call: &mut CustomCall<'_>) -> u32 {
    let s = state(call);
    let shifted: State = [0, 1, 2, 3]
        .map(|column| [0, 1, 2, 3].map(|row| INVERSE_SBOX[usize::from(s[(column + 4 - row) % 4][row])]));
    keep(call, if MIX { shifted.map(|column| mixed(column, [14, 11, 13, 9])) } else { shifted });
    0
}

/// A column times a circulant matrix, given by its first row.
fn mixed(column: [u8; 4], factors: [u8; 4]) -> [u8; 4] {
    [0, 1, 2, 3].map(|row| (0..4).fold(0, |sum, at| sum ^ product(column[at], factors[(at + 4 - row) % 4])))
}

/// In GF(2^8), by a factor of four bits.
fn product(x: u8, factor: u8) -> u8 {
    let double = |x: u8| (x << 1) ^ if x & 0x80 != 0 { 0x1b } else { 0 };
    let powers = [x, double(x), double(double(x)), double(double(double(x)))];
    (0..4).filter(|bit| factor >> bit & 1 != 0).fold(0, |sum, bit| sum ^ powers[bit])
}

/// Shifts of the four rounds (RFC 1321 3.4).
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// A step of MD5: rs1 is the word of the message, rs2 the constant.
fn md5_iteration(call: &mut CustomCall<'_>) -> u32 {
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| call.registers[MD5 + at] as u32);
    let round = (call.selector / 16) as usize & 3;
    let f = match round {
        0 => (b & c) | (!b & d),
        1 => (d & b) | (!d & c),
        2 => b ^ c ^ d,
        _ => c ^ (b | !d),
    };
    let sum = a.wrapping_add(f).wrapping_add(call.rs1).wrapping_add(call.rs2);
    let new = b.wrapping_add(sum.rotate_left(SHIFTS[round][(call.selector % 4) as usize]));
    for (at, word) in [d, new, b, c].into_iter().enumerate() {
        call.registers[MD5 + at] = word.into();
    }
    0
}
