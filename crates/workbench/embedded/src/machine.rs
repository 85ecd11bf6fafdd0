//! A core with its memory, its devices and its firmware.

use std::fmt;

use forebay_riscv::{Account, Config, Core, Fault, FaultKind, Isa, Memory, PortAnswer, Ports, Program, Sink};
use forebay_riscv::{Function, Node, Stop, Timing, Width, Word, Xlen};

use crate::elf::{ElfError, Executable};

/// Where memory begins.
pub const MEMORY: u32 = 0x8000_0000;
/// Bytes of memory.
pub const MEMORY_SIZE: u32 = 16 << 20;
/// Where the firmware finds its input.
pub const INPUT: u32 = 0x8080_0000;
/// Where it leaves its output.
pub const OUTPUT: u32 = 0x80c0_0000;
/// Bytes for either.
pub const IMAGE_MAX: usize = 4 << 20;
/// A word stored here ends the program.
const EXIT: u32 = 0x1000_0000;
/// A byte stored here is printed.
const PRINT: u32 = 0x1000_0004;

/// Most that is kept of what firmware prints.
const PRINTED_MAX: usize = 1 << 20;

/// Instructions between two questions whether to stop.
const SLICE: u64 = 20_000_000;

/// The devices of the machine.
#[derive(Debug, Default)]
struct Devices {
    printed: Vec<u8>,
}

impl Ports for Devices {
    fn store(&mut self, address: u32, value: u32, width: Width) -> PortAnswer {
        match (address, width) {
            (EXIT, Width::Word) => PortAnswer::Exit(value),
            (PRINT, Width::Byte) => {
                if self.printed.len() < PRINTED_MAX {
                    self.printed.push(value as u8);
                }
                PortAnswer::Done
            }
            _ => PortAnswer::Nothing,
        }
    }
}

/// What a firmware is run with.
#[derive(Clone, Debug)]
pub struct Job {
    /// The firmware.
    pub executable: Executable,
    /// The instruction set.
    pub isa: Isa,
    /// The input image.
    pub input: Vec<u8>,
    /// Instructions that may run.
    pub limit: u64,
}

/// What a run gave, but for its cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the firmware ended with.
    pub code: u32,
    /// Instructions executed.
    pub instructions: u64,
    /// Its output image.
    pub output: Vec<u8>,
    /// What it printed.
    pub printed: String,
    /// Its functions; the first is everything without a symbol.
    pub functions: Vec<Function>,
    /// The paths of calls.
    pub nodes: Vec<Node>,
}

/// Why a run came to no end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The executable cannot be loaded.
    Elf(ElfError),
    /// The input is larger than its place.
    Input(usize),
    /// The program is wrong.
    Fault {
        /// How.
        fault: Fault,
        /// The function, and how far in it, if there is a symbol.
        function: Option<(String, u32)>,
        /// What it printed before.
        printed: String,
    },
    /// It calls an environment that is not there.
    Call {
        /// Where.
        pc: u32,
        /// a7.
        number: u32,
    },
    /// It did not end.
    Endless(u64),
    /// The caller stopped the run.
    Cancelled,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Elf(error) => error.fmt(f),
            RunError::Input(size) => {
                write!(f, "the input image has {size} bytes; there is room for {IMAGE_MAX}")
            }
            RunError::Fault { fault, function, .. } => {
                if let Some((name, offset)) = function {
                    write!(f, "in `{name}` + {offset:#x}, ")?;
                }
                fault.fmt(f)
            }
            RunError::Call { pc, number } => {
                write!(f, "at pc {pc:#010x}: ecall {number}, but there is no system to call")
            }
            RunError::Endless(limit) => write!(f, "the program has not ended after {limit} instructions"),
            RunError::Cancelled => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}

/// Whether a word is of OP-V, OP-VE, or a load or store of vectors (RISC-V unprivileged ISA 31.5).
fn is_vector(word: u32) -> bool {
    match word & 0x7f {
        0x57 | 0x77 => true,
        0x07 | 0x27 => matches!(word >> 12 & 7, 0 | 5..=7),
        _ => false,
    }
}

