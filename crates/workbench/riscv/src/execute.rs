//! What instructions compute, except those that end a block.

use crate::custom::{Custom, CustomCall, WORDS_MAX};
use crate::fault::FaultKind;
use crate::instruction::{Instruction, Op};
use crate::memory::{Memory, Ports, Width};
use crate::scalar_crypto as crypto;

/// Registers, with a place for what goes nowhere; 64 so that every 6-bit index is one.
pub(crate) type Registers = [u32; 64];

/// Why a block is left before its end.
pub(crate) enum Halt {
    /// A device ended the program.
    Exit(u32),
    /// A fault.
    Fault(FaultKind),
}

impl From<FaultKind> for Halt {
    fn from(kind: FaultKind) -> Halt {
        Halt::Fault(kind)
    }
}

/// Executes one instruction that does not end a block. Addresses of loads and stores go into `addresses`.
// Long because there is one arm for each instruction.
#[inline(always)]
pub(crate) fn execute(
    one: Instruction,
    x: &mut Registers,
    memory: &mut Memory,
    ports: &mut impl Ports,
    addresses: &mut Vec<u32>,
    (custom, custom_registers): (&Custom, &mut [u64]),
) -> Result<(), Halt> {
    let a = x[usize::from(one.rs1 & 63)];
    let b = x[usize::from(one.rs2 & 63)];
    let imm = one.imm;
    macro_rules! load {
        ($width:expr) => {{
            let address = a.wrapping_add(imm as u32);
            let value = memory.load(address, $width, ports)?;
            addresses.push(address);
            value
        }};
    }
    macro_rules! store {
        ($width:expr) => {{
            let address = a.wrapping_add(imm as u32);
            let exit = memory.store(address, b, $width, ports)?;
            addresses.push(address);
            return match exit {
                Some(code) => Err(Halt::Exit(code)),
                None => Ok(()),
            };
        }};
    }
    let value = match one.op {
        Op::Lui => imm as u32,
        Op::Addi => a.wrapping_add(imm as u32),
        Op::Slti => u32::from((a as i32) < imm),
        Op::Sltiu => u32::from(a < imm as u32),
        Op::Xori => a ^ imm as u32,
        Op::Ori => a | imm as u32,
        Op::Andi => a & imm as u32,
        Op::Slli => a << (imm & 31),
        Op::Srli => a >> (imm & 31),
        Op::Srai => (a as i32 >> (imm & 31)) as u32,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Sll => a << (b & 31),
        Op::Slt => u32::from((a as i32) < b as i32),
        Op::Sltu => u32::from(a < b),
        Op::Xor => a ^ b,
        Op::Srl => a >> (b & 31),
        Op::Sra => (a as i32 >> (b & 31)) as u32,
        Op::Or => a | b,
        Op::And => a & b,
        Op::Lb => load!(Width::Byte) as i8 as u32,
        Op::Lh => load!(Width::Half) as i16 as u32,
        Op::Lw => load!(Width::Word),
        Op::Lbu => load!(Width::Byte),
        Op::Lhu => load!(Width::Half),
        Op::Sb => store!(Width::Byte),
        Op::Sh => store!(Width::Half),
        Op::Sw => store!(Width::Word),
        Op::Custom => {
            let definition = &custom.definitions()[(imm & 0xffff) as usize];
            let mut words = [0; WORDS_MAX];
            let words = &mut words[..definition.words as usize];
            for (word, at) in words.iter_mut().zip(0_u32..) {
                let address = a.wrapping_add(4 * at);
                *word = memory.load(address, Width::Word, ports)?;
                addresses.push(address);
            }
            definition.semantics.execute(&mut CustomCall {
                rs1: a,
                rs2: b,
                selector: (imm >> 16) as u32,
                words,
                registers: custom_registers,
            })
        }
        _ => computed(one, a, b),
    };
    x[usize::from(one.rd & 63)] = value;
    Ok(())
}

/// The rest: results that need nothing but the two sources.
#[inline]
fn computed(one: Instruction, a: u32, b: u32) -> u32 {
    let imm = one.imm;
    match one.op {
        Op::Mul => a.wrapping_mul(b),
        Op::Mulh => ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
        Op::Mulhsu => ((i64::from(a as i32) * i64::from(b)) >> 32) as u32,
        Op::Mulhu => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        Op::Div if b == 0 => u32::MAX,
        Op::Div => (a as i32).wrapping_div(b as i32) as u32,
        Op::Divu => a.checked_div(b).unwrap_or(u32::MAX),
        Op::Rem if b == 0 => a,
        Op::Rem => (a as i32).wrapping_rem(b as i32) as u32,
        Op::Remu => a.checked_rem(b).unwrap_or(a),
        Op::Andn => a & !b,
        Op::Orn => a | !b,
        Op::Xnor => !(a ^ b),
        Op::Rol => a.rotate_left(b & 31),
        Op::Ror => a.rotate_right(b & 31),
        Op::Rori => a.rotate_right(imm as u32 & 31),
        Op::Clz => a.leading_zeros(),
        Op::Ctz => a.trailing_zeros(),
        Op::Cpop => a.count_ones(),
        Op::Max => (a as i32).max(b as i32) as u32,
        Op::Maxu => a.max(b),
        Op::Min => (a as i32).min(b as i32) as u32,
        Op::Minu => a.min(b),
        Op::Sextb => a as i8 as u32,
        Op::Sexth => a as i16 as u32,
        Op::Orcb => crypto::orcb(a),
        Op::Rev8 => a.swap_bytes(),
        Op::Brev8 => crypto::brev8(a),
        Op::Pack => (a & 0xffff) | (b << 16),
        Op::Packh => (a & 0xff) | (b & 0xff) << 8,
        Op::Zip => crypto::zip(a),
        Op::Unzip => crypto::unzip(a),
        Op::Clmul => crypto::clmul(a, b) as u32,
        Op::Clmulh => (crypto::clmul(a, b) >> 32) as u32,
        Op::Xperm4 => crypto::xperm(a, b, 4),
        Op::Xperm8 => crypto::xperm(a, b, 8),
        // funct7's two upper bits are the byte: `decode` leaves them in `imm`.
        Op::Aes32esi => crypto::aes32esi(a, b, imm),
        Op::Aes32esmi => crypto::aes32esmi(a, b, imm),
        Op::Aes32dsi => crypto::aes32dsi(a, b, imm),
        Op::Aes32dsmi => crypto::aes32dsmi(a, b, imm),
        Op::Sha256sig0 => crypto::sha256sig0(a),
        Op::Sha256sig1 => crypto::sha256sig1(a),
        Op::Sha256sum0 => crypto::sha256sum0(a),
        Op::Sha256sum1 => crypto::sha256sum1(a),
        Op::Sha512sig0h => crypto::sha512sig0h(a, b),
        Op::Sha512sig0l => crypto::sha512sig0l(a, b),
        Op::Sha512sig1h => crypto::sha512sig1h(a, b),
        Op::Sha512sig1l => crypto::sha512sig1l(a, b),
        Op::Sha512sum0r => crypto::sha512sum0r(a, b),
        Op::Sha512sum1r => crypto::sha512sum1r(a, b),
        // `fence` orders what is in order already; its rd is never written by what it computes.
        _ => 0,
    }
}
