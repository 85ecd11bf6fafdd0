//! What instructions do, except those that end a block.

use crate::custom::{Custom, CustomCall, WORDS_MAX};
use crate::fault::FaultKind;
use crate::instruction::{Instruction, Op};
use crate::memory::{Memory, Ports, Width, unmapped};
use crate::vector::Vector;
use crate::word::{Word, Xlen};

/// Registers, with a place for what goes nowhere; 64 so that every 6-bit index is one.
pub(crate) type Registers<W> = [W; 64];

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

/// Executes one instruction that does not end a block. What its time depends on goes into `addresses`
/// ([`Trace::addresses`](crate::Trace)).
// Long because there is one arm for each kind of access.
#[inline(always)]
pub(crate) fn execute<W: Word>(
    one: Instruction,
    x: &mut Registers<W>,
    memory: &mut Memory,
    ports: &mut impl Ports,
    addresses: &mut Vec<u32>,
    (custom, custom_registers): (&Custom, &mut [u64]),
    vector: &mut Vector,
) -> Result<(), Halt> {
    let a = x[usize::from(one.rs1 & 63)];
    let b = x[usize::from(one.rs2 & 63)];
    let imm = one.imm;
    macro_rules! address {
        ($store:literal) => {{
            let address = a.offset(imm);
            address.address().ok_or(unmapped(address.wide(), $store))?
        }};
    }
    macro_rules! load {
        ($width:expr) => {{
            let address = address!(false);
            let value = memory.load(address, $width, ports)?;
            addresses.push(address);
            value
        }};
    }
    macro_rules! store {
        ($width:expr) => {{
            let address = address!(true);
            let exit = memory.store(address, b.low(), $width, ports)?;
            addresses.push(address);
            return match exit {
                Some(code) => Err(Halt::Exit(code)),
                None => Ok(()),
            };
        }};
    }
    let value = match one.op {
        Op::Lb => W::signed(load!(Width::Byte) as i8 as u32),
        Op::Lh => W::signed(load!(Width::Half) as i16 as u32),
        Op::Lw => W::signed(load!(Width::Word)),
        Op::Lbu => W::truncated(load!(Width::Byte).into()),
        Op::Lhu => W::truncated(load!(Width::Half).into()),
        Op::Sb => store!(Width::Byte),
        Op::Sh => store!(Width::Half),
        Op::Sw => store!(Width::Word),
        Op::Lwu if W::XLEN == Xlen::Rv64 => W::truncated(load!(Width::Word).into()),
        Op::Ld if W::XLEN == Xlen::Rv64 => {
            let address = address!(false);
            let value = memory.load_double(address)?;
            addresses.push(address);
            W::truncated(value)
        }
        Op::Sd if W::XLEN == Xlen::Rv64 => {
            let address = address!(true);
            memory.store_double(address, b.wide())?;
            addresses.push(address);
            return Ok(());
        }
        Op::Vset | Op::Vload | Op::Vstore | Op::Vcompute | Op::Vcrypto if W::XLEN == Xlen::Rv64 => {
            W::truncated(vector.execute(one, [a.wide(), b.wide()], memory, addresses)?)
        }
        Op::Custom => {
            let definition = &custom.definitions()[(imm & 0xffff) as usize];
            let mut words = [0; WORDS_MAX];
            let words = &mut words[..definition.words as usize];
            for (word, at) in words.iter_mut().zip(0_u32..) {
                let address = a.low().wrapping_add(4 * at);
                *word = memory.load(address, Width::Word, ports)?;
                addresses.push(address);
            }
            W::signed(definition.semantics.execute(&mut CustomCall {
                rs1: a.low(),
                rs2: b.low(),
                selector: (imm >> 16) as u32,
                words,
                registers: custom_registers,
            }))
        }
        _ => W::computed(one, a, b),
    };
    x[usize::from(one.rd & 63)] = value;
    Ok(())
}
