//! Executables: ELF of 32 bits, little-endian, RISC-V, statically linked.
//!
//! Not by the crate object, which reads files of every kind: of this one kind three tables are wanted, and an error says
//! which of them is wrong and how.

use std::fmt;

use forebay_riscv::{Function, Memory};

/// A stretch of memory that a file fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub address: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Bytes in memory; what the file does not fill is zero.
    pub size: u32,
}

/// An executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Where it begins.
    pub entry: u32,
    /// What is loaded.
    pub segments: Vec<Segment>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Other names of places in code, of assembler sources.
    pub labels: Vec<(String, u32)>,
}

/// Why a file is no executable for the core.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfError {
    /// It does not begin as ELF files do.
    NotElf,
    /// Of another kind.
    Kind(&'static str),
    /// Something in it lies outside it.
    Cut(&'static str),
    /// A segment is not in the memory of the core.
    Outside {
        /// Its first address.
        address: u32,
        /// Its size.
        size: u32,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("no ELF file"),
            ElfError::Kind(what) => write!(f, "an ELF file, but {what}"),
            ElfError::Cut(what) => write!(f, "the ELF file is cut short: {what} lies behind its end"),
            ElfError::Outside { address, size } => {
                write!(f, "its segment of {size} bytes at {address:#010x} is not in the core's memory")
            }
        }
    }
}

impl std::error::Error for ElfError {}

/// Fields of the ELF specification, at their offsets.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn half(&self, at: usize, what: &'static str) -> Result<u16, ElfError> {
        self.array(at, what).map(u16::from_le_bytes)
    }

    fn word(&self, at: usize, what: &'static str) -> Result<u32, ElfError> {
        self.array(at, what).map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&self, at: usize, what: &'static str) -> Result<[u8; N], ElfError> {
        self.0.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(ElfError::Cut(what))
    }

    fn part(&self, from: u32, size: u32, what: &'static str) -> Result<&'a [u8], ElfError> {
        let from = from as usize;
        self.0.get(from..from.saturating_add(size as usize)).ok_or(ElfError::Cut(what))
    }
}

const LOAD: u32 = 1;
const SYMBOLS: u32 = 2;
const EXECUTABLE: u32 = 4;
const FUNCTION: u8 = 2;
const NO_TYPE: u8 = 0;

impl Executable {
    /// Reads a file.
    ///
    /// # Errors
    /// Why it is no executable for the core.
    pub fn read(file: &[u8]) -> Result<Executable, ElfError> {
        let bytes = Bytes(file);
        if !file.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        let header = "the header";
        match (bytes.array::<2>(4, header)?, bytes.half(18, header)?) {
            ([1, 1], 243) => {}
            ([2, _], _) => return Err(ElfError::Kind("of 64 bits; build it for rv32")),
            ([_, 2], _) => return Err(ElfError::Kind("big-endian")),
            _ => return Err(ElfError::Kind("not for RISC-V")),
        }
        if bytes.half(16, header)? != 2 {
            return Err(ElfError::Kind("not a static executable; link it with -static and without -pie"));
        }
        let segments = segments(&bytes)?;
        let (functions, labels) = symbols(&bytes)?;
        Ok(Executable { entry: bytes.word(24, header)?, segments, functions, labels })
    }

    /// Puts the segments into memory.
    ///
    /// # Errors
    /// [`ElfError::Outside`].
    pub fn load(&self, memory: &mut Memory) -> Result<(), ElfError> {
        for Segment { address, bytes, size } in &self.segments {
            let outside = ElfError::Outside { address: *address, size: *size };
            let place = memory.slice_mut(*address, *size as usize).ok_or(outside)?;
            place[..bytes.len()].copy_from_slice(bytes);
            place[bytes.len()..].fill(0);
        }
        Ok(())
    }
}

fn segments(bytes: &Bytes<'_>) -> Result<Vec<Segment>, ElfError> {
    let what = "a program header";
    let (table, size, count) = (bytes.word(28, what)?, bytes.half(42, what)?, bytes.half(44, what)?);
    let mut segments = Vec::new();
    for number in 0..usize::from(count) {
        let at = table as usize + number * usize::from(size);
        let field = |offset| bytes.word(at + offset, what);
        let (in_file, in_memory) = (field(16)?, field(20)?);
        if field(0)? != LOAD || in_memory == 0 {
            continue;
        }
        let content = bytes.part(field(4)?, in_file.min(in_memory), "a segment")?;
        segments.push(Segment { address: field(8)?, bytes: content.to_vec(), size: in_memory });
    }
    Ok(segments)
}

type Symbols = (Vec<Function>, Vec<(String, u32)>);

fn symbols(bytes: &Bytes<'_>) -> Result<Symbols, ElfError> {
    let what = "a section header";
    let (table, size, count) = (bytes.word(32, what)?, bytes.half(46, what)?, bytes.half(48, what)?);
    let section =
        |number: usize, offset: usize| bytes.word(table as usize + number * usize::from(size) + offset, what);
    let (mut functions, mut labels) = (Vec::new(), Vec::new());
    for number in 0..usize::from(count) {
        if section(number, 4)? != SYMBOLS {
            continue;
        }
        let content = bytes.part(section(number, 16)?, section(number, 20)?, "the symbol table")?;
        let strings = section(number, 24)? as usize;
        let names = bytes.part(section(strings, 16)?, section(strings, 20)?, "the names of symbols")?;
        for symbol in content.chunks_exact(16) {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| symbol[at + byte]));
            let (name, start, length) = (word(0), word(4), word(8));
            let (kind, home) = (symbol[12] & 15, u16::from_le_bytes([symbol[14], symbol[15]]));
            let in_code = usize::from(home) < usize::from(count)
                && home != 0
                && section(usize::from(home), 8)? & EXECUTABLE != 0;
            let name = names.get(name as usize..).and_then(|rest| rest.split(|&byte| byte == 0).next());
            let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
            // Names that begin with $ are marks of the assembler.
            if !in_code || name.is_empty() || name.starts_with(['$', '.']) {
                continue;
            }
            match kind {
                FUNCTION => functions.push(Function { name, start, end: start.saturating_add(length) }),
                NO_TYPE => labels.push((name, start)),
                _ => {}
            }
        }
    }
    // An alias of the same code counts once, and code without a size reaches to what comes next.
    functions.sort_by(|a, b| (a.start, b.end, &a.name).cmp(&(b.start, a.end, &b.name)));
    functions.dedup_by_key(|one| one.start);
    let starts: Vec<u32> = functions.iter().map(|one| one.start).collect();
    for (at, one) in functions.iter_mut().enumerate() {
        if one.end == one.start {
            one.end = starts.get(at + 1).copied().unwrap_or(one.start.saturating_add(1 << 16));
        }
    }
    Ok((functions, labels))
}
