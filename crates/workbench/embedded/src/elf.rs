//! Executables: ELF of 32 or 64 bits, little-endian, RISC-V, statically linked.
//!
//! Not by the crate object, which reads files of every kind: of this one kind three tables are wanted, and an error says
//! which of them is wrong and how.

use std::fmt;

use forebay_riscv::{Function, Memory, Xlen};

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
    /// The width of registers that it was built for.
    pub xlen: Xlen,
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

/// Where fields stand (ELF specification: Elf32_Ehdr and the like, Elf64_Ehdr and the like).
struct Layout {
    xlen: Xlen,
    /// e_phoff, e_phentsize, e_phnum.
    programs: [usize; 3],
    /// e_shoff, e_shentsize, e_shnum.
    sections: [usize; 3],
    /// p_offset, p_vaddr, p_filesz, p_memsz.
    program: [usize; 4],
    /// sh_flags, sh_offset, sh_size, sh_link.
    section: [usize; 4],
    /// st_value, st_size, st_info, st_shndx, and the size of it all.
    symbol: [usize; 5],
}

const ELF32: Layout = Layout {
    xlen: Xlen::Rv32,
    programs: [28, 42, 44],
    sections: [32, 46, 48],
    program: [4, 8, 16, 20],
    section: [8, 16, 20, 24],
    symbol: [4, 8, 12, 14, 16],
};
const ELF64: Layout = Layout {
    xlen: Xlen::Rv64,
    programs: [32, 54, 56],
    sections: [40, 58, 60],
    program: [8, 16, 32, 40],
    section: [8, 24, 32, 40],
    symbol: [8, 16, 4, 6, 24],
};

/// Fields of the ELF specification, at their offsets.
struct Bytes<'a>(&'a [u8], Layout);

impl<'a> Bytes<'a> {
    fn half(&self, at: usize, what: &'static str) -> Result<u16, ElfError> {
        self.array(at, what).map(u16::from_le_bytes)
    }

    fn word(&self, at: usize, what: &'static str) -> Result<u32, ElfError> {
        self.array(at, what).map(u32::from_le_bytes)
    }

    /// An address, an offset or a size, which are as wide as registers. Memory has addresses of 32 bits.
    fn address(&self, at: usize, what: &'static str) -> Result<u32, ElfError> {
        match self.1.xlen {
            Xlen::Rv32 => self.word(at, what),
            Xlen::Rv64 => u32::try_from(u64::from_le_bytes(self.array(at, what)?))
                .map_err(|_| ElfError::Kind("with addresses of more than 32 bits")),
        }
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
        let layout = if file.get(4) == Some(&2) { ELF64 } else { ELF32 };
        let bytes = Bytes(file, layout);
        if !file.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        let header = "the header";
        match (bytes.array::<2>(4, header)?, bytes.half(18, header)?) {
            ([1 | 2, 1], 243) => {}
            ([_, 2], _) => return Err(ElfError::Kind("big-endian")),
            _ => return Err(ElfError::Kind("not for RISC-V")),
        }
        if bytes.half(16, header)? != 2 {
            return Err(ElfError::Kind("not a static executable; link it with -static and without -pie"));
        }
        let segments = segments(&bytes)?;
        let (functions, labels) = symbols(&bytes)?;
        let (xlen, entry) = (bytes.1.xlen, bytes.address(24, header)?);
        Ok(Executable { xlen, entry, segments, functions, labels })
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
    let [table, size, count] = bytes.1.programs;
    let (table, size, count) =
        (bytes.address(table, what)?, bytes.half(size, what)?, bytes.half(count, what)?);
    let [offset, place, in_file, in_memory] = bytes.1.program;
    let mut segments = Vec::new();
    for number in 0..usize::from(count) {
        let at = table as usize + number * usize::from(size);
        let field = |offset| bytes.address(at + offset, what);
        let (in_file, in_memory) = (field(in_file)?, field(in_memory)?);
        if bytes.word(at, what)? != LOAD || in_memory == 0 {
            continue;
        }
        let content = bytes.part(field(offset)?, in_file.min(in_memory), "a segment")?;
        segments.push(Segment { address: field(place)?, bytes: content.to_vec(), size: in_memory });
    }
    Ok(segments)
}

type Symbols = (Vec<Function>, Vec<(String, u32)>);

fn symbols(bytes: &Bytes<'_>) -> Result<Symbols, ElfError> {
    let what = "a section header";
    let [table, size, count] = bytes.1.sections;
    let (table, size, count) =
        (bytes.address(table, what)?, bytes.half(size, what)?, bytes.half(count, what)?);
    let [flags, offset, length, link] = bytes.1.section;
    let [value, extent, info, index, whole] = bytes.1.symbol;
    let section = |number: usize, offset: usize| table as usize + number * usize::from(size) + offset;
    let field = |number: usize, offset: usize| bytes.address(section(number, offset), what);
    let (mut functions, mut labels) = (Vec::new(), Vec::new());
    for number in 0..usize::from(count) {
        if bytes.word(section(number, 4), what)? != SYMBOLS {
            continue;
        }
        let content = bytes.part(field(number, offset)?, field(number, length)?, "the symbol table")?;
        let strings = bytes.word(section(number, link), what)? as usize;
        let names = bytes.part(field(strings, offset)?, field(strings, length)?, "the names of symbols")?;
        for symbol in content.chunks_exact(whole) {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| symbol[at + byte]));
            let size = |at: usize| match bytes.1.xlen {
                Xlen::Rv32 => Some(word(at)),
                Xlen::Rv64 => (word(at + 4) == 0).then(|| word(at)),
            };
            let name = word(0);
            // A symbol above 32 bits names nothing in memory.
            let (Some(start), Some(length)) = (size(value), size(extent)) else { continue };
            let (kind, home) = (symbol[info] & 15, u16::from_le_bytes([symbol[index], symbol[index + 1]]));
            let in_code = usize::from(home) < usize::from(count)
                && home != 0
                && bytes.word(section(usize::from(home), flags), what)? & EXECUTABLE != 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_above_32_bits_are_left_out() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../firmware/prebuilt/vectors-rv64.elf");
        let mut file = std::fs::read(path).unwrap();
        let functions = Executable::read(&file).unwrap().functions;
        let one = functions.iter().find(|one| one.name == "aes_encrypt").unwrap();
        let fields = [u64::from(one.start), u64::from(one.end - one.start)].map(u64::to_le_bytes).concat();
        let places: Vec<usize> = (0..file.len()).filter(|&at| file[at..].starts_with(&fields)).collect();
        let [place] = places[..] else { panic!("{places:?}") };
        for upper in [4, 12] {
            file[place + upper] = 1;
            let left = Executable::read(&file).unwrap().functions;
            assert!(left.len() == functions.len() - 1 && left.iter().all(|one| one.name != "aes_encrypt"));
            file[place + upper] = 0;
        }
    }
}
