//! Why a program cannot go on.

use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The bits at `pc` are no instruction of the core as configured.
    Illegal {
        /// 16 or 32 bits.
        word: u32,
    },
    /// An address that is no multiple of the size of the access.
    Misaligned {
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
    },
    /// Neither memory nor a device.
    Unmapped {
        /// Where.
        address: u64,
        /// Whether it was to be written.
        store: bool,
    },
    /// Code is fetched from where there is none.
    NoCode,
    /// A jump of RV64 to an address of more than 32 bits, where there is no memory.
    Target {
        /// Where to.
        address: u64,
    },
    /// A control and status register that the core has not, or that cannot be written.
    Csr {
        /// Its number.
        number: u16,
    },
    /// `ebreak`.
    Breakpoint,
}

/// A program's end by error, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The instruction.
    pub pc: u32,
    /// What is wrong.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at pc {:#010x}: ", self.pc)?;
        match self.kind {
            FaultKind::Illegal { word } if word & 3 != 3 => write!(f, "illegal instruction {word:#06x}"),
            FaultKind::Illegal { word } => write!(f, "illegal instruction {word:#010x}"),
            FaultKind::Misaligned { address, size } => {
                write!(f, "misaligned access of {size} bytes at {address:#010x}")
            }
            FaultKind::Unmapped { address, store } => {
                write!(f, "{} at {address:#010x}, where nothing is", if store { "store" } else { "load" })
            }
            FaultKind::NoCode => f.write_str("no memory to fetch instructions from"),
            FaultKind::Target { address } => write!(f, "jump to {address:#018x}, where nothing is"),
            FaultKind::Csr { number } => write!(f, "no control and status register {number:#05x}"),
            FaultKind::Breakpoint => f.write_str("ebreak"),
        }
    }
}

impl std::error::Error for Fault {}
