//! Control and status registers: counters, and a few that start-up code writes.

use crate::word::Xlen;

/// What is kept of a register that is written and read, and does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Csr {
    kept: [u64; KEPT.len()],
}

/// mstatus, mie, mtvec, mstatush, mscratch, mepc, mcause, mtval, mip: there are no traps, so they are but
/// places to keep a word.
const KEPT: [u16; 9] = [0x300, 0x304, 0x305, 0x310, 0x340, 0x341, 0x342, 0x343, 0x344];

/// Machine information: mvendorid, marchid, mimpid, mhartid.
const ZERO: std::ops::RangeInclusive<u16> = 0xf11..=0xf14;

/// mstatush, which only RV32 has.
const MSTATUSH: u16 = 0x310;

/// misa: C, I, M; above them how wide registers are.
const MISA: u64 = 1 << 2 | 1 << 8 | 1 << 12;

/// A counter, and whether its upper half is meant.
pub(crate) enum Counter {
    Cycle(bool),
    Retired(bool),
}

/// The counter that a number names, if it is one. Time is counted in cycles. RV64 has no upper halves.
pub(crate) fn counter(number: u16, xlen: Xlen) -> Option<Counter> {
    Some(match number {
        0xc80..=0xc82 | 0xb80..=0xb82 if xlen == Xlen::Rv64 => return None,
        0xc00 | 0xc01 | 0xb00 => Counter::Cycle(false),
        0xc80 | 0xc81 | 0xb80 => Counter::Cycle(true),
        0xc02 | 0xb02 => Counter::Retired(false),
        0xc82 | 0xb82 => Counter::Retired(true),
        _ => return None,
    })
}

impl Csr {
    /// What a register that is no counter holds.
    pub(crate) fn read(&self, number: u16, xlen: Xlen) -> Option<u64> {
        match (number, xlen) {
            (0x301, Xlen::Rv32) => return Some(MISA | 1 << 30),
            (0x301, Xlen::Rv64) => return Some(MISA | 2 << 62),
            (MSTATUSH, Xlen::Rv64) => return None,
            _ => {}
        }
        let kept = KEPT.iter().position(|&one| one == number).map(|at| self.kept[at]);
        kept.or_else(|| ZERO.contains(&number).then_some(0))
    }

    /// Whether it could be written.
    pub(crate) fn write(&mut self, number: u16, value: u64, xlen: Xlen) -> bool {
        match (number, xlen) {
            (0x301, _) => return true,
            (MSTATUSH, Xlen::Rv64) => return false,
            _ => {}
        }
        match KEPT.iter().position(|&one| one == number) {
            Some(at) => {
                self.kept[at] = value;
                true
            }
            None => false,
        }
    }
}