impl RunError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            RunError::Elf(_) => {
                "build it for rv32imc, ilp32, or rv64imc, lp64, statically, at 0x8000_0000 (firmware/platform/core.ld)"
                    .to_owned()
            }
            RunError::Input(_) => "take fewer packets: `--set input.packets=500`".to_owned(),
            RunError::Fault { fault, .. } => match fault.kind {
                FaultKind::Illegal { word } if matches!(word & 0x7f, 0x0b | 0x2b | 0x5b | 0x7b) => {
                    "it is a custom instruction: `core.instructions` says which there are, and RV64 has none"
                        .to_owned()
                }
                FaultKind::Illegal { word } if is_vector(word) => {
                    "it is a vector instruction: has the core `xlen = 64`, `zve64x` and the extension of it in \
                     `core.extensions`, is it one of those in docs/explore.md, and does `vtype` allow it?"
                        .to_owned()
                }
                FaultKind::Illegal { .. } => {
                    "does the firmware need more of `core.extensions`, for example zbb, zkne, zknh?"
                        .to_owned()
                }
                FaultKind::Misaligned { size, .. } => {
                    format!(
                        "the core loads and stores {size} bytes at multiples of {size} only; copy byte by byte"
                    )
                }
                FaultKind::Unmapped { .. } => format!(
                    "memory is {MEMORY:#010x} to {:#010x}; a stack overflow and a null pointer end here",
                    MEMORY + (MEMORY_SIZE - 1)
                ),
                FaultKind::NoCode | FaultKind::Target { .. } => {
                    "a jump through a wrong pointer, or a return from a broken stack".to_owned()
                }
                FaultKind::Csr { .. } => "cycle, instret and their machine forms can be read".to_owned(),
                FaultKind::Breakpoint => "an assertion of the firmware has failed".to_owned(),
                _ => "it is the firmware that is wrong".to_owned(),
            },
            RunError::Call { .. } => "a word stored at 0x1000_0000 ends a program".to_owned(),
            RunError::Endless(_) => "`--set firmware.instructions=...` allows more".to_owned(),
            RunError::Cancelled => "nothing was written".to_owned(),
        }
    }
}

/// Runs a job once and counts the cycles of any number of configurations.
///
/// `go_on` is asked every few million instructions, with how many there were.
///
/// # Errors
/// Why there is no end.
pub fn run(
    job: &Job,
    configs: &[Config],
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(Done, Vec<Account>), RunError> {
    match job.isa.xlen() {
        Xlen::Rv32 => run_on::<u32>(job, configs, go_on),
        Xlen::Rv64 => run_on::<u64>(job, configs, go_on),
    }
}

/// The same on registers of one width.
fn run_on<W: Word>(
    job: &Job,
    configs: &[Config],
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(Done, Vec<Account>), RunError> {
    let memory = MEMORY..MEMORY + MEMORY_SIZE;
    let mut clocks: Vec<Timing> = configs.iter().map(|&config| Timing::new(config, memory.clone())).collect();
    match execute::<W>(job, &mut clocks, go_on)? {
        Some((done, core)) => {
            let accounts = clocks.iter().map(|clock| clock.account(core.program())).collect();
            Ok((done, accounts))
        }
        // The program reads `cycle`: each configuration has a run of its own.
        None => {
            let mut accounts = Vec::new();
            let mut first = None;
            for clock in configs {
                let mut clock = Timing::new(*clock, memory.clone());
                if let Some((done, core)) = execute::<W>(job, &mut clock, go_on)? {
                    accounts.push(clock.account(core.program()));
                    first.get_or_insert(done);
                }
            }
            first.map(|done| (done, accounts)).ok_or(RunError::Cancelled)
        }
    }
}

/// A core about to run a job.
fn core<W: Word>(job: &Job) -> Result<Core<W>, RunError> {
    let mut memory = Memory::new(MEMORY, MEMORY_SIZE as usize);
    job.executable.load(&mut memory).map_err(RunError::Elf)?;
    let place = memory.slice_mut(INPUT, job.input.len()).filter(|place| place.len() <= IMAGE_MAX);
    place.ok_or(RunError::Input(job.input.len()))?.copy_from_slice(&job.input);
    let program = Program::new(job.isa.clone(), job.executable.functions.clone());
    Ok(Core::reset(program, memory, job.executable.entry))
}

/// `None`: the program asks for the time, and there are several clocks.
fn execute<W: Word>(
    job: &Job,
    sink: &mut impl Sink,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<(Done, Core<W>)>, RunError> {
    let mut core = core::<W>(job)?;
    let mut devices = Devices::default();
    let code = loop {
        let left = job.limit.saturating_sub(core.instructions());
        let stop = core.run(&mut devices, sink, left.min(SLICE)).map_err(|fault| {
            let function = core.program().function_at(fault.pc);
            let found = function.end > function.start;
            RunError::Fault {
                fault,
                function: found.then(|| (function.name.clone(), fault.pc - function.start)),
                printed: String::from_utf8_lossy(&devices.printed).into_owned(),
            }
        })?;
        match stop {
            Stop::Exit(code) => break code,
            Stop::Call => return Err(RunError::Call { pc: core.pc(), number: core.registers()[17].low() }),
            Stop::NeedsClock => return Ok(None),
            Stop::Limit if core.instructions() >= job.limit => return Err(RunError::Endless(job.limit)),
            Stop::Limit => {}
        }
        if !go_on(core.instructions()) {
            return Err(RunError::Cancelled);
        }
    };
    let done = Done {
        code,
        instructions: core.instructions(),
        output: crate::image::output_bytes(&core.memory).to_vec(),
        printed: String::from_utf8_lossy(&devices.printed).into_owned(),
        functions: core.program().functions().to_vec(),
        nodes: core.program().nodes().to_vec(),
    };
    Ok(Some((done, core)))
}
